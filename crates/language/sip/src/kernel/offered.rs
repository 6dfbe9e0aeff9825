//! What a host offers to code that knows no types: contracts by digest, programs by name, both then by number.

use std::sync::{Mutex, MutexGuard};

use crate::host::Host;
use crate::inner::CORE;
use crate::process::Program;
use mullion_sip_exchange::__private::Visitor;
use mullion_sip_exchange::channel::{AnyEndpoint, Info};
use mullion_sip_exchange::exchange::Handles;

/// What a process gets that is made by number.
#[derive(Debug, Default)]
pub struct Argument {
    /// Whatever the parent has to say.
    pub number: u64,
    /// A channel to whom the parent wants.
    pub end: Option<AnyEndpoint>,
}

// SAFETY: its end is all that it holds.
unsafe impl Handles for Argument {
    const HOLDS: bool = true;
    fn visit<V: Visitor + ?Sized>(&self, visitor: &mut V) {
        self.end.visit(visitor);
    }
}

/// By number.
pub(crate) struct Offered {
    contracts: Vec<&'static Info>,
    programs: Vec<Program<Argument>>,
}

impl Offered {
    const fn new() -> Offered {
        Offered {
            contracts: Vec::new(),
            programs: Vec::new(),
        }
    }
}

mullion_sip_core::__state!(Mutex<Offered> = Mutex::new(Offered::new()));

fn offered() -> MutexGuard<'static, Offered> {
    state()
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Host {
    /// Lets code that knows no types make, bind and open channels of a contract. Offering it again changes nothing.
    pub fn offer_contract(&self, contract: &'static Info) {
        let mut offered = offered();
        let known = |known: &&Info| known.digest == contract.digest;
        if !offered.contracts.iter().any(known) {
            offered.contracts.push(contract);
        }
    }

    /// Lets code that knows no types make processes of a program, by the program's name; of two with one name the
    /// first.
    pub fn offer_program(&self, program: Program<Argument>) {
        offered().programs.push(program);
    }
}

pub(super) fn contract_of(digest: [u8; 32]) -> Option<u32> {
    let _host = CORE.as_host();
    let of = |contract: &&Info| contract.digest.0 == digest;
    offered().contracts.iter().position(of).map(number)
}

pub(super) fn contract(number: u32) -> Option<&'static Info> {
    let _host = CORE.as_host();
    offered().contracts.get(index(number)?).copied()
}

pub(super) fn program_of(name: &str) -> Option<u32> {
    let _host = CORE.as_host();
    let of = |program: &Program<Argument>| program.name() == name;
    offered().programs.iter().position(of).map(number)
}

pub(super) fn program(number: u32) -> Option<Program<Argument>> {
    let _host = CORE.as_host();
    offered().programs.get(index(number)?).copied()
}

/// From 1 on, so that who has asked nobody has none.
fn number(index: usize) -> u32 {
    index as u32 + 1
}

fn index(number: u32) -> Option<usize> {
    Some(number.checked_sub(1)? as usize)
}
