//! Memory that files are read into: on a cache line, and in huge pages where it is large.

use std::io;

use memmap2::MmapMut;

/// Copies into a buffer that starts a few bytes behind a page boundary are several times slower on some machines,
/// and that is where the allocator puts large ones; so ours start on a cache line.
const ALIGNMENT: usize = 64;
/// From this length on, in bytes, memory comes from the system itself. In pages of the usual size the first touch of each
/// costs more than all reading of what is put into it.
const LARGE: usize = 4 << 20;

/// Bytes that start on a cache line; zeros until something is put there.
pub(super) struct Buffer {
    memory: Memory,
    length: usize,
}

enum Memory {
    /// From the allocator, with the offset of the first byte that counts.
    Heap(Vec<u8>, usize),
    /// Pages of our own.
    Pages(MmapMut),
}

impl Buffer {
    /// A buffer of this many bytes.
    ///
    /// # Errors
    /// The system has no memory for a large one.
    pub(super) fn new(length: usize) -> io::Result<Buffer> {
        if length < LARGE {
            return Ok(Buffer::small(length));
        }
        let pages = MmapMut::map_anon(length)?;
        // A system that has no huge pages is slower and no worse.
        #[cfg(target_os = "linux")]
        let _ = pages.advise(memmap2::Advice::HugePage);
        Ok(Buffer { memory: Memory::Pages(pages), length })
    }

    /// A buffer from the allocator.
    pub(super) fn small(length: usize) -> Buffer {
        let bytes = vec![0; length + ALIGNMENT];
        // `align_offset` may say "impossible", which only costs speed.
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        Buffer { memory: Memory::Heap(bytes, if start < ALIGNMENT { start } else { 0 }), length }
    }

    /// Number of bytes.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// The bytes, to be written to.
    pub(super) fn as_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Heap(bytes, start) => &mut bytes[*start..*start + self.length],
            Memory::Pages(pages) => pages,
        }
    }

    /// The bytes.
    pub(super) fn as_slice(&self) -> &[u8] {
        match &self.memory {
            Memory::Heap(bytes, start) => &bytes[*start..*start + self.length],
            Memory::Pages(pages) => pages,
        }
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Self {
        Buffer { length: bytes.len(), memory: Memory::Heap(bytes, 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_all_lengths_are_zeros_on_a_cache_line() {
        for length in [0, 1, 63, 64, 4096, LARGE - 1, LARGE, LARGE + 1] {
            let mut buffer = Buffer::new(length).expect("memory");
            assert_eq!((buffer.len(), buffer.as_slice().len()), (length, length));
            assert!(buffer.as_slice().iter().all(|byte| *byte == 0), "{length}");
            assert!(length == 0 || buffer.as_slice().as_ptr().align_offset(ALIGNMENT) == 0, "{length}");
            buffer.as_mut().fill(7);
            assert!(buffer.as_slice().iter().all(|byte| *byte == 7), "{length}");
        }
    }
}
