//! How to ask a model for a summary, and how to do without one.

pub mod cancel;
pub mod error;
pub mod models;
pub mod provider;
pub mod retry;
pub mod secret;
