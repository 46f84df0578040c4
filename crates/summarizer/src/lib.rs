//! How to ask a model for a summary..
