//! Facts in a text: what an agent would have to look up again if it were lost. Paths, file names, identifiers, numbers, hashes,
//! addresses; found by walking the bytes, with no expressions, so that long outputs cost little.

/// Shortest and longest fact, in bytes.
const LENGTHS: std::ops::RangeInclusive<usize> = 4..=120;

/// Endings of names that are files even without a folder.
const ENDINGS: [&str; 21] = [
    "rs", "ts", "tsx", "js", "py", "go", "md", "json", "toml", "yaml", "yml", "sh", "css", "html", "java",
    "c", "h", "cpp", "sql", "jsonl", "mjs",
];

/// What kind of fact it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum FactKind {
    /// A path with a folder, or a file's name.
    Path,
    /// An identifier of more than one word.
    Identifier,
    /// A number of four digits or more, or a hexadecimal name.
    Value,
    /// An address.
    Url,
}

/// Hands out all facts of `text` in order, parts of paths included.
pub(super) fn each_fact<'t>(text: &'t str, mut take: impl FnMut(FactKind, &'t str)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !is_part(bytes[at]) {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && is_part(bytes[at]) {
            at += 1;
        }
        if (text[start..at].ends_with("http") || text[start..at].ends_with("https"))
            && text[at..].starts_with("://")
        {
            let scheme = if text[start..at].ends_with("https") { at - 5 } else { at - 4 };
            let rest = &text[at + 3..];
            let length = rest.find(is_url_end).unwrap_or(rest.len());
            let url = trimmed(&text[scheme..at + 3 + length]);
            if LENGTHS.contains(&url.len()) {
                take(FactKind::Url, url);
            }
            at += 3 + length;
            continue;
        }
        run(&text[start..at], &mut take);
    }
}

/// Which bytes are part of a path, a name or a number.
static PARTS: [bool; 256] = {
    let mut parts = [false; 256];
    let mut byte = 0_u8;
    loop {
        parts[byte as usize] =
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'/' | b'@' | b'~');
        if byte == u8::MAX {
            break parts;
        }
        byte += 1;
    }
};

fn is_part(byte: u8) -> bool {
    PARTS[byte as usize]
}

fn is_url_end(character: char) -> bool {
    character.is_whitespace() || matches!(character, '"' | '\'' | ')' | '>' | '`' | '\\')
}

fn trimmed(fact: &str) -> &str {
    fact.trim_end_matches(['.', ',', ':', ';', '/'])
}

/// The facts of a run of such bytes.
fn run<'t>(run: &'t str, take: &mut impl FnMut(FactKind, &'t str)) {
    if run.len() < *LENGTHS.start() {
        return;
    }
    if run.contains('/') {
        for path in run.split("//") {
            let path = trimmed(path.trim_start_matches('/'));
            if LENGTHS.contains(&path.len()) && path.contains('/') {
                take(FactKind::Path, path);
            }
        }
    } else if let Some(name) = file_name(run) {
        take(FactKind::Path, name);
    }
    for word in run.split(['.', '-', '/', '@', '~']) {
        if !LENGTHS.contains(&word.len()) {
            continue;
        }
        if is_value(word) {
            take(FactKind::Value, word);
        } else if is_identifier(word) {
            take(FactKind::Identifier, word);
        }
    }
}

/// `name.ending`, where the ending is one of files.
fn file_name(run: &str) -> Option<&str> {
    let run = trimmed(run);
    let (stem, ending) = run.rsplit_once('.')?;
    let name = stem.rsplit('.').next()?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    (ENDINGS.contains(&ending) && !name.is_empty() && is_name && LENGTHS.contains(&run.len()))
        .then(|| &run[run.len() - name.len() - 1 - ending.len()..])
}

/// A number of four digits or more, or seven to forty hexadecimal digits.
fn is_value(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.iter().all(u8::is_ascii_digit)
        || (7..=40).contains(&bytes.len())
            && bytes.iter().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte))
}

/// Words tied by underscores in one case, or by capitals.
fn is_identifier(word: &str) -> bool {
    let bytes = word.as_bytes();
    if bytes.contains(&b'_') {
        let mut words = word.split('_');
        let is_low = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_high = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
        let all = |is: fn(u8) -> bool| word.split('_').all(|part| !part.is_empty() && part.bytes().all(is));
        let first = words.next().unwrap_or_default();
        return first.bytes().all(|byte| byte.is_ascii_lowercase()) && !first.is_empty() && all(is_low)
            || all(is_high);
    }
    // A capital opens a further word only behind a small letter or a digit, and must be followed by one.
    let mut n_humps = 0;
    for (at, pair) in bytes.windows(2).enumerate() {
        let [this, next] = [pair[0], pair[1]];
        if this.is_ascii_uppercase() && !(next.is_ascii_lowercase() || next.is_ascii_digit()) {
            return false;
        }
        n_humps += usize::from(this.is_ascii_uppercase() && at > 0);
    }
    n_humps > 0 && bytes.last().is_some_and(|last| !last.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut found = Vec::new();
        each_fact(text, |_, fact| found.push(fact));
        assert_eq!(found, expected);
    }

    #[test]
    fn paths_and_their_parts_are_facts() {
        check("see /home/me/src/mainLoop.rs, now", &["home/me/src/mainLoop.rs", "mainLoop"]);
        check("main.rs and foo.test.ts.", &["main.rs", "test.ts"]);
        check("e.g. and/or", &["and/or"]);
    }

    #[test]
    fn identifiers_numbers_hashes_and_addresses_are_facts() {
        check(
            "read_file readFile ReadFile MAX_SIZE read File",
            &["read_file", "readFile", "ReadFile", "MAX_SIZE"],
        );
        check("port 8080, 12 of 1234567, commit a1b2c3d", &["8080", "1234567", "a1b2c3d"]);
        check("(https://example.com/a?b=c).", &["https://example.com/a?b=c"]);
        check("HTTPServer XMLHttp a_ _b", &[]);
    }

    #[test]
    fn any_text_is_walked() {
        check("请看src/main.rs文件 файл parse_it", &["src/main.rs", "parse_it"]);
    }
}
