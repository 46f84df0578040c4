//! `generate`: a whole session, step by step, with a tree of entries.

use crate::entries::{self, Fields};
use crate::json::timestamp;
use crate::messages::{self, Call};
use crate::random::Random;
use crate::shape::{Dialect, Shape};

/// When generated sessions begin, in milliseconds since 1970.
const START: u64 = 1_767_200_000_000;

/// A session file in version 3, or sometimes 1 or 2, of the given shape: JSON Lines, the header first.
pub fn generate(seed: u64, shape: &Shape) -> String {
    let mut random = Random::new(seed);
    let version = if random.chance(shape.old_version) { random.between(1, 2) } else { 3 };
    let mut writer = Writer::new(random, shape, version);
    let steps = writer.random.between(shape.steps.0, shape.steps.1);
    for _ in 0..steps {
        writer.step();
    }
    writer.out
}

/// What an entry is, as far as later entries depend on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Message,
    ToolResult,
    Other,
}

struct Written {
    id: String,
    parent: Option<usize>,
    kind: Kind,
}

/// One kind of step; it writes an entry or more.
type Step<'a> = fn(&mut Writer<'a>);

struct Writer<'a> {
    random: Random,
    shape: &'a Shape,
    version: usize,
    out: String,
    entries: Vec<Written>,
    leaf: Option<usize>,
    ms: u64,
    /// How much has been written since the newest compaction, in bytes: near enough for usage.
    context: usize,
}

impl<'a> Writer<'a> {
    fn new(mut random: Random, shape: &'a Shape, version: usize) -> Self {
        let mut out = String::new();
        if random.chance(shape.title_slot) {
            push_title_slot(&mut out);
        }
        let id = format!("{:016x}", random.next_u64());
        let version_member = if version == 1 { String::new() } else { format!(r#""version":{version},"#) };
        let title = if shape.dialect == Dialect::Omp && random.chance(0.3) {
            r#","title":"A generated one""#
        } else {
            ""
        };
        out.push_str(&format!(
            r#"{{"type":"session",{version_member}"id":"{id}","timestamp":"{}","cwd":"/home/user/project"{title}}}"#,
            timestamp(START)
        ));
        out.push('\n');
        Self { random, shape, version, out, entries: Vec::new(), leaf: None, ms: START, context: 0 }
    }

    fn step(&mut self) {
        let shape = self.shape;
        if self.version > 1 && !self.entries.is_empty() && self.random.chance(shape.branch) {
            self.leave_branch();
        }
        let steps: [(f64, Step<'a>); 9] = [
            (shape.compaction, Self::compaction),
            (shape.metadata, Self::metadata),
            (shape.custom_message, Self::custom_message),
            (shape.execution, Self::execution),
            (shape.developer, Self::developer),
            (shape.context_edit, Self::context_edit),
            (shape.reset_boundary, Self::reset_boundary),
            (shape.system, Self::system),
            (1.0, Self::turn),
        ];
        for (probability, step) in steps {
            if self.random.chance(probability) {
                return step(self);
            }
        }
    }

    fn leave_branch(&mut self) {
        let from = self.leaf.map(|leaf| self.entries[leaf].id.clone());
        self.leaf = match self.random.below(self.entries.len() + 1) {
            0 => None,
            n => Some(n - 1),
        };
        if self.random.chance(self.shape.branch_summary) {
            // oh-my-pi names the entry that the summary hangs at, pi the leaf that was left.
            let at = self.leaf.map(|leaf| self.entries[leaf].id.clone());
            let named = if self.shape.dialect == Dialect::Omp { at } else { from };
            let named = named.unwrap_or_else(|| "root".to_owned());
            let fields = entries::branch_summary(&mut self.random, self.shape, &named);
            self.push(&fields, Kind::Other);
        }
    }

    /// A user message and what the agent does until it answers without a call.
    fn turn(&mut self) {
        let ms = self.tick();
        let user = messages::user(&mut self.random, self.shape, ms);
        self.message(&user, Kind::Message);
        if self.random.chance(self.shape.file_mention) {
            let mention = messages::file_mention(&mut self.random, self.shape, self.ms);
            self.message(&mention, Kind::Message);
        }
        for _ in 0..self.random.between(0, 4) {
            let ms = self.tick();
            let n = self.entries.len();
            let assistant = messages::assistant(&mut self.random, self.shape, ms, self.context, n);
            self.message(&assistant.json, Kind::Message);
            if assistant.calls.is_empty() {
                break;
            }
            self.results(assistant.calls, n);
            if self.random.chance(self.shape.metadata / 2.0) {
                self.metadata();
            }
        }
    }

    fn results(&mut self, mut calls: Vec<Call>, n: usize) {
        if self.random.chance(self.shape.unordered_results) {
            self.random.shuffle(&mut calls);
        }
        if self.random.chance(self.shape.orphan_result) {
            calls.push(Call { id: format!("call_{n}_unknown"), tool: "bash" });
        }
        for call in calls {
            if self.random.chance(self.shape.missing_result) {
                continue;
            }
            if self.random.chance(self.shape.interjection) {
                let user = messages::user(&mut self.random, self.shape, self.ms);
                self.message(&user, Kind::Message);
            }
            let ms = self.tick();
            let result = messages::tool_result(&mut self.random, self.shape, ms, &call);
            self.message(&result, Kind::ToolResult);
        }
    }

    fn compaction(&mut self) {
        let branch = self.branch();
        if branch.is_empty() {
            return self.turn();
        }
        let first_kept = if self.version == 1 {
            // Counted from the header; now and then out of range.
            format!(r#","firstKeptEntryIndex":{}"#, self.random.between(0, branch.len() + 2))
        } else {
            format!(r#","firstKeptEntryId":"{}""#, self.first_kept(&branch))
        };
        let fields = entries::compaction(&mut self.random, self.shape, &first_kept, self.ms);
        self.context = 0;
        self.push(&fields, Kind::Other);
    }

    fn first_kept(&mut self, branch: &[usize]) -> String {
        if self.random.chance(self.shape.odd_kept) {
            return match self.random.below(3) {
                0 => "deadbeef".to_owned(),
                1 => self.next_id(),
                _ => self.entries[branch[self.random.below(branch.len())]].id.clone(),
            };
        }
        // Most keep a short tail; it never begins at a tool result.
        let tail = if self.random.chance(0.7) { branch.len().min(12) } else { branch.len() };
        let mut at = branch.len() - 1 - self.random.below(tail);
        while at > 0 && self.entries[branch[at]].kind == Kind::ToolResult {
            at -= 1;
        }
        self.entries[branch[at]].id.clone()
    }

    fn metadata(&mut self) {
        let target = self.some_entry().unwrap_or_else(|| "00000000".to_owned());
        let fields = entries::metadata(&mut self.random, self.shape, &target);
        self.push(&fields, Kind::Other);
    }

    fn custom_message(&mut self) {
        if self.version < 3 {
            let content = messages::content(&mut self.random, self.shape);
            let ms = self.ms;
            let hook = format!(
                r#"{{"role":"hookMessage","customType":"note","content":{content},"display":true,"timestamp":{ms}}}"#
            );
            return self.message(&hook, Kind::Message);
        }
        let fields = entries::custom_message(&mut self.random, self.shape);
        self.push(&fields, Kind::Other);
    }

    fn execution(&mut self) {
        let execution = messages::execution(&mut self.random, self.shape, self.ms);
        self.message(&execution, Kind::Message);
    }

    fn developer(&mut self) {
        let developer = messages::developer(&mut self.random, self.shape, self.ms);
        self.message(&developer, Kind::Message);
    }

    fn system(&mut self) {
        let system = messages::system(&mut self.random, self.shape, self.ms);
        self.message(&system, Kind::Message);
    }

    fn context_edit(&mut self) {
        let on_branch: Vec<usize> =
            self.branch().into_iter().filter(|&at| self.entries[at].kind != Kind::Other).collect();
        let Some(last) = on_branch.len().checked_sub(1) else { return self.turn() };
        // Recent entries are edited more often than old ones.
        let at = last - self.random.below(on_branch.len().min(6));
        let target = self.entries[on_branch[at]].id.clone();
        let fields = entries::context_edit(&mut self.random, self.shape, &target);
        self.push(&fields, Kind::Other);
    }

    fn reset_boundary(&mut self) {
        self.context = 0;
        self.push(&Fields::new("reset_boundary", String::new()), Kind::Other);
    }

    fn some_entry(&mut self) -> Option<String> {
        let at = self.random.below(self.entries.len());
        self.entries.get(at).map(|entry| entry.id.clone())
    }

    /// The entries from the root to the leaf.
    fn branch(&self) -> Vec<usize> {
        let mut branch: Vec<usize> =
            std::iter::successors(self.leaf, |&at| self.entries[at].parent).collect();
        branch.reverse();
        branch
    }

    fn message(&mut self, message: &str, kind: Kind) {
        self.push(&Fields::new("message", format!(r#","message":{message}"#)), kind);
    }

    /// Appends an entry behind the leaf and makes it the leaf.
    fn push(&mut self, fields: &Fields, kind: Kind) {
        let id = self.next_id();
        let time = timestamp(self.tick());
        let Fields { kind: name, members } = fields;
        if self.version == 1 {
            self.out.push_str(&format!(r#"{{"type":"{name}","timestamp":"{time}"{members}}}"#));
        } else {
            let parent =
                self.leaf.map_or("null".to_owned(), |leaf| format!(r#""{}""#, self.entries[leaf].id));
            self.out.push_str(&format!(
                r#"{{"type":"{name}","id":"{id}","parentId":{parent},"timestamp":"{time}"{members}}}"#
            ));
        }
        self.out.push('\n');
        self.context += members.len();
        self.entries.push(Written { id, parent: self.leaf, kind });
        self.leaf = Some(self.entries.len() - 1);
    }

    /// The id of the entry that is written next: eight hex digits that look random and never repeat.
    fn next_id(&self) -> String {
        // An odd factor maps every counter to another number.
        format!("{:08x}", (self.entries.len() as u32 + 1).wrapping_mul(0x9e37_79b1))
    }

    fn tick(&mut self) -> u64 {
        self.ms += self.random.between(1, 20_000) as u64;
        self.ms
    }
}

/// The first line of newer oh-my-pi files: 256 bytes with its line end.
fn push_title_slot(out: &mut String) {
    let head = format!(
        r#"{{"type":"title","v":1,"title":"A generated one","source":"auto","updatedAt":"{}","pad":""#,
        timestamp(START)
    );
    let pad = 256 - head.len() - "\"}\n".len();
    out.push_str(&format!("{head}{}\"}}\n", " ".repeat(pad)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_session() {
        for shape in
            [Shape::omp(), Shape::pi(), Shape::everything(Dialect::Omp), Shape::everything(Dialect::Pi)]
        {
            let sessions: Vec<String> = (0..40).map(|seed| generate(seed, &shape)).collect();
            assert_eq!(sessions, (0..40).map(|seed| generate(seed, &shape)).collect::<Vec<_>>());
            assert_ne!(sessions[0], sessions[1]);
        }
    }

    /// Whether any of the sessions with the first two hundred seeds holds `words`.
    fn occurs(shape: &Shape, words: &str) -> bool {
        (0..200).any(|seed| generate(seed, shape).contains(words))
    }

    #[test]
    fn every_feature_occurs_where_it_is_switched_on() {
        let common = [
            "\"type\":\"compaction\"",
            "branch_summary",
            "custom_message",
            "bashExecution",
            "toolResult",
            "prunedAt",
            "thinking",
            "\"type\":\"image\"",
            "hookMessage",
            "firstKeptEntryIndex",
            "\\ud83d",
            "_unknown",
            "\"cancelled\":true",
            "excludeFromContext",
            "\"type\":\"label\"",
            "model_change",
            "\"totalTokens\":0",
        ];
        for words in common {
            assert!(occurs(&Shape::omp(), words), "oh-my-pi: {words}");
            assert!(occurs(&Shape::pi(), words), "pi: {words}");
        }
        for words in
            ["pythonExecution", "fileMention", "developer", "\"meta\"", "shortSummary", "mode_change"]
        {
            assert!(occurs(&Shape::omp(), words), "oh-my-pi: {words}");
        }
        for words in ["context_edit", "\"role\":\"system\"", "fullOutputPath", "session_info", "fromHook"] {
            assert!(occurs(&Shape::pi(), words), "pi: {words}");
            assert!(!occurs(&Shape::omp(), words), "oh-my-pi: {words}");
        }
        for words in ["reset_boundary", "\"type\":\"title\""] {
            assert!(occurs(&Shape::everything(Dialect::Omp), words), "{words}");
            assert!(!occurs(&Shape::omp(), words), "{words}");
        }
    }

    #[test]
    fn a_feature_that_is_switched_off_never_occurs() {
        let shape = Shape { compaction: 0.0, calls: 0.0, branch: 0.0, ..Shape::omp() };
        for words in ["\"type\":\"compaction\"", "toolCall", "toolResult", "branch_summary"] {
            assert!(!occurs(&shape, words), "{words}");
        }
    }

    #[test]
    fn a_title_slot_has_its_width() {
        let shape = Shape { title_slot: 1.0, ..Shape::omp() };
        assert_eq!(generate(1, &shape).find('\n'), Some(255));
    }
}
