//! Expressions of gas whose value is known while the text is read: numbers, symbols that were set, operators in gas's
//! own order.

use crate::lexer::{is_symbol_byte, symbol_length};
use crate::operand::integer;
use std::collections::HashMap;

/// Symbols with a value.
pub(super) type Values = HashMap<String, i64>;

/// Operators by how tightly they bind: gas's own order, in which `|` binds more tightly than `+`.
const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["==", "!=", "<>", "<=", ">=", "<", ">"],
    &["+", "-"],
    &["|", "^", "&", "!"],
    &["*", "/", "%", "<<", ">>"],
];

/// The value of an expression, or `None` if it is not known here.
pub(super) fn value(text: &str, values: &Values) -> Option<i64> {
    let mut reader = Reader { text, values };
    let value = reader.level(0)?;
    reader.text.trim_start().is_empty().then_some(value)
}

struct Reader<'t> {
    text: &'t str,
    values: &'t Values,
}

impl Reader<'_> {
    /// An expression of operators of this level and those that bind more tightly.
    fn level(&mut self, level: usize) -> Option<i64> {
        let Some(operators) = LEVELS.get(level) else {
            return self.operand();
        };
        let mut left = self.level(level + 1)?;
        loop {
            self.text = self.text.trim_start();
            let Some(operator) = self.operator(operators) else {
                return Some(left);
            };
            let right = self.level(level + 1)?;
            left = apply(operator, left, right)?;
        }
    }

    /// Takes one of these operators, if it stands here: the longest, whatever its level.
    fn operator(&mut self, wanted: &[&'static str]) -> Option<&'static str> {
        let all = LEVELS.iter().copied().flatten();
        let found = all
            .filter(|operator| self.text.starts_with(**operator))
            .max_by_key(|operator| operator.len())?;
        let found = *wanted.iter().find(|operator| *operator == found)?;
        self.text = &self.text[found.len()..];
        Some(found)
    }

    fn operand(&mut self) -> Option<i64> {
        self.text = self.text.trim_start();
        let rest = self.text.get(1..)?;
        match self.text.as_bytes().first()? {
            b'(' => {
                self.text = rest;
                let value = self.level(0)?;
                self.text = self.text.trim_start().strip_prefix(')')?;
                Some(value)
            }
            sign @ (b'-' | b'+' | b'~' | b'!') => {
                self.text = rest;
                let value = self.operand()?;
                Some(match sign {
                    b'-' => value.wrapping_neg(),
                    b'~' => !value,
                    b'!' => i64::from(value == 0),
                    _ => value,
                })
            }
            b'\'' => {
                let mut characters = rest.chars();
                let character = characters.next().filter(|c| *c != '\\')?;
                self.text = characters.as_str();
                self.text = self.text.strip_prefix('\'').unwrap_or(self.text);
                Some(i64::from(u32::from(character)))
            }
            byte if byte.is_ascii_digit() => {
                let length = self.text.bytes().take_while(|b| is_symbol_byte(*b)).count();
                let (number, rest) = self.text.split_at(length);
                self.text = rest;
                let binary = number.strip_prefix("0b").or(number.strip_prefix("0B"));
                match binary.and_then(|digits| i64::from_str_radix(digits, 2).ok()) {
                    Some(value) => Some(value),
                    None => integer(number),
                }
            }
            _ => {
                let (name, rest) = self.text.split_at(symbol_length(self.text));
                self.text = rest;
                self.values.get(name).copied()
            }
        }
    }
}

/// What holds is -1, as in gas; `&&` and `||` give 1.
fn apply(operator: &str, left: i64, right: i64) -> Option<i64> {
    let holds = |it: bool| -i64::from(it);
    Some(match operator {
        "||" => i64::from(left != 0 || right != 0),
        "&&" => i64::from(left != 0 && right != 0),
        "==" => holds(left == right),
        "!=" | "<>" => holds(left != right),
        "<=" => holds(left <= right),
        ">=" => holds(left >= right),
        "<" => holds(left < right),
        ">" => holds(left > right),
        "+" => left.wrapping_add(right),
        "-" => left.wrapping_sub(right),
        "|" => left | right,
        "^" => left ^ right,
        "&" => left & right,
        "!" => left | !right,
        "*" => left.wrapping_mul(right),
        "/" => left.checked_div(right)?,
        "%" => left.checked_rem(right)?,
        "<<" => left.checked_shl(u32::try_from(right).ok()?)?,
        ">>" => left
            .cast_unsigned()
            .checked_shr(u32::try_from(right).ok()?)?
            .cast_signed(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_have_the_value_that_gas_gives_them() {
        let values = Values::from([("n".to_owned(), 5), (".L".to_owned(), 2)]);
        for (text, expected) in [
            ("1+2*3", 7),
            ("(1+2)*3", 9),
            ("n-1", 4),
            ("n%3 == .L", -1),
            ("n != 5", 0),
            ("1+2|4", 7),
            ("1<<n", 32),
            ("-n + ~0", -6),
            ("n > 3 && n < 9", 1),
            ("0x10 - 010", 8),
            ("0b101", 5),
            ("'a' - 'a'", 0),
            ("!n", 0),
            ("-8>>60", 15),
        ] {
            assert_eq!(value(text, &values), Some(expected), "{text}");
        }
        for text in ["", "m", "1+", "(1", "1 2", "n/0", "%rax", "1f", "1<<64"] {
            assert_eq!(value(text, &values), None, "{text}");
        }
    }
}
