//! The sesstool command.

fn main() {}
