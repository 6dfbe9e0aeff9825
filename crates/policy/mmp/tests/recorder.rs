//! A supervisor's log, written as a trace and replayed, leads to the same state.

use mullion_mmp::config::Config;
use mullion_mmp::event::TraceEvent;
use mullion_mmp::machine::Machine;
use mullion_mmp::recorder::{ADDRESS_BITS, TraceRecordError, TraceRecorder};
use mullion_recorder::Recorder as Tables;
use mullion_supervisor::{
    Call, CallStack, DomainId, Family, GroupId, Level, Order, Permission, Range, Subject,
    Supervisor,
};
use proptest::prelude::*;
use std::convert::Infallible;

/// Words that random calls are about.
const WORDS: u64 = 48;

fn new() -> Supervisor<Tables> {
    let mut supervisor =
        Supervisor::with(Range::everything(), Tables::new(), Family, Order::Strict);
    supervisor.start_audit(usize::MAX);
    supervisor
}

fn record(
    supervisor: &Supervisor<Tables>,
) -> Result<(Vec<TraceEvent>, u64), TraceRecordError<Infallible>> {
    let mut events = Vec::new();
    let mut recorder = TraceRecorder::new(|event| {
        events.push(event);
        Ok(())
    });
    for decision in supervisor.audit().unwrap().iter() {
        recorder.decision(decision)?;
    }
    let refused = recorder.refused();
    Ok((events, refused))
}

/// Replays the log; nothing may be refused, and everything must be the same.
fn replay(supervisor: &Supervisor<Tables>) -> Vec<TraceEvent> {
    let (events, _) = record(supervisor).unwrap();
    let mut machine = Machine::new(&Config::default(), ADDRESS_BITS).unwrap();
    for event in &events {
        machine.step(event).unwrap();
    }
    assert_eq!(machine.report().refusals, [], "{events:?}");
    let (own, other) = (supervisor.snapshot(), machine.supervisor().snapshot());
    assert_eq!(own.domains, other.domains);
    assert_eq!(own.groups, other.groups);
    for word in 0..WORDS {
        let word = Range::words(word, 1).unwrap();
        let own = supervisor.regions(word).next();
        let other = machine.supervisor().regions(word).next();
        let [own, other] = [own, other].map(|region| region.map(|(_, holding)| holding));
        assert_eq!(own, other, "{word}");
    }
    events
}

#[test]
fn windows_shared_pages_and_links_are_replayed() {
    let host = DomainId::SUPERVISOR;
    let mut supervisor = new();
    let words = |start, words| Range::words(start, words).unwrap();
    // Two windows, as the run time makes them: a domain sets what its image needs itself.
    let mut window = |start| {
        let domain = supervisor
            .pd_subdivide(&host, words(start, 16), Permission::None)
            .unwrap();
        supervisor
            .mprot(&domain, words(start, 4), Permission::ExecuteRead)
            .unwrap();
        supervisor
            .mprot(&domain, words(start + 4, 12), Permission::ReadWrite)
            .unwrap();
        domain
    };
    let (first, second) = (window(0), window(16));
    // A shared page, at the host's address.
    for (domain, permission) in [(first, Permission::ReadWrite), (second, Permission::Read)] {
        supervisor
            .mprot_export_up_to(&host, domain, words(40, 4), permission, Level::None)
            .unwrap();
    }
    // A link: the second domain may call a function of the first.
    let gate = Permission::SwitchGate { to: first };
    supervisor.mprot(&first, words(1, 1), gate).unwrap();
    supervisor
        .mprot_export_up_to(&first, second, words(1, 1), gate, Level::None)
        .unwrap();
    // Refusals are not replayed.
    supervisor
        .mprot(&second, words(0, 1), Permission::ReadWrite)
        .unwrap_err();
    let events = replay(&supervisor);
    assert_eq!(record(&supervisor).unwrap().1, 1);
    supervisor.pd_free(&host, first).unwrap();
    let more = replay(&supervisor);
    assert!(more.starts_with(&events));
}

#[test]
fn what_a_trace_cannot_hold_is_an_error() {
    let host = DomainId::SUPERVISOR;
    let mut supervisor = new();
    let far = Range::words(1 << 46, 4).unwrap();
    supervisor
        .pd_subdivide(&host, far, Permission::Read)
        .unwrap();
    let error = record(&supervisor).unwrap_err();
    assert!(
        matches!(error, TraceRecordError::Beyond { number: 0, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("0x1000000000000"), "{error}");
}

fn call() -> impl Strategy<Value = Call> {
    let range =
        || (0..WORDS - 12, 1u64..12).prop_map(|(start, words)| Range::words(start, words).unwrap());
    let domain = || (0u32..5).prop_map(DomainId::new);
    let group = || (0u32..3).prop_map(GroupId::new);
    let permission = || {
        prop_oneof![
            Just(Permission::None),
            Just(Permission::Read),
            Just(Permission::ReadWrite),
            Just(Permission::ExecuteRead),
            Just(Permission::ReturnGate),
            domain().prop_map(|to| Permission::SwitchGate { to }),
        ]
    };
    let level = prop_oneof![Just(Level::None), Just(Level::Read), Just(Level::Full)];
    let target = prop_oneof![
        domain().prop_map(Subject::Domain),
        group().prop_map(Subject::Group)
    ];
    prop_oneof![
        3 => (range(), permission()).prop_map(|(range, permission)| Call::Mprot { range, permission }),
        4 => (target, range(), permission(), level).prop_map(|(target, range, permission, export)| {
            Call::MprotExport { target, range, permission, export }
        }),
        3 => (range(), permission()).prop_map(|(range, permission)| Call::PdSubdivide { range, permission }),
        1 => domain().prop_map(|target| Call::PdFree { target }),
        1 => range().prop_map(|range| Call::PermFree { range }),
        2 => (range(), domain()).prop_map(|(range, target)| Call::Chown { range, target }),
        1 => Just(Call::GroupCreate),
        1 => group().prop_map(|group| Call::GroupFree { group }),
        2 => group().prop_map(|group| Call::GroupJoin { group }),
        1 => group().prop_map(|group| Call::GroupLeave { group }),
    ]
}

/// A caller that nobody has called.
struct Alone(DomainId);

impl CallStack for Alone {
    fn current(&self) -> DomainId {
        self.0
    }

    fn previous(&self) -> Option<DomainId> {
        None
    }
}

proptest! {
    #[test]
    fn whatever_was_decided_is_replayed(calls in proptest::collection::vec((0u32..5, call()), 1..60)) {
        let mut supervisor = new();
        for (caller, call) in calls {
            let _refused = supervisor.call(&Alone(DomainId::new(caller)), call);
        }
        replay(&supervisor);
    }
}
