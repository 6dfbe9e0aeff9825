//! The start of a converted trace: the supervisor makes the domains of the map, and each places its gates.

use super::map::{Map, Region, START_STACK_BYTES};

use crate::event::{TraceEvent, TraceRequest, TraceSpan, TraceTarget};
use mullion_supervisor::{DomainId, Level, Permission, WORD_BYTES as WORD};

/// The program.
const PROGRAM: u32 = 1;

/// The first number of the threads on which domains start.
const FIRST_START_THREAD: u32 = 1_000_000;

/// Hands the events of the start to `emit`. Thread 0 runs at their end, in the program's domain.
pub(super) fn boot<E>(
    map: &Map,
    emit: &mut impl FnMut(TraceEvent) -> Result<(), E>,
) -> Result<(), E> {
    let everything = TraceSpan {
        address: 0,
        bytes: 1 << map.address_bits(),
    };
    emit(TraceEvent::Supervisor(TraceRequest::Subdivide {
        child: PROGRAM,
        span: everything,
        permission: Permission::ReadWrite,
    }))?;
    for ((start, end), thread) in map.threads().zip(0..) {
        emit(TraceEvent::Supervisor(TraceRequest::CreateThread {
            thread,
            domain: PROGRAM,
            stack: span(start, end),
        }))?;
    }
    emit(TraceEvent::Switch { thread: 0 })?;
    for (domain, regions) in (PROGRAM..).zip(map.domains()) {
        match domain {
            PROGRAM => {
                for region in regions {
                    emit(TraceEvent::Supervisor(TraceRequest::Mprot {
                        span: span(region.start, region.end),
                        permission: region.permission,
                    }))?;
                }
            }
            _ => make(domain, regions, emit)?,
        }
    }
    open(map, PROGRAM, emit)?;
    for (domain, _) in (PROGRAM..).zip(map.domains()).skip(1) {
        start(map, domain, emit)?;
    }
    Ok(())
}

/// The program makes a domain of its own memory.
fn make<E>(
    domain: u32,
    regions: &[Region],
    emit: &mut impl FnMut(TraceEvent) -> Result<(), E>,
) -> Result<(), E> {
    for (index, region) in regions.iter().enumerate() {
        let (span, permission) = (span(region.start, region.end), region.permission);
        if index == 0 {
            emit(TraceEvent::Supervisor(TraceRequest::Subdivide {
                child: domain,
                span,
                permission,
            }))?;
            continue;
        }
        emit(export(domain, span, permission))?;
        emit(TraceEvent::Supervisor(TraceRequest::Chown {
            to: domain,
            span,
        }))?;
    }
    Ok(())
}

/// A domain runs for a moment, on a stack that the program lends it, to place its gates.
fn start<E>(
    map: &Map,
    domain: u32,
    emit: &mut impl FnMut(TraceEvent) -> Result<(), E>,
) -> Result<(), E> {
    let base = map.start_stack(domain);
    let stack = span(base, base + START_STACK_BYTES);
    let thread = FIRST_START_THREAD + domain;
    emit(export(domain, stack, Permission::ReadWrite))?;
    emit(TraceEvent::Supervisor(TraceRequest::CreateThread {
        thread,
        domain,
        stack,
    }))?;
    emit(TraceEvent::Switch { thread })?;
    open(map, domain, emit)?;
    emit(TraceEvent::Switch { thread: 0 })?;
    emit(TraceEvent::Supervisor(TraceRequest::EndThread { thread }))?;
    emit(export(domain, stack, Permission::None))
}

/// The running domain places its gates, for itself and for everybody, and shares what the map says.
fn open<E>(
    map: &Map,
    domain: u32,
    emit: &mut impl FnMut(TraceEvent) -> Result<(), E>,
) -> Result<(), E> {
    let permission = Permission::SwitchGate {
        to: DomainId::new(domain),
    };
    for (function, _) in map.gates().filter(|(_, into)| *into == domain) {
        let span = span(function, function + WORD);
        emit(TraceEvent::Supervisor(TraceRequest::Mprot {
            span,
            permission,
        }))?;
        emit(TraceEvent::Supervisor(TraceRequest::MprotExport {
            to: TraceTarget::Group(0),
            span,
            permission,
            export: Level::Full,
        }))?;
    }
    for share in map.shares().iter().filter(|share| share.owner == domain) {
        let span = span(share.region.start, share.region.end);
        emit(export(share.to, span, share.region.permission))?;
    }
    Ok(())
}

fn export(to: u32, span: TraceSpan, permission: Permission) -> TraceEvent {
    TraceEvent::Supervisor(TraceRequest::MprotExport {
        to: TraceTarget::Domain(to),
        span,
        permission,
        export: Level::Full,
    })
}

fn span(start: u64, end: u64) -> TraceSpan {
    TraceSpan {
        address: start,
        bytes: end - start,
    }
}
