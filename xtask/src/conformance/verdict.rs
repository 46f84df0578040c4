//! What a comparison can find, and the sheet that collects it.

use std::collections::BTreeSet;

use super::canonical::first_difference;
use crate::reference::Program;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Topic {
    /// How many entries the file has.
    Entries,
    /// Agent messages of the context.
    AgentMessages,
    /// Model messages of the context.
    ModelMessages,
    /// Models, thinking level, mode, rules, tools.
    State,
    /// Whether there is something to compact, and the entry that the kept tail begins with.
    CutPoint,
    /// Messages of a preparation, tokens before, what is handed on.
    Preparation,
    /// Files touched by what is summarised.
    FileOps,
    /// Texts and limits of the requests of a compaction.
    Requests,
    /// The compaction that is made of the answers.
    Result,
    /// Which results are pruned, and what stands in their place.
    Pruning,
    /// What is left behind when a branch is left.
    Abandoned,
    /// The request for a branch summary, and its files.
    BranchRequest,
    /// What the agent's own session manager sees of the file.
    Opened,
    /// What it sees of the file with a compaction that sesstool wrote.
    OpenedCompacted,
    /// What it sees of the file that sesstool pruned.
    OpenedPruned,
    /// What the agent sees of a session that we recovered from an overflow.
    OpenedRecovered,
}

impl Topic {
    /// The words in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Topic::Entries => "entries",
            Topic::AgentMessages => "agent messages",
            Topic::ModelMessages => "model messages",
            Topic::State => "state",
            Topic::CutPoint => "cut point",
            Topic::Preparation => "preparation",
            Topic::FileOps => "file operations",
            Topic::Requests => "summary requests",
            Topic::Result => "resulting compaction",
            Topic::Pruning => "pruning",
            Topic::Abandoned => "abandoned entries",
            Topic::BranchRequest => "branch summary request",
            Topic::Opened => "opened as it is",
            Topic::OpenedCompacted => "opened with our compaction",
            Topic::OpenedPruned => "opened after our pruning",
            Topic::OpenedRecovered => "opened after our recovery from an overflow",
        }
    }
}

/// The deviations of the specification that a comparison can meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Deviation {
    D1,
    D2,
    D3,
    D4,
    D5,
    D6,
    D9,
    D11,
    D12,
    D13,
    D15,
    D17,
    D18,
    D19,
    D21,
    D22,
}

/// What came out of one comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The same.
    Equal,
    /// Not the same, and the session has the shape of these deviations.
    Explained(BTreeSet<Deviation>),
    /// P1 differs where R13 agrees: R13 decides.
    Overruled,
    /// Not the same.
    Different(String),
}

/// One comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Who was asked.
    pub(crate) program: Program,
    /// About what.
    pub(crate) topic: Topic,
    /// What came out.
    pub(crate) verdict: Verdict,
}

/// All comparisons of one session.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    /// In the order in which they were made.
    pub(crate) findings: Vec<Finding>,
}

impl Sheet {
    /// Compares two texts; `excuses` are the deviations whose shape the session has and which concern this.
    pub(crate) fn compare(
        &mut self,
        (program, topic): (Program, Topic),
        ours: &str,
        theirs: &str,
        excuses: &[Deviation],
    ) {
        let verdict = if ours == theirs {
            Verdict::Equal
        } else if !excuses.is_empty() {
            Verdict::Explained(excuses.iter().copied().collect())
        } else {
            Verdict::Different(first_difference(ours, theirs))
        };
        self.add(program, topic, verdict);
    }

    /// Takes a finding.
    pub(crate) fn add(&mut self, program: Program, topic: Topic, verdict: Verdict) {
        self.findings.push(Finding { program, topic, verdict });
    }

    /// P1 does not count where R13 was asked the same and agrees.
    pub(crate) fn overrule(&mut self) {
        let agrees: BTreeSet<Topic> = self
            .findings
            .iter()
            .filter(|finding| finding.program == Program::R13 && finding.verdict == Verdict::Equal)
            .map(|finding| finding.topic)
            .collect();
        for finding in &mut self.findings {
            if finding.program == Program::P1
                && matches!(finding.verdict, Verdict::Different(_))
                && agrees.contains(&finding.topic)
            {
                finding.verdict = Verdict::Overruled;
            }
        }
    }
}
