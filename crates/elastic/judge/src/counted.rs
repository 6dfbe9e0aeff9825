//! Loops whose rounds are known when they are read: `for (int i = 0; i < 10; i++)`, where nothing else writes `i`.
//!
//! A bound on instructions needs the rounds behind the compiler, too. So a mark stands in such a loop's body, which the
//! compiler keeps. Each way back in the machine code passes one, as often as the source says and no more.

use crate::scope::{Entity, Judge};
use crate::types::Type;
use lang_c::ast::*;
use lang_c::span::Node;

/// What begins a mark in assembler text; the loop's number and its rounds follow.
pub const MARK: &str = "# mullion-loop";

/// Where a counter goes.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Up,
    Down,
}

/// The name that a `for` declares, where it declares one variable with a value.
pub(crate) fn declared(found: &ForStatement) -> Option<(&str, &Node<Expression>)> {
    let ForInitializer::Declaration(declaration) = &found.initializer.node else {
        return None;
    };
    let [declarator] = declaration.node.declarators.as_slice() else {
        return None;
    };
    let Some(Initializer::Expression(start)) = declarator
        .node
        .initializer
        .as_ref()
        .map(|found| &found.node)
    else {
        return None;
    };
    match &declarator.node.declarator.node.kind.node {
        DeclaratorKind::Identifier(name) => Some((&name.node.name, start)),
        _ => None,
    }
}

fn is(expression: &Node<Expression>, name: &str) -> bool {
    matches!(&expression.node, Expression::Identifier(found) if found.node.name == name)
}

impl Judge<'_> {
    /// The counter's text and the most rounds, of a loop that counts. Its declaration must have been judged.
    pub(crate) fn counted(&mut self, found: &ForStatement) -> Option<(String, u128)> {
        let (name, start) = declared(found)?;
        let Some(Entity::Object { q, text, .. }) = self.find(name).cloned() else {
            return None;
        };
        let Type::Int(int) = q.ty else { return None };
        let start = self.expression(start).number?;
        let (way, step) = self.step(name, &found.step.as_ref()?.node)?;
        let Expression::BinaryOperator(condition) = &found.condition.as_ref()?.node else {
            return None;
        };
        if !is(&condition.node.lhs, name) {
            return None;
        }
        let limit = self.value(&condition.node.rhs);
        let (Type::Int(other), end) = (limit.q.ty.promoted(), limit.number?) else {
            return None;
        };
        // The first number that the condition does not let through, and how far the counter may overshoot it.
        let end = match (&condition.node.operator.node, way) {
            (BinaryOperator::Less, Way::Up) | (BinaryOperator::Greater, Way::Down) => end,
            (BinaryOperator::LessOrEqual, Way::Up) => end + 1,
            (BinaryOperator::GreaterOrEqual, Way::Down) => end - 1,
            (BinaryOperator::NotEquals, Way::Up) if step == 1 && start <= end => end,
            (BinaryOperator::NotEquals, Way::Down) if step == 1 && start >= end => end,
            _ => return None,
        };
        let (distance, furthest) = match way {
            Way::Up => (end - start, end + step - 1),
            Way::Down => (start - end, end - step + 1),
        };
        let bits = u32::from(int.bits);
        let (least, most) = match int.signed {
            true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            false => (0, (1i128 << bits) - 1),
        };
        // Where one side has no sign, both are compared without one.
        let least = if int.signed && other.signed { least } else { 0 };
        let fits = |number: i128| (least..=most).contains(&number);
        if int.text == "_Bool" || !fits(start) || !fits(end) || !fits(furthest) {
            return None;
        }
        let rounds = distance.max(0).unsigned_abs().div_ceil(step.unsigned_abs());
        Some((text, rounds))
    }

    /// Which way a step goes, and how far.
    fn step(&mut self, name: &str, step: &Expression) -> Option<(Way, i128)> {
        match step {
            Expression::UnaryOperator(unary) if is(&unary.node.operand, name) => {
                match unary.node.operator.node {
                    UnaryOperator::PostIncrement | UnaryOperator::PreIncrement => {
                        Some((Way::Up, 1))
                    }
                    UnaryOperator::PostDecrement | UnaryOperator::PreDecrement => {
                        Some((Way::Down, 1))
                    }
                    _ => None,
                }
            }
            Expression::BinaryOperator(binary) if is(&binary.node.lhs, name) => {
                let way = match binary.node.operator.node {
                    BinaryOperator::AssignPlus => Way::Up,
                    BinaryOperator::AssignMinus => Way::Down,
                    _ => return None,
                };
                let step = self.expression(&binary.node.rhs).number?;
                (1..1 << 31).contains(&step).then_some((way, step))
            }
            _ => None,
        }
    }
}
