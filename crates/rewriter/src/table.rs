//! The tables in `data/`: what is known about instructions and directives.

use crate::operand::{CARRY, FLAGS, OTHERS, Set, gpr};
use std::collections::HashMap;
use std::sync::LazyLock;

/// What an instruction does with an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Read,
    Write,
    ReadWrite,
    /// The address is computed, nothing is accessed.
    Address,
}

impl Role {
    pub(crate) fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }

    pub(crate) fn writes(self) -> bool {
        matches!(self, Self::Write | Self::ReadWrite)
    }
}

/// Instructions that the rewriter treats by themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Plain,
    Lea,
    Jcc,
    Jmp,
    Call,
    Ret,
    /// Does not go on behind itself.
    Stop,
    Nop,
    Drop,
    Push,
    Pop,
    Leave,
    String,
    /// `bt` and kin: with a register as index they reach beyond their memory operand.
    Bit,
}

/// A row of the table, for one name and number of operands.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// In AT&T order.
    pub(crate) roles: Vec<Role>,
    pub(crate) class: Class,
    /// Registers and flags read and written beside the operands.
    pub(crate) reads: Set,
    pub(crate) writes: Set,
    /// What of `writes` is certainly overwritten as a whole.
    pub(crate) kills: Set,
}

/// The row for this mnemonic with so many operands.
pub(crate) fn instruction(mnemonic: &str, operands: usize) -> Option<&'static Row> {
    static TABLE: LazyLock<HashMap<String, Vec<Row>>> =
        LazyLock::new(|| instructions(include_str!("data/instructions.txt")));
    TABLE
        .get(mnemonic)?
        .iter()
        .find(|row| row.roles.len() == operands)
}

fn instructions(text: &str) -> HashMap<String, Vec<Row>> {
    let mut table: HashMap<String, Vec<Row>> = HashMap::new();
    for line in rows(text) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [names, operands, flags, class, implicit @ ..] = fields.as_slice() else {
            unreachable!("a row of the instruction table has four fields: {line}")
        };
        let row = row(operands, flags, class, implicit);
        let (names, same) = names
            .strip_suffix('2')
            .filter(|n| n.contains("v?"))
            .map_or((*names, false), |n| (n, true));
        for name in expand(names) {
            if let Some(base) = name.strip_prefix("v?") {
                let mut vex = row.clone();
                if !same {
                    let last = vex.roles.len() - 1;
                    vex.roles[last] = Role::Write;
                    vex.roles.insert(last, Role::Read);
                }
                table.entry(format!("v{base}")).or_default().push(vex);
                table.entry(base.to_owned()).or_default().push(row.clone());
            } else {
                table.entry(name).or_default().push(row.clone());
            }
        }
    }
    table
}

fn rows(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
}

fn row(operands: &str, flags: &str, class: &str, implicit: &[&str]) -> Row {
    let roles = operands
        .chars()
        .filter(|&c| c != '-')
        .map(|c| match c {
            'r' => Role::Read,
            'w' => Role::Write,
            'x' => Role::ReadWrite,
            'a' => Role::Address,
            _ => unreachable!("no such operand role: {c}"),
        })
        .collect();
    let (mut reads, mut writes, mut kills) = match flags {
        "-" => (0, 0, 0),
        "w" => (0, FLAGS, FLAGS),
        "p" => (0, FLAGS, 0),
        "k" => (0, CARRY, CARRY),
        "o" => (0, OTHERS, OTHERS),
        "r" => (FLAGS, 0, 0),
        "c" => (CARRY, 0, 0),
        "z" => (OTHERS, 0, 0),
        "m" => (CARRY, FLAGS, FLAGS),
        "q" => (FLAGS, FLAGS, 0),
        _ => unreachable!("no such effect on the flags: {flags}"),
    };
    for register in implicit {
        let (effect, name) = register.split_at(1);
        let bit = gpr(name).map_or(0, crate::operand::Gpr::bit);
        if effect == "+" {
            reads |= bit;
        } else {
            writes |= bit;
            kills |= bit;
        }
    }
    let class = match class {
        "plain" => Class::Plain,
        "lea" => Class::Lea,
        "jcc" => Class::Jcc,
        "jmp" => Class::Jmp,
        "call" => Class::Call,
        "ret" => Class::Ret,
        "stop" => Class::Stop,
        "nop" => Class::Nop,
        "drop" => Class::Drop,
        "push" => Class::Push,
        "pop" => Class::Pop,
        "leave" => Class::Leave,
        "string" => Class::String,
        "bit" => Class::Bit,
        _ => unreachable!("no such class of instruction: {class}"),
    };
    Row {
        roles,
        class,
        reads,
        writes,
        kills,
    }
}

/// `a{b,c}[de]` to `ab`, `abd`, `abe`, `ac`, ...
fn expand(names: &str) -> Vec<String> {
    let Some(open) = names.find(['{', '[']) else {
        return vec![names.to_owned()];
    };
    let (head, rest) = names.split_at(open);
    let (choices, tail): (Vec<&str>, &str) = if let Some(inner) = rest.strip_prefix('{') {
        let (inner, tail) = inner.split_once('}').unwrap_or((inner, ""));
        (inner.split(',').collect(), tail)
    } else {
        let (inner, tail) = rest[1..].split_once(']').unwrap_or((&rest[1..], ""));
        (
            std::iter::once("")
                .chain(inner.split("").filter(|s| !s.is_empty()))
                .collect(),
            tail,
        )
    };
    let tails = expand(tail);
    choices
        .iter()
        .flat_map(|choice| {
            tails
                .iter()
                .map(move |tail| format!("{head}{choice}{tail}"))
        })
        .collect()
}

/// What is done with a directive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DirectiveClass {
    Pass,
    Align,
    Data,
    Refuse(&'static str),
}

/// The row for this directive.
pub(crate) fn directive(name: &str) -> Option<DirectiveClass> {
    static TABLE: LazyLock<HashMap<&'static str, DirectiveClass>> =
        LazyLock::new(|| directives(include_str!("data/directives.txt")));
    TABLE.get(name).copied()
}

fn directives(text: &'static str) -> HashMap<&'static str, DirectiveClass> {
    let mut table = HashMap::new();
    for line in rows(text) {
        let (class, rest) = line.split_once(' ').unwrap_or((line, ""));
        if class == "refuse" {
            let (name, reason) = rest.trim().split_once(' ').unwrap_or((rest, ""));
            table.insert(name, DirectiveClass::Refuse(reason.trim()));
            continue;
        }
        let class = match class {
            "pass" => DirectiveClass::Pass,
            "align" => DirectiveClass::Align,
            "data" => DirectiveClass::Data,
            _ => unreachable!("no such class of directive: {class}"),
        };
        table.extend(rest.split_whitespace().map(|name| (name, class)));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_expand() {
        assert_eq!(
            expand("a{b,c}[de]"),
            ["ab", "abd", "abe", "ac", "acd", "ace"]
        );
        assert_eq!(expand("{,s}x"), ["x", "sx"]);
    }

    #[test]
    fn vex_forms_have_one_more_source() {
        let add = instruction("vaddps", 3).expect("vaddps");
        assert_eq!(add.roles, [Role::Read, Role::Read, Role::Write]);
        assert!(instruction("vaddps", 2).is_none());
        assert_eq!(
            instruction("vmovaps", 2).expect("vmovaps").roles,
            [Role::Read, Role::Write]
        );
    }

    #[test]
    fn string_and_vector_moves_of_one_name_differ_by_operands() {
        assert_eq!(instruction("movsd", 2).expect("vector").class, Class::Plain);
        assert_eq!(
            instruction("movsl", 0).expect("string").class,
            Class::String
        );
        assert_eq!(instruction("cmpsd", 3).expect("vector").class, Class::Plain);
        assert!(instruction("movsd", 0).is_none());
    }

    #[test]
    fn what_extensions_may_not_do_has_no_row() {
        for name in [
            "syscall",
            "sysenter",
            "int",
            "in",
            "out",
            "hlt",
            "popfq",
            "std",
            "rdtsc",
            "wrgsbase",
            "xlatb",
            "enter",
            "lret",
            "maskmovdqu",
            "vpgatherdd",
        ] {
            for operands in 0..4 {
                assert!(instruction(name, operands).is_none(), "{name}");
            }
        }
    }
}
