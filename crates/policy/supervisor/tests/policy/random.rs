//! Long random sequences of calls in a world of some size, against the naive model, with the invariants
//! that a reader expects asked one by one.

use crate::naive::Naive;
use crate::{Stack, agree, permissions, words};
use mullion_recorder::Recorder;
use mullion_supervisor::{
    Call, Change, DomainId, Error, Family, GroupId, Level, Order, Permission, PreparedGrant, Range,
    Subject, Supervisor,
};
use proptest::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// What a long sequence is made of. Numbers choose among what there is.
#[derive(Clone, Debug)]
enum Step {
    Call(usize, usize, Call),
    Batch(Vec<(usize, Change)>),
    Prepare(usize, DomainId, Range, Permission, Level),
    Switch(usize, usize, bool),
    /// The same of a part, strictly or not: where it begins, and how long it is.
    Part(usize, usize, (bool, bool), u64, u64),
    Release(usize),
}

fn change() -> impl Strategy<Value = Change> {
    let subject = prop_oneof![
        4 => domain().prop_map(Subject::Domain),
        1 => group().prop_map(Subject::Group)
    ];
    prop_oneof![
        1 => (range(), permission()).prop_map(|(range, permission)| Change::Own { range, permission }),
        3 => (subject, range(), permission(), level()).prop_map(|(target, range, permission, export)| {
            Change::Export { target, range, permission, export }
        }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let who = || 0usize..64;
    prop_oneof![
        6 => (who(), who(), call()).prop_map(|(caller, previous, call)| Step::Call(caller, previous, call)),
        2 => prop::collection::vec((prop_oneof![3 => Just(1), 1 => who()], change()), 0..4).prop_map(Step::Batch),
        2 => (prop_oneof![3 => Just(1), 1 => who()], 0u32..5, range(), permission(), level())
            .prop_map(|(caller, target, range, permission, export)| {
                Step::Prepare(caller, DomainId::new(target), range, permission, export)
            }),
        8 => (prop_oneof![3 => Just(usize::MAX), 1 => who()], who(), any::<bool>())
            .prop_map(|(caller, which, on)| Step::Switch(caller, which, on)),
        24 => (prop_oneof![7 => Just(usize::MAX), 1 => who()], who(), any::<(bool, bool)>(), any::<u64>(), any::<u64>())
            .prop_map(|(caller, which, how, first, count)| Step::Part(caller, which, how, first, count)),
        1 => who().prop_map(Step::Release),
    ]
}

/// Domain 1 owns nearly all; its children 2 and 3 own a little, and 3 is in group 1.
fn furnish(supervisor: &mut Supervisor<Recorder>, naive: &mut Naive) {
    let (kernel, permission) = (DomainId::new(1), Permission::ReadWrite);
    let group = GroupId::new(1);
    for (current, call) in [
        (
            DomainId::SUPERVISOR,
            Call::PdSubdivide {
                range: words(0, 22),
                permission,
            },
        ),
        (
            kernel,
            Call::PdSubdivide {
                range: words(0, 2),
                permission,
            },
        ),
        (
            kernel,
            Call::PdSubdivide {
                range: words(2, 2),
                permission,
            },
        ),
        (kernel, Call::GroupCreate),
        (DomainId::new(3), Call::GroupJoin { group }),
    ] {
        let made = supervisor.call(&current, call);
        assert_eq!(
            made.map_err(|error| error.rule()),
            naive.call(current, None, call)
        );
        made.unwrap();
    }
}

/// Parts that were granted or taken back as such.
static PARTS: AtomicU64 = AtomicU64::new(0);

#[test]
fn batches_prepared_grants_and_parts_are_their_plain_calls() {
    batches_and_prepared_grants_are_their_plain_calls();
    let parts = PARTS.load(Ordering::Relaxed);
    assert!(parts > 100, "only {parts} parts were decided at once");
}

/// A prepared grant, who prepared it, and the plain calls that switch it on and off.
type Known = (PreparedGrant, DomainId, [Call; 2]);

proptest! {
    #![proptest_config(ProptestConfig { cases: 4 * cases(), failure_persistence: None, ..ProptestConfig::default() })]

    // Called by `batches_prepared_grants_and_parts_are_their_plain_calls`.
    fn batches_and_prepared_grants_are_their_plain_calls(steps in prop::collection::vec(step(), 1..120)) {
        let mut supervisor = Supervisor::new(words(0, WORDS), Recorder::new());
        let mut naive = Naive::new(WORDS as usize, Order::Strict);
        furnish(&mut supervisor, &mut naive);
        let mut known: Vec<Known> = Vec::new();
        for step in steps {
            let living = naive.domains();
            let who = |number: usize| living[number % living.len()];
            let before = supervisor.clone();
            let (outcome, expected) = match step.clone() {
                Step::Call(caller, previous, call) => {
                    let (current, previous) = (who(caller), Some(who(previous)));
                    let outcome = supervisor.call(&Stack { current, previous }, call);
                    (outcome.map(drop).map_err(|error| error.rule()), naive.call(current, previous, call).map(drop))
                }
                Step::Batch(changes) => {
                    let changes: Vec<_> = changes.into_iter().map(|(caller, change)| (who(caller), change)).collect();
                    let outcome = supervisor.change_all(&changes).map_err(|refused| (refused.index, refused.error.rule()));
                    let mut after = naive.clone();
                    let mut calls = changes.iter().enumerate();
                    let expected = calls.try_for_each(|(index, (caller, change))| {
                        after.call(*caller, None, change.call()).map(drop).map_err(|rule| (index, rule))
                    });
                    prop_assert_eq!(outcome, expected);
                    if expected.is_ok() {
                        naive = after;
                    }
                    (outcome.map_err(|(_, rule)| rule), expected.map_err(|(_, rule)| rule))
                }
                Step::Prepare(caller, target, range, permission, export) => {
                    let caller = who(caller);
                    let call = |permission, export| Call::MprotExport { target: target.into(), range, permission, export };
                    let on = call(permission, export);
                    let outcome = supervisor.prepare(&caller, target, range, permission, export);
                    if let Ok(prepared) = outcome {
                        known.push((prepared, caller, [call(Permission::None, Level::None), on]));
                    }
                    (outcome.map(drop).map_err(|error| error.rule()), naive.clone().call(caller, None, on).map(drop))
                }
                Step::Switch(caller, which, on) => {
                    let Some((prepared, maker, calls)) = known.get(which % known.len().max(1)).copied() else {
                        continue;
                    };
                    let caller = if caller == usize::MAX { maker } else { who(caller) };
                    let outcome = match on {
                        true => supervisor.grant_prepared(&caller, prepared),
                        false => supervisor.revoke_prepared(&caller, prepared),
                    };
                    if outcome == Err(Error::UnknownPrepared) {
                        let Call::MprotExport { target: Subject::Domain(target), .. } = calls[0] else { unreachable!() };
                        prop_assert!(!living.contains(&target));
                        continue;
                    }
                    let expected = naive.call(caller, None, calls[usize::from(on)]);
                    (outcome.map_err(|error| error.rule()), expected.map(drop))
                }
                Step::Part(caller, which, (on, strictly), first, count) => {
                    let Some((prepared, maker, calls)) = known.get(which % known.len().max(1)).copied() else {
                        continue;
                    };
                    let Call::MprotExport { target, range, permission, export } = calls[usize::from(on)] else { unreachable!() };
                    let Subject::Domain(domain) = target else { unreachable!() };
                    let first = first % range.count();
                    let part = words(range.start() + first, 1 + count % (range.count() - first));
                    let caller = if caller == usize::MAX { maker } else { who(caller) };
                    let outcome = match (on, strictly) {
                        (_, false) => supervisor.set_part(&caller, prepared, part, on),
                        (true, _) => supervisor.grant_part(&caller, prepared, part),
                        (false, _) => supervisor.revoke_part(&caller, prepared, part),
                    };
                    if strictly && on && outcome == Ok(true) {
                        let had = |word| before.permission(domain, word) != Permission::None;
                        prop_assert!(!(part.start()..part.end()).any(had));
                    }
                    match outcome {
                        Err(error) => {
                            prop_assert_eq!(error, Error::UnknownPrepared);
                            prop_assert!(!living.contains(&domain));
                            continue;
                        }
                        Ok(false) => {
                            supervisor.check().unwrap();
                            prop_assert_eq!(supervisor.snapshot(), before.snapshot());
                            prop_assert_eq!(supervisor.mechanism(), before.mechanism());
                            continue;
                        }
                        Ok(true) => {
                            PARTS.fetch_add(1, Ordering::Relaxed);
                            let call = Call::MprotExport { target, range: part, permission, export };
                            (Ok(()), naive.call(caller, None, call).map(drop))
                        }
                    }
                }
                Step::Release(which) => {
                    if !known.is_empty() {
                        let (prepared, _, calls) = known.swap_remove(which % known.len());
                        let Call::MprotExport { target: Subject::Domain(target), .. } = calls[0] else { unreachable!() };
                        prop_assert_eq!(supervisor.release(prepared).is_ok(), living.contains(&target));
                        prop_assert_eq!(supervisor.release(prepared), Err(Error::UnknownPrepared));
                    }
                    (Ok(()), Ok(()))
                }
            };
            prop_assert_eq!(outcome, expected, "{:?}", step);
            if outcome.is_ok() {
                agree(&supervisor, &naive);
            } else {
                supervisor.check().unwrap();
                prop_assert_eq!(supervisor.snapshot(), before.snapshot());
                prop_assert_eq!(supervisor.mechanism(), before.mechanism());
            }
        }
    }
}
