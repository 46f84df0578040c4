//! What is known of models: window, output limit, price (spec 5.3). A table that `cargo xtask models` writes.

use std::sync::LazyLock;

use crate::provider::Usage;

/// What is known of one model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// The provider's name as in `--model`.
    pub provider: &'static str,
    /// The model's id.
    pub id: &'static str,
    /// The most tokens of a request.
    pub window: u64,
    /// The most tokens of an answer.
    pub max_output: Option<u64>,
    /// US dollars for a million tokens; `None` where the price is not known.
    pub price: Option<Price>,
    /// The least effort of reasoning that it can be asked for, if it reasons and that is known.
    pub least_effort: Option<&'static str>,
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Of a request.
    pub input: f64,
    /// Of an answer.
    pub output: f64,
    /// Of a request, read from a cache; as `input` where it is not known.
    pub cache_read: Option<f64>,
    /// Of a request, written to a cache; as `input` where it is not known.
    pub cache_write: Option<f64>,
}

impl Price {
    /// What the usage costs, in US dollars.
    pub fn of(&self, usage: &Usage) -> f64 {
        let part = |tokens: Option<u64>, price: f64| tokens.unwrap_or(0) as f64 * price / 1e6;
        part(usage.input, self.input)
            + part(usage.output, self.output)
            + part(usage.cache_read, self.cache_read.unwrap_or(self.input))
            + part(usage.cache_write, self.cache_write.unwrap_or(self.input))
    }
}

/// The table as it is written: a comment about its source, a line of names, then a line for each model.
const FILE: &str = include_str!("models.tsv");

static MODELS: LazyLock<Vec<Model>> =
    LazyLock::new(|| FILE.lines().filter(|line| !line.starts_with('#')).skip(1).filter_map(model).collect());

/// Every known model, sorted by provider and id.
pub fn all() -> &'static [Model] {
    &MODELS
}

/// The comment lines of the table: where it comes from, at which version, under which licence.
pub fn source() -> impl Iterator<Item = &'static str> {
    FILE.lines().take_while(|line| line.starts_with('#')).map(|line| line.trim_start_matches(['#', ' ']))
}

/// The facts of a model, if it is known.
///
/// `id` may carry a date or version at its end (`-20250929`, `-2025-08-07`, `-latest`, `@20250929`, `:free`) that
/// the table has not, or lack one that it has; it may carry a provider before a slash (`anthropic/claude-…`, as
/// gateways name it). A gateway's own entry goes before the maker's; a proxy of another name is looked through.
pub fn find(provider: &str, id: &str) -> Option<&'static Model> {
    let id = id.strip_prefix("models/").unwrap_or(id);
    if let Some(model) = in_provider(provider, id) {
        return Some(model);
    }
    // `openrouter/anthropic/claude-sonnet-4.5`, `my-proxy/openai/gpt-5`
    if let Some((maker, rest)) = id.split_once('/') {
        let maker = match maker {
            "gemini" | "google" => "google",
            "x-ai" => "xai",
            "mistralai" => "mistral",
            other => other,
        };
        return in_provider(maker, rest).or_else(|| find(maker, rest).filter(|_| rest.contains('/')));
    }
    None
}

/// As [`find`], for a name in one piece, `NAME/ID`; a bare id is looked for in all providers.
pub fn find_named(name: &str) -> Option<&'static Model> {
    match name.split_once('/') {
        Some((provider, id)) => find(provider, id),
        None => ["anthropic", "openai", "google"].iter().find_map(|provider| in_provider(provider, name)),
    }
}

fn in_provider(provider: &str, id: &str) -> Option<&'static Model> {
    let exact = |id: &str| {
        let at = MODELS.binary_search_by(|model| (model.provider, model.id).cmp(&(provider, id))).ok()?;
        Some(&MODELS[at])
    };
    let bare = undated(id);
    // Gateways spell versions with a point where their makers have a hyphen.
    let hyphened = bare.replace('.', "-");
    exact(id).or_else(|| exact(bare)).or_else(|| exact(&hyphened)).or_else(|| {
        let newest = |model: &&Model| {
            model.provider == provider && (undated(model.id) == bare || undated(model.id) == hyphened)
        };
        MODELS.iter().rfind(newest)
    })
}

/// The id without a date, `-latest`, or a variant behind a colon.
fn undated(id: &str) -> &str {
    let id = id.split_once(':').map_or(id, |(id, _)| id);
    let id = id.split_once('@').map_or(id, |(id, _)| id);
    let id = id.strip_suffix("-latest").unwrap_or(id);
    let is_date = |text: &str| {
        let digits = text.chars().filter(char::is_ascii_digit).count();
        let hyphens = text.chars().filter(|c| *c == '-').count();
        (digits, hyphens, text.len()) == (8, 1, 9) || (digits, hyphens, text.len()) == (8, 3, 11)
    };
    for length in [9, 11] {
        if let Some(at) = id.len().checked_sub(length)
            && let Some(end) = id.get(at..)
            && end.starts_with('-')
            && is_date(end)
            && at > 0
        {
            return &id[..at];
        }
    }
    id
}

/// Reads a line of the table: provider, id, window, output limit, four prices, effort.
fn model(line: &'static str) -> Option<Model> {
    let mut fields = line.split('\t');
    let mut next = || fields.next();
    let (provider, id, window, max_output) = (next()?, next()?, next()?, next()?);
    let mut price = || next()?.parse::<f64>().ok();
    let (input, output, cache_read, cache_write) = (price(), price(), price(), price());
    let least_effort = next().filter(|effort| !effort.is_empty());
    Some(Model {
        provider,
        id,
        window: window.parse().ok()?,
        max_output: max_output.parse().ok(),
        price: input.zip(output).map(|(input, output)| Price { input, output, cache_read, cache_write }),
        least_effort,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn found(provider: &str, id: &str, expected: Option<(&str, &str)>) {
        assert_eq!(find(provider, id).map(|model| (model.provider, model.id)), expected, "{provider}/{id}");
    }

    #[test]
    fn the_table_is_whole_sorted_and_says_where_it_comes_from() {
        let lines = FILE.lines().filter(|line| !line.starts_with('#')).count() - 1;
        assert_eq!(all().len(), lines, "a line of the table cannot be read");
        assert!(all().is_sorted_by(|a, b| (a.provider, a.id) < (b.provider, b.id)));
        assert!(
            all()
                .iter()
                .all(|model| model.window > 0 && crate::provider::provider_name(model.provider).is_some())
        );
        for name in ["anthropic", "openai", "google"] {
            assert!(all().iter().filter(|model| model.provider == name).count() > 10, "{name}");
        }
        let source: Vec<_> = source().collect();
        assert!(source[1].contains("cargo xtask models") && source[1].contains("licence MIT"), "{source:?}");
    }

    #[test]
    fn ids_are_found_with_a_date_and_without() {
        found("anthropic", "claude-haiku-4-5", Some(("anthropic", "claude-haiku-4-5")));
        found("anthropic", "claude-haiku-4-5-20251001", Some(("anthropic", "claude-haiku-4-5-20251001")));
        found("anthropic", "claude-haiku-4-5-20991231", Some(("anthropic", "claude-haiku-4-5")));
        found("anthropic", "claude-haiku-4-5-latest", Some(("anthropic", "claude-haiku-4-5")));
        found("anthropic", "claude-haiku-4-5@20251001", Some(("anthropic", "claude-haiku-4-5")));
        found("openai", "gpt-5-2099-08-07", Some(("openai", "gpt-5")));
        found("openai", "gpt-5", Some(("openai", "gpt-5")));
        found("google", "models/gemini-2.5-flash", Some(("google", "gemini-2.5-flash")));
    }

    #[test]
    fn models_of_old_sessions_are_known() {
        found("anthropic", "claude-sonnet-4-20250514", Some(("anthropic", "claude-sonnet-4-20250514")));
        assert_eq!(find("anthropic", "claude-sonnet-4").unwrap().window, 200_000);
        assert_eq!(find("anthropic", "claude-3-5-sonnet-latest").unwrap().max_output, Some(8192));
    }

    #[test]
    fn gateways_are_looked_through() {
        found("openrouter", "anthropic/claude-haiku-4.5", Some(("openrouter", "anthropic/claude-haiku-4.5")));
        found("openrouter", "anthropic/claude-opus-4.8", Some(("anthropic", "claude-opus-4-8")));
        found("my-proxy", "openai/gpt-5:free", Some(("openai", "gpt-5")));
        found("my-proxy", "google/gemini-2.5-flash", Some(("google", "gemini-2.5-flash")));
        found("my-proxy", "openrouter/anthropic/claude-opus-4.8", Some(("anthropic", "claude-opus-4-8")));
        assert_eq!(find_named("my-proxy/openai/gpt-5").unwrap().id, "gpt-5");
        assert_eq!(find_named("gpt-5").unwrap().provider, "openai");
    }

    #[test]
    fn what_is_not_there_is_not_guessed() {
        for (provider, id) in [
            ("openai", "gpt-9"),
            ("openai", "gpt-5-codex-ultra"),
            ("openai", ""),
            ("", ""),
            ("ollama", "llama3"),
            ("anthropic", "gpt-5"),
            ("anthropic", "-20251001"),
            ("x", "é-20251001"),
            ("x", "////"),
        ] {
            found(provider, id, None);
        }
    }

    #[test]
    fn prices_are_for_a_million_tokens() {
        let price = Price { input: 3.0, output: 15.0, cache_read: Some(0.3), cache_write: None };
        let usage = Usage {
            input: Some(1_000_000),
            output: Some(100_000),
            cache_read: Some(1_000_000),
            cache_write: Some(1),
        };
        assert!((price.of(&usage) - 4.800_003).abs() < 1e-9);
        assert_eq!(price.of(&Usage::default()), 0.0);
    }

    #[test]
    fn the_least_effort_is_known_for_models_that_reason() {
        assert_eq!(find("openai", "gpt-5").unwrap().least_effort, Some("minimal"));
        assert_eq!(find("anthropic", "claude-haiku-4-5").unwrap().least_effort, None);
    }
}
