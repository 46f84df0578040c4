//! The sesstool command.

fn main() -> std::process::ExitCode {
    sesstool::run(std::env::args_os()).into()
}
