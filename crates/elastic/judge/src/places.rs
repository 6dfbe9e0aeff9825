//! Expressions that name objects: members, elements, what pointers point to; and writing to them.

use crate::express::{INDEX, LONGEST, Value};
use crate::scope::Judge;
use crate::types::{Length, Qualified, Type};
use lang_c::ast::*;
use lang_c::span::{Node, Span};
use mullion_elastic::Rule;

impl Judge<'_> {
    pub(crate) fn member_of(&mut self, member: &Node<MemberExpression>) -> Value {
        let node = &member.node;
        let (of, through, base) = match node.operator.node {
            MemberOperator::Direct => {
                let of = self.expression(&node.expression);
                (of.q.clone(), false, of)
            }
            MemberOperator::Indirect => {
                let of = self.value(&node.expression);
                match &of.q.ty {
                    Type::Pointer(to) => ((**to).clone(), true, of),
                    Type::Poison => return Value::poison(),
                    _ => {
                        self.refuse(member.span, Rule::Types, "`->` of what is no pointer");
                        return Value::poison();
                    }
                }
            }
        };
        if of.locked {
            self.refuse(member.span, Rule::Locked, "a member of a locked value");
            return Value::poison();
        }
        let name = &node.identifier.node.name;
        let index = match &of.ty {
            Type::Record(index) => *index,
            Type::Poison => return Value::poison(),
            _ => {
                self.refuse(member.span, Rule::Types, "a member of what is no structure");
                return Value::poison();
            }
        };
        let Some((found, union)) = self.member_named(index, name) else {
            let construct = format!(
                "`{name}`, which `{}` does not have",
                self.records[index].name
            );
            self.refuse(node.identifier.span, Rule::UnknownName, construct);
            return Value::poison();
        };
        if union {
            self.unless_free(member.span, Rule::Unions, format!("`{name}` of a union"));
        }
        let mut q = found.q.clone();
        q.constant |= of.constant;
        q.volatile |= of.volatile;
        let mark = if through { "->" } else { "." };
        let mut value = Value::new(format!("({}){mark}{name}", base.text), Type::Void);
        value.q = q;
        value.lvalue = through || base.lvalue;
        value.local = !through && (base.local || !base.lvalue);
        value.read_only = found.read_only || (!through && base.read_only);
        value.bit_field = found.bit_field;
        value
    }

    /// A member, and whether it lies in a union.
    pub(crate) fn member_named(
        &self,
        index: usize,
        name: &str,
    ) -> Option<(crate::types::Member, bool)> {
        let record = &self.records[index];
        for member in record.members.as_ref()? {
            match (&member.name, &member.q.ty) {
                (Some(own), _) if own == name => return Some((member.clone(), record.union)),
                (None, Type::Record(inner)) => {
                    if let Some((found, union)) = self.member_named(*inner, name) {
                        return Some((found, union || record.union));
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Whether a record has such a member, in it or deeper.
    pub(crate) fn has(&self, index: usize, what: &dyn Fn(&crate::types::Member) -> bool) -> bool {
        let members = self.records[index].members.iter().flatten();
        members.into_iter().any(|member| {
            let mut ty = &member.q.ty;
            while let Type::Array(of, _) = ty {
                ty = &of.ty;
            }
            let inner =
                matches!(ty, Type::Record(inner) if *inner != index && self.has(*inner, what));
            let element = crate::types::Member {
                q: Qualified {
                    ty: ty.clone(),
                    ..member.q.clone()
                },
                ..member.clone()
            };
            what(member) || what(&element) || inner
        })
    }

    pub(crate) fn address(
        &mut self,
        unary: &Node<UnaryOperatorExpression>,
        argument: bool,
    ) -> Value {
        let span = unary.span;
        let of = self.expression(&unary.node.operand);
        if matches!(of.q.ty, Type::Function(_)) {
            return self.used(of, span);
        }
        if of.q.ty == Type::Poison {
            return Value::poison();
        }
        if of.q.locked {
            self.refuse(span, Rule::Locked, "the address of a locked value");
        }
        if of.read_only {
            self.refuse(span, Rule::ReadOnly, "the address of a read-only member");
        }
        if self.counters.contains(&of.text) {
            self.refuse(
                span,
                Rule::UnboundedLoops,
                "the address of a loop's counter",
            );
        }
        if !of.lvalue || of.bit_field {
            self.refuse(span, Rule::Types, "the address of what has none");
        }
        if of.local && !argument {
            self.unless_free(
                span,
                Rule::AddressOfLocal,
                "the address of a variable of this function",
            );
        }
        Value {
            constant: !of.local && of.variable,
            ..Value::new(format!("(&({}))", of.text), Type::pointer_to(of.q))
        }
    }

    pub(crate) fn indirection(&mut self, unary: &Node<UnaryOperatorExpression>) -> Value {
        let span = unary.span;
        let of = self.expression(&unary.node.operand);
        if of.q.locked {
            return self.used(of, span);
        }
        // Following an array's own address is its first element: no address is kept.
        let mut of = of;
        if matches!(of.q.ty, Type::Array(..)) {
            let local = std::mem::replace(&mut of.local, false);
            let mut value = self.followed(of, span);
            value.local = local;
            return value;
        }
        let of = self.used(of, span);
        self.followed(of, span)
    }

    pub(crate) fn followed(&mut self, of: Value, span: Span) -> Value {
        let of = self.decayed(of, span);
        let to = match &of.q.ty {
            Type::Pointer(to) => (**to).clone(),
            Type::Poison => return Value::poison(),
            _ => {
                self.refuse(span, Rule::Types, "`*` of what is no pointer");
                return Value::poison();
            }
        };
        if to.ty == Type::Void {
            self.refuse(span, Rule::Types, "`*` of a pointer to `void`");
            return Value::poison();
        }
        if matches!(to.ty, Type::Array(..)) && self.checked() {
            self.refuse(span, Rule::UncheckedIndex, "an array by a pointer");
        }
        let mut value = Value::new(format!("(*({}))", of.text), Type::Void);
        value.lvalue = !matches!(to.ty, Type::Function(_));
        value.q = to;
        value
    }

    pub(crate) fn index(&mut self, binary: &Node<BinaryOperatorExpression>) -> Value {
        let span = binary.span;
        let array = self.expression(&binary.node.lhs);
        let index = self.value(&binary.node.rhs);
        if array.q.locked {
            return self.used(array, span);
        }
        if !index.q.ty.is_integer() {
            // `1[a]` is the same in C.
            self.refuse(
                binary.node.rhs.span,
                Rule::Types,
                "an index that is no integer",
            );
            return Value::poison();
        }
        let (of, length) = match &array.q.ty {
            Type::Array(of, length) => ((**of).clone(), Some(length.clone())),
            Type::Pointer(to) => ((**to).clone(), None),
            Type::Poison => return Value::poison(),
            _ => {
                self.refuse(span, Rule::Types, "an index of what is no array");
                return Value::poison();
            }
        };
        if matches!(of.ty, Type::Void | Type::Function(_)) {
            self.refuse(span, Rule::Types, "an index of what has no size");
            return Value::poison();
        }
        let text = self.indexed(&array, &index, length.as_ref(), span);
        let mut value = Value::new(format!("({})[{text}]", array.text), Type::Void);
        value.lvalue = array.lvalue || length.is_none();
        value.local = length.is_some() && array.local;
        value.read_only = length.is_some() && array.read_only;
        value.q = of;
        value
    }

    /// The index as it is written: checked where it must be and is not known.
    pub(crate) fn indexed(
        &mut self,
        array: &Value,
        index: &Value,
        length: Option<&Length>,
        span: Span,
    ) -> String {
        if !self.elastic.forbids(Rule::UncheckedIndex) {
            return index.text.clone();
        }
        if array.text.len() > LONGEST {
            self.refuse(
                span,
                Rule::Bounds,
                "an index whose array is that long to write",
            );
            return index.text.clone();
        }
        let bound = match length {
            Some(Length::Given(_, Some(known))) => known.to_string(),
            Some(Length::Given(..) | Length::Initialised) => {
                format!("(sizeof({0}) / sizeof(({0})[0]))", array.text)
            }
            None if index.number == Some(0) => return index.text.clone(),
            Some(Length::Unknown) | None => {
                self.refuse(
                    span,
                    Rule::UncheckedIndex,
                    format!("an index of `{}`", self.shown(&array.q)),
                );
                return index.text.clone();
            }
        };
        if let (Some(Length::Given(_, Some(known))), Some(number)) = (length, index.number) {
            if !(0..*known).contains(&number) {
                let construct = format!("the index {number} of an array of {known}");
                self.refuse(span, Rule::UncheckedIndex, construct);
            }
            return index.text.clone();
        }
        format!("{INDEX}((unsigned long)({}), {bound})", index.text)
    }

    /// Refuses to write to it.
    pub(crate) fn assignable(&mut self, value: &Value, span: Span) {
        if value.q.ty == Type::Poison {
            return;
        }
        if value.read_only {
            self.refuse(span, Rule::ReadOnly, "a read-only member that is written");
        }
        if self.counters.contains(&value.text) {
            self.refuse(
                span,
                Rule::UnboundedLoops,
                "a loop's counter that is written inside",
            );
        }
        if !value.lvalue
            || value.q.constant
            || matches!(value.q.ty, Type::Array(..) | Type::Function(_))
        {
            self.refuse(span, Rule::Types, "something constant that is written");
        }
        if let Type::Record(index) = value.q.ty {
            if self.has(index, &|member| member.read_only) {
                let name = self.records[index].name.clone();
                self.refuse(
                    span,
                    Rule::ReadOnly,
                    format!("`{name}`, whose members are not all to be written"),
                );
            }
            if self.has(index, &|member| member.q.constant) {
                self.refuse(span, Rule::Types, "something constant that is written");
            }
        }
        let pointer = value.q.ty.is_pointer()
            || matches!(value.q.ty, Type::Record(index) if self.has(index, &|member| member.q.ty.is_pointer()));
        if pointer && !(value.local && value.variable) {
            self.unless_free(span, Rule::KeptPointers, "a pointer that is stored");
        }
    }

    pub(crate) fn assign(&mut self, binary: &Node<BinaryOperatorExpression>) -> Value {
        let to = self.expression(&binary.node.lhs);
        self.assignable(&to, binary.node.lhs.span);
        let value = self.expression(&binary.node.rhs);
        let text = self.converted(value, &to.q, binary.node.rhs.span);
        let locked = to.q.locked;
        let mut value = Value::new(format!("(({}) = {text})", to.text), to.q.ty);
        value.q.locked = locked;
        value
    }

    pub(crate) fn assign_with(
        &mut self,
        binary: &Node<BinaryOperatorExpression>,
        mark: &'static str,
    ) -> Value {
        let to = self.value(&binary.node.lhs);
        self.assignable(&to, binary.node.lhs.span);
        let value = self.value(&binary.node.rhs);
        let (ty, with) = (to.q.ty.clone(), value.clone());
        self.operated(mark, to.clone(), value, binary.span);
        let count = match mark {
            "<<" | ">>" => self.shift_count(&ty.promoted(), &with),
            _ => with.text,
        };
        Value::new(format!("(({}) {mark}= {count})", to.text), ty)
    }
}
