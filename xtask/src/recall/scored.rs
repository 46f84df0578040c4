//! The scores of a session: ours, the bare list's, the recorded summaries'.

use session_model::text::units;
use session_model::value::Value;
use summarizer::embedded::{
    EmbeddedInput, Kind, Weights, expanded, facts_index, features, short_summary, summarize_by,
};

use super::Args;
use super::facts::Finder;
use super::fit::Evidence;
use super::needed::Needed;
use super::points::{Point, Trace};
use super::survival::Survival;
use super::table::Scores;

/// Most tokens of a short summary, as compactions have it.
const MOST_SHORT: u64 = 512;
/// Needed facts that a point must have to be scored.
const FEWEST: usize = 10;
/// Sizes of the index that is put behind recorded summaries, in tokens.
const INDEX_SIZES: [u64; 2] = [1000, 2000];

/// The scores of a session.
#[derive(Default)]
pub(super) struct Scored {
    pub(super) recorded: Scores,
    pub(super) assumed: Scores,
    pub(super) survival: Survival,
}

/// A point that is scored, with its messages.
struct Scene<'t> {
    point: &'t Point,
    needed: Needed,
    messages: Vec<Value<'static>>,
    kept: Vec<Value<'static>>,
}

impl<'t> Scene<'t> {
    fn all(trace: &'t Trace, finder: &Finder) -> Vec<Scene<'t>> {
        let scenes = trace.points.iter().map(|point| Scene {
            point,
            needed: Needed::at(trace, point, finder),
            messages: trace.messages(point.summarised.clone()),
            kept: trace.messages(point.kept.clone()),
        });
        scenes.filter(|scene| scene.needed.n_simple() >= FEWEST).collect()
    }

    fn input(&self, limit_tokens: u64) -> EmbeddedInput<'_> {
        EmbeddedInput {
            kind: Kind::History,
            messages: &self.messages,
            kept: &self.kept,
            previous_summary: self.point.previous.as_deref(),
            instructions: None,
            limit_tokens,
        }
    }
}

/// What the session shows about facts that are needed.
pub(super) fn evidence(trace: &Trace, finder: &Finder) -> Evidence {
    let scenes = Scene::all(trace, finder);
    let n = scenes.len();
    let of = |scene: &Scene<'_>| {
        Evidence::of(features(&scene.input(0)).expect("the messages are in memory"), &scene.needed.facts, n)
    };
    scenes.iter().map(of).fold(Evidence::default(), Evidence::with)
}

impl Scored {
    /// Scores a session; `others` are the weights that were fitted to the other sessions.
    pub(super) fn of(trace: &Trace, finder: &Finder, others: &Weights, args: &Args) -> Scored {
        let mut scored = Scored::default();
        for scene in Scene::all(trace, finder) {
            scored.scene(trace, &scene, finder, others, args);
        }
        scored.survival.stability(trace, finder);
        scored
    }

    pub(super) fn has_any(&self) -> bool {
        !self.assumed.is_empty() || !self.recorded.is_empty()
    }

    fn scene(&mut self, trace: &Trace, scene: &Scene<'_>, finder: &Finder, others: &Weights, args: &Args) {
        let needed = &scene.needed;
        let scores = if scene.point.recorded.is_some() { &mut self.recorded } else { &mut self.assumed };
        scores.open_point();
        let short =
            short_summary(&scene.messages, &scene.kept, MOST_SHORT).expect("the messages are in memory");
        scores.add("short summary", needed, &short, units(&short).div_ceil(4));
        let mut sizes: Vec<(String, u64)> =
            args.budgets().into_iter().map(|limit| (limit.to_string(), limit)).collect();
        if let Some(recorded) = &scene.point.recorded {
            let size = units(recorded) / 4;
            scores.add("recorded", needed, recorded, size);
            sizes.push(("same size".to_owned(), size));
            for tokens in INDEX_SIZES {
                let index = facts_index(&scene.messages, &scene.kept, tokens, recorded)
                    .expect("the messages are in memory");
                let whole = format!("{recorded}\n\n{}", expanded(&index));
                scores.add(&format!("recorded, --facts {tokens}"), needed, &whole, size + units(&index) / 4);
            }
        }
        for (name, limit) in sizes {
            scores.add(&format!("bare list, {name}"), needed, &needed.list(limit), limit);
            let input = scene.input(limit);
            let summary = summarize_by(&input, &Weights::default()).expect("the messages are in memory");
            let size = units(&summary).div_ceil(4);
            assert!(size <= limit, "{}: {size} tokens where {limit} are allowed", trace.name);
            let whole = expanded(&summary);
            scores.add(&format!("embedded, {name}"), needed, &whole, size);
            let of_others = summarize_by(&input, others).expect("the messages are in memory");
            let of_others_size = units(&of_others).div_ceil(4);
            let as_read = expanded(&of_others);
            scores.add(&format!("embedded, {name}, fitted to others"), needed, &as_read, of_others_size);
            let (sections, index) = parted(&summary);
            assert!(units(&index) * 2 <= units(&summary), "{}: the index is more than half", trace.name);
            let read = expanded(&sections);
            scores.add(&format!("embedded, {name}, no index"), needed, &read, units(&sections) / 4);
            let perfect = needed.perfect(&sections, limit);
            let read = expanded(&perfect);
            scores.add(&format!("embedded, {name}, perfect ranking"), needed, &read, units(&perfect) / 4);
            let index =
                facts_index(&scene.messages, &scene.kept, limit, "").expect("the messages are in memory");
            scores.add(&format!("index alone, {name}"), needed, &expanded(&index), units(&index) / 4);
            if args.points {
                let share = share(needed, &whole);
                let index = (units(&summary) - units(&sections)) / 4;
                println!(
                    "{} {:?} at {limit}: {size} tokens, {index} in the index, {share:.3}",
                    trace.name, scene.point.summarised
                );
            }
            if limit == 4000 {
                self.survival.point(trace, scene.point, &summary, finder);
            }
            if args.missing {
                for (fact, class) in needed.facts.iter().filter(|(fact, _)| !whole.contains(fact.as_str())) {
                    println!(
                        "{} {:?} at {limit}: {} {fact}",
                        trace.name,
                        scene.point.summarised,
                        class.name()
                    );
                }
            }
        }
    }
}

/// The sections of a summary, and its index.
fn parted(summary: &str) -> (String, String) {
    let Some((before, rest)) = summary.split_once("\n\nIndex of facts:") else {
        return (summary.to_owned(), String::new());
    };
    let (index, after) = rest.split_once("\n\n").map_or((rest, ""), |(index, after)| (index, after));
    let gap = if after.is_empty() { "" } else { "\n\n" };
    (format!("{before}{gap}{after}"), format!("\n\nIndex of facts:{index}"))
}

fn share(needed: &Needed, text: &str) -> f64 {
    let simple = needed.facts.iter().filter(|(_, class)| class.is_simple());
    let held = simple.filter(|(fact, _)| text.contains(fact.as_str())).count();
    held as f64 / needed.n_simple() as f64
}
