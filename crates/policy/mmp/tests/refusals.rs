//! Refusals name what the trace named, and the place in the file.

use mullion_mmp::config::Config;
use mullion_mmp::event::{TraceEvent, TraceRequest, TraceSpan, TraceTarget};
use mullion_mmp::machine::{Machine, MachineRefusal};
use mullion_mmp::trace::{Header, TraceReader, TraceWriter};
use mullion_supervisor::{DomainId, Level, Permission};

const KERNEL: u32 = 70;
const DRIVER: u32 = 9;
const FILES: u32 = 12;
const GROUP: u32 = 33;
const THREAD: u32 = 500;
const OTHER_THREAD: u32 = 400;

fn ask(request: TraceRequest) -> TraceEvent {
    TraceEvent::Supervisor(request)
}

fn span(address: u64, bytes: u64) -> TraceSpan {
    TraceSpan { address, bytes }
}

fn gate(to: u32) -> Permission {
    Permission::SwitchGate {
        to: DomainId::new(to),
    }
}

/// A kernel with two modules below it. The supervisor counts them 1, 2, 3; the threads 0 and 1; the group 1.
fn world() -> Vec<TraceEvent> {
    let subdivide = |child, span, permission| {
        ask(TraceRequest::Subdivide {
            child,
            span,
            permission,
        })
    };
    let stack = span(0xf_0000, 0x400);
    vec![
        subdivide(KERNEL, span(0, 1 << 20), Permission::ReadWrite),
        ask(TraceRequest::CreateThread {
            thread: THREAD,
            domain: KERNEL,
            stack: span(0xe_0000, 0x400),
        }),
        TraceEvent::Switch { thread: THREAD },
        subdivide(DRIVER, span(0x1_0000, 0x1000), Permission::ExecuteRead),
        subdivide(FILES, span(0x2_0000, 0x1000), Permission::ExecuteRead),
        ask(TraceRequest::CreateGroup { group: GROUP }),
        ask(TraceRequest::MprotExport {
            to: TraceTarget::Domain(DRIVER),
            span: stack,
            permission: Permission::ReadWrite,
            export: Level::Full,
        }),
        ask(TraceRequest::CreateThread {
            thread: OTHER_THREAD,
            domain: DRIVER,
            stack,
        }),
        TraceEvent::Switch {
            thread: OTHER_THREAD,
        },
    ]
}

/// Writes the events into a file, runs the file, and gives what was refused with the file's bytes.
fn refused(more: &[TraceEvent]) -> (Vec<MachineRefusal>, Vec<u8>) {
    let header = Header {
        address_bits: 20,
        note: String::new(),
    };
    let mut writer = TraceWriter::new(Vec::new(), &header).unwrap();
    for event in world().iter().chain(more) {
        writer.write(event).unwrap();
    }
    let file = writer.finish().unwrap();
    let mut reader = TraceReader::new(&file[..]).unwrap();
    let mut machine = Machine::new(&Config::default(), 20).unwrap();
    while let Some(block) = reader.next_block().unwrap() {
        let mut events = block.events();
        let mut at = events.position();
        while let Some(event) = events.next() {
            machine.step_at(at, &event.unwrap()).unwrap();
            at = events.position();
        }
    }
    (machine.report().refusals, file)
}

/// The one refusal of one event.
fn refusal(event: TraceEvent) -> String {
    let (refusals, _) = refused(&[event]);
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    let text = refusals[0].to_string();
    let begin = text.find(": domain").unwrap();
    text[begin + 2..].to_owned()
}

#[test]
fn an_access_names_the_traces_domain_and_thread() {
    let text = refusal(TraceEvent::Store {
        address: 0x2_0000,
        bytes: 4,
    });
    assert_eq!(text, "domain 9, thread 400: write of 0x20000, held is none");
}

#[test]
fn reasons_of_the_supervisor_name_the_traces_domains() {
    let chown = ask(TraceRequest::Chown {
        to: FILES,
        span: span(0x3_0000, 4),
    });
    let text = refusal(chown);
    assert!(
        text.starts_with(
            "domain 9, thread 400: chown: domain 9 does not own 0x30000..0x30004, domain 70 does"
        ),
        "{text}"
    );
    let text = refusal(ask(TraceRequest::FreeDomain { domain: FILES }));
    assert!(text.contains("domain 9 is not above domain 12"), "{text}");
    let foreign = ask(TraceRequest::Mprot {
        span: span(0x1_0000, 4),
        permission: gate(FILES),
    });
    let text = refusal(foreign);
    assert!(
        text.contains("domain 9 may not place a gate into domain 12"),
        "{text}"
    );
}

#[test]
fn reasons_name_the_traces_groups_and_threads() {
    let text = refusal(ask(TraceRequest::LeaveGroup { group: GROUP }));
    assert!(text.contains("domain 9 is not in group 33"), "{text}");
    let text = refusal(ask(TraceRequest::FreeGroup { group: GROUP }));
    assert!(
        text.contains("domain 9 did not make group 33, domain 70 did"),
        "{text}"
    );
    let outside = ask(TraceRequest::StackGrant {
        span: span(0x3_0000, 4),
        writable: true,
    });
    let text = refusal(outside);
    assert!(text.contains("of thread 400"), "{text}");
}

#[test]
fn a_permission_that_is_held_names_the_traces_domain() {
    // Into itself is allowed; what it holds then is told by the refusal of a store.
    let own = ask(TraceRequest::Mprot {
        span: span(0x1_0000, 4),
        permission: gate(DRIVER),
    });
    let store = TraceEvent::Store {
        address: 0x1_0000,
        bytes: 4,
    };
    let (refusals, _) = refused(&[own, store]);
    let text = refusals[0].to_string();
    assert!(
        text.contains("the supervisor says switch gate to domain 9"),
        "{text}"
    );
}

#[test]
fn a_refusal_says_where_in_the_file_its_event_is() {
    let load = |address| TraceEvent::Load { address, bytes: 4 };
    let (refusals, file) = refused(&[load(0x1_0000), load(0x2_0000), load(0x3_0000)]);
    let events: Vec<u64> = refusals.iter().map(|refusal| refusal.event).collect();
    assert_eq!(events, [10, 11]);
    // A load of four bytes begins with this byte: kind 1, two as the logarithm. The last one, with its
    // difference of 0x10000, ends where the file's end of 24 bytes begins.
    let bytes: Vec<u64> = refusals.iter().filter_map(|refusal| refusal.byte).collect();
    assert!(bytes.iter().all(|at| file[*at as usize] == 1 | 2 << 3));
    assert_eq!(bytes[1], bytes[0] + 4);
    assert_eq!(bytes[1] + 4 + 24, file.len() as u64);
    let text = refusals[1].to_string();
    assert!(
        text.starts_with(&format!("event 11 at byte {:#x}: domain 9", bytes[1])),
        "{text}"
    );
}
