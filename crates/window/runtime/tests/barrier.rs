//! The protocol at the head of `presence.rs` in every order of its steps, on processors as x86-64's are: a store waits in its
//! thread's buffer, and becomes memory at any later time, or at a barrier. (loom has no barrier that one thread puts into
//! another, which is what membarrier does. The steps are repeated here by hand.)

use std::collections::HashSet;

/// Who has a full barrier between its two steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Barrier {
    None,
    /// Who uses has one of its own, as without membarrier.
    User,
    /// Who changes has every thread pass one.
    Membarrier,
}

const IDLE: u8 = 0;
const ASKED: u8 = 1;
const CHANGED: u8 = 2;

/// Two users, each with a place, and one who changes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct World {
    state: u8,
    places: [bool; 2],
    /// What each user has written to its place that is not memory yet, oldest first.
    buffers: [Vec<bool>; 2],
    /// The next step of each user, and of who changes.
    users: [u8; 2],
    changer: u8,
    /// What who changes has seen of the places.
    seen: bool,
}

const USES: u8 = 2;
const CHANGES: u8 = 5;

impl World {
    fn drain(&mut self, user: usize) {
        for value in std::mem::take(&mut self.buffers[user]) {
            self.places[user] = value;
        }
    }

    /// `Used::enter`, and the drop of what it gave.
    fn user(&mut self, user: usize, barrier: Barrier) {
        match self.users[user] {
            0 => {
                self.buffers[user].push(true);
                if barrier == Barrier::User {
                    self.drain(user);
                }
                self.users[user] = 1;
            }
            1 if self.state == IDLE => self.users[user] = USES,
            1 | USES => {
                self.buffers[user].push(false);
                self.users[user] = 3;
            }
            _ => {}
        }
    }

    /// `Used::change`, and the drop of what it gave: its writes are locked, or come after all it does.
    fn change(&mut self, barrier: Barrier) {
        self.changer += 1;
        match self.changer {
            1 => self.state = ASKED,
            2 if barrier == Barrier::Membarrier => [0, 1].iter().for_each(|user| self.drain(*user)),
            3 => self.seen |= self.places[0],
            4 => self.seen |= self.places[1],
            CHANGES if self.seen => (self.state, self.changer) = (IDLE, 9),
            CHANGES => self.state = CHANGED,
            6 => self.state = IDLE,
            _ => {}
        }
    }

    fn next(&self, barrier: Barrier) -> Vec<World> {
        let mut all = Vec::new();
        let mut step = |act: &dyn Fn(&mut World)| {
            let mut next = self.clone();
            act(&mut next);
            all.push(next);
        };
        for user in [0, 1] {
            if self.users[user] < 3 {
                step(&|world| world.user(user, barrier));
            }
            if !self.buffers[user].is_empty() {
                step(&|world| world.places[user] = world.buffers[user].remove(0));
            }
        }
        if self.changer < 6 {
            step(&|world| world.change(barrier));
        }
        all
    }
}

/// How many worlds there are, how many of them with somebody who uses what is changed, and with a change at all.
fn explore(barrier: Barrier) -> (usize, usize, usize) {
    let (mut known, mut open) = (HashSet::new(), vec![World::default()]);
    let (mut both, mut changed) = (0, 0);
    while let Some(world) = open.pop() {
        if !known.insert(world.clone()) {
            continue;
        }
        let changes = world.changer == CHANGES;
        both += usize::from(changes && world.users.contains(&USES));
        changed += usize::from(changes);
        open.extend(world.next(barrier));
    }
    (known.len(), both, changed)
}

#[test]
fn nobody_uses_what_is_changed_if_either_side_has_a_barrier() {
    for barrier in [Barrier::User, Barrier::Membarrier] {
        let (worlds, both, changed) = explore(barrier);
        assert_eq!(both, 0, "{barrier:?}, of {worlds}");
        assert!(changed > 0, "{barrier:?}, of {worlds}");
    }
}

#[test]
fn without_a_barrier_somebody_does() {
    let (worlds, both, _) = explore(Barrier::None);
    assert!(both > 0, "of {worlds}");
}
