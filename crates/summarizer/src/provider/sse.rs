//! Server-sent events: bytes in, the data of each event out.

/// The most bytes of one event; a provider's largest are a few kilobytes.
const LARGEST_EVENT: usize = 64 << 20;

/// Collects bytes, however they are cut, into events. Lines end with LF, CR LF or CR; comments and fields other
/// than `data` are passed over; invalid UTF-8 becomes U+FFFD.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_cr: bool,
    after_first_line: bool,
}

/// An event grew beyond all measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge;

impl Events {
    /// Takes bytes and gives the data of every event that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLarge> {
        let mut events = Vec::new();
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
            self.line.extend_from_slice(&rest[..at]);
            events.extend(self.end_line());
            let was_cr = rest[at] == b'\r';
            rest = &rest[at + 1..];
            if was_cr {
                self.after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
        }
        self.line.extend_from_slice(rest);
        if self.line.len() + self.data.len() > LARGEST_EVENT { Err(TooLarge) } else { Ok(events) }
    }

    /// The data of an event that the end of the stream completed: some servers leave out the last blank line.
    pub(crate) fn finish(mut self) -> Option<String> {
        self.end_line().or_else(|| self.end_event())
    }

    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !self.after_first_line {
            self.after_first_line = true;
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            return self.end_event();
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        if field == b"data" {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.has_data = true;
            self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
        }
        None
    }

    fn end_event(&mut self) -> Option<String> {
        let data = std::mem::take(&mut self.data);
        std::mem::take(&mut self.has_data).then(|| String::from_utf8_lossy(&data).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(stream: &[u8], expected: &[&str]) {
        for size in [1, 2, 3, 7, stream.len().max(1)] {
            let mut events = Events::default();
            let mut found = Vec::new();
            for piece in stream.chunks(size) {
                found.extend(events.push(piece).unwrap());
            }
            found.extend(events.finish());
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn plain_events() {
        check(b"event: a\ndata: 1\n\ndata: 2\n\n", &["1", "2"]);
    }

    #[test]
    fn all_line_ends_and_no_space_after_the_colon() {
        check(b"data:1\r\n\r\ndata:2\r\rdata:  3\n\n", &["1", "2", " 3"]);
    }

    #[test]
    fn comments_ids_and_empty_events_give_nothing() {
        check(b"\xef\xbb\xbf: hello\n\nid: 1\nretry: 5\n\n:\ndata\n\nevent: ping\n\ndata: x\n\n", &["", "x"]);
    }

    #[test]
    fn several_data_lines_are_one_event() {
        check(b"data: {\ndata: }\n\n", &["{\n}"]);
    }

    #[test]
    fn a_last_event_without_its_blank_line_counts() {
        check(b"data: a\n\ndata: [DONE]", &["a", "[DONE]"]);
        check(b"data: a\n\ndata: [DONE]\r", &["a", "[DONE]"]);
    }

    #[test]
    fn split_characters_are_whole_and_broken_ones_replaced() {
        check("data: zażółć 😀\n\n".as_bytes(), &["zażółć 😀"]);
        check(b"data: a\xff\xc5b\n\n", &["a\u{fffd}\u{fffd}b"]);
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut events = Events::default();
        let piece = vec![b'x'; 1 << 20];
        let refused = (0..100).find_map(|at| events.push(&piece).err().map(|error| (at, error)));
        assert_eq!(refused, Some((64, TooLarge)));
    }

    proptest! {
        #[test]
        fn how_bytes_are_cut_never_matters(stream in proptest::collection::vec(
            proptest::sample::select(b"data: \n\r:x\xc5\x82".to_vec()), 0..60), cut in 0_usize..60) {
            let cut = cut.min(stream.len());
            let whole = { let mut events = Events::default(); let mut all = events.push(&stream).unwrap(); all.extend(events.finish()); all };
            let mut events = Events::default();
            let mut parts = events.push(&stream[..cut]).unwrap();
            parts.extend(events.push(&stream[cut..]).unwrap());
            parts.extend(events.finish());
            prop_assert_eq!(whole, parts);
        }
    }
}
