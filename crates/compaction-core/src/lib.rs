//! What to summarise and what to keep..
