//! The one table of providers: name, address, the key's variable, and how they are spoken to (spec 5.3).

use super::chat_completions::Form;

/// How a provider is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat Completions, which most others speak too.
    ChatCompletions,
    /// Gemini's streamGenerateContent.
    Gemini,
}

/// A provider that is known by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderName {
    /// The part of `--model` before the slash.
    pub name: &'static str,
    /// Where it is asked unless `--base-url` says otherwise.
    pub base_url: &'static str,
    /// The environment variable that holds its key.
    pub key_variable: &'static str,
    /// Whether it answers nobody without a key.
    pub needs_key: bool,
    /// How it is spoken to.
    pub wire: Wire,
    /// What of Chat Completions it understands.
    pub(crate) form: Form,
}

const fn row(
    name: &'static str,
    base_url: &'static str,
    key_variable: &'static str,
    wire: Wire,
) -> ProviderName {
    ProviderName { name, base_url, key_variable, needs_key: true, wire, form: Form::HOSTED }
}

const fn local(name: &'static str, base_url: &'static str, key_variable: &'static str) -> ProviderName {
    ProviderName {
        name,
        base_url,
        key_variable,
        needs_key: false,
        wire: Wire::ChatCompletions,
        form: Form::LOCAL,
    }
}

/// Every provider that is known by name.
pub const TABLE: &[ProviderName] = &[
    row("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", Wire::Messages),
    row("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", Wire::Responses),
    row("google", "https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY", Wire::Gemini),
    row("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", Wire::ChatCompletions),
    row("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", Wire::ChatCompletions),
    row("xai", "https://api.x.ai/v1", "XAI_API_KEY", Wire::ChatCompletions),
    row("cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", Wire::ChatCompletions),
    ProviderName {
        form: Form::STRICT,
        ..row("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", Wire::ChatCompletions)
    },
    ProviderName {
        form: Form::LOCAL,
        ..row("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", Wire::ChatCompletions)
    },
    local("ollama", "http://127.0.0.1:11434/v1", "OLLAMA_API_KEY"),
    local("llama.cpp", "http://127.0.0.1:8080/v1", "LLAMA_API_KEY"),
    local("lmstudio", "http://127.0.0.1:1234/v1", "LMSTUDIO_API_KEY"),
    local("vllm", "http://127.0.0.1:8000/v1", "VLLM_API_KEY"),
];

/// The row of a name, if it is known.
pub fn provider_name(name: &str) -> Option<&'static ProviderName> {
    TABLE.iter().find(|row| row.name == name)
}

/// The environment variable that holds a provider's key: the table's, or `NAME_API_KEY` in capitals with `_`
/// for what a variable's name cannot have.
pub fn key_variable(name: &str) -> String {
    match provider_name(name) {
        Some(row) => row.key_variable.to_owned(),
        None => {
            let capitals =
                name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
            format!("{}_API_KEY", capitals.collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_name_and_an_address_of_its_own() {
        for (at, row) in TABLE.iter().enumerate() {
            assert!(
                TABLE[at + 1..].iter().all(|other| other.name != row.name && other.base_url != row.base_url)
            );
            assert!(super::super::address::Address::parse(row.base_url).is_ok(), "{}", row.name);
            assert_eq!(row.needs_key, row.base_url.starts_with("https:"), "{}", row.name);
        }
    }

    #[test]
    fn unknown_names_have_a_variable_too() {
        assert_eq!(key_variable("openai"), "OPENAI_API_KEY");
        assert_eq!(key_variable("my-proxy.v2"), "MY_PROXY_V2_API_KEY");
    }
}
