//! Initialisers: a list has the braces of what it fills.

use crate::express::Value;
use crate::scope::Judge;
use crate::types::{Length, Qualified, Type};
use lang_c::ast::*;
use lang_c::span::{Node, Span};
use mullion_elastic::Rule;

impl Judge<'_> {
    /// The text of an initialiser of something of that type, the type with its length, and whether it is constant.
    pub(crate) fn initialiser(
        &mut self,
        q: &Qualified,
        initialiser: &Node<Initializer>,
    ) -> (String, Qualified, bool) {
        match &initialiser.node {
            Initializer::Expression(expression) => {
                let value = self.expression(expression);
                // Addresses of what lives as long as the program are known.
                let lasting =
                    !value.local && value.variable && matches!(value.q.ty, Type::Array(..));
                let constant = value.constant || lasting || matches!(value.q.ty, Type::Function(_));
                let (text, q) = self.initial(q, value, expression.span);
                (text, q, constant)
            }
            Initializer::List(items) => {
                let before = std::mem::replace(&mut self.constant_list, true);
                let (text, q) = self.list(q, items, initialiser.span);
                let constant = std::mem::replace(&mut self.constant_list, before);
                (text, q, constant)
            }
        }
    }

    fn initial(&mut self, q: &Qualified, value: Value, span: Span) -> (String, Qualified) {
        let Type::Array(of, length) = &q.ty else {
            return (self.converted(value, q, span), q.clone());
        };
        let letters = matches!(&of.ty, Type::Int(int) if int.bits == 8 && int.text != "_Bool");
        if !value.literal || !letters {
            self.refuse(
                span,
                Rule::Types,
                "an array whose initialiser has no braces",
            );
        }
        let mut q = q.clone();
        if let Length::Unknown = length {
            q.ty = Type::Array(of.clone(), Length::Initialised);
        }
        (value.text, q)
    }

    /// A list of initialisers with its braces, and the type with its length.
    pub(crate) fn list(
        &mut self,
        q: &Qualified,
        items: &[Node<InitializerListItem>],
        span: Span,
    ) -> (String, Qualified) {
        if items.is_empty() {
            self.refuse(
                span,
                Rule::Extension,
                "an initialiser without anything in it",
            );
        }
        // `{0}` fills whatever there is.
        if let [only] = items
            && only.node.designation.is_empty()
            && is_zero(&only.node.initializer.node)
            && matches!(q.ty, Type::Record(_) | Type::Array(_, Length::Given(..)))
        {
            return ("{0}".to_owned(), q.clone());
        }
        if q.locked && !matches!(q.ty, Type::Array(..)) {
            self.refuse(span, Rule::Locked, "a locked value made of others");
        }
        let (mut texts, mut next) = (Vec::new(), 0);
        let mut q = q.clone();
        for item in items {
            let (place, of) = match self.place_in(&q, item, &mut next) {
                Some(found) => found,
                None => return (String::new(), Type::Poison.into()),
            };
            let (text, _, constant) = self.initialiser(&of, &item.node.initializer);
            self.constant_list &= constant;
            texts.push(format!("{place}{text}"));
        }
        if let Type::Array(of, Length::Unknown) = &q.ty {
            q.ty = Type::Array(of.clone(), Length::Initialised);
        }
        (format!("{{{}}}", texts.join(", ")), q)
    }

    /// The designator of an item, as it is written, and the type of what it fills.
    fn place_in(
        &mut self,
        q: &Qualified,
        item: &Node<InitializerListItem>,
        next: &mut usize,
    ) -> Option<(String, Qualified)> {
        let designator = match item.node.designation.as_slice() {
            [] => None,
            [only] => Some(only),
            [_, second, ..] => {
                self.refuse(
                    second.span,
                    Rule::Types,
                    "a designator of more than one level",
                );
                return None;
            }
        };
        match &q.ty {
            Type::Array(of, _) => match designator.map(|designator| &designator.node) {
                None => Some((String::new(), (**of).clone())),
                Some(Designator::Index(index)) => {
                    let value = self.expression(index);
                    if !value.constant {
                        self.refuse(index.span, Rule::Types, "a designator that is not constant");
                    }
                    Some((format!("[{}] = ", value.text), (**of).clone()))
                }
                Some(Designator::Range(range)) => {
                    self.refuse(range.span, Rule::Extension, "a range of elements");
                    None
                }
                Some(Designator::Member(name)) => {
                    self.refuse(name.span, Rule::Types, "a member of an array");
                    None
                }
            },
            Type::Record(index) => {
                let members = self.records[*index].members.clone().unwrap_or_default();
                let found = match designator.map(|designator| &designator.node) {
                    None => *next,
                    Some(Designator::Member(name)) => {
                        let named = |member: &crate::types::Member| {
                            member.name.as_ref() == Some(&name.node.name)
                        };
                        members.iter().position(named).unwrap_or(usize::MAX)
                    }
                    Some(Designator::Index(_) | Designator::Range(_)) => usize::MAX,
                };
                let Some(member) = members.get(found) else {
                    self.refuse(item.span, Rule::Types, "an initialiser without a member");
                    return None;
                };
                let Some(name) = &member.name else {
                    self.refuse(item.span, Rule::Types, "a member without a name");
                    return None;
                };
                *next = found + 1;
                Some((format!(".{name} = "), member.q.clone()))
            }
            Type::Poison => None,
            _ if designator.is_none() && *next == 0 => {
                *next = 1;
                Some((String::new(), q.clone()))
            }
            _ => {
                self.refuse(
                    item.span,
                    Rule::Types,
                    "more initialisers than there are members",
                );
                None
            }
        }
    }
}

fn is_zero(initialiser: &Initializer) -> bool {
    let Initializer::Expression(expression) = initialiser else {
        return false;
    };
    let Expression::Constant(constant) = &expression.node else {
        return false;
    };
    matches!(&constant.node, Constant::Integer(integer) if integer.number.bytes().all(|digit| digit == b'0'))
}
