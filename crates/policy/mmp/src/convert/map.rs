//! The map: which addresses belong to which domain, and which functions are gates. A person writes it, as TOML.
//! `docs/model.md` has an example.

use crate::event::MAX_STACK_BYTES;
use mullion_supervisor::{Permission, WORD_BYTES as WORD};
use serde::Deserialize;
use std::collections::HashMap;
use thiserror::Error;

/// The most domains, gates, shares and threads, each.
const MOST: usize = 4096;

/// The most regions of all domains together.
const MOST_REGIONS: usize = 65536;

/// Bytes of the stack on which a domain starts, at the end of the address space.
pub(super) const START_STACK_BYTES: u64 = 4096;

/// Why a map is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SymbolMapError {
    /// Not TOML, an unknown key, or a value of the wrong kind.
    #[error("the map cannot be read: {0}")]
    Syntax(String),
    /// A part of it has no meaning.
    #[error("{0}")]
    Wrong(String),
}

fn wrong(text: impl Into<String>) -> SymbolMapError {
    SymbolMapError::Wrong(text.into())
}

/// As it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    #[serde(default = "default_bits")]
    address_bits: u32,
    #[serde(default = "default_access")]
    access_bytes: u32,
    domain: Vec<WrittenDomain>,
    #[serde(default)]
    share: Vec<WrittenShare>,
    #[serde(default)]
    gate: Vec<WrittenGate>,
    thread: Vec<WrittenThread>,
}

fn default_bits() -> u32 {
    48
}

/// The least that was touched, so that nothing is refused that may have been allowed.
fn default_access() -> u32 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenDomain {
    name: String,
    #[serde(default)]
    regions: Vec<WrittenRegion>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRegion {
    start: u64,
    end: u64,
    permission: WrittenPermission,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WrittenPermission {
    None,
    Read,
    ReadWrite,
    ExecuteRead,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenShare {
    to: String,
    start: u64,
    end: u64,
    permission: WrittenPermission,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenGate {
    function: u64,
    into: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenThread {
    start: u64,
    end: u64,
}

/// Words with a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) permission: Permission,
}

/// Words of one domain that another one may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Domains are numbered as they stand in the map, from 1.
    pub(super) owner: u32,
    pub(super) to: u32,
    pub(super) region: Region,
}

/// A map that has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    address_bits: u32,
    access_bytes: u32,
    domains: Vec<Vec<Region>>,
    shares: Vec<Share>,
    gates: Vec<(u64, u32)>,
    stacks: Vec<(u64, u64)>,
}

impl Map {
    /// Reads TOML.
    pub fn from_toml(text: &str) -> Result<Map, SymbolMapError> {
        let written: Written =
            toml::from_str(text).map_err(|error| SymbolMapError::Syntax(error.to_string()))?;
        Checker::new(&written)?.check(&written)
    }

    /// Bits of an address.
    pub fn address_bits(&self) -> u32 {
        self.address_bits
    }

    /// Bytes of an access of which the trace does not say how long it is.
    pub fn access_bytes(&self) -> u32 {
        self.access_bytes
    }

    /// The regions of each domain. The first domain owns all memory that no other one owns.
    pub(super) fn domains(&self) -> impl Iterator<Item = &[Region]> {
        self.domains.iter().map(Vec::as_slice)
    }

    /// What domains let others use.
    pub(super) fn shares(&self) -> &[Share] {
        &self.shares
    }

    /// Functions that anybody may call, each with the domain that it belongs to.
    pub(super) fn gates(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.gates.iter().copied()
    }

    /// The stacks of the threads: first address, and the one behind the last.
    pub(super) fn threads(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.stacks.iter().copied()
    }

    /// Where a domain's first stack lies.
    pub(super) fn start_stack(&self, domain: u32) -> u64 {
        (1 << self.address_bits) - START_STACK_BYTES * u64::from(domain)
    }
}

/// Looks for what has no meaning.
struct Checker {
    end: u64,
    numbers: HashMap<String, u32>,
    /// The regions of all domains but the first, by address, with their owner.
    owned: Vec<(u64, u64, u32)>,
}

impl Checker {
    fn new(written: &Written) -> Result<Checker, SymbolMapError> {
        if !(24..=56).contains(&written.address_bits) {
            return Err(wrong("address-bits can be from 24 to 56"));
        }
        if !(1..=64).contains(&written.access_bytes) {
            return Err(wrong("access-bytes can be from 1 to 64"));
        }
        let regions: usize = written.domain.iter().map(|one| one.regions.len()).sum();
        for (what, count, most) in [
            ("domains", written.domain.len(), MOST),
            ("shares", written.share.len(), MOST),
            ("gates", written.gate.len(), MOST),
            ("threads", written.thread.len(), MOST),
            ("regions", regions, MOST_REGIONS),
        ] {
            if count > most {
                return Err(wrong(format!(
                    "{count} {what}: at most {most} are modelled"
                )));
            }
        }
        if written.domain.is_empty() || written.thread.is_empty() {
            return Err(wrong(
                "a map has a domain, which is the program, and a thread",
            ));
        }
        let mut numbers = HashMap::new();
        for (domain, number) in written.domain.iter().zip(1..) {
            if numbers.insert(domain.name.clone(), number).is_some() {
                return Err(wrong(format!("two domains are called `{}`", domain.name)));
            }
        }
        Ok(Checker {
            end: (1 << written.address_bits)
                - START_STACK_BYTES * (written.domain.len() as u64 + 1),
            numbers,
            owned: Vec::new(),
        })
    }

    fn check(mut self, written: &Written) -> Result<Map, SymbolMapError> {
        let mut domains = Vec::new();
        for (domain, number) in written.domain.iter().zip(1..) {
            let mut regions = Vec::new();
            for region in &domain.regions {
                let region =
                    self.region(&domain.name, region.start, region.end, region.permission)?;
                if number > 1 {
                    self.owned.push((region.start, region.end, number));
                }
                regions.push(region);
            }
            if number > 1 && regions.is_empty() {
                return Err(wrong(format!("domain `{}` has no regions", domain.name)));
            }
            domains.push(regions);
        }
        self.owned.sort_unstable();
        if let Some(pair) = self.owned.windows(2).find(|pair| pair[1].0 < pair[0].1) {
            return Err(wrong(format!(
                "two regions of domains behind the first overlap at {:#x}",
                pair[1].0
            )));
        }
        let mut shares = Vec::new();
        for share in &written.share {
            let to = self.number(&share.to)?;
            let region = self.region(&share.to, share.start, share.end, share.permission)?;
            let owner = self.owner(region.start, region.end)?;
            if owner == to {
                return Err(wrong(format!(
                    "domain `{}` owns {:#x} itself: name it among its regions",
                    share.to, region.start
                )));
            }
            shares.push(Share { owner, to, region });
        }
        let mut gates = Vec::new();
        for gate in &written.gate {
            let into = self.number(&gate.into)?;
            let function = gate.function;
            if !function.is_multiple_of(WORD) || function.saturating_add(WORD) > self.end {
                return Err(wrong(format!(
                    "the function at {function:#x} does not begin on a word of four bytes below {:#x}: no gate fits \
                     there",
                    self.end
                )));
            }
            if self.owner(function, function + WORD)? != into {
                return Err(wrong(format!(
                    "the function at {function:#x} is not memory of domain `{}`",
                    gate.into
                )));
            }
            if gates.iter().any(|(other, _)| *other == function) {
                return Err(wrong(format!("the gate at {function:#x} is there twice")));
            }
            gates.push((function, into));
        }
        let mut stacks = Vec::new();
        for thread in &written.thread {
            let stack = self.region(
                "a thread",
                thread.start,
                thread.end,
                WrittenPermission::None,
            )?;
            if self.owner(stack.start, stack.end)? != 1 || stack.end - stack.start > MAX_STACK_BYTES
            {
                return Err(wrong(format!(
                    "the stack at {:#x} has at most {MAX_STACK_BYTES} bytes, all of the first domain",
                    stack.start
                )));
            }
            stacks.push((stack.start, stack.end));
        }
        Ok(Map {
            address_bits: written.address_bits,
            access_bytes: written.access_bytes,
            domains,
            shares,
            gates,
            stacks,
        })
    }

    fn number(&self, name: &str) -> Result<u32, SymbolMapError> {
        let found = self.numbers.get(name).copied();
        found.ok_or_else(|| wrong(format!("no domain is called `{name}`")))
    }

    fn region(
        &self,
        whose: &str,
        start: u64,
        end: u64,
        permission: WrittenPermission,
    ) -> Result<Region, SymbolMapError> {
        if start >= end || end > self.end {
            return Err(wrong(format!(
                "{start:#x}..{end:#x} of {whose} is empty, or reaches beyond {:#x}",
                self.end
            )));
        }
        if !start.is_multiple_of(WORD) || !end.is_multiple_of(WORD) {
            return Err(wrong(format!(
                "{start:#x}..{end:#x} of {whose} does not begin and end on words of four bytes"
            )));
        }
        let permission = match permission {
            WrittenPermission::None => Permission::None,
            WrittenPermission::Read => Permission::Read,
            WrittenPermission::ReadWrite => Permission::ReadWrite,
            WrittenPermission::ExecuteRead => Permission::ExecuteRead,
        };
        Ok(Region {
            start,
            end,
            permission,
        })
    }

    /// The one domain that owns all of some bytes.
    fn owner(&self, start: u64, end: u64) -> Result<u32, SymbolMapError> {
        let mut meeting = self
            .owned
            .iter()
            .filter(|(from, to, _)| *from < end && start < *to);
        match meeting.next() {
            None => Ok(1),
            Some((from, to, owner)) if *from <= start && end <= *to => Ok(*owner),
            Some(_) => Err(wrong(format!(
                "{start:#x}..{end:#x} is not all in one region of one domain"
            ))),
        }
    }
}
