//! The two pictures at the head of `inside.rs`, in every order of steps that the memory of x86 allows.

mod x86;

use x86::Step::{self, Barrier, Fence, Jump, JumpIf, Label, Read, When, Write};
use x86::{Now, Place, Runner, State, reaches};

/// 1: the word may be written.
const SHADOW: Place = 0;
/// 1: the other thread is registered.
const CROWD: Place = 1;
/// Of the thread's visit: odd inside.
const COUNT: Place = 2;
/// 1: the access has been made.
const OBJECT: Place = 3;

const REVOKER: usize = 0;
const THREAD: usize = 1;

/// The barriers that are there.
#[derive(Clone, Copy)]
struct Barriers {
    visit: bool,
    settle: bool,
}

/// The thread's steps that are between its check and its access.
const CHECKED: std::ops::Range<usize> = 4..6;

/// Until the count is another one than was read, or the thread is not between its check and its access.
fn ask_to_pass(state: &State, revoker: &Runner) -> Now {
    let has_left = state.read(REVOKER, COUNT) != revoker.read;
    match (has_left, CHECKED.contains(&state.runners[THREAD].at)) {
        (true, _) => Now::GoOn,
        (false, false) => Now::Signal(THREAD),
        (false, true) => Now::Wait,
    }
}

/// Whether an access can come to memory behind the end of the call that took the right away.
fn is_late(barriers: Barriers, is_registered: bool) -> bool {
    let barrier = |is_there| match is_there {
        true => Barrier,
        false => Fence,
    };
    // `Inside::settle`, behind the write of the table.
    let revoker = [
        Write(SHADOW, 0),
        Read(CROWD),
        JumpIf(0, "end"),
        barrier(barriers.settle),
        Read(COUNT),
        JumpIf(0, "end"),
        JumpIf(2, "end"),
        When(ask_to_pass),
        Label("end"),
    ];
    // `Inside::visit`, a gate in, a check with its access, and the gate out.
    let thread: [Step; 8] = [
        Write(CROWD, 1),
        barrier(barriers.visit),
        Write(COUNT, 1),
        Read(SHADOW),
        JumpIf(0, "end"),
        Write(OBJECT, 1),
        Write(COUNT, 2),
        Label("end"),
    ];
    let (ones, begin): (&[Place], _) = match is_registered {
        true => (&[SHADOW, CROWD], [0, 2]),
        false => (&[SHADOW], [0, 0]),
    };
    let found = reaches([&revoker, &thread], ones, begin, |state| {
        let mut waits = state.runners[THREAD].buffer.iter();
        state.runners[REVOKER].at == revoker.len() && waits.any(|(place, _)| *place == OBJECT)
    });
    found.0
}

#[test]
fn no_access_comes_behind_a_revocation_in_any_order() {
    let both = Barriers {
        visit: true,
        settle: true,
    };
    assert!(!is_late(both, false), "a thread that registers meanwhile");
    assert!(!is_late(both, true), "a thread that is registered");
}

#[test]
fn without_the_barrier_of_a_thread_that_registers_one_comes() {
    let without = Barriers {
        visit: false,
        settle: true,
    };
    assert!(is_late(without, false));
}

#[test]
fn without_the_barrier_of_the_revocation_one_comes() {
    let without = Barriers {
        visit: true,
        settle: false,
    };
    assert!(is_late(without, true));
}

/// The thread asks its host.
const ASKS: Place = 4;
/// It has lost something meanwhile.
const LOST: Place = 5;

/// What is there of a thread's way to ask its host, and of the way of who takes the right away.
#[derive(Clone, Copy, PartialEq)]
struct Asking {
    /// The thread has a full barrier when it has asked.
    fence: bool,
    /// The other one has a full barrier behind telling the thread.
    told: bool,
    /// The other one looks at the count again when it has told the thread.
    again: bool,
}

/// The thread's steps that are between its check and its access. A handler finds it at its trap, or in another handler.
const PENDING: std::ops::Range<usize> = 1..13;

/// Until the count is even, or the thread is not between its check and its access.
fn ask_to_pass_or_to_ask(state: &State, _: &Runner) -> Now {
    let is_outside = matches!(state.read(REVOKER, COUNT), 2 | 4);
    match (is_outside, PENDING.contains(&state.runners[THREAD].at)) {
        (true, _) => Now::Jump("again"),
        (false, false) => Now::Signal(THREAD),
        (false, true) => Now::Wait,
    }
}

/// Whether an access of a thread that has asked its host can come to memory behind the end of the call that took the right away.
fn is_late_behind_a_question(asking: Asking) -> bool {
    let fence = |is_there| match is_there {
        true => Fence,
        false => Label("no fence"),
    };
    // `Inside::wait_for` and `Record::is_outside`. The count goes 1, 2 (asks), 3, 4.
    let revoker = [
        Write(SHADOW, 0),
        Barrier,
        Label("again"),
        Read(COUNT),
        JumpIf(0, "end"),
        JumpIf(2, "asks"),
        JumpIf(4, "end"),
        When(ask_to_pass_or_to_ask),
        Jump("end"),
        Label("asks"),
        Read(ASKS),
        JumpIf(0, "told"),
        Write(LOST, 1),
        fence(asking.told),
        Label("told"),
        match asking.again {
            true => Read(COUNT),
            false => Jump("end"),
        },
        JumpIf(2, "end"),
        Jump("again"),
        Label("end"),
    ];
    let thread: [Step; 15] = [
        // Inside: the check.
        Read(SHADOW),
        JumpIf(0, "end"),
        Label("checked"),
        // Another check is refused: `asks`, and the host's hook.
        Write(LOST, 0),
        Write(ASKS, 1),
        Write(COUNT, 2),
        Label("hook"),
        // Back: `has_lost`.
        Write(COUNT, 3),
        fence(asking.fence),
        Write(ASKS, 0),
        Read(LOST),
        JumpIf(1, "end"),
        Write(OBJECT, 1),
        Write(COUNT, 4),
        Label("end"),
    ];
    let found = reaches(
        [&revoker, &thread],
        &[SHADOW, CROWD, COUNT],
        [0, 0],
        |state| {
            let mut waits = state.runners[THREAD].buffer.iter();
            state.runners[REVOKER].at == revoker.len() && waits.any(|(place, _)| *place == OBJECT)
        },
    );
    found.0
}

#[test]
fn no_access_comes_behind_a_revocation_while_a_thread_asks_its_host() {
    let all = Asking {
        fence: true,
        told: true,
        again: true,
    };
    assert!(!is_late_behind_a_question(all));
    for without in [
        Asking {
            fence: false,
            ..all
        },
        Asking { told: false, ..all },
        Asking {
            again: false,
            ..all
        },
    ] {
        assert!(is_late_behind_a_question(without));
    }
}
