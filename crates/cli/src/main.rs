//! The sesstool command.

/// The index of a large session is its largest piece of memory.
#[global_allocator]
static ALLOCATOR: huge_pages::HugePages = huge_pages::HugePages;

fn main() -> std::process::ExitCode {
    sesstool::run(std::env::args_os()).into()
}
