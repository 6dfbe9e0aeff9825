//! What the loader must know of a module.

use crate::memory;
use crate::report::{Reached, ReachedField};
use mullion_plain::Plain;
use mullion_word_abi::{Protection, SLOT_FIRST_IMPORT, WORD};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use thiserror::Error;

/// What a segment's pages may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Constants.
    Read,
    /// Code.
    Execute,
    /// Data.
    Write,
}

/// A segment. Addresses are the file's: the first page of a module is page 0.
#[derive(Clone, Debug)]
pub struct Segment {
    /// First address, page aligned.
    pub address: u64,
    /// Bytes in memory.
    pub bytes: u64,
    /// What it begins with, in the file; zeros follow.
    pub content: Range<usize>,
    /// What its pages may be.
    pub access: Access,
}

/// A word of 8 bytes that the loader writes.
#[derive(Clone, Copy, Debug)]
pub struct Relocation {
    /// Where.
    pub at: u64,
    /// What.
    pub value: Value,
    /// Added to it.
    pub addend: i64,
}

/// What a relocation refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Where the module is.
    Base,
    /// The symbol with this index.
    Symbol(usize),
}

/// A dynamic symbol.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// Its name, which the module's author has chosen.
    pub name: Plain,
    /// Its address in the file; none if the host has it.
    pub value: Option<u64>,
    /// Whether it may be missing.
    pub weak: bool,
}

/// The thread-local segment.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Initial content, in the file.
    pub content: Range<usize>,
    /// Bytes of each thread's copy.
    pub bytes: u64,
    /// Alignment.
    pub alignment: u64,
}

/// A switch gate and the body behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Of the `endbr64`.
    pub address: u64,
    /// Where the function begins.
    pub body: u64,
}

/// What a module consists of.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// The file.
    pub bytes: Arc<[u8]>,
    /// Its segments, in order.
    pub segments: Vec<Segment>,
    /// Its relocations.
    pub relocations: Vec<Relocation>,
    /// Its dynamic symbols.
    pub symbols: Vec<Symbol>,
    /// What becomes read-only after relocation.
    pub relro: Option<Range<u64>>,
    /// Its thread-locals.
    pub tls: Option<Tls>,
    /// Gates to be called first, in this order.
    pub init: Vec<u64>,
    /// And last, in the opposite order.
    pub fini: Vec<u64>,
    /// The slots.
    pub slots: Range<u64>,
    /// Names of imports, by number.
    pub imports: Vec<String>,
    /// All switch gates.
    pub gates: Vec<Gate>,
    /// Instructions that rely on a check that was made, in order.
    pub checked: Vec<Range<u64>>,
    /// Traps of checks, each with the cold block that leads there, in order. None: no right can be asked for.
    pub colds: Vec<Cold>,
    /// What is checked.
    pub protection: Protection,
    /// Whether there are instructions on MXCSR or on the x87 control word.
    pub control_words: bool,
}

/// A check's points.
#[derive(Clone, Copy, Debug)]
pub struct Cold {
    /// The trap behind them.
    pub trap: u64,
    /// The first of them.
    pub start: u64,
    /// The jump of the check that leads there.
    pub check: u64,
    /// No answer of the table from before the check is relied on behind it.
    pub is_alone: bool,
}

/// Where instructions come from.
struct Lines(Box<dyn Fn(u64) -> Option<Plain> + Send + Sync>);

/// What an address is to an instruction.
type Field = dyn Fn(&Reached<'_>) -> Option<ReachedField> + Send + Sync;

/// What addresses are to instructions.
struct Fields(Box<Field>);

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lines")
    }
}

impl std::fmt::Debug for Fields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fields")
    }
}

/// A thread that is stopped between a check and its access goes on one instruction at a time until no check is relied on.
/// Whoever takes a right away waits for that, with all who wait for the supervisor. So modules have at most so many
/// bytes of code in which checks are relied on without a gap, with the points of these checks.
const LONGEST: u64 = 256 << 10;

/// Why parts are not a module.
#[derive(Debug, Error)]
pub enum ModuleError {
    /// Something lies outside of what it must lie in.
    #[error("{what} at {address:#x} is not where a module has it")]
    Outside {
        /// What.
        what: &'static str,
        /// Where.
        address: u64,
    },
    /// A straight line in which checks count is so long that revocations would be slow.
    #[error(
        "{bytes} bytes of code, points included, rely on checks without a gap from {address:#x} on; {LONGEST} are allowed"
    )]
    LongLine {
        /// Where it begins, in the file.
        address: u64,
        /// How long it is.
        bytes: u64,
    },
    /// The system has no memory file for it.
    #[error("cannot make the module's memory file: {0}")]
    File(#[from] std::io::Error),
    /// The file is not as a module is.
    #[error("not a module of checked code: {0}")]
    Malformed(&'static str),
}

/// A module, of which domains can be made. Its content is in a sealed file that they share.
#[derive(Debug)]
pub struct Module {
    lines: OnceLock<Lines>,
    fields: OnceLock<Fields>,
    /// Where functions and bodies begin, in order, each with its symbol's place.
    names: Vec<(u64, usize)>,
    pub(crate) name: Plain,
    pub(crate) parts: Parts,
    pub(crate) file: OwnedFd,
    pub(crate) bytes: u64,
}

impl Module {
    /// A module with these parts.
    ///
    /// # Safety
    /// The parts are those of a file that keeps the contract in `docs/word-form.md`: it was verified. `checked` has all
    /// its checked ranges, and `gates` nothing but switch gates.
    pub unsafe fn from_parts(name: &str, parts: Parts) -> Result<Arc<Module>, ModuleError> {
        let outside = |what, address| Err(ModuleError::Outside { what, address });
        let mut parts = parts;
        parts.gates.sort_unstable_by_key(|gate| gate.address);
        let mut end = 0u64;
        for segment in &parts.segments {
            let content = segment.content.len() as u64;
            if segment.address < end
                || !segment.address.is_multiple_of(memory::PAGE)
                || content > segment.bytes
                || segment.content.end > parts.bytes.len()
                || segment.bytes > 1 << 32
                || segment.address > 1 << 32
            {
                return outside("a segment", segment.address);
            }
            end = (segment.address + segment.bytes).next_multiple_of(memory::PAGE);
        }
        let names = names(&parts);
        let module = Module {
            names,
            lines: OnceLock::new(),
            fields: OnceLock::new(),
            name: name.into(),
            file: parts.file(end)?,
            bytes: end,
            parts,
        };
        let parts = &module.parts;
        let data = |at: u64, bytes: u64| module.is_in(Access::Write, at, bytes);
        if let Some(wrong) = parts.relocations.iter().find(|r| !data(r.at, 8)) {
            return outside("a relocation", wrong.at);
        }
        let mut gates = parts.gates.iter();
        if let Some(gate) = gates.find(|gate| !module.is_in(Access::Execute, gate.address, WORD)) {
            return outside("a gate", gate.address);
        }
        let slots = (SLOT_FIRST_IMPORT + parts.imports.len() as u64) * 8;
        let relro = parts.relro.clone().unwrap_or_default();
        let is_fixed = relro.start <= parts.slots.start && parts.slots.end <= relro.end;
        if !data(parts.slots.start, slots)
            || parts.slots.end.saturating_sub(parts.slots.start) < slots
            || !is_fixed
        {
            return outside("the slots", parts.slots.start);
        }
        if !data(relro.start, relro.end.saturating_sub(relro.start))
            || !relro.start.is_multiple_of(memory::PAGE)
            || !relro.end.is_multiple_of(memory::PAGE)
        {
            return outside("what becomes read-only", relro.start);
        }
        // The first life alone writes to these pages.
        let across = |r: &&Relocation| {
            let is_in = |at: u64| relro.contains(&at);
            is_in(r.at) != is_in(r.at.saturating_add(7))
        };
        if let Some(wrong) = parts.relocations.iter().find(across) {
            return outside("a relocation across the end of what is read-only", wrong.at);
        }
        if let Some((address, bytes)) = parts.lines().into_iter().find(|line| line.1 > LONGEST) {
            return Err(ModuleError::LongLine { address, bytes });
        }
        let called = parts.init.iter().chain(&parts.fini);
        if let Some(wrong) = no_gate(called, &parts.gates, |gate| gate.address) {
            return outside("a function to be called first or last", wrong);
        }
        if parts.tls.as_ref().is_some_and(|tls| {
            tls.content.end > parts.bytes.len()
                || tls.content.len() as u64 > tls.bytes
                || tls.bytes > 1 << 20
                || !tls.alignment.is_power_of_two()
                || tls.alignment > memory::PAGE
        }) {
            return Err(ModuleError::Malformed("thread-locals of more than 1 MiB"));
        }
        Ok(Arc::new(module))
    }

    /// Says where in the source an instruction of the file comes from, for reports. It is asked on the stack of the
    /// thread whose call was ended. The first answerer stays.
    pub fn set_lines(&self, of: impl Fn(u64) -> Option<Plain> + Send + Sync + 'static) {
        let _first = self.lines.set(Lines(Box::new(of)));
    }

    /// Says what an address is to an instruction of the file, for reports: a member of which type. It is asked as lines are.
    /// The first answerer stays.
    pub fn set_fields(
        &self,
        of: impl Fn(&Reached<'_>) -> Option<ReachedField> + Send + Sync + 'static,
    ) {
        let _first = self.fields.set(Fields(Box::new(of)));
    }

    pub(crate) fn field_of(&self, reach: &Reached<'_>) -> Option<ReachedField> {
        self.fields.get().and_then(|fields| (fields.0)(reach))
    }

    pub(crate) fn line_of(&self, address: u64) -> Option<Plain> {
        self.lines.get().and_then(|lines| (lines.0)(address))
    }

    /// Its name, for reports.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether a switch gate is at this address of the file.
    pub(crate) fn is_gate(&self, at: u64) -> bool {
        self.gate(at).is_some()
    }

    /// The switch gate at this address of the file.
    pub(crate) fn gate(&self, at: u64) -> Option<&Gate> {
        gate_at(&self.parts.gates, at, |gate| gate.address)
    }

    fn is_in(&self, access: Access, at: u64, bytes: u64) -> bool {
        self.parts.segments.iter().any(|segment| {
            // Whole pages are mapped.
            let end = (segment.address + segment.bytes).next_multiple_of(memory::PAGE);
            segment.access == access && segment.address <= at && bytes <= end && at <= end - bytes
        })
    }

    /// The function that an address of the file lies in, and how far in.
    pub(crate) fn function_at(&self, address: u64) -> Option<(&str, u64)> {
        let behind = self.names.partition_point(|(start, _)| *start <= address);
        let (start, symbol) = *self.names.get(behind.checked_sub(1)?)?;
        Some((
            self.parts.symbols.get(symbol)?.name.as_str(),
            address - start,
        ))
    }
}

/// The gate at an address, of gates in order. `address` says where one is.
fn gate_at(gates: &[Gate], at: u64, address: impl FnMut(&Gate) -> u64) -> Option<&Gate> {
    let found = gates.binary_search_by_key(&at, address);
    gates.get(found.ok()?)
}

/// The first of `called` at which no gate is. `address` is asked of some gates for each, and not of all.
fn no_gate<'a>(
    mut called: impl Iterator<Item = &'a u64>,
    gates: &[Gate],
    mut address: impl FnMut(&Gate) -> u64,
) -> Option<u64> {
    let wrong = called.find(|at| gate_at(gates, **at, &mut address).is_none());
    wrong.copied()
}

/// What [`Module::function_at`] looks up. There are as many symbols and gates as the file has room for.
fn names(parts: &Parts) -> Vec<(u64, usize)> {
    let symbols = parts.symbols.iter().enumerate();
    let mut named: Vec<(u64, usize)> = symbols
        .filter_map(|(number, symbol)| Some((symbol.value?, number)))
        .collect();
    named.sort_unstable();
    // A body stands under the name of its gate.
    let bodies = parts.gates.iter().filter_map(|gate| {
        let first = named.partition_point(|(start, _)| *start < gate.address);
        let (start, number) = named.get(first)?;
        (*start == gate.address).then_some((gate.body, *number))
    });
    let mut all: Vec<(u64, usize)> = bodies.collect();
    all.append(&mut named);
    let name = |number: usize| parts.symbols[number].name.as_str();
    all.sort_unstable_by(|one, other| (one.0, name(one.1)).cmp(&(other.0, name(other.1))));
    all
}

impl Parts {
    /// The stretches in which checks are relied on without a gap: where each begins, and the bytes of code that a thread may run in it,
    /// points included. It runs each of them once at most.
    fn lines(&self) -> Vec<(u64, u64)> {
        let mut lines: Vec<Range<u64>> = Vec::new();
        for range in &self.checked {
            match lines.last_mut() {
                Some(line) if range.start <= line.end => line.end = line.end.max(range.end),
                _ => lines.push(range.clone()),
            }
        }
        let mut bytes: Vec<u64> = lines.iter().map(|line| line.end - line.start).collect();
        for cold in &self.colds {
            let behind = lines.partition_point(|line| line.end <= cold.check);
            if lines
                .get(behind)
                .is_some_and(|line| line.contains(&cold.check))
            {
                bytes[behind] += cold.trap.saturating_sub(cold.start);
            }
        }
        lines.iter().map(|line| line.start).zip(bytes).collect()
    }

    /// The segments as they are in memory. What is behind the code on its last page is no code: `int3`.
    fn file(&self, bytes: u64) -> std::io::Result<OwnedFd> {
        let fill = vec![0xccu8; memory::PAGE as usize];
        let mut pieces: Vec<(u64, &[u8])> = Vec::new();
        for segment in &self.segments {
            pieces.push((segment.address, &self.bytes[segment.content.clone()]));
            if segment.access == Access::Execute {
                let end = segment.address + segment.content.len() as u64;
                let rest = end.next_multiple_of(memory::PAGE) - end;
                pieces.push((end, &fill[..rest as usize]));
            }
        }
        memory::sealed(c"mullion-module", bytes, &pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_to_be_called_first_are_not_compared_with_all_gates() {
        let gates = (0..20_000).map(|number| Gate {
            address: 16 * number,
            body: 16 * number + 4,
        });
        let gates: Vec<Gate> = gates.collect();
        let called: Vec<u64> = gates.iter().rev().map(|gate| gate.address).collect();
        let mut looks = 0;
        let address = |gate: &Gate| {
            looks += 1;
            gate.address
        };
        assert_eq!(no_gate(called.iter(), &gates, address), None);
        assert!(looks <= 16 * called.len(), "{looks}");
        let wrong = [16, 32, 33, 17];
        assert_eq!(no_gate(wrong.iter(), &gates, |gate| gate.address), Some(33));
    }

    #[test]
    fn a_body_has_its_gate_s_name_and_the_last_of_two_names_stands() {
        let symbol = |name: &str, value| Symbol {
            name: name.into(),
            value,
            weak: false,
        };
        let gate = |address| Gate {
            address,
            body: address + 12,
        };
        let parts = Parts {
            symbols: vec![
                symbol("b", Some(32)),
                symbol("away", None),
                symbol("a", Some(16)),
                symbol("c", Some(32)),
            ],
            gates: vec![gate(16), gate(32), gate(48)],
            ..Parts::default()
        };
        assert_eq!(names(&parts), [(16, 2), (28, 2), (32, 0), (32, 3), (44, 0)]);
    }
}
