//! The value of conditions and of string expressions (RFC 2704, section 5.3.4).

use super::bounds;
use super::posix::{self, Compiled};
use super::syntax::{Clause, ClauseValue, Float, Integer, Operator, Str, Test};
use super::work::{Cost, Exhausted, Work};
pub use mullion_wire::keynote::ConditionError;
use std::borrow::Cow;
use std::collections::BTreeMap;

impl From<Exhausted> for ConditionError {
    fn from(_: Exhausted) -> Self {
        ConditionError::TooMuch
    }
}

/// What names mean in one query: its attributes and the four of KeyNote.
pub(super) struct Environment<'a> {
    pub(super) attributes: &'a BTreeMap<String, Vec<u8>>,
    /// In ascending order.
    pub(super) values: &'a [String],
    pub(super) value_list: &'a [u8],
    pub(super) authorizers: &'a [u8],
}

/// Kinds of faults of one assertion that are noted.
const FAULTS: usize = 4;

/// The groups of the last match, `_0` first.
type Groups = Vec<Vec<u8>>;

/// Evaluates the fields of one assertion.
pub struct Evaluator<'a> {
    environment: &'a Environment<'a>,
    constants: &'a BTreeMap<String, Vec<u8>>,
    groups: Groups,
    work: &'a mut Work,
    /// The first tests that ended with a fault, for the explanation.
    pub(super) faults: Vec<ConditionError>,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(
        environment: &'a Environment<'a>,
        constants: &'a BTreeMap<String, Vec<u8>>,
        work: &'a mut Work,
    ) -> Self {
        Evaluator {
            environment,
            constants,
            groups: Vec::new(),
            work,
            faults: Vec::new(),
        }
    }

    /// The greatest value of all clauses that succeed, as an index.
    pub(super) fn program(&mut self, clauses: &[Clause]) -> usize {
        let mut best = 0;
        for clause in clauses {
            // What a match leaves behind is seen by its clause, and by what is
            // nested in it, only.
            let outer = self.groups.clone();
            let size = outer.iter().map(Vec::len).sum();
            if self.work.pay(Cost::Copied, size).is_err() {
                return best.max(self.fault(ConditionError::TooMuch));
            }
            best = best.max(self.clause(clause));
            self.groups = outer;
            if best == self.greatest() {
                break;
            }
        }
        best
    }

    fn greatest(&self) -> usize {
        self.environment.values.len() - 1
    }

    fn clause(&mut self, clause: &Clause) -> usize {
        match self.test(&clause.test) {
            Ok(true) => {}
            Ok(false) => return 0,
            Err(fault) => return self.fault(fault),
        }
        match &clause.value {
            ClauseValue::Greatest => self.greatest(),
            ClauseValue::Nested(clauses) => self.program(clauses),
            ClauseValue::Named(text) => match self.string(text) {
                Ok(name) => {
                    let named = |value: &String| value.as_bytes() == name.as_ref();
                    self.environment.values.iter().position(named).unwrap_or(0)
                }
                Err(fault) => self.fault(fault),
            },
        }
    }

    /// Notes a fault; a clause with one is worth nothing.
    fn fault(&mut self, fault: ConditionError) -> usize {
        if self.faults.len() < FAULTS && !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
        0
    }

    fn step(&mut self) -> Result<(), ConditionError> {
        Ok(self.work.pay(Cost::Step, 1)?)
    }

    pub fn test(&mut self, test: &Test) -> Result<bool, ConditionError> {
        self.step()?;
        match test {
            Test::Constant(value) => Ok(*value),
            Test::Not(test) => Ok(!self.test(test)?),
            Test::And(tests) => {
                for test in tests {
                    if !self.test(test)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Test::Or(tests) => {
                for test in tests {
                    if self.test(test)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Test::Integers(left, relation, right) => {
                let (left, right) = (self.integer(left)?, self.integer(right)?);
                Ok(relation.holds(left.cmp(&right)))
            }
            Test::Floats(left, relation, right) => {
                let (left, right) = (self.float(left)?, self.float(right)?);
                let ordering = left.partial_cmp(&right).ok_or(ConditionError::NotFinite)?;
                Ok(relation.holds(ordering))
            }
            Test::Strings(left, relation, right) => {
                let (left, right) = (self.string(left)?, self.string(right)?);
                self.work.pay(Cost::Copied, left.len().min(right.len()))?;
                Ok(relation.holds(left.as_ref().cmp(right.as_ref())))
            }
            Test::Matches(text, pattern) => {
                let text = self.string(text)?;
                if let Some(compiled) = pattern.fixed(self.work)? {
                    return self.matches(&text, compiled.ok_or(ConditionError::Pattern)?);
                }
                let source = self.string(&pattern.text)?;
                let compiled = posix::compile(&source, self.work)?;
                self.matches(&text, &compiled.map_err(|_| ConditionError::Pattern)?)
            }
        }
    }

    fn matches(&mut self, text: &[u8], compiled: &Compiled) -> Result<bool, ConditionError> {
        self.groups.clear();
        let Some(found) = compiled.matches(text, self.work)? else {
            return Ok(false);
        };
        self.groups.push(found.count.to_string().into_bytes());
        for group in found.groups {
            let group = group.and_then(|range| text.get(range)).unwrap_or_default();
            self.work.pay(Cost::Copied, group.len())?;
            self.groups.push(group.to_vec());
        }
        Ok(true)
    }

    pub(super) fn integer(&mut self, expression: &Integer) -> Result<i32, ConditionError> {
        self.step()?;
        match expression {
            Integer::Literal(number) => Ok(*number),
            Integer::Of(text) => {
                let number = number(&self.string(text)?).floor();
                let exact = number >= f64::from(i32::MIN) && number <= f64::from(i32::MAX);
                exact
                    .then_some(number as i32)
                    .ok_or(ConditionError::Overflow)
            }
            Integer::Negated(inner) => self
                .integer(inner)?
                .checked_neg()
                .ok_or(ConditionError::Overflow),
            Integer::Chain(first, rest) => {
                let mut result = self.integer(first)?;
                for (operator, next) in rest {
                    let next = self.integer(next)?;
                    result = apply(result, *operator, next)?;
                }
                Ok(result)
            }
        }
    }

    pub(super) fn float(&mut self, expression: &Float) -> Result<f64, ConditionError> {
        self.step()?;
        let result = match expression {
            Float::Literal(number) => *number,
            Float::Of(text) => number(&self.string(text)?),
            Float::Negated(inner) => -self.float(inner)?,
            Float::Chain(first, rest) => {
                let mut result = self.float(first)?;
                for (operator, next) in rest {
                    let next = self.float(next)?;
                    result = match operator {
                        Operator::Add => result + next,
                        Operator::Subtract => result - next,
                        Operator::Multiply => result * next,
                        Operator::Divide if next == 0.0 => {
                            return Err(ConditionError::DivisionByZero);
                        }
                        Operator::Divide => result / next,
                        Operator::Modulo => result % next,
                        Operator::Power => result.powf(next),
                    };
                }
                result
            }
        };
        result
            .is_finite()
            .then_some(result)
            .ok_or(ConditionError::NotFinite)
    }

    pub fn string<'s>(&mut self, text: &'s Str) -> Result<Cow<'s, [u8]>, ConditionError>
    where
        'a: 's,
    {
        self.step()?;
        match text {
            Str::Literal(text) => Ok(Cow::Borrowed(text)),
            Str::Attribute(name) => self.attribute(name),
            Str::Dereference(inner) => {
                let name = self.string(inner)?;
                match std::str::from_utf8(&name) {
                    Ok(name) => {
                        let value = self.attribute(name)?;
                        self.work.pay(Cost::Copied, value.len())?;
                        Ok(Cow::Owned(value.into_owned()))
                    }
                    Err(_) => Ok(Cow::Borrowed(b"")),
                }
            }
            Str::Joined(parts) => {
                let mut joined = Vec::new();
                for part in parts {
                    let part = self.string(part)?;
                    if joined.len() + part.len() > bounds::STRING {
                        return Err(ConditionError::TooLong(bounds::STRING));
                    }
                    self.work.pay(Cost::Copied, part.len())?;
                    joined.extend_from_slice(&part);
                }
                Ok(Cow::Owned(joined))
            }
        }
    }

    /// The value of a name; empty if it has none.
    fn attribute<'s>(&mut self, name: &str) -> Result<Cow<'s, [u8]>, ConditionError>
    where
        'a: 's,
    {
        let environment = self.environment;
        Ok(match name.strip_prefix('_') {
            Some("MIN_TRUST") => Cow::Borrowed(environment.values[0].as_bytes()),
            Some("MAX_TRUST") => Cow::Borrowed(environment.values[self.greatest()].as_bytes()),
            Some("VALUES") => Cow::Borrowed(environment.value_list),
            Some("ACTION_AUTHORIZERS") => Cow::Borrowed(environment.authorizers),
            Some(number) => {
                let index = number.parse().ok().filter(|_| is_plain(number));
                let group = index.and_then(|index: usize| self.groups.get(index));
                let group = group.map_or(&[][..], Vec::as_slice);
                self.work.pay(Cost::Copied, group.len())?;
                Cow::Owned(group.to_vec())
            }
            None => {
                let constant = self.constants.get(name);
                let value = constant.or_else(|| environment.attributes.get(name));
                value.map_or(Cow::Borrowed(b"".as_slice()), |value| Cow::Borrowed(value))
            }
        })
    }
}

/// A decimal number without sign or leading zeros.
fn is_plain(number: &str) -> bool {
    number == "0" || !number.starts_with(['0', '+'])
}

/// The number that a string represents, zero if it represents none.
fn number(text: &[u8]) -> f64 {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let points = digits.iter().filter(|byte| **byte == b'.').count();
    let legal = digits
        .iter()
        .all(|byte| byte.is_ascii_digit() || *byte == b'.')
        && digits.iter().any(u8::is_ascii_digit)
        && points <= 1;
    let text = std::str::from_utf8(text).ok().filter(|_| legal);
    text.and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

fn apply(left: i32, operator: Operator, right: i32) -> Result<i32, ConditionError> {
    match operator {
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide | Operator::Modulo if right == 0 => {
            return Err(ConditionError::DivisionByZero);
        }
        Operator::Divide => left.checked_div(right),
        Operator::Modulo => left.checked_rem(right),
        Operator::Power => return power(left, right),
    }
    .ok_or(ConditionError::Overflow)
}

/// With a negative exponent, the inverse rounded towards zero.
fn power(base: i32, exponent: i32) -> Result<i32, ConditionError> {
    match (base, u32::try_from(exponent)) {
        (_, Ok(exponent)) => base.checked_pow(exponent).ok_or(ConditionError::Overflow),
        (0, Err(_)) => Err(ConditionError::DivisionByZero),
        (1, Err(_)) => Ok(1),
        (-1, Err(_)) => Ok(if exponent % 2 == 0 { 1 } else { -1 }),
        (_, Err(_)) => Ok(0),
    }
}
