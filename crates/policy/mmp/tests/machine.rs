//! The machine against a naive checker, access by access; and its cycles against sums made by hand.

mod naive;

use mullion_mmp::config::Config;
use mullion_mmp::event::{TraceEvent, TraceRequest, TraceSpan, TraceTarget};
use mullion_mmp::machine::{Machine, MachineError, RefusedAccess};
use mullion_mmp::measurement::Cycles;
use mullion_mmp::synth::{self, Params};
use mullion_mmp::table::Format;
use mullion_supervisor::{DomainId, Level, Permission};
use naive::Naive;
use proptest::prelude::*;

/// A world small enough that random events meet: 1 MiB.
const BITS: u32 = 20;

/// Machines that must all answer the same: every format, without a buffer, with one that thrashes, with
/// the usual one; with a gate buffer that thrashes; with and without shared subtrees.
fn machines(address_bits: u32) -> Vec<Machine> {
    let mut machines = Vec::new();
    for format in Format::ALL {
        for (plb, glb, share) in [(0, 1, true), (3, 2, false), (64, 64, true)] {
            let mut config = Config::default();
            config.tables.format = format;
            config.tables.share_groups = share;
            config.plb.entries = plb;
            config.glb.entries = glb;
            config.caches.instruction.bytes = 1024;
            machines.push(Machine::new(&config, address_bits).unwrap());
        }
    }
    machines
}

/// Runs events on all machines and the checker; how many accesses and calls were refused.
fn agree(events: &[TraceEvent], address_bits: u32) -> Result<(u64, u64), String> {
    let mut naive = Naive::new(address_bits);
    let mut machines = machines(address_bits);
    for (index, event) in events.iter().enumerate() {
        naive.step(event);
        for machine in &mut machines {
            machine.step(event).map_err(|error| error.to_string())?;
            let got = (
                machine.refused_accesses(),
                machine.refused_calls(),
                machine.domain(),
            );
            let expected = (
                naive.refused_accesses,
                naive.refused_calls,
                naive.domain().get(),
            );
            if got != expected {
                let report = machine.report();
                return Err(format!(
                    "event {index} {event:?}: machine {got:?}, checker {expected:?}, {:?}, last {:?}",
                    report.config.tables.format,
                    report.refusals.last()
                ));
            }
        }
    }
    Ok((naive.refused_accesses, naive.refused_calls))
}

fn ask(request: TraceRequest) -> TraceEvent {
    TraceEvent::Supervisor(request)
}

fn span(address: u64, bytes: u64) -> TraceSpan {
    TraceSpan { address, bytes }
}

/// Two modules below a kernel, a thread in each, gates between them, a group: the start of every random
/// trace.
fn small_world() -> Vec<TraceEvent> {
    let gate = |to| Permission::SwitchGate {
        to: DomainId::new(to),
    };
    let mut events = vec![ask(TraceRequest::Subdivide {
        child: 1,
        span: span(0, 1 << BITS),
        permission: Permission::ReadWrite,
    })];
    for thread in 0..2 {
        events.push(ask(TraceRequest::CreateThread {
            thread,
            domain: 1,
            stack: span(0xe0000 + u64::from(thread) * 0x400, 0x400),
        }));
    }
    events.push(TraceEvent::Switch { thread: 0 });
    for child in 2..4 {
        let base = u64::from(child) * 0x10000;
        events.push(ask(TraceRequest::Subdivide {
            child,
            span: span(base, 0x2000),
            permission: Permission::ExecuteRead,
        }));
        let stack = span(0xf0000 + u64::from(child) * 0x400, 0x400);
        events.push(ask(TraceRequest::MprotExport {
            to: TraceTarget::Domain(child),
            span: stack,
            permission: Permission::ReadWrite,
            export: Level::Full,
        }));
        events.push(ask(TraceRequest::CreateThread {
            thread: child,
            domain: child,
            stack,
        }));
    }
    events.push(ask(TraceRequest::CreateGroup { group: 1 }));
    for domain in 1..4 {
        events.push(TraceEvent::Switch {
            thread: [0, 0, 2, 3][domain as usize],
        });
        let base = u64::from(domain) * 0x10000;
        for (place, permission) in [(0, gate(domain)), (0x80, Permission::ReturnGate)] {
            events.push(ask(TraceRequest::Mprot {
                span: span(base + place, 4),
                permission,
            }));
        }
        events.push(ask(TraceRequest::MprotExport {
            to: TraceTarget::Group(0),
            span: span(base, 4),
            permission: gate(domain),
            export: Level::Full,
        }));
        events.push(ask(TraceRequest::JoinGroup { group: 1 }));
    }
    events.push(TraceEvent::Switch { thread: 0 });
    events
}

/// Addresses that matter, and some around them.
fn place() -> impl Strategy<Value = u64> {
    let domain = (1u64..4).prop_map(|domain| domain * 0x10000);
    prop_oneof![
        6 => (domain, 0u64..0x100).prop_map(|(base, offset)| base + offset),
        3 => (1u64..4, 0u64..0x2000).prop_map(|(domain, offset)| domain * 0x10000 + offset),
        3 => 0xe0000u64..0xe0800,
        2 => 0xf0800u64..0xf1000,
        2 => 0x80000u64..0x81000,
        1 => 0u64..(1 << BITS) - 256,
    ]
}

fn any_span() -> impl Strategy<Value = TraceSpan> {
    let bytes = prop_oneof![4 => Just(4u64), 4 => (1u64..64).prop_map(|words| words * 4), 1 => Just(0x1000), 1 => 0u64..9];
    (place(), bytes, 0u8..20).prop_map(|(address, bytes, odd)| {
        let address = if odd == 0 { address } else { address & !3 };
        span(address, bytes)
    })
}

fn any_permission() -> impl Strategy<Value = Permission> {
    prop_oneof![
        3 => Just(Permission::None),
        3 => Just(Permission::Read),
        3 => Just(Permission::ReadWrite),
        3 => Just(Permission::ExecuteRead),
        1 => Just(Permission::ReturnGate),
        1 => (0u32..5).prop_map(|to| Permission::SwitchGate { to: DomainId::new(to) }),
    ]
}

fn any_request() -> impl Strategy<Value = TraceRequest> {
    let domain = 0u32..6;
    let group = 0u32..3;
    prop_oneof![
        3 => (any_span(), any_permission()).prop_map(|(span, permission)| TraceRequest::Mprot { span, permission }),
        6 => (domain.clone(), any::<bool>(), any_span(), any_permission()).prop_map(|(to, group, span, permission)| {
            let to = if group { TraceTarget::Group(to % 3) } else { TraceTarget::Domain(to) };
            TraceRequest::MprotExport { to, span, permission, export: Level::Full }
        }),
        1 => (3u32..6, any_span(), any_permission())
            .prop_map(|(child, span, permission)| TraceRequest::Subdivide { child, span, permission }),
        1 => domain.clone().prop_map(|domain| TraceRequest::FreeDomain { domain }),
        3 => any_span().prop_map(|span| TraceRequest::PermAlloc { span }),
        3 => any_span().prop_map(|span| TraceRequest::PermFree { span }),
        1 => (domain.clone(), any_span()).prop_map(|(to, span)| TraceRequest::Chown { to, span }),
        1 => group.clone().prop_map(|group| TraceRequest::CreateGroup { group }),
        1 => group.clone().prop_map(|group| TraceRequest::FreeGroup { group }),
        1 => group.clone().prop_map(|group| TraceRequest::JoinGroup { group }),
        1 => group.prop_map(|group| TraceRequest::LeaveGroup { group }),
        1 => (2u32..6, domain, any_span())
            .prop_map(|(thread, domain, stack)| TraceRequest::CreateThread { thread, domain, stack }),
        1 => (0u32..6).prop_map(|thread| TraceRequest::EndThread { thread }),
        4 => (any_span(), any::<bool>()).prop_map(|(span, writable)| TraceRequest::StackGrant { span, writable }),
    ]
}

fn any_event() -> impl Strategy<Value = TraceEvent> {
    let entry = prop_oneof![8 => (1u64..4).prop_map(|domain| domain * 0x10000), 1 => place()];
    let exit = prop_oneof![8 => (1u64..4).prop_map(|domain| domain * 0x10000 + 0x80), 1 => place()];
    // Few return addresses and stack pointers, so that calls and returns match often.
    let back = prop_oneof![9 => Just(0x10040u64), 1 => place()];
    let stack = prop_oneof![
        8 => (0u64..0x100).prop_map(|word| 0xe0000 + word * 4),
        4 => (0u64..0x100).prop_map(|word| 0xf0800 + word * 4),
        1 => place(),
    ];
    prop_oneof![
        6 => (place(), 1u32..80).prop_map(|(address, bytes)| TraceEvent::Fetch { address, bytes, instructions: 1 + bytes / 4 % bytes.max(1) }),
        6 => (place(), 1u32..32).prop_map(|(address, bytes)| TraceEvent::Load { address, bytes }),
        8 => (place(), 1u32..32).prop_map(|(address, bytes)| TraceEvent::Store { address, bytes }),
        4 => (entry, back.clone(), stack)
            .prop_map(|(target, return_address, stack)| TraceEvent::Call { target, return_address, stack }),
        3 => (exit, back).prop_map(|(at, target)| TraceEvent::Return { at, target }),
        1 => (0u32..6).prop_map(|thread| TraceEvent::Switch { thread }),
        8 => any_request().prop_map(TraceEvent::Supervisor),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn all_machines_agree_with_the_checker(events in proptest::collection::vec(any_event(), 1..250)) {
        let mut all = small_world();
        all.extend(events);
        if let Err(difference) = agree(&all, BITS) {
            return Err(TestCaseError::fail(difference));
        }
    }
}

#[test]
fn the_small_world_itself_is_allowed() {
    let mut events = small_world();
    // Into a module and back, with a store to a granted word of the caller's frame on the way.
    events.extend([
        ask(TraceRequest::StackGrant {
            span: span(0xe0200, 4),
            writable: true,
        }),
        TraceEvent::Call {
            target: 0x20000,
            return_address: 0x10040,
            stack: 0xe0100,
        },
        TraceEvent::Fetch {
            address: 0x20000,
            bytes: 64,
            instructions: 20,
        },
        TraceEvent::Store {
            address: 0xe0200,
            bytes: 4,
        },
        TraceEvent::Load {
            address: 0xe0204,
            bytes: 4,
        },
        TraceEvent::Return {
            at: 0x20080,
            target: 0x10040,
        },
    ]);
    assert_eq!(agree(&events, BITS), Ok((0, 0)));
    let mut machine = Machine::new(&Config::default(), BITS).unwrap();
    for event in &events {
        machine.step(event).unwrap();
    }
    assert_eq!(machine.report().crossings.calls, 1);
    assert_eq!(machine.report().crossings.returns, 1);
    assert_eq!(machine.domain(), 1);
}

/// A realistic trace with wild stores in it: everyone refuses exactly those.
#[test]
fn a_synthetic_program_is_judged_alike() {
    let params = Params {
        events: 150_000,
        faults_per_megacycle: 200.0,
        allocations_per_megacycle: 300.0,
        loans_per_megacycle: 200.0,
        grants_per_megacycle: 200.0,
        calls_per_kilocycle: 5.0,
        switch_period: 5_000,
        ..Params::default()
    };
    let events = synth::events(&params).unwrap();
    let (accesses, calls) = agree(&events, synth::ADDRESS_BITS).unwrap();
    assert!(accesses > 20, "{accesses} wild stores");
    assert_eq!(calls, 0);
}

#[test]
fn a_synthetic_program_without_faults_is_never_refused() {
    for seed in 0..4 {
        let params = Params {
            events: 400_000,
            seed,
            allocations_per_megacycle: 100.0,
            loans_per_megacycle: 100.0,
            grants_per_megacycle: 100.0,
            ..Params::default()
        };
        let mut machine = Machine::new(&Config::default(), synth::ADDRESS_BITS).unwrap();
        synth::generate(&params, |event| machine.step(&event)).unwrap();
        let report = machine.report();
        assert_eq!(report.events, params.events);
        assert_eq!(report.refusals, []);
        assert!(report.crossings.calls > 100);
    }
}

/// Coarser granules open more, never less: the program still runs, and words are open that were not given.
#[test]
fn coarse_granules_open_more() {
    for granularity in [64, 4096] {
        let params = Params {
            events: 200_000,
            allocations_per_megacycle: 500.0,
            ..Params::default()
        };
        let mut config = Config::default();
        config.tables.granularity = granularity;
        let mut machine = Machine::new(&config, synth::ADDRESS_BITS).unwrap();
        synth::generate(&params, |event| machine.step(&event)).unwrap();
        let report = machine.report();
        assert_eq!(report.refused_accesses, 0);
        assert!(report.exposed_words > 0);
    }
}

/// The kernel alone: the start of the sums below.
fn kernel() -> (Machine, Cycles) {
    let mut machine = Machine::new(&Config::default(), 32).unwrap();
    let start = [
        ask(TraceRequest::Subdivide {
            child: 1,
            span: span(0, 1 << 32),
            permission: Permission::ReadWrite,
        }),
        ask(TraceRequest::CreateThread {
            thread: 0,
            domain: 1,
            stack: span(0xf000_0000, 0x2000),
        }),
        TraceEvent::Switch { thread: 0 },
        ask(TraceRequest::Mprot {
            span: span(0x40_0000, 0x40_0000),
            permission: Permission::ExecuteRead,
        }),
    ];
    for event in &start {
        machine.step(event).unwrap();
    }
    let cycles = machine.report().cycles;
    assert_eq!(machine.report().refusals, []);
    (machine, cycles)
}

/// What some events cost, in all.
fn cost(machine: &mut Machine, before: &mut Cycles, events: &[TraceEvent]) -> Cycles {
    for event in events {
        machine.step(event).unwrap();
    }
    let after = machine.report().cycles;
    let cost = Cycles {
        instructions: after.instructions - before.instructions,
        stalls: after.stalls - before.stalls,
        plb: after.plb - before.plb,
        glb: after.glb - before.glb,
        crossing: after.crossing - before.crossing,
        top: after.top - before.top,
        bottom: after.bottom - before.bottom,
        idle: after.idle - before.idle,
    };
    *before = after;
    cost
}

#[test]
fn a_fetch_and_a_load_by_hand() {
    let (mut machine, mut before) = kernel();
    let fetch = TraceEvent::Fetch {
        address: 0x40_0000,
        bytes: 16,
        instructions: 4,
    };
    let first = cost(&mut machine, &mut before, &[fetch]);
    let expected = Cycles {
        instructions: 4,
        // The line misses both levels.
        stalls: 16 + 200,
        // A root entry, which the bottom half has just written, so that its line is in the data cache.
        plb: 1,
        // An empty slot of the gate table, which was just cleared.
        glb: 1,
        ..Cycles::default()
    };
    assert_eq!(first, expected);
    // Again: the line and the permission are there, and the line is known to have no gates.
    let again = cost(&mut machine, &mut before, &[fetch]);
    let expected = Cycles {
        instructions: 4,
        ..Cycles::default()
    };
    assert_eq!(again, expected);
    // A load elsewhere: the line misses, the permission is another root entry.
    let load = TraceEvent::Load {
        address: 0x80_0000,
        bytes: 4,
    };
    let load = cost(&mut machine, &mut before, &[load]);
    let expected = Cycles {
        stalls: 216,
        plb: 1,
        ..Cycles::default()
    };
    assert_eq!(load, expected);
    // The stack registers answer for the stack: no table is asked.
    let store = TraceEvent::Store {
        address: 0xf000_1000,
        bytes: 4,
    };
    let store = cost(&mut machine, &mut before, &[store]);
    let expected = Cycles {
        stalls: 216,
        ..Cycles::default()
    };
    assert_eq!(store, expected);
}

#[test]
fn a_changed_word_by_hand() {
    let (mut machine, mut before) = kernel();
    let load = TraceEvent::Load {
        address: 0x80_1000,
        bytes: 4,
    };
    cost(&mut machine, &mut before, &[load]);
    let mprot = ask(TraceRequest::Mprot {
        span: span(0x80_1000, 4),
        permission: Permission::Read,
    });
    let change = cost(&mut machine, &mut before, &[mprot]);
    // The top half: one call, one range.
    assert_eq!(change.top, 300 + 60);
    // The bottom half reads the root entry, clears and fills a middle table (1024 + 1024) and links it,
    // reads its entry, clears and fills a leaf (64 + 64) and links it, reads and writes the leaf's word:
    // 2 cycles for each. The tables are new: 64 and 4 lines miss both levels, the rest hits. 30 for the
    // range, 1 for the flush.
    let words = 1 + 2048 + 1 + 1 + 128 + 1 + 1 + 1;
    assert_eq!(change.bottom, 30 + 2 * words + 68 * 216 + 1);
    // The next load misses in the buffer and walks three levels, all in the data cache.
    let after = cost(&mut machine, &mut before, &[load]);
    let expected = Cycles {
        plb: 3,
        ..Cycles::default()
    };
    assert_eq!(after, expected);
}

#[test]
fn a_cross_domain_call_by_hand() {
    let (mut machine, mut before) = kernel();
    let gate = Permission::SwitchGate {
        to: DomainId::new(1),
    };
    let events = [
        ask(TraceRequest::Mprot {
            span: span(0x40_0000, 4),
            permission: gate,
        }),
        ask(TraceRequest::Mprot {
            span: span(0x40_0020, 4),
            permission: Permission::ReturnGate,
        }),
        TraceEvent::Fetch {
            address: 0x40_0000,
            bytes: 64,
            instructions: 16,
        },
    ];
    cost(&mut machine, &mut before, &events);
    let call = TraceEvent::Call {
        target: 0x40_0000,
        return_address: 0x40_1005,
        stack: 0xf000_1ff0,
    };
    let called = cost(&mut machine, &mut before, &[call]);
    let expected = Cycles {
        // Two words of a new line of the call stack: the frame base is not stored, the domain is the same.
        crossing: 5 + 216,
        ..Cycles::default()
    };
    assert_eq!(called, expected);
    let back = TraceEvent::Return {
        at: 0x40_0020,
        target: 0x40_1005,
    };
    let returned = cost(&mut machine, &mut before, &[back]);
    let expected = Cycles {
        crossing: 5,
        ..Cycles::default()
    };
    assert_eq!(returned, expected);
    let crossings = machine.report().crossings;
    assert_eq!((crossings.calls, crossings.to_other), (1, 0));
    assert_eq!((crossings.returns, crossings.deepest), (1, 1));
}

#[test]
fn the_report_adds_up() {
    let params = Params {
        events: 300_000,
        ..Params::default()
    };
    let mut machine = Machine::new(&Config::default(), synth::ADDRESS_BITS).unwrap();
    synth::generate(&params, |event| machine.step(&event)).unwrap();
    let report = machine.report();
    let cycles = report.cycles;
    let parts = cycles.instructions
        + cycles.stalls
        + cycles.plb
        + cycles.glb
        + cycles.crossing
        + cycles.top
        + cycles.bottom
        + cycles.idle;
    assert_eq!(cycles.total(), parts);
    let slowdown = report.slowdown().unwrap();
    let sum = report.kernel().unwrap() + report.share(cycles.bottom) + report.share(cycles.top);
    assert!((slowdown - sum).abs() < 1e-9);
    assert!(slowdown > 0.0);
    let text = report.render("name").unwrap();
    for part in ["Table 5", "Table 6", "Table 8", "paper: thttpd", "14.8%"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn a_refused_access_says_who_where_what_and_when() {
    let (mut machine, _) = kernel();
    machine
        .step(&ask(TraceRequest::Subdivide {
            child: 2,
            span: span(0x1000_0000, 0x1000),
            permission: Permission::Read,
        }))
        .unwrap();
    machine
        .step(&TraceEvent::Store {
            address: 0x0fff_fffc,
            bytes: 8,
        })
        .unwrap();
    let report = machine.report();
    assert_eq!((report.refused_accesses, report.refused_calls), (1, 0));
    let refusal = &report.refusals[0];
    assert_eq!((refusal.event, refusal.domain), (5, 1));
    assert!(
        matches!(
            refusal.what,
            RefusedAccess::Access {
                address: 0x1000_0000,
                ..
            }
        ),
        "{refusal}"
    );
    assert_eq!(
        refusal.to_string(),
        "event 5: domain 1, thread 0: write of 0x10000000, held is none"
    );
}

#[test]
fn tables_beyond_their_limit_end_the_run() {
    let mut config = Config::default();
    config.tables.limit_bytes = 10_000;
    let mut machine = Machine::new(&config, 32).unwrap();
    let subdivide = |child, address| {
        ask(TraceRequest::Subdivide {
            child,
            span: span(address, 4),
            permission: Permission::Read,
        })
    };
    // A root table alone fits; a middle table and a leaf besides do not.
    let result = machine
        .step(&subdivide(1, 0))
        .and(machine.step(&subdivide(2, 4)));
    let error = result.unwrap_err();
    assert!(matches!(
        error,
        MachineError::TableMemory { limit: 10_000, .. }
    ));
}

#[test]
fn a_machine_too_narrow_for_its_trace_is_refused() {
    let mut config = Config::default();
    config.tables.address_bits = Some(24);
    let error = Machine::new(&config, 32).unwrap_err();
    let expected = MachineError::AddressBits {
        configured: 24,
        trace: 32,
    };
    assert_eq!(error, expected);
}
