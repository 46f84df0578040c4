//! `sesstool context`: exactly what the model would see.

use clap::{Args, ValueEnum};
use session_model::agent_message::{AgentMessage, agent_messages};
use session_model::branch::Branch;
use session_model::dialect::Dialect;
use session_model::error::Problem;
use session_model::model_message::model_message;
use session_model::prompts::Prompts;
use session_model::sequence::Sequence;
use session_model::session::Session;
use session_model::state::State;
use session_model::text::shown;
use session_model::validate::validate;
use session_model::value::{Object, Value};

use crate::app::App;
use crate::args::PathArgs;
use crate::discover::{Stdin, Without, discover};
use crate::exit::{CommandError, Status};
use crate::figures::count;
use crate::report::{Outcome, Record, Reporter};
use crate::session_file::{Loaded, SessionFile};
use crate::{batch, leaf, prompts};

mod blobs;
mod markdown;
mod stream;
mod text;
mod wire;

/// Print what the model would see
///
/// The context of the branch that ends at the last entry, or at --leaf. What a provider would refuse is said on standard
/// error; the context is printed nevertheless.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sesstool context session.jsonl | less
  sesstool context --format jsonl session.jsonl | jq -r .role
  sesstool context --format anthropic session.jsonl > request.json")]
pub struct ContextArgs {
    #[command(flatten)]
    paths: PathArgs,
    /// How to print it; anthropic, openai, responses and gemini are request bodies, ready to be posted
    #[arg(short = 'F', long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    /// The branch, by its last entry [default: the last entry of the file]
    #[arg(long, value_name = "ID")]
    leaf: Option<String>,
    /// Print the messages as the agent holds them, before they are made ready for the model
    #[arg(long)]
    agent: bool,
    /// With a request body: the model to put into it [default: the session's]
    #[arg(short, long, value_name = "ID")]
    model: Option<String>,
    /// With a request body: most tokens of the answer, where the API wants it said
    #[arg(long, value_name = "N", default_value_t = 16_384)]
    max_tokens: u64,
    /// Folder with prompts of your own: what wraps summaries
    #[arg(long, value_name = "DIR")]
    prompts: Option<std::path::PathBuf>,
}

/// Values of `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For a person: a titled block for each message.
    Text,
    /// State and messages, one object a session.
    Json,
    /// One message a line.
    Jsonl,
    /// Markdown.
    Markdown,
    /// A body for Anthropic's Messages API.
    Anthropic,
    /// A body for OpenAI's Chat Completions API and all that speak it.
    Openai,
    /// A body for OpenAI's Responses API.
    Responses,
    /// A body for Google's Gemini API.
    Gemini,
}

/// A context that is ready to be printed.
pub(crate) struct Context<'a> {
    pub(crate) sequence: &'a Sequence<'a>,
    pub(crate) messages: Vec<AgentMessage<'a>>,
    pub(crate) state: State,
}

/// Faults and notes that are said one by one; a broken session has thousands.
const SHOWN_FINDINGS: usize = 10;

/// What is to be printed and what there is to say.
struct Printed {
    output: Output,
    notes: Vec<String>,
}

/// What is to be printed.
enum Output {
    /// This.
    Bytes(Vec<u8>),
    /// The messages of a large session, written while the file is read a second time: neither it nor its context is ever in
    /// memory as a whole.
    Messages(Box<stream::Indexed>),
}

/// Runs the command.
///
/// # Errors
/// Wrong usage or settings, or standard output cannot be written.
pub fn run(app: &App, args: &ContextArgs) -> Result<Status, CommandError> {
    let settings = app.settings(&[])?;
    let folder = args.prompts.clone().or_else(|| settings.prompts_dir(&app.env));
    let prompts = prompts::load(folder.as_deref())?;
    let format = if app.globals.json && args.format == Format::Text { Format::Json } else { args.format };
    if args.agent && wire::format(format).is_some() {
        return Err(CommandError::usage("a request body is made of model messages")
            .hint("use --agent with --format text, json, jsonl or markdown"));
    }
    let read = app.read_options(&settings);
    let items = discover(app, &args.paths, Stdin::Allowed, Without::Newest)?;
    let has_many = items.len() > 1;
    let work = |file: &SessionFile, worker: &batch::Worker<'_>| {
        if stream::is_for(format, file) {
            let (indexed, notes) = stream::index(args, read, file, worker)?;
            return Ok(Printed { output: Output::Messages(Box::new(indexed)), notes });
        }
        let loaded = file.load(read, worker)?;
        print(app, args, format, &prompts, file, &loaded)
    };
    let mut reporter = Reporter::new(app, false);
    let mut is_first = true;
    batch::map_within(2, app, &items, work, |item, result| {
        let name = crate::report::named(&item.path);
        match result {
            Ok(printed) => {
                for note in &printed.notes {
                    app.printer.warn(&format!("{name}: {note}"));
                }
                let mut outcome = Ok(Outcome::Done(()));
                app.printer.data(|out| {
                    if has_many && matches!(format, Format::Text | Format::Markdown) {
                        let gap = if is_first { "" } else { "\n" };
                        writeln!(out, "{gap}{}\n", app.printer.paint().bold(shown(&name)))?;
                    }
                    match &printed.output {
                        Output::Bytes(bytes) => out.write_all(bytes),
                        Output::Messages(indexed) => {
                            let writer = MessageWriter::new(app, args, format, &prompts);
                            let result = indexed.write(writer, out)?;
                            outcome = result.map(Outcome::Done);
                            Ok(())
                        }
                    }
                })?;
                is_first = false;
                if let Err(error) = &outcome {
                    app.printer.error(error);
                }
                reporter.tally::<()>(item, &outcome);
            }
            Err(error) => {
                app.printer.error(&error);
                let result: Result<Outcome<()>, CommandError> = Err(error);
                reporter.tally(item, &result);
                if format == Format::Json {
                    reporter.json(&Record::new(&item.path, result))?;
                }
            }
        }
        Ok(())
    })?;
    Ok(reporter.status(false))
}

fn print(
    app: &App,
    args: &ContextArgs,
    format: Format,
    prompts: &Prompts,
    file: &SessionFile,
    loaded: &Loaded,
) -> Result<Printed, CommandError> {
    let at = |error| CommandError::from((&*file.path, error));
    let session = &loaded.session;
    let branch = leaf::branch(&file.path, session, args.leaf.as_deref())?;
    let sequence = branch.effective();
    let mut notes = notes(args, &loaded.problems, &branch, &sequence);
    let records: &[u8] = &loaded.bytes;
    let messages = agent_messages(&sequence, records).map_err(at)?;
    let mut writer = MessageWriter::new(app, args, format, prompts);
    if matches!(format, Format::Text | Format::Markdown | Format::Jsonl) {
        // A text that grows is copied again and again; memory that is not written to costs nothing.
        writer.text.reserve(records.len());
        writer.begin(session);
        messages.into_iter().for_each(|message| writer.message(session, message));
        return Ok(Printed { output: Output::Bytes(writer.text.into_bytes()), notes });
    }
    let messages = messages.into_iter().filter_map(|message| writer.seen(message)).collect();
    let context = Context { sequence: &sequence, messages, state: State::of(&branch) };
    let mut bytes = Vec::new();
    match wire::format(format) {
        Some(format) => notes.extend(wire::write(app, args, format, &context, &mut bytes)),
        None => json(&context, file, &mut bytes),
    }
    Ok(Printed { output: Output::Bytes(bytes), notes })
}

/// Writes messages in the formats that have them one after the other.
struct MessageWriter<'a> {
    format: Format,
    style: text::Style,
    /// Absent where the messages are printed as the agent holds them.
    prompts: Option<&'a Prompts>,
    n_written: usize,
    /// What is written and not taken yet.
    text: String,
}

impl<'a> MessageWriter<'a> {
    fn new(app: &App, args: &ContextArgs, format: Format, prompts: &'a Prompts) -> Self {
        let style = text::Style { paint: app.printer.paint(), is_terminal: app.printer.is_terminal() };
        let prompts = (!args.agent).then_some(prompts);
        MessageWriter { format, style, prompts, n_written: 0, text: String::new() }
    }

    /// The message as it is printed; `None` if the model does not get it.
    fn seen<'r>(&self, message: AgentMessage<'r>) -> Option<AgentMessage<'r>> {
        match self.prompts {
            None => Some(message),
            Some(prompts) => Some(AgentMessage { value: model_message(message.value, prompts)?, ..message }),
        }
    }

    /// Writes what stands before the messages.
    fn begin(&mut self, session: &Session) {
        if self.format == Format::Markdown {
            markdown::write_title(session, &mut self.text);
        }
    }

    fn message(&mut self, session: &Session, message: AgentMessage<'_>) {
        let Some(message) = self.seen(message) else { return };
        match self.format {
            Format::Markdown => {
                let start = self.text.len();
                markdown::write(session, self.n_written, &message, &mut self.text);
                if self.style.is_terminal {
                    let shown = text::harmless(&self.text[start..]).into_owned();
                    self.text.replace_range(start.., &shown);
                }
            }
            Format::Jsonl => {
                message.value.write_json(&mut self.text);
                self.text.push('\n');
            }
            _ => text::write(session, self.n_written, &message, self.style, &mut self.text),
        }
        self.n_written += 1;
    }
}

/// What is to be said of a context beside the context.
fn notes(args: &ContextArgs, found: &[Problem], branch: &Branch<'_>, sequence: &Sequence<'_>) -> Vec<String> {
    let session = sequence.session;
    let mut notes = Vec::new();
    if let Some(first) = found.first() {
        let problems = count(found.len() as u64, "problem");
        notes.push(format!("{problems} in the file, first in line {}; see sesstool doctor", first.line));
    }
    if args.leaf.is_none() {
        notes.extend(leaf::elsewhere(session, branch));
    }
    if let Some(problem) = &sequence.problem {
        notes.push(problem.to_string());
    }
    let findings = validate(sequence);
    for finding in findings.iter().take(SHOWN_FINDINGS) {
        let kind = if finding.kind.is_fault() { "fault" } else { "note" };
        let (entry, call) = (session.id(finding.entry), session.name(finding.call));
        notes.push(format!("{kind}: {} at entry {entry} (call {call})", finding.kind));
    }
    if findings.len() > SHOWN_FINDINGS {
        let more = findings.len() - SHOWN_FINDINGS;
        notes.push(format!("{more} more faults and notes; sesstool doctor lists them all"));
    }
    notes
}

/// The state in oh-my-pi's fields, and in pi files pi's own beside them.
fn state_fields(state: &State, dialect: Dialect) -> Object<'static> {
    let mut fields = state.to_json(Dialect::OhMyPi);
    if dialect == Dialect::Pi {
        for (key, value) in state.to_json(Dialect::Pi).iter() {
            fields.set(key.clone(), value.clone());
        }
    }
    fields
}

/// State and messages as one object.
fn json(context: &Context<'_>, file: &SessionFile, bytes: &mut Vec<u8>) {
    let mut object = Object::new();
    object.set("file", file.path.to_string_lossy().into_owned());
    let session = context.sequence.session;
    object.set("sessionId", session.header.id.clone());
    let leaf = context.sequence.branch.last().map(|&leaf| Value::from(session.id(leaf).to_owned()));
    object.set("leafId", leaf.unwrap_or(Value::Null));
    for (key, value) in state_fields(&context.state, session.dialect).iter() {
        object.set(key.clone(), value.clone());
    }
    let messages = context.messages.iter().map(|message| message.value.clone()).collect();
    object.set("messages", Value::Array(messages));
    bytes.extend_from_slice(Value::Object(object).to_json().as_bytes());
    bytes.push(b'\n');
}
