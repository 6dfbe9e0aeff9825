//! A channel whose ends are in two OS processes: two local channels, joined.
//!
//! ```text
//!   process A -- endpoint == Foreign -- Bridge --- line in shared memory --- Bridge -- Foreign == endpoint -- process B
//! ```
//! A bridge runs no thread. Who sends pumps: the message goes from the local queue to the line before `send` returns.
//! Who is told by a bell pumps: a message goes from the line into the local queue, and its receiver is woken. Each
//! message out of the line is held against the contract first. It must be one that
//! the peer may send in this state, with bytes that are a payload of it. If not, the channel ends, and it is reported.
//!
//! The bridge of an endpoint that has come in a message waits for its line; `travel` gives it one, and others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::inner::{CORE, EXCHANGE};
use mullion_sip_exchange::channel::{AnyEndpoint, Info, Side};
use mullion_sip_exchange::interior::order;
use mullion_sip_exchange::interior::{Foreign, Hook};

use super::fault::{Fault, report};
use super::hand_over::Handed;
use super::line::{Line, Watch};
use super::link::Link;
use super::memory::Memory;
use super::turn::Turn;
use super::worker_lines::LineMemory;

/// The middle of a channel between two OS processes.
#[repr(C)]
pub(crate) struct Bridge {
    /// First, so that the process's endpoint finds it.
    hook: Hook,
    /// Whoever's turn it is has it, unless `travel` has just taken it, and pumps when it has let go.
    ends: Mutex<Ends>,
    turn: Turn,
    worker: usize,
    /// The local channel's address.
    pub(super) channel: usize,
}

pub(super) struct Ends {
    /// None once it is closed.
    pub(super) local: Option<Foreign>,
    /// None until it is known where the peer is.
    pub(super) way: Option<Way>,
    pub(super) contract: &'static Info,
    /// The contract's state: what has gone through in either direction.
    pub(super) state: u16,
    /// The side whose endpoint is in this OS process.
    pub(super) side: Side,
    /// The process's endpoint, if it was sent on before it was known where the peer is.
    pub(super) heir: Option<Handed>,
}

/// Where the peer is.
pub(super) struct Way {
    pub(super) line: Line,
    pub(super) joint: Arc<Joint>,
}

/// What a worker knows of a way: it lives until no worker looks there.
pub(super) struct Joint {
    pub(super) link: Arc<Link>,
    /// The number of the memory.
    pub(super) number: u64,
    pub(super) memory: LineMemory,
    watch: Watch,
    gone: AtomicBool,
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

/// Joins the process that has the other end of a channel to a peer in another OS process. The peer joins the other side
/// of the same contract over the same link and memory. The channel is in its first state on both sides.
///
/// # Errors
/// The end is closed then.
pub fn join(end: AnyEndpoint, link: &Arc<Link>, memory: Memory) -> Result<(), JoinError> {
    let _host = CORE.as_host();
    let worker = super::worker_lines::choose().ok_or(JoinError::NotStarted)?;
    let bridge = Bridge::new(EXCHANGE.take(end), worker);
    match bridge.begin(link, memory) {
        true => Ok(()),
        false => Err(JoinError::TooSmall),
    }
}

/// # Safety
/// The hook is a bridge's.
unsafe fn pump(hook: *const Hook) {
    let _host = CORE.as_host();
    // SAFETY: by the caller; the channel holds a count of it as long as an endpoint is open, which the
    // caller's is.
    let bridge = unsafe { &*hook.cast::<Bridge>() };
    // A process's stack may be too small for what other messages take; a fault there would be the kernel's.
    if !bridge.pump_copied() {
        CORE.on_large_stack(|| bridge.pump_all());
    }
}

/// # Safety
/// The hook is a bridge's, and this is the channel's count of it.
unsafe fn forget(hook: *const Hook) {
    let _host = CORE.as_host();
    // SAFETY: the caller promises that the hook is a bridge's; this is the count that the channel has had of it,
    // dropped once.
    drop(unsafe { Arc::from_raw(hook.cast::<Bridge>()) });
}

impl Bridge {
    /// For the kernel's end of a channel, whose other end a process of this OS process has, or will have. It waits for
    /// its way.
    pub(super) fn new(local: Foreign, worker: usize) -> Arc<Bridge> {
        let (contract, side, state) = (local.contract(), local.side().peer(), local.state());
        let bridge = Arc::new(Bridge {
            hook: Hook { pump, forget },
            channel: local.channel_address(),
            ends: Mutex::new(Ends {
                local: None,
                way: None,
                contract,
                state,
                side,
                heir: None,
            }),
            turn: Turn::default(),
            worker,
        });
        local.attach(Arc::into_raw(bridge.clone()).cast());
        bridge.ends().local = Some(local);
        bridge
    }

    /// The bridge that has the peer of an end in this OS process, if one does.
    pub(super) fn beside(end: &Foreign) -> Option<Arc<Bridge>> {
        let hook = end.peers_hook();
        (!hook.is_null()).then(|| {
            let bridge: *const Bridge = hook.cast();
            // SAFETY: every hook is a bridge's, and the channel, of which this end is open, has a count of it.
            unsafe {
                Arc::increment_strong_count(bridge);
                Arc::from_raw(bridge)
            }
        })
    }

    pub(super) fn ends(&self) -> MutexGuard<'_, Ends> {
        self.ends
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn worker(&self) -> usize {
        self.worker
    }

    /// Moves what there is, in both directions. Never waits: who finds it being done leaves word.
    pub(super) fn pump(&self) {
        if !self.pump_copied() {
            self.pump_all();
        }
    }

    /// [`Bridge::pump`] for the usual case: a message in each direction at most, which are copied as they lie in memory. It
    /// takes no more stack than any critical piece has. False if there is, or may be, more to do.
    #[inline]
    fn pump_copied(&self) -> bool {
        self.turn.run_at_once(|| {
            let ends = self.ends.try_lock();
            ends.is_ok_and(|mut ends| ends.move_copied().unwrap_or(false))
        })
    }

    #[inline(never)]
    fn pump_all(&self) {
        self.turn.run(|| {
            if let Ok(mut ends) = self.ends.try_lock() {
                self.move_all(&mut ends);
            }
        });
    }

    /// The same for who has the lock, and pumps once more after it has let go.
    pub(super) fn move_all(&self, ends: &mut Ends) {
        // Ends are looked for before messages: what was sent before an end is received before it.
        let left = ends.local.as_ref().is_none_or(Foreign::peer_gone);
        let Some(way) = &ends.way else { return };
        let ended = left || way.joint.link.is_down() || way.line.peer_closed();
        let moved = ends.forward().and_then(|sent| {
            if sent && let Some(way) = &ends.way {
                way.tell();
            }
            ends.deliver(self.worker)
        });
        if let Some(way) = &ends.way {
            way.joint.watch.follow(&way.line);
            if let Err(fault) = &moved {
                report(ends.contract, way.joint.link.peer(), *fault);
            }
        }
        if moved.is_err() || ended {
            self.end(ends);
        }
    }

    /// Closes both ends.
    pub(super) fn end(&self, ends: &mut Ends) {
        if ends.local.is_none() {
            return;
        }
        if let Some(way) = &mut ends.way {
            way.line.close();
            // Either the peer sees that we have closed, and takes back what it sends, or we see what it has sent.
            order();
            // What is wrong with it does not matter any more.
            let _ = ends.deliver(self.worker);
        }
        let Some(local) = ends.local.take() else {
            return;
        };
        if let Some(mut way) = ends.way.take() {
            let link = &way.joint.link;
            way.line.take_back(link.sharer(), link.is_down());
            way.joint.link.ring(way.line.bell());
        }
        local.close();
        if let Some(heir) = ends.heir.take() {
            super::hand_over::put(heir);
        }
        super::worker_lines::change(self.worker);
    }
}

impl Way {
    /// The half of the OS process that has the endpoint of this side; None if the memory is too small.
    pub(super) fn new(
        bridge: &Arc<Bridge>,
        ends: &Ends,
        link: &Arc<Link>,
        memory: Memory,
    ) -> Option<Way> {
        let number = memory.number();
        let seen = LineMemory::of(&memory);
        let line = Line::new(memory, ends.contract, ends.side, bridge.worker as u32)?;
        let joint = Arc::new(Joint {
            watch: line.watch(),
            link: link.clone(),
            number,
            memory: seen,
            gone: AtomicBool::new(false),
        });
        link.arrivals.open(number, bridge);
        Some(Way { line, joint })
    }
}

impl Way {
    /// Tells the peer of what was sent.
    #[inline]
    fn tell(&self) {
        let processor = self.joint.link.tell(self.line.bell());
        if let Some(worker) = CORE.worker() {
            worker.told(processor);
        }
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.joint.gone.store(true, Ordering::Release);
        self.joint.link.close_line(self.joint.number);
    }
}

impl Joint {
    /// Whether a message waits in the line.
    #[inline]
    pub(super) fn has_message(&self) -> bool {
        self.watch.has_message()
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }
}

impl Ends {
    /// A message in each direction, as [`Ends::forward`] and [`Ends::deliver`] would move it, if each is copied. True if there
    /// is no other.
    ///
    /// There may be one. A process sends on while its bridge has no way yet, and the way's coming is one turn for all that.
    #[inline]
    fn move_copied(&mut self) -> Option<bool> {
        let (local, way, contract) = (self.local.as_mut()?, self.way.as_mut()?, self.contract);
        // Ends are looked for before messages.
        if local.peer_gone() || way.joint.link.is_down() || way.line.peer_closed() {
            return None;
        }
        if let Some(number) = local.next() {
            let bytes = (contract.wire.copied)(number)?;
            let step = contract.step(self.state, self.side, number)?;
            // SAFETY: the message is there, and its payload is so many bytes, all of them initialised; the contract allows it
            // now. It has no handles, so that nothing is dropped.
            unsafe { way.line.write_copied(local.payload().as_ptr(), bytes) };
            local.count_received();
            way.line.send(number);
            self.state = step.next;
            way.tell();
        }
        if let Some(number) = way.line.waits() {
            let bytes = (contract.wire.copied)(number)?;
            let step = contract.step(self.state, self.side.peer(), number)?;
            // SAFETY: the contract allows the message, so its slot is free, with room for its payload, of which any bytes are
            // a value. It is shown when it was read.
            unsafe {
                if !(way.line).receive_copied(local.room().as_ptr(), bytes) {
                    return None;
                }
                way.line.answered();
                way.joint.watch.follow(&way.line);
                local.show(number);
            }
            self.state = step.next;
        }
        Some(local.next().is_none() && way.line.waits().is_none())
    }

    /// From the process to the line. True if there was anything.
    fn forward(&mut self) -> Result<bool, Fault> {
        let (Some(local), Some(way)) = (&mut self.local, &mut self.way) else {
            return Ok(false);
        };
        let sharer = way.joint.link.sharer();
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
                let sent = way.line.write(sharer, |to| encode(number, payload, to));
                local.drop_next(number);
                sent
            };
            sent?;
            if !way.line.leaving.ends.is_empty() {
                way.leave()?;
            }
            way.line.send(number);
            self.state = step.next;
            any = true;
        }
        Ok(any)
    }

    /// From the line to the process.
    fn deliver(&mut self, worker: usize) -> Result<(), Fault> {
        let (Some(local), Some(way)) = (&mut self.local, &mut self.way) else {
            return Ok(());
        };
        let sharer = way.joint.link.sharer();
        while let Some(number) = way.line.waits() {
            let sender = self.side.peer();
            let step = (self.contract.step(self.state, sender, number)).ok_or(Fault::OutOfTurn)?;
            let mut bytes = way.line.receive(sharer).map_err(|_| Fault::Elsewhere)?;
            // SAFETY: the contract allows the message, so its slot is free; it is shown only when it was read.
            unsafe {
                let room = local.room().as_ptr();
                let read = (self.contract.wire.decode)(number, room, &mut bytes);
                let whole = read.and_then(|()| {
                    let left = bytes.finish();
                    left.inspect_err(|_| drop_unseen(self.contract, number, room))
                });
                if let Err(error) = whole {
                    way.refuse_arriving();
                    return Err(error.into());
                }
                if !way.line.arriving.ends.is_empty() {
                    let taken = way.take(worker);
                    taken.inspect_err(|_| drop_unseen(self.contract, number, room))?;
                }
                way.line.answered();
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
unsafe fn drop_unseen(contract: &'static Info, number: u16, payload: *mut u8) {
    // SAFETY: the caller promises that the payload lies there; nobody looks at it again.
    unsafe { EXCHANGE.discard(contract, number, payload) };
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Bridge")
    }
}

impl std::fmt::Debug for Joint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Joint")
    }
}
