//! docs/benchmarks.md: tables of figures, and the machine that they are of.

use std::fmt::Write as _;

use crate::files;

/// The page while it is made.
#[derive(Debug)]
pub(super) struct Page(String);

impl Page {
    /// The heading, and what machine this is.
    pub(super) fn new() -> Page {
        let mut page = Page(String::new());
        page.line("# How fast sesstool is");
        page.line("");
        page.line("<!-- written by `cargo xtask bench` -->");
        page.line("");
        page.line(&machine());
        page.line(
            "Each figure is the median of rounds in which the commands of a table come one after the other, each as a process of its \
             own with its files in the page cache; memory is the most that a process held. A mark that is missed says so: ✗.",
        );
        page
    }

    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// Begins a section.
    pub(super) fn section(&mut self, heading: &str, words: &str) {
        eprintln!("{heading} …");
        self.line(&format!("\n## {heading}\n\n{words}\n"));
    }

    /// The heads of a table's columns.
    pub(super) fn head(&mut self, cells: &[&str]) {
        self.line(&format!("| {} |", cells.join(" | ")));
        self.line(&format!("|{}", "---|".repeat(cells.len())));
    }

    /// A row of a table.
    pub(super) fn row(&mut self, cells: &[String]) {
        self.line(&format!("| {} |", cells.join(" | ")));
    }

    /// The whole page.
    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

/// Processor, memory and system, from what Linux says of them.
fn machine() -> String {
    let said = |path: &str| files::read(path.as_ref()).unwrap_or_default();
    let field = |text: &str, name: &str| -> Option<String> {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let cpu = said("/proc/cpuinfo");
    let mut line = String::from("Machine: ");
    let n_cpus = cpu.lines().filter(|line| line.starts_with("processor")).count();
    let model = field(&cpu, "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let family = field(&cpu, "cpu family").map_or(String::new(), |family| format!(" (family {family})"));
    let _ = write!(line, "{n_cpus} × {model}{family}");
    let kib =
        field(&said("/proc/meminfo"), "MemTotal").and_then(|it| it.split(' ').next()?.parse::<u64>().ok());
    if let Some(kib) = kib {
        let _ = write!(line, ", {} of memory", bytes(kib * 1024));
    }
    let system = said("/etc/os-release");
    let system = system.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    if let Some(system) = system {
        let _ = write!(line, ", {}", system.trim_matches('"'));
    }
    let kernel = said("/proc/sys/kernel/osrelease");
    let _ = writeln!(line, ", Linux {}.", kernel.trim());
    line
}

/// 12.3 ms, 1.23 s.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        ..0.1 => format!("{:.1} ms", seconds * 1e3),
        0.1..1.0 => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

/// 12.3 MB.
pub(super) fn bytes(n_bytes: u64) -> String {
    let megabytes = n_bytes as f64 / 1e6;
    if megabytes < 100.0 { format!("{megabytes:.1} MB") } else { format!("{megabytes:.0} MB") }
}

/// A ratio.
pub(super) fn times(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }
}

/// A mark that a figure must stay below, and whether it does.
pub(super) fn verdict(figure: f64, mark: f64) -> String {
    format!("{} ≤ {mark}", if figure <= mark { "✓" } else { "✗" })
}

/// A figure with the mark that it must reach, and whether it does.
pub(super) fn at_least(figure: f64, mark: f64) -> String {
    format!("{} {} ≥ {mark}", times(figure), if figure >= mark { "✓" } else { "✗" })
}

/// 1 000 000.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}
