//! What must be true: domains as plain data.

use crate::step::{DOMAINS, PAGES};
use std::collections::HashMap;

pub(crate) const CELLS: usize = 2048;
/// What a link answers in the place of a domain that does not.
pub(crate) const INSTEAD: u64 = 0xfff;

/// What a call must come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Value(u64),
    /// By the number of `wrong`'s kinds, or one of those below.
    Fault(u64),
    Exit,
    Ended,
    Refused,
    Callee,
    Panic,
    Cancelled,
    /// There is no domain.
    None,
}
pub(crate) const ACCESS: u64 = 0;
pub(crate) const TIME: u64 = 100;
pub(crate) const PROCESSOR: u64 = 101;
pub(crate) const GATES: u64 = 102;

#[derive(Clone, Debug)]
pub(crate) struct Domain {
    /// Which of all domains that were ever loaded, and which of its lives.
    pub(crate) load: u64,
    pub(crate) life: u64,
    pub(crate) has_ended: bool,
    pub(crate) cells: Vec<u64>,
    pub(crate) counter: u64,
    /// By thread.
    pub(crate) turns: HashMap<u64, u64>,
    /// The sum of each.
    pub(crate) blocks: [u64; 8],
    /// The load that is linked, and whether there is an answer in its place.
    pub(crate) link: Option<(u64, bool)>,
    pub(crate) pages: [usize; PAGES],
}

#[derive(Default)]
pub(crate) struct Model {
    pub(crate) domains: [Option<Domain>; DOMAINS],
    pub(crate) shared: [u64; PAGES],
    pub(crate) loads: u64,
    pub(crate) lives: u64,
}

impl Domain {
    fn fresh(load: u64, life: u64, link: Option<(u64, bool)>) -> Self {
        Self {
            load,
            life,
            has_ended: false,
            cells: vec![0; CELLS],
            counter: 1005,
            turns: HashMap::new(),
            blocks: [0; 8],
            link,
            pages: [0; PAGES],
        }
    }
}

impl Model {
    pub(crate) fn load(&mut self, on: usize) {
        self.loads += 1;
        self.lives += 1;
        self.domains[on] = Some(Domain::fresh(self.loads, self.lives, None));
    }

    /// Links stay; nothing else does.
    pub(crate) fn restart(&mut self, on: usize) {
        self.lives += 1;
        if let Some(domain) = &mut self.domains[on] {
            *domain = Domain::fresh(domain.load, self.lives, domain.link);
        }
    }

    /// A call of one that is there and open; what `run` says, else.
    pub(crate) fn call(&mut self, on: usize, run: impl FnOnce(&mut Domain) -> Outcome) -> Outcome {
        match &mut self.domains[on] {
            None => Outcome::None,
            Some(domain) if domain.has_ended => Outcome::Ended,
            Some(domain) => {
                let outcome = run(domain);
                if matches!(outcome, Outcome::Fault(_) | Outcome::Exit) {
                    domain.has_ended = true;
                }
                outcome
            }
        }
    }

    pub(crate) fn bump(&mut self, on: usize, value: u64) -> Outcome {
        self.call(on, |domain| {
            domain.counter = domain.counter.wrapping_add(value);
            Outcome::Value(domain.counter)
        })
    }

    pub(crate) fn gate(&mut self, on: usize, how: u64, value: u64) -> Outcome {
        let begun = self.bump(on, 1);
        if !matches!(begun, Outcome::Value(_)) {
            return begun;
        }
        let cell = value as usize % CELLS;
        let result = match how {
            0 => value * 3 + 1,
            1 => return Outcome::Refused,
            2 => return Outcome::Panic,
            3 => match &mut self.domains[on] {
                Some(domain) => std::mem::replace(&mut domain.cells[cell], 7),
                None => 0,
            },
            4 => match self.bump(value as usize % DOMAINS, 5) {
                Outcome::Value(value) => value,
                _ => 13,
            },
            5 => {
                if let Some(domain) = &mut self.domains[on] {
                    domain.cells[cell] = 99;
                }
                1
            }
            _ => {
                self.wrong(on, 0);
                77
            }
        };
        let Some(domain) = &mut self.domains[on] else {
            return Outcome::None;
        };
        // It goes on, even if a call within it has ended the domain for later ones.
        domain.counter = domain.counter.wrapping_add(result);
        Outcome::Value(result ^ domain.counter)
    }

    pub(crate) fn wrong(&mut self, on: usize, how: u64) -> Outcome {
        self.call(on, |domain| {
            domain.cells[how as usize] += 1;
            match how {
                5 => Outcome::Exit,
                how => Outcome::Fault(how),
            }
        })
    }

    pub(crate) fn over(&mut self, on: usize, value: u64) -> Outcome {
        let begun = self.bump(on, 1);
        if !matches!(begun, Outcome::Value(_)) {
            return begun;
        }
        let link = self.domains[on].as_ref().and_then(|domain| domain.link);
        let Some((load, or)) = link else {
            return Outcome::Refused;
        };
        let is_it =
            |domain: &Option<Domain>| domain.as_ref().is_some_and(|found| found.load == load);
        let called = self.domains.iter().position(is_it).map(|to| {
            self.call(to, |domain| {
                domain.counter = domain.counter.wrapping_add(value);
                match value % 11 {
                    0 => Outcome::Fault(2),
                    _ => Outcome::Value(domain.counter.wrapping_mul(3)),
                }
            })
        });
        match called {
            Some(Outcome::Value(result)) => Outcome::Value(result.wrapping_add(1)),
            _ if or => Outcome::Value(INSTEAD + 1),
            _ => Outcome::Callee,
        }
    }
}
