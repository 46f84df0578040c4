//! `damage`: what crashes, second writers, editors and disks do to a session file.

use crate::random::Random;

/// `bytes` with one to three damages: torn, glued, doubled or lost lines, NUL runs, CRLF, a BOM, flipped bits, other parents.
///
/// Not valid UTF-8 in general. The result always differs from `bytes` unless these are empty.
pub fn damage(seed: u64, bytes: &[u8]) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut damaged = bytes.to_vec();
    for _ in 0..random.between(1, 3) {
        damage_once(&mut random, &mut damaged);
    }
    if damaged == bytes && !damaged.is_empty() {
        damaged.pop();
    }
    damaged
}

fn damage_once(random: &mut Random, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    let at = random.below(bytes.len());
    match random.below(13) {
        // A write that did not finish, at the end or with others behind it.
        0 => bytes.truncate(at),
        1 => {
            let end = line_end(bytes, at);
            bytes.drain(at..end);
        }
        // Two records on one line; a torn record with the next one on its line.
        2 => drop_line_end(bytes, at),
        3 => {
            let end = (line_end(bytes, at) + 1).min(bytes.len());
            bytes.drain(at..end);
        }
        4 => {
            let length = random.between(1, 4096);
            bytes.splice(at..at, std::iter::repeat_n(0, length));
        }
        5 => {
            let end = (at + random.between(1, 512)).min(bytes.len());
            bytes[at..end].fill(0);
        }
        6 => *bytes = bytes.split(|&b| b == b'\n').collect::<Vec<_>>().join(&b"\r\n"[..]),
        7 => {
            bytes.splice(0..0, *b"\xef\xbb\xbf");
        }
        8 => {
            let (start, end) = (line_start(bytes, at), line_end(bytes, at));
            let mut line = bytes[start..end].to_vec();
            line.push(b'\n');
            bytes.splice(start..start, line);
        }
        9 => reparent(random, bytes, at),
        10 => bytes[at] ^= 1 << random.below(8),
        11 => {
            let junk: &[u8] =
                [&b"\n\n \t\n"[..], b"null\n", b"[1,2]\n", b"{\"a\":\n", b"}{\"", b"\xff\xfe\n"]
                    [random.below(6)];
            let start = line_start(bytes, at);
            bytes.splice(start..start, junk.iter().copied());
        }
        _ => same_id(random, bytes),
    }
}

fn line_start(bytes: &[u8], at: usize) -> usize {
    bytes[..at].iter().rposition(|&b| b == b'\n').map_or(0, |lf| lf + 1)
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |lf| at + lf)
}

fn drop_line_end(bytes: &mut Vec<u8>, at: usize) {
    let end = line_end(bytes, at);
    if end < bytes.len() {
        bytes.remove(end);
    }
}

/// The ranges of the eight characters behind every `"<key>":"`.
fn values(bytes: &[u8], key: &str) -> Vec<usize> {
    let pattern = format!("\"{key}\":\"");
    let ends = bytes.windows(pattern.len()).enumerate().filter(|(_, window)| *window == pattern.as_bytes());
    ends.map(|(at, _)| at + pattern.len()).filter(|at| at + 8 <= bytes.len()).collect()
}

/// Gives an entry another parent: one that is missing, itself, or a later one, which makes a cycle.
fn reparent(random: &mut Random, bytes: &mut [u8], at: usize) {
    let (parents, ids) = (values(bytes, "parentId"), values(bytes, "id"));
    let Some(&parent) = parents.iter().find(|&&parent| parent >= at).or(parents.last()) else { return };
    let id = match random.below(3) {
        0 => *b"0badf00d",
        1 => copy_of(bytes, ids.iter().copied().rfind(|&id| id < parent).unwrap_or(parent)),
        _ => copy_of(bytes, ids.last().copied().unwrap_or(parent)),
    };
    bytes[parent..parent + 8].copy_from_slice(&id);
}

/// Gives one entry the id of another.
fn same_id(random: &mut Random, bytes: &mut [u8]) {
    let ids = values(bytes, "id");
    if ids.len() > 1 {
        let id = copy_of(bytes, ids[random.below(ids.len())]);
        let to = ids[random.below(ids.len())];
        bytes[to..to + 8].copy_from_slice(&id);
    }
}

fn copy_of(bytes: &[u8], at: usize) -> [u8; 8] {
    bytes[at..at + 8].try_into().expect("values() gives only places with eight bytes behind them")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Shape, generate};

    #[test]
    fn always_changes_something_and_repeats_itself() {
        for seed in 0..300 {
            let session = generate(seed, &Shape::omp());
            let damaged = damage(seed, session.as_bytes());
            assert_ne!(damaged, session.as_bytes(), "seed {seed}");
            assert_eq!(damaged, damage(seed, session.as_bytes()), "seed {seed}");
        }
        assert_eq!(damage(1, b""), b"");
    }

    #[test]
    fn every_kind_of_damage_occurs() {
        let session = generate(5, &Shape { steps: (30, 30), old_version: 0.0, ..Shape::omp() });
        let damaged: Vec<Vec<u8>> = (0..200).map(|seed| damage(seed, session.as_bytes())).collect();
        let holds =
            |pattern: &[u8]| damaged.iter().any(|bytes| bytes.windows(pattern.len()).any(|it| it == pattern));
        for pattern in [&b"\0\0\0"[..], b"\r\n", b"}{\"", b"\xef\xbb\xbf{", b"0badf00d", b"null\n"] {
            assert!(holds(pattern), "{pattern:?}");
        }
        assert!(damaged.iter().any(|bytes| !bytes.ends_with(b"\n")));
    }
}
