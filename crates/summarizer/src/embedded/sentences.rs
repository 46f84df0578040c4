//! Sentences, in any script, and what they are for: rules, decisions, steps, questions.

/// Longest sentence that is quoted, in characters.
const LONGEST: usize = 400;

/// The sentences of a text, without list marks; code fences are passed over.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut in_fence = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
            continue;
        }
        if in_fence {
            continue;
        }
        split(line, &mut found);
    }
    found
}

/// Splits a line where a sentence ends.
fn split<'t>(line: &'t str, found: &mut Vec<&'t str>) {
    let mut start = 0;
    let mut characters = line.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let end = at + character.len_utf8();
        let ends = match character {
            '。' | '！' | '？' | '؟' | '।' | '۔' => true,
            '.' | '!' | '?' => characters.peek().is_none_or(|(_, next)| next.is_whitespace()),
            _ => false,
        };
        if ends {
            add(&line[start..end], found);
            start = end;
        }
    }
    add(&line[start..], found);
}

fn add<'t>(sentence: &'t str, found: &mut Vec<&'t str>) {
    let sentence = without_marks(sentence);
    let length = sentence.chars().count();
    if (2..=LONGEST).contains(&length) && sentence.chars().any(char::is_alphabetic) {
        found.push(sentence);
    }
}

/// Whether a sentence says something by itself: it does not lead over to a call or a list, is no scrap of code or of a trace, and
/// has some words.
pub(super) fn is_whole(sentence: &str) -> bool {
    let leads_over = sentence.ends_with([':', '：', ',', '(', '{', '[', '→', ';']);
    let is_row = sentence.starts_with(['|', '<', '{', '}', ')', '➜', '$', '+', '/']);
    let is_frame = sentence.starts_with("at ") && sentence.ends_with(')');
    let is_torn = sentence.matches('`').count() % 2 == 1 || sentence.matches("**").count() % 2 == 1;
    let is_latin = !sentence.chars().any(|it| it.is_alphabetic() && !it.is_ascii());
    let is_long = if is_latin {
        sentence.split_whitespace().filter(|word| word.bytes().any(|it| it.is_ascii_alphabetic())).count()
            >= 5
    } else {
        sentence.chars().count() >= 8
    };
    !leads_over && !is_row && !is_frame && !is_torn && is_long
}

/// What a sentence before a call announces, without the words that announce it; `None` if little is left.
pub(super) fn purpose(sentence: &str) -> Option<&str> {
    const OPENINGS: [&str; 12] = [
        "Now let me ",
        "Now let's ",
        "Now I'll ",
        "Now I will ",
        "Now I need to ",
        "Let me now ",
        "Let me ",
        "Let's ",
        "I'll now ",
        "I'll ",
        "I will ",
        "Now ",
    ];
    let rest = OPENINGS.iter().find_map(|opening| sentence.strip_prefix(opening)).unwrap_or(sentence);
    let rest = rest.trim_end_matches([':', '：']).trim();
    let is_long =
        if rest.is_ascii() { rest.split_whitespace().count() >= 3 } else { rest.chars().count() >= 6 };
    let is_torn = rest.matches('`').count() % 2 == 1;
    (is_long && !is_torn).then_some(rest)
}

/// A line without the mark of its list, and without heading signs.
pub(super) fn without_marks(line: &str) -> &str {
    let line = line.trim().trim_start_matches(['#', '>']).trim_start();
    let line =
        line.strip_prefix(['-', '*', '•']).filter(|rest| rest.starts_with(' ')).unwrap_or(line).trim_start();
    let line = ["[x] ", "[ ] ", "[X] "].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line);
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    match line[digits..].strip_prefix(['.', ')']) {
        Some(rest) if digits > 0 && digits < 3 && rest.starts_with(' ') => rest.trim_start(),
        _ => line,
    }
}

/// Whether a sentence holds one of these words; a word of letters of an alphabet must stand alone.
fn has_any(sentence: &str, words: &[&str]) -> bool {
    let low = sentence.to_lowercase();
    words.iter().any(|word| {
        low.match_indices(word).any(|(at, found)| {
            let is_alphabet = word.is_ascii();
            let before = low[..at].chars().next_back().is_none_or(|it| !it.is_alphanumeric());
            let after = low[at + found.len()..].chars().next().is_none_or(|it| !it.is_alphanumeric());
            !is_alphabet || before && after
        })
    })
}

/// Forbids, or requires without condition: must outlive every compaction.
pub(super) fn is_rule(sentence: &str) -> bool {
    has_any(
        sentence,
        &[
            "never",
            "do not",
            "don't",
            "dont",
            "must",
            "must not",
            "mustn't",
            "always",
            "not allowed",
            "forbidden",
            "under no",
            "nie",
            "niemals",
            "nicht",
            "muss",
            "immer",
            "jamais",
            "toujours",
            "ne pas",
            "doit",
            "nunca",
            "siempre",
            "debe",
            "никогда",
            "нельзя",
            "не надо",
            "не трогай",
            "должен",
            "должна",
            "должно",
            "обязательно",
            "всегда",
            "不要",
            "不能",
            "必须",
            "必須",
            "请勿",
            "禁止",
            "千万",
            "しないで",
            "てはいけない",
            "必ず",
            "하지 마",
            "반드시",
            "لا ت",
            "يجب",
            "ممنوع",
            "אסור",
            "חייב",
            "अवश्य",
            "मत ",
        ],
    )
}

/// Prefers or limits.
pub(super) fn is_wish(sentence: &str) -> bool {
    has_any(
        sentence,
        &[
            "prefer",
            "should",
            "shouldn't",
            "avoid",
            "only",
            "make sure",
            "ensure",
            "instead of",
            "without",
            "keep",
            "no need",
            "use",
            "rather than",
            "лучше",
            "только",
            "без",
            "应该",
            "尽量",
            "只",
            "べき",
            "だけ",
            "فقط",
            "بدون",
            "רק",
        ],
    )
}

/// Says what was chosen and why: the part before and the part from the word that gives the reason on. A sentence that only says
/// what was not chosen is whole.
pub(super) fn decision(sentence: &str) -> Option<(&str, &str)> {
    const REASONS: [&str; 10] = [
        " because ",
        " so that ",
        " since ",
        " in order to ",
        " to avoid ",
        ", so ",
        "因为",
        "потому что",
        "чтобы",
        "لأن",
    ];
    const CHOICES: [&str; 20] = [
        "use",
        "using",
        "chose",
        "choose",
        "decided",
        "decide",
        "go with",
        "going with",
        "switch",
        "keep",
        "kept",
        "better",
        "should",
        "will",
        "i'll",
        "let's",
        "prefer",
        "need",
        "can't",
        "must",
    ];
    const REFUSALS: [&str; 2] = [" instead of ", " rather than "];
    if !is_whole(sentence) || sentence.ends_with(['?', '？', '؟']) {
        return None;
    }
    let low = sentence.to_ascii_lowercase();
    let is_choice = || !sentence.is_ascii() || has_any(sentence, &CHOICES);
    let reason = REASONS.iter().filter_map(|word| low.find(word)).min();
    let (what, why) = match reason {
        Some(at) => (
            sentence[..at].trim_end_matches([',', '，', ' ']).trim(),
            sentence[at..].trim_start_matches([',', ' ']).trim(),
        ),
        None if REFUSALS.iter().any(|word| low.contains(word)) => (sentence, ""),
        None => return None,
    };
    let is_long = |part: &str| part.chars().count() >= 8;
    (is_long(what) && (why.is_empty() || is_long(why)) && is_choice()).then_some((what, why))
}

/// Announces what comes.
pub(super) fn is_step(sentence: &str) -> bool {
    has_any(
        sentence,
        &[
            "next",
            "next step",
            "next steps",
            "remaining",
            "todo",
            "then i",
            "i'll",
            "i will",
            "let me",
            "now i",
            "we need to",
            "still need",
            "going to",
            "follow-up",
            "дальше",
            "осталось",
            "теперь",
            "затем",
            "接下来",
            "下一步",
            "然后",
            "次に",
            "残り",
            "다음",
            "التالي",
            "الخطوة",
            "סעיף הבא",
        ],
    )
}

/// Whether a text ends with a question, and which.
pub(super) fn last_question(text: &str) -> Option<&str> {
    let last = sentences(text).pop()?;
    last.trim_end_matches(['*', '_', '`', ')', '"']).ends_with(['?', '？', '؟']).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_in_any_script() {
        assert_eq!(
            sentences("- One thing. Two things! v1.2 stays"),
            ["One thing.", "Two things!", "v1.2 stays"]
        );
        assert_eq!(sentences("不要改数据库。必须跑测试！"), ["不要改数据库。", "必须跑测试！"]);
        assert_eq!(sentences("هل هذا صحيح؟ نعم"), ["هل هذا صحيح؟", "نعم"]);
        assert_eq!(sentences("before\n```\ncode. here.\n```\nafter"), ["before", "after"]);
    }

    #[test]
    fn rules_decisions_and_questions_are_known() {
        assert!(
            is_rule("Never touch the schema.")
                && is_rule("不要改数据库。")
                && is_rule("Никогда не трогай схему.")
        );
        assert!(!is_rule("The mustard is here.") && is_wish("Prefer small files."));
        assert_eq!(
            decision("We use a table because the match grew."),
            Some(("We use a table", "because the match grew."))
        );
        let refusal = "We will use one lock instead of many.";
        assert_eq!(decision(refusal), Some((refusal, "")));
        assert_eq!(decision("The test fails and gives the defaults instead of the file's values."), None);
        assert_eq!(last_question("Done. Shall I push?"), Some("Shall I push?"));
        assert_eq!(last_question("Shall I push? No."), None);
    }

    #[test]
    fn scraps_are_no_whole_sentences() {
        assert!(
            is_whole("The loader falls back to the dark theme.")
                && is_whole("旧的客户端没有参数时返回全部。")
        );
        for scrap in ["Let me fix it:", "`a` → `b`", "at run (main.rs:3)", "1. `x", "| a | b | c | d | e |"]
        {
            assert!(!is_whole(scrap), "{scrap}");
        }
        assert_eq!(purpose("Now let me wrap the call in a retry:"), Some("wrap the call in a retry"));
        assert_eq!(purpose("Let me fix it:"), None);
    }
}
