//! The `message` objects of a session: roles, blocks, calls, usage.

use crate::json::{array, prose, string};
use crate::random::Random;
use crate::shape::{Dialect, Shape};

const TOOLS: &[&str] = &["read", "write", "edit", "bash", "grep", "skill", "todo_write", "read", "edit"];
const PATHS: &[&str] = &[
    "src/main.rs",
    "src/lib.rs",
    "README.md",
    "docs/漢字.md",
    "a b.txt",
    "Z.rs",
    "src/\u{ff5e}.rs",
    "src/😀.rs",
    "/tmp/x",
    "x&<y>.html",
];
/// Arguments beside the path: spellings of numbers and orders of keys that JavaScript changes when it prints them again.
const ARGUMENTS: &[&str] = &[
    r#""offset":1.0,"limit":1e3"#,
    r#""b":1,"10":2,"a":3,"2":4"#,
    r#""x":-0,"y":1E21,"z":0.0000001"#,
    r#""big":12345678901234567890,"frac":0.1"#,
    r#""nested":{"k":[1,{"q":null}],"t":true}"#,
    r#""text":"\u00e9 \/ \u2028 \ud83d\ude00""#,
    r#""command":"cargo test\nls -la""#,
    r#""__proto__x":[],"empty":{}"#,
];
/// One pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A call that an assistant message made.
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) tool: &'static str,
}

/// An assistant message and its calls.
pub(crate) struct Assistant {
    pub(crate) json: String,
    pub(crate) calls: Vec<Call>,
}

/// Text of the shape: mostly short, sometimes so long that a cut falls near its end.
pub(crate) fn text(random: &mut Random, shape: &Shape) -> String {
    let units = if random.chance(shape.long_text) {
        // A quarter, a half, all or twice the budget, at four units a token, and a few units more or less.
        let share = [1, 2, 4, 8][random.below(4)];
        (shape.budget * share + random.below(11)).saturating_sub(5)
    } else if random.chance(0.05) {
        0
    } else {
        random.between(1, 160)
    };
    prose(random, units, shape.unusual_text, shape.lone_surrogate)
}

fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, string(text))
}

fn image_block(random: &mut Random) -> String {
    if random.chance(0.15) {
        let hex: String = (0..4).map(|_| format!("{:016x}", random.next_u64())).collect();
        return format!(r#"{{"type":"image","data":"blob:sha256:{hex}","mimeType":"image/png"}}"#);
    }
    format!(r#"{{"type":"image","data":"{PIXEL}","mimeType":"image/png"}}"#)
}

/// Content of a user-like message: a string, or text and image blocks.
pub(crate) fn content(random: &mut Random, shape: &Shape) -> String {
    let image = random.chance(shape.image);
    if !image && random.chance(0.4) {
        return string(&text(random, shape));
    }
    let mut blocks: Vec<String> =
        (0..random.between(1, 2)).map(|_| text_block(&text(random, shape))).collect();
    if image {
        blocks.push(image_block(random));
    }
    if random.chance(0.3) {
        random.shuffle(&mut blocks);
    }
    array(&blocks)
}

/// A user message.
pub(crate) fn user(random: &mut Random, shape: &Shape, ms: u64) -> String {
    let content = content(random, shape);
    let attribution =
        if shape.dialect == Dialect::Omp && random.chance(0.3) { r#","attribution":"user""# } else { "" };
    format!(r#"{{"role":"user","content":{content}{attribution},"timestamp":{ms}}}"#)
}

/// A developer message.
pub(crate) fn developer(random: &mut Random, shape: &Shape, ms: u64) -> String {
    format!(r#"{{"role":"developer","content":{},"timestamp":{ms}}}"#, content(random, shape))
}

/// A system message of pi: content, sections, tools.
pub(crate) fn system(random: &mut Random, shape: &Shape, ms: u64) -> String {
    let content = if random.chance(0.2) { "null".to_owned() } else { string(&text(random, shape)) };
    let mut json = format!(r#"{{"role":"system","content":{content}"#);
    if random.chance(0.5) {
        let value = if random.chance(0.3) { "null".to_owned() } else { string(&text(random, shape)) };
        let name = random.pick(&["rules", "skills", "2"]);
        json.push_str(&format!(r#","sections":{{"{name}":{value}}}"#));
    }
    if random.chance(0.4) {
        let name = random.pick(&["read", "bash", "grep"]);
        json.push_str(&format!(
            r#","toolsAdded":[{{"name":"{name}","description":"does {name}","parameters":{{"type":"object"}}}}]"#
        ));
    }
    if random.chance(0.2) {
        json.push_str(&format!(
            r#","toolsRemoved":[{{"name":"{}"}}]"#,
            random.pick(&["read", "bash", "other"])
        ));
    }
    json.push_str(&format!(r#","timestamp":{ms}}}"#));
    json
}

fn usage(random: &mut Random, shape: &Shape, context_units: usize) -> String {
    let cost = r#""cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}"#;
    if random.chance(shape.odd_usage) {
        return match random.below(4) {
            0 => format!(r#"{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,{cost}}}"#),
            1 => format!(
                r#"{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":{},{cost}}}"#,
                random.below(90_000)
            ),
            2 => format!(
                r#"{{"input":{0},"output":12,"cacheRead":{0},"cacheWrite":7,{cost}}}"#,
                random.below(30_000)
            ),
            _ => format!(
                r#"{{"input":150000,"output":9,"cacheRead":0,"cacheWrite":0,"totalTokens":150009,{cost}}}"#
            ),
        };
    }
    // What a tokenizer would count, from half of the estimate to three times as much.
    let prompt = context_units / 4 * random.between(5, 30) / 10;
    let cached = if random.chance(0.5) { prompt / 2 } else { 0 };
    let output = random.between(1, 900);
    let (input, total) = (prompt - cached, prompt + output);
    format!(
        r#"{{"input":{input},"output":{output},"cacheRead":{cached},"cacheWrite":0,"totalTokens":{total},{cost}}}"#
    )
}

/// Arguments of a call to `tool`: most have a path, some an odd one, some none.
fn arguments(random: &mut Random, tool: &str) -> String {
    let mut fields = Vec::new();
    if matches!(tool, "read" | "write" | "edit") || random.chance(0.1) {
        fields.push(match random.below(14) {
            0 => r#""path":"""#.to_owned(),
            1 => r#""path":7"#.to_owned(),
            2 => r#""file":"no-path.rs""#.to_owned(),
            3 => format!(r#""path":"gen/file{}.rs""#, random.below(60)),
            _ => format!(r#""path":{}"#, string(random.pick(PATHS))),
        });
    }
    if random.chance(0.6) {
        fields.push(random.pick(ARGUMENTS).to_owned());
    }
    format!("{{{}}}", fields.join(","))
}

/// An assistant message; `context_units` is what precedes it, `n` makes its call ids unique.
pub(crate) fn assistant(
    random: &mut Random,
    shape: &Shape,
    ms: u64,
    context_units: usize,
    n: usize,
) -> Assistant {
    let mut blocks = Vec::new();
    if random.chance(shape.thinking) {
        let signature = if random.chance(0.5) { r#","thinkingSignature":"c2ln""# } else { "" };
        let thinking = string(&text(random, shape));
        blocks.push(format!(r#"{{"type":"thinking","thinking":{thinking}{signature}}}"#));
    }
    if random.chance(0.75) {
        blocks.push(text_block(&text(random, shape)));
    }
    let failed = random.chance(shape.failed);
    let mut calls = Vec::new();
    if random.chance(shape.calls) {
        let count = if random.chance(0.3) { random.between(2, 4) } else { 1 };
        for index in 0..count {
            let tool = random.pick(TOOLS);
            let id = format!("call_{n}_{index}");
            let arguments = arguments(random, tool);
            blocks.push(format!(
                r#"{{"type":"toolCall","id":"{id}","name":"{tool}","arguments":{arguments}}}"#
            ));
            calls.push(Call { id, tool });
        }
    }
    let stop = match (failed, calls.is_empty()) {
        (true, _) => random.pick(&["error", "aborted"]),
        (false, true) => random.pick(&["stop", "stop", "length"]),
        (false, false) => "toolUse",
    };
    let mut json = format!(
        r#"{{"role":"assistant","content":{},"api":"anthropic-messages","provider":"anthropic","model":"{}""#,
        array(&blocks),
        random.pick(&["claude-sonnet-4-5", "claude-opus-4-5"])
    );
    if random.chance(shape.usage) {
        json.push_str(&format!(r#","usage":{}"#, usage(random, shape, context_units)));
    }
    json.push_str(&format!(r#","stopReason":"{stop}""#));
    if stop == "error" {
        let words = random.pick(&[
            "prompt is too long: 213462 tokens > 200000 maximum",
            "overloaded_error",
            "429 rate limit",
        ]);
        json.push_str(&format!(r#","errorMessage":"{words}""#));
    }
    json.push_str(&format!(r#","timestamp":{ms}}}"#));
    Assistant { json, calls }
}

/// The result of a call.
pub(crate) fn tool_result(random: &mut Random, shape: &Shape, ms: u64, call: &Call) -> String {
    let mut blocks = vec![text_block(&text(random, shape))];
    if random.chance(0.15) {
        blocks.push(text_block(&text(random, shape)));
    }
    if random.chance(shape.image) {
        blocks.push(image_block(random));
    }
    let pruned = random.chance(shape.pruned);
    if pruned {
        blocks = vec![text_block(&format!("[Output truncated - {} tokens]", random.below(5000)))];
    }
    let error = random.chance(0.1);
    let mut json = format!(
        r#"{{"role":"toolResult","toolCallId":"{}","toolName":"{}","content":{},"isError":{error}"#,
        call.id,
        call.tool,
        array(&blocks)
    );
    if random.chance(0.2) {
        json.push_str(r#","details":{"lines":3,"note":"kept"}"#);
    }
    if pruned {
        json.push_str(&format!(r#","prunedAt":{}"#, ms + random.below(100_000) as u64));
    }
    if shape.dialect == Dialect::Pi && random.chance(0.05) {
        json.push_str(r#","nestedCalls":[{"id":"n1","name":"read","arguments":{"path":"nested.rs"}}]"#);
    }
    json.push_str(&format!(r#","timestamp":{ms}}}"#));
    json
}

/// A bash execution, or in oh-my-pi files sometimes a python execution.
pub(crate) fn execution(random: &mut Random, shape: &Shape, ms: u64) -> String {
    let output = string(&text(random, shape));
    let python = shape.dialect == Dialect::Omp && random.chance(0.35);
    let mut json = if python {
        format!(r#"{{"role":"pythonExecution","code":{},"output":{output}"#, string(&text(random, shape)))
    } else {
        format!(r#"{{"role":"bashExecution","command":"git status","output":{output}"#)
    };
    if random.chance(0.8) {
        json.push_str(&format!(r#","exitCode":{}"#, random.pick(&["0", "0", "1", "127", "-1"])));
    }
    let (cancelled, truncated) = (random.chance(shape.odd_execution), random.chance(shape.odd_execution));
    json.push_str(&format!(r#","cancelled":{cancelled},"truncated":{truncated}"#));
    if truncated && !python && random.chance(shape.full_output_path) {
        json.push_str(r#","fullOutputPath":"/tmp/pi-bash-0.log""#);
    }
    if truncated && shape.dialect == Dialect::Omp && random.chance(0.6) {
        let by = random.pick(&["lines", "bytes"]);
        let range =
            if random.chance(0.5) { r#","shownRange":{"start":91,"end":100},"nextOffset":101"# } else { "" };
        let artifact = if random.chance(0.5) { r#","artifactId":"3""# } else { "" };
        json.push_str(&format!(
            r#","meta":{{"truncation":{{"direction":"tail","truncatedBy":"{by}","totalLines":100,"totalBytes":90000,"outputLines":10,"outputBytes":{}{range}{artifact}}}}}"#,
            random.between(1, 60_000)
        ));
    }
    if random.chance(shape.odd_execution) {
        json.push_str(r#","excludeFromContext":true"#);
    }
    json.push_str(&format!(r#","timestamp":{ms}}}"#));
    json
}

/// Files that the user mentioned.
pub(crate) fn file_mention(random: &mut Random, shape: &Shape, ms: u64) -> String {
    let files: Vec<String> = (0..random.between(1, 3))
        .map(|_| {
            let path = string(random.pick(PATHS));
            let image = if random.chance(shape.image) {
                format!(r#","image":{}"#, image_block(random))
            } else {
                String::new()
            };
            format!(r#"{{"path":{path},"content":{}{image}}}"#, string(&text(random, shape)))
        })
        .collect();
    format!(r#"{{"role":"fileMention","files":{},"timestamp":{ms}}}"#, array(&files))
}
