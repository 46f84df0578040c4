//! What of a session to summarise, and what to keep: pure decisions over facts that `session_model` has read.
//!
//! ```text
//! effective sequence → preparation → (summaries, made elsewhere) → entry
//!                      prepare        summarizer                   finish
//! ```

pub mod branch_summary;
pub mod compaction_entry;
pub mod cut_point;
pub mod file_ops;
pub mod maintenance;
pub mod overflow;
pub mod preparation;
pub mod settings;
pub mod trigger;
pub mod turn;
pub mod usage;

pub use compaction_entry::finish;
pub use preparation::prepare;
