//! What holds for every session, tried on many generated ones (spec 3.3, 3.4, 3.7).

use compaction_core::compaction_entry::{Content, FinishError, finish, previous};
use compaction_core::preparation::{Skip, prepare};
use compaction_core::turn::is_message;
use session_gen::{Dialect, Shape, generate};
use session_model::message::Role;
use session_model::prompts::Prompts;
use session_model::session::Session;
use session_model::validate::new_faults;

use crate::sketch::keeping;

fn shapes() -> [Shape; 4] {
    [Shape::omp(), Shape::pi(), Shape::everything(Dialect::Omp), Shape::everything(Dialect::Pi)]
}

#[test]
fn every_message_of_the_window_is_in_exactly_one_part() {
    let mut n_prepared = 0;
    for seed in 0..400 {
        for shape in shapes() {
            let file = generate(seed, &shape);
            let (session, _) = Session::read(file.as_bytes()).expect("a session");
            let sequence = session.branch(None).effective();
            let Ok(preparation) = prepare(&sequence, &keeping(100 + seed * 7 % 1500)) else { continue };
            n_prepared += 1;
            let parts = preparation.history.iter().chain(&preparation.turn_prefix).chain(&preparation.recent);
            let window = sequence.window().iter().filter(|item| is_message(&sequence, item));
            assert!(parts.eq(window), "seed {seed} {shape:?}");
        }
    }
    assert!(n_prepared > 500, "{n_prepared}");
}

#[test]
fn no_cut_separates_a_call_from_its_result() {
    let mut n_calls = 0;
    for seed in 0..400 {
        for shape in shapes() {
            let file = generate(seed, &shape);
            let (session, _) = Session::read(file.as_bytes()).expect("a session");
            let sequence = session.branch(None).effective();
            let Ok(preparation) = prepare(&sequence, &keeping(seed % 800)) else { continue };
            let (before, after) = sequence.window().split_at(preparation.cut);
            // By brute force: the newest call of each id before a result is the one that it answers.
            for (n, item) in after.iter().enumerate() {
                let Some(message) = sequence.message(item).filter(|message| message.role == Role::ToolResult)
                else {
                    continue;
                };
                let asks = |item: &session_model::sequence::Item| {
                    sequence.calls(item).iter().any(|call| Some(call.id) == message.answers)
                };
                n_calls += 1;
                assert!(after[..n].iter().any(asks) || !before.iter().any(asks), "seed {seed} {shape:?}");
            }
        }
    }
    assert!(n_calls > 500, "{n_calls}");
}

#[test]
fn an_entry_that_is_finished_makes_nothing_worse_and_is_the_last_word() {
    let prompts = Prompts::default();
    let (mut n_finished, mut n_no_gain) = (0, 0);
    for seed in 0..400 {
        for shape in shapes() {
            let file = generate(seed, &shape);
            let (session, _) = Session::read(file.as_bytes()).expect("a session");
            if session.needs_migration() {
                // Nothing is appended to such a file before it is rewritten.
                continue;
            }
            let sequence = session.branch(None).effective();
            let settings = keeping(100 + seed % 900);
            let Ok(preparation) = prepare(&sequence, &settings) else { continue };
            let handed_on = previous(&sequence, file.as_bytes()).expect("the record is there");
            let content = Content::Made {
                summary: "Done.".to_owned(),
                short_summary: Some("Short.".to_owned()),
                preserve_data: None,
            };
            let entry = match finish(&preparation, handed_on.as_ref(), &content, &prompts, 1_800_000_000_000)
            {
                Ok(entry) => entry,
                Err(FinishError::NoGain { .. }) => {
                    n_no_gain += 1;
                    continue;
                }
                Err(error) => panic!("seed {seed} {shape:?}: {error}"),
            };
            n_finished += 1;
            // The file that is written says what the checked session says.
            let written = format!("{}\n{}\n", file.trim_end_matches('\n'), entry.record);
            let (read, _) = Session::read(written.as_bytes()).expect("a session");
            assert_eq!(read.dialect, session.dialect, "seed {seed} {shape:?}");
            let after = read.branch(None).effective();
            assert!(new_faults(&sequence, &after).is_empty());
            let shown = |session: &Session| {
                let sequence = session.branch(None).effective();
                let items = sequence.items.iter();
                items
                    .map(|item| (session.id(item.entry).to_owned(), item.part, item.estimate))
                    .collect::<Vec<_>>()
            };
            assert_eq!(shown(&read), shown(&entry.session), "seed {seed} {shape:?}");
            assert_eq!(
                prepare(&after, &settings).err(),
                Some(Skip::AlreadyCompacted),
                "seed {seed} {shape:?}"
            );
        }
    }
    assert!(n_finished > 300 && n_no_gain < n_finished, "{n_finished} {n_no_gain}");
}
