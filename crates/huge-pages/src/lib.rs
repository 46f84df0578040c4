//! An allocator that has large memory in huge pages, where the system has them; all other memory is the standard library's.
//!
//! The index of a large session is written once and in order. In pages of the usual size the first touch of each costs more than
//! all that is done with what is put there: a fault of the processor for every 4 KiB, where one for 2 MiB would do. A system
//! that has no huge pages, or none free, gives others, and only speed is lost.
//!
//! A program takes the allocator with
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: huge_pages::HugePages = huge_pages::HugePages;
//! ```

use std::alloc::{GlobalAlloc, Layout, System};

/// From this size on, in bytes, memory is mapped by itself. Smaller memory would hold much more than was asked for.
pub const LARGE: usize = 1 << 20;

/// The allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct HugePages;

// SAFETY: what `is_large` says depends on the layout alone, which is the same when memory is asked for and when it is given back;
// so each piece is handled by one of two allocators only: `System`, which keeps the contract by itself, or `mapped`, which keeps it
// as said there.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if mapped::is_large(layout) {
            return mapped::map(layout.size());
        }
        // SAFETY: the caller's contract is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if mapped::is_large(layout) {
            // New pages are zeros.
            return mapped::map(layout.size());
        }
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if mapped::is_large(layout) {
            // SAFETY: by the caller's contract the memory came from `alloc` or `realloc` with this layout, so from `map` with this
            // size, and is used no more.
            return unsafe { mapped::unmap(memory, layout.size()) };
        }
        // SAFETY: as in `alloc`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: by the caller's contract the new size is not 0 and, rounded up to the alignment, not too large.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        match (mapped::is_large(layout), mapped::is_large(new_layout)) {
            // SAFETY: as in `alloc`; the memory is of `System`.
            (false, false) => unsafe { System.realloc(memory, layout, new_size) },
            (true, true) if mapped::length(layout.size()) == mapped::length(new_size) => memory,
            _ => {
                // SAFETY: the layout is valid, see above.
                let new = unsafe { self.alloc(new_layout) };
                if !new.is_null() {
                    // SAFETY: both are at least this long, and new memory overlaps no other; the old memory is given back with the
                    // layout that it came with.
                    unsafe {
                        new.copy_from_nonoverlapping(memory, layout.size().min(new_size));
                        self.dealloc(memory, layout);
                    }
                }
                new
            }
        }
    }
}

/// Memory from the system itself.
#[cfg(target_os = "linux")]
mod mapped {
    use std::alloc::Layout;
    use std::ptr;

    use super::LARGE;

    /// Size of a huge page, in bytes.
    const HUGE: usize = 2 << 20;
    /// What every mapping is aligned to at least.
    const PAGE: usize = 4096;

    /// Whether memory of this layout is mapped.
    pub(super) fn is_large(layout: Layout) -> bool {
        layout.size() >= LARGE && layout.align() <= PAGE
    }

    /// What is mapped for this size.
    pub(super) fn length(size: usize) -> usize {
        size.next_multiple_of(HUGE)
    }

    /// Zeros, at least `size` of them, or null.
    pub(super) fn map(size: usize) -> *mut u8 {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new private mapping touches no other memory.
        let memory = unsafe {
            libc::mmap(ptr::null_mut(), length(size), access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        if memory == libc::MAP_FAILED {
            return ptr::null_mut();
        }
        // SAFETY: the range was just mapped. This is advice: whether it is taken changes nothing that can be seen.
        unsafe { libc::madvise(memory, length(size), libc::MADV_HUGEPAGE) };
        memory.cast()
    }

    /// Gives memory back.
    ///
    /// # Safety
    /// It came from [`map`] with this size and is not used again.
    pub(super) unsafe fn unmap(memory: *mut u8, size: usize) {
        // SAFETY: the whole mapping and nothing else, by the caller's promise.
        unsafe { libc::munmap(memory.cast(), length(size)) };
    }
}

/// Elsewhere all memory is the standard library's.
#[cfg(not(target_os = "linux"))]
mod mapped {
    use std::alloc::Layout;

    pub(super) fn is_large(_: Layout) -> bool {
        false
    }

    pub(super) fn length(size: usize) -> usize {
        size
    }

    pub(super) fn map(_: usize) -> *mut u8 {
        std::ptr::null_mut()
    }

    pub(super) unsafe fn unmap(_: *mut u8, _: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory of an allocator, with what was written to it.
    struct Piece {
        memory: *mut u8,
        layout: Layout,
        seed: u8,
    }

    impl Piece {
        /// One byte of each cache line.
        fn places(length: usize) -> impl Iterator<Item = usize> {
            (0..length).step_by(64)
        }

        fn byte(&self, at: usize) -> u8 {
            self.seed ^ (at / 64) as u8
        }

        fn fill(&self) {
            for at in Piece::places(self.layout.size()) {
                // SAFETY: within the layout.
                unsafe { self.memory.add(at).write(self.byte(at)) };
            }
        }

        /// Whether what was written to the first `length` bytes stands there.
        fn holds(&self, length: usize) -> bool {
            // SAFETY: within the layout, and written before.
            Piece::places(length).all(|at| unsafe { self.memory.add(at).read() } == self.byte(at))
        }

        fn is_zero(&self) -> bool {
            // SAFETY: within the layout; the caller asked for zeros.
            Piece::places(self.layout.size()).all(|at| unsafe { self.memory.add(at).read() } == 0)
        }
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, n: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % n as u64) as usize
        }

        /// Sizes around all borders: tiny, some pages, around `LARGE` and around huge pages.
        fn size(&mut self) -> usize {
            let border = [1, 4096, LARGE, 2 << 20, 3 << 20, 4 << 20][self.below(6)];
            (border + self.below(129)).saturating_sub(64).max(1)
        }
    }

    /// Asks both allocators for the same and looks whether memory is aligned, is its own, and keeps what is written.
    fn run(n_steps: usize, seed: u64) {
        let mut random = Random(seed);
        let mut pieces: Vec<[Piece; 2]> = Vec::new();
        for step in 0..n_steps {
            match random.below(4) {
                0 | 1 if pieces.len() < 24 => {
                    let layout =
                        Layout::from_size_align(random.size(), 1 << random.below(13)).expect("small");
                    let is_zeroed = random.below(2) == 0;
                    let piece = |allocator: &dyn GlobalAlloc| {
                        // SAFETY: the layout is not empty.
                        let memory = unsafe {
                            if is_zeroed { allocator.alloc_zeroed(layout) } else { allocator.alloc(layout) }
                        };
                        assert!(!memory.is_null() && memory.addr().is_multiple_of(layout.align()));
                        let piece = Piece { memory, layout, seed: step as u8 };
                        assert!(!is_zeroed || piece.is_zero());
                        piece.fill();
                        piece
                    };
                    pieces.push([piece(&HugePages), piece(&System)]);
                }
                2 if !pieces.is_empty() => {
                    let at = random.below(pieces.len());
                    let size = random.size();
                    for (piece, allocator) in
                        pieces[at].iter_mut().zip([&HugePages as &dyn GlobalAlloc, &System])
                    {
                        // SAFETY: the piece came from this allocator with this layout, and the new size is not 0.
                        piece.memory = unsafe { allocator.realloc(piece.memory, piece.layout, size) };
                        let kept = piece.layout.size().min(size);
                        piece.layout = Layout::from_size_align(size, piece.layout.align()).expect("small");
                        assert!(piece.holds(kept), "{kept} of {size}");
                        piece.fill();
                    }
                }
                _ if !pieces.is_empty() => {
                    let at = random.below(pieces.len());
                    for (piece, allocator) in
                        pieces.swap_remove(at).iter().zip([&HugePages as &dyn GlobalAlloc, &System])
                    {
                        assert!(piece.holds(piece.layout.size()));
                        // SAFETY: the piece came from this allocator with this layout.
                        unsafe { allocator.dealloc(piece.memory, piece.layout) };
                    }
                }
                _ => {}
            }
        }
        for piece in pieces.iter().flatten() {
            assert!(piece.holds(piece.layout.size()));
        }
        for [ours, systems] in pieces {
            // SAFETY: as above.
            unsafe {
                HugePages.dealloc(ours.memory, ours.layout);
                System.dealloc(systems.memory, systems.layout);
            }
        }
    }

    #[test]
    fn memory_is_aligned_and_keeps_what_is_written_as_that_of_the_standard_library() {
        let n_steps = if cfg!(miri) { 200 } else { 6000 };
        run(n_steps, 0x2545_F491_4F6C_DD1D);
        std::thread::scope(|scope| {
            for seed in 1..=2 {
                scope.spawn(move || run(n_steps / 4, seed));
            }
        });
    }

    #[test]
    fn a_size_that_no_system_has_gives_null() {
        let layout = Layout::from_size_align(isize::MAX as usize - 4095, 1).expect("the largest");
        // SAFETY: the layout is not empty.
        assert!(unsafe { HugePages.alloc(layout) }.is_null());
    }
}
