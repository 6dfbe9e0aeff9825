//! Machine code in, evidence that each access is checked or the first violations out.
//!
//! [`verify`] checks a module of the word wall against `docs/word-form.md` in one linear pass.
//! What it accepts is a [`Verified`], which cannot be made in any other way and owns the bytes that were checked.
//!
//! ```text
//! file -> module.rs   segments, thread-local template         -+
//!         dynamic.rs  relocations, symbols, arrays             |  any violation:
//!         note.rs     note, slots, imports                     |  Rejected
//!         code.rs     every instruction (crates/window/decoder)|
//!                     and what is known between them (line.rs),|
//!                     checks and gates (sequence.rs)          -+-> none: Verified
//! ```
//!
//! Nothing here relies on the rewriter, the assembler or the linker, and nothing panics, whatever the input.
#![forbid(unsafe_code)]
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod code;
mod dynamic;
mod line;
mod module;
mod note;
mod sequence;
mod stats;

pub use dynamic::{Relocation, Symbol, Value};
pub use module::{Module, Permission, Segment, TlsTemplate};
pub use mullion_word_rules::{Place, Rule, UnknownRule, Violation};
pub use stats::Stats;

use std::ops::{Deref, Range};
use std::sync::Arc;

/// Collects violations.
type Report = mullion_decoder::Report<Violation>;

/// Number of violations that [`verify`] reports at most.
pub const DEFAULT_LIMIT: usize = 100;

/// A switch gate of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Of its `endbr64`: the four bytes that may be entered.
    pub address: u64,
    /// Where the function goes on.
    pub body: u64,
}

/// What is refused if the trap behind a check is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Address of the trap.
    pub trap: u64,
    /// Address of the check's first jump.
    pub check: u64,
    /// Address of the first access that relies on the check, if there is one.
    pub access: Option<u64>,
    /// Base register of the operand, by its number. It still has its value at the trap.
    pub base: Option<u8>,
    /// Index register of the operand, as the base.
    pub index: Option<u8>,
    /// 1, 2, 4 or 8: how often the index counts.
    pub scale: u8,
    /// Displacement of the operand.
    pub displacement: i32,
    /// The bytes that a read may rely on, as displacements from base and index.
    pub read: Range<i64>,
    /// ... and a write.
    pub write: Range<i64>,
    /// Some access that relies on the check writes.
    pub writes: bool,
}

/// What the code was found to have.
#[derive(Clone, Debug, Default)]
struct Facts {
    gates: Vec<Gate>,
    checked: Vec<Range<u64>>,
    refused: Vec<Refused>,
}

impl Facts {
    fn gate(&self, address: u64) -> Option<&Gate> {
        let found = self
            .gates
            .binary_search_by_key(&address, |gate| gate.address);
        self.gates.get(found.ok()?)
    }
}

/// A module that keeps to every rule. Dereferences to the [`Module`], whose every statement has been checked.
#[derive(Clone, Debug)]
pub struct Verified {
    module: Module,
    facts: Facts,
    stats: Stats,
}

impl Verified {
    /// What was counted on the way.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The gates in the code, in ascending order.
    #[must_use]
    pub fn gates(&self) -> &[Gate] {
        &self.facts.gates
    }

    /// The gate at an address.
    #[must_use]
    pub fn gate(&self, address: u64) -> Option<&Gate> {
        self.facts.gate(address)
    }

    /// The addresses of instructions that run after a check has read the table and before its access has been made,
    /// that instruction included. They are in ascending order, none touching another. They are what the word wall's table calls
    /// checked ranges.
    #[must_use]
    pub fn checked_ranges(&self) -> &[Range<u64>] {
        &self.facts.checked
    }

    /// What the traps behind checks refuse, by the address of the trap.
    #[must_use]
    pub fn refused(&self) -> &[Refused] {
        &self.facts.refused
    }

    /// What the trap at an address refuses.
    #[must_use]
    pub fn refused_at(&self, trap: u64) -> Option<&Refused> {
        let refused = &self.facts.refused;
        let found = refused.binary_search_by_key(&trap, |refused| refused.trap);
        refused.get(found.ok()?)
    }
}

impl Deref for Verified {
    type Target = Module;

    fn deref(&self) -> &Module {
        &self.module
    }
}

/// Why a module is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the module breaks {} rule{}{}, the first at {}",
    violations.len(), if violations.len() == 1 { "" } else { "s" }, if *truncated { " or more" } else { "" },
    violations.first().map(ToString::to_string).unwrap_or_default())]
pub struct Rejected {
    /// The first violations: those of the file's structure, then those of the code by address.
    pub violations: Vec<Violation>,
    /// There are more.
    pub truncated: bool,
}

/// Everything that can be said about a file, whether it verifies or not.
#[derive(Clone, Debug)]
pub struct Survey {
    /// What the file says of itself, as far as it could be read. Not evidence.
    pub module: Option<Module>,
    /// What was counted; incomplete where code could not be decoded.
    pub stats: Stats,
    /// The first violations: those of the file's structure, then those of the code by address.
    pub violations: Vec<Violation>,
    /// There are more.
    pub truncated: bool,
    facts: Facts,
}

impl Survey {
    /// Whether [`verify`] accepts the file. Only a [`Verified`] is evidence.
    #[must_use]
    pub fn is_verified(&self) -> bool {
        self.module.is_some() && self.violations.is_empty() && !self.truncated
    }
}

/// Checks a module's file.
///
/// # Errors
/// [`Rejected`] with at most [`DEFAULT_LIMIT`] violations, if any rule is broken.
pub fn verify(bytes: impl Into<Arc<[u8]>>) -> Result<Verified, Rejected> {
    let survey = survey(bytes, DEFAULT_LIMIT);
    let verified = survey.is_verified();
    match survey.module {
        Some(module) if verified => Ok(Verified {
            module,
            facts: survey.facts,
            stats: survey.stats,
        }),
        _ => Err(Rejected {
            violations: survey.violations,
            truncated: survey.truncated,
        }),
    }
}

/// Describes a module's file, and reports at most `limit` violations.
#[must_use]
pub fn survey(bytes: impl Into<Arc<[u8]>>, limit: usize) -> Survey {
    let mut report = Report::new(limit);
    let module = Module::parse(bytes.into(), &mut report);
    let (facts, stats) = module
        .as_ref()
        .map(|module| code::check(module, &mut report))
        .unwrap_or_default();
    for address in module
        .iter()
        .flat_map(|module| [module.init(), module.fini()])
        .flatten()
    {
        if facts.gate(*address).is_none() {
            report.add(|| Violation::at(Rule::InitArray, Place::Address(*address)));
        }
    }
    let (violations, truncated) = report.finish();
    Survey {
        module,
        stats,
        violations,
        truncated,
        facts,
    }
}

/// Whether a file says that it is a module of the word wall: it has the note, whatever else is wrong with it.
#[must_use]
pub fn is_module(bytes: &[u8]) -> bool {
    note::is_there(bytes)
}
