//! What is kept between calls (`keep.rs`), in every order of steps that the memory of x86 allows: a thread that calls with other
//! arguments than before, while another one enters. And the lock of `biased.rs`, and loans (`lent.rs`).

#[path = "../../table/tests/x86/mod.rs"]
mod x86;

use x86::Step::{self, Barrier, Jump, JumpIf, Label, Read, Write};
use x86::{Place, place_of, reaches};

/// 1: the owner's.
const BIAS: Place = 0;
/// 1: something may be kept.
const OWNER: Place = 1;
/// Of the owner's seat.
const DEPTH: Place = 2;
const SETTLED: Place = 3;
/// What is in force: [`OLD`] of the call before, or [`NEW`] of the call that runs.
const RIGHT: Place = 4;
const TURN: Place = 5;
/// Of the lock: the owner is in.
const BUSY: Place = 6;
/// 1: something is lent.
const LOAN: Place = 7;

const NONE: u8 = 0;
/// As it is at first.
const OLD: u8 = 1;
const NEW: u8 = 2;

const LOCK: Step = Step::Lock(TURN);
const UNLOCK: Step = Step::Unlock(TURN);

/// The thread with the bias: `gates.s`, `shift`, and `Keep::grant` and `Keep::leave` if it has lost the bias.
const CALLER: &[Step] = &[
    Write(DEPTH, 1),
    Read(BIAS),
    JumpIf(0, "slowly"),
    Write(RIGHT, NEW),
    Write(SETTLED, 1),
    Write(SETTLED, 0),
    Write(DEPTH, 0),
    Read(BIAS),
    JumpIf(1, "end"),
    LOCK,
    Read(OWNER),
    JumpIf(0, "taken"),
    Write(RIGHT, NONE),
    Write(OWNER, 0),
    Label("taken"),
    UNLOCK,
    Jump("end"),
    Label("slowly"),
    Write(DEPTH, 0),
    Write(DEPTH, 1),
    LOCK,
    Read(OWNER),
    JumpIf(0, "taken slowly"),
    Write(RIGHT, NONE),
    Write(OWNER, 0),
    Label("taken slowly"),
    UNLOCK,
    // What it is granted now is raised and lowered by itself.
    Write(RIGHT, NEW),
    Write(SETTLED, 1),
    Write(RIGHT, NONE),
    Write(SETTLED, 0),
    Write(DEPTH, 0),
    Label("end"),
];

/// The other one: `Keep::settle_for`, and then code of the domain.
fn other(looks_at_settled: bool, has_barrier: bool) -> Vec<Step> {
    let mut steps = vec![Write(BIAS, 0)];
    if has_barrier {
        steps.push(Barrier);
    }
    steps.extend([Label("again"), LOCK, Read(OWNER), JumpIf(0, "done")]);
    steps.extend([Read(DEPTH), JumpIf(0, "outside")]);
    if looks_at_settled {
        steps.extend([Read(SETTLED), JumpIf(0, "not yet")]);
    }
    steps.extend([Jump("done"), Label("not yet"), UNLOCK, Jump("again")]);
    steps.extend([Label("outside"), Write(RIGHT, NONE), Write(OWNER, 0)]);
    steps.extend([Label("done"), UNLOCK, Label("runs")]);
    steps
}

/// Whether code of the domain runs on the other thread with a right that no call has; and how many states there are.
fn is_stale(looks_at_settled: bool, has_barrier: bool) -> (bool, usize) {
    let other = other(looks_at_settled, has_barrier);
    let (end, runs) = (place_of(CALLER, "end"), place_of(&other, "runs"));
    let mut has_run = false;
    let found = reaches([CALLER, &other], &[BIAS, OWNER, RIGHT], [0, 0], |state| {
        if state.runners[1].at < runs {
            return false;
        }
        let is_over = state.runners[0].at >= end && state.runners[0].buffer.is_empty();
        has_run |= is_over;
        match state.read(1, RIGHT) {
            OLD => true,
            right => right == NEW && is_over,
        }
    });
    assert!(found.0 || has_run, "both come to their ends");
    found
}

/// The thread whose call does not repeat the one before it: `Keep::grant`. It may lose the bias behind its first look.
fn slow_caller(looks_again: bool) -> Vec<Step> {
    let take_back = |label| {
        [
            LOCK,
            Read(OWNER),
            JumpIf(0, label),
            Write(RIGHT, NONE),
            Write(OWNER, 0),
            Label(label),
            UNLOCK,
        ]
    };
    let mut steps = vec![Write(DEPTH, 1), Read(BIAS), JumpIf(1, "first look")];
    steps.extend(take_back("taken first"));
    steps.extend([Label("first look"), Read(BIAS), JumpIf(1, "mine")]);
    if looks_again {
        steps.extend(take_back("taken again"));
    }
    // What it is granted is raised by itself, and is not in this model.
    steps.extend([Jump("granted"), Label("mine"), Write(RIGHT, NEW)]);
    steps.extend([Label("granted"), Write(SETTLED, 1), Label("runs")]);
    steps.extend([Write(SETTLED, 0), Write(DEPTH, 0), Read(BIAS)]);
    steps.push(JumpIf(1, "end"));
    steps.extend(take_back("taken last"));
    steps.push(Label("end"));
    steps
}

/// Whether a call that does not repeat the one before it runs with what that one was granted.
fn runs_with_the_old(looks_again: bool) -> bool {
    let (caller, other) = (slow_caller(looks_again), other(true, true));
    let runs = place_of(&caller, "runs");
    let found = reaches([&caller, &other], &[BIAS, OWNER, RIGHT], [0, 0], |state| {
        state.runners[0].at == runs && state.read(0, RIGHT) == OLD
    });
    found.0
}

#[test]
fn a_call_that_loses_the_bias_meanwhile_has_nothing_of_the_one_before() {
    assert!(!runs_with_the_old(true));
    assert!(runs_with_the_old(false), "without the second look it has");
}

/// Whether both threads can have the lock at a time.
fn both_are_in(has_barrier: bool) -> bool {
    let owner = [
        Write(BUSY, 1),
        Read(BIAS),
        JumpIf(0, "no bias"),
        Label("in"),
        Label("no bias"),
        Write(BUSY, 0),
    ];
    let mut other = vec![LOCK, Write(BIAS, 0)];
    if has_barrier {
        other.push(Barrier);
    }
    other.extend([Label("again"), Read(BUSY), JumpIf(1, "again"), Label("in")]);
    let places = [place_of(&owner, "in"), place_of(&other, "in")];
    let both = reaches([&owner, &other], &[BIAS], [0, 0], |state| {
        let at = [0, 1].map(|who| state.runners[who].at);
        at[0] == places[0] && at[1] >= places[1]
    });
    both.0
}

#[test]
fn nobody_runs_with_what_the_call_before_was_granted() {
    let (is_stale, states) = is_stale(true, true);
    assert!(!is_stale);
    assert!(states > 100, "{states}");
}

#[test]
fn without_the_look_at_what_is_settled_somebody_does() {
    assert!(is_stale(false, true).0);
}

#[test]
fn without_the_barrier_somebody_does() {
    assert!(is_stale(true, false).0);
}

#[test]
fn the_lock_is_one_threads_at_a_time() {
    assert!(!both_are_in(true));
    assert!(both_are_in(false), "without the barrier it is not");
}

/// Whether the host can work on a block that another thread has freed. `Loans::lend` with the look at the right, and `free`.
fn is_freed_while_lent(has_barrier: bool) -> bool {
    let lender = [
        Write(LOAN, 1),
        Read(RIGHT),
        JumpIf(0, "end"),
        Label("works"),
        Write(LOAN, 0),
        Label("end"),
    ];
    let mut freer = vec![Write(RIGHT, 0)];
    if has_barrier {
        freer.push(Barrier);
    }
    freer.extend([Read(LOAN), JumpIf(1, "refused"), Label("freed")]);
    freer.extend([Jump("end"), Label("refused"), Label("end")]);
    let (works, freed) = (place_of(&lender, "works"), place_of(&freer, "freed"));
    let both = reaches([&lender, &freer], &[RIGHT], [0, 0], |state| {
        state.runners[0].at == works && state.runners[1].at == freed
    });
    both.0
}

#[test]
fn nothing_is_freed_while_it_is_lent() {
    assert!(!is_freed_while_lent(true));
    assert!(is_freed_while_lent(false), "without the barrier it is");
}
