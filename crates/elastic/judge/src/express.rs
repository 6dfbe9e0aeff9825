//! Expressions: what each is, whether it may be, and how it is written.

use crate::scope::{Entity, Judge};
use crate::types::{Function, INT, Length, Qualified, Type, UNSIGNED_LONG};
use lang_c::ast::*;
use lang_c::span::{Node, Span};
use mullion_elastic::Rule;
use std::rc::Rc;

/// A function that checks an index; it is in front of what is written.
pub(crate) const INDEX: &str = "__mullion_index";

/// The most bytes of an expression that is written more than once.
pub(crate) const LONGEST: usize = 4096;

/// An expression that was judged.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) text: String,
    pub(crate) q: Qualified,
    /// It is known when the module is compiled.
    pub(crate) constant: bool,
    /// Its number, if that is known here.
    pub(crate) number: Option<i128>,
    /// It names an object.
    pub(crate) lvalue: bool,
    /// That object's storage ends with its block.
    pub(crate) local: bool,
    /// That object is a variable by its own name.
    pub(crate) variable: bool,
    /// A member that cannot be written or pointed to.
    pub(crate) read_only: bool,
    pub(crate) bit_field: bool,
    /// A literal, for arrays of characters.
    pub(crate) literal: bool,
}

impl Value {
    pub(crate) fn new(text: impl Into<String>, ty: Type) -> Self {
        Value {
            text: text.into(),
            q: ty.into(),
            constant: false,
            number: None,
            lvalue: false,
            local: false,
            variable: false,
            read_only: false,
            bit_field: false,
            literal: false,
        }
    }

    pub(crate) fn poison() -> Self {
        Value::new("0", Type::Poison)
    }

    pub(crate) fn is_null(&self) -> bool {
        self.constant && self.number == Some(0)
    }
}

impl Judge<'_> {
    /// Judges an expression as an operand: what it names, before arrays become pointers.
    pub(crate) fn expression(&mut self, expression: &Node<Expression>) -> Value {
        let span = expression.span;
        let value = match &expression.node {
            Expression::Identifier(name) => self.identifier(name),
            Expression::Constant(constant) => self.constant(constant),
            Expression::StringLiteral(literal) => self.string(literal),
            Expression::GenericSelection(_) => {
                self.refuse(span, Rule::Generic, "`_Generic`");
                Value::poison()
            }
            Expression::Member(member) => self.member_of(member),
            Expression::Call(call) => self.call(call),
            Expression::CompoundLiteral(literal) => {
                let q = self.type_name(&literal.node.type_name);
                let (text, q) = self.list(&q, &literal.node.initializer_list, span);
                let name = self.written(span, &q, "");
                let mut value = Value::new(format!("(({name}){text})"), Type::Void);
                (value.q, value.lvalue, value.local) = (q, true, true);
                value
            }
            Expression::SizeOfTy(of) => {
                let q = self.type_name(&of.node.0);
                self.size_of(span, &q)
            }
            Expression::SizeOfVal(of) => {
                let of = self.expression(&of.node.0);
                let known = !matches!(of.q.ty, Type::Void | Type::Function(_)) && !of.bit_field;
                if !known {
                    self.refuse(span, Rule::Types, "`sizeof` of what has no size");
                }
                Value {
                    constant: true,
                    ..Value::new(format!("sizeof({})", of.text), UNSIGNED_LONG)
                }
            }
            Expression::AlignOf(_) => {
                self.refuse(span, Rule::Alignment, "`_Alignof`");
                Value::poison()
            }
            Expression::UnaryOperator(unary) => self.unary(unary),
            Expression::Cast(cast) => self.cast(cast),
            Expression::BinaryOperator(binary) => self.binary(binary),
            Expression::Conditional(conditional) => self.conditional(conditional),
            Expression::Comma(list) => self.comma(list),
            Expression::OffsetOf(_) => {
                self.refuse(span, Rule::Builtins, "`__builtin_offsetof`");
                Value::poison()
            }
            Expression::VaArg(_) => {
                self.refuse(span, Rule::Variadic, "`va_arg`");
                Value::poison()
            }
            Expression::Statement(_) => {
                self.refuse(span, Rule::StatementExpressions, "`({ ... })`");
                Value::poison()
            }
        };
        // A poisoned type stands for something that was refused; of an environment, for what is not understood.
        if !value.q.ty.is_understood() && self.refusals.is_empty() {
            self.refuse(
                span,
                Rule::Types,
                "something of the environment whose type is not understood",
            );
        }
        if matches!(value.q.ty, Type::Float(_)) {
            self.unless_free(span, Rule::FloatingPoint, "a floating-point value");
        }
        value
    }

    /// Judges an expression whose value is used: arrays are pointers to their first elements.
    pub(crate) fn value(&mut self, expression: &Node<Expression>) -> Value {
        let value = self.expression(expression);
        self.used(value, expression.span)
    }

    pub(crate) fn used(&mut self, value: Value, span: Span) -> Value {
        if value.q.locked {
            let construct = format!("a value of the type `{}`", self.shown(&value.q));
            self.refuse(span, Rule::Locked, construct);
            return Value::poison();
        }
        self.decayed(value, span)
    }

    /// What an array or function is where it is neither measured nor pointed to.
    pub(crate) fn decayed(&mut self, mut value: Value, span: Span) -> Value {
        match value.q.ty.clone() {
            Type::Array(of, length) => {
                if value.local {
                    self.unless_free(span, Rule::AddressOfLocal, "an array of this function");
                }
                // The first element of such a pointer may be followed.
                let has_one = match length {
                    Length::Given(_, Some(known)) => known > 0,
                    Length::Initialised => true,
                    Length::Given(_, None) | Length::Unknown => false,
                };
                if !has_one {
                    self.unless_free(
                        span,
                        Rule::UncheckedIndex,
                        "an array whose length is no number here, or 0, as a pointer",
                    );
                }
                let mut of = (*of).clone();
                of.constant |= value.read_only || value.q.constant;
                value.q = Type::pointer_to(of).into();
                value.lvalue = false;
            }
            Type::Function(_) => {
                self.unless_free(span, Rule::IndirectCalls, "the address of a function");
                value.q = Type::pointer_to(value.q).into();
                value.constant = true;
            }
            _ => {}
        }
        value
    }

    pub(crate) fn identifier(&mut self, name: &Node<Identifier>) -> Value {
        let text = name.node.name.as_str();
        let allocates = [
            "malloc",
            "calloc",
            "realloc",
            "free",
            "aligned_alloc",
            "posix_memalign",
        ];
        if allocates.contains(&text) {
            self.unless_free(name.span, Rule::Allocation, format!("`{text}`"));
        }
        match self.find(text).cloned() {
            Some(Entity::Object { q, text, local }) => {
                let mut value = Value::new(text, Type::Void);
                (value.q, value.local) = (q, local);
                (value.lvalue, value.variable) = (true, true);
                value
            }
            Some(Entity::Function { ty, text }) => Value::new(text, Type::Function(ty)),
            Some(Entity::Constant { text, value }) => Value {
                constant: true,
                number: value,
                ..Value::new(text, INT)
            },
            Some(Entity::Type(_)) => {
                self.refuse(
                    name.span,
                    Rule::Types,
                    format!("the type `{text}` where a value belongs"),
                );
                Value::poison()
            }
            Some(Entity::Hidden) => {
                self.refuse(name.span, Rule::HiddenName, format!("`{text}`"));
                Value::poison()
            }
            None => {
                self.refuse(name.span, Rule::UnknownName, format!("`{text}`"));
                Value::poison()
            }
        }
    }

    pub(crate) fn size_of(&mut self, span: Span, q: &Qualified) -> Value {
        if matches!(q.ty, Type::Void | Type::Function(_)) {
            self.refuse(span, Rule::Types, "`sizeof` of what has no size");
        }
        let name = self.written(span, q, "");
        Value {
            constant: true,
            ..Value::new(format!("sizeof({name})"), UNSIGNED_LONG)
        }
    }

    pub(crate) fn call(&mut self, call: &Node<CallExpression>) -> Value {
        let node = &call.node;
        let callee = self.expression(&node.callee);
        let direct = matches!(callee.q.ty, Type::Function(_))
            && matches!(node.callee.node, Expression::Identifier(_));
        let function: Rc<Function> = match &callee.q.ty {
            Type::Function(function) if direct => function.clone(),
            Type::Pointer(to) => match &to.ty {
                Type::Function(function) => {
                    self.unless_free(call.span, Rule::IndirectCalls, "a call by a pointer");
                    function.clone()
                }
                _ => return self.no_function(call),
            },
            Type::Function(function) => {
                self.unless_free(call.span, Rule::IndirectCalls, "a call by a pointer");
                function.clone()
            }
            Type::Poison => {
                for argument in &node.arguments {
                    self.expression(argument);
                }
                return Value::poison();
            }
            _ => return self.no_function(call),
        };
        if let Expression::Identifier(name) = &node.callee.node {
            let depth = self.current.depth;
            self.current
                .calls
                .push((name.node.name.clone(), depth, call.span));
        }
        if function.variadic {
            self.unless_free(
                call.span,
                Rule::VariadicCalls,
                "a call of a function with `...`",
            );
        }
        let (given, wanted) = (node.arguments.len(), function.parameters.len());
        if given < wanted || (given > wanted && !function.variadic) {
            let construct = format!("{given} arguments where {wanted} belong");
            self.refuse(call.span, Rule::Types, construct);
            return Value::poison();
        }
        let mut texts = Vec::new();
        for (index, argument) in node.arguments.iter().enumerate() {
            let value = self.argument(argument);
            texts.push(match function.parameters.get(index) {
                Some(parameter) => self.converted(value, parameter, argument.span),
                None => self.used(value, argument.span).text,
            });
        }
        let mut value = Value::new(format!("{}({})", callee.text, texts.join(", ")), Type::Void);
        value.q = function.result.clone();
        value
    }

    pub(crate) fn no_function(&mut self, call: &Node<CallExpression>) -> Value {
        self.refuse(call.span, Rule::Types, "a call of what is no function");
        Value::poison()
    }

    /// An argument may be the address of a local: nothing keeps it.
    pub(crate) fn argument(&mut self, argument: &Node<Expression>) -> Value {
        if let Expression::UnaryOperator(unary) = &argument.node
            && unary.node.operator.node == UnaryOperator::Address
        {
            return self.address(unary, true);
        }
        let mut value = self.expression(argument);
        if matches!(value.q.ty, Type::Array(..)) && !value.q.locked {
            value.local = false;
        }
        value
    }

    pub(crate) fn cast(&mut self, cast: &Node<CastExpression>) -> Value {
        let span = cast.span;
        let to = self.type_name(&cast.node.type_name);
        let value = self.expression(&cast.node.expression);
        if to.locked || value.q.locked {
            self.refuse(span, Rule::Locked, "a cast of a locked value");
            return Value::poison();
        }
        let value = self.used(value, cast.node.expression.span);
        let from = &value.q.ty;
        match (&to.ty, from) {
            (_, Type::Poison) | (Type::Poison, _) | (Type::Void, _) => {}
            (to, from) if to.is_arithmetic() && from.is_arithmetic() => {}
            (Type::Pointer(_), from) if from.is_integer() => {
                if !value.is_null() {
                    let construct = format!("`{}` from a number", self.shown(&to));
                    self.unless_free(span, Rule::IntegerToPointer, construct);
                }
            }
            (to, Type::Pointer(_)) if to.is_integer() => {
                self.unless_free(span, Rule::PointerToInteger, "a pointer as a number");
            }
            (Type::Pointer(left), Type::Pointer(right)) if left.locked != right.locked => {
                self.refuse(span, Rule::Locked, "a pointer to a locked value as another");
            }
            (Type::Pointer(left), Type::Pointer(right)) => {
                if left.ty != right.ty || (right.constant && !left.constant) {
                    let construct =
                        format!("`{}` from `{}`", self.shown(&to), self.shown(&value.q));
                    self.unless_free(span, Rule::PointerCasts, construct);
                }
            }
            _ => {
                let construct = format!("`{}` from `{}`", self.shown(&to), self.shown(&value.q));
                self.refuse(span, Rule::Types, construct);
            }
        }
        let name = self.written(span, &to, "");
        let number = value.number.and_then(|number| held(number, &to.ty));
        Value {
            constant: value.constant,
            number,
            ..Value::new(format!("(({name})({}))", value.text), to.ty)
        }
    }

    pub(crate) fn conditional(&mut self, conditional: &Node<ConditionalExpression>) -> Value {
        let node = &conditional.node;
        let condition = self.condition(&node.condition);
        let (left, right) = (
            self.value(&node.then_expression),
            self.value(&node.else_expression),
        );
        let q = match (&left.q.ty, &right.q.ty) {
            (Type::Poison, _) | (_, Type::Poison) => Type::Poison.into(),
            (a, b) if a.is_arithmetic() && b.is_arithmetic() => a.with(b).into(),
            (Type::Pointer(_), _) if right.is_null() => left.q.clone(),
            (_, Type::Pointer(_)) if left.is_null() => right.q.clone(),
            (Type::Pointer(a), Type::Pointer(b)) if a.ty == b.ty && a.locked == b.locked => {
                let mut to = (**a).clone();
                to.constant |= b.constant;
                Type::pointer_to(to).into()
            }
            (a, b) if a == b => left.q.clone(),
            _ => {
                self.refuse(
                    conditional.span,
                    Rule::Types,
                    "two values of different types",
                );
                Type::Poison.into()
            }
        };
        let mut value = Value::new(
            format!("({condition} ? {} : {})", left.text, right.text),
            q.ty,
        );
        value.constant = left.constant && right.constant && node_is_constant(&condition);
        value
    }

    /// A value that is only asked whether it is 0.
    pub(crate) fn condition(&mut self, expression: &Node<Expression>) -> String {
        let value = self.value(expression);
        if !value.q.ty.is_scalar() {
            self.refuse(
                expression.span,
                Rule::Types,
                "a condition that is no number",
            );
        }
        value.text
    }

    pub(crate) fn comma(&mut self, list: &[Node<Expression>]) -> Value {
        let (mut texts, mut last) = (Vec::new(), Value::poison());
        for (index, expression) in list.iter().enumerate() {
            last = match index + 1 == list.len() {
                true => self.value(expression),
                false => self.expression(expression),
            };
            texts.push(last.text.clone());
        }
        Value::new(format!("({})", texts.join(", ")), last.q.ty)
    }

    /// A value where something of the type `to` is initialised, assigned, passed or returned.
    pub(crate) fn converted(&mut self, value: Value, to: &Qualified, span: Span) -> String {
        if value.q.ty == Type::Poison || to.ty == Type::Poison {
            return value.text;
        }
        if value.q.locked || to.locked {
            if !(value.q.locked && to.locked && value.q.ty == to.ty)
                || matches!(to.ty, Type::Array(..))
            {
                let construct = format!("`{}` from `{}`", self.shown(to), self.shown(&value.q));
                self.refuse(span, Rule::Locked, construct);
            }
            return value.text;
        }
        let value = self.decayed(value, span);
        let from = &value.q;
        let problem = match (&to.ty, &from.ty) {
            (_, Type::Poison) => None,
            (to, from) if to.is_arithmetic() && from.is_arithmetic() => None,
            (Type::Int(int), Type::Pointer(_)) if int.text == "_Bool" => None,
            (Type::Pointer(_), from) if from.is_integer() => {
                (!value.is_null()).then_some(Rule::IntegerToPointer)
            }
            (to, Type::Pointer(_)) if to.is_integer() => Some(Rule::PointerToInteger),
            (Type::Pointer(a), Type::Pointer(b)) => {
                let lost = (b.constant && !a.constant) || (b.volatile && !a.volatile);
                let void = a.ty == Type::Void || b.ty == Type::Void;
                let functions =
                    matches!(a.ty, Type::Function(_)) || matches!(b.ty, Type::Function(_));
                if a.locked != b.locked {
                    Some(Rule::Locked)
                } else if a.ty == b.ty && !lost {
                    None
                } else if void && !lost && !functions {
                    self.elastic
                        .forbids(Rule::PointerCasts)
                        .then_some(Rule::PointerCasts)
                } else {
                    Some(Rule::PointerCasts)
                }
            }
            (a, b) if a == b && !matches!(a, Type::Void | Type::Array(..)) => None,
            _ => Some(Rule::Types),
        };
        if let Some(rule) = problem {
            let rule = if self.elastic.forbids(rule) {
                rule
            } else {
                Rule::Types
            };
            let construct = format!("`{}` from `{}`", self.shown(to), self.shown(from));
            self.refuse(span, rule, construct);
        }
        value.text
    }
}

/// Whether a condition's text is a number: then what it chooses is known when the module is compiled.
fn node_is_constant(text: &str) -> bool {
    text.bytes()
        .all(|byte| !byte.is_ascii_alphabetic() && byte != b'_' && byte != b'"')
}

/// The number, if the type holds it as it is; what wraps is not followed here.
pub(crate) fn held(number: i128, ty: &Type) -> Option<i128> {
    let Type::Int(int) = ty else { return None };
    let bits = u32::from(int.bits);
    let (low, high) = match (int.text, int.signed) {
        ("_Bool", _) => (0, 1),
        (_, true) => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        (_, false) => (0, (1i128 << bits) - 1),
    };
    (low..=high).contains(&number).then_some(number)
}
