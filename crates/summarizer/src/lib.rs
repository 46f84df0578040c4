//! How to ask a model for a summary, and how to do without one.
//!
//! ```text
//! preparation → material → plan → summaries
//!               messages   requests, folded   summarize (a model) or embedded (none)
//! ```

pub mod cancel;
pub mod embedded;
pub mod error;
pub mod fold;
pub mod material;
pub mod models;
pub mod plan;
pub mod provider;
pub mod request;
pub mod retry;
pub mod secret;
pub mod summarize;
pub mod transcript;
