//! Older file versions → the current one, in memory and as bytes (spec 1.2).

use crate::entry::{Entry, EntryNo, Facts, NameNo};

/// The id of an entry of a version 1 file, which has none: made from position and content, so that it is the same each time.
pub(crate) fn made_id(number: EntryNo, record: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(record.as_bytes());
    loop {
        let id = hasher.finalize().to_hex()[..8].to_owned();
        if !taken(&id) {
            return id;
        }
        hasher.update(b"taken");
    }
}

/// Turns the kept indexes of version 1 compactions into ids: an index counts all objects of the file, the header as 0. One that
/// is out of range, the header, or a later entry leaves no id.
pub(crate) fn kept_by_index(
    entries: &mut [Entry],
    kept_indexes: &[(EntryNo, Option<f64>)],
    by_index: &[Option<EntryNo>],
) {
    for &(compaction, index) in kept_indexes {
        let kept: Option<NameNo> = index
            .filter(|index| *index >= 0.0 && index.fract() == 0.0)
            .and_then(|index| by_index.get(index as usize).copied().flatten())
            .filter(|kept| *kept <= compaction)
            .map(|kept| entries[kept as usize].id);
        if let Facts::Compaction(facts) = &mut entries[compaction as usize].facts
            && facts.first_kept.is_none()
        {
            facts.first_kept = kept;
        }
    }
}
