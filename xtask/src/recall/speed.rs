//! How fast the summarizer is by itself, on sessions of two sizes: linear means that both give the same.

use std::time::{Duration, Instant};

use anyhow::Result;
use session_model::value::Value;
use summarizer::embedded::{EmbeddedInput, Kind, short_summary, summarize};

/// Rounds of work in the sessions that are generated.
const ROUNDS: [usize; 3] = [400, 4_000, 40_000];
/// Time that each measurement takes at least.
const LONG_ENOUGH: Duration = Duration::from_millis(1500);

/// Measures and prints.
///
/// # Errors
/// The generated session is no JSON.
pub(super) fn run() -> Result<()> {
    for rounds in ROUNDS {
        let json = session(rounds);
        let messages =
            Value::parse(&json).map_err(|_| anyhow::anyhow!("the generated session is no JSON"))?;
        let (messages, kept) = (messages.items(), Vec::new());
        let input = EmbeddedInput {
            kind: Kind::History,
            messages: &messages,
            kept: &kept,
            previous_summary: None,
            instructions: None,
            limit_tokens: 4000,
        };
        let mut best = Duration::MAX;
        let begin = Instant::now();
        while begin.elapsed() < LONG_ENOUGH {
            let start = Instant::now();
            let summary = summarize(&input)?;
            let short = short_summary(&messages, &kept, 500)?;
            std::hint::black_box((summary, short));
            best = best.min(start.elapsed());
        }
        let megabytes = json.len() as f64 / 1e6;
        println!("{megabytes:8.1} MB in {best:.1?}: {:.0} MB/s", megabytes / best.as_secs_f64());
    }
    Ok(())
}

/// A session as agents write them: a request now and then, calls with a sentence before them, outputs of some length.
fn session(rounds: usize) -> String {
    let mut json = String::from("[");
    let mut state = 1_u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    for round in 0..rounds {
        let file = format!("crates/part_{}/src/module_{}.rs", next(40), next(400));
        if round % 20 == 0 {
            json.push_str(&format!(
                r#"{{"role":"user","content":"Please make {file} faster, it takes {} ms. Never change its public names."}},"#,
                next(90_000)
            ));
        }
        let call = match next(4) {
            0 => format!(
                r#"{{"type":"toolCall","id":"{round}","name":"bash","arguments":{{"command":"cargo test -p part_{} case_{}"}}}}"#,
                next(40),
                next(3000)
            ),
            1 => format!(
                r#"{{"type":"toolCall","id":"{round}","name":"edit","arguments":{{"path":"{file}","oldText":"let a_{0} = take_{0}(1);","newText":"let b_{0} = give_{0}(2);"}}}}"#,
                next(5000)
            ),
            _ => format!(
                r#"{{"type":"toolCall","id":"{round}","name":"read","arguments":{{"path":"{file}"}}}}"#
            ),
        };
        json.push_str(&format!(
            r#"{{"role":"assistant","content":[{{"type":"text","text":"I look at {file} because take_{} comes from there. Next I will run the tests."}},{call}]}},"#,
            next(5000)
        ));
        json.push_str(&format!(r#"{{"role":"toolResult","toolCallId":"{round}","isError":{},"content":[{{"type":"text","text":""#, next(6) == 0));
        for line in 0..20 + next(60) {
            json.push_str(&format!("{line:4}  let value_{} = compute_value(&self.table_{}, {})?; // in the order of the input\\n", next(3000), next(300), next(100_000)));
        }
        json.push_str(r#""}]},"#);
    }
    json.push_str(r#"{"role":"assistant","content":[{"type":"text","text":"All is done."}]}]"#);
    json
}
