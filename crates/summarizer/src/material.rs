//! The model messages that summaries are made of: all of them in memory, or one at a time.

use std::cell::OnceCell;

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
        messages.extend(message(sequence, item, records, prompts)?);
    }
    Ok(messages)
}

fn message<'r, R: Records + ?Sized>(
    sequence: &Sequence<'_>,
    item: &Item,
    records: &'r R,
    prompts: &Prompts,
) -> Result<Option<Value<'r>>, RecordError> {
    let agent = agent_message(sequence, item, records)?;
    let mut message = agent.and_then(|agent| model_message(agent, prompts));
    if let Some(Value::Object(fields)) = &mut message {
        // No summary says what a message cost, and where all messages are held it is a good part of them.
        fields.remove("usage");
    }
    Ok(message)
}

/// Messages that can be gone through any number of times.
pub trait Messages {
    /// Shows all messages to `see`, in their order.
    ///
    /// # Errors
    /// A record that cannot be read again.
    fn each(&self, see: &mut dyn FnMut(&Value<'_>)) -> Result<(), RecordError>;

    /// Shows the message at this place, from 0, to `see`, if there is one.
    ///
    /// # Errors
    /// As [`Messages::each`].
    fn at(&self, place: usize, see: &mut dyn FnMut(&Value<'_>)) -> Result<(), RecordError> {
        let mut n = 0;
        self.each(&mut |message| {
            if n == place {
                see(message);
            }
            n += 1;
        })
    }
}

impl Messages for &[Value<'_>] {
    fn each(&self, see: &mut dyn FnMut(&Value<'_>)) -> Result<(), RecordError> {
        self.iter().for_each(see);
        Ok(())
    }

    fn at(&self, place: usize, see: &mut dyn FnMut(&Value<'_>)) -> Result<(), RecordError> {
        self.get(place).into_iter().for_each(see);
        Ok(())
    }
}

impl Messages for Vec<Value<'_>> {
    fn each(&self, see: &mut dyn FnMut(&Value<'_>)) -> Result<(), RecordError> {
        self.as_slice().each(see)
    }

    fn at(&self, place: usize, see: &mut dyn FnMut(&Value<'_>)) -> Result<(), RecordError> {
        self.as_slice().at(place, see)
    }
}

/// Some messages and others behind them.
impl Messages for [&dyn Messages; 2] {
    fn each(&self, see: &mut dyn FnMut(&Value<'_>)) -> Result<(), RecordError> {
        self.iter().try_for_each(|messages| messages.each(see))
    }
}

/// The messages of some items, each made from its record when it is its turn: what they hold together is never in memory.
#[derive(Debug)]
pub struct Stored<'p, R: ?Sized> {
    /// The sequence that the items are of.
    pub sequence: &'p Sequence<'p>,
    /// The items.
    pub items: &'p [Item],
    /// Where their records are.
    pub records: &'p R,
    /// What wraps summaries.
    pub prompts: &'p Prompts,
    /// Places among the items of those that give a message, once all were gone through.
    places: OnceCell<Vec<u32>>,
}

impl<'p, R: Records + ?Sized> Stored<'p, R> {
    /// The messages of these items of a sequence.
    pub fn new(
        sequence: &'p Sequence<'p>,
        items: &'p [Item],
        records: &'p R,
        prompts: &'p Prompts,
    ) -> Stored<'p, R> {
        Stored { sequence, items, records, prompts, places: OnceCell::new() }
    }

    /// Whether the model gets none of them.
    ///
    /// # Errors
    /// A record that cannot be read again.
    pub fn is_empty(&self) -> Result<bool, RecordError> {
        for item in self.items {
            if message(self.sequence, item, self.records, self.prompts)?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl<R: Records + ?Sized> Messages for Stored<'_, R> {
    fn each(&self, see: &mut dyn FnMut(&Value<'_>)) -> Result<(), RecordError> {
        let mut places = Vec::new();
        for (place, item) in (0u32..).zip(self.items) {
            if let Some(message) = message(self.sequence, item, self.records, self.prompts)? {
                places.push(place);
                see(&message);
            }
        }
        self.places.get_or_init(|| places);
        Ok(())
    }

    fn at(&self, place: usize, see: &mut dyn FnMut(&Value<'_>)) -> Result<(), RecordError> {
        if self.places.get().is_none() {
            self.each(&mut |_| {})?;
        }
        let place = self.places.get().and_then(|places| places.get(place));
        let item = place.and_then(|&place| self.items.get(place as usize));
        if let Some(item) = item
            && let Some(message) = message(self.sequence, item, self.records, self.prompts)?
        {
            see(&message);
        }
        Ok(())
    }
}
