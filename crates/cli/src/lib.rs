//! The sesstool command.

pub mod disk;
