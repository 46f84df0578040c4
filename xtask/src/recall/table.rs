//! Scores and the table that they are printed as.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

use super::facts::{CLASSES, Class};
use super::needed::Needed;

/// Scores by method, of one session or of many.
#[derive(Clone, Debug, Default)]
pub(super) struct Scores {
    methods: BTreeMap<String, Method>,
    n_points: usize,
}

#[derive(Clone, Debug, Default)]
struct Method {
    /// Shares of each session, overall and by class.
    overall: Vec<f64>,
    classes: BTreeMap<Class, Vec<f64>>,
    /// Of all commands that ran and all error lines.
    commands: Vec<f64>,
    error_lines: Vec<f64>,
    sizes: Vec<f64>,
}

impl Scores {
    /// Counts a point.
    pub(super) fn open_point(&mut self) {
        self.n_points += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.n_points == 0
    }

    /// Scores a text.
    pub(super) fn add(&mut self, name: &str, needed: &Needed, text: &str, size: u64) {
        let method = self.methods.entry(name.to_owned()).or_default();
        // Lines in a line are indented in a summary.
        let text = &text.replace("\n  ", "\n");
        let share = |facts: &mut dyn Iterator<Item = &String>| -> Option<f64> {
            let (mut n, mut held) = (0_u32, 0_u32);
            for fact in facts {
                n += 1;
                held += u32::from(text.contains(fact.as_str()));
            }
            (n > 0).then(|| f64::from(held) / f64::from(n))
        };
        let simple = needed.facts.iter().filter(|(_, class)| class.is_simple()).map(|(fact, _)| fact);
        method.overall.extend(share(&mut simple.into_iter()));
        for class in CLASSES {
            let of = needed.facts.iter().filter(|(_, it)| **it == class).map(|(fact, _)| fact);
            if let Some(share) = share(&mut of.into_iter()) {
                method.classes.entry(class).or_default().push(share);
            }
        }
        method.commands.extend(share(&mut needed.commands.iter()));
        method.error_lines.extend(share(&mut needed.error_lines.iter()));
        method.sizes.push(size as f64);
    }

    /// Adds the means of a session.
    pub(super) fn with(mut self, session: &Scores) -> Scores {
        self.n_points += session.n_points;
        for (name, from) in &session.methods {
            let to = self.methods.entry(name.clone()).or_default();
            to.overall.extend(mean(&from.overall));
            for (class, shares) in &from.classes {
                to.classes.entry(*class).or_default().extend(mean(shares));
            }
            to.commands.extend(mean(&from.commands));
            to.error_lines.extend(mean(&from.error_lines));
            to.sizes.extend(mean(&from.sizes));
        }
        self
    }
}

impl Scores {
    /// The same as JSON: shares by method and class.
    pub(super) fn to_json(&self) -> Value {
        let mut methods = serde_json::Map::new();
        for (name, method) in &self.methods {
            let class = |class: &Class| mean(method.classes.get(class).map_or(&[], Vec::as_slice));
            let classes: serde_json::Map<String, Value> =
                CLASSES.iter().map(|it| (it.name().to_owned(), json!(class(it)))).collect();
            let value = json!({
                "tokens": mean(&method.sizes),
                "overall": mean(&method.overall),
                "classes": classes,
                "allCommands": mean(&method.commands),
                "allErrorLines": mean(&method.error_lines),
            });
            methods.insert(name.clone(), value);
        }
        json!({ "points": self.n_points, "methods": methods })
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

impl fmt::Display for Scores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "| {} points | tokens | all five |", self.n_points)?;
        CLASSES.iter().try_for_each(|class| write!(f, " {} |", class.name()))?;
        writeln!(f, " all commands | all error lines |\n|---|{}", "---|".repeat(CLASSES.len() + 4))?;
        let shown = |values: &[f64]| mean(values).map_or("–".to_owned(), |mean| format!("{mean:.3}"));
        for (name, method) in &self.methods {
            let size = mean(&method.sizes).unwrap_or_default();
            write!(f, "| {name} | {size:.0} | {} |", shown(&method.overall))?;
            for class in CLASSES {
                write!(f, " {} |", shown(method.classes.get(&class).map_or(&[], Vec::as_slice)))?;
            }
            writeln!(f, " {} | {} |", shown(&method.commands), shown(&method.error_lines))?;
        }
        Ok(())
    }
}
