//! The two pictures at the head of `inside.rs`, in every order of steps that the memory of x86 allows. It is a model: the
//! code's own steps, written down again.
//!
//! A thread's writes wait in its buffer, and come to memory one by one, at any time. A thread reads its own writes at once.
//! `membarrier` empties the buffers of all threads, and a signal that of the thread that gets it.

use std::collections::HashSet;

/// What memory has.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    /// 1: the word may be written.
    Shadow,
    /// 1: the other thread is registered.
    Crowd,
    /// Of the thread's visit: odd inside.
    Count,
    /// 1: the access has been made.
    Object,
}

#[derive(Clone, Copy)]
enum Step {
    Write(Place, u8),
    Read(Place),
    /// Ends if what was read last is this.
    EndIf(u8),
    /// `membarrier`.
    Barrier,
    /// A full barrier of this thread alone, as a lock has.
    Fence,
    /// Until the count is another one than was read, or the thread is not between its check and its access.
    AskToPass,
}

const REVOKER: usize = 0;
const THREAD: usize = 1;

#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Runner {
    at: usize,
    read: u8,
    buffer: Vec<(Place, u8)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    memory: [u8; 4],
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

/// The barriers that are there.
#[derive(Clone, Copy)]
struct Barriers {
    visit: bool,
    settle: bool,
}

/// Whether an access can come to memory behind the end of the call that took the right away.
fn is_late(barriers: Barriers, is_registered: bool) -> bool {
    let barrier = |is_there| match is_there {
        true => Step::Barrier,
        false => Step::Fence,
    };
    // `Inside::settle`, behind the write of the table.
    let revoker = [
        Step::Write(Place::Shadow, 0),
        Step::Read(Place::Crowd),
        Step::EndIf(0),
        barrier(barriers.settle),
        Step::Read(Place::Count),
        Step::EndIf(0),
        Step::EndIf(2),
        Step::AskToPass,
    ];
    // `Inside::visit`, a gate in, a check with its access, and the gate out.
    let thread = [
        Step::Write(Place::Crowd, 1),
        barrier(barriers.visit),
        Step::Write(Place::Count, 1),
        Step::Read(Place::Shadow),
        Step::EndIf(0),
        Step::Write(Place::Object, 1),
        Step::Write(Place::Count, 2),
    ];
    let checked = 4..6;
    let programs: [&[Step]; 2] = [&revoker, &thread];
    let mut first = State {
        memory: [1, 0, 0, 0],
        runners: Default::default(),
    };
    if is_registered {
        first.memory[Place::Crowd as usize] = 1;
        first.runners[THREAD].at = 2;
    }
    let (mut seen, mut open) = (HashSet::new(), vec![first]);
    while let Some(state) = open.pop() {
        if !seen.insert(state.clone()) {
            continue;
        }
        let is_over = state.runners[REVOKER].at == revoker.len();
        for who in [REVOKER, THREAD] {
            // The oldest write comes to memory.
            if let Some((place, value)) = state.runners[who].buffer.first().copied() {
                if is_over && place == Place::Object {
                    return true;
                }
                let mut next = state.clone();
                next.runners[who].buffer.remove(0);
                next.memory[place as usize] = value;
                open.push(next);
            }
            let Some(step) = programs[who].get(state.runners[who].at) else {
                continue;
            };
            let mut next = state.clone();
            next.runners[who].at += 1;
            match *step {
                Step::Write(place, value) => next.runners[who].buffer.push((place, value)),
                Step::Read(place) => next.runners[who].read = state.read(who, place),
                Step::EndIf(value) if state.runners[who].read == value => {
                    next.runners[who].at = programs[who].len();
                }
                Step::EndIf(_) => {}
                Step::Barrier => {
                    next.drain(REVOKER);
                    next.drain(THREAD);
                }
                Step::Fence => next.drain(who),
                Step::AskToPass => {
                    let has_left = state.read(who, Place::Count) != state.runners[who].read;
                    let is_between = checked.contains(&state.runners[THREAD].at);
                    match (has_left, is_between) {
                        (true, _) => {}
                        (false, false) => next.drain(THREAD),
                        (false, true) => continue,
                    }
                }
            }
            open.push(next);
        }
    }
    false
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
