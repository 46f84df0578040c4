//! What of a session to summarise, and what to keep.

pub mod overflow;
pub mod settings;
