//! The names of a session (ids, tools, models): each text once, and a number for it.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::entry::NameNo;

/// A set of texts that are numbered in the order in which they came, and texts that only want a place.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameSet {
    /// All texts, one behind the other: a session has a name for each entry, and they shall cost one allocation together.
    texts: String,
    /// Where each text ends.
    ends: Vec<usize>,
    /// The numbers with half of the hashes of their texts, so that the table grows without a look at the texts.
    numbers: HashTable<(NameNo, u32)>,
    hasher: RandomState,
    recent: Recent,
}

/// The last name for each value of a cheap hash: a name mostly comes again soon (a parent, a call, a tool, a model).
#[derive(Clone, Debug)]
struct Recent([Option<NameNo>; 256]);

impl Default for Recent {
    fn default() -> Self {
        Recent([None; 256])
    }
}

impl Recent {
    fn place(&mut self, text: &str) -> &mut Option<NameNo> {
        let bytes = text.as_bytes();
        let from_end = |n: usize| bytes.len().checked_sub(n).map_or(0, |at| usize::from(bytes[at]));
        let hash = from_end(1) ^ from_end(2).wrapping_mul(16) ^ bytes.len().wrapping_mul(37);
        &mut self.0[hash % 256]
    }
}

impl NameSet {
    /// Number of names.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The text of a name; empty if there is no such name.
    pub(crate) fn text(&self, name: NameNo) -> &str {
        text_of(&self.texts, &self.ends, name)
    }

    /// Takes the text that `put` appends; it is no member of the set, and no other text gets its number.
    pub(crate) fn keep(&mut self, put: impl FnOnce(&mut String)) -> NameNo {
        let name = NameNo::of_place(self.ends.len());
        put(&mut self.texts);
        self.ends.push(self.texts.len());
        name
    }

    /// The number of a text that is in the set.
    pub(crate) fn number(&self, text: &str) -> Option<NameNo> {
        let hash = hash(&self.hasher, text);
        let is_it = |&(name, half): &(NameNo, u32)| half == hash && self.text(name) == text;
        self.numbers.find(spread(hash), is_it).map(|(name, _)| *name)
    }

    /// The number of a text, which is put into the set if it is not there.
    pub(crate) fn insert(&mut self, text: &str) -> NameNo {
        let recent = self.recent.place(text);
        if let Some(name) = *recent
            && text_of(&self.texts, &self.ends, name) == text
        {
            return name;
        }
        let hash = hash(&self.hasher, text);
        let (texts, ends) = (&mut self.texts, &mut self.ends);
        let entry = self.numbers.entry(
            spread(hash),
            |&(name, half)| half == hash && text_of(texts, ends, name) == text,
            |&(_, half)| spread(half),
        );
        let name = match entry {
            Entry::Occupied(place) => place.get().0,
            Entry::Vacant(place) => {
                let name = NameNo::of_place(ends.len());
                place.insert((name, hash));
                texts.push_str(text);
                ends.push(texts.len());
                name
            }
        };
        *recent = Some(name);
        name
    }
}

fn hash(hasher: &RandomState, text: &str) -> u32 {
    hasher.hash_one(text) as u32
}

/// A whole hash from half of one: the table looks at the highest bits and at the lowest.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn text_of<'t>(texts: &'t str, ends: &[usize], name: NameNo) -> &'t str {
    let place = name.place();
    let Some(&end) = ends.get(place) else { return "" };
    let start = place.checked_sub(1).map_or(0, |before| ends[before]);
    &texts[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_keeps_the_number_that_it_got_first() {
        let mut names = NameSet::default();
        let texts: Vec<String> = (0..2000).map(|n| format!("{:x}", n * n)).collect();
        let first: Vec<NameNo> = texts.iter().map(|text| names.insert(text)).collect();
        assert_eq!(first, (0..2000).map(NameNo::of_place).collect::<Vec<_>>());
        assert_eq!(texts.iter().rev().map(|text| names.insert(text)).collect::<Vec<_>>(), {
            let mut back = first.clone();
            back.reverse();
            back
        });
        assert_eq!((names.len(), names.number("zz"), names.number(&texts[7])), (2000, None, Some(first[7])));
        assert_eq!((names.text(first[44]), names.text(NameNo::of_place(2000))), (texts[44].as_str(), ""));
    }

    #[test]
    fn the_empty_text_is_a_name() {
        let mut names = NameSet::default();
        assert_eq!(
            (names.insert(""), names.insert("a"), names.insert("")),
            (NameNo::of_place(0), NameNo::of_place(1), NameNo::of_place(0))
        );
        assert_eq!((names.text(NameNo::of_place(0)), names.text(NameNo::of_place(1))), ("", "a"));
    }

    #[test]
    fn a_text_that_is_only_kept_is_no_name() {
        let mut names = NameSet::default();
        let kept = names.keep(|texts| texts.push_str("kept"));
        assert_eq!((names.text(kept), names.number("kept")), ("kept", None));
        assert_ne!(names.insert("kept"), kept);
    }
}
