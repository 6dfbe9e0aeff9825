//! An assembler file as data. It has items in the order of the text, instructions in
//! the order of their sections, labels with all that is known of them.

use crate::cfi::Cfa;
use crate::operand::{ADJUST, FLAGS, Gpr, OVERFLOW, Operand, Set, integer, number};
use crate::spelled::Bytes;
use crate::table::{Class, Effects, Role, Row};
use std::collections::{HashMap, HashSet};

/// Index of an instruction in [`Unit::instructions`].
pub(crate) type Position = usize;
/// Index of a label in [`Unit::labels`].
pub(crate) type LabelId = usize;

/// A prefix of an instruction.
pub(crate) mod prefix {
    pub(crate) const LOCK: u8 = 1;
    pub(crate) const REP: u8 = 2;
    pub(crate) const REPNE: u8 = 4;
}

/// What repeated string instructions count in.
const COUNT: Gpr = Gpr::new(number::RCX, 8);

/// One instruction.
#[derive(Debug)]
pub(crate) struct Instruction<'a> {
    pub(crate) line: u32,
    pub(crate) section: usize,
    /// As written, with its prefixes.
    pub(crate) text: &'a str,
    pub(crate) prefixes: u8,
    pub(crate) mnemonic: &'a str,
    pub(crate) operands: Vec<Operand<'a>>,
    pub(crate) row: &'static Row,
    /// Of a direct branch.
    pub(crate) target: Option<LabelId>,
    /// It was made a 32-bit instruction, or an ordinary store: `mnemonic` and `operands` count, `text` does not.
    pub(crate) narrowed: bool,
    /// What the call frame information in the source says here.
    pub(crate) cfa: Cfa,
    /// Bytes of arguments on the stack, which are gone at a landing pad.
    pub(crate) arguments: i64,
}

impl Instruction<'_> {
    /// Operands with their roles.
    pub(crate) fn roles(&self) -> impl Iterator<Item = (&Operand<'_>, Role)> {
        self.operands.iter().zip(self.row.roles.iter().copied())
    }

    /// Whether control never goes on behind it.
    pub(crate) fn ends_path(&self) -> bool {
        matches!(self.row.class, Class::Jmp | Class::Ret | Class::Stop)
    }

    /// The mnemonic without a size suffix `q`.
    pub(crate) fn base_mnemonic(&self) -> &str {
        self.mnemonic.strip_suffix('q').unwrap_or(self.mnemonic)
    }

    /// What it does with registers and flags: the table's word, and what these operands and
    /// prefixes make of that. Of an address that is accessed or jumped to it depends on the
    /// protection whether the upper half counts (`narrow`).
    pub(crate) fn effects(&self) -> Effects {
        let mut effects = self.row.implicit;
        for (operand, role) in self.roles() {
            match operand {
                Operand::Gpr(register) => {
                    if role.reads() {
                        effects.read(*register);
                    }
                    match role {
                        Role::Write | Role::ReadWrite => effects.write(*register),
                        Role::Maybe => effects.writes |= register.bit(),
                        Role::Read | Role::Address => {}
                    }
                }
                Operand::Mem(mem) | Operand::ThroughMem(mem) => {
                    effects.reads |= mem.registers();
                    if role == Role::Address && self.computes() {
                        effects.whole |= mem.registers();
                    }
                }
                Operand::ThroughGpr(register) => effects.reads |= register.bit(),
                Operand::Other(_) | Operand::Imm(_) | Operand::Target(_) => {}
            }
        }
        if self.row.class == Class::String {
            // Without a prefix, too, the verifier takes the count for written.
            effects.writes |= COUNT.bit();
        }
        if self.repeats() {
            effects.read(COUNT);
            effects.write(COUNT);
            // With a count of zero nothing is written.
            effects.kills = 0;
        }
        if self.clears() {
            effects.reads &= FLAGS;
            effects.whole = 0;
        }
        effects.kills |= self.flags_of_a_shift_by_constant();
        effects
    }

    /// Whether it names a whole register.
    fn computes(&self) -> bool {
        let whole = |o: &Operand<'_>| matches!(o, Operand::Gpr(r) if r.width == 8);
        self.operands.iter().any(whole)
    }

    /// A string instruction that counts in `%rcx`.
    fn repeats(&self) -> bool {
        self.row.class == Class::String && self.prefixes & (prefix::REP | prefix::REPNE) != 0
    }

    /// Flags that a shift by `%cl` may leave alone, and one by a constant other than 0 writes.
    fn flags_of_a_shift_by_constant(&self) -> Set {
        let stem = self.mnemonic.trim_end_matches(['b', 'w', 'l', 'q']);
        let [Operand::Imm(count), to] = self.operands.as_slice() else {
            return 0;
        };
        if !matches!(stem, "sa" | "sh" | "sar" | "shr") {
            return 0;
        }
        let width = match to {
            Operand::Gpr(register) => register.width,
            _ => match self.mnemonic.as_bytes().last() {
                Some(b'b') => 1,
                Some(b'w') => 2,
                _ => 4,
            },
        };
        let surely = integer(count).is_some_and(|n| (1..8 * i64::from(width)).contains(&n));
        // What remains is undefined.
        if surely {
            FLAGS & !(ADJUST | OVERFLOW)
        } else {
            0
        }
    }

    /// `xorl %eax, %eax` and its like, whose result does not depend on the register.
    fn clears(&self) -> bool {
        self.operands.len() == 2
            && self.operands[0] == self.operands[1]
            && matches!(
                self.mnemonic,
                "xorl" | "xorq" | "subl" | "subq" | "xor" | "sub"
            )
            && matches!(self.operands[0], Operand::Gpr(r) if r.width >= 4)
    }
}

/// A symbol that labels something, or is only referred to.
#[derive(Debug, Default)]
pub(crate) struct Label<'a> {
    pub(crate) name: &'a str,
    /// The instruction behind it, and the section, once defined.
    pub(crate) at: Option<Position>,
    pub(crate) section: Option<usize>,
    /// `.globl` or `.weak`.
    pub(crate) global: bool,
    /// `.weak`: without a definition it is a null pointer.
    pub(crate) weak: bool,
    /// `.type name, @function`
    pub(crate) function: bool,
    pub(crate) called: bool,
    pub(crate) jumped_to: bool,
    /// Used otherwise than by a direct branch.
    pub(crate) taken: bool,
    /// Another name for this symbol.
    pub(crate) alias_of: Option<LabelId>,
}

impl Label<'_> {
    /// Whether it may be nothing: then its address is null.
    fn may_be_absent(&self) -> bool {
        self.weak && self.section.is_none()
    }

    /// Whether an indirect branch may come here.
    pub(crate) fn is_indirect_target(&self) -> bool {
        self.global || self.taken
    }

    /// Whether any branch may come here.
    pub(crate) fn is_target(&self) -> bool {
        self.is_indirect_target() || self.called || self.jumped_to
    }

    /// Whether it is where a function is entered, with the stack as a call leaves it.
    pub(crate) fn is_entry(&self) -> bool {
        self.called
            || (self.is_indirect_target() && (self.function || !self.name.starts_with(".L")))
    }
}

/// A section of the file.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    pub(crate) name: &'a str,
    /// The directive that goes there.
    pub(crate) directive: (&'a str, &'a str),
    pub(crate) executable: bool,
    /// Whether addresses in it can be used when the image runs.
    pub(crate) allocated: bool,
    /// Unwind tables refer to code without making it a target.
    pub(crate) unwind: bool,
}

/// What stands at one place of the text.
#[derive(Debug)]
pub(crate) enum Item<'a> {
    /// A line marker or comment.
    Marker(&'a str),
    Label(LabelId),
    /// Passed through.
    Directive(&'a str, &'a str),
    Align(&'a str, &'a str),
    Cfi(&'a str, &'a str),
    Assign(&'a str, &'a str),
    Instruction(Position),
}

/// The whole file.
#[derive(Debug, Default)]
pub(crate) struct Unit<'a> {
    /// With the section and the line of each.
    pub(crate) items: Vec<(Item<'a>, usize, u32)>,
    /// Section by section, in the order of the text within each.
    pub(crate) instructions: Vec<Instruction<'a>>,
    pub(crate) labels: Vec<Label<'a>>,
    pub(crate) sections: Vec<Section<'a>>,
    /// Labels in front of each instruction that are targets of branches: ranges in `label_list`.
    pub(crate) labels_at: Vec<Vec<LabelId>>,
    /// The function that each instruction belongs to, as the number of one of its pieces.
    pub(crate) functions: Vec<usize>,
    /// Call-site table entries: start of the region, landing pad.
    pub(crate) landing_pads: Vec<(LabelId, LabelId)>,
    /// Bytes in executable sections, in the order of the text.
    pub(crate) bytes: Vec<Bytes<'a>>,
}

impl Unit<'_> {
    /// Whether a branch may come to this instruction.
    pub(crate) fn is_target(&self, position: Position) -> bool {
        self.labels_at[position]
            .iter()
            .any(|&l| self.labels[l].is_target())
    }

    /// Whether this instruction begins a function.
    pub(crate) fn is_entry(&self, position: Position) -> bool {
        self.labels_at[position]
            .iter()
            .any(|&l| self.labels[l].is_entry())
    }

    /// Whether the instruction leaves its function: it returns, or goes where one is entered.
    pub(crate) fn leaves(&self, position: Position) -> bool {
        let instruction = &self.instructions[position];
        match (instruction.row.class, instruction.operands.first()) {
            (Class::Ret, _) => true,
            (Class::Jmp | Class::Jcc, Some(Operand::Target(_))) => self
                .branch_target(position)
                .is_none_or(|target| self.is_entry(target)),
            (Class::Jmp, Some(Operand::ThroughMem(mem))) => mem.got_symbol().is_some(),
            _ => false,
        }
    }

    /// The label with its aliases resolved.
    pub(crate) fn resolve(&self, mut label: LabelId) -> LabelId {
        // A chain longer than the table is a circle.
        for _ in 0..self.labels.len() {
            match self.labels[label].alias_of {
                Some(next) => label = next,
                None => break,
            }
        }
        label
    }

    /// The instruction behind this one in its section.
    pub(crate) fn next(&self, position: Position) -> Option<Position> {
        let next = position + 1;
        (next < self.instructions.len()
            && self.instructions[next].section == self.instructions[position].section)
            .then_some(next)
    }

    /// Tells functions apart: a piece of code from one function symbol to the next,
    /// together with the pieces that it jumps into other than at an entry, its
    /// landing pads, and the part that is cold, to which a jump table may lead.
    pub(crate) fn find_functions(&mut self) {
        let mut piece = 0;
        self.functions = (0..self.instructions.len())
            .map(|position| {
                let begins = position == 0 || self.next(position - 1).is_none();
                if begins
                    || self.labels_at[position]
                        .iter()
                        .any(|&l| self.labels[l].function || self.labels[l].is_entry())
                {
                    piece = position;
                }
                piece
            })
            .collect();
        let mut parents: Vec<usize> = (0..self.instructions.len()).collect();
        let jumps = (0..self.instructions.len()).filter_map(|position| {
            let target = self.branch_target(position)?;
            let within = self.instructions[position].row.class != Class::Call;
            (within && !self.is_entry(target)).then_some((position, target))
        });
        let place = |label: &LabelId| self.labels[*label].at;
        let pads = self.landing_pads.iter();
        let pads = pads.filter_map(|(start, pad)| place(start).zip(place(pad)));
        for (from, to) in jumps.chain(pads).chain(self.cold_parts()) {
            let (a, b) = (
                root(&mut parents, self.functions[from]),
                root(&mut parents, self.functions[to]),
            );
            parents[a.max(b)] = a.min(b);
        }
        for position in 0..self.functions.len() {
            self.functions[position] = root(&mut parents, self.functions[position]);
        }
    }

    /// Functions with a cold part, by the name that compilers give it: where each starts.
    fn cold_parts(&self) -> Vec<(Position, Position)> {
        let cold = self.labels.iter().filter_map(|label| {
            let (whole, _) = label.name.split_once(".cold")?;
            Some((whole, label.at?))
        });
        let cold: Vec<_> = cold.collect();
        let wanted: HashSet<&str> = cold.iter().map(|(whole, _)| *whole).collect();
        let whole = self.labels.iter();
        let whole = whole.filter(|label| wanted.contains(label.name));
        let whole: HashMap<&str, Position> = whole
            .filter_map(|label| Some((label.name, label.at?)))
            .collect();
        let parts = cold.into_iter();
        parts
            .filter_map(|(name, at)| Some((*whole.get(name)?, at)))
            .collect()
    }

    /// Whether a direct branch goes to what need not exist. A linker makes a stub of its
    /// own for that, which jumps through memory.
    pub(crate) fn may_go_nowhere(&self, position: Position) -> bool {
        let target = self.instructions[position].target;
        target.is_some_and(|label| self.labels[self.resolve(label)].may_be_absent())
    }

    /// Whether `name` need not exist.
    pub(crate) fn may_be_absent(&self, name: &str) -> bool {
        let mut labels = self.labels.iter();
        labels.any(|label| label.name == name && label.may_be_absent())
    }

    /// Whether a call's callee is in this file, so that the compiler knew which registers it writes.
    pub(crate) fn is_known_call(&self, position: Position) -> bool {
        self.branch_target(position).is_some()
    }

    /// Where a direct branch goes, if within this file.
    pub(crate) fn branch_target(&self, position: Position) -> Option<Position> {
        let label = self.resolve(self.instructions[position].target?);
        self.labels[label].at
    }
}

/// The representative of a set in a forest of parents.
fn root(parents: &mut [usize], mut of: usize) -> usize {
    while parents[of] != of {
        parents[of] = parents[parents[of]];
        of = parents[of];
    }
    of
}
