//! The program as a user meets it: exit statuses, output, files. One module for each command.

mod agents;
mod auto;
mod branch;
mod cancel;
mod compact;
mod completions;
mod context;
mod discover;
mod doctor;
mod faults;
mod hook_examples;
mod hooks;
mod inspect;
mod large_tail;
mod live;
mod man;
mod models;
mod prune;
mod readme;
mod schema;
mod server;
mod sessions;
mod settings;
mod support;
mod undo;
mod usage;
