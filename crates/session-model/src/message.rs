//! Messages: roles, content blocks, tool calls, usage, and what the reading pass keeps of each.

use std::ops::Deref;

use crate::entry::NameNo;
use crate::printed::Printed;
use crate::scan::{ScanError, Walker};
use crate::strings::Marked;
use crate::text::Str;
use crate::tokens::{IMAGE_UNITS, Tokenizer, from_units};
use crate::value::Value;

macro_rules! roles {
    ($($(#[$doc:meta])* $role:ident = $wire:literal,)*) => {
        /// Who speaks (spec 1.4).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Role {
            $($(#[$doc])* $role,)*
            /// A role that is not known; the model does not get it.
            Unknown,
        }

        impl Role {
            /// The role with this wire name. `hookMessage` is the older name of `custom`.
            pub fn from_wire(name: &str) -> Role {
                match name {
                    $($wire => Role::$role,)*
                    "hookMessage" => Role::Custom,
                    _ => Role::Unknown,
                }
            }

            /// The wire name; `unknown` for all that have none here.
            pub fn wire(self) -> &'static str {
                match self {
                    $(Role::$role => $wire,)*
                    Role::Unknown => "unknown",
                }
            }
        }
    };
}

roles! {
    /// The user.
    User = "user",
    /// The program that runs the agent.
    Developer = "developer",
    /// The system prompt and tools (pi).
    System = "system",
    /// The model.
    Assistant = "assistant",
    /// What a tool call gave.
    ToolResult = "toolResult",
    /// A shell command of the user's own.
    BashExecution = "bashExecution",
    /// Python code of the user's own.
    PythonExecution = "pythonExecution",
    /// An extension.
    Custom = "custom",
    /// Files that the user named.
    FileMention = "fileMention",
    /// A summary of an abandoned branch, made in memory.
    BranchSummary = "branchSummary",
    /// A compaction's summary, made in memory.
    CompactionSummary = "compactionSummary",
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It was done.
    Stop,
    /// It ran into the output limit.
    Length,
    /// It waits for tools.
    ToolUse,
    /// The request failed.
    Error,
    /// The user stopped it.
    Aborted,
    /// Anything else.
    Other,
}

impl StopReason {
    fn from_wire(name: &str) -> StopReason {
        match name {
            "stop" => StopReason::Stop,
            "length" => StopReason::Length,
            "toolUse" => StopReason::ToolUse,
            "error" => StopReason::Error,
            "aborted" => StopReason::Aborted,
            _ => StopReason::Other,
        }
    }

    /// Whether the message is no full answer.
    pub fn is_failure(self) -> bool {
        matches!(self, StopReason::Error | StopReason::Aborted)
    }
}

/// Tokens that the provider counted; a missing number is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Prompt tokens that were not cached.
    pub input: f64,
    /// Answer tokens.
    pub output: f64,
    /// Prompt tokens from the cache.
    pub cache_read: f64,
    /// Prompt tokens put into the cache.
    pub cache_write: f64,
    /// The provider's own sum.
    pub total: f64,
}

impl Usage {
    /// Whether every number is 0, as in messages that never reached a provider (spec D9).
    pub fn is_zero(&self) -> bool {
        *self == Usage::default()
    }

    /// Tokens of the context with the answer (spec 3.2).
    pub fn context_tokens(&self) -> f64 {
        if self.total > 0.0 {
            self.total
        } else {
            self.input + self.output + self.cache_read + self.cache_write
        }
    }

    /// Tokens of the prompt alone, or [`Usage::context_tokens`] if they are 0.
    pub fn prompt_tokens(&self) -> f64 {
        let prompt = self.input + self.cache_read + self.cache_write;
        if prompt > 0.0 { prompt } else { self.context_tokens() }
    }
}

/// What a call of a file tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileAction {
    /// `read`.
    Read,
    /// `write`.
    Write,
    /// `edit`.
    Edit,
}

impl FileAction {
    fn of_tool(name: &str) -> Option<FileAction> {
        match name {
            "read" => Some(FileAction::Read),
            "write" => Some(FileAction::Write),
            "edit" => Some(FileAction::Edit),
            _ => None,
        }
    }
}

/// A file that a tool call touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOp {
    /// What was done.
    pub action: FileAction,
    /// The path as the call had it.
    pub path: Box<str>,
}

/// A tool call of an assistant message.
#[derive(Clone, Debug)]
pub struct Call {
    /// Id that its result names.
    pub id: NameNo,
    /// The tool.
    pub tool: NameNo,
    /// The file that it touches, for the file tools.
    pub file: Option<FileOp>,
}

/// What the reading pass keeps of a message. It is kept for each of them, so that what few have is apart: [`RareFacts`], whose
/// fields are reached as if they stood here.
#[derive(Clone, Debug)]
pub struct MessageFacts {
    /// Who speaks.
    pub role: Role,
    /// Why an assistant message ended.
    pub stop_reason: Option<StopReason>,
    /// Whether a tool result is an error.
    pub is_error: bool,
    /// Whether an execution is excluded from the context.
    pub is_excluded: bool,
    /// The call that a tool result answers.
    pub answers: Option<NameNo>,
    /// The tool that a tool result comes from.
    pub tool: Option<NameNo>,
    /// Provider and model of an assistant message.
    pub model: Option<(NameNo, NameNo)>,
    /// Calls of an assistant message.
    pub calls: Box<[Call]>,
    /// What the provider counted.
    pub usage: Option<Usage>,
    rare: Option<Box<RareFacts>>,
}

/// What the reading pass keeps of some messages only.
#[derive(Clone, Debug, Default)]
pub struct RareFacts {
    /// When a tool result was pruned, in milliseconds.
    pub pruned_at: Option<f64>,
    /// What a pruned tool result is said to have cost before: the number in the notice that took its place.
    pub pruned_tokens: Option<u64>,
    /// What a failed message says.
    pub error_message: Option<Box<str>>,
    /// Files touched by nested calls of a pi tool result (spec D21).
    pub nested_files: Vec<FileOp>,
    /// Number of images.
    pub n_images: u32,
    /// Bytes of image data, as base64.
    pub image_bytes: u64,
    /// The start of a user message, for lists.
    pub preview: Option<Box<str>>,
    /// A system message, whole, as JSON: it is folded with others.
    pub system: Option<Box<str>>,
}

static NOTHING_RARE: RareFacts = RareFacts {
    pruned_at: None,
    pruned_tokens: None,
    error_message: None,
    nested_files: Vec::new(),
    n_images: 0,
    image_bytes: 0,
    preview: None,
    system: None,
};

impl Deref for MessageFacts {
    type Target = RareFacts;

    fn deref(&self) -> &RareFacts {
        self.rare.as_deref().unwrap_or(&NOTHING_RARE)
    }
}

/// Turns names into numbers while a session is read.
pub(crate) trait Names {
    fn name(&mut self, text: &str) -> NameNo;
}

/// What a scan of a message gives.
pub(crate) struct MessageScan {
    pub(crate) facts: MessageFacts,
    pub(crate) estimate: u64,
}

/// A block of content while its kind is not known yet: kinds may come behind what they name.
#[derive(Default)]
struct BlockScan<'a> {
    kind: &'a str,
    text_units: u64,
    thinking_units: u64,
    data_bytes: u64,
    id: &'a str,
    name: &'a str,
    name_units: u64,
    arguments: Option<Printed>,
}

/// Reads the message that comes next.
///
/// # Errors
/// The first byte that is not JSON.
pub(crate) fn scan_message(
    walker: &mut Walker<'_, Marked<'_>>,
    names: &mut impl Names,
    tokenizer: Tokenizer,
) -> Result<MessageScan, ScanError> {
    let mut role = None;
    let mut content_units = 0;
    let mut n_images = 0u32;
    let mut image_bytes = 0;
    let mut calls = Vec::new();
    let (mut call_id, mut tool) = ("", None);
    let (mut provider, mut model) = (None, None);
    let mut preview = None;
    let mut nested = None;
    let (mut pruned_at, mut error_message) = (None, None);
    let mut facts = MessageFacts::empty(Role::Unknown);
    let whole = walker.clone();
    walker.peek();
    let start = walker.position();
    if walker.peek() != b'{' {
        walker.skip()?;
        return Ok(MessageScan { facts, estimate: 0 });
    }
    walker.object(|walker, key| {
        match key {
            "role" => role = walker.string_or_skip()?.map(|scan| walker.raw(&scan)),
            "content" => {
                content_units = 0;
                n_images = 0;
                image_bytes = 0;
                calls.clear();
                preview = None;
                match walker.peek() {
                    b'"' => {
                        let scan = walker.string()?;
                        content_units = walker.units(&scan);
                        preview = Some(walker.raw(&scan));
                    }
                    b'[' => walker.array(|walker| {
                        if walker.peek() != b'{' {
                            return walker.skip().map(|_| ());
                        }
                        let block = scan_block(walker, &mut preview)?;
                        match block.kind {
                            "text" => content_units += block.text_units,
                            "thinking" => content_units += block.thinking_units,
                            "image" => {
                                n_images += 1;
                                image_bytes += block.data_bytes;
                            }
                            "toolCall" => {
                                content_units += block.name_units + arguments_units(walker, &block);
                                let name = Str::Raw(block.name).into_text();
                                let file = FileAction::of_tool(&name).and_then(|action| {
                                    let path = Str::Raw(walker.raw(&block.arguments?.path?)).into_text();
                                    (!path.is_empty()).then(|| FileOp { action, path: path.as_ref().into() })
                                });
                                let (id, tool) = (names.name(&Str::Raw(block.id).text()), names.name(&name));
                                // Mostly there is one call, and it is kept.
                                calls.reserve_exact(1 + calls.len() / 2);
                                calls.push(Call { id, tool, file });
                            }
                            _ => {}
                        }
                        Ok(())
                    })?,
                    _ => {
                        walker.skip()?;
                    }
                }
            }
            "toolCallId" => call_id = walker.string_or_skip()?.map_or("", |scan| walker.raw(&scan)),
            "toolName" => tool = walker.string_or_skip()?.map(|scan| walker.raw(&scan)),
            "isError" => facts.is_error = walker.is_true()?,
            "prunedAt" => pruned_at = walker.number()?,
            "excludeFromContext" => facts.is_excluded = walker.is_true()?,
            "provider" => provider = walker.string_or_skip()?.map(|scan| walker.raw(&scan)),
            "model" => model = walker.string_or_skip()?.map(|scan| walker.raw(&scan)),
            "usage" => facts.usage = scan_usage(walker)?,
            "stopReason" => {
                facts.stop_reason =
                    walker.string_or_skip()?.map(|scan| StopReason::from_wire(walker.raw(&scan)));
            }
            "errorMessage" => {
                error_message = walker.string_or_skip()?.map(|scan| walker.raw(&scan));
            }
            "nestedCalls" => nested = Some(walker.skip()?),
            _ => {
                walker.skip()?;
            }
        }
        Ok(())
    })?;
    let end = walker.position();
    facts.role = Role::from_wire(&Str::Raw(role.unwrap_or("")).text());
    if n_images > 0 {
        facts.rare().n_images = n_images;
        facts.rare().image_bytes = image_bytes;
    }
    if let Some(text) = error_message {
        facts.rare().error_message = Some(Str::Raw(text).text().into());
    }
    if pruned_at.is_some() {
        facts.rare().pruned_at = pruned_at;
    }
    let mut estimate = from_units(content_units + u64::from(n_images) * IMAGE_UNITS);
    match facts.role {
        Role::User => {
            if let Some(preview) = preview {
                facts.rare().preview = Some(crate::preview::preview(preview));
            }
        }
        Role::Assistant => {
            facts.calls = calls.into();
            if let (Some(provider), Some(model)) = (provider, model) {
                facts.model =
                    Some((names.name(&Str::Raw(provider).text()), names.name(&Str::Raw(model).text())));
            }
        }
        Role::ToolResult => {
            facts.answers = Some(names.name(&Str::Raw(call_id).text()));
            facts.tool = tool.map(|tool| names.name(&Str::Raw(tool).text()));
            if let Some(tokens) = pruned_at.and(preview).and_then(tokens_in_notice) {
                facts.rare().pruned_tokens = Some(tokens);
            }
            if let Some((start, end)) = nested {
                let files = nested_files(whole.slice(start, end));
                if !files.is_empty() {
                    facts.rare().nested_files = files;
                }
            }
        }
        Role::System => facts.rare().system = Some(whole.slice(start, end).into()),
        Role::Unknown => estimate = 0,
        Role::Developer
        | Role::BashExecution
        | Role::PythonExecution
        | Role::Custom
        | Role::FileMention
        | Role::BranchSummary
        | Role::CompactionSummary => {}
    }
    let is_plain = matches!(
        facts.role,
        Role::User | Role::Developer | Role::Assistant | Role::ToolResult | Role::Custom
    );
    if facts.role != Role::Unknown && (!is_plain || tokenizer.needs_text()) {
        let value = Value::parse(whole.slice(start, end))?;
        estimate = tokenizer.message(&value);
        if facts.role == Role::FileMention {
            let files = value.get("files").map_or(&[][..], Value::items);
            let n_images = files.iter().filter(|file| file.get("image").is_some()).count();
            if n_images > 0 || facts.n_images > 0 {
                facts.rare().n_images = n_images as u32;
            }
        }
    }
    Ok(MessageScan { facts, estimate })
}

impl MessageFacts {
    pub(crate) fn empty(role: Role) -> MessageFacts {
        MessageFacts {
            role,
            stop_reason: None,
            is_error: false,
            is_excluded: false,
            answers: None,
            tool: None,
            model: None,
            calls: Box::default(),
            usage: None,
            rare: None,
        }
    }

    fn rare(&mut self) -> &mut RareFacts {
        self.rare.get_or_insert_default()
    }

    /// Whether the message reaches the model, whatever an edit says.
    pub fn reaches_model(&self) -> bool {
        self.role != Role::Unknown && !self.is_excluded
    }

    /// Whether it is an assistant message that is no full answer.
    pub fn is_failed(&self) -> bool {
        self.role == Role::Assistant && self.stop_reason.is_some_and(StopReason::is_failure)
    }
}

fn scan_block<'a>(
    walker: &mut Walker<'a, Marked<'_>>,
    preview: &mut Option<&'a str>,
) -> Result<BlockScan<'a>, ScanError> {
    let mut block = BlockScan::default();
    let mut text = None;
    walker.object(|walker, key| {
        match key {
            "type" => block.kind = walker.string_or_skip()?.map_or("", |scan| walker.raw(&scan)),
            "text" => {
                let scan = walker.string_or_skip()?;
                block.text_units = scan.map_or(0, |scan| walker.units(&scan));
                text = scan.map(|scan| walker.raw(&scan));
            }
            "thinking" => {
                block.thinking_units = walker.string_or_skip()?.map_or(0, |scan| walker.units(&scan));
            }
            "data" => {
                block.data_bytes = walker.string_or_skip()?.map_or(0, |scan| (scan.end - scan.start) as u64)
            }
            "id" => block.id = walker.string_or_skip()?.map_or("", |scan| walker.raw(&scan)),
            "name" => {
                let scan = walker.string_or_skip()?;
                block.name_units = scan.map_or(0, |scan| walker.units(&scan));
                block.name = scan.map_or("", |scan| walker.raw(&scan));
            }
            "arguments" => {
                block.arguments = Some(walker.printed()?);
            }
            _ => {
                walker.skip()?;
            }
        }
        Ok(())
    })?;
    if block.kind == "text" && preview.is_none() {
        *preview = text;
    }
    Ok(block)
}

fn arguments_units(walker: &Walker<'_, Marked<'_>>, block: &BlockScan<'_>) -> u64 {
    let Some(arguments) = block.arguments else { return 0 };
    let raw = walker.slice(arguments.range.0, arguments.range.1);
    if arguments.as_it_stands {
        return crate::text::units(raw);
    }
    crate::text::units(&Value::parse(raw).expect("the walker has been over it").to_json())
}

fn scan_usage(walker: &mut Walker<'_, Marked<'_>>) -> Result<Option<Usage>, ScanError> {
    if walker.peek() != b'{' {
        walker.skip()?;
        return Ok(None);
    }
    let mut usage = Usage::default();
    walker.object(|walker, key| {
        let field = match key {
            "input" => &mut usage.input,
            "output" => &mut usage.output,
            "cacheRead" => &mut usage.cache_read,
            "cacheWrite" => &mut usage.cache_write,
            "totalTokens" => &mut usage.total,
            _ => return walker.skip().map(|_| ()),
        };
        *field = walker.number()?.filter(|number| number.is_finite()).unwrap_or(0.0);
        Ok(())
    })?;
    Ok(Some(usage))
}

/// What a pruned tool result says in place of its content (spec part 4).
pub fn pruned_notice(tokens: u64) -> String {
    format!("{NOTICE_START}{tokens}{NOTICE_END}")
}

const NOTICE_START: &str = "[Output truncated - ";
const NOTICE_END: &str = " tokens]";

fn tokens_in_notice(notice: &str) -> Option<u64> {
    notice.strip_prefix(NOTICE_START)?.strip_suffix(NOTICE_END)?.parse().ok()
}

fn nested_files(json: &str) -> Vec<FileOp> {
    let Ok(value) = Value::parse(json) else { return Vec::new() };
    let file = |call: &Value<'_>| {
        let action = FileAction::of_tool(&call.text("name").or_else(|| call.text("toolName"))?)?;
        let arguments = call.get("arguments").or_else(|| call.get("args"))?;
        let path = arguments.text("path").filter(|path| !path.is_empty())?;
        Some(FileOp { action, path: path.as_ref().into() })
    };
    value.items().iter().filter_map(file).collect()
}

/// The tool calls among the blocks of `content`.
pub(crate) fn calls_in(content: &Value<'_>, names: &mut impl Names) -> Box<[Call]> {
    let calls = content.items().iter().filter(|block| block.text("type").as_deref() == Some("toolCall"));
    calls
        .map(|block| {
            let name = block.text("name").unwrap_or_default();
            let path = block.get("arguments").and_then(|arguments| arguments.text("path"));
            let file = FileAction::of_tool(&name)
                .zip(path.filter(|path| !path.is_empty()))
                .map(|(action, path)| FileOp { action, path: path.as_ref().into() });
            Call { id: names.name(&block.text("id").unwrap_or_default()), tool: names.name(&name), file }
        })
        .collect()
}
