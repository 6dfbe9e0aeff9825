//! What is kept between calls (`keep.rs`), in every order of steps that the memory of x86 allows: a thread that calls with other
//! arguments than before, while another one enters. And the lock of `biased.rs`. Both are models: the code's own steps, written down again.
//!
//! A thread's writes wait in its buffer, and come to memory one by one, at any time. A thread reads its own writes at once.
//! `membarrier` empties the buffers of both threads, a lock that of the thread that takes it.

use std::collections::HashSet;

/// What memory has.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    /// 1: the owner's.
    Bias,
    /// 1: something may be kept.
    Owner,
    /// Of the owner's seat.
    Depth,
    Settled,
    /// What is in force: [`OLD`] of the call before, or [`NEW`] of the call that runs.
    Right,
    Turn,
    /// Of the lock: the owner is in.
    Busy,
}

const NONE: u8 = 0;
/// As it is at first.
const OLD: u8 = 1;
const NEW: u8 = 2;

#[derive(Clone, Copy)]
enum Step {
    Write(Place, u8),
    Read(Place),
    /// If what was read last is this.
    JumpIf(u8, &'static str),
    Jump(&'static str),
    Label(&'static str),
    /// `membarrier`.
    Barrier,
    Lock,
    Unlock,
}

use Place::{Bias, Busy, Depth, Owner, Right, Settled, Turn};
use Step::{Barrier, Jump, JumpIf, Label, Lock, Read, Unlock, Write};

/// The thread with the bias: `gates.s`, `shift`, and `Keep::grant` and `Keep::leave` if it has lost the bias.
const CALLER: &[Step] = &[
    Write(Depth, 1),
    Read(Bias),
    JumpIf(0, "slowly"),
    Write(Right, NEW),
    Write(Settled, 1),
    Write(Settled, 0),
    Write(Depth, 0),
    Read(Bias),
    JumpIf(1, "end"),
    Lock,
    Read(Owner),
    JumpIf(0, "taken"),
    Write(Right, NONE),
    Write(Owner, 0),
    Label("taken"),
    Unlock,
    Jump("end"),
    Label("slowly"),
    Write(Depth, 0),
    Write(Depth, 1),
    Lock,
    Read(Owner),
    JumpIf(0, "taken slowly"),
    Write(Right, NONE),
    Write(Owner, 0),
    Label("taken slowly"),
    Unlock,
    // What it is granted now is raised and lowered by itself.
    Write(Right, NEW),
    Write(Settled, 1),
    Write(Right, NONE),
    Write(Settled, 0),
    Write(Depth, 0),
    Label("end"),
];

/// The other one: `Keep::settle_for`, and then code of the domain.
fn other(looks_at_settled: bool, has_barrier: bool) -> Vec<Step> {
    let mut steps = vec![Write(Bias, 0)];
    if has_barrier {
        steps.push(Barrier);
    }
    steps.extend([Label("again"), Lock, Read(Owner), JumpIf(0, "done")]);
    steps.extend([Read(Depth), JumpIf(0, "outside")]);
    if looks_at_settled {
        steps.extend([Read(Settled), JumpIf(0, "not yet")]);
    }
    steps.extend([Jump("done"), Label("not yet"), Unlock, Jump("again")]);
    steps.extend([Label("outside"), Write(Right, NONE), Write(Owner, 0)]);
    steps.extend([Label("done"), Unlock, Label("runs")]);
    steps
}

#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Runner {
    at: usize,
    read: u8,
    buffer: Vec<(Place, u8)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    memory: [u8; 7],
    runners: [Runner; 2],
}

impl State {
    fn drain(&mut self, who: usize) {
        for (place, value) in std::mem::take(&mut self.runners[who].buffer) {
            self.memory[place as usize] = value;
        }
    }

    fn read(&self, who: usize, place: Place) -> u8 {
        let own = self.runners[who].buffer.iter().rev();
        let own = own.copied().find(|(written, _)| *written == place);
        own.map_or(self.memory[place as usize], |(_, value)| value)
    }
}

fn place_of(steps: &[Step], label: &str) -> usize {
    let is_it = |step: &Step| matches!(step, Label(found) if *found == label);
    steps.iter().position(is_it).unwrap()
}

/// Whether a state that `is_wrong` can be reached; and how many states there are.
fn reaches(
    programs: [&[Step]; 2],
    ones: &[Place],
    mut is_wrong: impl FnMut(&State) -> bool,
) -> (bool, usize) {
    let mut first = State {
        memory: [0; 7],
        runners: Default::default(),
    };
    for place in ones {
        first.memory[*place as usize] = 1;
    }
    let (mut seen, mut open) = (HashSet::new(), vec![first]);
    while let Some(state) = open.pop() {
        if !seen.insert(state.clone()) {
            continue;
        }
        if is_wrong(&state) {
            return (true, seen.len());
        }
        for (who, program) in programs.into_iter().enumerate() {
            // The oldest write comes to memory.
            if let Some((place, value)) = state.runners[who].buffer.first().copied() {
                let mut next = state.clone();
                next.runners[who].buffer.remove(0);
                next.memory[place as usize] = value;
                open.push(next);
            }
            let Some(step) = program.get(state.runners[who].at) else {
                continue;
            };
            let mut next = state.clone();
            next.runners[who].at += 1;
            match *step {
                Write(place, value) => next.runners[who].buffer.push((place, value)),
                Read(place) => next.runners[who].read = state.read(who, place),
                JumpIf(value, label) if state.runners[who].read == value => {
                    next.runners[who].at = place_of(program, label);
                }
                Jump(label) => next.runners[who].at = place_of(program, label),
                JumpIf(..) | Label(_) => {}
                Barrier => (0..2).for_each(|who| next.drain(who)),
                Lock if state.memory[Turn as usize] != 0 => continue,
                Lock => {
                    next.drain(who);
                    next.memory[Turn as usize] = 1;
                }
                Unlock => next.runners[who].buffer.push((Turn, 0)),
            }
            open.push(next);
        }
    }
    (false, seen.len())
}

/// Whether code of the domain runs on the other thread with a right that no call has; and how many states there are.
fn is_stale(looks_at_settled: bool, has_barrier: bool) -> (bool, usize) {
    let other = other(looks_at_settled, has_barrier);
    let (end, runs) = (place_of(CALLER, "end"), place_of(&other, "runs"));
    let mut has_run = false;
    let found = reaches([CALLER, &other], &[Bias, Owner, Right], |state| {
        if state.runners[1].at < runs {
            return false;
        }
        let is_over = state.runners[0].at >= end && state.runners[0].buffer.is_empty();
        has_run |= is_over;
        match state.read(1, Right) {
            OLD => true,
            right => right == NEW && is_over,
        }
    });
    assert!(found.0 || has_run, "both come to their ends");
    found
}

/// Whether both threads can have the lock at a time.
fn both_are_in(has_barrier: bool) -> bool {
    let owner = [
        Write(Busy, 1),
        Read(Bias),
        JumpIf(0, "no bias"),
        Label("in"),
        Label("no bias"),
        Write(Busy, 0),
    ];
    let mut other = vec![Lock, Write(Bias, 0)];
    if has_barrier {
        other.push(Barrier);
    }
    other.extend([Label("again"), Read(Busy), JumpIf(1, "again"), Label("in")]);
    let places = [place_of(&owner, "in"), place_of(&other, "in")];
    let both = reaches([&owner, &other], &[Bias], |state| {
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
