//! The policy as a whole: Table 1 row by row, every refusal, a small world completely, large worlds at
//! random, one with thousands of regions, and threads.

mod exhaustive;
mod groups;
mod naive;
mod prepared;
mod random;
mod refusals;
mod table1;
mod threads;
mod wide;

use mullion_supervisor::{CallStack, DomainId, Permission, Range};

/// A call stack made up by a test.
#[derive(Clone, Copy, Debug)]
struct Stack {
    current: DomainId,
    previous: Option<DomainId>,
}

impl CallStack for Stack {
    fn current(&self) -> DomainId {
        self.current
    }

    fn previous(&self) -> Option<DomainId> {
        self.previous
    }
}

fn words(first: u64, count: u64) -> Range {
    Range::words(first, count).unwrap()
}

/// All permissions, with a gate into `to`.
fn permissions(to: DomainId) -> [Permission; 6] {
    [
        Permission::None,
        Permission::Read,
        Permission::ReadWrite,
        Permission::ExecuteRead,
        Permission::SwitchGate { to },
        Permission::ReturnGate,
    ]
}

/// The supervisor, its mechanism and the naive model say the same of everything there is.
fn agree(
    supervisor: &mullion_supervisor::Supervisor<mullion_recorder::Recorder>,
    naive: &naive::Naive,
) {
    supervisor.check().unwrap();
    let snapshot = supervisor.snapshot();
    let domains: Vec<DomainId> = snapshot.domains.iter().map(|domain| domain.id).collect();
    assert_eq!(domains, naive.domains());
    assert_eq!(supervisor.mechanism().domains(), domains);
    for domain in &snapshot.domains {
        assert_eq!(domain.parent, naive.parent(domain.id));
    }
    let groups: Vec<_> = snapshot.groups.iter().map(|group| group.id).collect();
    assert_eq!(groups, naive.groups());
    for group in groups {
        assert_eq!(
            supervisor.members(group).unwrap(),
            naive.members(group),
            "{group}"
        );
    }
    let alike = |pair: &[(Range, mullion_supervisor::Holding)]| pair[0].1 == pair[1].1;
    assert!(
        !snapshot.regions.windows(2).any(alike),
        "neighbours are alike: {:?}",
        snapshot.regions
    );
    for word in 0..supervisor.space().end() {
        let at = word as usize;
        assert_eq!(
            supervisor.owner(word),
            Some(naive.owner(at)),
            "owner of word {word}"
        );
        for domain in &domains {
            let access = naive.access(*domain, at);
            assert_eq!(
                supervisor.permission(*domain, word),
                access,
                "{domain}, word {word}"
            );
            assert_eq!(
                supervisor.grant(*domain, word).export,
                naive.export(*domain, at),
                "{domain}, word {word}"
            );
            assert_eq!(
                supervisor.mechanism().permission(*domain, word),
                access,
                "mechanism, {domain}, word {word}"
            );
            assert_eq!(
                supervisor.mechanism().permission_by_holding(*domain, word),
                access,
                "mechanism by holding, {domain}, word {word}"
            );
        }
    }
}
