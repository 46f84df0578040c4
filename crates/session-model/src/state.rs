//! What a session is set to on a branch: models, thinking level, mode, rules, tools (spec 2.2).

use indexmap::{IndexMap, IndexSet};

use crate::branch::Branch;
use crate::dialect::Dialect;
use crate::entry::{Entry, EntryKind};
use crate::text::Str;
use crate::value::{Object, Value};

/// The state at the end of a branch. It counts the whole branch, whatever a compaction has left out of the context.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The form that [`State::to_value`] gives.
    pub dialect: Dialect,
    /// Thinking level; `off` if none was set.
    pub thinking_level: String,
    /// Service tier, if one was set and not taken back.
    pub service_tier: Option<String>,
    /// oh-my-pi: `provider/model` by role.
    pub models: IndexMap<String, String>,
    /// pi: provider and model.
    pub model: Option<(String, String)>,
    /// Rules that were injected, each once, in their order.
    pub injected_rules: IndexSet<String>,
    /// The MCP tools of the last selection.
    pub selected_mcp_tools: Vec<String>,
    /// Whether there was any such selection.
    pub has_mcp_selection: bool,
    /// Mode; `none` if none was set.
    pub mode: String,
    /// What belongs to the mode.
    pub mode_data: Option<Value<'static>>,
}

/// Provider and id of the model that a `model_change` sets for the default role; the provider is empty if it names none. `None` for
/// all other entries, and for changes of other roles.
pub fn changed_model(entry: &Entry) -> Option<(String, String)> {
    let state = entry.state().filter(|_| entry.kind == EntryKind::ModelChange)?;
    if let Some(model) = state.text("model") {
        let is_default = state.text("role").is_none_or(|role| role == "default");
        let (provider, id) = model.split_once('/').unwrap_or(("", &model));
        return is_default.then(|| (provider.to_owned(), id.to_owned()));
    }
    Some((state.text("provider")?.into_owned(), state.text("modelId")?.into_owned()))
}

impl Default for State {
    fn default() -> Self {
        State {
            dialect: Dialect::default(),
            thinking_level: "off".to_owned(),
            service_tier: None,
            models: IndexMap::new(),
            model: None,
            injected_rules: IndexSet::new(),
            selected_mcp_tools: Vec::new(),
            has_mcp_selection: false,
            mode: "none".to_owned(),
            mode_data: None,
        }
    }
}

impl State {
    /// The state at the end of `branch`.
    pub fn of(branch: &Branch<'_>) -> State {
        let session = branch.session;
        let mut state = State { dialect: session.dialect, ..State::default() };
        for &number in &branch.entries {
            let entry = session.entry(number);
            if let Some((provider, model)) = entry.message().and_then(|message| message.model) {
                let (provider, model) = (session.name(provider), session.name(model));
                state.models.insert("default".to_owned(), format!("{provider}/{model}"));
                state.model = Some((provider.to_owned(), model.to_owned()));
            }
            if let Some(value) = entry.state() {
                state.change(entry.kind, value);
            }
        }
        state
    }

    fn change(&mut self, kind: EntryKind, entry: &Value<'static>) {
        let text = |key: &str| entry.text(key).map(std::borrow::Cow::into_owned);
        match kind {
            EntryKind::ThinkingLevelChange => {
                self.thinking_level = text("thinkingLevel").unwrap_or_else(|| "off".to_owned());
            }
            EntryKind::ModelChange => {
                if let Some(model) = text("model").filter(|model| !model.is_empty()) {
                    let role = text("role").unwrap_or_else(|| "default".to_owned());
                    self.models.insert(role, model);
                }
                if let Some(model) = text("provider").zip(text("modelId")) {
                    self.model = Some(model);
                }
            }
            EntryKind::ServiceTierChange => self.service_tier = text("serviceTier"),
            EntryKind::ModeChange => {
                self.mode = text("mode").unwrap_or_else(|| "none".to_owned());
                self.mode_data = entry.get("data").cloned();
            }
            EntryKind::McpToolSelection => {
                self.selected_mcp_tools = strings(entry.get("selectedToolNames"));
                self.has_mcp_selection = true;
            }
            EntryKind::TtsrInjection => self.injected_rules.extend(strings(entry.get("injectedRules"))),
            EntryKind::Message
            | EntryKind::Compaction
            | EntryKind::BranchSummary
            | EntryKind::CustomMessage
            | EntryKind::ContextEdit
            | EntryKind::ResetBoundary
            | EntryKind::SessionInit
            | EntryKind::SessionInfo
            | EntryKind::TitleChange
            | EntryKind::Label
            | EntryKind::Custom
            | EntryKind::Usage
            | EntryKind::ModelUsage
            | EntryKind::CredentialPin
            | EntryKind::Unknown => {}
        }
    }

    /// The state as a JSON object, in the form of the agent that wrote the file.
    pub fn to_value(&self) -> Value<'static> {
        Value::Object(self.to_json(self.dialect))
    }

    /// The state as JSON fields, in the form that this agent gives.
    pub fn to_json(&self, dialect: Dialect) -> Object<'static> {
        match dialect {
            Dialect::Pi => self.pi_json(),
            Dialect::OhMyPi => self.oh_my_pi_json(),
        }
    }

    fn pi_json(&self) -> Object<'static> {
        let mut json = Object::new();
        json.set("thinkingLevel", self.thinking_level.clone());
        let model = self.model.clone().map(|(provider, id)| {
            let mut model = Object::new();
            model.set("provider", provider);
            model.set("modelId", id);
            Value::Object(model)
        });
        json.set("model", model.unwrap_or(Value::Null));
        json
    }

    fn oh_my_pi_json(&self) -> Object<'static> {
        let list = |names: &mut dyn Iterator<Item = &String>| {
            Value::Array(names.map(|name| Value::from(name.clone())).collect())
        };
        let mut json = Object::new();
        json.set("thinkingLevel", self.thinking_level.clone());
        json.set_some("serviceTier", self.service_tier.clone());
        let models = self.models.iter();
        let models = models.map(|(role, model)| (Str::from(role.clone()), Value::from(model.clone())));
        json.set("models", models.collect::<Object<'static>>());
        json.set("injectedTtsrRules", list(&mut self.injected_rules.iter()));
        json.set("selectedMCPToolNames", list(&mut self.selected_mcp_tools.iter()));
        json.set("hasPersistedMCPToolSelection", self.has_mcp_selection);
        json.set("mode", self.mode.clone());
        json.set_some("modeData", self.mode_data.clone());
        json
    }
}

fn strings(list: Option<&Value<'_>>) -> Vec<String> {
    let names = list.map_or(&[][..], Value::items).iter();
    names.filter_map(|name| name.as_str().map(std::borrow::Cow::into_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Session;

    /// A session whose entries hang on each other in their order; each is given by its own fields.
    #[track_caller]
    fn check(entries: &[&str], dialect: Dialect, expected: &str) {
        let mut file = "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n".to_owned();
        for (n, fields) in entries.iter().enumerate() {
            let parent = n.checked_sub(1).map_or("null".to_owned(), |parent| format!("\"{parent}\""));
            file.push_str(&format!("{{\"id\":\"{n}\",\"parentId\":{parent},{fields}}}\n"));
        }
        let (session, _) = Session::read(file.as_bytes()).expect("a session");
        let state = State::of(&session.branch(None));
        assert_eq!(Value::Object(state.to_json(dialect)).to_json(), expected);
    }

    const UNSET: &str = r#""injectedTtsrRules":[],"selectedMCPToolNames":[],"hasPersistedMCPToolSelection":false,"mode":"none""#;

    #[test]
    fn nothing_is_set_at_first() {
        check(&[], Dialect::OhMyPi, &format!(r#"{{"thinkingLevel":"off","models":{{}},{UNSET}}}"#));
        check(&[], Dialect::Pi, r#"{"thinkingLevel":"off","model":null}"#);
    }

    #[test]
    fn the_last_thinking_level_counts_and_null_is_off() {
        let high = r#""type":"thinking_level_change","thinkingLevel":"high""#;
        check(&[high], Dialect::Pi, r#"{"thinkingLevel":"high","model":null}"#);
        let null = r#""type":"thinking_level_change","thinkingLevel":null"#;
        check(&[high, null], Dialect::Pi, r#"{"thinkingLevel":"off","model":null}"#);
    }

    #[test]
    fn models_are_kept_by_role_and_an_answer_sets_the_default() {
        check(
            &[
                r#""type":"model_change","model":"p/a""#,
                r#""type":"model_change","model":"p/b","role":"smol""#,
                r#""type":"message","message":{"role":"assistant","content":[],"provider":"q","model":"c/d"}"#,
            ],
            Dialect::OhMyPi,
            &format!(r#"{{"thinkingLevel":"off","models":{{"default":"q/c/d","smol":"p/b"}},{UNSET}}}"#),
        );
        check(
            &[
                r#""type":"message","message":{"role":"assistant","content":[],"provider":"q","model":"c"}"#,
                r#""type":"model_change","provider":"p","modelId":"a""#,
            ],
            Dialect::Pi,
            r#"{"thinkingLevel":"off","model":{"provider":"p","modelId":"a"}}"#,
        );
    }

    #[test]
    fn tier_mode_rules_and_tools_are_those_of_their_last_entries() {
        check(
            &[
                r#""type":"service_tier_change","serviceTier":"flex""#,
                r#""type":"service_tier_change","serviceTier":"priority""#,
                r#""type":"mode_change","mode":"plan","data":{"a":1.0}"#,
                r#""type":"ttsr_injection","injectedRules":["r","s"]"#,
                r#""type":"ttsr_injection","injectedRules":["s","q"]"#,
                r#""type":"mcp_tool_selection","selectedToolNames":["x"]"#,
                r#""type":"mcp_tool_selection","selectedToolNames":["y","z"]"#,
            ],
            Dialect::OhMyPi,
            r#"{"thinkingLevel":"off","serviceTier":"priority","models":{},"injectedTtsrRules":["r","s","q"],"selectedMCPToolNames":["y","z"],"hasPersistedMCPToolSelection":true,"mode":"plan","modeData":{"a":1}}"#,
        );
        check(
            &[
                r#""type":"service_tier_change","serviceTier":"flex""#,
                r#""type":"service_tier_change","serviceTier":null"#,
                r#""type":"mode_change","mode":"plan","data":{"a":1}"#,
                r#""type":"mode_change","mode":"none""#,
                r#""type":"mcp_tool_selection","selectedToolNames":[]"#,
            ],
            Dialect::OhMyPi,
            r#"{"thinkingLevel":"off","models":{},"injectedTtsrRules":[],"selectedMCPToolNames":[],"hasPersistedMCPToolSelection":true,"mode":"none"}"#,
        );
    }

    #[test]
    fn another_branch_and_what_precedes_a_reset_do_not_matter_and_matter() {
        let file = concat!(
            r#"{"type":"session","version":3,"id":"s"}"#,
            "\n",
            r#"{"type":"thinking_level_change","id":"1","parentId":null,"thinkingLevel":"low"}"#,
            "\n",
            r#"{"type":"thinking_level_change","id":"2","parentId":"1","thinkingLevel":"high"}"#,
            "\n",
            r#"{"type":"reset_boundary","id":"3","parentId":"1"}"#,
            "\n",
        );
        let (session, _) = Session::read(file.as_bytes()).expect("a session");
        assert_eq!(State::of(&session.branch(None)).thinking_level, "low");
    }
}
