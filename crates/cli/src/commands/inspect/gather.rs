//! Gathers the facts of a session from its index, each list in time linear in the number of entries.

use std::collections::{BTreeMap, HashMap};

use compaction_core::preparation::{Preparation, Skip};
use compaction_core::usage;
use session_model::entry::{EntryNo, NameNo, Parent};
use session_model::message::{MessageFacts, Role};
use session_model::sequence::{Item, Sequence};
use session_model::session::Session;
use session_model::time::iso;

use crate::model_window;
use crate::settings::Settings;

use super::facts::{
    CompactionRecord, ContextFacts, LeafFacts, ModelFacts, NextCompaction, RoleFacts, ToolFacts,
};

/// Links of the tree towards its leaves, which entries themselves do not have.
pub(super) struct Links {
    /// How many entries hang on each.
    pub(super) n_children: Vec<u32>,
    /// Entries from the root to each; 0 on a cycle.
    pub(super) depths: Vec<u64>,
}

impl Links {
    pub(super) fn of(session: &Session) -> Links {
        let n = session.entries.len();
        let (mut n_children, mut depths) = (vec![0; n], vec![0; n]);
        for entry in &session.entries {
            if let Parent::Entry(parent) = entry.parent {
                n_children[parent as usize] += 1;
            }
        }
        let mut is_on_walk = vec![false; n];
        let mut walk = Vec::new();
        for start in 0..n {
            let mut at = start as EntryNo;
            // Parents usually come first, so that a walk is one step long.
            while depths[at as usize] == 0 && !is_on_walk[at as usize] {
                is_on_walk[at as usize] = true;
                walk.push(at);
                match session.entry(at).parent {
                    Parent::Entry(parent) => at = parent,
                    Parent::Root | Parent::Missing(_) => break,
                }
            }
            let is_cycle = !walk.is_empty() && walk.last() != Some(&at) && depths[at as usize] == 0;
            let above = if walk.last() == Some(&at) { 0 } else { depths[at as usize] };
            for (step, entry) in walk.drain(..).rev().enumerate() {
                is_on_walk[entry as usize] = is_cycle;
                depths[entry as usize] = if is_cycle { 0 } else { above + 1 + step as u64 };
            }
        }
        Links { n_children, depths }
    }
}

pub(super) fn entry_types(session: &Session) -> BTreeMap<&'static str, u64> {
    let mut types = BTreeMap::new();
    for entry in &session.entries {
        *types.entry(entry.kind.wire()).or_insert(0) += 1;
    }
    types
}

pub(super) fn roles(session: &Session) -> Vec<RoleFacts> {
    let mut roles: BTreeMap<Role, RoleFacts> = BTreeMap::new();
    for entry in &session.entries {
        let Some(message) = entry.message() else { continue };
        let facts = roles.entry(message.role).or_default();
        facts.role = message.role.wire();
        facts.number += 1;
        facts.tokens += entry.estimate;
        facts.bytes += entry.span.len;
    }
    roles.into_values().collect()
}

pub(super) fn tools(session: &Session) -> Vec<ToolFacts> {
    let mut tools: HashMap<NameNo, ToolFacts> = HashMap::new();
    let mut without_name = ToolFacts { tool: "(unknown)".to_owned(), ..ToolFacts::default() };
    let messages = || session.entries.iter().filter_map(|entry| Some((entry, entry.message()?)));
    // Results name their tool themselves; only for ones that do not are their calls looked up.
    let is_nameless = |message: &MessageFacts| message.role == Role::ToolResult && message.tool.is_none();
    let mut of_call: HashMap<NameNo, NameNo> = HashMap::new();
    if messages().any(|(_, message)| is_nameless(message)) {
        of_call.extend(
            messages().flat_map(|(_, message)| message.calls().iter().map(|call| (call.id, call.tool))),
        );
    }
    for (entry, message) in messages() {
        for call in message.calls() {
            tools.entry(call.tool).or_default().calls += 1;
        }
        if message.role == Role::ToolResult {
            let tool = message.tool.or_else(|| of_call.get(&message.answers?).copied());
            let facts = tool.map_or(&mut without_name, |tool| tools.entry(tool).or_default());
            facts.results += 1;
            facts.errors += u64::from(message.is_error);
            facts.pruned += u64::from(message.pruned_at.is_some());
            facts.tokens += entry.estimate;
            facts.bytes += entry.span.len;
        }
    }
    let named =
        tools.into_iter().map(|(name, facts)| ToolFacts { tool: session.name(name).to_owned(), ..facts });
    let mut tools: Vec<_> = named.chain((without_name.results > 0).then_some(without_name)).collect();
    tools.sort_by(|a, b| b.tokens.cmp(&a.tokens).then_with(|| a.tool.cmp(&b.tool)));
    tools
}

pub(super) fn models(session: &Session) -> Vec<ModelFacts> {
    let mut models: BTreeMap<(NameNo, NameNo), ModelFacts> = BTreeMap::new();
    for message in session.entries.iter().filter_map(|entry| entry.message()) {
        let Some((provider, model)) = message.model else { continue };
        let facts = models.entry((provider, model)).or_insert_with(|| ModelFacts {
            model: format!("{}/{}", session.name(provider), session.name(model)),
            ..ModelFacts::default()
        });
        facts.answers += 1;
        facts.failures += u64::from(message.is_failed());
        if let Some(usage) = message.usage() {
            facts.input += usage.input as u64;
            facts.cache_read += usage.cache_read as u64;
            facts.cache_write += usage.cache_write as u64;
            facts.output += usage.output as u64;
        }
    }
    models.into_values().collect()
}

pub(super) fn leaves(session: &Session, links: &Links) -> Vec<LeafFacts> {
    let labels = session.labels();
    let default = session.last_entry();
    // The default leaf can have children, if a parent is written behind its child.
    let is_leaf = |entry: &EntryNo| links.n_children[*entry as usize] == 0 || Some(*entry) == default;
    let leaves = (0..session.entries.len() as EntryNo).filter(is_leaf);
    leaves
        .map(|number| LeafFacts {
            id: session.id(number).to_owned(),
            what: what(session, number),
            time: session.entry(number).time_ms().map(iso),
            entries: links.depths[number as usize],
            is_default: Some(number) == default,
            label: labels.get(&number).cloned(),
        })
        .collect()
}

/// The role of a message, the type of another entry.
pub(super) fn what(session: &Session, number: EntryNo) -> &'static str {
    let entry = session.entry(number);
    entry.message().map_or(entry.kind.wire(), |message| message.role.wire())
}

pub(super) fn compactions(session: &Session, branch: &[EntryNo]) -> Vec<CompactionRecord> {
    let mut places: HashMap<NameNo, usize> = HashMap::new();
    let mut records = Vec::new();
    for (at, &number) in branch.iter().enumerate() {
        let entry = session.entry(number);
        let Some(facts) = entry.compaction() else { continue };
        if places.is_empty() {
            places
                .extend(branch.iter().enumerate().rev().map(|(at, &number)| (session.entry(number).id, at)));
        }
        let kept_from =
            facts.first_kept.and_then(|first| places.get(&first).copied()).filter(|from| *from < at);
        records.push(CompactionRecord {
            id: session.id(number).to_owned(),
            time: entry.time_ms().map(iso),
            tokens_before: facts.tokens_before,
            summary_tokens: entry.estimate,
            first_kept_entry_id: facts.first_kept.map(|first| session.name(first).to_owned()),
            kept_entries: kept_from.map_or(0, |from| (at - from) as u64),
            from_extension: facts.summary.from_extension,
        });
    }
    records
}

pub(super) fn next_compaction(session: &Session, prepared: Result<Preparation<'_>, Skip>) -> NextCompaction {
    let preparation = match prepared {
        Ok(preparation) => preparation,
        Err(skip) => return NextCompaction { skipped: Some(skip.name()), ..NextCompaction::default() },
    };
    let tokens = |items: &[Item]| items.iter().map(|item| item.estimate).sum::<u64>();
    let prefix = preparation.turn_prefix.len() as u64;
    NextCompaction {
        skipped: None,
        first_kept_entry_id: Some(session.id(preparation.first_kept).to_owned()),
        first_kept_line: Some(session.entry(preparation.first_kept).span.line),
        summarized_messages: preparation.history.len() as u64 + prefix,
        summarized_tokens: tokens(&preparation.history) + tokens(&preparation.turn_prefix),
        turn_prefix_messages: prefix,
        kept_messages: preparation.recent.len() as u64,
        kept_tokens: preparation.recent_tokens(),
    }
}

pub(super) fn context(sequence: &Sequence<'_>, settings: &Settings) -> ContextFacts {
    let session = sequence.session;
    let measured = usage::measured(sequence);
    let mut facts = ContextFacts {
        leaf: sequence.branch.last().map(|&leaf| session.id(leaf).to_owned()),
        branch_entries: sequence.branch.len() as u64,
        messages: 0,
        tokens: usage::context_tokens(sequence),
        estimated_tokens: usage::estimate(sequence),
        measured_tokens: measured.map(|measured| measured.context_tokens),
        measured_at: measured.map(|measured| session.id(measured.entry).to_owned()),
        model: model_window::current_model(sequence).map(|(provider, id)| format!("{provider}/{id}")),
        window: model_window::window(settings, sequence),
        bytes: 0,
        images: 0,
        image_bytes: 0,
        pruned_results: 0,
    };
    for item in sequence.items.iter().filter(|item| sequence.reaches_model(item)) {
        facts.messages += 1;
        facts.bytes += sequence.entry(item).span.len;
        if let Some(message) = sequence.message(item) {
            facts.images += u64::from(message.n_images);
            facts.image_bytes += message.image_bytes;
            facts.pruned_results += u64::from(is_pruned(message));
        }
    }
    facts
}

fn is_pruned(message: &MessageFacts) -> bool {
    message.role == Role::ToolResult && message.pruned_at.is_some()
}
