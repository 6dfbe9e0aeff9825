//! Processes by number.

use std::time::Duration;

use mullion_sip_core::owner::Owner;
use mullion_sip_core::process::Unfinished;

use crate::inner::CORE;
use crate::process::{self, Cause, Exit, Home, Limits, Options, Rights};

use super::read::{Out, slice, text};
use super::refusal::answer;
use super::{Argument, Refusal, ends, offered, time};

/// How a new process is to be. All zero but for `size` is a process with the usual limits, where its parent lives, without
/// rights to names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Wish {
    /// Bytes of this structure; later versions may have more.
    pub size: u32,
    /// 0 for no names, 1 for the rights that the parent has.
    pub rights: u32,
    /// 0: where its parent lives; 1: on the workers in turn; 2 and more: on worker `home - 2`, modulo their number.
    pub home: u32,
    /// Threads at a time; 0 for [`Limits::DEFAULT`]'s, as for all limits.
    pub threads: u32,
    /// Bytes of its heap.
    pub memory: u64,
    /// Bytes of the exchange heap.
    pub exchange: u64,
    /// Nanoseconds of processor time without letting others run.
    pub slice: u64,
    /// Children at a time, plus one: 1 for none.
    pub children: u32,
    /// 0.
    pub reserved: u32,
}

/// How a process has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct ProcessEnd {
    /// 0 returned, 1 exited with `status`, 2 panic, 3 killed, 4 memory, 5 stack, 6 slice, 7 fault, 8 abort.
    pub cause: u32,
    /// The status, if it exited with one; else 0.
    pub status: u32,
    /// Bytes of its last words.
    pub length: u32,
    /// They, in UTF-8, and zeros behind.
    pub message: [u8; 124],
}

/// One process at the moment of asking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct ProcessStatistics {
    /// Which process.
    pub process: u64,
    /// Whose child it is.
    pub parent: u64,
    /// Bytes of its heap, and the most that it may have.
    pub memory: u64,
    /// See `memory`.
    pub memory_limit: u64,
    /// Bytes of the exchange heap that it holds or has sent without an answer, and the most that it may.
    pub exchange: u64,
    /// See `exchange`.
    pub exchange_limit: u64,
    /// Messages that it has sent from ends of channels that it has closed since.
    pub sent: u64,
    /// Its threads.
    pub threads: u32,
    /// Its children, those included that have ended and that nobody has asked after.
    pub children: u32,
    /// Names that it has bound.
    pub names: u32,
    /// The worker that it lives on.
    pub worker: u32,
}

/// # Safety
/// `length` bytes can be read at `name`, and one number written at `number`; or they are null.
pub(super) unsafe extern "C" fn program(name: *const u8, length: usize, number: *mut u32) -> u32 {
    let found = || {
        // SAFETY: the caller promises a name of `length` bytes and room for a number. Nulls are refused by both.
        let (name, number) = unsafe { (text(name, length)?, Out::new(number)?) };
        number.put(offered::program_of(name).ok_or(Refusal::Unknown)?);
        Ok(())
    };
    answer(found())
}

/// # Safety
/// `wish` points to one, or is null for the usual; `child` to room for one number, or is null.
pub(super) unsafe extern "C" fn create_process(
    program: u32,
    wish: *const Wish,
    argument: u64,
    channel: u64,
    child: *mut u64,
) -> u32 {
    let made = || {
        // SAFETY: the caller promises room for a number at `child`. A null is refused.
        let child = unsafe { Out::new(child) }?;
        let program = offered::program(program).ok_or(Refusal::Unknown)?;
        let options = if wish.is_null() {
            Options::default()
        } else {
            // SAFETY: it is not null, and then the caller promises one `Wish` there.
            options(unsafe { slice(wish, 1) }?.first())?
        };
        ends::process().ok_or(Refusal::NoProcess)?;
        let end = match channel {
            0 => None,
            number => Some(ends::with(|ends| ends.remove(number))?),
        };
        let argument = Argument {
            number: argument,
            end,
        };
        child.put(CORE.into_number(process::spawn(program, argument, &options)?));
        Ok(())
    };
    answer(made())
}

fn options(wish: Option<&Wish>) -> Result<Options, Refusal> {
    let wish = wish.ok_or(Refusal::Null)?;
    if wish.size as usize != size_of::<Wish>() || wish.reserved != 0 {
        return Err(Refusal::Malformed);
    }
    let usual = Limits::DEFAULT;
    let memory = usize::try_from(wish.memory).map_err(|_| Refusal::Malformed)?;
    let or = |value: u64, usual: u64| if value == 0 { usual } else { value };
    let limits = Limits {
        memory: if memory == 0 { usual.memory } else { memory },
        exchange: or(wish.exchange, usual.exchange),
        threads: or(wish.threads.into(), usual.threads.into()) as u32,
        children: wish.children.checked_sub(1).unwrap_or(usual.children),
        slice: match wish.slice {
            0 => usual.slice,
            nanoseconds => Duration::from_nanos(nanoseconds),
        },
    };
    let home = match wish.home {
        0 => Home::Here,
        1 => Home::Next,
        worker => Home::Worker(worker as usize - 2),
    };
    let rights = match wish.rights {
        0 => Rights::none(),
        1 => CORE.own_rights(),
        _ => return Err(Refusal::Malformed),
    };
    Ok(Options {
        limits,
        home,
        rights,
    })
}

pub(super) extern "C" fn kill(child: u64) -> u32 {
    answer(
        CORE.kill_numbered(Owner::from_bits(child))
            .ok_or(Refusal::Unknown),
    )
}

/// # Safety
/// One can be written at `end`, or it is null.
pub(super) unsafe extern "C" fn wait(child: u64, deadline: u64, end: *mut ProcessEnd) -> u32 {
    let ended = || {
        // SAFETY: the caller promises room for a `ProcessEnd`. A null is refused.
        let end = unsafe { Out::new(end) }?;
        let exit = CORE
            .wait_numbered(Owner::from_bits(child), time::instant(deadline))
            .map_err(|unfinished| match unfinished {
                Unfinished::NoSuchChild => Refusal::Unknown,
                Unfinished::Waited => Refusal::Busy,
                Unfinished::Deadline => Refusal::Deadline,
            })?;
        end.put(end_of(&exit));
        Ok(())
    };
    answer(ended())
}

fn end_of(exit: &Exit) -> ProcessEnd {
    let (cause, status) = match exit.cause {
        Cause::Returned => (0, 0),
        Cause::Exited(status) => (1, status.into()),
        Cause::Panic => (2, 0),
        Cause::Killed => (3, 0),
        Cause::Memory => (4, 0),
        Cause::Stack => (5, 0),
        Cause::Slice => (6, 0),
        Cause::Fault => (7, 0),
        Cause::Abort => (8, 0),
    };
    let said = exit.message.as_str().as_bytes();
    let mut end = ProcessEnd {
        cause,
        status,
        length: said.len() as u32,
        message: [0; 124],
    };
    end.message[..said.len()].copy_from_slice(said);
    end
}

/// # Safety
/// One can be written at `statistics`, or it is null.
pub(super) unsafe extern "C" fn statistics(which: u64, statistics: *mut ProcessStatistics) -> u32 {
    let told = || {
        // SAFETY: the caller promises room for the statistics. A null is refused.
        let place = unsafe { Out::new(statistics) }?;
        let own = ends::process().ok_or(Refusal::NoProcess)?;
        let which = match which {
            0 => own,
            other => Owner::from_bits(other),
        };
        let one = process::statistics_of(which, own).ok_or(Refusal::Unknown)?;
        place.put(ProcessStatistics {
            process: one.owner.to_bits(),
            parent: one.parent.to_bits(),
            memory: one.memory.0 as u64,
            memory_limit: one.memory.1 as u64,
            exchange: one.exchange.held,
            exchange_limit: one.exchange.limit,
            sent: one.sent,
            threads: one.threads,
            children: one.children,
            names: one.names,
            worker: one.worker.into(),
        });
        Ok(())
    };
    answer(told())
}
