//! Sessions in shorthand, one line an entry, and preparations in the same words.

use compaction_core::preparation::{Preparation, Skip, prepare};
use compaction_core::settings::CompactionSettings;
use session_model::sequence::Item;
use session_model::session::Session;

/// Builds a session of `ID KIND ARGS` lines; each entry hangs on the one before unless its id is `ID<PARENT`.
///
/// Kinds: `user N`, `developer N`, `assistant N CALL…`, `failed N CALL…`, `result CALL N`, `bash N`, `excluded N`, `custom N`,
/// `mention N`, `system N`, `message N` (a custom_message), `branch N`, `compaction KEPT`, `label`, `model`, `reset`, `omit TARGET`;
/// N is in tokens. `usage=N` at the end of an assistant line gives it that usage.
pub(crate) fn session(lines: &[&str]) -> String {
    let mut file =
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}"#
            .to_owned();
    let mut before = "null".to_owned();
    for (n, line) in lines.iter().enumerate() {
        let mut words = line.split_whitespace();
        let name = words.next().expect("an id");
        let (id, parent) = match name.split_once('<') {
            Some((id, parent)) => (id, format!("\"{parent}\"")),
            None => (name, before.clone()),
        };
        let kind = words.next().expect("a kind");
        let args: Vec<&str> = words.collect();
        let head = format!(
            r#""id":"{id}","parentId":{parent},"timestamp":"2026-01-01T00:{:02}:{:02}.000Z""#,
            n / 60,
            n % 60
        );
        file.push('\n');
        file.push_str(&record(kind, &args, &head));
        before = format!("\"{id}\"");
    }
    file.push('\n');
    file
}

fn record(kind: &str, args: &[&str], head: &str) -> String {
    let tokens = |at: usize| "x".repeat(4 * args[at].parse::<usize>().expect("a number of tokens"));
    let message = |role: &str, rest: String| {
        format!(r#"{{"type":"message",{head},"message":{{"role":"{role}",{rest}}}}}"#)
    };
    match kind {
        "user" | "developer" | "custom" | "system" => message(kind, format!(r#""content":"{}""#, tokens(0))),
        "assistant" | "failed" => {
            let usage = args.last().and_then(|last| last.strip_prefix("usage="));
            let calls = args[1..].iter().filter(|call| !call.contains('='));
            let calls: String = calls
                .map(|call| format!(r#",{{"type":"toolCall","id":"{call}","name":"","arguments":null}}"#))
                .collect();
            let usage = usage.map_or(String::new(), |usage| {
                format!(r#","usage":{{"input":{usage},"totalTokens":{usage}}}"#)
            });
            let stop = if kind == "failed" { "error" } else { "stop" };
            // A call without arguments costs one token, for `null`.
            message(
                "assistant",
                format!(
                    r#""content":[{{"type":"text","text":"{}"}}{calls}],"stopReason":"{stop}"{usage}"#,
                    tokens(0)
                ),
            )
        }
        "result" => message(
            "toolResult",
            format!(
                r#""toolCallId":"{}","toolName":"t","content":[{{"type":"text","text":"{}"}}]"#,
                args[0],
                tokens(1)
            ),
        ),
        "bash" => message("bashExecution", format!(r#""command":"","output":"{}""#, tokens(0))),
        "excluded" => message(
            "bashExecution",
            format!(r#""command":"","output":"{}","excludeFromContext":true"#, tokens(0)),
        ),
        "mention" => message("fileMention", format!(r#""files":[{{"path":"","content":"{}"}}]"#, tokens(0))),
        "message" => {
            format!(
                r#"{{"type":"custom_message",{head},"customType":"t","content":"{}","display":true}}"#,
                tokens(0)
            )
        }
        "branch" => {
            format!(r#"{{"type":"branch_summary",{head},"fromId":"root","summary":"{}"}}"#, tokens(0))
        }
        "compaction" => format!(
            r#"{{"type":"compaction",{head},"summary":"sum","firstKeptEntryId":"{}","tokensBefore":1}}"#,
            args[0]
        ),
        "label" => format!(r#"{{"type":"label",{head},"targetId":"x","label":"l"}}"#),
        "model" => format!(r#"{{"type":"model_change",{head},"provider":"p","modelId":"m"}}"#),
        "reset" => format!(r#"{{"type":"reset_boundary",{head}}}"#),
        "omit" => format!(r#"{{"type":"context_edit",{head},"targetId":"{}","replacement":null}}"#, args[0]),
        other => panic!("no such kind: {other}"),
    }
}

/// Settings that keep so many tokens.
pub(crate) fn keeping(tokens: u64) -> CompactionSettings {
    CompactionSettings { keep_recent_tokens: tokens, ..CompactionSettings::default() }
}

/// What a compaction that keeps `tokens` would do: `history | turn prefix | kept from FIRST: kept`.
pub(crate) fn prepared(lines: &[&str], tokens: u64) -> String {
    let file = session(lines);
    let (session, _) = Session::read(file.as_bytes()).expect("a session");
    match prepare(&session.branch(None).effective(), &keeping(tokens)) {
        Ok(preparation) => shown(&preparation),
        Err(Skip::AlreadyCompacted) => "already compacted".to_owned(),
        Err(Skip::NothingToCompact) => "nothing to compact".to_owned(),
    }
}

fn shown(preparation: &Preparation<'_>) -> String {
    let session = preparation.sequence.session;
    let ids = |items: &[Item]| items.iter().map(|item| session.id(item.entry)).collect::<Vec<_>>().join(" ");
    format!(
        "{} | {} | from {}: {}",
        ids(&preparation.history),
        ids(&preparation.turn_prefix),
        session.id(preparation.first_kept),
        ids(&preparation.recent)
    )
}
