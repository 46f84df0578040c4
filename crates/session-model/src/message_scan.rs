//! The reading pass over one message: its facts and its estimate, without its content.

use crate::message::{FileAction, Role, StopReason, Usage, tokens_in_notice};
use crate::message_facts::{Call, Calls, FileOp, MessageFacts, UsageFacts};
use crate::names::NameSet;
use crate::preview::put_preview;
use crate::printed::Printed;
use crate::scan::{ScanError, Walker};
use crate::strings::Marked;
use crate::text::Str;
use crate::tokens::{IMAGE_UNITS, Tokenizer, from_units};
use crate::value::Value;

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
    names: &mut NameSet,
    tokenizer: Tokenizer,
) -> Result<MessageScan, ScanError> {
    let mut role = None;
    let mut content_units = 0;
    let mut n_images = 0u32;
    let mut image_bytes = 0;
    let mut calls = Calls::None;
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
                calls = Calls::None;
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
                                    (!path.is_empty()).then(|| FileOp { action, path: names.insert(&path) })
                                });
                                let (id, tool) =
                                    (names.insert(&Str::Raw(block.id).text()), names.insert(&name));
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
            "usage" => facts.usage = scan_usage(walker)?.map_or(UsageFacts::None, UsageFacts::new),
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
                facts.preview = Some(names.keep(|texts| put_preview(preview, texts)));
            }
        }
        Role::Assistant => {
            facts.calls = calls;
            if let (Some(provider), Some(model)) = (provider, model) {
                facts.model =
                    Some((names.insert(&Str::Raw(provider).text()), names.insert(&Str::Raw(model).text())));
            }
        }
        Role::ToolResult => {
            facts.answers = Some(names.insert(&Str::Raw(call_id).text()));
            facts.tool = tool.map(|tool| names.insert(&Str::Raw(tool).text()));
            if let Some(tokens) = pruned_at.and(preview).and_then(tokens_in_notice) {
                facts.rare().pruned_tokens = Some(tokens);
            }
            if let Some((start, end)) = nested {
                let files = nested_files(whole.slice(start, end), names);
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

fn nested_files(json: &str, names: &mut NameSet) -> Vec<FileOp> {
    let Ok(value) = Value::parse(json) else { return Vec::new() };
    let mut file = |call: &Value<'_>| {
        let action = FileAction::of_tool(&call.text("name").or_else(|| call.text("toolName"))?)?;
        let arguments = call.get("arguments").or_else(|| call.get("args"))?;
        let path = arguments.text("path").filter(|path| !path.is_empty())?;
        Some(FileOp { action, path: names.insert(&path) })
    };
    value.items().iter().filter_map(&mut file).collect()
}

/// The tool calls among the blocks of `content`.
pub(crate) fn calls_in(content: &Value<'_>, names: &mut NameSet) -> Box<[Call]> {
    let calls = content.items().iter().filter(|block| block.text("type").as_deref() == Some("toolCall"));
    calls
        .map(|block| {
            let name = block.text("name").unwrap_or_default();
            let path = block.get("arguments").and_then(|arguments| arguments.text("path"));
            let file = FileAction::of_tool(&name)
                .zip(path.filter(|path| !path.is_empty()))
                .map(|(action, path)| FileOp { action, path: names.insert(&path) });
            Call { id: names.insert(&block.text("id").unwrap_or_default()), tool: names.insert(&name), file }
        })
        .collect()
}
