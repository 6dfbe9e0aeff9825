//! Every refusal there is: which error, by which rule, and that nothing has changed.

use crate::{Stack, words};
use mullion_recorder::Recorder;
use mullion_supervisor::{
    Call, CallStack, DomainId, Error, Family, GroupId, JoinRequest, Level, Order, Permission,
    Range, RangeError, Reply, Rule, Subject, Supervisor, Thread,
};

const ROOT: DomainId = DomainId::SUPERVISOR;
/// Owns words 0 to 7, made group 1 and is not in it.
const KERNEL: DomainId = DomainId::new(1);
/// Child of the kernel, owns words 8 to 11, in group 1.
const MODULE: DomainId = DomainId::new(2);
/// Child of the root, owns words 12 to 13.
const STRANGER: DomainId = DomainId::new(3);
/// Was a child of the root.
const DEAD: DomainId = DomainId::new(4);
const NEVER: DomainId = DomainId::new(5);
const GROUP: GroupId = GroupId::new(1);

/// A world with something of everything.
fn world() -> Supervisor<Recorder> {
    let mut s = Supervisor::with(words(0, 32), Recorder::new(), Family, Order::Paper);
    let rw = Permission::ReadWrite;
    assert_eq!(s.pd_subdivide(&ROOT, words(0, 12), rw), Ok(KERNEL));
    assert_eq!(s.pd_subdivide(&KERNEL, words(8, 4), rw), Ok(MODULE));
    assert_eq!(s.pd_subdivide(&ROOT, words(12, 2), rw), Ok(STRANGER));
    assert_eq!(s.pd_subdivide(&ROOT, words(14, 2), rw), Ok(DEAD));
    s.pd_free(&ROOT, DEAD).unwrap();
    assert_eq!(s.group_create(&KERNEL), Ok(GROUP));
    s.group_join(&MODULE, GROUP).unwrap();
    s.mprot_export(&KERNEL, GROUP, words(0, 1), rw).unwrap();
    s.mprot_export(&KERNEL, MODULE, words(1, 1), Permission::Read)
        .unwrap();
    s.mprot_export(&KERNEL, STRANGER, words(1, 1), rw).unwrap();
    s.mprot_export_up_to(&KERNEL, MODULE, words(2, 1), rw, Level::Read)
        .unwrap();
    s.mprot_export(&KERNEL, MODULE, words(3, 1), Permission::ExecuteRead)
        .unwrap();
    s
}

fn stack(current: DomainId, previous: impl Into<Option<DomainId>>) -> Stack {
    Stack {
        current,
        previous: previous.into(),
    }
}

fn export(target: impl Into<Subject>, range: Range, permission: Permission) -> Call {
    Call::MprotExport {
        target: target.into(),
        range,
        permission,
        export: Level::Full,
    }
}

fn alone(current: DomainId) -> Stack {
    stack(current, None)
}

/// Who calls what, and the whole error that must come of it.
fn refusals() -> Vec<(Stack, Call, Error)> {
    use Permission::{None as Nothing, Read, ReadWrite};
    let space = words(0, 32);
    let mprot = |range, permission| Call::Mprot { range, permission };
    let row = Rule::Row;
    let gate = Permission::SwitchGate { to: KERNEL };
    vec![
        (
            alone(KERNEL),
            mprot(words(30, 4), Read),
            Error::OutsideSpace {
                range: words(30, 4),
                space,
            },
        ),
        (
            alone(NEVER),
            mprot(words(0, 1), Read),
            Error::UnknownDomain { domain: NEVER },
        ),
        (
            alone(DEAD),
            mprot(words(0, 1), Read),
            Error::DeletedDomain { domain: DEAD },
        ),
        (
            alone(KERNEL),
            export(GroupId::new(9), words(0, 1), Read),
            Error::UnknownGroup {
                group: GroupId::new(9),
            },
        ),
        (
            alone(MODULE),
            mprot(words(1, 1), ReadWrite),
            Error::AboveOwn {
                rule: row(2),
                caller: MODULE,
                asked: ReadWrite,
                held: Read,
                at: words(1, 1),
            },
        ),
        (
            alone(STRANGER),
            export(KERNEL, words(1, 1), Read),
            Error::TargetOwns {
                rule: row(4),
                target: KERNEL,
                at: words(1, 1),
            },
        ),
        (
            alone(MODULE),
            export(STRANGER, words(1, 1), ReadWrite),
            Error::AboveOwn {
                rule: row(5),
                caller: MODULE,
                asked: ReadWrite,
                held: Read,
                at: words(1, 1),
            },
        ),
        (
            alone(MODULE),
            export(STRANGER, words(2, 1), ReadWrite),
            Error::AboveExport {
                rule: row(5),
                caller: MODULE,
                asked: ReadWrite,
                export: Level::Read,
                at: words(2, 1),
            },
        ),
        (
            alone(STRANGER),
            export(MODULE, words(1, 1), Nothing),
            Error::WouldLower {
                rule: row(5),
                target: MODULE.into(),
                asked: Nothing,
                held: Read,
                at: words(1, 1),
            },
        ),
        (
            alone(KERNEL),
            Call::PdSubdivide {
                range: words(1, 4),
                permission: Read,
            },
            Error::Shared {
                rule: row(6),
                holder: MODULE.into(),
                at: words(1, 1),
            },
        ),
        (
            alone(KERNEL),
            Call::PdSubdivide {
                range: words(0, 1),
                permission: Read,
            },
            Error::Shared {
                rule: row(6),
                holder: GROUP.into(),
                at: words(0, 1),
            },
        ),
        (
            alone(KERNEL),
            Call::PdSubdivide {
                range: words(6, 4),
                permission: Read,
            },
            Error::NotOwner {
                rule: row(7),
                caller: KERNEL,
                owner: MODULE,
                at: words(8, 2),
            },
        ),
        (alone(ROOT), Call::PdFree { target: ROOT }, Error::Root),
        (
            alone(ROOT),
            Call::PdFree { target: DEAD },
            Error::DeletedDomain { domain: DEAD },
        ),
        (
            alone(STRANGER),
            Call::PdFree { target: MODULE },
            Error::NotAncestor {
                caller: STRANGER,
                target: MODULE,
            },
        ),
        (
            alone(KERNEL),
            Call::PermAlloc { range: words(4, 1) },
            Error::NoCaller { domain: KERNEL },
        ),
        (
            stack(MODULE, KERNEL),
            Call::PermAlloc { range: words(1, 1) },
            Error::TargetOwns {
                rule: row(10),
                target: KERNEL,
                at: words(1, 1),
            },
        ),
        (
            stack(MODULE, STRANGER),
            Call::PermAlloc { range: words(1, 1) },
            Error::WouldLower {
                rule: row(11),
                target: STRANGER.into(),
                asked: Read,
                held: ReadWrite,
                at: words(1, 1),
            },
        ),
        (
            stack(MODULE, STRANGER),
            Call::PermAlloc { range: words(2, 1) },
            Error::AboveExport {
                rule: row(11),
                caller: MODULE,
                asked: ReadWrite,
                export: Level::Read,
                at: words(2, 1),
            },
        ),
        (
            alone(STRANGER),
            Call::PermFree { range: words(1, 1) },
            Error::NotOwner {
                rule: row(13),
                caller: STRANGER,
                owner: KERNEL,
                at: words(1, 1),
            },
        ),
        (
            alone(KERNEL),
            Call::Chown {
                range: words(6, 4),
                target: MODULE,
            },
            Error::NotOwner {
                rule: Rule::Ownership,
                caller: KERNEL,
                owner: MODULE,
                at: words(8, 2),
            },
        ),
        (
            alone(KERNEL),
            Call::Chown {
                range: words(1, 1),
                target: MODULE,
            },
            Error::Shared {
                rule: Rule::Ownership,
                holder: STRANGER.into(),
                at: words(1, 1),
            },
        ),
        (
            alone(KERNEL),
            Call::Chown {
                range: words(4, 1),
                target: KERNEL,
            },
            Error::TargetIsCaller { caller: KERNEL },
        ),
        (
            alone(MODULE),
            mprot(words(0, 1), Read),
            Error::HeldThroughGroup {
                domain: MODULE,
                group: GROUP,
                asked: Read,
                held: ReadWrite,
                at: words(0, 1),
            },
        ),
        (
            alone(KERNEL),
            export(MODULE, words(0, 1), Nothing),
            Error::HeldThroughGroup {
                domain: MODULE,
                group: GROUP,
                asked: Nothing,
                held: ReadWrite,
                at: words(0, 1),
            },
        ),
        (
            alone(MODULE),
            mprot(words(3, 1), gate),
            Error::ForeignGate {
                caller: MODULE,
                to: KERNEL,
                at: words(3, 1),
            },
        ),
        (
            alone(KERNEL),
            Call::GroupFree {
                group: GroupId::GLOBAL,
            },
            Error::GlobalGroup,
        ),
        (
            alone(KERNEL),
            Call::GroupLeave {
                group: GroupId::GLOBAL,
            },
            Error::GlobalGroup,
        ),
        (
            alone(KERNEL),
            Call::GroupJoin {
                group: GroupId::GLOBAL,
            },
            Error::GlobalGroup,
        ),
        (
            alone(STRANGER),
            Call::GroupJoin { group: GROUP },
            Error::JoinRefused {
                domain: STRANGER,
                group: GROUP,
            },
        ),
        (
            alone(MODULE),
            Call::GroupJoin { group: GROUP },
            Error::AlreadyMember {
                domain: MODULE,
                group: GROUP,
            },
        ),
        (
            alone(KERNEL),
            Call::GroupLeave { group: GROUP },
            Error::NotMember {
                domain: KERNEL,
                group: GROUP,
            },
        ),
        (
            alone(MODULE),
            Call::GroupFree { group: GROUP },
            Error::NotCreator {
                caller: MODULE,
                creator: KERNEL,
                group: GROUP,
            },
        ),
    ]
}

/// The message names the rule and the way out.
fn explains(error: Error) {
    let message = error.to_string();
    assert!(
        message.contains(&format!("[{}]; {}", error.rule(), error.way_out())),
        "{message}"
    );
    assert!(message.len() > 40 && !message.contains('\n'), "{message}");
}

#[test]
fn every_refusal_names_its_rule_and_changes_nothing() {
    let mut supervisor = world();
    let before = (supervisor.snapshot(), supervisor.mechanism().clone());
    for (stack, call, error) in refusals() {
        assert_eq!(supervisor.call(&stack, call), Err(error));
        assert_eq!(
            (supervisor.snapshot(), supervisor.mechanism().clone()),
            before,
            "{call:?}"
        );
        explains(error);
    }
}

#[test]
fn a_range_that_is_allowed_in_part_is_refused_as_a_whole() {
    let mut supervisor = world();
    let before = supervisor.snapshot();
    // The kernel owns words 0 to 7 and has nothing on 8 to 11.
    let error = supervisor
        .mprot(&KERNEL, words(0, 12), Permission::Read)
        .unwrap_err();
    assert_eq!(error.rule(), Rule::Row(2));
    assert_eq!(supervisor.snapshot(), before);
}

/// A thread as its callers see it.
fn seen(
    thread: &Thread,
) -> (
    DomainId,
    Option<DomainId>,
    Vec<mullion_supervisor::Frame>,
    Vec<bool>,
    u64,
) {
    let writable =
        (thread.stack().start()..thread.stack().end()).map(|word| thread.may_write(word));
    let frame = thread.registers().frame;
    (
        thread.current(),
        thread.previous(),
        thread.calls().to_vec(),
        writable.collect(),
        frame,
    )
}

#[test]
fn every_refusal_about_a_thread_changes_nothing() {
    let mut s = world();
    let gate = Permission::SwitchGate { to: KERNEL };
    s.mprot(&KERNEL, words(5, 1), gate).unwrap();
    s.mprot(&KERNEL, words(6, 1), Permission::ReturnGate)
        .unwrap();
    s.mprot_export(&KERNEL, MODULE, words(5, 1), gate).unwrap();
    // A gate into the kernel on a word that the kernel itself cannot execute.
    s.mprot(&KERNEL, words(7, 1), Permission::Read).unwrap();
    s.mprot_export(&KERNEL, MODULE, words(7, 1), gate).unwrap();
    let mut thread = s.thread_create(&MODULE, words(8, 4)).unwrap();
    let id = thread.id();
    let (word, from) = (6, 0x20);
    let before = (s.snapshot(), s.mechanism().clone(), seen(&thread));

    let refused = [
        (
            s.thread_create(&STRANGER, words(1, 2)).unwrap_err(),
            Error::StackMemory {
                caller: STRANGER,
                held: Permission::None,
                at: words(2, 1),
            },
        ),
        (
            s.thread_create(&MODULE, words(10, 2)).unwrap_err(),
            Error::StackInUse {
                range: words(10, 2),
                at: words(8, 4),
            },
        ),
        (
            s.stack_grant(&mut thread, words(7, 2), true).unwrap_err(),
            Error::OutsideStack {
                thread: id,
                range: words(7, 2),
                stack: words(8, 4),
            },
        ),
        (
            s.thread_call(&mut thread, 20, from, 10).unwrap_err(),
            Error::NotExecutable {
                domain: MODULE,
                word: 20,
                held: Permission::None,
            },
        ),
        (
            s.thread_call(&mut thread, 7, from, 10).unwrap_err(),
            Error::NotExecutable {
                domain: KERNEL,
                word: 7,
                held: Permission::Read,
            },
        ),
        (
            s.thread_call(&mut thread, 5, from, 7).unwrap_err(),
            Error::StackPointer {
                thread: id,
                pointer: 7,
                limit: 8,
                frame: 12,
            },
        ),
        (
            s.thread_return(&mut thread, word, from).unwrap_err(),
            Error::NotReturnGate {
                domain: MODULE,
                word,
                held: Permission::None,
            },
        ),
    ];
    for (error, expected) in refused {
        assert_eq!(error, expected);
        explains(error);
    }
    assert_eq!((s.snapshot(), s.mechanism().clone(), seen(&thread)), before);

    s.mprot_export(&KERNEL, MODULE, words(6, 1), Permission::ReturnGate)
        .unwrap();
    let error = s.thread_return(&mut thread, 6, from).unwrap_err();
    assert_eq!(error, Error::NothingToReturn { thread: id });
    explains(error);

    s.thread_call(&mut thread, 5, from, 10).unwrap();
    let before = (s.snapshot(), s.mechanism().clone(), seen(&thread));
    let refused = [
        (
            s.thread_return(&mut thread, 6, from + 4).unwrap_err(),
            Error::WrongReturn {
                thread: id,
                asked: from + 4,
                expected: from,
            },
        ),
        (
            s.stack_grant(&mut thread, words(9, 2), true).unwrap_err(),
            Error::EarlierFrame {
                thread: id,
                range: words(9, 2),
                frame: 10,
            },
        ),
    ];
    for (error, expected) in refused {
        assert_eq!(error, expected);
        explains(error);
    }
    assert_eq!((s.snapshot(), s.mechanism().clone(), seen(&thread)), before);
}

#[test]
fn ranges_that_are_none_never_reach_the_supervisor() {
    for (error, text) in [
        (Range::bytes(2, 8).unwrap_err(), "multiples of 4"),
        (Range::bytes(8, 0).unwrap_err(), "empty"),
        (Range::bytes(u64::MAX - 3, 8).unwrap_err(), "past the end"),
    ] {
        assert!(error.to_string().contains(text), "{error}");
        assert_eq!(Error::from(error), Error::Range(error));
        explains(Error::Range(error));
    }
    assert!(matches!(
        Range::words(1 << 62, 1),
        Err(RangeError::Overflow { .. })
    ));
}

#[test]
fn the_policy_hook_decides_who_joins() {
    let strangers_only =
        |request: &JoinRequest| !request.descendant && request.domain != request.creator;
    let mut s = Supervisor::with(words(0, 8), Recorder::new(), strangers_only, Order::Paper);
    let kernel = s
        .pd_subdivide(&ROOT, words(0, 4), Permission::ReadWrite)
        .unwrap();
    let module = s
        .pd_subdivide(&kernel, words(0, 1), Permission::ReadWrite)
        .unwrap();
    let stranger = s
        .pd_subdivide(&ROOT, words(4, 1), Permission::ReadWrite)
        .unwrap();
    let group = s.group_create(&kernel).unwrap();
    assert_eq!(
        s.group_join(&module, group),
        Err(Error::JoinRefused {
            domain: module,
            group
        })
    );
    assert_eq!(s.group_join(&stranger, group), Ok(()));
    assert_eq!(s.members(group), Ok(vec![stranger]));
}

#[test]
fn the_audit_log_keeps_the_latest_decisions_and_is_off_until_asked_for() {
    let mut s = world();
    assert!(s.audit().is_none());
    s.start_audit(2);
    let calls = [
        (KERNEL, words(0, 1)),
        (KERNEL, words(1, 1)),
        (STRANGER, words(2, 1)),
    ];
    for (caller, range) in calls {
        let _ = s.mprot(&caller, range, Permission::Read);
    }
    let log = s.stop_audit().unwrap();
    assert!(s.audit().is_none());
    assert_eq!(log.total(), 3);
    let kept: Vec<_> = log
        .iter()
        .map(|decision| (decision.number, decision.caller, decision.outcome))
        .collect();
    assert_eq!(kept[0], (1, KERNEL, Ok(Reply::Done)));
    assert_eq!((kept[1].0, kept[1].1), (2, STRANGER));
    assert_eq!(kept[1].2.unwrap_err().rule(), Rule::Row(2));
}
