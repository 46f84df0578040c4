//! What may be blanked: which old tool results, and how (spec part 4). It cannot fail, so it has no error type.

pub mod apply;
pub mod plan;
pub mod settings;

pub use plan::plan;
