//! The only code that touches session files on disk (spec 8.1): bytes and paths, never what a session says.
//!
//! A command that writes goes [`settle`] → [`read::whole`] → [`append`] or [`replace`]; [`undo`] takes the newest
//! write back. What is promised, and how it is tested, is in `docs/safety.md`.
#![expect(clippy::disallowed_methods, reason = "this module is the owner of file access")]

mod append;
mod buffer;
mod create;
mod error;
mod fault;
mod guard;
mod live_writer;
mod log;
mod names;
pub mod read;
mod replace;
mod settle;
mod swap;
#[cfg(test)]
mod tests;
mod undo;

pub use append::{Written, append};
pub use create::{create, open_log};
pub use error::DiskError;
pub use guard::{Fingerprint, Intent, Target};
pub use live_writer::Writers;
pub use names::is_own_file;
pub use replace::{Backup, ReplaceOptions, Replaced, replace};
pub use settle::{Settled, settle};
pub use swap::{Carried, WATCH};
pub use undo::{Undone, undo};
