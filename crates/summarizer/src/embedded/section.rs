//! Sections of lines that compete for room.

use session_model::text::{take_units, units};

/// A section under its heading.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// With its signs, e.g. `## Goal`.
    pub(super) heading: &'static str,
    /// What stands before each line.
    pub(super) mark: Mark,
    /// In the order in which they are shown.
    pub(super) lines: Vec<Line>,
    /// Its share of the room, beside those of the others.
    pub(super) weight: u64,
}

/// A line and how much it matters.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) text: String,
    /// Higher goes first.
    pub(super) rank: u32,
}

/// Rank of what must outlive every compaction.
pub(super) const STANDING: u32 = 1_000_000;

/// What stands before a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// A dash.
    Dash,
    /// A box that is ticked.
    Done,
    /// A box that is not.
    Open,
    /// A number.
    Number,
    /// A heading that has no lines of its own.
    Nothing,
}

impl Section {
    /// A section without lines.
    pub(super) fn new(heading: &'static str, mark: Mark, weight: u64) -> Section {
        Section { heading, mark, lines: Vec::new(), weight }
    }

    /// Adds a line unless it is there already.
    pub(super) fn add(&mut self, text: impl Into<String>, rank: u32) {
        let text = text.into();
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        match self.lines.iter_mut().find(|line| line.text.contains(text) || text.contains(&line.text)) {
            // The longer of two that say the same stays.
            Some(line) => {
                line.rank = line.rank.max(rank);
                if text.len() > line.text.len() {
                    text.clone_into(&mut line.text);
                }
            }
            None => self.lines.push(Line { text: text.to_owned(), rank }),
        }
    }

    /// Adds a line that is no part of another and has none as its part.
    pub(super) fn add_unlike(&mut self, text: String, rank: u32) {
        self.lines.push(Line { text, rank });
    }

    fn wanted(&self) -> u64 {
        self.lines.iter().map(|line| cost(&line.text)).sum()
    }

    /// Units of the lines that must outlive every compaction.
    fn standing(&self) -> u64 {
        self.lines.iter().filter(|line| line.rank >= STANDING / 2).map(|line| cost(&line.text)).sum()
    }

    /// Drops the lines of the lowest rank until the others fit. A first line that alone is too long is cut.
    fn fit(&mut self, limit: u64) {
        let mut order: Vec<usize> = (0..self.lines.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse((self.lines[at].rank, at)));
        let mut keep = vec![false; self.lines.len()];
        let mut left = limit;
        for (n, &at) in order.iter().enumerate() {
            let price = cost(&self.lines[at].text);
            if price <= left {
                keep[at] = true;
                left -= price;
            } else if n == 0 && left > 60 {
                let cut = take_units(&self.lines[at].text, left - 10).trim_end().to_owned();
                self.lines[at].text = format!("{cut}…");
                keep[at] = true;
                left = 0;
            }
        }
        let mut keep = keep.iter();
        self.lines.retain(|_| keep.next().copied().unwrap_or(false));
    }

    fn write(&self, out: &mut String) {
        let gap = if self.heading.starts_with("###") || out.is_empty() { "" } else { "\n" };
        out.push_str(&format!("{gap}{}\n", self.heading));
        if self.lines.is_empty() && self.mark != Mark::Nothing {
            out.push_str("(none)\n");
        }
        for (n, line) in self.lines.iter().enumerate() {
            let text = line.text.replace('\n', "\n  ");
            match self.mark {
                Mark::Dash => out.push_str(&format!("- {text}\n")),
                Mark::Done => out.push_str(&format!("- [x] {text}\n")),
                Mark::Open => out.push_str(&format!("- [ ] {text}\n")),
                Mark::Number => out.push_str(&format!("{}. {text}\n", n + 1)),
                Mark::Nothing => {}
            }
        }
    }
}

/// Units of a line with its mark and end; lines in a line are indented.
pub(super) fn cost(text: &str) -> u64 {
    units(text) + 8 + 2 * text.matches('\n').count() as u64
}

/// Units of headings and what stands under empty ones.
fn frame(sections: &[Section]) -> u64 {
    sections.iter().map(|section| units(section.heading) + 9).sum()
}

/// Fits the sections into `limit` units. What must outlive every compaction goes first. Of what is left a part is shared: each
/// section gets its share, and what one leaves over goes to the others.
pub(super) fn fit(sections: &mut [Section], limit: u64, shared_percent: u64) {
    let mut room = limit.saturating_sub(frame(sections));
    let mut shares = vec![0; sections.len()];
    let standing: Vec<u64> = sections.iter().map(Section::standing).collect();
    let mut smallest_first: Vec<usize> = (0..sections.len()).collect();
    smallest_first.sort_by_key(|&at| standing[at]);
    for at in smallest_first {
        if standing[at] <= room {
            shares[at] = standing[at];
            room -= standing[at];
        }
    }
    let mut left = room.saturating_sub(limit * (100 - shared_percent) / 100);
    let wanted: Vec<u64> =
        sections.iter().zip(&shares).map(|(section, share)| section.wanted() - share).collect();
    let mut open: Vec<usize> = (0..sections.len()).collect();
    while !open.is_empty() {
        let weights: u64 = open.iter().map(|&at| sections[at].weight).sum::<u64>().max(1);
        let room = left;
        let (small, large): (Vec<usize>, Vec<usize>) =
            open.iter().partition(|&&at| wanted[at] <= room * sections[at].weight / weights);
        if small.is_empty() {
            for at in large {
                shares[at] += room * sections[at].weight / weights;
            }
            break;
        }
        for at in small {
            shares[at] += wanted[at];
            left -= wanted[at];
        }
        open = large;
    }
    for (section, share) in sections.iter_mut().zip(shares) {
        section.fit(share);
    }
}

/// The sections as text.
pub(super) fn write(sections: &[Section]) -> String {
    let mut out = String::new();
    sections.iter().for_each(|section| section.write(&mut out));
    out
}
