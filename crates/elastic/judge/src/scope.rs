//! What is known while a program is judged: names, records, what was written, what was refused.

use crate::refusal::SourceRefusal;
use crate::tokens::Tokens;
use crate::types::{Function, Qualified, Record, Type, written};
use lang_c::span::{Node, Span};
use mullion_elastic::{Elastic, Memory, Rule};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

/// What a name stands for.
#[derive(Clone, Debug)]
pub(crate) enum Entity {
    Type(Qualified),
    Object {
        q: Qualified,
        text: String,
        /// Its storage ends with its block.
        local: bool,
    },
    Function {
        ty: Rc<Function>,
        text: String,
    },
    Constant {
        text: String,
        value: Option<i128>,
    },
    /// Private to the environment.
    Hidden,
}

/// What a tag stands for.
#[derive(Clone, Debug)]
pub(crate) enum Tag {
    Record(usize),
    Enum(Rc<str>),
    Hidden,
}

#[derive(Default)]
pub(crate) struct Scope {
    pub(crate) names: HashMap<String, Entity>,
    pub(crate) tags: HashMap<String, Tag>,
}

/// A function of the module.
pub(crate) struct Defined {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) ty: Rc<Function>,
    pub(crate) span: Span,
    /// In front of the first statement, and the rest.
    pub(crate) head: String,
    pub(crate) body: String,
    /// The deepest nest of loops of its own, and where.
    pub(crate) depth: u32,
    /// Its loops that no other one of its own stands around.
    pub(crate) nests: Vec<Span>,
    /// What it calls: the name, how deep in loops, where.
    pub(crate) calls: Vec<(String, u32, Span)>,
}

/// What is known of the function that is being judged.
#[derive(Default)]
pub(crate) struct Current {
    pub(crate) result: Option<Qualified>,
    pub(crate) depth: u32,
    pub(crate) deepest: u32,
    pub(crate) nests: Vec<Span>,
    pub(crate) switches: u32,
    /// The next statement is one of the block of a `switch`.
    pub(crate) direct: bool,
    pub(crate) labels: HashMap<String, usize>,
    pub(crate) calls: Vec<(String, u32, Span)>,
}

/// Words that begin a statement and name nothing.
const KEYWORDS: [&str; 32] = [
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else",
    "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register",
    "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef",
    "union", "unsigned", "void",
];

pub(crate) struct Judge<'a> {
    pub(crate) elastic: &'a Elastic,
    pub(crate) tokens: &'a Tokens<'a>,
    /// Bytes in front of the program in the text that was parsed.
    pub(crate) shift: usize,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) records: Vec<Record>,
    pub(crate) refusals: Vec<SourceRefusal>,
    /// While the environment is read, nothing is refused and nothing is written.
    pub(crate) trusted: bool,
    /// Every name of the environment.
    pub(crate) taken: HashSet<String>,
    /// What is put behind the names of the module's own.
    pub(crate) suffix: String,
    pub(crate) count: usize,
    pub(crate) out: String,
    pub(crate) functions: Vec<Defined>,
    /// Functions that are declared: where, and whether they are defined.
    pub(crate) declared: HashMap<String, (Span, bool)>,
    pub(crate) current: Current,
    pub(crate) loops: u32,
    /// Variables that count the rounds of the loops around; as they are written.
    pub(crate) counters: Vec<String>,
    /// Whether all of the list that is read is constant.
    pub(crate) constant_list: bool,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(elastic: &'a Elastic, tokens: &'a Tokens<'a>, environment: &str) -> Self {
        let none = HashMap::new();
        let (names, _) = Tokens::read(environment, &none);
        let taken: HashSet<String> = names.names().map(str::to_owned).collect();
        let mut suffix = "_m".to_owned();
        while taken.iter().any(|name| name.contains(&suffix))
            || tokens.names().any(|name| name.contains(&suffix))
        {
            suffix.push('m');
        }
        Judge {
            elastic,
            tokens,
            shift: 0,
            scopes: vec![Scope::default(), Scope::default()],
            records: Vec::new(),
            refusals: Vec::new(),
            trusted: false,
            taken,
            suffix,
            count: 0,
            out: String::new(),
            functions: Vec::new(),
            declared: HashMap::new(),
            current: Current::default(),
            loops: 0,
            counters: Vec::new(),
            constant_list: true,
        }
    }

    /// Whether memory is checked.
    pub(crate) fn checked(&self) -> bool {
        self.elastic.memory == Memory::Checked
    }

    pub(crate) fn public(&self) -> Option<&'a BTreeSet<String>> {
        Some(&self.elastic.environment.as_ref()?.public)
    }

    /// Refuses what stands there.
    pub(crate) fn refuse(&mut self, span: Span, rule: Rule, construct: impl Into<String>) {
        self.refuse_with(span, rule, construct, None);
    }

    pub(crate) fn refuse_with(
        &mut self,
        span: Span,
        rule: Rule,
        construct: impl Into<String>,
        note: Option<String>,
    ) {
        if self.trusted {
            return;
        }
        let range = span.start.saturating_sub(self.shift)..span.end.saturating_sub(self.shift);
        let refusal = SourceRefusal {
            rule,
            construct: construct.into(),
            place: self.tokens.place(range),
            note,
        };
        if !self.refusals.contains(&refusal) {
            self.refusals.push(refusal);
        }
    }

    /// Refuses it if the type has that rule.
    pub(crate) fn unless_free(&mut self, span: Span, rule: Rule, construct: impl Into<String>) {
        if self.elastic.forbids(rule) {
            self.refuse(span, rule, construct);
        }
    }

    /// What the parser could not read.
    pub(crate) fn syntax(&mut self, offset: usize) -> SourceRefusal {
        let word = self.tokens.word(offset).unwrap_or("the end of the program");
        let before = self.tokens.word_before(offset).unwrap_or_default();
        let hidden = |name: &str| matches!(self.find(name), Some(Entity::Hidden));
        let (rule, construct) = match word {
            _ if hidden(word) => (Rule::HiddenName, format!("`{word}`")),
            _ if hidden(before) => (Rule::HiddenName, format!("`{before}`")),
            "*" if before == "goto" => (Rule::ComputedGoto, "a jump to an address".to_owned()),
            "&&" => (Rule::ComputedGoto, "the address of a label".to_owned()),
            ":" if before == "?" => (Rule::Extension, "a condition without its middle".to_owned()),
            "{" if before == ")" => (
                Rule::NestedFunctions,
                "a function's body where none can be".to_owned(),
            ),
            "[" if before == "[" => (Rule::Attributes, "`[[`".to_owned()),
            _ => (Rule::Syntax, format!("`{word}` behind `{before}`")),
        };
        // `FILE *file = ...` is no product.
        if rule == Rule::Syntax
            && let Some((span, name, behind)) = self.tokens.statement(offset)
            && (behind == "*" || behind.starts_with(|c: char| c.is_ascii_alphabetic()))
            && self.find(name).is_none()
            && !KEYWORDS.contains(&name)
        {
            return SourceRefusal {
                rule: Rule::UnknownName,
                construct: format!("the type `{name}`"),
                place: self.tokens.place(span),
                note: None,
            };
        }
        let hidden = rule == Rule::HiddenName && hidden(before) && !hidden(word);
        let start = match hidden {
            true => offset.saturating_sub(before.len() + 1),
            false => offset,
        };
        SourceRefusal {
            rule,
            construct,
            place: self.tokens.place(start..start + 1),
            note: None,
        }
    }

    /// The types that the module sees.
    pub(crate) fn type_names(&self) -> impl Iterator<Item = &String> {
        let types = self.scopes[0].names.iter();
        let mut names: Vec<&String> = types
            .filter(|(name, entity)| matches!(entity, Entity::Type(_)) && self.sees(name))
            .map(|(name, _)| name)
            .collect();
        names.sort();
        names.into_iter()
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Entity> {
        let inner = self.scopes[1..]
            .iter()
            .rev()
            .find_map(|scope| scope.names.get(name));
        let outer = || match self.scopes[0].names.get(name) {
            Some(_) if !self.trusted && !self.sees(name) => Some(&Entity::Hidden),
            found => found,
        };
        inner.or_else(outer)
    }

    pub(crate) fn find_tag(&self, name: &str) -> Option<Tag> {
        let inner = self.scopes[1..]
            .iter()
            .rev()
            .find_map(|scope| scope.tags.get(name));
        let outer = || {
            let found = self.scopes[0].tags.get(name)?;
            let whole = match found {
                Tag::Record(index) => self.records[*index].name.clone(),
                Tag::Enum(_) | Tag::Hidden => format!("enum {name}"),
            };
            match self.trusted || self.sees(&whole) {
                true => Some(found),
                false => Some(&Tag::Hidden),
            }
        };
        inner.or_else(outer).cloned()
    }

    pub(crate) fn at_file_scope(&self) -> bool {
        self.scopes.len() == 2
    }

    pub(crate) fn scope(&mut self) -> &mut Scope {
        let last = if self.trusted {
            0
        } else {
            self.scopes.len() - 1
        };
        &mut self.scopes[last]
    }

    pub(crate) fn name(&mut self, name: &str, entity: Entity) {
        self.scope().names.insert(name.to_owned(), entity);
    }

    /// Whether the module sees that name of the environment.
    pub(crate) fn sees(&self, name: &str) -> bool {
        self.public().is_some_and(|public| public.contains(name))
    }

    /// A name of the module's own that nothing else has.
    pub(crate) fn own(&mut self, name: &str) -> String {
        match self.trusted {
            true => name.to_owned(),
            false if self.at_file_scope() => format!("{name}{}", self.suffix),
            false => {
                self.count += 1;
                format!("{name}{}{}", self.suffix, self.count)
            }
        }
    }

    /// The name of a variable of a block.
    pub(crate) fn local(&self, name: &str) -> String {
        match self.taken.contains(name) {
            true => format!("{name}{}", self.suffix),
            false => name.to_owned(),
        }
    }

    /// Writes a declaration; refuses a type that cannot be written.
    pub(crate) fn written(&mut self, span: Span, q: &Qualified, name: &str) -> String {
        let text = written(&self.records, q, name);
        if text.is_none() && self.refusals.is_empty() {
            self.refuse(
                span,
                Rule::HiddenName,
                "a type of the environment that has no name here",
            );
        }
        text.unwrap_or_default()
    }

    /// The type in words.
    pub(crate) fn shown(&self, q: &Qualified) -> String {
        match (&q.ty, written(&self.records, q, "")) {
            (Type::Record(index), _) => self.records[*index].name.clone(),
            (_, Some(text)) => text.trim_end().to_owned(),
            (_, None) => "a type without a name".to_owned(),
        }
    }

    /// A line marker for what is written next, if its place is known.
    pub(crate) fn line(&self, span: Span) -> String {
        match self.tokens.line(span.start.saturating_sub(self.shift)) {
            Some((file, line)) => {
                let file = file.replace('\\', "\\\\").replace('"', "\\\"");
                format!("\n# {line} \"{file}\"\n")
            }
            None => "\n".to_owned(),
        }
    }
}

/// The first of a list's places, or none.
pub(crate) fn first<T>(nodes: &[Node<T>]) -> Span {
    nodes.first().map_or(Span::none(), |node| node.span)
}
