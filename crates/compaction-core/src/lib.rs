//! What to summarise and what to keep..

pub mod overflow;
