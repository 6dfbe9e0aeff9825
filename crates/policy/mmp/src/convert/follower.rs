//! Follows a program's instructions and accesses, and makes events of them.
//!
//! A trace of addresses does not say what is a call. The follower takes a function of the map as called under two
//! conditions. Control reaches its first instruction by a jump, and one of the few instructions before has stored. If
//! control did not go on behind the last one that stored, that was a call, and it stored the return address. (Between
//! the two may stand a stub that jumps on through a table.) It takes an instruction as the return from that call when
//! it loads from the same place and control goes on behind the call.
//!
//! Where a return is seen for the first time, its domain places a return gate there.

use super::map::Map;
use super::{Stop, Summary};

use crate::event::{MAX_ACCESS_BYTES, MAX_FETCH_BYTES, TraceEvent, TraceRequest, TraceSpan};
use mullion_supervisor::{Permission, WORD_BYTES as WORD};
use std::collections::HashSet;

/// The most bytes of an instruction.
const MAX_INSTRUCTION_BYTES: u32 = 64;

/// The most bytes of one access: processors save their state in one instruction.
const MAX_BYTES: u32 = 16384;

/// The most calls that have not returned.
const MAX_FRAMES: usize = 1 << 16;

/// How many instructions may stand between a call and the function: stubs of a dynamic linker have two.
const STUB: u32 = 4;

/// A load or a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Load,
    Store,
}

/// An instruction that was executed last, and its accesses.
#[derive(Clone, Copy, Debug)]
struct Last {
    address: u64,
    end: u64,
    /// Its last access, if that was a store.
    stored: Option<u64>,
    /// Its last access, if that was a load.
    loaded: Option<u64>,
}

/// An instruction that may have been a call.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    return_address: u64,
    /// Where it stored that.
    slot: u64,
    /// Instructions since.
    age: u32,
}

/// What is known of one processor, which is one thread of ours.
#[derive(Debug, Default)]
struct Thread {
    last: Option<Last>,
    candidate: Option<Candidate>,
    /// Calls of gates that have not returned.
    frames: Vec<Candidate>,
}

/// Instructions in a straight line that are not written yet.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    address: u64,
    bytes: u32,
    instructions: u32,
}

/// See the module.
pub(super) struct Follower<'a, S> {
    map: &'a Map,
    sink: S,
    /// The end of the address space.
    end: u64,
    gates: HashSet<u64>,
    threads: Vec<Thread>,
    running: usize,
    line: Line,
    /// Words that are return gates.
    returns: HashSet<u64>,
    summary: Summary,
}

impl<'a, E, S: FnMut(TraceEvent) -> Result<(), E>> Follower<'a, S> {
    pub(super) fn new(map: &'a Map, sink: S) -> Self {
        Follower {
            map,
            sink,
            end: 1 << map.address_bits(),
            gates: map.gates().map(|(function, _)| function).collect(),
            threads: map.threads().map(|_| Thread::default()).collect(),
            running: 0,
            line: Line::default(),
            returns: HashSet::new(),
            summary: Summary::default(),
        }
    }

    /// Hands an event on.
    pub(super) fn emit(&mut self, event: TraceEvent) -> Result<(), E> {
        self.summary.events += 1;
        (self.sink)(event)
    }

    /// Writes what is held back.
    pub(super) fn finish(mut self) -> Result<Summary, E> {
        self.flush()?;
        Ok(self.summary)
    }

    /// An instruction of a processor.
    pub(super) fn instruction(
        &mut self,
        processor: u32,
        address: u64,
        bytes: u32,
    ) -> Result<(), Stop<E>> {
        if bytes == 0 || bytes > MAX_INSTRUCTION_BYTES {
            return Err(Stop::what(format!(
                "an instruction of {bytes} bytes: it has 1 to {MAX_INSTRUCTION_BYTES}"
            )));
        }
        let end = self.check(address, bytes)?;
        self.run(processor)?;
        self.transfer(address)?;
        let thread = &mut self.threads[self.running];
        thread.last = Some(Last {
            address,
            end,
            stored: None,
            loaded: None,
        });
        self.summary.instructions += 1;
        let line = &mut self.line;
        let follows = line.address + u64::from(line.bytes) == address;
        if line.bytes > 0 && (!follows || line.bytes + bytes > MAX_FETCH_BYTES) {
            self.flush().map_err(Stop::Sink)?;
        }
        let line = &mut self.line;
        if line.bytes == 0 {
            line.address = address;
        }
        line.bytes += bytes;
        line.instructions += 1;
        Ok(())
    }

    /// An access of the last instruction.
    pub(super) fn access(&mut self, kind: Kind, address: u64, bytes: u32) -> Result<(), Stop<E>> {
        if bytes == 0 || bytes > MAX_BYTES {
            return Err(Stop::what(format!(
                "an access of {bytes} bytes: it has 1 to {MAX_BYTES}"
            )));
        }
        self.check(address, bytes)?;
        let Some(last) = &mut self.threads[self.running].last else {
            return Err(Stop::what("an access before the first instruction"));
        };
        (last.loaded, last.stored) = match kind {
            Kind::Load => (Some(address), None),
            Kind::Store => (None, Some(address)),
        };
        self.summary.accesses += 1;
        self.flush().map_err(Stop::Sink)?;
        let mut done = 0;
        while done < bytes {
            let part = (bytes - done).min(MAX_ACCESS_BYTES);
            let address = address + u64::from(done);
            let event = match kind {
                Kind::Load => TraceEvent::Load {
                    address,
                    bytes: part,
                },
                Kind::Store => TraceEvent::Store {
                    address,
                    bytes: part,
                },
            };
            self.emit(event).map_err(Stop::Sink)?;
            done += part;
        }
        Ok(())
    }

    /// The end of some bytes, if they lie in the address space.
    fn check(&self, address: u64, bytes: u32) -> Result<u64, Stop<E>> {
        let end = address.checked_add(u64::from(bytes));
        end.filter(|end| *end <= self.end).ok_or_else(|| {
            let bits = self.map.address_bits();
            Stop::what(format!(
                "{address:#x} is beyond addresses of {bits} bits (the map's address-bits)"
            ))
        })
    }

    /// Another processor's turn: a switch of threads.
    fn run(&mut self, processor: u32) -> Result<(), Stop<E>> {
        let next = processor as usize;
        if next == self.running {
            return Ok(());
        }
        if next >= self.threads.len() {
            return Err(Stop::what(format!(
                "processor {processor}: the map has {} threads",
                self.threads.len()
            )));
        }
        self.flush().map_err(Stop::Sink)?;
        self.running = next;
        self.emit(TraceEvent::Switch { thread: processor })
            .map_err(Stop::Sink)
    }

    /// Before an instruction at this address: whether the last one called or returned.
    fn transfer(&mut self, address: u64) -> Result<(), Stop<E>> {
        let thread = &mut self.threads[self.running];
        if let Some(candidate) = &mut thread.candidate {
            candidate.age += 1;
            if candidate.age > STUB {
                thread.candidate = None;
            }
        }
        let Some(last) = thread.last else {
            return Ok(());
        };
        let goes_on = last.end == address;
        if !goes_on && let Some(slot) = last.stored {
            thread.candidate = Some(Candidate {
                return_address: last.end,
                slot,
                age: 0,
            });
        }
        let frame = thread.frames.last().copied();
        if let Some(frame) = frame
            && last.loaded == Some(frame.slot)
            && address == frame.return_address
        {
            thread.frames.pop();
            return self.back(last.address, address);
        }
        if !goes_on
            && self.gates.contains(&address)
            && let Some(candidate) = thread.candidate.take()
        {
            if thread.frames.len() == MAX_FRAMES {
                return Err(Stop::what(format!(
                    "more than {MAX_FRAMES} calls of gates have not returned"
                )));
            }
            thread.frames.push(candidate);
            return self.call(address, candidate);
        }
        Ok(())
    }

    fn call(&mut self, target: u64, candidate: Candidate) -> Result<(), Stop<E>> {
        self.summary.calls += 1;
        self.flush().map_err(Stop::Sink)?;
        let event = TraceEvent::Call {
            target,
            return_address: candidate.return_address,
            stack: candidate.slot,
        };
        self.emit(event).map_err(Stop::Sink)
    }

    fn back(&mut self, at: u64, target: u64) -> Result<(), Stop<E>> {
        self.summary.returns += 1;
        self.flush().map_err(Stop::Sink)?;
        let word = at & !(WORD - 1);
        if self.gates.contains(&word) {
            return Err(Stop::what(format!(
                "the function at {word:#x} returns within its first four bytes, which can hold one gate: take it \
                 out of the map's gates"
            )));
        }
        if self.returns.insert(word) {
            let request = TraceRequest::Mprot {
                span: TraceSpan {
                    address: word,
                    bytes: WORD,
                },
                permission: Permission::ReturnGate,
            };
            self.emit(TraceEvent::Supervisor(request))
                .map_err(Stop::Sink)?;
        }
        self.emit(TraceEvent::Return { at, target })
            .map_err(Stop::Sink)
    }

    fn flush(&mut self) -> Result<(), E> {
        let line = std::mem::take(&mut self.line);
        if line.bytes == 0 {
            return Ok(());
        }
        self.emit(TraceEvent::Fetch {
            address: line.address,
            bytes: line.bytes,
            instructions: line.instructions,
        })
    }
}
