//! What each kind of damage does to the context, and what can be done about it, in words.

use session_model::error::ProblemKind;
use session_model::validate::FindingKind;

/// What the damage does, and what helps.
pub(super) fn of_problem(kind: ProblemKind) -> (&'static str, &'static str) {
    match kind {
        ProblemKind::GluedRecords => (
            "pi reads none of them, oh-my-pi the first alone",
            "--repair gives each a line of its own, and so does the next writing command",
        ),
        ProblemKind::TornRecord => (
            "the torn record is lost, and the agents do not read the one behind it either",
            "--repair puts the torn part aside and gives the other a line of its own",
        ),
        ProblemKind::TornTail => {
            ("the last record is lost; readers skip it", "--repair puts the torn part aside")
        }
        ProblemKind::NulRun => ("it is skipped; what stood there is lost", "--repair puts it aside"),
        ProblemKind::Junk => ("it is skipped", "--repair puts it aside"),
        ProblemKind::InvalidUtf8 => {
            ("readers show U+FFFD in its place", "--repair writes U+FFFD and puts the old line aside")
        }
        ProblemKind::MissingId => {
            ("no entry can hang on it, and the agents may stumble", "--repair gives it an id")
        }
        ProblemKind::DuplicateId => (
            "the later entry wins, this one is not reached",
            "--repair renames this one, and what meant it follows",
        ),
        ProblemKind::MissingParent => (
            "the branch begins here: what was before is not in the context",
            "--repair joins it to the nearest entry before it",
        ),
        ProblemKind::Cycle => {
            ("the branch ends in a circle: what was before is not in the context", "--repair cuts the circle")
        }
        ProblemKind::ExtraHeader => ("it is skipped", "--repair puts it aside"),
        ProblemKind::TitleSlotWidth => (
            "the agent overwrites what follows it when it changes the title",
            "--repair makes it 256 bytes wide",
        ),
        ProblemKind::KeptEntryMissing => (
            "nothing from before the compaction is in the context",
            "--repair makes the compaction say so; what it kept is not known",
        ),
        ProblemKind::UnknownVersion => {
            ("it is read as version 3, which may be wrong", "use a newer sesstool, if there is one")
        }
    }
}

/// What helps against a finding.
pub(super) fn of_finding(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::ResultWithoutCall | FindingKind::SecondResult => {
            "--repair makes it an entry that the model does not see"
        }
        FindingKind::CallWithoutResult | FindingKind::FailedWithCalls => {
            "--repair puts a result behind it that says there is none"
        }
        FindingKind::SeparatedResult => "--repair puts it behind its call",
        FindingKind::ResultOrder | FindingKind::UserBetween => "providers take it",
    }
}
