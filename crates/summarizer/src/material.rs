//! The model messages that the requests of a compaction are made of.

use compaction_core::branch_summary::BranchPreparation;
use compaction_core::preparation::Preparation;
use session_model::agent_message::agent_message;
use session_model::error::RecordError;
use session_model::model_message::model_message;
use session_model::prompts::Prompts;
use session_model::sequence::{Item, Sequence};
use session_model::session::Records;
use session_model::value::Value;

/// The messages of the three parts of a preparation, as the model gets them.
#[derive(Clone, Debug, Default)]
pub struct Material<'r> {
    /// Of the history.
    pub history: Vec<Value<'r>>,
    /// Of the first part of a split turn.
    pub turn_prefix: Vec<Value<'r>>,
    /// Of what stays.
    pub recent: Vec<Value<'r>>,
}

impl<'r> Material<'r> {
    /// Reads the messages of a preparation.
    ///
    /// # Errors
    /// A record that cannot be read again.
    pub fn load<R: Records + ?Sized>(
        preparation: &Preparation<'_>,
        records: &'r R,
        prompts: &Prompts,
    ) -> Result<Material<'r>, RecordError> {
        let load = |items: &[Item]| messages(&preparation.sequence, items, records, prompts);
        Ok(Material {
            history: load(&preparation.history)?,
            turn_prefix: load(&preparation.turn_prefix)?,
            recent: load(&preparation.recent)?,
        })
    }
}

/// Reads the messages that go into the summary of an abandoned branch.
///
/// # Errors
/// A record that cannot be read again.
pub fn branch_messages<'r, R: Records + ?Sized>(
    preparation: &BranchPreparation<'_>,
    records: &'r R,
    prompts: &Prompts,
) -> Result<Vec<Value<'r>>, RecordError> {
    messages(&preparation.sequence, &preparation.messages, records, prompts)
}

fn messages<'r, R: Records + ?Sized>(
    sequence: &Sequence<'_>,
    items: &[Item],
    records: &'r R,
    prompts: &Prompts,
) -> Result<Vec<Value<'r>>, RecordError> {
    let mut messages = Vec::with_capacity(items.len());
    for item in items {
        let agent = agent_message(sequence, item, records)?;
        messages.extend(agent.and_then(|agent| model_message(agent, prompts)));
    }
    Ok(messages)
}
