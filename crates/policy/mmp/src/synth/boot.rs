//! How the program starts: the supervisor makes the kernel, the kernel makes modules, each module places
//! its gates.

use super::layout::{self, EXPORTS, GROUP, KERNEL};
use super::program::Program;
use crate::event::{Event, Request, Span, Target};
use mullion_supervisor::{DomainId, Level, Permission};

/// Numbers of the threads on which modules start.
const FIRST_START_THREAD: u32 = 1000;

/// Puts the events of the start into the program.
pub(super) fn boot(program: &mut Program) {
    let params = program.params().clone();
    let everything = Span {
        address: 0,
        bytes: 1 << super::ADDRESS_BITS,
    };
    program.ask(Request::Subdivide {
        child: KERNEL,
        span: everything,
        permission: Permission::ReadWrite,
    });
    for thread in 0..params.threads {
        program.ask(Request::CreateThread {
            thread,
            domain: KERNEL,
            stack: layout::stack(thread),
        });
    }
    program.push(Event::Switch { thread: 0 });
    // The paper's kernel text is one large region.
    program.ask(Request::Mprot {
        span: Span {
            address: layout::text(KERNEL),
            bytes: 4 << 20,
        },
        permission: Permission::ExecuteRead,
    });
    gates(program, KERNEL);
    program.ask(Request::CreateGroup { group: GROUP });
    for module in 0..params.modules {
        start_module(program, KERNEL + 1 + module);
    }
    for object in 0..u64::from(params.shared_objects) {
        program.ask(Request::MprotExport {
            to: Target::Group(GROUP),
            span: layout::shared(object),
            permission: Permission::Read,
            export: Level::Full,
        });
    }
}

fn start_module(program: &mut Program, domain: u32) {
    let params = program.params().clone();
    let page = 4096;
    let text = Span {
        address: layout::text(domain),
        bytes: params.text.next_multiple_of(page),
    };
    let data = Span {
        address: layout::data(domain),
        bytes: params.working_set.next_multiple_of(page),
    };
    let stack = layout::start_stack(domain);
    program.ask(Request::Subdivide {
        child: domain,
        span: text,
        permission: Permission::ExecuteRead,
    });
    for span in [data, stack] {
        program.ask(Request::MprotExport {
            to: Target::Domain(domain),
            span,
            permission: Permission::ReadWrite,
            export: Level::Full,
        });
        program.ask(Request::Chown { to: domain, span });
    }
    let thread = FIRST_START_THREAD + domain;
    program.ask(Request::CreateThread {
        thread,
        domain,
        stack,
    });
    program.push(Event::Switch { thread });
    gates(program, domain);
    program.ask(Request::JoinGroup { group: GROUP });
    program.push(Event::Switch { thread: 0 });
    program.ask(Request::EndThread { thread });
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
        let word = |address| Span { address, bytes: 4 };
        program.ask(Request::Mprot {
            span: word(function),
            permission: switch,
        });
        program.ask(Request::MprotExport {
            to: Target::Group(0),
            span: word(function),
            permission: switch,
            export: Level::Full,
        });
        program.ask(Request::Mprot {
            span: word(layout::return_of(function)),
            permission: Permission::ReturnGate,
        });
    }
}
