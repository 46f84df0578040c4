//! The facts of one session: what they are, for programs and people alike.

use std::collections::BTreeMap;

use compaction_core::preparation::prepare;
use schemars::JsonSchema;
use serde::Serialize;
use session_model::branch::Branch;
use session_model::entry::EntryKind;
use session_model::error::Problem;
use session_model::time::iso;
use session_model::validate::validate;

use super::gather::{
    Links, compactions, context, entry_types, leaves, models, next_compaction, roles, tools,
};
use super::tree::{self, TreeLine, TreeNode};
use crate::session_file::SessionFile;
use crate::settings::Settings;

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
    /// A leaf of the branch with the newest message, if that is another branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_message_leaf: Option<String>,
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
    /// The model that the branch was last used with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens of its window, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
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
    /// The facts of a session that was read from `file`, with those of one of its branches.
    pub fn of(
        file: &SessionFile,
        branch: &Branch<'_>,
        mut problems: Vec<Problem>,
        settings: &Settings,
    ) -> Inspection {
        let session = branch.session;
        let sequence = branch.effective();
        problems.extend(sequence.problem.clone());
        let header = &session.header;
        let elsewhere = session.newest_message().filter(|newest| !branch.entries.contains(newest));
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
            newest_message_leaf: elsewhere
                .map(|newest| session.id(crate::leaf::leaf_behind(session, newest)).to_owned()),
            compactions: compactions(session, &branch.entries),
            context: context(&sequence, settings),
            next_compaction: next_compaction(session, prepare(&sequence, &settings.compaction())),
            problems: problems.iter().map(ProblemRecord::from).collect(),
            findings: findings.collect(),
            tree: None,
            tree_lines: None,
        }
    }

    /// Adds the tree, for programs or for a person.
    pub fn add_tree(&mut self, branch: &Branch<'_>, for_programs: bool) {
        if for_programs {
            self.tree = Some(tree::nodes(branch.session));
        } else {
            self.tree_lines = Some(tree::lines(branch));
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
