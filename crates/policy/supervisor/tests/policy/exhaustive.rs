//! All states of a small world: every call that its domains can make, in every sequence up to a depth,
//! against the naive model.
//!
//! Sequences that lead to the same state are followed once: equal snapshots answer alike. The depth is
//! `MULLION_EXHAUSTIVE_DEPTH` where it is set.

use crate::naive::Naive;
use crate::{Stack, agree, words};
use mullion_recorder::Recorder;
use mullion_supervisor::{
    Call, DomainId, Family, GroupId, Level, Order, Permission, Range, Snapshot, Subject, Supervisor,
};
use std::collections::HashSet;

/// What the small world is made of.
struct World {
    words: u64,
    permissions: Vec<Permission>,
    /// No more domains, dead or alive, than this.
    domains: u32,
    /// No more groups than this, with the global one.
    groups: u32,
    order: Order,
    depth: u32,
    /// Whether to start with a domain, its child and a group that the child has joined.
    furnished: bool,
}

type State = (Supervisor<Recorder>, Naive);

impl World {
    fn ranges(&self) -> Vec<Range> {
        let starts = 0..self.words;
        starts
            .flat_map(|start| (1..=self.words - start).map(move |count| words(start, count)))
            .collect()
    }

    fn permissions(&self, supervisor: &Supervisor<Recorder>) -> Vec<Permission> {
        let gate = |to: DomainId| Permission::SwitchGate { to };
        let gates = (1..2)
            .map(DomainId::new)
            .filter(|to| supervisor.exists(*to))
            .map(gate);
        self.permissions.iter().copied().chain(gates).collect()
    }

    /// Every call in a state: each parameter takes each value, one that does not exist included.
    fn calls(&self, supervisor: &Supervisor<Recorder>) -> Vec<Call> {
        let [next_domain, next_group, _] = supervisor.snapshot().next;
        let domains = || (0..=next_domain.min(self.domains)).map(DomainId::new);
        let groups = || (0..=next_group.min(self.groups)).map(GroupId::new);
        let mut calls = Vec::new();
        for range in self.ranges() {
            for permission in self.permissions(supervisor) {
                calls.push(Call::Mprot { range, permission });
                let targets = domains()
                    .map(Subject::Domain)
                    .chain(groups().map(Subject::Group));
                for target in targets {
                    for export in [Level::None, Level::Full] {
                        calls.push(Call::MprotExport {
                            target,
                            range,
                            permission,
                            export,
                        });
                    }
                }
                if next_domain < self.domains {
                    calls.push(Call::PdSubdivide { range, permission });
                }
            }
            calls.extend([Call::PermAlloc { range }, Call::PermFree { range }]);
            calls.extend(domains().map(|target| Call::Chown { range, target }));
        }
        calls.extend(domains().map(|target| Call::PdFree { target }));
        if next_group < self.groups {
            calls.push(Call::GroupCreate);
        }
        for group in groups() {
            calls.extend([
                Call::GroupFree { group },
                Call::GroupJoin { group },
                Call::GroupLeave { group },
            ]);
        }
        calls
    }

    /// Follows every sequence of at most `depth` calls; returns the states and the calls tried.
    fn explore(&self) -> (usize, u64) {
        let space = words(0, self.words);
        let supervisor = Supervisor::with(space, Recorder::new(), Family, self.order);
        let mut start = (supervisor, Naive::new(self.words as usize, self.order));
        if self.furnished {
            furnish(&mut start);
        }
        let mut seen: HashSet<Snapshot> = HashSet::from([start.0.snapshot()]);
        let mut frontier: Vec<State> = vec![start];
        let mut tried = 0;
        for step in 1..=self.depth {
            let mut next = Vec::new();
            for (supervisor, naive) in &frontier {
                let before = supervisor.snapshot();
                // Most calls change nothing. Such a supervisor must be as good as new, so the next call is made there.
                let mut left = None;
                for call in self.calls(supervisor) {
                    for stack in stacks(&before, call) {
                        tried += 1;
                        let mut after = left
                            .take()
                            .unwrap_or_else(|| (supervisor.clone(), naive.clone()));
                        if !one_step(&mut after, stack, call, &before, supervisor.mechanism()) {
                            left = Some(after);
                        } else if seen.insert(after.0.snapshot()) && step < self.depth {
                            next.push(after);
                        }
                    }
                }
            }
            println!(
                "{:?} order, {} words, furnished {}, depth {step}: {} states, {tried} calls",
                self.order,
                self.words,
                self.furnished,
                seen.len()
            );
            frontier = next;
        }
        (seen.len(), tried)
    }
}

/// Domain 1 has all the memory, its child 2 the last word; group 1, of domain 1, has 2 as a member.
fn furnish((supervisor, naive): &mut State) {
    let count = supervisor.space().count();
    let permission = Permission::ReadWrite;
    let steps = [
        (
            0,
            Call::PdSubdivide {
                range: words(0, count),
                permission,
            },
        ),
        (
            1,
            Call::PdSubdivide {
                range: words(count - 1, 1),
                permission,
            },
        ),
        (1, Call::GroupCreate),
        (
            2,
            Call::GroupJoin {
                group: GroupId::new(1),
            },
        ),
    ];
    for (caller, call) in steps {
        let caller = DomainId::new(caller);
        assert_eq!(
            supervisor.call(&caller, call).map_err(|error| error.rule()),
            naive.call(caller, None, call)
        );
    }
}

/// Every caller, and where the call asks, every domain that may have called it.
fn stacks(snapshot: &Snapshot, call: Call) -> Vec<Stack> {
    let ids = || snapshot.domains.iter().map(|domain| domain.id);
    let previous = |current| {
        let callers = ids().map(Some).chain([None]);
        let asked = matches!(call, Call::PermAlloc { .. });
        callers
            .filter(move |previous| asked || previous.is_none())
            .map(move |previous| Stack { current, previous })
    };
    ids().flat_map(previous).collect()
}

/// Makes one call in both; true if it changed something.
fn one_step(
    state: &mut State,
    stack: Stack,
    call: Call,
    before: &Snapshot,
    mechanism: &Recorder,
) -> bool {
    let (supervisor, naive) = state;
    let expected = naive.call(stack.current, stack.previous, call);
    match supervisor.call(&stack, call) {
        Ok(reply) => {
            assert_eq!(Ok(reply), expected, "{stack:?} {call:?} in {before:?}");
            if supervisor.snapshot() == *before {
                assert_eq!(
                    supervisor.mechanism(),
                    mechanism,
                    "a call without effect was written"
                );
                return false;
            }
            agree(supervisor, naive);
            true
        }
        Err(error) => {
            assert_eq!(
                Err(error.rule()),
                expected,
                "{stack:?} {call:?}: {error} in {before:?}"
            );
            assert_eq!(
                supervisor.snapshot(),
                *before,
                "refused, and changed: {stack:?} {call:?}"
            );
            assert_eq!(
                supervisor.mechanism(),
                mechanism,
                "refused, and written: {stack:?} {call:?}"
            );
            false
        }
    }
}

fn depth(default: u32) -> u32 {
    let set = std::env::var("MULLION_EXHAUSTIVE_DEPTH");
    set.map_or(default, |depth| {
        depth.parse().expect("MULLION_EXHAUSTIVE_DEPTH is a number")
    })
}

#[test]
fn every_sequence_of_calls_in_a_small_world_agrees_with_the_naive_model() {
    use Permission::{ExecuteRead, None, Read, ReadWrite};
    let (mut states, mut tried) = (0, 0);
    for order in [Order::Paper, Order::Strict] {
        let wide = World {
            words: 2,
            permissions: vec![None, Read, ReadWrite, ExecuteRead],
            domains: 3,
            groups: 2,
            order,
            depth: depth(3),
            furnished: false,
        };
        let deep = World {
            words: 1,
            permissions: vec![None, Read, ReadWrite],
            domains: 3,
            groups: 2,
            order,
            depth: depth(6),
            furnished: false,
        };
        let furnished = World {
            words: 2,
            permissions: vec![Read, ReadWrite, None],
            domains: 3,
            groups: 2,
            order,
            depth: depth(3),
            furnished: true,
        };
        for world in [wide, deep, furnished] {
            let found = world.explore();
            states += found.0;
            tried += found.1;
        }
    }
    println!("all together: {states} states, {tried} calls");
    // Guards against a world that has become trivial; a depth of one's own is one's own.
    let chosen = std::env::var_os("MULLION_EXHAUSTIVE_DEPTH").is_some();
    assert!(chosen || states > 100_000, "only {states} states");
}
