//! What a model is asked: the texts of all requests, built and nothing sent (spec 5.2).

use session_model::prompts::{PromptName, Prompts};

use crate::provider::Request;

/// Which summary a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Of the history.
    History,
    /// Of the first part of a split turn.
    TurnPrefix,
    /// A few sentences.
    Short,
    /// Of an abandoned branch.
    Branch,
}

impl Kind {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::History => "history",
            Kind::TurnPrefix => "turn_prefix",
            Kind::Short => "short",
            Kind::Branch => "branch",
        }
    }
}

/// What a user or a hook adds to the requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestOptions {
    /// What the user wants the summary to attend to; for a branch, what is asked in place of the prompt.
    pub instructions: Option<String>,
    /// A hook's prompt in place of ours.
    pub prompt: Option<String>,
    /// A hook's lines of context.
    pub context: Vec<String>,
}

/// The texts around a transcript.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The prompts.
    pub prompts: &'a Prompts,
    /// What is added.
    pub options: &'a RequestOptions,
    /// Most tokens of the answer.
    pub max_output_tokens: u64,
}

impl Frame<'_> {
    /// The request for a summary of `kind`, of this transcript.
    pub fn request(&self, kind: Kind, transcript: &str, previous_summary: Option<&str>) -> Request {
        let mut prompt = format!("<conversation>\n{transcript}\n</conversation>\n\n");
        if let Some(previous) = previous_summary {
            prompt.push_str(&format!("<previous-summary>\n{previous}\n</previous-summary>\n\n"));
        }
        if matches!(kind, Kind::History | Kind::Short) && !self.options.context.is_empty() {
            let lines: Vec<String> = self.options.context.iter().map(|line| format!("- {line}")).collect();
            prompt
                .push_str(&format!("<additional-context>\n{}\n</additional-context>\n\n", lines.join("\n")));
        }
        prompt.push_str(&self.task(kind, previous_summary.is_some()));
        Request {
            system: self.prompts.text(PromptName::System),
            prompt,
            max_output_tokens: self.max_output_tokens,
        }
    }

    /// What the model is to do with the transcript.
    fn task(&self, kind: Kind, is_update: bool) -> String {
        let instructions = self.options.instructions.as_deref().filter(|text| !text.is_empty());
        match kind {
            Kind::History => {
                let name =
                    if is_update { PromptName::CompactionUpdate } else { PromptName::CompactionSummary };
                let base = self.options.prompt.clone().unwrap_or_else(|| self.prompts.text(name));
                match instructions {
                    Some(instructions) => format!("{base}\n\nAdditional focus: {instructions}"),
                    None => base,
                }
            }
            // A window behind the first one goes on from what was made of those before it.
            Kind::TurnPrefix if is_update => self.prompts.text(PromptName::CompactionUpdate),
            Kind::TurnPrefix => self.prompts.text(PromptName::TurnPrefix),
            Kind::Short => self.prompts.text(PromptName::ShortSummary),
            Kind::Branch => {
                instructions.map_or_else(|| self.prompts.text(PromptName::BranchSummary), str::to_owned)
            }
        }
    }
}
