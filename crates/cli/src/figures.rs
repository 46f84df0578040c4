//! Numbers and times as a person reads them.

/// A number with thin groups of three: `12 345 678`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// `1 session`, `2 sessions`, `12 345 entries`.
pub fn count(number: u64, noun: &str) -> String {
    let plural = match noun.strip_suffix('y') {
        _ if number == 1 => noun.to_owned(),
        Some(stem) if !stem.ends_with(['a', 'e', 'o']) => format!("{stem}ies"),
        _ if noun.ends_with("leaf") => format!("{}ves", &noun[..noun.len() - 1]),
        _ if noun.ends_with(['s', 'h']) => format!("{noun}es"),
        _ => format!("{noun}s"),
    };
    format!("{} {plural}", grouped(number))
}

/// Bytes with one decimal: `999 B`, `1.2 kB`, `200.0 MB`.
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if number < 1000 {
        return format!("{number} B");
    }
    let mut value = number as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A time in UTC to the minute: `2026-12-01 09:30`.
pub fn minute(time_ms: i64) -> String {
    session_model::time::iso(time_ms)[..16].replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1 000", "1 234 567"]);
    }

    #[test]
    fn counts_have_their_plural() {
        let of = |noun| count(2, noun);
        assert_eq!(
            [count(1, "entry"), of("entry"), of("session"), of("branch"), of("day"), of("more leaf")],
            ["1 entry", "2 entries", "2 sessions", "2 branches", "2 days", "2 more leaves"]
        );
    }

    #[test]
    fn bytes_round_to_the_next_unit() {
        assert_eq!(
            [999, 1000, 999_949, 999_950, 2_000_000_000].map(bytes),
            ["999 B", "1.0 kB", "999.9 kB", "1.0 MB", "2.0 GB"]
        );
        assert_eq!(bytes(u64::MAX), "18446.7 PB");
    }
}
