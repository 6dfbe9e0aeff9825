//! Values of our own options, from the command line and from the environment.

use super::Kind;
use crate::DriverError;
use mullion_abi::Protection;
use mullion_rewriter::{Base, Options};

/// Whether an option of ours, without its prefix, says how to rewrite; then `options` says it, too.
///
/// # Errors
/// Its value is not known.
pub(crate) fn from_own(option: &str, options: &mut Options) -> Result<bool, DriverError> {
    match option.split_once('=').unwrap_or((option, "")) {
        ("protection", value) => options.protection = protection("--mullion-protection", value)?,
        ("base", value) => options.base = base("--mullion-base", value)?,
        ("count", "") => options.count = true,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Reads a protection's name.
///
/// # Errors
/// There is no such protection.
pub(crate) fn protection(option: &'static str, value: &str) -> Result<Protection, DriverError> {
    let known = [
        Protection::WriteCall,
        Protection::ReadWriteCall,
        Protection::Trap,
    ];
    known
        .into_iter()
        .find(|protection| protection.name() == value)
        .ok_or_else(|| DriverError::Value {
            option,
            value: value.to_owned(),
            known: "write-call, read-write-call, trap",
        })
}

/// Environment variables of wall, protection and heap.
pub(super) const WALL: &str = "MULLION_WALL";
pub(super) const HEAP: &str = "MULLION_HEAP";
pub(super) const PROTECTION: &str = "MULLION_PROTECTION";

/// What was asked for; the last word counts, and the protection means nothing before the wall is known.
pub(super) struct Wishes {
    pub(super) wall: Option<String>,
    /// With the option or variable that says so.
    pub(super) protection: Option<(&'static str, String)>,
    pub(super) heap: Option<String>,
}

impl Wishes {
    pub(super) fn is_word(&self) -> Result<bool, DriverError> {
        match self.wall.as_deref() {
            None | Some("window") => Ok(false),
            Some("word") => Ok(true),
            Some(value) => Err(DriverError::Value {
                option: "--wall",
                value: value.to_owned(),
                known: "window, word",
            }),
        }
    }
}

/// The protection of windows that the environment names, if it names one.
pub(crate) fn protection_from_environment() -> Result<Option<Protection>, DriverError> {
    let named = from_environment(PROTECTION);
    named
        .map(|value| protection(PROTECTION, &value))
        .transpose()
}

pub(super) fn from_environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Reads a base's name.
///
/// # Errors
/// There is no such base.
fn base(option: &'static str, value: &str) -> Result<Base, DriverError> {
    let known = Base::ALL.into_iter().find(|base| base.name() == value);
    known.ok_or_else(|| DriverError::Value {
        option,
        value: value.to_owned(),
        known: "segment, register",
    })
}

/// The base that the environment names; the segment if it names none.
pub(crate) fn base_from_environment() -> Result<Base, DriverError> {
    match std::env::var(BASE) {
        Ok(value) if !value.is_empty() => base(BASE, &value),
        _ => Ok(Base::Segment),
    }
}

/// Environment variable of the base, of the user's and from the driver to assembler and linker.
pub(crate) const BASE: &str = "MULLION_BASE";

/// Whether the environment asks for steps to be counted.
pub(crate) fn count_from_environment() -> bool {
    std::env::var_os(COUNT).is_some_and(|value| !value.is_empty())
}

/// Environment variable that hands `--mullion-count` from the driver to the assembler.
pub(crate) const COUNT: &str = "MULLION_COUNT";

pub(super) fn kind(value: &str) -> Result<Kind, DriverError> {
    match value {
        "program" => Ok(Kind::Program),
        "extension" => Ok(Kind::Extension),
        _ => Err(DriverError::Value {
            option: "--mullion-kind",
            value: value.to_owned(),
            known: "program, extension",
        }),
    }
}
