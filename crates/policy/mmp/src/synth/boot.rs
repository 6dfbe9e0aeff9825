//! How the program starts: the supervisor makes the kernel, the kernel makes modules, each module places
//! its gates.

use super::layout::{self, EXPORTS, GROUP, KERNEL};
use super::program::Program;
use crate::event::{TraceEvent, TraceRequest, TraceSpan, TraceTarget};
use mullion_supervisor::{DomainId, Level, Permission};

/// Numbers of the threads on which modules start.
const FIRST_START_THREAD: u32 = 1000;

/// Puts the events of the start into the program.
pub(super) fn boot(program: &mut Program) {
    let params = program.params().clone();
    let everything = TraceSpan {
        address: 0,
        bytes: 1 << super::ADDRESS_BITS,
    };
    program.ask(TraceRequest::Subdivide {
        child: KERNEL,
        span: everything,
        permission: Permission::ReadWrite,
    });
    for thread in 0..params.threads {
        program.ask(TraceRequest::CreateThread {
            thread,
            domain: KERNEL,
            stack: layout::stack(thread),
        });
    }
    program.push(TraceEvent::Switch { thread: 0 });
    // The paper's kernel text is one large region.
    program.ask(TraceRequest::Mprot {
        span: TraceSpan {
            address: layout::text(KERNEL),
            bytes: 4 << 20,
        },
        permission: Permission::ExecuteRead,
    });
    gates(program, KERNEL);
    program.ask(TraceRequest::CreateGroup { group: GROUP });
    for module in 0..params.modules {
        start_module(program, KERNEL + 1 + module);
    }
    for object in 0..u64::from(params.shared_objects) {
        program.ask(TraceRequest::MprotExport {
            to: TraceTarget::Group(GROUP),
            span: layout::shared(object),
            permission: Permission::Read,
            export: Level::Full,
        });
    }
}

fn start_module(program: &mut Program, domain: u32) {
    let params = program.params().clone();
    let page = 4096;
    let text = TraceSpan {
        address: layout::text(domain),
        bytes: params.text.next_multiple_of(page),
    };
    let data = TraceSpan {
        address: layout::data(domain),
        bytes: params.working_set.next_multiple_of(page),
    };
    let stack = layout::start_stack(domain);
    program.ask(TraceRequest::Subdivide {
        child: domain,
        span: text,
        permission: Permission::ExecuteRead,
    });
    for span in [data, stack] {
        program.ask(TraceRequest::MprotExport {
            to: TraceTarget::Domain(domain),
            span,
            permission: Permission::ReadWrite,
            export: Level::Full,
        });
        program.ask(TraceRequest::Chown { to: domain, span });
    }
    let thread = FIRST_START_THREAD + domain;
    program.ask(TraceRequest::CreateThread {
        thread,
        domain,
        stack,
    });
    program.push(TraceEvent::Switch { thread });
    gates(program, domain);
    program.ask(TraceRequest::JoinGroup { group: GROUP });
    program.push(TraceEvent::Switch { thread: 0 });
    program.ask(TraceRequest::EndThread { thread });
}

/// The running domain marks its exported functions: for itself, because it may call what it exports
/// (Mondrix, section 2.2), and for everybody.
fn gates(program: &mut Program, domain: u32) {
    let switch = Permission::SwitchGate {
        to: DomainId::new(domain),
    };
    let text_bytes = program.params().text;
    let mut functions: Vec<u64> = (0..EXPORTS)
        .map(|number| layout::export(domain, number, text_bytes))
        .collect();
    functions.sort_unstable();
    functions.dedup();
    for function in functions {
        let word = |address| TraceSpan { address, bytes: 4 };
        program.ask(TraceRequest::Mprot {
            span: word(function),
            permission: switch,
        });
        program.ask(TraceRequest::MprotExport {
            to: TraceTarget::Group(0),
            span: word(function),
            permission: switch,
            export: Level::Full,
        });
        program.ask(TraceRequest::Mprot {
            span: word(layout::return_of(function)),
            permission: Permission::ReturnGate,
        });
    }
}
