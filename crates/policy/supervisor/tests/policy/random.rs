//! Long random sequences of calls in a world of some size, against the naive model, with the invariants
//! that a reader expects asked one by one.

use crate::naive::Naive;
use crate::{Stack, agree, permissions, words};
use mullion_supervisor::{
    Call, DomainId, Family, GroupId, Level, Order, Permission, Range, Recorder, Subject, Supervisor,
};
use proptest::prelude::*;

const WORDS: u64 = 24;

fn range() -> impl Strategy<Value = Range> {
    (0..WORDS, 1..=WORDS).prop_map(|(first, count)| words(first, count.min(WORDS - first)))
}

fn domain() -> impl Strategy<Value = DomainId> {
    (0u32..9).prop_map(DomainId::new)
}

fn group() -> impl Strategy<Value = GroupId> {
    (0u32..5).prop_map(GroupId::new)
}

fn permission() -> impl Strategy<Value = Permission> {
    (0usize..6, domain()).prop_map(|(which, to)| permissions(to)[which])
}

fn level() -> impl Strategy<Value = Level> {
    prop_oneof![Just(Level::None), Just(Level::Read), Just(Level::Full)]
}

fn call() -> impl Strategy<Value = Call> {
    let subject = prop_oneof![
        domain().prop_map(Subject::Domain),
        group().prop_map(Subject::Group)
    ];
    prop_oneof![
        4 => (range(), permission()).prop_map(|(range, permission)| Call::Mprot { range, permission }),
        8 => (subject, range(), permission(), level()).prop_map(|(target, range, permission, export)| {
            Call::MprotExport { target, range, permission, export }
        }),
        4 => (range(), permission()).prop_map(|(range, permission)| Call::PdSubdivide { range, permission }),
        1 => domain().prop_map(|target| Call::PdFree { target }),
        4 => range().prop_map(|range| Call::PermAlloc { range }),
        3 => range().prop_map(|range| Call::PermFree { range }),
        2 => (range(), domain()).prop_map(|(range, target)| Call::Chown { range, target }),
        1 => Just(Call::GroupCreate),
        1 => group().prop_map(|group| Call::GroupFree { group }),
        3 => group().prop_map(|group| Call::GroupJoin { group }),
        2 => group().prop_map(|group| Call::GroupLeave { group }),
    ]
}

/// Who holds what, as the supervisor says: for each living domain its permission on each word.
fn table(supervisor: &Supervisor<Recorder>) -> Vec<(DomainId, Vec<Permission>)> {
    let domains = supervisor
        .snapshot()
        .domains
        .into_iter()
        .map(|domain| domain.id);
    let row = |domain| {
        (0..WORDS)
            .map(|word| supervisor.permission(domain, word))
            .collect()
    };
    domains.map(|domain| (domain, row(domain))).collect()
}

/// What must hold after `call`, whatever the naive model says.
fn invariants(
    before: &Supervisor<Recorder>,
    after: &Supervisor<Recorder>,
    caller: DomainId,
    call: Call,
) {
    for word in 0..WORDS {
        let cover = after
            .regions(after.space())
            .filter(|(range, _)| range.holds(word));
        assert_eq!(
            cover.count(),
            1,
            "word {word} has not one region, and so one owner"
        );
    }
    match call {
        Call::PermFree { range } => {
            for (domain, row) in table(after) {
                let words = range.start() as usize..range.end() as usize;
                let left = row[words]
                    .iter()
                    .any(|permission| *permission != Permission::None);
                assert!(
                    domain == caller || !left,
                    "{domain} keeps something of freed {range}"
                );
            }
        }
        Call::PdFree { target } => {
            assert!(
                after
                    .mechanism()
                    .ranges()
                    .all(|(domain, _, _)| domain != target)
            );
            let gate = Permission::SwitchGate { to: target };
            assert!(
                after
                    .mechanism()
                    .ranges()
                    .all(|(_, _, permission)| permission != gate)
            );
            for word in (0..WORDS).filter(|word| before.owner(*word) == Some(target)) {
                let held = table(after)
                    .iter()
                    .any(|(_, row)| row[word as usize] != Permission::None);
                assert!(
                    !held,
                    "word {word} of the deleted domain is still accessible"
                );
            }
        }
        Call::GroupLeave { .. } | Call::GroupFree { .. } => {
            for (domain, row) in table(after) {
                for (word, now) in row.iter().enumerate() {
                    assert!(now.level() <= before.permission(domain, word as u64).level());
                }
            }
        }
        _ => {}
    }
    // What a domain wins on a word that it does not own comes from a grant to it or to a group, never
    // from its own call, and is never above what the caller had if the caller does not own the word.
    for (domain, row) in table(after) {
        for (word, now) in row.iter().enumerate() {
            let word = word as u64;
            let had = before.permission(domain, word);
            let owns = after.owner(word) == Some(domain);
            let owner_calls = before.owner(word) == Some(caller);
            if now.level() > had.level() && before.exists(domain) && !owns && !owner_calls {
                assert!(
                    domain != caller
                        || matches!(call, Call::GroupJoin { .. } | Call::MprotExport { .. }),
                    "{domain} won {now} on word {word} by its own {call:?}"
                );
                if !matches!(call, Call::GroupJoin { .. }) {
                    assert!(
                        now.level() <= before.permission(caller, word).level(),
                        "{call:?} gave more than there was"
                    );
                }
            }
        }
    }
}

/// How many sequences: more with `MULLION_RANDOM_CASES`.
fn cases() -> u32 {
    let set = std::env::var("MULLION_RANDOM_CASES");
    set.map_or(64, |cases| {
        cases.parse().expect("MULLION_RANDOM_CASES is a number")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn long_random_sequences_agree_with_the_naive_model(
        strict in any::<bool>(),
        steps in prop::collection::vec((0usize..64, 0usize..64, call()), 1..300),
    ) {
        let order = if strict { Order::Strict } else { Order::Paper };
        let mut supervisor = Supervisor::with(words(0, WORDS), Recorder::new(), Family, order);
        let mut naive = Naive::new(WORDS as usize, order);
        for (caller, previous, call) in steps {
            // A caller that lives, so that most calls get further than asking who that is.
            let living = naive.domains();
            let current = living[caller % living.len()];
            let previous = Some(living[previous % living.len()]);
            let before = supervisor.clone();
            let outcome = supervisor.call(&Stack { current, previous }, call);
            let expected = naive.call(current, previous, call);
            prop_assert_eq!(outcome.map_err(|error| error.rule()), expected, "{} {:?}", current, call);
            if outcome.is_ok() {
                agree(&supervisor, &naive);
                invariants(&before, &supervisor, current, call);
            } else {
                prop_assert_eq!(supervisor.snapshot(), before.snapshot());
                prop_assert_eq!(supervisor.mechanism(), before.mechanism());
            }
        }
    }
}
