//! Times of entries: ISO-8601 text to milliseconds since 1970 and back.

/// Milliseconds since 1970 of an ISO-8601 time; the usual spelling `2025-01-02T03:04:05.678Z` is read without a calendar library.
pub fn parse_iso(text: &str) -> Option<i64> {
    usual(text.as_bytes()).or_else(|| {
        let timestamp: jiff::Timestamp = text.parse().ok()?;
        Some(timestamp.as_millisecond())
    })
}

/// The time as agents write it.
pub fn iso(time_ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(time_ms) {
        Ok(timestamp) => timestamp.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string(),
        // Out of the calendar's range: the epoch is at least a time.
        Err(_) => "1970-01-01T00:00:00.000Z".to_owned(),
    }
}

fn usual(text: &[u8]) -> Option<i64> {
    if text.len() != 24 || text[23] != b'Z' {
        return None;
    }
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.')];
    if separators.iter().any(|&(at, byte)| text[at] != byte) {
        return None;
    }
    let number = |from: usize, to: usize| {
        text[from..to]
            .iter()
            .try_fold(0i64, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second, ms) = (number(11, 13)?, number(14, 16)?, number(17, 19)?, number(20, 23)?);
    if !(1..=12).contains(&month) || !(1..=28).contains(&day) && !valid_day(year, month, day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Days since 1970 by counting years from March on, so that the leap day comes last.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + (153 * m + 2) / 5 + day
        - 1
        - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms)
}

fn valid_day(year: i64, month: i64, day: i64) -> bool {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    (1..=length).contains(&day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_spelling_agrees_with_the_library() {
        for text in [
            "1970-01-01T00:00:00.000Z",
            "2024-02-29T23:59:59.999Z",
            "2000-03-01T00:00:00.001Z",
            "1969-12-31T23:59:59.000Z",
            "2100-12-31T12:00:00.500Z",
        ] {
            let timestamp: jiff::Timestamp = text.parse().expect("a valid time");
            assert_eq!(usual(text.as_bytes()), Some(timestamp.as_millisecond()), "{text}");
            assert_eq!(iso(timestamp.as_millisecond()), text);
        }
    }

    #[test]
    fn other_spellings_are_read_and_nonsense_is_none() {
        assert_eq!(parse_iso("1970-01-01T00:00:01Z"), Some(1000));
        assert_eq!(parse_iso("1970-01-01T01:00:00.5+01:00"), Some(500));
        assert_eq!(
            ["", "yesterday", "2024-02-30T00:00:00.000Z", "2024-13-01T00:00:00.000Z"].map(parse_iso),
            [None; 4]
        );
    }
}
