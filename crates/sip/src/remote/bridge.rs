//! A channel whose ends are in two OS processes: two local channels, joined.
//!
//! ```text
//!   process A -- endpoint == Foreign -- Bridge --- line in shared memory --- Bridge -- Foreign == endpoint -- process B
//! ```
//! A bridge runs no thread. Who sends pumps: the message goes from the local queue to the line before `send`
//! returns. Who is told by a bell pumps: a message goes from the line into the local queue, and its receiver
//! is woken. What comes out of the line is held against the contract first: the message must be one that the
//! peer may send in this state, and its bytes a payload of it. If not, the channel ends, and it is reported.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::channel::foreign::{Foreign, Hook};
use crate::channel::line::order;
use crate::channel::{AnyEndpoint, Info, Side};
use crate::critical::as_host;
use crate::thread::{here, on_large_stack};

use super::line::{Line, Watch};
use super::memory::Memory;
use super::post::LineMemory;
use super::turn::Turn;
use super::{Fault, Link, report};

/// The middle of a channel between two OS processes.
#[repr(C)]
pub(crate) struct Bridge {
    /// First, so that the process's endpoint finds it.
    hook: Hook,
    /// Whoever's turn it is has it for himself.
    ends: Mutex<Ends>,
    turn: Turn,
    gone: AtomicBool,
    pub(super) link: Arc<Link>,
    worker: usize,
    watch: Watch,
    /// The local channel's address, and the number of the memory.
    pub(super) known_as: (usize, u64),
    pub(super) memory: LineMemory,
}

struct Ends {
    /// None once it is closed.
    local: Option<Foreign>,
    line: Line,
    contract: &'static Info,
    /// The contract's state: what has gone through in either direction.
    state: u16,
    /// The side whose endpoint is in this OS process.
    side: Side,
}

/// Why two ends cannot be joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum JoinError {
    /// The memory has no room for the contract's queues.
    #[error("the shared memory is too small for the contract")]
    TooSmall,
    /// No worker runs in this OS process, who would listen.
    #[error("no worker runs yet: call mullion_sip::start first")]
    NotStarted,
}

/// Joins the process that has the other end of a channel to a peer in another OS process, who joins the other
/// side of the same contract over the same link and memory. The channel is in its first state on both sides.
///
/// # Errors
/// The end is closed then.
pub fn join(end: AnyEndpoint, link: &Arc<Link>, memory: Memory) -> Result<(), JoinError> {
    let _host = as_host();
    let (contract, side) = (end.info(), end.side().peer());
    let worker = super::post::choose().ok_or(JoinError::NotStarted)?;
    let known_as = (end.channel_address(), memory.number());
    let seen = LineMemory::of(&memory);
    let line = Line::new(memory, contract, side, worker as u32).ok_or(JoinError::TooSmall)?;
    let watch = line.watch();
    let bridge = Arc::new(Bridge {
        hook: Hook { pump, forget },
        ends: Mutex::new(Ends {
            local: None,
            line,
            contract,
            state: 0,
            side,
        }),
        turn: Turn::default(),
        gone: AtomicBool::new(false),
        link: link.clone(),
        worker,
        known_as,
        memory: seen,
        watch,
    });
    let local = Foreign::take(end);
    local.attach(Arc::into_raw(bridge.clone()).cast());
    if let Ok(mut ends) = bridge.ends.lock() {
        ends.local = Some(local);
    }
    super::post::add(worker, bridge.clone());
    bridge.pump();
    Ok(())
}

/// # Safety
/// The hook is a bridge's.
unsafe fn pump(hook: *const Hook) {
    let _host = as_host();
    // SAFETY: by the caller; the channel holds a count of it as long as an endpoint is open, which the
    // caller's is.
    let bridge = unsafe { &*hook.cast::<Bridge>() };
    // A process's stack may be too small for what a message takes; a fault there would be the kernel's.
    on_large_stack(|| bridge.pump());
}

/// # Safety
/// The hook is a bridge's, and this is the channel's count of it.
unsafe fn forget(hook: *const Hook) {
    let _host = as_host();
    // SAFETY: by the caller.
    drop(unsafe { Arc::from_raw(hook.cast::<Bridge>()) });
}

impl Bridge {
    /// Whether a message waits in the line.
    #[inline]
    pub(super) fn has_message(&self) -> bool {
        // SAFETY: the line stays in `ends` as long as the bridge.
        unsafe { self.watch.has_message() }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Moves what there is, in both directions. Never waits: who finds it being done leaves word.
    pub(super) fn pump(&self) {
        self.turn.run(|| {
            if let Ok(mut ends) = self.ends.lock() {
                self.move_all(&mut ends);
            }
        });
    }

    fn move_all(&self, ends: &mut Ends) {
        // Ends are looked for before messages: what was sent before an end is received before it.
        let left = ends.local.as_ref().is_none_or(Foreign::peer_gone);
        let ended = left || self.link.is_down() || ends.line.peer_closed();
        let sharer = self.link.sharer();
        let moved = ends.forward(sharer).and_then(|sent| {
            if sent {
                let processor = self.link.tell(ends.line.bell());
                if let Some(worker) = here::worker() {
                    worker.told(processor);
                }
            }
            ends.deliver(sharer)
        });
        self.watch.follow(&ends.line);
        if let Err(fault) = &moved {
            report(ends.contract, &self.link, *fault);
        }
        if moved.is_err() || ended {
            self.end(ends);
        }
    }

    /// Closes both ends.
    fn end(&self, ends: &mut Ends) {
        if ends.local.is_none() {
            return;
        }
        ends.line.close();
        // Either the peer sees that we have closed, and takes back what it sends, or we see what it has sent.
        order();
        let sharer = self.link.sharer();
        // What is wrong with it does not matter any more.
        let _ = ends.deliver(sharer);
        ends.line.take_back(sharer, self.link.is_down());
        let Some(local) = ends.local.take() else {
            return;
        };
        self.link.ring(ends.line.bell());
        local.close();
        self.gone.store(true, Ordering::Release);
        super::post::change(self.worker);
    }
}

impl Ends {
    /// From the process to the line. True if there was anything.
    fn forward(&mut self, sharer: Option<u16>) -> Result<bool, Fault> {
        let Some(local) = &mut self.local else {
            return Ok(false);
        };
        let mut any = false;
        while let Some(number) = local.next() {
            let step = self.contract.wire.steps.get(usize::from(number));
            let step = *step
                .filter(|step| step.from == self.state)
                .ok_or(Fault::OutOfTurn)?;
            // SAFETY: the message is there; it is written from where it is, and then dropped and counted.
            let sent = unsafe {
                let payload = local.payload().as_ptr();
                let encode = self.contract.wire.encode;
                let sent = self.line.write(sharer, |to| encode(number, payload, to));
                local.drop_next(number);
                sent
            };
            sent?;
            self.line.send(number);
            self.state = step.next;
            any = true;
        }
        Ok(any)
    }

    /// From the line to the process.
    fn deliver(&mut self, sharer: Option<u16>) -> Result<(), Fault> {
        let Some(local) = &mut self.local else {
            return Ok(());
        };
        while let Some(number) = self.line.waits() {
            let sender = self.side.peer();
            let step = (self.contract.step(self.state, sender, number)).ok_or(Fault::OutOfTurn)?;
            let mut bytes = self.line.receive(sharer).map_err(|_| Fault::Elsewhere)?;
            // SAFETY: the contract allows the message, so its slot is free; it is shown only when it was read.
            unsafe {
                let room = local.room().as_ptr();
                (self.contract.wire.decode)(number, room, &mut bytes)?;
                if let Err(error) = bytes.finish() {
                    drop_unseen(self.contract, number, room);
                    return Err(error.into());
                }
                self.line.answered();
                local.show(number);
            }
            self.state = step.next;
        }
        Ok(())
    }
}

/// Drops a payload that was read, and is not to be shown.
///
/// # Safety
/// It lies there.
unsafe fn drop_unseen(contract: &Info, number: u16, payload: *mut u8) {
    // SAFETY: by the caller; visited once.
    crate::exchange::discard(|discard| unsafe { (contract.visit)(number, payload, discard) });
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Bridge")
    }
}
