//! Where control may go, and how calls end.

use super::{Attack, Ends, HOST, Harm, With, fault, row};
use crate::scene::hurried;
use mullion_word_runtime::FaultKind;

pub(super) fn all() -> Vec<Attack> {
    [targets(), ends_of_calls()].into_iter().flatten().collect()
}

/// Pointers that are no functions, or nobody's business.
fn targets() -> Vec<Attack> {
    use FaultKind::{Call, Label, NoMapping};
    use Harm::{Dies, Does, Unseen};
    let secret: fn() -> u64 = || crate::scene::never_offered as *const () as u64;
    let _ = secret;
    let rows: Vec<(&'static str, &'static str, With, Ends, Harm)> = vec![
        (
            "a function of the host that is not offered",
            "calls",
            |_| [crate::scene::never_offered as *const () as u64, 0, 0],
            fault(Call, ""),
            Does,
        ),
        (
            "the same as the last thing",
            "jumps",
            |_| [crate::scene::never_offered as *const () as u64, 0, 0],
            fault(Call, ""),
            Does,
        ),
        (
            "a function of the C library",
            "calls",
            |_| [libc::getpid as *const () as u64, 0, 0],
            fault(Call, ""),
            Does,
        ),
        (
            "the middle of a function that is offered",
            "calls",
            |_| [crate::scene::fill as *const () as u64 + 1, 0, 0],
            fault(Call, ""),
            Unseen,
        ),
        (
            "a null pointer is called",
            "calls",
            |_| [0, 0, 0],
            fault(Call, ""),
            Dies,
        ),
        (
            "a low address is called",
            "calls",
            |_| [16, 0, 0],
            fault(Call, ""),
            Dies,
        ),
        (
            "an address that is not canonical is called",
            "calls",
            |_| [1 << 62, 0, 0],
            fault(NoMapping, ""),
            Dies,
        ),
        (
            "the kernel is called",
            "calls",
            |_| [0xffff_8000_0000_0000, 0, 0],
            fault(NoMapping, ""),
            Dies,
        ),
        (
            "data of the host is called",
            "calls",
            |s| [s.victim(), 0, 0],
            fault(Call, ""),
            Dies,
        ),
        (
            "its own data is called",
            "calls_data",
            |s| [0, s.victim(), 0],
            fault(Call, ""),
            Dies,
        ),
        (
            "a forged gate",
            "forges_a_gate",
            |_| [0, 0, 0],
            fault(Call, ""),
            Dies,
        ),
        (
            "behind its own gate's first byte",
            "calls_own_middle",
            |_| [4, 0, 0],
            fault(Call, ""),
            Unseen,
        ),
        (
            "its own body without the gate",
            "calls_own_middle",
            |_| [32, 0, 0],
            fault(Call, ""),
            Unseen,
        ),
        (
            "the code behind a slot is called",
            "calls",
            |s| [s.thunk(), 0, 0],
            fault(Call, ""),
            Unseen,
        ),
        (
            "another module's gate",
            "calls",
            |s| [s.others_gate(), 0, 0],
            fault(Call, ""),
            Unseen,
        ),
        (
            "the body behind another module's gate",
            "calls",
            |s| [s.others_body(), 0, 0],
            fault(Call, ""),
            Unseen,
        ),
        (
            "the second byte of another module's gate",
            "calls",
            |s| [s.others_gate() + 1, 0, 0],
            fault(Call, ""),
            Unseen,
        ),
        (
            "the jump of another module's gate",
            "calls",
            |s| [s.others_gate() + 11, 0, 0],
            fault(Call, ""),
            Unseen,
        ),
        (
            "a jump to its own code without a label",
            "goes_to",
            |s| [s.text() + 64, 3, 0],
            fault(Label, ""),
            Unseen,
        ),
        (
            "a jump to another module's code",
            "goes_to",
            |s| [s.others_body(), 3, 0],
            fault(Call, ""),
            Unseen,
        ),
        (
            "a jump to the host",
            "goes_to",
            |_| [crate::scene::never_offered as *const () as u64, 3, 0],
            fault(Call, ""),
            Does,
        ),
        (
            "a jump to null",
            "goes_to",
            |_| [0, 3, 0],
            fault(Call, ""),
            Dies,
        ),
        (
            "a return address that was overwritten",
            "smashes",
            |s| [5, s.victim(), 0],
            Ends::Answers(1),
            Dies,
        ),
    ];
    let rows = rows.into_iter();
    rows.map(|(name, function, with, ends, harm)| {
        let name = if name == "another module's gate" {
            "another module's gate is called"
        } else {
            name
        };
        row("control", name, function, with, ends, harm)
    })
    .collect()
}

/// Traps, stacks and time.
fn ends_of_calls() -> Vec<Attack> {
    use FaultKind::{Abort, Arithmetic, DataStack, Time, Trap};
    use Harm::{Dies, Unseen};
    let none: With = |_| [0, 0, 0];
    let rows: Vec<(&'static str, &'static str, With, Ends, Harm)> = vec![
        (
            "a division by zero",
            "divides",
            |_| [1, 0, 0],
            fault(Arithmetic, ""),
            Dies,
        ),
        (
            "a division that overflows",
            "divides",
            |_| [1 << 63, u64::MAX, 0],
            fault(Arithmetic, ""),
            Dies,
        ),
        ("an abort", "aborts", none, fault(Abort, ""), Dies),
        (
            "a trap for a debugger",
            "traps",
            none,
            fault(Trap, ""),
            Dies,
        ),
        (
            "a recursion through its own gate",
            "recurses_in_circles",
            none,
            fault(DataStack, ""),
            Dies,
        ),
        (
            "a local array of 7 MiB",
            "takes_room",
            |_| [7 << 20, 0, 0],
            fault(FaultKind::Access, HOST),
            Unseen,
        ),
        (
            "a local array of 1 GiB",
            "takes_room",
            |_| [1 << 30, 0, 0],
            Ends::Answers(1),
            Dies,
        ),
    ];
    let mut all: Vec<Attack> = rows
        .into_iter()
        .map(|(name, function, with, ends, harm)| row("control", name, function, with, ends, harm))
        .collect();
    let endless = row(
        "control",
        "a loop without an end",
        "loops",
        none,
        fault(Time, ""),
        Unseen,
    );
    all.push(Attack {
        policy: hurried,
        ..endless
    });
    all
}
