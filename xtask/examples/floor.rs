//! The floor of the benchmarks: reads a file into one aligned, reused buffer and counts its line ends (spec 8.3).

use std::fs::File;
use std::io::Read;

const CHUNK: usize = 256 * 1024;
const ALIGNMENT: usize = 64;

#[expect(clippy::disallowed_methods, reason = "a program that is compared with, not a part of sesstool")]
fn main() -> std::io::Result<()> {
    let mut bytes = vec![0u8; CHUNK + ALIGNMENT];
    let start = bytes.as_ptr().align_offset(ALIGNMENT);
    let buffer = &mut bytes[start..start + CHUNK];
    let mut n_lines = 0;
    for path in std::env::args_os().skip(1) {
        let mut file = File::open(path)?;
        loop {
            match file.read(buffer)? {
                0 => break,
                n => n_lines += memchr::memchr_iter(b'\n', &buffer[..n]).count(),
            }
        }
    }
    println!("{n_lines}");
    Ok(())
}
