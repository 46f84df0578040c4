//! How fast sesstool is: against the floor, against the reference programs, and by the size of what it reads (spec 8.3).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::files;
use crate::reference::{Program, References};

mod compare;
mod instructions;
mod material;
mod measure;
mod page;

use material::Material;
use measure::{Cost, Programs, Task};
use page::Page;

/// What is measured, and what for.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Fewer rounds on smaller files, without the reference programs, in about a minute; writes nothing
    #[arg(long)]
    quick: bool,
    /// Rounds of each measurement
    #[arg(long, default_value_t = 11)]
    rounds: usize,
    /// A folder of real sessions
    #[arg(long, default_value = "../shared/corpus")]
    corpus: PathBuf,
    /// Count the instructions of the hot paths instead, and write them down
    #[arg(long)]
    instructions: bool,
    /// With --instructions: fail if there are more than 5 % more than written down
    #[arg(long, requires = "instructions")]
    check: bool,
    /// Compare all that another build of sesstool prints instead
    #[arg(long, value_name = "SESSTOOL")]
    compare: Option<PathBuf>,
}

/// The commands that spec 8.3 holds to the floor, and how many times the floor they may take.
const READING: &[(&str, f64)] = &[
    ("check", 2.5),
    ("prune --dry-run", 2.5),
    ("inspect", 2.5),
    ("context", 4.0),
    ("compact --dry-run", 8.0),
];

/// Runs the chore.
///
/// # Errors
/// Something cannot be built or fails; never a figure that misses its mark: the table says so.
pub(crate) fn run(args: &Args) -> Result<()> {
    let root = files::root()?;
    let material = Material::new(&root);
    if args.instructions {
        return instructions::run(&root, &files::release_program()?, &material, args.check);
    }
    let programs = Programs::build(&root)?;
    let corpus = if args.corpus.is_relative() { root.join(&args.corpus) } else { args.corpus.clone() };
    if let Some(old) = &args.compare {
        let folders: Vec<PathBuf> =
            [root.join("fixtures"), corpus].into_iter().filter(|folder| folder.exists()).collect();
        return compare::run(old, &programs.place("sesstool"), &material, &folders);
    }
    let bench = Bench { programs, material, n_rounds: if args.quick { 5 } else { args.rounds } };
    let mut page = Page::new();
    bench.floor(&mut page, if args.quick { &[20] } else { &[1, 20, 200] })?;
    if corpus.exists() {
        bench.corpus(&mut page, &corpus)?;
    } else {
        eprintln!("SKIPPED: no corpus in {}", corpus.display());
    }
    bench.start(&mut page)?;
    bench.growth(&mut page, args.quick)?;
    bench.threads(&mut page)?;
    if args.quick {
        print!("{}", page.text());
        return Ok(());
    }
    bench.others(&mut page, &root)?;
    print!("{}", page.text());
    files::write(&root.join("docs/benchmarks.md"), page.text())
}

struct Bench {
    programs: Programs,
    material: Material,
    n_rounds: usize,
}

impl Bench {
    fn floor_task(&self, paths: &[&Path]) -> Task {
        let paths: Vec<&OsStr> = paths.iter().map(|path| path.as_os_str()).collect();
        self.programs.example("floor", "floor", &paths)
    }

    /// Each command against the floor on sessions of these many megabytes.
    fn floor(&self, page: &mut Page, megabytes: &[usize]) -> Result<()> {
        page.section(
            "One large session, one thread",
            "The floor reads the file into one aligned, reused buffer of 256 KiB and counts the line ends. Output goes to nowhere. \
             The ratio is that of processor time, which neighbours on the machine do not change.",
        );
        page.head(&["session", "command", "time", "processor time", "× floor", "must reach", "peak memory"]);
        for &size in megabytes {
            let path = self.material.large(size)?;
            let n_bytes = std::fs::metadata(&path)?.len();
            let mut tasks = vec![self.floor_task(&[&path])];
            tasks.extend(READING.iter().map(|(words, _)| self.programs.sesstool(words, &[&path])));
            let costs = self.programs.measure(&tasks, self.n_rounds)?;
            let floor = costs[0].processor_seconds;
            for (n, (task, cost)) in tasks.iter().zip(&costs).enumerate() {
                // Below some megabytes the start of the process is all there is.
                let mark = n.checked_sub(1).filter(|_| size >= 20).map(|n| READING[n].1);
                page.row(&[
                    page::bytes(n_bytes),
                    task.name.clone(),
                    page::time(cost.seconds),
                    page::time(cost.processor_seconds),
                    page::times(cost.processor_seconds / floor),
                    mark.map_or(String::new(), |mark| page::verdict(cost.processor_seconds / floor, mark)),
                    page::bytes(cost.bytes),
                ]);
            }
        }
        Ok(())
    }

    fn corpus(&self, page: &mut Page, corpus: &Path) -> Result<()> {
        let sessions: Vec<PathBuf> = walkdir::WalkDir::new(corpus)
            .into_iter()
            .filter_map(|item| item.ok().map(walkdir::DirEntry::into_path))
            .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
            .collect();
        let paths: Vec<&Path> = sessions.iter().map(PathBuf::as_path).collect();
        page.section(
            "Real sessions, one thread",
            &format!("{} sessions that agents wrote, most of them of less than a megabyte.", sessions.len()),
        );
        page.head(&["command", "time", "processor time", "× floor", "peak memory"]);
        let mut tasks = vec![self.floor_task(&paths)];
        tasks.extend(READING.iter().map(|(words, _)| self.programs.sesstool(words, &[corpus])));
        self.rows(page, &tasks)
    }

    /// A row for each task; the first is the floor.
    fn rows(&self, page: &mut Page, tasks: &[Task]) -> Result<()> {
        let costs = self.programs.measure(tasks, self.n_rounds)?;
        for (task, cost) in tasks.iter().zip(&costs) {
            page.row(&[
                task.name.clone(),
                page::time(cost.seconds),
                page::time(cost.processor_seconds),
                page::times(cost.processor_seconds / costs[0].processor_seconds),
                page::bytes(cost.bytes),
            ]);
        }
        Ok(())
    }

    fn start(&self, page: &mut Page) -> Result<()> {
        page.section(
            "Start",
            "From the start of the process to the first byte of its answer about a small session.",
        );
        page.head(&["command", "first byte", "must reach"]);
        let small = self.material.small()?;
        for words in ["--version", "check", "inspect", "context"] {
            let task = match words {
                "--version" => Task::new("`--version`", self.programs.place("sesstool"), ["--version"]),
                words => self.programs.sesstool(words, &[&small]),
            };
            let seconds = self.programs.first_byte(&task, 4 * self.n_rounds)?;
            page.row(&[task.name, page::time(seconds), page::verdict(seconds * 1000.0, 10.0) + " ms"]);
        }
        Ok(())
    }

    /// Time by size: each step has ten, or a hundred, times as much to read.
    fn growth(&self, page: &mut Page, is_quick: bool) -> Result<()> {
        page.section(
            "Growth",
            "Each step of bytes is ten times the one before, each step of entries a hundred times. The \
             figures are processor time; what a start costs is taken out of the growth. 1.0 is linear; below it, what stays the same weighs less and less.",
        );
        let sizes: &[usize] = if is_quick { &[1, 10] } else { &[1, 10, 100] };
        let counts: &[usize] = if is_quick { &[100, 10_000] } else { &[100, 10_000, 1_000_000] };
        let sessions: Vec<PathBuf> = sizes
            .iter()
            .map(|&size| self.material.large(size))
            .chain(counts.iter().map(|&n| self.material.short_entries(n)))
            .collect::<Result<_>>()?;
        let mut head = vec!["command".to_owned()];
        head.extend(sizes.iter().map(|size| format!("{size} MB")));
        head.push("growth / bytes".to_owned());
        head.extend(counts.iter().map(|n| format!("{} entries", page::grouped(*n as u64))));
        head.push("growth / bytes".to_owned());
        page.head(&head.iter().map(String::as_str).collect::<Vec<_>>());
        let start = Task::new("start", self.programs.place("sesstool"), ["--version"]);
        for words in ["check", "prune --dry-run", "inspect", "context", "compact --dry-run"] {
            let mut tasks = vec![start.clone()];
            tasks.extend(sessions.iter().map(|path| self.programs.sesstool(words, &[path])));
            let costs = self.programs.measure(&tasks, self.n_rounds.min(5))?;
            let mut row = vec![format!("`{words}`")];
            let mut at = 1;
            for group in [sizes.len(), counts.len()] {
                let (these, paths) = (&costs[at..at + group], &sessions[at - 1..at - 1 + group]);
                row.extend(these.iter().map(|cost| page::time(cost.processor_seconds)));
                row.push(page::times(last_step(these, paths, costs[0].processor_seconds)?));
                at += group;
            }
            page.row(&row);
        }
        Ok(())
    }

    /// What a second thread gains on many files, beside what it gains in a loop over integers.
    fn threads(&self, page: &mut Page) -> Result<()> {
        page.section(
            "Two threads",
            &format!(
                "A folder of {} sessions. The loop over integers touches no memory: it says what the machine has to give.",
                page::grouped(material::N_FILES as u64)
            ),
        );
        page.head(&["", "one thread", "two threads", "gain", "of the loop's gain"]);
        let folder = self.material.folder()?;
        let rounds = OsStr::new("400000000");
        let mut tasks = vec![
            self.programs.example("loop over integers", "spin", &[OsStr::new("1"), rounds]),
            self.programs.example("", "spin", &[OsStr::new("2"), rounds]),
        ];
        for words in ["check", "prune --dry-run", "inspect"] {
            for jobs in [1, 2] {
                tasks.push(self.programs.sesstool(&format!("{words} --jobs {jobs}"), &[&folder]));
            }
        }
        let costs = self.programs.measure(&tasks, self.n_rounds)?;
        let gain = |n: usize| costs[n].seconds / costs[n + 1].seconds;
        for n in (0..tasks.len()).step_by(2) {
            let share = gain(n) / gain(0);
            page.row(&[
                tasks[n].name.replace(" --jobs 1", ""),
                page::time(costs[n].seconds),
                page::time(costs[n + 1].seconds),
                page::times(gain(n)),
                if n == 0 { String::new() } else { page::at_least(share, 0.95) },
            ]);
        }
        Ok(())
    }

    /// The same work by the reference programs, and by what one would write without sesstool.
    fn others(&self, page: &mut Page, root: &Path) -> Result<()> {
        page.section(
            "Other programs",
            "The reference programs' own code reads the session, builds its context and adds up their token estimates (`check`), or \
             prints the model messages (`context`). Their start is in the time, as sesstool's is.",
        );
        page.head(&[
            "session",
            "program",
            "time",
            "× sesstool",
            "must reach",
            "peak memory",
            "× sesstool",
            "must reach",
        ]);
        let references = References::install()?;
        let script = root.join("xtask/reference/bench.mjs");
        for size in [1, 20, 200] {
            let path = self.material.large(size)?;
            let n_bytes = std::fs::metadata(&path)?.len();
            for (words, what) in [("check", "check"), ("context --format jsonl", "context")] {
                let mut tasks = vec![self.programs.sesstool(words, &[&path])];
                for program in [Program::R13, Program::P1] {
                    let (runtime, which) = match program {
                        Program::R13 => (references.bun(), "omp"),
                        Program::P1 => (PathBuf::from("node"), "pi"),
                    };
                    let arguments = [script.as_os_str(), which.as_ref(), what.as_ref(), path.as_os_str()];
                    let name = format!("{} {what}", program.name());
                    tasks.push(Task::new(&name, runtime, arguments).within(references.folder()));
                }
                if what == "check" {
                    tasks.push(self.programs.example(
                        "`serde_json` program",
                        "serde_check",
                        &[path.as_os_str()],
                    ));
                    if Command::new("jq").arg("--version").output().is_ok() {
                        let filter = "reduce inputs as $entry (0; . + ([$entry.message.content[]? | \
                                      (.text? // .thinking? // \"\") | length] | add // 0)) / 4";
                        tasks.push(Task::new(
                            "`jq`",
                            "jq",
                            [OsStr::new("-n"), filter.as_ref(), path.as_os_str()],
                        ));
                    }
                }
                let costs = self.programs.measure(&tasks, if size == 200 { 3 } else { 5 })?;
                for (n, (task, cost)) in tasks.iter().zip(&costs).enumerate() {
                    let (slower, larger) =
                        (cost.seconds / costs[0].seconds, cost.bytes as f64 / costs[0].bytes as f64);
                    let is_reference = (1..=2).contains(&n);
                    let mark = |figure: f64, mark: f64| match is_reference {
                        true => page::at_least(figure, mark),
                        false => String::new(),
                    };
                    page.row(&[
                        page::bytes(n_bytes),
                        task.name.clone(),
                        page::time(cost.seconds),
                        page::times(slower),
                        mark(slower, 20.0),
                        page::bytes(cost.bytes),
                        page::times(larger),
                        mark(larger, 5.0),
                    ]);
                }
            }
        }
        Ok(())
    }
}

/// By how much more than the bytes the time has grown in the last step.
fn last_step(costs: &[Cost], paths: &[PathBuf], start: f64) -> Result<f64> {
    let (last, before) = (costs.len() - 1, costs.len() - 2);
    let n_bytes = |at: usize| -> Result<f64> { Ok(std::fs::metadata(&paths[at])?.len() as f64) };
    let time = |at: usize| (costs[at].processor_seconds - start).max(1e-4);
    Ok(time(last) / time(before) / (n_bytes(last)? / n_bytes(before)?))
}
