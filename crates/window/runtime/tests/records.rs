//! What the run time's supervisor says of domains.

mod support;

use mullion_picture::{PaintOptions, SupervisorState, paint};
use mullion_runtime::{Access, Limits, LinkOptions, PAGE, SharedPages, snapshot};
use mullion_supervisor::{DomainId, Order, Permission, Snapshot, Subject};
use support::{Program, host};

/// What the domain has on the word at this address.
fn permission(snapshot: &Snapshot, domain: DomainId, address: u64) -> Permission {
    let word = address / 4;
    let region = snapshot.regions.iter().find(|(range, _)| range.holds(word));
    let (_, holding) = region.unwrap();
    let subject = Subject::Domain(domain);
    let grant = holding.grants.iter().find(|(who, _)| *who == subject);
    grant.map_or(Permission::None, |(_, grant)| grant.access)
}

#[test]
fn the_records_follow_what_domains_may_do() {
    let program = Program::new(
        "
        import other
        .data
        value: .quad 1
        export value_at
            leaq value(%rip), %rax
            ret
        ",
    );
    let load = || program.load_with(vec![host(|_| Ok(0))], Limits::default());
    let (mut one, two) = (load(), load());
    let id = one.domain.recorded_as();
    let code = one.address("value_at");
    let data = one.call("value_at", &[]).unwrap().integer;
    let memory = one.domain.memory();
    let heap = memory.map(None, PAGE, Access::ReadWrite).unwrap();
    let object = SharedPages::new(PAGE).unwrap();
    let shared = object.bytes().as_ptr() as u64;
    let give = |to: &support::Loaded, access| {
        object.grant(&to.domain, 0..PAGE, access).unwrap();
    };
    give(&one, Access::ReadWrite);
    give(&two, Access::Read);
    let entry = mullion_runtime::Claimed(two.address("value_at"));
    let entry = two.domain.entry(entry).unwrap();
    let options = LinkOptions::default();
    one.domain.link(0, &two.domain, entry, options).unwrap();

    let records = snapshot();
    assert_eq!(records.order, Order::Strict);
    let base = one.domain.memory().base();
    for (address, expected) in [
        (code, Permission::ExecuteRead),
        (base + 0x1_0000, Permission::ExecuteRead),
        (data, Permission::ReadWrite),
        (heap, Permission::ReadWrite),
        (heap + PAGE, Permission::None),
        (base, Permission::None),
        (base + 0xff7f_fff0, Permission::ReadWrite),
        (shared, Permission::ReadWrite),
        (
            two.address("value_at"),
            Permission::SwitchGate {
                to: two.domain.recorded_as(),
            },
        ),
        (two.domain.memory().base() + 0x2_1000, Permission::None),
    ] {
        assert_eq!(permission(&records, id, address), expected, "{address:#x}");
    }
    let other = two.domain.recorded_as();
    assert_eq!(permission(&records, other, shared), Permission::Read);
    assert_eq!(permission(&records, other, data), Permission::None);

    one.domain.restart().unwrap();
    let records = snapshot();
    for (address, expected) in [
        (data, Permission::ReadWrite),
        (heap, Permission::None),
        (shared, Permission::None),
        // The thread's data stack stays mapped, and so it stands there.
        (base + 0xff7f_fff0, Permission::ReadWrite),
    ] {
        assert_eq!(permission(&records, id, address), expected, "{address:#x}");
    }
    drop(one);
    let records = snapshot();
    assert!(records.domains.iter().all(|domain| domain.id != id));
}

/// A window that goes from one domain to the next on another thread is no longer
/// the former's in the records.
#[test]
fn windows_change_hands_in_the_records_first() {
    let program = Program::new(
        "
        export nothing
            ret
        ",
    );
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    drop(program.load_with(Vec::new(), Limits::default()));
                }
            });
        }
    });
}

/// What `mullion map` does with the text.
#[test]
fn the_records_of_a_running_host_can_be_painted() {
    let program = Program::new(
        "
        import other
        export answer
            movl $42, %eax
            ret
        ",
    );
    let load = || program.load_with(vec![host(|_| Ok(0))], Limits::default());
    let (one, two) = (load(), load());
    let entry = mullion_runtime::Claimed(two.address("answer"));
    let entry = two.domain.entry(entry).unwrap();
    one.domain
        .link(0, &two.domain, entry, LinkOptions::default())
        .unwrap();
    let object = SharedPages::new(PAGE).unwrap();
    for (domain, access) in [(&one, Access::ReadWrite), (&two, Access::Read)] {
        object.grant(&domain.domain, 0..PAGE, access).unwrap();
    }
    let text = SupervisorState::from(&snapshot())
        .name(one.domain.recorded_as(), "the caller")
        .name(two.domain.recorded_as(), "the called one")
        .title("a running host")
        .to_json();
    let state: SupervisorState = serde_json::from_str(&text).unwrap();
    let picture = paint(&state.validate().unwrap(), &PaintOptions::default());
    for word in ["a running host", "the caller", "the called one"] {
        assert!(picture.contains(word), "{word}");
    }
}
