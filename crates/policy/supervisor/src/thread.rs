//! Threads: their cross-domain call stack, and the stack memory that belongs to them alone (Mondrix,
//! sections 2.2, 2.3 and 3.3).

use crate::call::{Call, Reply};
use crate::mechanism::{Mechanism, StackRegisters};
use crate::policy::JoinPolicy;
use crate::set::WordSet;
use crate::supervisor::Supervisor;
use alloc::vec::Vec;
use mullion_refusal::error::Error;
use mullion_terms::domain::{CallStack, DomainId, ThreadId};
use mullion_terms::permission::Permission;
use mullion_terms::range::{Range, WORD_BYTES};

/// What a cross-domain call leaves behind for its return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The domain that called.
    pub domain: DomainId,
    /// The byte address behind the call instruction.
    pub return_address: u64,
    /// The frame base of the domain that called, a word number.
    pub frame: u64,
}

/// A thread, in exactly one domain at a time. Only a [`Supervisor`] makes one and moves it between
/// domains, so what it says as a [`CallStack`] is true.
#[derive(Debug)]
pub struct Thread {
    id: ThreadId,
    stack: Range,
    domain: DomainId,
    /// `fb`, a word number; `sb` and `sl` are the ends of `stack`.
    frame: u64,
    /// One entry for each cross-domain call that has not returned, the latest last.
    calls: Vec<Frame>,
    /// The stack write table. What lies in the current frame takes effect once the frame is an earlier
    /// one; then nothing is added.
    writable: WordSet,
}

impl CallStack for Thread {
    fn current(&self) -> DomainId {
        self.domain
    }

    fn previous(&self) -> Option<DomainId> {
        self.calls.last().map(|call| call.domain)
    }
}

impl Thread {
    /// Its number.
    pub fn id(&self) -> ThreadId {
        self.id
    }

    /// The memory of its stack.
    pub fn stack(&self) -> Range {
        self.stack
    }

    /// The cross-domain calls that have not returned, the latest last.
    pub fn calls(&self) -> &[Frame] {
        &self.calls
    }

    /// The values of `sb`, `fb` and `sl`.
    pub fn registers(&self) -> StackRegisters {
        StackRegisters {
            base: self.stack.end(),
            frame: self.frame,
            limit: self.stack.start(),
        }
    }

    /// Whether the thread may load `word` of its stack: all of it.
    pub fn may_read(&self, word: u64) -> bool {
        self.registers().reads(word)
    }

    /// Whether the thread may store to `word` of its stack: the current frame, and what earlier frames
    /// have been opened for.
    pub fn may_write(&self, word: u64) -> bool {
        self.registers().writes(word)
            || (self.may_read(word) && self.writable.around(word).is_some())
    }
}

impl<M: Mechanism, P: JoinPolicy> Supervisor<M, P> {
    /// A thread in the caller's domain, whose stack is `range`: memory that the caller owns or may write,
    /// and that is no other thread's stack.
    pub fn thread_create(&mut self, stack: &impl CallStack, range: Range) -> Result<Thread, Error> {
        let caller = stack.current();
        self.state.domain(caller)?;
        self.check_space(range)?;
        for (at, holding) in self.state.regions.pieces(range) {
            let held = self.state.effective(holding, caller).access;
            if holding.owner != caller && held != Permission::ReadWrite {
                return Err(Error::StackMemory { caller, held, at });
            }
        }
        if let Some(at) = self.stacks.overlapping(range) {
            return Err(Error::StackInUse { range, at });
        }
        let id = ThreadId::new(self.next_thread);
        self.next_thread = self.next_thread.checked_add(1).ok_or(Error::Exhausted)?;
        self.stacks.insert(range);
        Ok(Thread {
            id,
            stack: range,
            domain: caller,
            frame: range.end(),
            calls: Vec::new(),
            writable: WordSet::default(),
        })
    }

    /// Ends a thread: its stack is ordinary memory again.
    pub fn thread_end(&mut self, thread: Thread) {
        self.mechanism.write_stack(thread.id, thread.stack, false);
        self.mechanism.flush_stack(thread.id);
        self.stacks.remove(thread.stack);
    }

    /// Opens `range` of the current frame to stores from the domains that the thread calls from here on,
    /// or closes it again.
    pub fn stack_grant(
        &mut self,
        thread: &mut Thread,
        range: Range,
        writable: bool,
    ) -> Result<(), Error> {
        let outcome = self.judge_stack_grant(thread, range).map(|()| Reply::Done);
        if outcome.is_ok() {
            self.write_stack(thread, range, writable);
        }
        let call = Call::StackGrant {
            thread: thread.id,
            range,
            writable,
        };
        self.record(thread.domain, call, outcome).map(drop)
    }

    fn judge_stack_grant(&self, thread: &Thread, range: Range) -> Result<(), Error> {
        self.state.domain(thread.domain)?;
        let id = thread.id;
        if !thread.stack.covers(range) {
            return Err(Error::OutsideStack {
                thread: id,
                range,
                stack: thread.stack,
            });
        }
        if range.end() > thread.frame {
            return Err(Error::EarlierFrame {
                thread: id,
                range,
                frame: thread.frame,
            });
        }
        Ok(())
    }

    fn write_stack(&mut self, thread: &mut Thread, range: Range, writable: bool) {
        match writable {
            true => thread.writable.insert(range),
            false => thread.writable.remove(range),
        }
        self.mechanism.write_stack(thread.id, range, writable);
    }

    /// A call instruction to `word`, with the stack pointer at word `pointer`. Through a switch gate the
    /// thread enters the gate's domain, and everything from `pointer` up becomes an earlier frame. Returns
    /// the domain it is in then.
    pub fn thread_call(
        &mut self,
        thread: &mut Thread,
        word: u64,
        return_address: u64,
        pointer: u64,
    ) -> Result<DomainId, Error> {
        let domain = thread.domain;
        self.state.domain(domain)?;
        let held = self.permission(domain, word);
        let Permission::SwitchGate { to } = held else {
            return match held.executes(domain) {
                true => Ok(domain),
                false => Err(Error::NotExecutable { domain, word, held }),
            };
        };
        let inside = self.permission(to, word);
        if !inside.executes(to) {
            return Err(Error::NotExecutable {
                domain: to,
                word,
                held: inside,
            });
        }
        let (limit, frame) = (thread.stack.start(), thread.frame);
        if pointer < limit || pointer > frame {
            return Err(Error::StackPointer {
                thread: thread.id,
                pointer,
                limit,
                frame,
            });
        }
        thread.calls.push(Frame {
            domain,
            return_address,
            frame,
        });
        thread.domain = to;
        thread.frame = pointer;
        self.mechanism.load_stack(thread.id, thread.registers());
        Ok(to)
    }

    /// A return instruction at `word` to the byte address `to`: through a return gate, back to where the
    /// last cross-domain call came from. What the returning domain had opened of its frames is closed,
    /// since the frames are gone. Returns the domain it is in then.
    pub fn thread_return(
        &mut self,
        thread: &mut Thread,
        word: u64,
        to: u64,
    ) -> Result<DomainId, Error> {
        let domain = thread.domain;
        self.state.domain(domain)?;
        let held = self.permission(domain, word);
        if held != Permission::ReturnGate {
            return Err(Error::NotReturnGate { domain, word, held });
        }
        let id = thread.id;
        let call = *thread
            .calls
            .last()
            .ok_or(Error::NothingToReturn { thread: id })?;
        if call.return_address != to {
            return Err(Error::WrongReturn {
                thread: id,
                asked: to,
                expected: call.return_address,
            });
        }
        self.state.domain(call.domain)?;
        self.leave(thread, thread.calls.len() - 1, call);
        Ok(call.domain)
    }

    /// Leaves the current frame without a return instruction, and the frames of domains that are gone. This is
    /// for a call that has been ended, and for a thread whose domain, or whose caller, was deleted. What these
    /// frames opened is closed. Returns the living domain that it is in then.
    ///
    /// # Errors
    /// [`Error::NothingToReturn`] if no domain on the call stack lives; then nothing changes, and the thread is
    /// to be ended.
    pub fn thread_unwind(&mut self, thread: &mut Thread) -> Result<DomainId, Error> {
        let lives = |call: &Frame| self.state.domain(call.domain).is_ok();
        let depth = thread
            .calls
            .iter()
            .rposition(lives)
            .ok_or(Error::NothingToReturn { thread: thread.id })?;
        let call = thread.calls[depth];
        self.leave(thread, depth, call);
        Ok(call.domain)
    }

    /// Goes back to the call at `depth` of the call stack.
    fn leave(&mut self, thread: &mut Thread, depth: usize, call: Frame) {
        // What was opened in the frames that end here lies below the frame base of the call before the last.
        let end = match thread.calls.get(depth + 1) {
            Some(later) => later.frame,
            None => thread.frame,
        };
        if let Some(gone) = Range::between(thread.stack.start(), end)
            && thread.writable.overlapping(gone).is_some()
        {
            self.write_stack(thread, gone, false);
        }
        thread.calls.truncate(depth);
        thread.domain = call.domain;
        thread.frame = call.frame;
        self.mechanism.load_stack(thread.id, thread.registers());
    }

    /// A context switch: what caches know of the stack of `from` is flushed, and the registers of `to`
    /// are loaded (Mondrix, section 3.3).
    pub fn thread_switch(&mut self, from: Option<&Thread>, to: Option<&Thread>) {
        if let Some(thread) = from {
            self.mechanism.flush_stack(thread.id);
        }
        if let Some(thread) = to {
            self.mechanism.load_stack(thread.id, thread.registers());
        }
    }
}

/// The word that a byte address lies in.
pub const fn word_of(address: u64) -> u64 {
    address / WORD_BYTES
}
