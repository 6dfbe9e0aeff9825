//! Numbers, characters and texts as a program writes them.

use crate::express::Value;
use crate::scope::Judge;
use crate::types::{INT, INTS, Int, Length, Qualified, Type};
use lang_c::ast::*;
use lang_c::span::{Node, Span};
use mullion_elastic::Rule;
use std::rc::Rc;

impl Judge<'_> {
    pub(crate) fn constant(&mut self, constant: &Node<Constant>) -> Value {
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

    pub(crate) fn integer(&mut self, integer: &Integer, span: Span) -> Value {
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

    pub(crate) fn string(&mut self, literal: &Node<StringLiteral>) -> Value {
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
