//! What a session file of pi or oh-my-pi says: slices in, values out; no I/O, no clock, no policy.
//!
//! ```text
//! bytes → records → entries → branch → effective sequence → agent messages → model messages → request bodies
//!         record    reader    branch   sequence             agent_message    model_message    wire
//! ```

pub mod agent_message;
pub mod branch;
pub mod dialect;
pub mod edit;
pub mod entry;
pub mod error;
pub mod execution_text;
mod links;
pub mod marks;
pub mod message;
mod message_facts;
mod message_scan;
pub mod migrate;
pub mod model_message;
mod names;
pub mod output_notice;
pub mod pieces;
mod preview;
pub mod printed;
pub mod prompts;
pub mod reader;
pub mod record;
pub mod repair;
pub mod scan;
pub mod sequence;
pub mod session;
pub mod state;
pub mod strings;
pub mod system;
pub mod text;
pub mod tidy;
pub mod time;
pub mod tokens;
pub mod validate;
pub mod value;
pub mod wire;
