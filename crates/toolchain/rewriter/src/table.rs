//! The tables in `data/`: what is known about instructions and directives.

use crate::operand::{FLAG_LETTERS, FLAGS, Gpr, Operand, Set, gpr};
use std::collections::HashMap;
use std::sync::LazyLock;

/// What an instruction does with an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Read,
    Write,
    ReadWrite,
    /// Read, and written or not.
    Maybe,
    /// The address is computed, nothing is accessed.
    Address,
}

impl Role {
    pub(crate) fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite | Self::Maybe)
    }

    pub(crate) fn writes(self) -> bool {
        matches!(self, Self::Write | Self::ReadWrite | Self::Maybe)
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
    /// Registers and flags beside the operands.
    pub(crate) implicit: Effects,
}

/// What an instruction does with registers and flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Effects {
    /// What the result may depend on.
    pub(crate) reads: Set,
    /// Registers of which the upper half is read, too.
    pub(crate) whole: Set,
    /// What may change.
    pub(crate) writes: Set,
    /// What is overwritten as a whole whatever happens: nothing is left of what it was.
    pub(crate) kills: Set,
}

impl Effects {
    /// A general register is read at its width.
    pub(crate) fn read(&mut self, register: Gpr) {
        self.reads |= register.bit();
        if register.width == 8 {
            self.whole |= register.bit();
        }
    }

    /// A general register is written at its width.
    pub(crate) fn write(&mut self, register: Gpr) {
        self.writes |= register.bit();
        if register.width >= 4 {
            self.kills |= register.bit();
        } else {
            // The rest stays what it was.
            self.reads |= register.bit();
        }
    }
}

type Table = HashMap<String, Vec<Row>>;

static TABLE: LazyLock<Table> =
    LazyLock::new(|| instructions(include_str!("data/instructions.txt")));

/// The row for this mnemonic with so many operands.
pub(crate) fn instruction(mnemonic: &str, operands: usize) -> Option<&'static Row> {
    let rows = TABLE.get(mnemonic)?;
    rows.iter().find(|row| row.roles.len() == operands)
}

/// The row for this mnemonic with these operands: their registers stand for a missing suffix.
pub(crate) fn row_for(mnemonic: &str, operands: &[Operand<'_>]) -> Option<&'static Row> {
    instruction(mnemonic, operands.len()).or_else(|| {
        let width = operands.iter().rev().find_map(|operand| match operand {
            Operand::Gpr(register) => Some(register.width),
            _ => None,
        })?;
        let suffix = ["b", "w", "l", "q"][width.trailing_zeros() as usize];
        instruction(&format!("{mnemonic}{suffix}"), operands.len())
    })
}

/// Whether the operands of a string instruction are those that it has anyway, which LLVM writes out.
pub(crate) fn names_string_operands(mnemonic: &str, operands: &str) -> bool {
    let Some((stem, width)) = mnemonic.split_at_checked(4) else {
        return false;
    };
    let accumulator = match width {
        "b" => "%al",
        "w" => "%ax",
        "l" => "%eax",
        "q" => "%rax",
        _ => return false,
    };
    let implied = match stem {
        "movs" => ["(%rsi)", "%es:(%rdi)"],
        "cmps" => ["%es:(%rdi)", "(%rsi)"],
        "stos" => [accumulator, "%es:(%rdi)"],
        "scas" => ["%es:(%rdi)", accumulator],
        "lods" => ["(%rsi)", accumulator],
        _ => return false,
    };
    operands
        .split_once(',')
        .is_some_and(|(from, to)| [from.trim(), to.trim()] == implied)
}

/// All names.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.keys().map(String::as_str)
}

/// The rows of a name.
#[cfg(test)]
pub(crate) fn rows_of(name: &str) -> &'static [Row] {
    TABLE.get(name).map_or(&[], Vec::as_slice)
}

fn instructions(text: &str) -> Table {
    let mut table = Table::new();
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
            'm' => Role::Maybe,
            'a' => Role::Address,
            _ => unreachable!("no such operand role: {c}"),
        })
        .collect();
    let mut effects = flag_effects(flags);
    for register in implicit {
        let (effect, name) = register.split_at(1);
        let Some(register) = gpr(name) else {
            unreachable!("no such register: {name}");
        };
        match effect {
            "+" => effects.read(register),
            "=" => effects.write(register),
            "?" => effects.writes |= register.bit(),
            _ => unreachable!("no such effect on a register: {effect}"),
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
        implicit: effects,
    }
}

/// `+c=zs?*` and its like.
fn flag_effects(text: &str) -> Effects {
    let mut effects = Effects::default();
    let mut mark = '-';
    for letter in text.chars() {
        let flags = match (letter, FLAG_LETTERS.find(letter)) {
            (_, Some(at)) => 1 << (16 + at),
            ('*', _) => FLAGS,
            _ => {
                mark = letter;
                continue;
            }
        };
        match mark {
            '+' => effects.reads |= flags,
            '=' => {
                effects.writes |= flags;
                effects.kills |= flags;
            }
            '?' => effects.writes |= flags,
            _ => unreachable!("no such effect on the flags: {text}"),
        }
    }
    effects
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
    fn string_instructions_with_their_operands_are_told_from_others() {
        for (mnemonic, operands) in [
            ("movsb", "(%rsi), %es:(%rdi)"),
            ("stosq", "%rax, %es:(%rdi)"),
            ("lodsw", "(%rsi), %ax"),
            ("scasl", "%es:(%rdi), %eax"),
            ("cmpsb", "%es:(%rdi), (%rsi)"),
        ] {
            assert!(names_string_operands(mnemonic, operands), "{mnemonic}");
        }
        for (mnemonic, operands) in [
            ("movsb", "(%rsi), %eax"),
            ("movsd", "(%rsi), %xmm0"),
            ("movsb", "%fs:(%rsi), %es:(%rdi)"),
            ("stosq", "%eax, %es:(%rdi)"),
            ("cmpsb", "(%rsi), %es:(%rdi)"),
            ("movsb", ""),
        ] {
            assert!(!names_string_operands(mnemonic, operands), "{operands}");
        }
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
