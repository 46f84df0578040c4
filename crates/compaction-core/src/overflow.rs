//! Providers' words for "the context was too long" (spec 3.8): one table, asked about the error messages of
//! sessions and of requests alike.

/// What an overflow message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverflowMessage {
    /// Whose words they are; other providers may use the same.
    pub provider: &'static str,
    /// Tokens of the request, if the message names them.
    pub prompt_tokens: Option<u64>,
    /// Tokens that the model takes, if the message names them.
    pub window: Option<u64>,
}

/// Whether an error message says that the context was too long, and what it says about it.
///
/// A rate limit never does, although it may speak of too many tokens.
///
/// ```
/// let message = "400 prompt is too long: 219898 tokens > 200000 maximum";
/// let found = compaction_core::overflow::find_overflow(message).expect("it is one");
/// assert_eq!((found.prompt_tokens, found.window), (Some(219_898), Some(200_000)));
/// ```
pub fn find_overflow(message: &str) -> Option<OverflowMessage> {
    let text = squeezed(message);
    if is_rate_limit(&text) {
        return None;
    }
    TABLE.iter().find_map(|(provider, words)| {
        let mut found = OverflowMessage { provider, prompt_tokens: None, window: None };
        matches(words, &text, &mut found).then_some(found)
    })
}

/// Words in lower case; white space is one blank. `#p` stands for the number of tokens of the request, `#w` for
/// that of the window, `#` for another number, `*` for anything within a sentence or two; `^` is the start.
/// Rows with numbers come before rows that are a part of them.
const TABLE: &[(&str, &str)] = &[
    ("Anthropic", "prompt is too long: #p tokens > #w maximum"),
    ("Anthropic", "input length and `max_tokens` exceed context limit: #p + # > #w"),
    ("Anthropic", "input length and max_tokens exceed context limit: #p + # > #w"),
    ("Anthropic", "prompt is too long"),
    ("Anthropic", "request_too_large"),
    ("Anthropic", "model_context_window_exceeded"),
    ("OpenRouter", "endpoint's maximum context length is #w tokens. however, you requested about #p tokens"),
    ("OpenAI", "maximum context length is #w tokens. however, your messages resulted in #p tokens"),
    ("OpenAI", "input tokens exceed the configured limit of #w tokens. your messages resulted in #p tokens"),
    (
        "vLLM",
        "maximum context length is #w tokens. however, you requested # output tokens*at least #p input tokens",
    ),
    ("vLLM", "maximum context length is #w tokens. however, your request has #p input tokens"),
    ("DeepSeek", "maximum context length is #w tokens. however, you requested #p tokens"),
    ("OpenAI", "maximum context length is #w tokens, however you requested #p tokens"),
    ("OpenAI", "maximum context length is #w tokens"),
    ("OpenAI", "exceeds the context window of this model"),
    ("OpenAI", "input tokens exceed the configured limit of #w tokens"),
    ("vLLM", "prompt (total length #p) is too long to fit into the model (context length #w)"),
    ("vLLM", "prompt (length #p) is longer than the maximum model length of #w"),
    ("Together", "the input (#p tokens) is longer than the model's context length (#w tokens)"),
    (
        "Together",
        "passed #p input tokens and requested # output tokens. however, the model's context length is only #w",
    ),
    ("Together", "`inputs` tokens + `max_new_tokens` must be <= #w. given: #p `inputs` tokens"),
    ("Together", "`inputs` must have less than #w tokens. given: #p"),
    ("Google", "the input token count (#p) exceeds the maximum number of tokens allowed (#w)"),
    ("Google", "input token count*exceeds the maximum number of tokens allowed"),
    ("Google", "request payload size exceeds the limit"),
    ("xAI", "maximum prompt length is #w but the request contains #p tokens"),
    ("Cerebras", "reduce the length of the messages or completion. current length is #p while limit is #w"),
    ("Groq", "reduce the length of the messages or completion"),
    ("OpenAI", "please reduce the length of the messages"),
    ("Mistral", "prompt contains #p tokens*too large for model with #w maximum context length"),
    ("llama.cpp", "request (#p tokens) exceeds the available context size (#w tokens)"),
    ("llama.cpp", "requested tokens (#p) exceed context window of #w"),
    ("llama.cpp", "exceeds the available context size"),
    ("llama.cpp", "exceed_context_size_error"),
    (
        "LM Studio",
        "tokens to keep from the initial prompt is greater than the context length (n_keep: #p>= n_ctx: #w)",
    ),
    ("LM Studio", "tokens to keep from the initial prompt is greater than the context length"),
    (
        "LM Studio",
        "trying to keep the first #p tokens when context the overflows*context length of only #w tokens",
    ),
    ("MiniMax", "context window exceeds limit"),
    ("Kimi", "exceeded model token limit: #w (requested: #p)"),
    ("Kimi", "exceeded model token limit"),
    ("Ollama", "prompt too long; exceeded max context length"),
    ("Ollama", "prompt too long; exceeded context length"),
    ("Ollama", "input length exceeds the context length"),
    ("Ollama", "input exceeds context length"),
    ("GitHub Copilot", "prompt token count of #p exceeds the limit of #w"),
    ("GitHub Copilot", "model_max_prompt_tokens_exceeded"),
    ("Bedrock", "input is too long for requested model"),
    ("Z.AI", "prompt exceeds max length"),
    ("Qwen", "range of input length should be [#, #w]"),
    ("OpenAI", "context_length_exceeded"),
    ("Cerebras, Mistral", "400 status code (no body)"),
    ("Cerebras, Mistral", "413 status code (no body)"),
    ("Cerebras, Mistral", "^400 (no body)"),
    ("Cerebras, Mistral", "^413 (no body)"),
    ("HTTP", "request entity too large"),
    ("HTTP", "payload too large"),
    ("HTTP", "content too large"),
    ("HTTP", "http 413"),
    ("HTTP", "status 413"),
    ("HTTP", "status code 413"),
    ("HTTP", "^413 "),
];

/// Words of rate limits and used-up allowances, whatever else the message says.
const RATE_LIMIT: &[&str] = &[
    "rate limit",
    "rate_limit",
    "ratelimit",
    "rate-limit",
    "too many requests",
    "tokens per min",
    "tokens per day",
    "requests per min",
    "throttl",
    "resource_exhausted",
    "resource exhausted",
    "insufficient_quota",
    "current quota",
    "usage limit",
    "overloaded",
    "too many tokens, please wait",
];

/// Places where a number is an HTTP status.
const BEFORE_STATUS: &[&str] = &[
    "status code ",
    "status code: ",
    "status ",
    "http ",
    "error code: ",
    "error ",
    "error: ",
    "code: ",
    "\"code\":",
    "\"code\": ",
    "status\":",
    "(",
];

fn is_rate_limit(text: &str) -> bool {
    RATE_LIMIT.iter().any(|words| text.contains(words))
        || text.match_indices("429").any(|(at, _)| {
            let ends = !text[at + 3..].starts_with(|c: char| c.is_ascii_digit());
            let before = &text[..at];
            ends && (before.is_empty() || BEFORE_STATUS.iter().any(|words| before.ends_with(words)))
                // "(429 tokens)" is a length, not a status.
                && !text[at + 3..].starts_with(" token")
        })
}

/// Lower case, and every run of white space as one blank: terminals and logs break lines.
fn squeezed(message: &str) -> String {
    let mut text = String::with_capacity(message.len().min(LONGEST));
    for word in message.split_whitespace() {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
        if text.len() > LONGEST {
            break;
        }
    }
    text.make_ascii_lowercase();
    text
}

/// No provider's words come later than this; what follows is an echo of the request.
const LONGEST: usize = 16 * 1024;
/// How much `*` may stand for, in bytes.
const WIDEST: usize = 160;

fn matches(words: &str, text: &str, found: &mut OverflowMessage) -> bool {
    if let Some(words) = words.strip_prefix('^') {
        return matches_here(words, text, found);
    }
    let first = words.split(['#', '*']).next().unwrap_or_default();
    let mut from = 0;
    while let Some(at) = text[from..].find(if first.is_empty() { words } else { first }) {
        if matches_here(words, &text[from + at..], found) {
            return true;
        }
        from += at + first.len().max(1);
        while !text.is_char_boundary(from) {
            from += 1;
        }
    }
    false
}

/// Whether `text` begins with what `words` describe; numbers go to `found`.
fn matches_here(words: &str, text: &str, found: &mut OverflowMessage) -> bool {
    let Some(mark) = words.find(['#', '*']) else {
        return text.starts_with(words);
    };
    let Some(text) = text.strip_prefix(&words[..mark]) else {
        return false;
    };
    if words[mark..].starts_with('*') {
        let words = &words[mark + 1..];
        return text
            .char_indices()
            .take_while(|(at, _)| *at <= WIDEST)
            .any(|(at, _)| matches_here(words, &text[at..], found));
    }
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(text.len());
    // A comma behind the number belongs to the sentence.
    let digits = text[..digits].trim_end_matches(',').len();
    let Ok(number) = text[..digits].replace(',', "").parse::<u64>() else {
        return false;
    };
    let rest = &words[mark + 1..];
    let (rest, place) = if let Some(rest) = rest.strip_prefix('p') {
        (rest, Some(&mut found.prompt_tokens))
    } else if let Some(rest) = rest.strip_prefix('w') {
        (rest, Some(&mut found.window))
    } else {
        (rest, None)
    };
    let before = place.as_deref().copied();
    if let Some(place) = place {
        *place = Some(number);
    }
    if matches_here(rest, &text[digits..], found) {
        return true;
    }
    // Another row, or another place of this one, starts with what was known before.
    match words.as_bytes().get(mark + 1) {
        Some(b'p') => found.prompt_tokens = before.flatten(),
        Some(b'w') => found.window = before.flatten(),
        _ => {}
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn overflow(message: &str, provider: &str, prompt_tokens: u64, window: u64) {
        let some = |n| if n == 0 { None } else { Some(n) };
        let expected = (provider, some(prompt_tokens), some(window));
        let found = find_overflow(message).map(|found| (found.provider, found.prompt_tokens, found.window));
        assert_eq!(found, Some(expected), "{message}");
    }

    #[track_caller]
    fn other(message: &str) {
        assert_eq!(find_overflow(message), None, "{message}");
    }

    #[test]
    fn anthropic() {
        overflow(
            r#"400 {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 219898 tokens > 200000 maximum"},"request_id":"req_0"}"#,
            "Anthropic",
            219_898,
            200_000,
        );
        overflow(
            "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or `max_tokens` and try again",
            "Anthropic",
            178_959,
            200_000,
        );
        overflow(
            "input length and `max_tokens` exceed context limit: \n     189136 + 20000 > 204648, decrease input length",
            "Anthropic",
            189_136,
            204_648,
        );
        overflow(
            "input length and max_tokens exceed context limit: 90402 + 116650 > 204648, decrease",
            "Anthropic",
            90_402,
            204_648,
        );
        overflow(
            r#"413 {"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            "Anthropic",
            0,
            0,
        );
        overflow("stop reason: model_context_window_exceeded", "Anthropic", 0, 0);
        overflow("Prompt is too long", "Anthropic", 0, 0);
    }

    #[test]
    fn openai() {
        overflow(
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 173172 tokens. Please reduce the length of the messages.",
            "OpenAI",
            173_172,
            128_000,
        );
        overflow(
            "This model's maximum context length is 4097 tokens, however you requested 4569 tokens (3545 in your prompt; 1024 for the completion). Please reduce your prompt; or completion length.",
            "OpenAI",
            4569,
            4097,
        );
        overflow(
            r#"{"type":"invalid_request_error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model. Please adjust your input and try again.","param":"input"}"#,
            "OpenAI",
            0,
            0,
        );
        overflow(
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300123 tokens. Please reduce the length of the messages.",
            "OpenAI",
            300_123,
            272_000,
        );
        overflow(r#"{"error":{"code":"context_length_exceeded"}}"#, "OpenAI", 0, 0);
    }

    #[test]
    fn google() {
        overflow(
            r#"[{"error":{"code":400,"message":"The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
            "Google",
            1_200_293,
            1_048_576,
        );
        overflow(
            "The input token count exceeds the maximum number of tokens allowed 1048576.",
            "Google",
            0,
            0,
        );
        overflow("Request payload size exceeds the limit: 20971520 bytes.", "Google", 0, 0);
    }

    #[test]
    fn xai_groq_cerebras_mistral() {
        overflow(
            r#"400 "This model's maximum prompt length is 131072 but the request contains 136973 tokens.""#,
            "xAI",
            136_973,
            131_072,
        );
        overflow(
            "Error code: 400 - {'error': {'message': 'Please reduce the length of the messages or completion.', 'type': 'invalid_request_error', 'param': 'messages', 'code': 'context_length_exceeded'}}",
            "Groq",
            0,
            0,
        );
        overflow(
            "400 Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000",
            "Cerebras",
            42_328,
            40_000,
        );
        overflow("400 status code (no body)", "Cerebras, Mistral", 0, 0);
        overflow("413 status code (no body)", "Cerebras, Mistral", 0, 0);
        overflow("413 (no body)", "Cerebras, Mistral", 0, 0);
        overflow(
            r#"400 status code: {"error":"Error from inference backend: 400 status code (no body)"}"#,
            "Cerebras, Mistral",
            0,
            0,
        );
        overflow(
            "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            "Mistral",
            65_673,
            32_768,
        );
    }

    #[test]
    fn openrouter_deepseek_kimi_minimax_qwen_zai() {
        overflow(
            r#"This endpoint's maximum context length is 131072 tokens. However, you requested about 138956 tokens (7884 of text input, 131072 in the output). Please reduce the length of either one, or use the "middle-out" transform"#,
            "OpenRouter",
            138_956,
            131_072,
        );
        overflow(
            "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.",
            "DeepSeek",
            131_134,
            131_072,
        );
        overflow(
            "Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)",
            "Kimi",
            269_030,
            262_144,
        );
        overflow("Invalid request: Your request exceeded model token limit: 262144", "Kimi", 0, 0);
        overflow("invalid params, context window exceeds limit (2013)", "MiniMax", 0, 0);
        overflow(
            "InternalError.Algo.InvalidParameter: Range of input length should be [1, 202745]",
            "Qwen",
            0,
            202_745,
        );
        overflow(r#"{"code":"1261","message":"Prompt exceeds max length"}"#, "Z.AI", 0, 0);
    }

    #[test]
    fn local_servers() {
        overflow(
            r#"{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":8192}}"#,
            "llama.cpp",
            0,
            0,
        );
        overflow(
            "400 request (66202 tokens) exceeds the available context size (65536 tokens), try increasing it",
            "llama.cpp",
            66_202,
            65_536,
        );
        overflow("Requested tokens (2285) exceed context window of 2048", "llama.cpp", 2285, 2048);
        overflow(
            "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length",
            "LM Studio",
            13_055,
            4096,
        );
        overflow(
            "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough.",
            "LM Studio",
            111_490,
            32_768,
        );
        overflow(
            "The number of tokens to keep from the initial prompt is greater than the context length.",
            "LM Studio",
            0,
            0,
        );
        overflow("400 `prompt too long; exceeded max context length by 100918 tokens`", "Ollama", 0, 0);
        overflow("the input length exceeds the context length", "Ollama", 0, 0);
        overflow("input exceeds context length", "Ollama", 0, 0);
        overflow(
            "This model's maximum context length is 128000 tokens. \nHowever, you requested 65535 output tokens and your prompt contains at \nleast 62466 input tokens, for a total of at least 128001 tokens.",
            "vLLM",
            62_466,
            128_000,
        );
        overflow(
            "The prompt (total length 25938) is too long to fit into the model (context length 4096). Make sure that `max_model_len` is no smaller",
            "vLLM",
            25_938,
            4096,
        );
    }

    #[test]
    fn gateways() {
        overflow(
            "prompt token count of 146270 exceeds the limit of 128000",
            "GitHub Copilot",
            146_270,
            128_000,
        );
        overflow("ValidationException: Input is too long for requested model.", "Bedrock", 0, 0);
        overflow(
            "400 The input (516368 tokens) is longer than the model's context length (262144 tokens).",
            "Together",
            516_368,
            262_144,
        );
        overflow(
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 2019 `inputs` tokens and 30 `max_new_tokens`",
            "Together",
            2019,
            2048,
        );
        overflow(
            "You passed 202753 input tokens and requested 0 output tokens. However, the model's context length is only 202752 tokens",
            "Together",
            202_753,
            202_752,
        );
        overflow("Request Entity Too Large", "HTTP", 0, 0);
        overflow("413 Payload Too Large", "HTTP", 0, 0);
        overflow("Request failed with status code 413", "HTTP", 0, 0);
    }

    #[test]
    fn every_row_is_met_by_some_message_of_its_own() {
        for (at, (provider, words)) in TABLE.iter().enumerate() {
            let words = words.trim_start_matches('^');
            let message = format!("{words}x")
                .replace("#p", "11")
                .replace("#w", "10")
                .replace('#', "1")
                .replace('*', " and ");
            let found = find_overflow(&message);
            assert!(found.is_some(), "row {at} of {provider}: {message}");
        }
    }

    #[test]
    fn rate_limits_and_used_up_allowances_are_no_overflow() {
        other("429 Too many tokens, please wait before trying again.");
        other("ThrottlingException: Too many tokens, please wait before trying again.");
        other(
            "This request would exceed the rate limit for your organization of 20,000 input tokens per minute. Please reduce the prompt length or the maximum tokens requested, or try again later.",
        );
        other(
            "413 Request too large for model `moonshotai/kimi-k2-instruct` in organization `org_0` service tier `on_demand` on tokens per minute (TPM): Limit 10000, Requested 15088, please reduce your message size and try again.",
        );
        other(r#"429 {"error":{"message":"Your input exceeds the context window of this model"}}"#);
        other("Error code: 429 - {'error': {'message': 'prompt is too long'}}");
        other("429 status code (no body)");
        other("You exceeded your current quota, please check your plan and billing details.");
        other(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#);
    }

    #[test]
    fn other_failures_are_no_overflow() {
        other("");
        other("Connection error.");
        other("500 Internal server error");
        other("401 Incorrect API key provided");
        other("The maximum tokens you requested exceeds the model limit of 32768");
        other("max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude");
        other("400 Unsupported parameter: 'max_tokens' is not supported with this model.");
        other("messages.2: tool_use ids were found without tool_result blocks immediately after");
        other("I read section 413 of the manual and the prompt was long");
        other("Request was aborted.");
    }

    #[test]
    fn a_length_of_429_tokens_is_no_status() {
        overflow(
            "request (429 tokens) exceeds the available context size (256 tokens)",
            "llama.cpp",
            429,
            256,
        );
        overflow("prompt is too long: 214290 tokens > 200000 maximum", "Anthropic", 214_290, 200_000);
    }

    #[test]
    fn any_text_is_answered() {
        other(&"prompt is too lon ".repeat(10_000));
        other(&"maximum context length is ".repeat(2000));
        other("é429é prompt token count of ü");
        overflow(&format!("{}prompt is too long", "é ".repeat(100)), "Anthropic", 0, 0);
    }
}
