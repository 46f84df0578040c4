//! The program as a user meets it: exit statuses, output, files. One module for each command.

mod agents;
mod completions;
mod discover;
mod inspect;
mod man;
mod models;
mod schema;
mod settings;
mod support;
mod undo;
mod usage;
