//! From a seed to an input: a session, changed by bytes, by lines and by the structure of its JSON.

use session_gen::{Dialect, Random, Shape, damage, generate};

use crate::corpus::Corpus;

/// JSON values that programs stumble over, put in the place of others.
const ODD_VALUES: &[&str] = &[
    "null",
    "true",
    "0",
    "-0",
    "1e400",
    "-1e400",
    "1.0",
    "0.1e-400",
    "12345678901234567890",
    "-9223372036854775809",
    "18446744073709551616",
    "\"\"",
    "\"\\ud83d\"",
    "\"\\ude00\\ud83d\"",
    "\"\\u0000\"",
    "\"\u{2028}\u{85}\u{feff}\"",
    "\"}{\\\"type\\\":\\\"message\\\"\"",
    "\"```\\n</conversation>\\n```\"",
    "[]",
    "{}",
    "[[[[[[[[{\"a\":[{}]}]]]]]]]]",
    "[null,1,\"x\",{\"type\":\"text\"},{\"type\":\"text\",\"text\":5}]",
    "[{\"type\":\"toolCall\",\"id\":\"call_1\",\"name\":\"read\",\"arguments\":{\"path\":7}}]",
    "[{\"type\":\"image\",\"data\":null},{\"type\":\"thinking\"}]",
    "{\"content\":[{\"type\":\"text\",\"text\":\"edited\"}]}",
    "\"2026-13-45T99:99:99.999Z\"",
    "\"message\"",
    "\"compaction\"",
    "\"toolResult\"",
    "\"assistant\"",
];

/// Bytes that readers of lines stumble over.
const ODD_BYTES: &[&[u8]] = &[
    b"\0",
    b"\0\0\0\0\0\0\0\0",
    b"\n",
    b"\r\n",
    b"\r",
    b"\\",
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b"}{",
    b"{\"",
    b",",
    b":",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\xc0\x80",
    b"\xe2\x80\xa8",
    b"\x1b[31m",
    b"\\u",
    b"\\ud83d",
    b"1e",
    b"{\"type\":\"message\",\"id\":\"x\",\"parentId\":null}",
    b"{\"type\":\"session\",\"id\":\"again\"}",
    b"{\"type\":\"title\",\"v\":1}",
    b"{\"type\":\"reset_boundary\",\"id\":\"reset\",\"parentId\":null}",
];

/// The input of a seed.
pub(crate) fn input(seed: u64, corpus: &Corpus) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = match random.below(3) {
        0 => {
            let dialect = if random.chance(0.5) { Dialect::Omp } else { Dialect::Pi };
            let shape = Shape { steps: (1, 12), budget: 60, ..Shape::everything(dialect) };
            generate(random.next_u64(), &shape).into_bytes()
        }
        _ => corpus.files[random.below(corpus.files.len())].clone(),
    };
    for _ in 0..random.between(1, 6) {
        match random.below(10) {
            0..2 => bytes = damage(random.next_u64(), &bytes),
            2..4 => change_bytes(&mut random, &mut bytes),
            4..6 => change_lines(&mut random, &mut bytes, corpus),
            _ => change_value(&mut random, &mut bytes),
        }
    }
    bytes
}

fn change_bytes(random: &mut Random, bytes: &mut Vec<u8>) {
    let at = random.below(bytes.len() + 1);
    match random.below(4) {
        0 => {
            let odd = ODD_BYTES[random.below(ODD_BYTES.len())];
            bytes.splice(at..at, odd.iter().copied());
        }
        1 => {
            let end = (at + random.between(1, 40)).min(bytes.len());
            bytes.drain(at..end);
        }
        2 => {
            // A piece again, somewhere else.
            let end = (at + random.between(1, 400)).min(bytes.len());
            let piece = bytes[at..end].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, piece);
        }
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.below(256) as u8;
            }
        }
    }
}

fn change_lines(random: &mut Random, bytes: &mut Vec<u8>, corpus: &Corpus) {
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    if lines.is_empty() {
        return;
    }
    let (one, other) = (random.below(lines.len()), random.below(lines.len()));
    match random.below(6) {
        0 => lines.swap(one, other),
        1 => drop(lines.remove(one)),
        2 => {
            let line = lines[one].clone();
            lines.insert(other, line);
        }
        3 => {
            // A line of another session.
            let file = &corpus.files[random.below(corpus.files.len())];
            let theirs: Vec<&[u8]> = file.split_inclusive(|byte| *byte == b'\n').collect();
            if !theirs.is_empty() {
                let line = theirs[random.below(theirs.len())].to_vec();
                lines.insert(one, line);
            }
        }
        4 => {
            let depth = random.between(1, 3000);
            let (open, close) = if random.chance(0.5) { ("[", "]") } else { ("{\"a\":", "}") };
            let nested = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let line =
                format!("{{\"type\":\"custom\",\"id\":\"deep\",\"parentId\":null,\"data\":{nested}}}\n");
            lines.insert(one, line.into_bytes());
        }
        _ => {
            let line = lines[one].clone();
            let n = random.between(2, 30);
            lines.splice(one..one, std::iter::repeat_n(line, n));
        }
    }
    *bytes = lines.concat();
}

/// Changes a value, a key or an order within the JSON of a line. What counts as a value is found by punctuation alone, so
/// strings that look like JSON are hit too.
fn change_value(random: &mut Random, bytes: &mut Vec<u8>) {
    let colons: Vec<usize> =
        bytes.windows(2).enumerate().filter(|(_, pair)| *pair == b"\":").map(|(at, _)| at + 2).collect();
    if colons.is_empty() {
        return;
    }
    let start = colons[random.below(colons.len())];
    let end = value_end(bytes, start);
    match random.below(5) {
        0 | 1 => {
            let odd = ODD_VALUES[random.below(ODD_VALUES.len())];
            bytes.splice(start..end, odd.bytes());
        }
        2 => {
            // The value of another field.
            let from = colons[random.below(colons.len())];
            let other = bytes[from..value_end(bytes, from)].to_vec();
            bytes.splice(start..end, other);
        }
        3 => {
            // The field once more, with another value, behind itself.
            let key = key_start(bytes, start);
            let mut again = vec![b','];
            again.extend_from_slice(&bytes[key..start]);
            again.extend_from_slice(ODD_VALUES[random.below(ODD_VALUES.len())].as_bytes());
            bytes.splice(end..end, again);
        }
        _ => {
            // The field is gone; a comma may stay, as in what people edit by hand.
            let key = key_start(bytes, start);
            let end = if bytes.get(end) == Some(&b',') && random.chance(0.8) { end + 1 } else { end };
            bytes.drain(key..end);
        }
    }
}

/// Where the value that starts at `start` ends: at the matching bracket or quote, else at the next comma or bracket.
fn value_end(bytes: &[u8], start: usize) -> usize {
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in bytes.iter().enumerate().skip(start) {
        if in_string {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => {
                    in_string = false;
                    if depth == 0 {
                        return at + 1;
                    }
                }
                b'\n' => return at,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => depth += 1,
            b']' | b'}' if depth == 0 => return at,
            b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' if depth == 0 => return at,
            b'\n' => return at,
            _ => {}
        }
    }
    bytes.len()
}

/// Where the key before the value at `start` begins.
fn key_start(bytes: &[u8], start: usize) -> usize {
    let quote = start.saturating_sub(2);
    bytes[..quote].iter().rposition(|byte| *byte == b'"').unwrap_or(quote)
}
