//! Why conditions do not hold: the tests that fail, with the values that they look at, in a few
//! short lines.

use crate::keynote::parts::{
    Clause, ClauseValue, Evaluator, Float, Integer, Operator, Relation, Str, Test,
};
use crate::keynote::{AssertionId, Query, Store, Work};
use crate::text::shortened;
use std::fmt::Write as _;

/// Lines for one assertion.
const LINES: usize = 3;
/// Bytes of a test as it is shown, and of a value.
const TEST: usize = 160;
const VALUE: usize = 64;
/// Values that are shown of one test.
const VALUES: usize = 4;

/// The tests of an assertion's conditions that fail in a query, each with the values of the
/// attributes that it looks at. They are a few lines at most. None, if they hold, or the budget does not
/// suffice to find out.
#[must_use]
pub fn why(store: &Store, id: AssertionId, query: &Query, work: &mut Work) -> Vec<String> {
    let mut lines = Vec::new();
    store.look_at(id, query, work, |evaluator, conditions| {
        let mut why = Why {
            evaluator,
            lines: &mut lines,
        };
        why.program(conditions);
    });
    lines
}

struct Why<'a> {
    evaluator: Evaluator<'a>,
    lines: &'a mut Vec<String>,
}

impl Why<'_> {
    fn program(&mut self, clauses: &[Clause]) {
        for clause in clauses {
            if self.lines.len() >= LINES {
                return;
            }
            match self.evaluator.test(&clause.test) {
                Ok(true) => match &clause.value {
                    ClauseValue::Nested(clauses) => self.program(clauses),
                    ClauseValue::Named(value) => {
                        let mut text = Shown::new();
                        text.string(value, 0);
                        self.lines
                            .push(format!("it gives no more than {}", text.text));
                    }
                    ClauseValue::Greatest => {}
                },
                Ok(false) => self.blame(&clause.test, true),
                Err(fault) => {
                    let test = self.shown(&clause.test);
                    self.lines.push(format!("{test}: {fault}"));
                }
            }
        }
    }

    /// Finds what made a test false (or true, where it stands behind `!`).
    fn blame(&mut self, test: &Test, wanted: bool) {
        match (test, wanted) {
            (Test::Not(inner), _) => self.blame(inner, !wanted),
            (Test::And(parts), true) | (Test::Or(parts), false) => {
                let guilty = parts
                    .iter()
                    .find(|part| self.evaluator.test(part) != Ok(wanted));
                match guilty {
                    Some(part) => self.blame(part, wanted),
                    None => self.say(test, wanted),
                }
            }
            (Test::And(parts) | Test::Or(parts), _) => {
                for part in parts {
                    if self.lines.len() >= LINES {
                        return;
                    }
                    self.blame(part, wanted);
                }
            }
            _ => self.say(test, wanted),
        }
    }

    fn say(&mut self, test: &Test, wanted: bool) {
        let result = self.evaluator.test(test);
        let mut line = self.shown(test);
        match (result, wanted) {
            (Err(fault), _) => {
                let _ = write!(line, " fails: {fault}");
            }
            (_, true) => line.push_str(" does not hold"),
            (_, false) => line.push_str(" holds"),
        }
        let mut names = Vec::new();
        attributes(test, &mut names);
        for name in names {
            let attribute = Str::Attribute(name);
            let value = self.evaluator.string(&attribute).unwrap_or_default();
            let value = String::from_utf8_lossy(&value[..value.len().min(4 * VALUE)]);
            let value = shortened(&value, VALUE);
            if let Str::Attribute(name) = &attribute {
                let _ = write!(line, "; {} is {value:?}", shortened(name, VALUE));
            }
        }
        self.lines.push(line);
    }

    fn shown(&self, test: &Test) -> String {
        let mut shown = Shown::new();
        shown.test(test, 0);
        shown.text
    }
}

/// The names that a test looks at, the first few.
fn attributes(test: &Test, names: &mut Vec<String>) {
    match test {
        Test::Integers(left, _, right) => {
            integers(left, names);
            integers(right, names);
        }
        Test::Floats(left, _, right) => {
            floats(left, names);
            floats(right, names);
        }
        Test::Strings(left, _, right) => {
            strings(left, names);
            strings(right, names);
        }
        Test::Matches(text, pattern) => {
            strings(text, names);
            strings(&pattern.text, names);
        }
        Test::Constant(_) | Test::Not(_) | Test::And(_) | Test::Or(_) => {}
    }
}

fn integers(expression: &Integer, names: &mut Vec<String>) {
    match expression {
        Integer::Literal(_) => {}
        Integer::Of(text) => strings(text, names),
        Integer::Negated(inner) => integers(inner, names),
        Integer::Chain(first, rest) => {
            integers(first, names);
            rest.iter()
                .take(VALUES)
                .for_each(|(_, next)| integers(next, names));
        }
    }
}

fn floats(expression: &Float, names: &mut Vec<String>) {
    match expression {
        Float::Literal(_) => {}
        Float::Of(text) => strings(text, names),
        Float::Negated(inner) => floats(inner, names),
        Float::Chain(first, rest) => {
            floats(first, names);
            rest.iter()
                .take(VALUES)
                .for_each(|(_, next)| floats(next, names));
        }
    }
}

fn strings(text: &Str, names: &mut Vec<String>) {
    match text {
        Str::Literal(_) => {}
        Str::Attribute(name) => {
            if names.len() < VALUES && !names.contains(name) {
                names.push(name.clone());
            }
        }
        Str::Dereference(inner) => strings(inner, names),
        Str::Joined(parts) => parts
            .iter()
            .take(VALUES)
            .for_each(|part| strings(part, names)),
    }
}

/// An expression as text, up to a bound.
struct Shown {
    text: String,
}

impl Shown {
    fn new() -> Self {
        Shown {
            text: String::new(),
        }
    }

    fn full(&self) -> bool {
        self.text.len() >= TEST
    }

    fn put(&mut self, piece: &str) {
        if self.full() {
            return;
        }
        self.text.push_str(&shortened(piece, TEST));
        if self.full() {
            self.text.truncate(self.text.floor_char_boundary(TEST));
            self.text.push_str("...");
        }
    }

    fn list<T>(&mut self, list: &[T], between: &str, one: impl Fn(&mut Self, &T)) {
        for (index, part) in list.iter().enumerate() {
            if self.full() {
                return;
            }
            if index > 0 {
                self.put(between);
            }
            one(self, part);
        }
    }

    fn open(&mut self, depth: usize) {
        if depth > 0 {
            self.put("(");
        }
    }

    fn close(&mut self, depth: usize) {
        if depth > 0 {
            self.put(")");
        }
    }

    fn test(&mut self, test: &Test, depth: usize) {
        match test {
            Test::Constant(value) => self.put(if *value { "true" } else { "false" }),
            Test::Not(inner) => {
                self.put("!");
                self.test(inner, depth + 1);
            }
            Test::And(parts) | Test::Or(parts) => {
                let between = if matches!(test, Test::And(_)) {
                    " && "
                } else {
                    " || "
                };
                self.open(depth);
                self.list(parts, between, |shown, part| shown.test(part, depth + 1));
                self.close(depth);
            }
            Test::Integers(left, relation, right) => {
                self.open(depth);
                self.integer(left, 0);
                self.put(sign(*relation));
                self.integer(right, 0);
                self.close(depth);
            }
            Test::Floats(left, relation, right) => {
                self.open(depth);
                self.float(left, 0);
                self.put(sign(*relation));
                self.float(right, 0);
                self.close(depth);
            }
            Test::Strings(left, relation, right) => {
                self.open(depth);
                self.string(left, 0);
                self.put(sign(*relation));
                self.string(right, 0);
                self.close(depth);
            }
            Test::Matches(text, pattern) => {
                self.open(depth);
                self.string(text, 0);
                self.put(" ~= ");
                self.string(&pattern.text, 0);
                self.close(depth);
            }
        }
    }

    fn integer(&mut self, expression: &Integer, depth: usize) {
        match expression {
            Integer::Literal(number) => self.put(&number.to_string()),
            Integer::Of(text) => {
                self.put("@");
                self.string(text, 1);
            }
            Integer::Negated(inner) => {
                self.put("-");
                self.integer(inner, 1);
            }
            Integer::Chain(first, rest) => {
                self.open(depth);
                self.integer(first, 1);
                self.list(rest, "", |shown, (operator, next)| {
                    shown.put(mark(*operator));
                    shown.integer(next, 1);
                });
                self.close(depth);
            }
        }
    }

    fn float(&mut self, expression: &Float, depth: usize) {
        match expression {
            Float::Literal(number) => self.put(&format!("{number:?}")),
            Float::Of(text) => {
                self.put("&");
                self.string(text, 1);
            }
            Float::Negated(inner) => {
                self.put("-");
                self.float(inner, 1);
            }
            Float::Chain(first, rest) => {
                self.open(depth);
                self.float(first, 1);
                self.list(rest, "", |shown, (operator, next)| {
                    shown.put(mark(*operator));
                    shown.float(next, 1);
                });
                self.close(depth);
            }
        }
    }

    fn string(&mut self, text: &Str, depth: usize) {
        match text {
            Str::Literal(text) => {
                let text = String::from_utf8_lossy(&text[..text.len().min(TEST)]).into_owned();
                self.put(&format!("{text:?}"));
            }
            Str::Attribute(name) => self.put(name),
            Str::Dereference(inner) => {
                self.put("$");
                self.string(inner, 1);
            }
            Str::Joined(parts) => {
                self.open(depth);
                self.list(parts, " . ", |shown, part| shown.string(part, 1));
                self.close(depth);
            }
        }
    }
}

fn sign(relation: Relation) -> &'static str {
    match relation {
        Relation::Equal => " == ",
        Relation::NotEqual => " != ",
        Relation::Less => " < ",
        Relation::Greater => " > ",
        Relation::LessOrEqual => " <= ",
        Relation::GreaterOrEqual => " >= ",
    }
}

fn mark(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => " + ",
        Operator::Subtract => " - ",
        Operator::Multiply => " * ",
        Operator::Divide => " / ",
        Operator::Modulo => " % ",
        Operator::Power => " ^ ",
    }
}
