//! What a command costs: time and memory of a process of its own, medians of interleaved rounds.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The programs that are measured, and the small one that measures.
#[derive(Debug)]
pub(super) struct Programs {
    folder: PathBuf,
    /// A home without sessions or settings.
    home: PathBuf,
}

/// A command to be measured.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// Its name in tables.
    pub(super) name: String,
    program: PathBuf,
    arguments: Vec<OsString>,
    folder: Option<PathBuf>,
    /// Exit statuses that are no failure: `check` answers with its status.
    statuses: &'static [i32],
}

/// What a process cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    /// From its start to its end.
    pub(super) seconds: f64,
    /// Of all processors: what neighbours on the machine take is not in it.
    pub(super) processor_seconds: f64,
    /// To the first byte of its output, if that was asked for.
    pub(super) first_byte: f64,
    /// The most memory it held.
    pub(super) bytes: u64,
}

impl Programs {
    /// Builds them all as they are released.
    ///
    /// # Errors
    /// They cannot be built.
    pub(super) fn build(root: &Path) -> Result<Programs> {
        let cargo = |arguments: &[&str]| -> Result<()> {
            let status = Command::new(env!("CARGO"))
                .current_dir(root)
                .args(["build", "--release", "--quiet"])
                .args(arguments)
                .status()?;
            ensure!(status.success(), "cargo build {arguments:?}: {status}");
            Ok(())
        };
        cargo(&["-p", "sesstool"])?;
        cargo(&["-p", "xtask", "--examples"])?;
        let home = root.join(".cache/bench/home");
        #[expect(clippy::disallowed_methods, reason = "a chore finds the folder that cargo builds into")]
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        std::fs::create_dir_all(&home)?;
        Ok(Programs { folder: target.join("release"), home })
    }

    /// Where a program is that is released.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A command of sesstool, with one thread.
    pub(super) fn sesstool(&self, words: &str, paths: &[&Path]) -> Task {
        let mut task = Task::new(&format!("`{words}`"), self.folder.join("sesstool"), words.split(' '));
        task.arguments.extend(paths.iter().map(OsString::from));
        if !words.contains("--jobs") {
            task.arguments.extend(["--jobs".into(), "1".into()]);
        }
        task.statuses = &[0, 1];
        task
    }

    /// One of the small programs beside the chores.
    pub(super) fn example(&self, name: &str, example: &str, arguments: &[&OsStr]) -> Task {
        Task::new(name, self.folder.join("examples").join(example), arguments)
    }

    /// The costs of each task: the median of `n_rounds`, in which they come one after the other.
    ///
    /// # Errors
    /// A task fails.
    pub(super) fn measure(&self, tasks: &[Task], n_rounds: usize) -> Result<Vec<Cost>> {
        let mut costs = vec![Vec::with_capacity(n_rounds); tasks.len()];
        for round in 0..=n_rounds {
            for (task, costs) in tasks.iter().zip(&mut costs) {
                let cost = self.once(task, "total")?;
                // The first round brings the files into memory.
                if round > 0 {
                    costs.push(cost);
                }
            }
        }
        Ok(costs.into_iter().map(median).collect())
    }

    /// The cost of a task whose output is read, up to its first byte.
    ///
    /// # Errors
    /// The task fails.
    pub(super) fn first_byte(&self, task: &Task, n_rounds: usize) -> Result<f64> {
        let costs: Result<Vec<Cost>> = (0..n_rounds).map(|_| self.once(task, "first-byte")).collect();
        Ok(median(costs?).first_byte)
    }

    fn once(&self, task: &Task, mode: &str) -> Result<Cost> {
        let mut command = Command::new(self.folder.join("examples/measure"));
        command.arg(mode).arg(&task.program).args(&task.arguments).env("HOME", &self.home);
        command.env("NO_COLOR", "1").env_remove("XDG_CONFIG_HOME");
        command.current_dir(task.folder.as_deref().unwrap_or(&self.home));
        let output = command.output().context("the measuring program")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let numbers: Vec<i64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let &[total, first_byte, micros, kib, status] = &numbers[..] else {
            anyhow::bail!("{}: {}", task.name, String::from_utf8_lossy(&output.stderr));
        };
        ensure!(
            task.statuses.contains(&(status as i32)),
            "{} ended with status {status}: {:?} {:?}",
            task.name,
            task.program,
            task.arguments
        );
        Ok(Cost {
            seconds: total as f64 / 1e9,
            processor_seconds: micros as f64 / 1e6,
            first_byte: first_byte as f64 / 1e9,
            bytes: kib as u64 * 1024,
        })
    }
}

impl Task {
    /// A command with its name in tables.
    pub(super) fn new(
        name: &str,
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Task {
        let arguments = arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect();
        Task { name: name.to_owned(), program: program.into(), arguments, folder: None, statuses: &[0] }
    }

    /// The same, in another folder.
    pub(super) fn within(mut self, folder: &Path) -> Task {
        self.folder = Some(folder.to_owned());
        self
    }
}

fn median(mut costs: Vec<Cost>) -> Cost {
    let bytes = costs.iter().map(|cost| cost.bytes).max().unwrap_or(0);
    let mut middle = |key: fn(&Cost) -> f64| {
        costs.sort_by(|a, b| key(a).total_cmp(&key(b)));
        costs.get(costs.len() / 2).map_or(0.0, key)
    };
    Cost {
        seconds: middle(|cost| cost.seconds),
        processor_seconds: middle(|cost| cost.processor_seconds),
        first_byte: middle(|cost| cost.first_byte),
        bytes,
    }
}
