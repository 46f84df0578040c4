//! Divides a transcript that is too large for the model's window, at message borders (spec 5.4).

use session_model::text::{take_last_units, take_units, units};
use session_model::tokens::{Tokenizer, from_units};

use crate::request::{Frame, Kind};

/// The smallest transcript that a request is made with, in tokens: below it the frame would be most of the request.
pub const FLOOR_TOKENS: u64 = 1_000;

/// Part of a window that requests are planned for: estimates are a little off, and providers count the roles too.
const USABLE_PERCENT: u64 = 90;

/// What of a transcript goes into one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The transcript.
    pub transcript: String,
    /// How many messages it has, those that show nothing included.
    pub n_messages: usize,
}

/// How many tokens of transcript fit a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// In the first request.
    pub first: u64,
    /// In those that go on from a running summary.
    pub further: u64,
}

impl Capacity {
    /// What fits a model's window of so many tokens, the running summary taken at its limit, so that no window planned now is too
    /// large when its turn comes. `previous` is the summary that the first request has.
    pub fn of(frame: &Frame<'_>, kind: Kind, window: u64, previous: Option<&str>) -> Capacity {
        let room = |previous: Option<&str>, summary_tokens: u64| {
            let empty = frame.request(kind, "", previous);
            let fixed = Tokenizer::Units.count(&empty.system)
                + Tokenizer::Units.count(&empty.prompt)
                + frame.max_output_tokens
                + summary_tokens;
            (window * USABLE_PERCENT / 100).saturating_sub(fixed).max(FLOOR_TOKENS)
        };
        Capacity { first: room(previous, 0), further: room(Some(""), frame.max_output_tokens) }
    }
}

/// Divides transcript parts, one list a message, into windows; always at least one. Without a capacity everything is one window.
pub fn windows(messages: &[Vec<String>], capacity: Option<Capacity>) -> Vec<Window> {
    let Some(capacity) = capacity else {
        let transcript = crate::transcript::join(messages.iter().flatten().cloned());
        return vec![Window { transcript, n_messages: messages.len() }];
    };
    let mut windows = Vec::new();
    let mut open = Window { transcript: String::new(), n_messages: 0 };
    let mut open_units = 0;
    for parts in messages {
        let text = crate::transcript::join(parts.iter().cloned());
        let length = units(&text);
        let room = |n_windows: usize| 4 * if n_windows == 0 { capacity.first } else { capacity.further };
        if length > 0 && !open.transcript.is_empty() && open_units + 2 + length > room(windows.len()) {
            windows.push(std::mem::replace(&mut open, Window { transcript: String::new(), n_messages: 0 }));
            open_units = 0;
        }
        open.n_messages += 1;
        if length == 0 {
            continue;
        }
        let text = cut_in_the_middle(text, length, room(windows.len()));
        if !open.transcript.is_empty() {
            open.transcript.push_str("\n\n");
            open_units += 2;
        }
        open_units += units(&text);
        open.transcript.push_str(&text);
    }
    if open.n_messages > 0 || windows.is_empty() {
        windows.push(open);
    }
    windows
}

/// Cuts the middle out of a text that is longer than `limit` units, and says how much is missing.
pub fn cut_in_the_middle(text: String, length: u64, limit: u64) -> String {
    if length <= limit {
        return text;
    }
    let note = |missing: u64| format!("\n\n[... {missing} characters in the middle left out]\n\n");
    let kept = limit.saturating_sub(units(&note(length)));
    let head = take_units(&text, kept.div_ceil(2));
    let tail = take_last_units(&text, kept / 2);
    let missing = length - units(head) - units(tail);
    format!("{head}{}{tail}", note(missing))
}

/// Estimated tokens of a text.
pub fn estimate(text: &str) -> u64 {
    from_units(units(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lengths: &[usize], capacity: (u64, u64), expected: &[usize]) {
        let messages: Vec<Vec<String>> = lengths.iter().map(|length| vec!["a".repeat(*length)]).collect();
        let capacity = Capacity { first: capacity.0, further: capacity.1 };
        let windows = windows(&messages, Some(capacity));
        let lengths: Vec<usize> = windows.iter().map(|window| window.transcript.len()).collect();
        assert_eq!(lengths, expected);
    }

    #[test]
    fn windows_end_at_message_borders() {
        check(&[10, 10, 10], (100, 100), &[34]);
        check(&[10, 10, 10], (6, 6), &[22, 10]);
        check(&[10, 10, 10], (3, 6), &[10, 22]);
        check(&[], (6, 6), &[0]);
        check(&[0, 10], (6, 6), &[10]);
    }

    #[test]
    fn a_message_larger_than_a_window_is_cut_in_its_middle() {
        let text = format!("{}{}", "a".repeat(5000), "z".repeat(5000));
        let windows = windows(&[vec![text]], Some(Capacity { first: 1000, further: 1000 }));
        let [window] = &windows[..] else { panic!("one window") };
        assert!(units(&window.transcript) <= 4000, "{}", window.transcript.len());
        assert!(window.transcript.starts_with("aaa") && window.transcript.ends_with("zzz"));
        assert!(window.transcript.contains("characters in the middle left out]"));
    }
}
