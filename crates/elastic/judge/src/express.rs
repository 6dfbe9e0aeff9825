//! Expressions: what each is, whether it may be, and how it is written.

use crate::scope::{Entity, Judge};
use crate::types::{Function, INT, INTS, Int, Length, Qualified, Type, UNSIGNED_LONG};
use lang_c::ast::*;
use lang_c::span::{Node, Span};
use mullion_decide::elastic::Rule;
use std::rc::Rc;

/// A function that checks an index; it is in front of what is written.
pub(crate) const INDEX: &str = "__mullion_index";

/// The most bytes of an expression that is written more than once.
const LONGEST: usize = 4096;

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
    fn new(text: impl Into<String>, ty: Type) -> Self {
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

    fn poison() -> Self {
        Value::new("0", Type::Poison)
    }

    fn is_null(&self) -> bool {
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

    fn used(&mut self, value: Value, span: Span) -> Value {
        if value.q.locked {
            let construct = format!("a value of the type `{}`", self.shown(&value.q));
            self.refuse(span, Rule::Locked, construct);
            return Value::poison();
        }
        self.decayed(value, span)
    }

    /// What an array or function is where it is neither measured nor pointed to.
    fn decayed(&mut self, mut value: Value, span: Span) -> Value {
        match value.q.ty.clone() {
            Type::Array(of, _) => {
                if value.local {
                    self.unless_free(span, Rule::AddressOfLocal, "an array of this function");
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

    fn identifier(&mut self, name: &Node<Identifier>) -> Value {
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

    fn constant(&mut self, constant: &Node<Constant>) -> Value {
        let span = constant.span;
        match &constant.node {
            Constant::Integer(integer) => self.integer(integer, span),
            Constant::Float(float) => {
                let (suffix, ty) = match &float.suffix.format {
                    FloatFormat::Float => ("f", "float"),
                    FloatFormat::Double => ("", "double"),
                    FloatFormat::LongDouble => ("L", "long double"),
                    FloatFormat::TS18661Format(_) => {
                        self.refuse(
                            span,
                            Rule::Extension,
                            "a floating-point type beside those of ISO C11",
                        );
                        return Value::poison();
                    }
                };
                if float.suffix.imaginary {
                    self.refuse(span, Rule::Extension, "an imaginary number");
                }
                let prefix = match float.base {
                    FloatBase::Decimal => "",
                    FloatBase::Hexadecimal => "0x",
                };
                let legal = |byte: u8| byte.is_ascii_hexdigit() || b".+-pP".contains(&byte);
                if !float.number.bytes().all(legal) {
                    self.refuse(span, Rule::Syntax, "a number that is none");
                }
                Value {
                    constant: true,
                    ..Value::new(format!("{prefix}{}{suffix}", float.number), Type::Float(ty))
                }
            }
            Constant::Character(text) => {
                if !is_literal(text, '\'') {
                    self.refuse(span, Rule::Syntax, "a character that is none");
                    return Value::poison();
                }
                let letters: Vec<char> = text.chars().collect();
                let number = match letters.as_slice() {
                    ['\'', letter, '\''] if letter.is_ascii() => {
                        Some(i128::from(u32::from(*letter)))
                    }
                    ['\'', '\\', '0', '\''] => Some(0),
                    _ => None,
                };
                Value {
                    constant: true,
                    number,
                    ..Value::new(text.clone(), INT)
                }
            }
        }
    }

    fn integer(&mut self, integer: &Integer, span: Span) -> Value {
        let (prefix, radix) = match integer.base {
            IntegerBase::Decimal => ("", 10),
            IntegerBase::Octal => ("0", 8),
            IntegerBase::Hexadecimal => ("0x", 16),
            IntegerBase::Binary => {
                self.refuse(span, Rule::Extension, "a binary number");
                return Value::poison();
            }
        };
        if integer.suffix.imaginary {
            self.refuse(span, Rule::Extension, "an imaginary number");
        }
        let digits = if integer.number.is_empty() {
            "0"
        } else {
            &*integer.number
        };
        let Ok(number) = u64::from_str_radix(digits, radix) else {
            self.refuse(span, Rule::Types, "a number that no type holds");
            return Value::poison();
        };
        let unsigned = integer.suffix.unsigned;
        let fits = |int: &&Int| {
            let rank = match integer.suffix.size {
                IntegerSize::Int => int.bits >= 32,
                IntegerSize::Long => int.text.ends_with("long"),
                IntegerSize::LongLong => int.text.ends_with("long long"),
            };
            let bits = u32::from(int.bits) - u32::from(int.signed);
            let sign = if unsigned {
                !int.signed
            } else {
                int.signed || radix != 10
            };
            rank && sign && (bits == 64 || number < 1 << bits)
        };
        let Some(int) = INTS.iter().find(fits) else {
            self.refuse(span, Rule::Types, "a number that no type holds");
            return Value::poison();
        };
        let size = match integer.suffix.size {
            IntegerSize::Int => "",
            IntegerSize::Long => "l",
            IntegerSize::LongLong => "ll",
        };
        let text = format!("{prefix}{digits}{}{size}", if unsigned { "u" } else { "" });
        Value {
            constant: true,
            number: Some(i128::from(number)),
            ..Value::new(text, Type::Int(*int))
        }
    }

    fn string(&mut self, literal: &Node<StringLiteral>) -> Value {
        let good = literal.node.iter().all(|part| is_literal(part, '"'));
        if !good {
            self.refuse(literal.span, Rule::Syntax, "a string that is none");
            return Value::poison();
        }
        if literal
            .node
            .iter()
            .any(|part| part.starts_with(['L', 'u', 'U']))
        {
            self.refuse(literal.span, Rule::Extension, "a string of wide characters");
            return Value::poison();
        }
        let mut of = Qualified::from(Type::Int(INTS[1]));
        of.constant = self.checked();
        let ty = Type::Array(Rc::new(of), Length::Initialised);
        Value {
            lvalue: true,
            literal: true,
            // An address, and as such a constant of initialisers.
            constant: true,
            ..Value::new(literal.node.join(" "), ty)
        }
    }

    fn size_of(&mut self, span: Span, q: &Qualified) -> Value {
        if matches!(q.ty, Type::Void | Type::Function(_)) {
            self.refuse(span, Rule::Types, "`sizeof` of what has no size");
        }
        let name = self.written(span, q, "");
        Value {
            constant: true,
            ..Value::new(format!("sizeof({name})"), UNSIGNED_LONG)
        }
    }

    fn member_of(&mut self, member: &Node<MemberExpression>) -> Value {
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
    fn member_named(&self, index: usize, name: &str) -> Option<(crate::types::Member, bool)> {
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

    fn call(&mut self, call: &Node<CallExpression>) -> Value {
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

    fn no_function(&mut self, call: &Node<CallExpression>) -> Value {
        self.refuse(call.span, Rule::Types, "a call of what is no function");
        Value::poison()
    }

    /// An argument may be the address of a local: nothing keeps it.
    fn argument(&mut self, argument: &Node<Expression>) -> Value {
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

    fn unary(&mut self, unary: &Node<UnaryOperatorExpression>) -> Value {
        let span = unary.span;
        let mark = match unary.node.operator.node {
            UnaryOperator::PostIncrement | UnaryOperator::PreIncrement => "++",
            UnaryOperator::PostDecrement | UnaryOperator::PreDecrement => "--",
            UnaryOperator::Address => return self.address(unary, false),
            UnaryOperator::Indirection => return self.indirection(unary),
            UnaryOperator::Plus => "+",
            UnaryOperator::Minus => "-",
            UnaryOperator::Complement => "~",
            UnaryOperator::Negate => "!",
        };
        let operand = self.value(&unary.node.operand);
        let ty = operand.q.ty.clone();
        match unary.node.operator.node {
            UnaryOperator::Negate => {
                if !ty.is_scalar() {
                    self.refuse(span, Rule::Types, "`!` of what is no number");
                }
                let number = operand.number.map(|number| i128::from(number == 0));
                Value {
                    constant: operand.constant && !operand.literal,
                    number,
                    ..Value::new(format!("(!{})", operand.text), INT)
                }
            }
            UnaryOperator::Plus | UnaryOperator::Minus | UnaryOperator::Complement => {
                if !ty.is_arithmetic() || (mark == "~" && !ty.is_integer()) {
                    self.refuse(span, Rule::Types, format!("`{mark}` of what is no number"));
                }
                let ty = ty.promoted();
                let number = operand.number.and_then(|number| match mark {
                    "+" => Some(number),
                    "-" => number.checked_neg(),
                    _ => Some(!number),
                });
                Value {
                    constant: operand.constant,
                    number: number.and_then(|number| held(number, &ty)),
                    ..Value::new(format!("({mark}({}))", operand.text), ty)
                }
            }
            _ => {
                self.assignable(&operand, span);
                if ty.is_pointer() {
                    self.unless_free(
                        span,
                        Rule::PointerArithmetic,
                        format!("`{mark}` of a pointer"),
                    );
                } else if !ty.is_arithmetic() {
                    self.refuse(span, Rule::Types, format!("`{mark}` of what is no number"));
                }
                let post = matches!(
                    unary.node.operator.node,
                    UnaryOperator::PostIncrement | UnaryOperator::PostDecrement
                );
                let text = match post {
                    true => format!("(({}){mark})", operand.text),
                    false => format!("({mark}({}))", operand.text),
                };
                Value::new(text, ty)
            }
        }
    }

    fn address(&mut self, unary: &Node<UnaryOperatorExpression>, argument: bool) -> Value {
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

    fn indirection(&mut self, unary: &Node<UnaryOperatorExpression>) -> Value {
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

    fn followed(&mut self, of: Value, span: Span) -> Value {
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

    fn cast(&mut self, cast: &Node<CastExpression>) -> Value {
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

    fn conditional(&mut self, conditional: &Node<ConditionalExpression>) -> Value {
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

    fn comma(&mut self, list: &[Node<Expression>]) -> Value {
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

    fn binary(&mut self, binary: &Node<BinaryOperatorExpression>) -> Value {
        use BinaryOperator as Op;
        let span = binary.span;
        let mark = match &binary.node.operator.node {
            Op::Index => return self.index(binary),
            Op::Assign => return self.assign(binary),
            Op::AssignMultiply => return self.assign_with(binary, "*"),
            Op::AssignDivide => return self.assign_with(binary, "/"),
            Op::AssignModulo => return self.assign_with(binary, "%"),
            Op::AssignPlus => return self.assign_with(binary, "+"),
            Op::AssignMinus => return self.assign_with(binary, "-"),
            Op::AssignShiftLeft => return self.assign_with(binary, "<<"),
            Op::AssignShiftRight => return self.assign_with(binary, ">>"),
            Op::AssignBitwiseAnd => return self.assign_with(binary, "&"),
            Op::AssignBitwiseXor => return self.assign_with(binary, "^"),
            Op::AssignBitwiseOr => return self.assign_with(binary, "|"),
            Op::Multiply => "*",
            Op::Divide => "/",
            Op::Modulo => "%",
            Op::Plus => "+",
            Op::Minus => "-",
            Op::ShiftLeft => "<<",
            Op::ShiftRight => ">>",
            Op::Less => "<",
            Op::Greater => ">",
            Op::LessOrEqual => "<=",
            Op::GreaterOrEqual => ">=",
            Op::Equals => "==",
            Op::NotEquals => "!=",
            Op::BitwiseAnd => "&",
            Op::BitwiseXor => "^",
            Op::BitwiseOr => "|",
            Op::LogicalAnd => "&&",
            Op::LogicalOr => "||",
        };
        let left = self.value(&binary.node.lhs);
        let right = self.value(&binary.node.rhs);
        self.operated(mark, left, right, span)
    }

    fn operated(&mut self, mark: &'static str, left: Value, right: Value, span: Span) -> Value {
        let (a, b) = (&left.q.ty, &right.q.ty);
        let constant = left.constant && right.constant;
        let comparison = ["<", ">", "<=", ">=", "==", "!="].contains(&mark);
        let ty = match mark {
            "&&" | "||" => {
                if !a.is_scalar() || !b.is_scalar() {
                    self.refuse(span, Rule::Types, format!("`{mark}` of what is no number"));
                }
                INT
            }
            _ if a.is_pointer() || b.is_pointer() => {
                return self.with_pointers(mark, left, right, span);
            }
            _ if !a.is_arithmetic() || !b.is_arithmetic() => {
                self.refuse(span, Rule::Types, format!("`{mark}` of what is no number"));
                Type::Poison
            }
            "<<" | ">>" => a.promoted(),
            _ if comparison => INT,
            _ => a.with(b),
        };
        let whole = ["%", "<<", ">>", "&", "|", "^"].contains(&mark);
        if whole && (!a.is_integer() || !b.is_integer()) {
            self.refuse(
                span,
                Rule::Types,
                format!("`{mark}` of floating-point numbers"),
            );
        }
        if (mark == "/" || mark == "%")
            && a.is_integer()
            && b.is_integer()
            && right.number.is_none_or(|n| n == 0)
        {
            self.unless_free(span, Rule::Division, format!("`{mark}` by what may be 0"));
        }
        let text = match mark {
            "<<" | ">>" => format!("(({}) {mark} {})", left.text, self.shift_count(&ty, &right)),
            _ => format!("(({}) {mark} ({}))", left.text, right.text),
        };
        let number = match (left.number, right.number, &ty) {
            (Some(left), Some(right), Type::Int(_)) => calculated(mark, left, right, a, b),
            _ => None,
        };
        Value {
            constant,
            number: number.and_then(|number| held(number, &ty)),
            ..Value::new(text, ty)
        }
    }

    /// Where memory is checked, no count is one that C does not define: what gcc concludes from such a count it could
    /// use to leave a check out.
    fn shift_count(&self, ty: &Type, count: &Value) -> String {
        let bits = match ty {
            Type::Int(int) => i128::from(int.bits),
            _ => return format!("({})", count.text),
        };
        match count
            .number
            .is_some_and(|number| (0..bits).contains(&number))
            || !self.checked()
        {
            true => format!("({})", count.text),
            false => format!("(({}) & {})", count.text, bits - 1),
        }
    }

    fn with_pointers(
        &mut self,
        mark: &'static str,
        left: Value,
        right: Value,
        span: Span,
    ) -> Value {
        let text = format!("(({}) {mark} ({}))", left.text, right.text);
        let (a, b) = (&left.q.ty, &right.q.ty);
        if *a == Type::Poison || *b == Type::Poison {
            return Value::poison();
        }
        let alike = match (a, b) {
            (Type::Pointer(a), Type::Pointer(b)) => {
                a.ty == b.ty || a.ty == Type::Void || b.ty == Type::Void
            }
            (Type::Pointer(_), _) => right.is_null(),
            _ => left.is_null(),
        };
        match mark {
            "==" | "!=" if alike => Value::new(text, INT),
            "<" | ">" | "<=" | ">=" | "-" if alike && a.is_pointer() && b.is_pointer() => {
                let construct = format!("`{mark}` of pointers");
                self.unless_free(span, Rule::PointerArithmetic, construct);
                match mark {
                    "-" => Value::new(text, Type::Int(INTS[8])),
                    _ => Value::new(text, INT),
                }
            }
            "+" | "-" if a.is_pointer() && b.is_integer() => {
                self.unless_free(
                    span,
                    Rule::PointerArithmetic,
                    format!("`{mark}` of a pointer"),
                );
                Value {
                    constant: left.constant && right.constant,
                    ..Value::new(text, left.q.ty)
                }
            }
            "+" if b.is_pointer() && a.is_integer() => {
                self.unless_free(span, Rule::PointerArithmetic, "`+` of a pointer");
                Value {
                    constant: left.constant && right.constant,
                    ..Value::new(text, right.q.ty)
                }
            }
            _ => {
                self.refuse(
                    span,
                    Rule::Types,
                    format!("`{mark}` of a pointer and another type"),
                );
                Value::poison()
            }
        }
    }

    fn index(&mut self, binary: &Node<BinaryOperatorExpression>) -> Value {
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
    fn indexed(
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
    fn assignable(&mut self, value: &Value, span: Span) {
        if value.q.ty == Type::Poison {
            return;
        }
        if value.read_only {
            self.refuse(span, Rule::ReadOnly, "a read-only member that is written");
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

    fn assign(&mut self, binary: &Node<BinaryOperatorExpression>) -> Value {
        let to = self.expression(&binary.node.lhs);
        self.assignable(&to, binary.node.lhs.span);
        let value = self.expression(&binary.node.rhs);
        let text = self.converted(value, &to.q, binary.node.rhs.span);
        let locked = to.q.locked;
        let mut value = Value::new(format!("(({}) = {text})", to.text), to.q.ty);
        value.q.locked = locked;
        value
    }

    fn assign_with(
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

/// A literal as C spells it: between quotes of that kind, without an end of line.
fn is_literal(text: &str, quote: char) -> bool {
    let prefix = text.find(quote).unwrap_or(text.len());
    let (prefix, rest) = text.split_at(prefix);
    if !["", "L", "u", "U", "u8"].contains(&prefix) {
        return false;
    }
    let Some(inner) = rest
        .strip_prefix(quote)
        .and_then(|rest| rest.strip_suffix(quote))
    else {
        return false;
    };
    let mut escaped = false;
    for letter in inner.chars() {
        match letter {
            '\n' => return false,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == quote => return false,
            _ => {}
        }
    }
    !escaped
}

/// The number, if the type holds it as it is; what wraps is not followed here.
fn held(number: i128, ty: &Type) -> Option<i128> {
    let Type::Int(int) = ty else { return None };
    let bits = u32::from(int.bits);
    let (low, high) = match (int.text, int.signed) {
        ("_Bool", _) => (0, 1),
        (_, true) => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        (_, false) => (0, (1i128 << bits) - 1),
    };
    (low..=high).contains(&number).then_some(number)
}

/// The result where both numbers keep their values in the common type.
fn calculated(mark: &str, left: i128, right: i128, a: &Type, b: &Type) -> Option<i128> {
    if !["<<", ">>"].contains(&mark) {
        let common = a.with(b);
        held(left, &common)?;
        held(right, &common)?;
    }
    match mark {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        "%" => left.checked_rem(right),
        "&" => Some(left & right),
        "|" => Some(left | right),
        "^" => Some(left ^ right),
        "<<" if (0..32).contains(&right) && left >= 0 => left.checked_mul(1 << right),
        ">>" if (0..64).contains(&right) && left >= 0 => Some(left >> right),
        "<" => Some(i128::from(left < right)),
        ">" => Some(i128::from(left > right)),
        "<=" => Some(i128::from(left <= right)),
        ">=" => Some(i128::from(left >= right)),
        "==" => Some(i128::from(left == right)),
        "!=" => Some(i128::from(left != right)),
        "&&" => Some(i128::from(left != 0 && right != 0)),
        "||" => Some(i128::from(left != 0 || right != 0)),
        _ => None,
    }
}
