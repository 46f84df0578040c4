//! The requests that a compaction or a branch summary will make: what `prompt` prints, what `--dry-run` announces, and what is
//! then carried out (spec 5.2, 5.4).

use compaction_core::file_ops::without_file_blocks;
use compaction_core::settings::CompactionSettings;
use session_model::prompts::Prompts;
use session_model::text::{take_units, units};
use session_model::value::Value;

use crate::fold::{Capacity, cut_in_the_middle, estimate, windows};
use crate::material::Material;
use crate::provider::Request;
use crate::request::{Frame, Kind, RequestOptions};
use crate::transcript::{join, parts};

/// What stands for the history of a split turn that has none, in the words of the live agents (spec 3.5).
pub const NO_HISTORY: &str = "No prior history.";

/// What is known of the models that are asked: of several the least, so that each can take every request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelLimits {
    /// Tokens of the window; unknown for an endpoint or a command.
    pub window: Option<u64>,
    /// Most tokens of an answer.
    pub max_output: Option<u64>,
}

/// Everything that the requests of one compaction or branch summary are made of.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The prompts.
    pub prompts: &'a Prompts,
    /// What a user or a hook adds.
    pub options: &'a RequestOptions,
    /// What the models take.
    pub limits: ModelLimits,
    /// Most tokens of a history summary.
    pub history_limit: u64,
    /// Most tokens of a turn prefix summary.
    pub turn_prefix_limit: u64,
    /// Most tokens of a short summary.
    pub short_limit: u64,
    /// Most tokens of a branch summary.
    pub branch_limit: u64,
}

/// One chain of requests, each going on from the summary of the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// What it gives.
    pub kind: Kind,
    /// The transcript parts of each message.
    pub messages: Vec<Vec<String>>,
    /// The summary that the first request has.
    pub previous: Option<String>,
    /// What fits a request; `None` if the window is not known or everything fits one.
    pub capacity: Option<Capacity>,
}

/// The requests of a compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// For the history; none if nothing is in it.
    pub history: Option<Chain>,
    /// For the first part of a split turn.
    pub turn_prefix: Option<Chain>,
    /// What stands for the history if there is no request for it.
    pub without_history: Option<String>,
    /// The transcript of the kept messages, for the short summary.
    pub recent: String,
}

impl<'a> Job<'a> {
    /// The job of a compaction with these settings.
    pub fn new(
        prompts: &'a Prompts,
        options: &'a RequestOptions,
        limits: ModelLimits,
        settings: &CompactionSettings,
    ) -> Job<'a> {
        Job {
            prompts,
            options,
            limits,
            history_limit: settings.history_limit(),
            turn_prefix_limit: settings.turn_prefix_limit(),
            short_limit: settings.short_limit(),
            branch_limit: 0,
        }
    }

    /// Most tokens that a summary of `kind` may have.
    pub fn limit(&self, kind: Kind) -> u64 {
        match kind {
            Kind::History => self.history_limit,
            Kind::TurnPrefix => self.turn_prefix_limit,
            Kind::Short => self.short_limit,
            Kind::Branch => self.branch_limit,
        }
    }

    /// The texts around the transcript of a request of `kind`.
    pub fn frame(&self, kind: Kind) -> Frame<'a> {
        let limit = self.limit(kind);
        let max_output_tokens = self.limits.max_output.map_or(limit, |most| limit.min(most));
        Frame { prompts: self.prompts, options: self.options, max_output_tokens }
    }

    /// Plans the requests of a compaction.
    pub fn plan(&self, material: &Material<'_>, is_split_turn: bool, previous: Option<&str>) -> Plan {
        let has_history = !material.history.is_empty() || !is_split_turn;
        let kept_summary = || match previous.map(without_file_blocks).filter(|summary| !summary.is_empty()) {
            Some(summary) => summary,
            None => NO_HISTORY.to_owned(),
        };
        Plan {
            history: has_history.then(|| self.chain(Kind::History, &material.history, previous)),
            turn_prefix: is_split_turn.then(|| self.chain(Kind::TurnPrefix, &material.turn_prefix, None)),
            without_history: (!has_history).then(kept_summary),
            recent: join(material.recent.iter().flat_map(parts)),
        }
    }

    /// Plans the requests of a branch summary: one, its newest message cut to fit if it must be.
    pub fn plan_branch(&self, messages: &[Value<'_>], budget: u64) -> Chain {
        let mut chain = self.chain(Kind::Branch, messages, None);
        if let [only] = &mut chain.messages[..] {
            let text = join(only.iter().cloned());
            let length = units(&text);
            *only = vec![cut_in_the_middle(text, length, budget * 4)];
        }
        chain
    }

    fn chain(&self, kind: Kind, messages: &[Value<'_>], previous: Option<&str>) -> Chain {
        let messages: Vec<Vec<String>> = messages.iter().map(parts).collect();
        let fits = |capacity: &Capacity| {
            let whole: u64 = messages.iter().flatten().map(|part| units(part) + 2).sum();
            whole <= capacity.first * 4
        };
        let capacity = self
            .limits
            .window
            .map(|window| Capacity::of(&self.frame(kind), kind, window, previous))
            .filter(|capacity| !fits(capacity));
        Chain { kind, messages, previous: previous.map(str::to_owned), capacity }
    }

    /// All requests of a plan, in the order in which they are made; `placeholder` stands for summaries that are not there yet.
    pub fn requests(&self, plan: &Plan, placeholder: &dyn Fn(Kind) -> String) -> Vec<(Kind, Request)> {
        let mut requests = Vec::new();
        for chain in plan.history.iter().chain(&plan.turn_prefix) {
            requests.extend(self.chain_requests(chain, placeholder));
        }
        let history = plan.without_history.clone().unwrap_or_else(|| placeholder(Kind::History));
        let summary =
            merge(&history, plan.turn_prefix.as_ref().map(|_| placeholder(Kind::TurnPrefix)).as_deref());
        requests.push((Kind::Short, self.short_request(&plan.recent, &summary)));
        requests
    }

    /// The requests of one chain.
    pub fn chain_requests(
        &self,
        chain: &Chain,
        placeholder: &dyn Fn(Kind) -> String,
    ) -> Vec<(Kind, Request)> {
        let frame = self.frame(chain.kind);
        let later = placeholder(chain.kind);
        let previous = |n: usize| if n == 0 { chain.previous.as_deref() } else { Some(later.as_str()) };
        windows(&chain.messages, chain.capacity)
            .iter()
            .enumerate()
            .map(|(n, window)| (chain.kind, frame.request(chain.kind, &window.transcript, previous(n))))
            .collect()
    }

    /// The request for the short summary; kept messages that do not fit lose their middle.
    pub fn short_request(&self, recent: &str, summary: &str) -> Request {
        let frame = self.frame(Kind::Short);
        let Some(window) = self.limits.window else {
            return frame.request(Kind::Short, recent, Some(summary));
        };
        let capacity = Capacity::of(&frame, Kind::Short, window, Some(summary));
        let recent = cut_in_the_middle(recent.to_owned(), units(recent), capacity.first * 4);
        frame.request(Kind::Short, &recent, Some(summary))
    }
}

/// The two summaries of a split turn as one (spec 3.5).
pub fn merge(history: &str, turn_prefix: Option<&str>) -> String {
    match turn_prefix {
        None => history.to_owned(),
        Some(prefix) => format!("{history}\n\n---\n\n**Turn Context (split turn):**\n\n{prefix}"),
    }
}

/// `summary` cut at the end of a line so that it has at most `limit` tokens, and whether it was cut.
pub fn clip(summary: &str, limit: u64) -> (String, bool) {
    const MARK: &str = "\n\n[The summary was cut here: it was longer than its limit.]";
    if estimate(summary) <= limit {
        return (summary.to_owned(), false);
    }
    let kept = take_units(summary, (limit * 4).saturating_sub(units(MARK)));
    let end = kept.rfind('\n').unwrap_or(kept.len());
    (format!("{}{MARK}", kept[..end].trim_end()), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_cut_at_the_end_of_a_line() {
        let summary = "line one\n".repeat(100);
        let (clipped, was_cut) = clip(&summary, 50);
        assert!(was_cut && estimate(&clipped) <= 50, "{clipped}");
        assert!(
            clipped.starts_with("line one\nline one") && clipped.contains("one\n\n[The summary was cut here")
        );
        assert_eq!(clip("short", 50), ("short".to_owned(), false));
    }

    #[test]
    fn a_split_turn_without_history_keeps_the_previous_summary() {
        let prompts = Prompts::default();
        let options = RequestOptions::default();
        let settings = CompactionSettings::default();
        let job = Job::new(&prompts, &options, ModelLimits::default(), &settings);
        let prefix = Value::parse(r#"{"role":"user","content":"go"}"#).expect("valid JSON");
        let material = Material { turn_prefix: vec![prefix], ..Material::default() };
        let plan = job.plan(&material, true, Some("old\n\n<read-files>\na\n</read-files>"));
        assert_eq!(plan.without_history.as_deref(), Some("old"));
        assert_eq!(job.plan(&material, true, None).without_history.as_deref(), Some("No prior history."));
        let requests = job.requests(&plan, &|kind| format!("<{}>", kind.name()));
        let kinds: Vec<Kind> = requests.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [Kind::TurnPrefix, Kind::Short]);
        assert!(
            requests[1].1.prompt.contains("old\n\n---\n\n**Turn Context (split turn):**\n\n<turn_prefix>")
        );
    }
}
