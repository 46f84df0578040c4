//! The facts of one session, gathered from its index.

use std::collections::{BTreeMap, HashMap};

use compaction_core::preparation::{Preparation, Skip, prepare};
use compaction_core::settings::CompactionSettings;
use compaction_core::usage;
use schemars::JsonSchema;
use serde::Serialize;
use session_model::entry::{EntryKind, EntryNo, NameNo, Parent};
use session_model::error::Problem;
use session_model::message::{MessageFacts, Role};
use session_model::sequence::{Item, Sequence};
use session_model::session::Session;
use session_model::time::iso;
use session_model::validate::validate;

use super::tree::{self, TreeLine, TreeNode};
use crate::session_file::SessionFile;

/// What is in a session.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// Id in the header.
    pub id: String,
    /// The session's name or title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Working directory of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// When it began, as the header says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began: Option<String>,
    /// Time of the newest entry, ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_entry: Option<String>,
    /// The session that it was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
    /// Version of the format: 1 to 3.
    pub version: u32,
    /// `pi` or `omp`.
    pub dialect: &'static str,
    /// Bytes of the file.
    pub bytes: u64,
    /// Lines of the file.
    pub lines: u64,
    /// When the file was last changed, ISO 8601; absent for standard input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
    /// The same in milliseconds, for sorting.
    #[serde(skip)]
    pub modified_ms: Option<i64>,
    /// Entries of the file, on all branches.
    pub entries: u64,
    /// How many there are of each type.
    pub entry_types: BTreeMap<&'static str, u64>,
    /// Messages of the file by role, on all branches.
    pub messages: Vec<RoleFacts>,
    /// Tools by what their results cost, on all branches.
    pub tools: Vec<ToolFacts>,
    /// Models that answered, on all branches.
    pub models: Vec<ModelFacts>,
    /// The ends of branches, in the order of the file.
    pub leaves: Vec<LeafFacts>,
    /// Entries that more than one other hangs on.
    pub branch_points: u64,
    /// The leaf of the branch with the newest message, if that is not the last entry of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_message_elsewhere: Option<String>,
    /// Compactions on the branch, oldest first.
    pub compactions: Vec<CompactionRecord>,
    /// What the model sees of the branch.
    pub context: ContextFacts,
    /// What the next compaction would do, with the settings as they are.
    pub next_compaction: NextCompaction,
    /// What could not be taken as it stands.
    pub problems: Vec<ProblemRecord>,
    /// What a provider would refuse or find odd in the context.
    pub findings: Vec<FindingRecord>,
    /// The tree, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<Vec<TreeNode>>,
    /// The same for a person.
    #[serde(skip)]
    pub(super) tree_lines: Option<Vec<TreeLine>>,
}

/// Messages of one role.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleFacts {
    /// The role.
    pub role: &'static str,
    /// How many.
    pub number: u64,
    /// Their tokens by estimate.
    pub tokens: u64,
    /// Bytes of their lines.
    pub bytes: u64,
}

/// One tool.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolFacts {
    /// Its name.
    pub tool: String,
    /// Times it was called.
    pub calls: u64,
    /// Results that it gave.
    pub results: u64,
    /// Results that are errors.
    pub errors: u64,
    /// Results that are pruned.
    pub pruned: u64,
    /// Tokens of the results by estimate.
    pub tokens: u64,
    /// Bytes of the results' lines.
    pub bytes: u64,
}

/// One model. Tokens are the provider's counts, summed over all answers.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelFacts {
    /// `provider/model`.
    pub model: String,
    /// Answers.
    pub answers: u64,
    /// Answers that failed or were aborted.
    pub failures: u64,
    /// Prompt tokens that were not cached.
    pub input: u64,
    /// Prompt tokens from the cache.
    pub cache_read: u64,
    /// Prompt tokens put into the cache.
    pub cache_write: u64,
    /// Answer tokens.
    pub output: u64,
}

/// The end of a branch.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeafFacts {
    /// Its id.
    pub id: String,
    /// Its type, or the role of its message.
    pub what: &'static str,
    /// Its time, ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Entries from the root to it.
    pub entries: u64,
    /// Whether it is the one that commands take unless told otherwise.
    pub is_default: bool,
    /// Its label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// A compaction on the branch.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactionRecord {
    /// Its id.
    pub id: String,
    /// Its time, ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Tokens of the context before, as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_before: Option<f64>,
    /// Tokens of the summary by estimate.
    pub summary_tokens: u64,
    /// The entry from which on the old context is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_kept_entry_id: Option<String>,
    /// Entries that it keeps.
    pub kept_entries: u64,
    /// Whether an extension made it.
    pub from_extension: bool,
}

/// What the model sees.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextFacts {
    /// The leaf of the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf: Option<String>,
    /// Entries of the branch.
    pub branch_entries: u64,
    /// Messages that the model gets, the summary included.
    pub messages: u64,
    /// Tokens now: measured where that still holds, else estimated.
    pub tokens: u64,
    /// All tokens by estimate.
    pub estimated_tokens: u64,
    /// Tokens of the newest answer and its prompt as the provider counted them, if nothing has changed the context since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_tokens: Option<f64>,
    /// The answer that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_at: Option<String>,
    /// Bytes of the lines that it is made of.
    pub bytes: u64,
    /// Images in it.
    pub images: u64,
    /// Bytes of their data.
    pub image_bytes: u64,
    /// Tool results in it that are pruned.
    pub pruned_results: u64,
}

/// What the next compaction would summarise and keep.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextCompaction {
    /// Why there is nothing to compact: `already_compacted` or `nothing_to_compact`. Then all else is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<&'static str>,
    /// The entry that the kept tail begins with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_kept_entry_id: Option<String>,
    /// Its line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_kept_line: Option<u64>,
    /// Messages that would be summarised.
    pub summarized_messages: u64,
    /// Their tokens by estimate.
    pub summarized_tokens: u64,
    /// Of them, messages of a turn that the cut would split.
    pub turn_prefix_messages: u64,
    /// Messages that would stay.
    pub kept_messages: u64,
    /// Their tokens by estimate.
    pub kept_tokens: u64,
}

/// A problem in the file.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProblemRecord {
    /// For programs, e.g. `torn_record`.
    pub kind: &'static str,
    /// Line, from 1.
    pub line: u64,
    /// Offset of the first byte concerned.
    pub offset: u64,
    /// The entry concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Entries that no branch reaches because of it.
    pub unreachable: u64,
    /// In words.
    pub message: String,
}

/// A fault or a note about the context.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FindingRecord {
    /// For programs, e.g. `call_without_result`.
    pub kind: &'static str,
    /// Whether a provider refuses the context for it.
    pub is_fault: bool,
    /// The entry concerned.
    pub entry: String,
    /// Its line.
    pub line: u64,
    /// The tool call concerned.
    pub call: String,
    /// In words.
    pub message: String,
}

impl From<&Problem> for ProblemRecord {
    fn from(problem: &Problem) -> ProblemRecord {
        ProblemRecord {
            kind: problem.kind.name(),
            line: problem.line,
            offset: problem.offset,
            entry: problem.entry.clone(),
            unreachable: problem.unreachable,
            message: problem.to_string(),
        }
    }
}

impl Inspection {
    /// The facts of a session that was read from `file`.
    pub fn of(
        file: &SessionFile,
        session: &Session,
        mut problems: Vec<Problem>,
        settings: &CompactionSettings,
    ) -> Inspection {
        let branch = session.branch(None);
        let sequence = branch.effective();
        problems.extend(sequence.problem.clone());
        let header = &session.header;
        let on_branch = session.newest_message().filter(|newest| !branch.entries.contains(newest));
        let findings = validate(&sequence).into_iter().map(|finding| FindingRecord {
            kind: finding.kind.name(),
            is_fault: finding.kind.is_fault(),
            entry: session.id(finding.entry).to_owned(),
            line: session.entry(finding.entry).span.line,
            call: session.name(finding.call).to_owned(),
            message: finding.kind.to_string(),
        });
        let links = Links::of(session);
        Inspection {
            id: header.id.clone(),
            title: session.title().map(std::borrow::Cow::into_owned),
            cwd: header.cwd.clone(),
            began: header.timestamp.clone(),
            newest_entry: session.newest_time_ms().map(iso),
            parent_session: header.parent_session.clone(),
            version: header.version,
            dialect: session.dialect.name(),
            bytes: session.n_bytes,
            lines: session.n_lines,
            modified: file.modified_ms.map(iso),
            modified_ms: file.modified_ms,
            entries: session.entries.len() as u64,
            entry_types: entry_types(session),
            messages: roles(session),
            tools: tools(session),
            models: models(session),
            leaves: leaves(session, &links),
            branch_points: links.n_children.iter().filter(|number| **number > 1).count() as u64,
            newest_message_elsewhere: on_branch.map(|newest| session.id(newest).to_owned()),
            compactions: compactions(session, &branch.entries),
            context: context(&sequence),
            next_compaction: NextCompaction::of(session, prepare(&sequence, settings)),
            problems: problems.iter().map(ProblemRecord::from).collect(),
            findings: findings.collect(),
            tree: None,
            tree_lines: None,
        }
    }

    /// Adds the tree, for programs or for a person.
    pub fn add_tree(&mut self, session: &Session, for_programs: bool) {
        if for_programs {
            self.tree = Some(tree::nodes(session));
        } else {
            self.tree_lines = Some(tree::lines(session));
        }
    }

    /// Without the lists that a row of a table does not show: of a thousand sessions they would fill the memory.
    pub(super) fn for_table(mut self) -> Inspection {
        (self.tools, self.models, self.leaves, self.findings) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        self
    }

    /// Compactions of the file, on all branches.
    pub fn n_compactions(&self) -> u64 {
        self.entry_types.get(EntryKind::Compaction.wire()).copied().unwrap_or(0)
    }
}

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

fn entry_types(session: &Session) -> BTreeMap<&'static str, u64> {
    let mut types = BTreeMap::new();
    for entry in &session.entries {
        *types.entry(entry.kind.wire()).or_insert(0) += 1;
    }
    types
}

fn roles(session: &Session) -> Vec<RoleFacts> {
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

fn tools(session: &Session) -> Vec<ToolFacts> {
    let mut tools: HashMap<NameNo, ToolFacts> = HashMap::new();
    let mut without_name = ToolFacts { tool: "(unknown)".to_owned(), ..ToolFacts::default() };
    let messages = || session.entries.iter().filter_map(|entry| Some((entry, entry.message()?)));
    // Results name their tool themselves; only for ones that do not are their calls looked up.
    let is_nameless = |message: &MessageFacts| message.role == Role::ToolResult && message.tool.is_none();
    let mut of_call: HashMap<NameNo, NameNo> = HashMap::new();
    if messages().any(|(_, message)| is_nameless(message)) {
        of_call.extend(
            messages().flat_map(|(_, message)| message.calls.iter().map(|call| (call.id, call.tool))),
        );
    }
    for (entry, message) in messages() {
        for call in &message.calls {
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

fn models(session: &Session) -> Vec<ModelFacts> {
    let mut models: BTreeMap<(NameNo, NameNo), ModelFacts> = BTreeMap::new();
    for message in session.entries.iter().filter_map(|entry| entry.message()) {
        let Some((provider, model)) = message.model else { continue };
        let facts = models.entry((provider, model)).or_insert_with(|| ModelFacts {
            model: format!("{}/{}", session.name(provider), session.name(model)),
            ..ModelFacts::default()
        });
        facts.answers += 1;
        facts.failures += u64::from(message.is_failed());
        if let Some(usage) = message.usage {
            facts.input += usage.input as u64;
            facts.cache_read += usage.cache_read as u64;
            facts.cache_write += usage.cache_write as u64;
            facts.output += usage.output as u64;
        }
    }
    models.into_values().collect()
}

fn leaves(session: &Session, links: &Links) -> Vec<LeafFacts> {
    let labels = session.labels();
    let default = session.last_entry();
    // The default leaf can have children, if a parent is written behind its child.
    let is_leaf = |entry: &EntryNo| links.n_children[*entry as usize] == 0 || Some(*entry) == default;
    let leaves = (0..session.entries.len() as EntryNo).filter(is_leaf);
    leaves
        .map(|number| LeafFacts {
            id: session.id(number).to_owned(),
            what: what(session, number),
            time: session.entry(number).time_ms.map(iso),
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

fn compactions(session: &Session, branch: &[EntryNo]) -> Vec<CompactionRecord> {
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
            time: entry.time_ms.map(iso),
            tokens_before: facts.tokens_before,
            summary_tokens: entry.estimate,
            first_kept_entry_id: facts.first_kept.map(|first| session.name(first).to_owned()),
            kept_entries: kept_from.map_or(0, |from| (at - from) as u64),
            from_extension: facts.summary.from_extension,
        });
    }
    records
}

impl NextCompaction {
    fn of(session: &Session, prepared: Result<Preparation<'_>, Skip>) -> NextCompaction {
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
}

fn context(sequence: &Sequence<'_>) -> ContextFacts {
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
