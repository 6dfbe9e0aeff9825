//! Operators: what they may be used on, and what they give.

use crate::express::{Value, held};
use crate::scope::Judge;
use crate::types::{INT, INTS, Type};
use lang_c::ast::*;
use lang_c::span::{Node, Span};
use mullion_elastic::Rule;

impl Judge<'_> {
    pub(crate) fn unary(&mut self, unary: &Node<UnaryOperatorExpression>) -> Value {
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

    pub(crate) fn binary(&mut self, binary: &Node<BinaryOperatorExpression>) -> Value {
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

    pub(crate) fn operated(
        &mut self,
        mark: &'static str,
        left: Value,
        right: Value,
        span: Span,
    ) -> Value {
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
    pub(crate) fn shift_count(&self, ty: &Type, count: &Value) -> String {
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

    pub(crate) fn with_pointers(
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
