//! Standard output is data, standard error is talk: quiet, colours, closed pipes, progress.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use session_model::text::shown;

use crate::args::{Color, Globals};
use crate::exit::{CommandError, ErrorKind};

/// Work that is done sooner shows no progress.
const PROGRESS_AFTER: Duration = Duration::from_millis(500);

/// The two ways out of the process. Can be shared by threads.
#[derive(Debug)]
pub struct Printer {
    out: Mutex<BufWriter<Stdout>>,
    /// Whoever read standard output has gone.
    closed: AtomicBool,
    out_paint: Paint,
    err_paint: Paint,
    quiet: bool,
    verbose: bool,
    bar: Arc<Mutex<Option<ProgressBar>>>,
}

/// Puts colours around text, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint(bool);

impl Paint {
    /// No colours.
    pub const PLAIN: Paint = Paint(false);

    /// `text` in this style.
    pub fn style(self, style: Style, text: impl Display) -> impl Display {
        let style = if self.0 { style } else { Style::new() };
        Painted { style, text }
    }

    /// A heading.
    pub fn bold(self, text: impl Display) -> impl Display {
        self.style(Style::new().bold(), text)
    }

    /// What matters less.
    pub fn dim(self, text: impl Display) -> impl Display {
        self.style(Style::new().dimmed(), text)
    }

    /// What the user has to look at.
    pub fn alarm(self, text: impl Display) -> impl Display {
        self.style(AnsiColor::Red.on_default().bold(), text)
    }

    /// What the user may want to look at.
    pub fn notice(self, text: impl Display) -> impl Display {
        self.style(AnsiColor::Yellow.on_default(), text)
    }

    /// Names and numbers that stand out.
    pub fn accent(self, text: impl Display) -> impl Display {
        self.style(AnsiColor::Cyan.on_default(), text)
    }
}

struct Painted<T> {
    style: Style,
    text: T,
}

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The text is made first, so that a width applies to it and not to the escapes.
        write!(formatter, "{}", self.style.render())?;
        self.text.fmt(formatter)?;
        write!(formatter, "{}", self.style.render_reset())
    }
}

impl Printer {
    /// As the flags and `NO_COLOR`, `CLICOLOR_FORCE`, `TERM` and the terminals say.
    pub fn new(globals: &Globals) -> Printer {
        let wants = |choice: anstream::ColorChoice| match globals.color {
            Color::Always => Paint(true),
            Color::Never => Paint(false),
            Color::Auto => Paint(choice != anstream::ColorChoice::Never),
        };
        Printer {
            out: Mutex::new(BufWriter::with_capacity(64 * 1024, io::stdout())),
            closed: AtomicBool::new(false),
            out_paint: wants(anstream::AutoStream::choice(&io::stdout())),
            err_paint: wants(anstream::AutoStream::choice(&io::stderr())),
            quiet: globals.quiet,
            verbose: globals.verbose,
            bar: Arc::default(),
        }
    }

    /// Colours for what goes to standard output.
    pub fn paint(&self) -> Paint {
        self.out_paint
    }

    /// Whether a person sees standard output at once.
    pub fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Writes data to standard output, at once and whole between the lines of others. `write` must not print otherwise.
    ///
    /// # Errors
    /// Standard output cannot be written; a closed pipe is an error of the kind that ends the run quietly.
    pub fn data(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CommandError> {
        if self.is_closed() {
            return Err(CommandError::output(&io::ErrorKind::BrokenPipe.into()));
        }
        let result = self.beside_bar(|| {
            let mut out = lock(&self.out);
            // Whoever reads, a person or a program, gets each record as it comes.
            write(&mut *out).and_then(|()| out.flush())
        });
        self.checked(result)
    }

    /// Whether whoever read standard output has gone.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// What a person may like to know; not with `--quiet`.
    pub fn say(&self, line: &str) {
        if !self.quiet {
            self.talk(&shown(line));
        }
    }

    /// What only someone who asks with `-v` wants to know.
    pub fn detail(&self, line: &str) {
        if self.verbose {
            self.talk(&shown(line));
        }
    }

    /// What is not as it should be; not with `--quiet`.
    pub fn warn(&self, line: &str) {
        if !self.quiet {
            self.talk(&format!("{} {}", self.err_paint.notice("warning:"), shown(line)));
        }
    }

    /// An error and its hint. A closed pipe is not worth a word.
    pub fn error(&self, error: &CommandError) {
        match error.kind {
            ErrorKind::PipeClosed => {}
            ErrorKind::Interrupted => self.talk(&error.message),
            ErrorKind::Failed | ErrorKind::Changed | ErrorKind::Usage => {
                self.talk(&format!("{} {}", self.err_paint.alarm("error:"), error.message));
                if let Some(hint) = &error.hint {
                    self.talk(&format!("{} {hint}", self.err_paint.accent("hint:")));
                }
            }
        }
    }

    /// A progress bar over `total` bytes on a terminal's standard error, from half a second on.
    pub fn progress(&self, total: u64) -> Progress {
        if self.quiet || total == 0 || !io::stderr().is_terminal() {
            return Progress::default();
        }
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let template =
            "{wide_bar} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta} left {msg}";
        bar.set_style(ProgressStyle::with_template(template).expect("the template names known keys"));
        let (slot, of_timer) = (Arc::clone(&self.bar), bar.clone());
        std::thread::spawn(move || {
            std::thread::sleep(PROGRESS_AFTER);
            let mut slot = lock(&slot);
            if !of_timer.is_finished() {
                of_timer.set_draw_target(ProgressDrawTarget::stderr());
                of_timer.enable_steady_tick(Duration::from_millis(200));
                *slot = Some(of_timer);
            }
        });
        Progress { bar: Some((bar, Arc::clone(&self.bar))) }
    }

    fn talk(&self, line: &str) {
        self.beside_bar(|| {
            // Nobody reads it any more if this fails, and the work goes on.
            let _ = writeln!(io::stderr(), "{line}");
        });
    }

    fn beside_bar<T>(&self, work: impl FnOnce() -> T) -> T {
        let bar = lock(&self.bar).clone();
        match bar {
            Some(bar) => bar.suspend(work),
            None => work(),
        }
    }

    fn checked(&self, result: io::Result<()>) -> Result<(), CommandError> {
        result.map_err(|error| {
            let error = CommandError::output(&error);
            if error.kind == ErrorKind::PipeClosed {
                self.closed.store(true, Ordering::Relaxed);
            }
            error
        })
    }
}

/// How far the work is; shared by all workers. Dropping it takes the bar away.
#[derive(Debug, Default)]
pub struct Progress {
    bar: Option<(ProgressBar, Arc<Mutex<Option<ProgressBar>>>)>,
}

impl Progress {
    /// So many bytes more are done.
    pub fn add(&self, bytes: u64) {
        if let Some((bar, _)) = &self.bar {
            bar.inc(bytes);
        }
    }

    /// What is going on beside the bytes, e.g. that a model answers.
    pub fn message(&self, text: &str) {
        if let Some((bar, _)) = &self.bar {
            bar.set_message(shown(text).into_owned());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((bar, slot)) = &self.bar {
            let mut slot = lock(slot);
            bar.finish_and_clear();
            slot.take();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each holder leaves what it holds whole between two statements, so a panic elsewhere does not spoil it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
