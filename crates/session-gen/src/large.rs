//! `large`: big sessions with the mix of bytes that real ones have, for benchmarks.

use crate::json::{push_string, timestamp};
use crate::random::Random;

const START: u64 = 1_767_200_000_000;
/// How many bytes of prose are made once; the texts of the session are pieces of it.
const POOL_BYTES: usize = 1 << 20;
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A session of oh-my-pi of at least `target_bytes`, over by less than a turn.
///
/// About 60 % of its bytes are tool results, 10 % images, 27 % assistant messages with usage, 3 % user messages. Lines are
/// 3 KB long in the middle, 12 KB at the ninetieth hundredth, 80 KB at the ninety-ninth, and at most about 1 MB. It has one
/// branch and no compaction, and about one backslash in 31 bytes of text.
pub fn large(seed: u64, target_bytes: usize) -> String {
    let mut random = Random::new(seed);
    let pool = Pool::new(&mut random);
    let mut file =
        File { out: String::with_capacity(target_bytes + (1 << 20)), n: 0, context: 0, random, pool };
    file.out.push_str(&format!(
        "{{\"type\":\"session\",\"version\":3,\"id\":\"{seed:016x}\",\"timestamp\":\"{}\",\"cwd\":\"/home/user/project\"}}\n",
        timestamp(START)
    ));
    let mut bytes = Bytes::default();
    while file.out.len() < target_bytes {
        // The kind that is furthest behind its share comes next; a call and its result always come together.
        if bytes.user * 30 <= bytes.assistant + bytes.results {
            bytes.user += file.user();
        }
        let (length, call) = file.assistant();
        bytes.assistant += length;
        let with_image = bytes.images * 9 < file.out.len() && file.random.chance(0.1);
        let is_long = bytes.results * 27 < bytes.assistant * 60;
        let (result, image) = file.tool_result(call, with_image, is_long);
        bytes.results += result;
        bytes.images += image;
    }
    file.out
}

/// How much has been written of each kind.
#[derive(Default)]
struct Bytes {
    user: usize,
    assistant: usize,
    results: usize,
    images: usize,
}

/// Prose that is already escaped for JSON, to be copied in pieces.
struct Pool {
    escaped: String,
    /// Where a piece may begin or end: never inside an escape or a character.
    borders: Vec<u32>,
    base64: String,
}

impl Pool {
    fn new(random: &mut Random) -> Self {
        const WORDS: &[&str] = &[
            "let",
            "value",
            "=",
            "self.entries",
            ".iter()",
            "fn",
            "pub(crate)",
            "return",
            "error:",
            "warning:",
            "the",
            "test",
            "passed",
            "of",
            "src/session/tree.rs",
            "if",
            "else",
            "{",
            "}",
            "->",
            "match",
            "0x1f",
            "1234",
            "//",
            "because",
            "expected",
            "found",
            "note:",
            "in",
            "module",
            "running",
        ];
        const UNUSUAL: &[&str] = &["└─", "…", "→", "é", "漢字", "✓", "\u{1b}[31m", "\\d+"];
        let mut escaped = String::with_capacity(POOL_BYTES + 64);
        let mut borders = Vec::new();
        let mut word = String::new();
        while escaped.len() < POOL_BYTES {
            borders.push(escaped.len() as u32);
            if random.chance(0.18) {
                escaped.push_str("\\n");
            } else if random.chance(0.06) {
                escaped.push_str("\\\"");
            } else {
                word.clear();
                let unusual = random.chance(0.015);
                push_string(&mut word, random.pick(if unusual { UNUSUAL } else { WORDS }));
                escaped.push_str(&word[1..word.len() - 1]);
                escaped.push(' ');
            }
        }
        let base64 = (0..POOL_BYTES).map(|_| char::from(BASE64[random.below(64)])).collect();
        Self { escaped, borders, base64 }
    }

    /// Appends about `length` bytes of escaped prose.
    fn push_prose(&self, random: &mut Random, out: &mut String, mut length: usize) {
        while length > 0 {
            let first = random.below(self.borders.len());
            let start = self.borders[first] as usize;
            let wanted = (start + length).min(self.escaped.len());
            let end = match self.borders[first..].partition_point(|&border| (border as usize) < wanted) {
                n if first + n < self.borders.len() => self.borders[first + n] as usize,
                _ => self.escaped.len(),
            };
            out.push_str(&self.escaped[start..end]);
            length = length.saturating_sub((end - start).max(1));
        }
    }
}

/// A length with a long tail: the shares of short, middle and long lines of real sessions.
fn text_length(random: &mut Random) -> usize {
    match random.below(1000) {
        0..500 => random.between(150, 2600),
        500..850 => random.between(2600, 14_000),
        850..975 => random.between(14_000, 45_000),
        975..998 => random.between(40_000, 120_000),
        _ => random.between(120_000, 1_000_000),
    }
}

/// A tool call that waits for its result.
#[derive(Clone, Copy)]
struct Call {
    /// The entry that made it, by its number.
    n: u32,
    tool: &'static str,
}

struct File {
    out: String,
    /// How many entries there are.
    n: u32,
    context: usize,
    random: Random,
    pool: Pool,
}

impl File {
    /// Opens an entry with a message; gives where its line begins.
    fn begin(&mut self) -> usize {
        let start = self.out.len();
        let id = |n: u32| n.wrapping_mul(0x9e37_79b1);
        let parent = if self.n == 0 { "null".to_owned() } else { format!("\"{:08x}\"", id(self.n)) };
        self.n += 1;
        let time = timestamp(START + u64::from(self.n) * 1500);
        self.out.push_str(&format!(
            "{{\"type\":\"message\",\"id\":\"{:08x}\",\"parentId\":{parent},\"timestamp\":\"{time}\",\"message\":",
            id(self.n)
        ));
        start
    }

    /// Closes the message and the entry; gives the length of its line.
    fn end(&mut self, start: usize) -> usize {
        let ms = START + u64::from(self.n) * 1500;
        self.out.push_str(&format!(",\"timestamp\":{ms}}}}}\n"));
        let length = self.out.len() - start;
        self.context += length;
        length
    }

    fn user(&mut self) -> usize {
        let start = self.begin();
        self.out.push_str("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"");
        let length = self.random.between(40, 4000);
        self.pool.push_prose(&mut self.random, &mut self.out, length);
        self.out.push_str("\"}]");
        self.end(start)
    }

    /// An answer that ends in a tool call; gives the length of its line and the call.
    fn assistant(&mut self) -> (usize, Call) {
        let start = self.begin();
        self.out.push_str("{\"role\":\"assistant\",\"content\":[");
        if self.random.chance(0.5) {
            self.out.push_str("{\"type\":\"thinking\",\"thinking\":\"");
            let length = self.random.between(100, 3000);
            self.pool.push_prose(&mut self.random, &mut self.out, length);
            self.out.push_str("\",\"thinkingSignature\":\"");
            let from = self.random.below(POOL_BYTES / 2);
            let to = from + self.random.between(200, 900);
            self.out.push_str(&self.pool.base64[from..to]);
            self.out.push_str("\"},");
        }
        if self.random.chance(0.6) {
            self.out.push_str("{\"type\":\"text\",\"text\":\"");
            let length = self.random.between(40, 1500);
            self.pool.push_prose(&mut self.random, &mut self.out, length);
            self.out.push_str("\"},");
        }
        let tool = self.random.pick(&["bash", "read", "edit", "grep", "read", "bash"]);
        let call = Call { n: self.n, tool };
        self.out.push_str(&format!(
            "{{\"type\":\"toolCall\",\"id\":\"call_{}\",\"name\":\"{tool}\",\"arguments\":{{\"path\":\"src/file{}.rs\",\"text\":\"",
            self.n,
            self.random.below(300)
        ));
        let length = self.random.between(20, 2600);
        self.pool.push_prose(&mut self.random, &mut self.out, length);
        let (prompt, output) = (self.context / 4 % 180_000, self.random.between(20, 1200));
        self.out.push_str(&format!(
            "\"}}}}],\"api\":\"anthropic-messages\",\"provider\":\"anthropic\",\"model\":\"claude-sonnet-4-5\",\"usage\":{{\"input\":12,\
             \"output\":{output},\"cacheRead\":{prompt},\"cacheWrite\":{length},\"totalTokens\":{},\"cost\":{{\"input\":0.000036,\
             \"output\":0.01,\"cacheRead\":0.02,\"cacheWrite\":0.003,\"total\":0.033036}}}},\"stopReason\":\"toolUse\"",
            12 + output + prompt + length
        ));
        (self.end(start), call)
    }

    /// The result of a call; gives the bytes of the line without its image, and of the image.
    fn tool_result(&mut self, call: Call, with_image: bool, is_long: bool) -> (usize, usize) {
        let Call { n, tool } = call;
        let start = self.begin();
        self.out.push_str(&format!(
            "{{\"role\":\"toolResult\",\"toolCallId\":\"call_{n}\",\"toolName\":\"{tool}\",\"content\":[{{\"type\":\"text\",\"text\":\""
        ));
        let length = if is_long { text_length(&mut self.random) } else { self.random.between(20, 2600) };
        self.pool.push_prose(&mut self.random, &mut self.out, length);
        self.out.push_str("\"}");
        let mut image = 0;
        if with_image {
            image = self.random.between(10_000, 200_000);
            let from = self.random.below(POOL_BYTES - image);
            self.out.push_str(",{\"type\":\"image\",\"data\":\"");
            self.out.push_str(&self.pool.base64[from..from + image]);
            self.out.push_str("\",\"mimeType\":\"image/png\"}");
        }
        self.out.push_str("],\"isError\":false");
        (self.end(start) - image, image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_the_mix_of_real_sessions() {
        let session = large(1, 20_000_000);
        assert!((20_000_000..22_500_000).contains(&session.len()), "{}", session.len());
        let share = |role: &str| -> f64 {
            let pattern = format!("\"message\":{{\"role\":\"{role}\"");
            let bytes: usize = session.lines().filter(|line| line.contains(&pattern)).map(str::len).sum();
            bytes as f64 / session.len() as f64
        };
        assert!((0.02..0.05).contains(&share("user")), "user {}", share("user"));
        assert!((0.22..0.32).contains(&share("assistant")), "assistant {}", share("assistant"));
        let images: usize = session
            .lines()
            .filter_map(|line| line.split_once("\"type\":\"image\",\"data\":\""))
            .filter_map(|(_, data)| data.find('"'))
            .sum();
        let images = images as f64 / session.len() as f64;
        assert!((0.07..0.13).contains(&images), "images {images}");
        let mut lengths: Vec<usize> = session.lines().map(str::len).collect();
        lengths.sort_unstable();
        let at = |share: f64| lengths[(lengths.len() as f64 * share) as usize];
        assert!((2000..4500).contains(&at(0.5)), "median {}", at(0.5));
        assert!((8000..18_000).contains(&at(0.9)), "p90 {}", at(0.9));
        assert!((40_000..140_000).contains(&at(0.99)), "p99 {}", at(0.99));
        let backslashes = session.bytes().filter(|&b| b == b'\\').count();
        assert!((20..45).contains(&(session.len() / backslashes)), "{}", session.len() / backslashes);
    }

    #[test]
    fn every_result_answers_the_call_before_it() {
        let session = large(2, 2_000_000);
        let field = |line: &str, name: &str| {
            let start = line.find(name)? + name.len();
            line[start..].split('"').next().map(str::to_owned)
        };
        let mut lines = session.lines();
        let mut n_calls = 0;
        while let Some(line) = lines.next() {
            let Some(call) = field(line, "\"type\":\"toolCall\",\"id\":\"") else { continue };
            let tool = field(line, "\"name\":\"");
            let result = lines.next().expect("no session ends with a call");
            assert_eq!(
                (field(result, "\"toolCallId\":\""), field(result, "\"toolName\":\"")),
                (Some(call), tool)
            );
            n_calls += 1;
        }
        assert!(n_calls > 100, "{n_calls}");
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes() {
        assert!(large(3, 300_000) == large(3, 300_000));
        assert!(large(3, 300_000) != large(4, 300_000));
    }
}
