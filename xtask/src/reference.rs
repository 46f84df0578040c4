//! The two reference programs: installed from npm into a cache, one process each, asked in batches (spec 2.6).

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use session_model::value::Value;

/// Time for one answer, and for a program to start.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// Questions that are on their way at once: enough to keep a program busy, few enough to lose when it dies.
const IN_FLIGHT: usize = 16;

/// A program that sesstool must agree with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Program {
    /// `@oh-my-pi/pi-coding-agent` 13.19.0, under Bun: it decides.
    R13,
    /// `@earendil-works/pi-coding-agent` 1.6.0, under Node.
    P1,
}

impl Program {
    /// Both of them.
    pub(crate) const ALL: [Program; 2] = [Program::R13, Program::P1];

    /// The short name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Program::R13 => "R13",
            Program::P1 => "P1",
        }
    }

    /// Packages that are installed for it, with their versions.
    fn packages(self) -> &'static [&'static str] {
        match self {
            Program::R13 => &["@oh-my-pi/pi-coding-agent@13.19.0", "bun@1.4.5"],
            Program::P1 => &["@earendil-works/pi-coding-agent@1.6.0"],
        }
    }

    /// The package and the version that must be found.
    fn package(self) -> (&'static str, &'static str) {
        self.packages()[0].rsplit_once('@').expect("every package above has a version")
    }
}

/// Where the programs are installed.
#[derive(Clone, Debug)]
pub(crate) struct References {
    folder: PathBuf,
    root: PathBuf,
}

impl References {
    /// The programs in the folder that `SESSTOOL_REFERENCES` names, else in the repository's cache; installed if they are not there.
    ///
    /// # Errors
    /// `node` or `npm` is missing, or the packages cannot be had.
    pub(crate) fn install() -> Result<References> {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?.to_owned();
        let folder = std::env::vars_os()
            .find(|(name, _)| name == "SESSTOOL_REFERENCES")
            .map_or_else(|| root.join(".cache/references"), |(_, folder)| PathBuf::from(folder));
        let references = References { folder, root };
        references.need("node", "version 20 or newer, from the system's packages or nodejs.org")?;
        if !Program::ALL.iter().all(|program| references.has(*program)) {
            references.need("npm", "it comes with node")?;
            references.fetch()?;
        }
        for program in Program::ALL {
            let (name, version) = program.package();
            ensure!(
                references.has(program),
                "{name} {version} is not in {} after the installation",
                references.folder.display()
            );
        }
        Ok(references)
    }

    fn need(&self, program: &str, hint: &str) -> Result<()> {
        let found = Command::new(program).arg("--version").stdout(Stdio::null()).status();
        ensure!(found.is_ok_and(|status| status.success()), "{program} is needed and cannot be run: {hint}");
        Ok(())
    }

    fn has(&self, program: Program) -> bool {
        let (name, version) = program.package();
        let manifest = self.folder.join("node_modules").join(name).join("package.json");
        let is_installed = read(&manifest).is_ok_and(|text| {
            Value::parse(&text).is_ok_and(|it| it.text("version").as_deref() == Some(version))
        });
        is_installed && (program == Program::P1 || self.bun().exists())
    }

    /// The folder that the packages are installed in.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The program that runs R13.
    pub(crate) fn bun(&self) -> PathBuf {
        let machine = if cfg!(target_arch = "aarch64") { "aarch64" } else { "x64" };
        let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
        self.folder.join(format!("node_modules/@oven/bun-{system}-{machine}/bin/bun"))
    }

    fn fetch(&self) -> Result<()> {
        eprintln!("installing the reference programs into {}", self.folder.display());
        std::fs::create_dir_all(&self.folder)?;
        let packages = Program::ALL.iter().flat_map(|program| program.packages());
        let status = Command::new("npm")
            .args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
            // Without a manifest of its own npm would look for one in the folders above.
            .args(["--prefix", "."])
            .args(packages)
            .env("PUPPETEER_SKIP_DOWNLOAD", "1")
            .current_dir(&self.folder)
            .status()
            .context("npm")?;
        ensure!(status.success(), "npm could not install the reference programs: {status}");
        Ok(())
    }

    /// Starts a program.
    ///
    /// # Errors
    /// It cannot be run.
    pub(crate) fn start(&self, program: Program) -> Result<Reference> {
        let process = Running::start(self, program)?;
        Ok(Reference { references: self.clone(), program, process: Some(process) })
    }
}

/// One question; `args` is a JSON object.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// As the scripts in `xtask/reference` name it.
    pub(crate) kind: &'static str,
    /// The session.
    pub(crate) file: PathBuf,
    /// What is asked in detail.
    pub(crate) args: String,
}

/// What a program said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// The line with its answer.
    Said(String),
    /// It could not answer.
    Failed(String),
    /// It took too long or died.
    Lost,
}

/// A program that is asked; when it dies it is started again.
#[derive(Debug)]
pub(crate) struct Reference {
    references: References,
    program: Program,
    process: Option<Running>,
}

impl Reference {
    /// The answers to the questions, in their order.
    ///
    /// # Errors
    /// The program cannot be started again.
    pub(crate) fn ask(&mut self, questions: &[Question]) -> Result<Vec<Answer>> {
        let mut answers = Vec::with_capacity(questions.len());
        let mut n_sent = 0;
        while answers.len() < questions.len() {
            let process = match &mut self.process {
                Some(process) => process,
                None => {
                    n_sent = answers.len();
                    self.process.insert(Running::start(&self.references, self.program)?)
                }
            };
            let until = questions.len().min(answers.len() + IN_FLIGHT);
            let is_sent = (n_sent..until).all(|at| process.send(at, &questions[at]).is_ok());
            n_sent = until;
            let answer = if is_sent { process.receive(answers.len()) } else { Answer::Lost };
            if answer == Answer::Lost {
                self.process = None;
            }
            answers.push(answer);
        }
        Ok(answers)
    }
}

#[derive(Debug)]
struct Running {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Running {
    fn start(references: &References, program: Program) -> Result<Running> {
        let scripts = references.root.join("xtask/reference");
        let home = references.folder.join("home");
        std::fs::create_dir_all(&home)?;
        let mut command = match program {
            Program::R13 => {
                let mut command = Command::new(references.bun());
                command.arg("--preload").arg(scripts.join("omp-prompts.ts")).arg(scripts.join("omp.ts"));
                command
            }
            Program::P1 => {
                let mut command = Command::new("node");
                command.arg(scripts.join("pi.mjs"));
                command
            }
        };
        let mut child = command
            .current_dir(&references.folder)
            .env("HOME", &home)
            .env("OUR_PROMPTS", references.root.join("prompts"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("{} cannot be started", program.name()))?;
        let input = child.stdin.take().context("a pipe was asked for")?;
        let output = child.stdout.take().context("a pipe was asked for")?;
        // Always emptied, so that the program never waits with an answer while it is handed a question.
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::with_capacity(1 << 16, output);
            loop {
                // Answers hold U+2028 and the like as they are: only LF ends one.
                let mut line = Vec::new();
                match output.read_until(b'\n', &mut line) {
                    Ok(n) if n > 0 && line.ends_with(b"\n") => {}
                    _ => break,
                }
                line.pop();
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    break;
                }
            }
        });
        let mut running = Running { child, input, lines };
        match running.lines.recv_timeout(ANSWER_LIMIT) {
            Ok(line) if line == r#"{"ready":true}"# => Ok(running),
            Ok(line) => bail!("{} began with {line}", program.name()),
            Err(_) => {
                let status = running.child.try_wait()?;
                bail!("{} did not get ready ({status:?})", program.name())
            }
        }
    }

    fn send(&mut self, id: usize, question: &Question) -> std::io::Result<()> {
        let file = Value::from(question.file.to_string_lossy().into_owned()).to_json();
        let Question { kind, args, .. } = question;
        writeln!(self.input, r#"{{"id":{id},"question":"{kind}","file":{file},"args":{args}}}"#)?;
        self.input.flush()
    }

    fn receive(&mut self, id: usize) -> Answer {
        let line = match self.lines.recv_timeout(ANSWER_LIMIT) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Answer::Lost,
        };
        let Ok(value) = Value::parse(&line) else { return Answer::Lost };
        if value.get("id").and_then(Value::as_number) != Some(id as f64) {
            return Answer::Lost;
        }
        match value.text("error") {
            Some(error) => Answer::Failed(error.into_owned()),
            None => {
                drop(value);
                Answer::Said(line)
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "a chore reads what it has installed")]
fn read(path: &Path) -> std::io::Result<String> {
    std::fs::read_to_string(path)
}
