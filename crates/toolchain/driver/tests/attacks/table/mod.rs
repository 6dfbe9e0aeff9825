//! What each attack is given, and how it ends.

mod accesses;
mod control;
mod deputies;
mod heap;

use crate::scene::{Scene, policy};
use mullion_word_runtime::{FaultKind, Policy};

/// How a call ends behind the wall.
pub enum Ends {
    /// By a fault of this kind, about this object.
    Fault(FaultKind, &'static str),
    /// With this value, and no harm.
    Answers(u64),
}

/// What it does without a wall.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Harm {
    /// Memory of the host is changed.
    Changes,
    /// The answer has a secret in it.
    Reads,
    /// It succeeds in what it must not do.
    Does,
    /// The process dies.
    Dies,
    /// It cannot be shown cheaply, or needs the wall to be an attack.
    Unseen,
}

pub struct Attack {
    pub name: &'static str,
    pub file: &'static str,
    pub function: &'static str,
    pub with: fn(&Scene<'_>) -> [u64; 3],
    pub policy: fn() -> Policy,
    pub ends: Ends,
    pub harm: Harm,
}

type With = fn(&Scene<'_>) -> [u64; 3];

const HOST: &str = "memory of the host";

const fn row(
    file: &'static str,
    name: &'static str,
    function: &'static str,
    with: With,
    ends: Ends,
    harm: Harm,
) -> Attack {
    Attack {
        name,
        file,
        function,
        with,
        policy,
        ends,
        harm,
    }
}

const fn fault(kind: FaultKind, object: &'static str) -> Ends {
    Ends::Fault(kind, object)
}

pub fn attacks() -> Vec<Attack> {
    let all = [
        accesses::all(),
        control::all(),
        deputies::all(),
        heap::all(),
    ];
    all.into_iter().flatten().collect()
}
