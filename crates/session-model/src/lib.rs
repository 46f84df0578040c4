//! What a session file says.

pub mod scan;
pub mod text;
pub mod value;
