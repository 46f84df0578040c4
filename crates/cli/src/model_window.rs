//! How large the window is of the model that a session was last used with (spec 3.8).

use session_model::entry::EntryKind;
use session_model::message::Role;
use session_model::sequence::Sequence;
use session_model::state::changed_model;
use summarizer::models;

use crate::settings::Settings;

/// Provider and id of the branch's current model: its last change of the default role, or the model of its last answer.
pub fn current_model(sequence: &Sequence<'_>) -> Option<(String, String)> {
    let session = sequence.session;
    sequence.branch.iter().rev().map(|&entry| session.entry(entry)).find_map(|entry| match entry.kind {
        EntryKind::Message => {
            let message = entry.message().filter(|message| message.role == Role::Assistant)?;
            let (provider, model) = message.model?;
            Some((session.name(provider).to_owned(), session.name(model).to_owned()))
        }
        _ => changed_model(entry),
    })
}

/// Tokens of the window: as set, else as the model table says; `None` if the model is not known.
pub fn window(settings: &Settings, sequence: &Sequence<'_>) -> Option<u64> {
    settings.context_window().or_else(|| {
        let (provider, id) = current_model(sequence)?;
        models::find(&provider, &id).map(|model| model.window)
    })
}

/// What to say when the window is not known.
pub fn unknown_window(sequence: &Sequence<'_>) -> String {
    match current_model(sequence) {
        Some((provider, id)) => {
            let model = if provider.is_empty() { id } else { format!("{provider}/{id}") };
            format!("the window of {model} is not known; give it with --context-window")
        }
        None => "no answer says which model is used; give its window with --context-window".to_owned(),
    }
}
