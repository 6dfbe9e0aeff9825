//! A module's own heap: whatever becomes of it, the module gets no more than it has.

use super::{Attack, Ends, Harm, fault, row};
use crate::scene::Scene;
use mullion_word_runtime::FaultKind::{Access, Policy};

type Row = (&'static str, &'static str, fn(&Scene<'_>) -> [u64; 3], Ends);

/// glibc's heap has other checks of its own, so these are not run without a wall.
pub(super) fn all() -> Vec<Attack> {
    let rows: [Row; 9] = [
        (
            "a list of free blocks leads to memory of the host",
            "forges_a_block",
            |s| [s.victim(), 0, 0],
            fault(Access, "memory of the host"),
        ),
        (
            "a list of free blocks leads to the module's code",
            "forges_code",
            |_| [0, 0, 0],
            fault(Access, "the module's own"),
        ),
        (
            "a span's blocks lie in memory of the host",
            "forges_a_span",
            |s| [s.victim(), 0, 0],
            fault(Access, "memory of the host"),
        ),
        (
            "memory of the host is freed, by a heap of its own",
            "frees",
            |s| [s.victim(), 0, 0],
            fault(Policy, "free"),
        ),
        (
            "what was lent is freed, by a heap of its own",
            "frees",
            |s| [s.lent(), 0, 0],
            fault(Policy, "free"),
        ),
        (
            "memory of the host is resized, by a heap of its own",
            "resizes",
            |s| [s.victim(), 0, 0],
            fault(Policy, "realloc"),
        ),
        (
            "a block of its own heap is handed over",
            "hands_over",
            |_| [0, 0, 0],
            fault(Policy, "keep"),
        ),
        (
            "a block of its own heap is given to an allocator",
            "drops",
            |_| [0, 0, 0],
            fault(Policy, "pool_drop"),
        ),
        (
            "more than its limit, in small blocks of its own heap",
            "hoards",
            |_| [1 << 20, 0, 0],
            Ends::Answers(1),
        ),
    ];
    let rows = rows.into_iter();
    rows.map(|(name, function, with, ends)| row("heap", name, function, with, ends, Harm::Unseen))
        .collect()
}
