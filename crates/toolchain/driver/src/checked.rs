//! What tells a compilation of checked code from one for a window: options, and how the driver tells its assembler
//! and its linker.

use crate::DriverError;
use mullion_rewriter::WordProtection;
use std::process::Command;

/// Environment variable that tells assembler and linker what is checked, from the driver.
pub(crate) const WORD: &str = "MULLION_WORD";
/// Environment variable with the directory of the functions of the C library that modules bring along.
pub(crate) const LIBRARY: &str = "MULLION_WORD_LIBRARY";

/// Environment variable that tells the linker where `malloc` takes memory from, from the driver.
const HEAP: &str = "MULLION_WORD_HEAP";

/// Where `malloc` of a module takes memory from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Heap {
    /// From the module's own heap (`sysroot/word/heap`).
    #[default]
    Own,
    /// From the host, block by block.
    Host,
}

impl Heap {
    /// As it is called in options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Heap::Own => "own",
            Heap::Host => "host",
        }
    }

    pub(crate) fn named(value: &str) -> Result<Heap, DriverError> {
        let known = [Heap::Own, Heap::Host].into_iter();
        known
            .clone()
            .find(|heap| heap.name() == value)
            .ok_or_else(|| DriverError::Value {
                option: "--heap",
                value: value.to_owned(),
                known: "own, host",
            })
    }

    /// Tells the linker that gcc calls.
    pub(crate) fn hand_on(self, gcc: &mut Command) {
        gcc.env(HEAP, self.name());
    }

    /// What the driver has told.
    pub(crate) fn handed_on() -> Result<Heap, DriverError> {
        match std::env::var(HEAP) {
            Ok(name) if !name.is_empty() => Heap::named(&name),
            _ => Ok(Heap::default()),
        }
    }
}

/// Options that every compilation of checked code gets, after the user's own.
///
/// Calls between the module's functions are direct, and nothing replaces them when it is loaded.
pub(crate) const CODE: &[&str] = &[
    "-ffixed-r11",
    "-ffixed-r14",
    "-ffixed-r15",
    "-fPIC",
    "-fno-semantic-interposition",
    "-mno-tls-direct-seg-refs",
    "-ftls-model=initial-exec",
    "-fno-stack-protector",
    "-fno-stack-clash-protection",
    "-fcf-protection=none",
    "-fno-ipa-ra",
    "-masm=att",
    "-fno-lto",
    "-mno-avx512f",
    "-mno-avxvnni",
    "-mno-fma4",
    "-mno-xop",
    "-mno-tbm",
];

/// Options that every compilation of checked code starts with. A repeated string instruction becomes a loop of
/// single ones: a function is faster. A check ends with the branch of its loop, so loops are unrolled: one check
/// serves the accesses of several turns.
pub(crate) const TUNING: &[&str] = &[
    "-funroll-loops",
    "--param=case-values-threshold=20",
    "-mmemcpy-strategy=libcall:-1:align",
    "-mmemset-strategy=libcall:-1:align",
];

/// What the links of modules get. The template of the linker script is the sysroot's.
pub(crate) const LINK: &[&str] = &["-shared", "-nostartfiles", "-nodefaultlibs"];

/// The protection that the driver has told, if this is its assembler or linker for checked code.
pub(crate) fn from_environment() -> Result<Option<WordProtection>, DriverError> {
    match std::env::var(WORD) {
        Ok(name) if !name.is_empty() => protection(WORD, &name).map(Some),
        _ => Ok(None),
    }
}

/// Reads a protection's name.
pub(crate) fn protection(option: &'static str, value: &str) -> Result<WordProtection, DriverError> {
    let known = WordProtection::ALL.into_iter();
    known
        .clone()
        .find(|protection| protection.name() == value)
        .ok_or_else(|| DriverError::Value {
            option,
            value: value.to_owned(),
            known: "write, read-write",
        })
}
