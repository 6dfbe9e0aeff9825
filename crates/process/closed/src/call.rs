//! Rows of the tables, and the filter that Linux gets of them.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

/// A call that is let through.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Its number on x86-64.
    pub number: i64,
    /// As Linux has it.
    pub name: &'static str,
    /// What must be true of its arguments; all of it.
    pub when: &'static [When],
    /// What the process needs it for.
    pub wanted: &'static str,
    /// Why nothing else than the process's own is reached.
    pub reach: &'static str,
}

/// What must be true of an argument, by its place from 0. Linux takes 32 bits of these, but for [`When::Zero`].
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// It is one of these.
    Is(u8, &'static [u32]),
    /// It is what the first says, in the bits of the second.
    Bits(u8, u32, u32),
    /// It has none but these bits.
    Within(u8, u32),
    /// It is this, or less.
    UpTo(u8, u32),
    /// It is 0 in all of its 64 bits.
    Zero(u8),
    /// It is the control socket.
    Control(u8),
    /// It is a descriptor beyond the control socket's: of memory.
    Memory(u8),
    /// It is the process itself.
    Own(u8),
}

/// What conditions mean in one process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Here {
    /// A process without a control socket has [`NO_SOCKET`].
    pub(crate) control: u32,
    pub(crate) process: u32,
}

/// No descriptor has this number, and none is beyond it.
pub(crate) const NO_SOCKET: u32 = u32::MAX;

/// Memory that is read and written, and never run.
pub(crate) const RIGHTS: u32 = (libc::PROT_READ | libc::PROT_WRITE) as u32;

pub(crate) const fn call(
    number: i64,
    name: &'static str,
    when: &'static [When],
    wanted: &'static str,
    reach: &'static str,
) -> Call {
    Call {
        number,
        name,
        when,
        wanted,
        reach,
    }
}

/// The filter of a table, which does `otherwise` with everything that has no row.
pub(crate) fn filter(
    table: &[Call],
    here: Here,
    otherwise: SeccompAction,
) -> Result<BpfProgram, BackendError> {
    let mut rules = BTreeMap::<i64, Vec<SeccompRule>>::new();
    for call in table {
        // A call without a condition has no rule, and another row of it could not add one.
        let known = rules.entry(call.number).or_default();
        known.extend(alternatives(call, here)?);
    }
    SeccompFilter::new(rules, otherwise, SeccompAction::Allow, TargetArch::x86_64)?.try_into()
}

/// One rule for each way to fulfil the conditions: a rule cannot say "one of".
fn alternatives(call: &Call, here: Here) -> Result<Vec<SeccompRule>, BackendError> {
    let mut ways: Vec<Vec<SeccompCondition>> = vec![Vec::new()];
    for when in call.when {
        let choices = when.conditions(here)?;
        let longer = |way: &Vec<SeccompCondition>| {
            let way = way.clone();
            choices
                .iter()
                .map(move |one| [way.clone(), vec![one.clone()]].concat())
                .collect::<Vec<_>>()
        };
        ways = ways.iter().flat_map(longer).collect();
    }
    ways.into_iter()
        .filter(|way| !way.is_empty())
        .map(SeccompRule::new)
        .collect()
}

impl When {
    /// Any of these.
    fn conditions(self, here: Here) -> Result<Vec<SeccompCondition>, BackendError> {
        use SeccompCmpArgLen::{Dword, Qword};
        use SeccompCmpOp::{Eq, Gt, Le, MaskedEq};
        let one = |place, length, operation, value| {
            Ok(vec![SeccompCondition::new(
                place, length, operation, value,
            )?])
        };
        match self {
            When::Is(place, values) => values
                .iter()
                .map(|value| SeccompCondition::new(place, Dword, Eq, (*value).into()))
                .collect(),
            When::Bits(place, value, of) => one(place, Dword, MaskedEq(of.into()), value.into()),
            When::Within(place, bits) => one(place, Dword, MaskedEq((!bits).into()), 0),
            When::UpTo(place, most) => one(place, Dword, Le, most.into()),
            When::Zero(place) => one(place, Qword, Eq, 0),
            When::Control(place) => one(place, Dword, Eq, here.control.into()),
            When::Memory(place) => one(place, Dword, Gt, here.control.into()),
            When::Own(place) => one(place, Dword, Eq, here.process.into()),
        }
    }
}
