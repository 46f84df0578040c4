//! What may be blanked: which old tool results, and how (spec part 4).

pub mod settings;
