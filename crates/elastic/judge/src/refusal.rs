//! What is refused, and how that is told.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use mullion_elastic::{Of, Rule};
use serde::{Deserialize, Serialize};

/// A place in a source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcePlace {
    /// The file, as the preprocessor names it.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in bytes.
    pub column: usize,
    /// Bytes.
    pub length: usize,
    /// The line as it was written; if its file cannot be shown, as the preprocessor left it.
    pub shown: String,
    /// The line as the preprocessor left it, where the construct came out of a macro.
    pub expanded: Option<String>,
}

/// A construct that the language does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRefusal {
    /// The rule that it breaks.
    pub rule: Rule,
    /// The construct, in words.
    pub construct: String,
    /// Where; `None`: the program as a whole.
    pub place: Option<SourcePlace>,
    /// What else is to be known.
    pub note: Option<String>,
}

impl SourceRefusal {
    /// Of the program as a whole.
    #[must_use]
    pub fn nowhere(rule: Rule, construct: impl Into<String>) -> Self {
        SourceRefusal {
            rule,
            construct: construct.into(),
            place: None,
            note: None,
        }
    }

    /// In the form of rustc's diagnostics; `by` is the module type that forbids it. `colour` is for terminals.
    #[must_use]
    pub fn render(&self, by: &str, colour: bool) -> String {
        let title = printable(&format!("{}: {}", self.rule.what(), self.construct));
        let group = Level::ERROR.primary_title(&title).id(self.rule.name());
        let (shown, file);
        let mut group: Group<'_> = match &self.place {
            None => Group::with_title(group),
            Some(place) => {
                shown = printable(&place.shown);
                file = printable(&place.file);
                // An annotation lies within the line, on the bounds of letters.
                let start = (0..=(place.column - 1).min(shown.len()))
                    .rev()
                    .find(|at| shown.is_char_boundary(*at));
                let start = start.unwrap_or(0);
                let end = (start + place.length).min(shown.len());
                let end = (end..=shown.len())
                    .find(|at| shown.is_char_boundary(*at))
                    .unwrap_or(shown.len());
                let mark = AnnotationKind::Primary
                    .span(start..end.max(start))
                    .label(self.rule.name());
                let snippet = Snippet::source(shown.as_str())
                    .path(file.as_str())
                    .line_start(place.line);
                group.element(snippet.annotation(mark))
            }
        };
        let of_type = [
            Rule::Locked,
            Rule::ReadOnly,
            Rule::HiddenName,
            Rule::Entry,
            Rule::Stack,
            Rule::Instructions,
        ];
        let why = match self.rule {
            rule if rule.is_optional() => format!("the module type `{by}` forbids it"),
            rule if of_type.contains(&rule) => format!("the module type `{by}` says so"),
            Rule::Bounds => format!("it holds for every module type, as for `{by}`"),
            rule => {
                let language = match rule.of() {
                    Of::C => "C",
                    Of::Rust => "Rust",
                    Of::Both => "language",
                };
                format!("no elastic {language} has it, so neither has the module type `{by}`")
            }
        };
        group = group.element(Level::NOTE.message(why));
        let expanded = self
            .place
            .as_ref()
            .and_then(|place| place.expanded.as_ref());
        if let Some(expanded) = expanded {
            let text: String = printable(expanded).chars().take(200).collect();
            group =
                group.element(Level::NOTE.message(format!("behind macros the line is: {text}")));
        }
        if let Some(note) = &self.note {
            group = group.element(Level::NOTE.message(printable(note)));
        }
        group = group.element(Level::HELP.message(self.rule.instead()));
        let renderer = match colour {
            true => Renderer::styled(),
            false => Renderer::plain(),
        };
        renderer.render(&[group])
    }
}

/// Text of strangers without control characters.
fn printable(text: &str) -> String {
    let shown = |letter: char| match letter {
        '\t' => ' ',
        _ if letter.is_control() => '?',
        _ => letter,
    };
    text.chars().map(shown).collect()
}
