//! The sesstool command.
