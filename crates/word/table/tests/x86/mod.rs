//! Two threads in every order of steps that the memory of x86 allows. What they do is a model: the code's own steps, written down
//! again. The run time's tests have this file, too.
//!
//! A thread's writes wait in its buffer, and come to memory one by one, at any time. A thread reads its own writes at once.
//! `membarrier` empties the buffers of both threads, a lock that of the thread that takes it, a signal that of the thread that gets it.

#![allow(dead_code, unreachable_pub, reason = "each test file uses some")]

use std::collections::HashSet;

/// A byte of memory, by its number.
pub type Place = usize;
const PLACES: usize = 8;

/// What one thread does next. What it has read last decides its jumps.
#[derive(Clone, Copy)]
pub enum Step {
    Write(Place, u8),
    Read(Place),
    /// If what was read last is this.
    JumpIf(u8, &'static str),
    Jump(&'static str),
    Label(&'static str),
    /// `membarrier`.
    Barrier,
    /// A full barrier of this thread alone, as a lock has.
    Fence,
    /// The lock at this place.
    Lock(Place),
    Unlock(Place),
    /// Goes on when this says so.
    When(fn(&State, &Runner) -> Now),
}

/// What [`Step::When`] says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Now {
    GoOn,
    /// Behind a signal to this thread.
    Signal(usize),
    /// Goes on there.
    Jump(&'static str),
    Wait,
}

/// A thread.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Runner {
    /// Its next step.
    pub at: usize,
    pub read: u8,
    /// Writes that are not in memory yet, the oldest first.
    pub buffer: Vec<(Place, u8)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub memory: [u8; PLACES],
    pub runners: [Runner; 2],
}

impl State {
    fn drain(&mut self, who: usize) {
        for (place, value) in std::mem::take(&mut self.runners[who].buffer) {
            self.memory[place] = value;
        }
    }

    /// What a thread reads there.
    pub fn read(&self, who: usize, place: Place) -> u8 {
        let own = self.runners[who].buffer.iter().rev();
        let own = own.copied().find(|(written, _)| *written == place);
        own.map_or(self.memory[place], |(_, value)| value)
    }
}

/// The number of the step with this label.
pub fn place_of(steps: &[Step], label: &str) -> usize {
    let is_it = |step: &Step| matches!(step, Step::Label(found) if *found == label);
    steps.iter().position(is_it).unwrap()
}

/// Whether a state that `is_wrong` can be reached, and how many states there are. These places have a 1 at first, the others a 0;
/// and so far the threads have come.
pub fn reaches(
    programs: [&[Step]; 2],
    ones: &[Place],
    begin: [usize; 2],
    mut is_wrong: impl FnMut(&State) -> bool,
) -> (bool, usize) {
    let mut first = State {
        memory: [0; PLACES],
        runners: Default::default(),
    };
    for place in ones {
        first.memory[*place] = 1;
    }
    for (runner, at) in first.runners.iter_mut().zip(begin) {
        runner.at = at;
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
                next.memory[place] = value;
                open.push(next);
            }
            open.extend(step(&state, who, program));
        }
    }
    (false, seen.len())
}

/// Behind the next step of a thread; none if it has ended, or waits.
fn step(state: &State, who: usize, program: &[Step]) -> Option<State> {
    let runner = &state.runners[who];
    let step = program.get(runner.at)?;
    let mut next = state.clone();
    next.runners[who].at += 1;
    match *step {
        Step::Write(place, value) => next.runners[who].buffer.push((place, value)),
        Step::Read(place) => next.runners[who].read = state.read(who, place),
        Step::JumpIf(value, label) if runner.read == value => {
            next.runners[who].at = place_of(program, label);
        }
        Step::Jump(label) => next.runners[who].at = place_of(program, label),
        Step::JumpIf(..) | Step::Label(_) => {}
        Step::Barrier => (0..2).for_each(|who| next.drain(who)),
        Step::Fence => next.drain(who),
        Step::Lock(place) if state.memory[place] != 0 => return None,
        Step::Lock(place) => {
            next.drain(who);
            next.memory[place] = 1;
        }
        Step::Unlock(place) => next.runners[who].buffer.push((place, 0)),
        Step::When(says) => match says(state, runner) {
            Now::GoOn => {}
            Now::Signal(to) => next.drain(to),
            Now::Jump(label) => next.runners[who].at = place_of(program, label),
            Now::Wait => return None,
        },
    }
    Some(next)
}
