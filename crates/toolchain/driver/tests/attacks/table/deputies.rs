//! What the host is asked to do: with memory, functions and blocks that are not the module's.

use super::{Attack, Ends, HOST, Harm, With, fault, row};
use mullion_word_runtime::FaultKind;

pub(super) fn all() -> Vec<Attack> {
    [deputies(), blocks()].into_iter().flatten().collect()
}

/// What the host is asked to do.
fn deputies() -> Vec<Attack> {
    use FaultKind::Policy;
    use Harm::{Changes, Dies, Does, Reads, Unseen};
    let rows: Vec<(&'static str, &'static str, With, &'static str, Harm)> = vec![
        (
            "the host fills its own memory",
            "fills",
            |s| [s.victim(), 8, 0],
            "fill: argument 0",
            Changes,
        ),
        (
            "the host fills more than was lent",
            "fills",
            |s| [s.lent(), 65, 0],
            "fill: argument 0",
            Changes,
        ),
        (
            "the host fills from before what was lent",
            "fills",
            |s| [s.lent() - 1, 8, 0],
            "fill: argument 0",
            Changes,
        ),
        (
            "the host fills a number of bytes that wraps",
            "fills",
            |s| [s.lent(), u64::MAX, 0],
            "fill: argument 0",
            Dies,
        ),
        (
            "the host fills up to the end of all addresses",
            "fills",
            |s| [s.lent(), u64::MAX - s.lent() + 1, 0],
            "fill: argument 0",
            Dies,
        ),
        (
            "the host fills more than the module's data",
            "fills_own",
            |_| [1 << 20, 0, 0],
            "fill: argument 0",
            Dies,
        ),
        (
            "the host fills what is above the module's stack",
            "fills_stack",
            |_| [0, 16 << 20, 0],
            "fill: argument 0",
            Dies,
        ),
        (
            "the host fills the module's code",
            "fills",
            |s| [s.text(), 16, 0],
            "fill: argument 0",
            Unseen,
        ),
        (
            "the host fills the slots",
            "fills",
            |s| [s.slot(), 8, 0],
            "fill: argument 0",
            Unseen,
        ),
        (
            "the host fills the shadow",
            "fills",
            |s| [s.shadow(s.victim()), 2, 0],
            "fill: argument 0",
            Unseen,
        ),
        (
            "the host fills a map",
            "fills",
            |s| [s.map(1), 1, 0],
            "fill: argument 0",
            Unseen,
        ),
        (
            "the host fills the control stack",
            "fills",
            |s| [s.control(), 8, 0],
            "fill: argument 0",
            Unseen,
        ),
        (
            "the host fills another module's data",
            "fills",
            |s| [s.others_data(), 8, 0],
            "fill: argument 0",
            Unseen,
        ),
        (
            "the host fills at null",
            "fills",
            |_| [8, 8, 0],
            "fill: argument 0",
            Dies,
        ),
        (
            "a table whose size overflows",
            "fills_table",
            |s| [s.lent(), 1 << 33, 1 << 33],
            "fill_table: argument 0",
            Unseen,
        ),
        (
            "a table with a row too many",
            "fills_table",
            |s| [s.lent(), 5, 16],
            "fill_table: argument 0",
            Changes,
        ),
        (
            "the host reads a secret",
            "sums",
            |s| [s.victim(), 1, 0],
            "sum: argument 0",
            Unseen,
        ),
        (
            "the host tells how long a secret is",
            "measures",
            |s| [s.victim(), 0, 0],
            "length_of: argument 0",
            Unseen,
        ),
        (
            "the host copies a secret to the module",
            "copies_by_host",
            |s| [s.lent(), s.victim(), 16],
            "copy: argument 1",
            Reads,
        ),
        (
            "the host copies from the module over its own",
            "copies_by_host",
            |s| [s.victim(), s.lent(), 16],
            "copy: argument 0",
            Changes,
        ),
        (
            "the host calls its own function for the module",
            "calls_back",
            |_| [crate::scene::never_offered as *const () as u64, 0, 0],
            "call_back: argument 0",
            Does,
        ),
        (
            "the host calls data for the module",
            "calls_back",
            |s| [s.lent(), 0, 0],
            "call_back: argument 0",
            Dies,
        ),
        (
            "the host calls another module for the module",
            "calls_back",
            |s| [s.others_gate(), 0, 0],
            "call_back: argument 0",
            Unseen,
        ),
        (
            "the host calls behind the module's own gate",
            "calls_back",
            |s| [s.text() + 1, 0, 0],
            "call_back: argument 0",
            Unseen,
        ),
        (
            "the host calls at the fourth byte of a gate",
            "calls_back",
            |s| [s.text() + 4, 0, 0],
            "call_back: argument 0",
            Unseen,
        ),
        (
            "a function that was never offered",
            "not_offered",
            |_| [0, 0, 0],
            "never_offered",
            Does,
        ),
    ];
    let rows = rows.into_iter();
    rows.map(|(name, function, with, object, harm)| {
        row(
            "deputies",
            name,
            function,
            with,
            fault(Policy, object),
            harm,
        )
    })
    .collect()
}

/// Blocks of allocators.
fn blocks() -> Vec<Attack> {
    use FaultKind::{Access, Policy};
    use Harm::{Changes, Dies, Does, Unseen};
    let none: With = |_| [0, 0, 0];
    let rows: Vec<(&'static str, &'static str, With, Ends, Harm)> = vec![
        (
            "memory of the host is freed",
            "frees",
            |s| [s.victim(), 0, 0],
            fault(Policy, "free"),
            Dies,
        ),
        (
            "what was lent is freed",
            "frees",
            |s| [s.lent(), 0, 0],
            fault(Policy, "free"),
            Dies,
        ),
        (
            "the middle of a block is freed",
            "frees_middle",
            |_| [16, 0, 0],
            fault(Policy, "free"),
            Dies,
        ),
        (
            "a block is freed twice",
            "frees_twice",
            none,
            fault(Policy, "free"),
            Dies,
        ),
        (
            "the module's data is freed",
            "frees_own",
            none,
            fault(Policy, "free"),
            Dies,
        ),
        (
            "the module's stack is freed",
            "frees_stack",
            none,
            fault(Policy, "free"),
            Dies,
        ),
        (
            "another allocator's block is freed",
            "frees_foreign",
            none,
            fault(Policy, "another allocator"),
            Dies,
        ),
        (
            "a block is given to another allocator",
            "drops_foreign",
            none,
            fault(Policy, "another allocator"),
            Does,
        ),
        (
            "a block goes back to its pool twice",
            "drops_twice",
            none,
            fault(Policy, "pool_drop"),
            Does,
        ),
        (
            "memory of the host is resized",
            "resizes_foreign",
            |s| [s.victim(), 0, 0],
            fault(Policy, "realloc"),
            Dies,
        ),
        (
            "a block that was moved is freed",
            "resizes_twice",
            none,
            fault(Policy, "free"),
            Unseen,
        ),
        (
            "a freed block is written",
            "writes_freed",
            none,
            fault(Access, HOST),
            Does,
        ),
        (
            "a freed block is read",
            "reads_freed",
            none,
            fault(Access, HOST),
            Does,
        ),
        (
            "a block that was moved is written",
            "writes_moved",
            none,
            fault(Access, HOST),
            Does,
        ),
        (
            "a byte behind a block",
            "writes_beyond_a_block",
            |_| [64, 0, 0],
            fault(Access, HOST),
            Does,
        ),
        (
            "the allocator's words in front of a block",
            "writes_below_a_block",
            none,
            fault(Access, HOST),
            Does,
        ),
        (
            "an array whose size overflows",
            "wants_too_many",
            none,
            Ends::Answers(0),
            Unseen,
        ),
        (
            "more memory than its limit",
            "wants_too_much",
            |_| [2 << 20, 0, 0],
            Ends::Answers(0),
            Does,
        ),
        (
            "all memory there is",
            "wants_too_much",
            |_| [u64::MAX, 0, 0],
            Ends::Answers(0),
            Unseen,
        ),
        (
            "memory of the host is handed over",
            "hands_over",
            |s| [s.victim(), 16, 0],
            fault(Policy, "keep"),
            Does,
        ),
        (
            "the module's data is handed over",
            "hands_over_own",
            none,
            fault(Policy, "own memory"),
            Does,
        ),
        (
            "a part of a block is handed over",
            "hands_over_a_part",
            none,
            fault(Policy, "one whole block"),
            Does,
        ),
        (
            "more than a block is handed over",
            "hands_over_too_much",
            none,
            fault(Policy, "keep"),
            Does,
        ),
        (
            "what was handed over is written",
            "writes_handed_over",
            none,
            fault(Access, HOST),
            Does,
        ),
        (
            "what was handed over is freed",
            "frees_handed_over",
            none,
            fault(Policy, "free"),
            Does,
        ),
    ];
    let _ = Changes;
    let rows = rows.into_iter();
    rows.map(|(name, function, with, ends, harm)| row("deputies", name, function, with, ends, harm))
        .collect()
}
