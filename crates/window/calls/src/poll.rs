//! poll: which descriptors can be read or written without waiting. Only the host's input and pipes are ever waited for.

use crate::call::Call;
use crate::descriptor::Object;
use crate::errno::{Answer, CallStop, Errno};
use crate::files;
use crate::pipe;
use crate::pipes::{ERROR, HANGUP, IN, OUT};
use crate::program::{Moment, Stream};
use alloc::vec::Vec;

const INVALID: u16 = 0x20;
/// The same as IN and OUT, by other names.
const IN_NORMAL: u16 = 0x40;
const OUT_NORMAL: u16 = 0x100;

/// Most descriptors of one call.
const MOST: u64 = 1024;
/// Linux' number of the clock that only goes forward.
const MONOTONIC: i32 = 1;
/// How long one wait for the host's input takes at most, in milliseconds.
const STEP: u32 = 20;

/// `struct pollfd`.
struct Asked {
    number: i32,
    events: u16,
    found: u16,
}

impl Asked {
    fn of([word]: [u64; 1]) -> Self {
        Self {
            number: word as i32,
            events: (word >> 32) as u16,
            found: 0,
        }
    }

    fn bytes(&self) -> [u8; 8] {
        let low = u64::from(self.number.cast_unsigned());
        (low | u64::from(self.events) << 32 | u64::from(self.found) << 48).to_le_bytes()
    }

    /// Looks, and waits for the host's input so long at most.
    fn look(&mut self, call: &Call<'_>, milliseconds: u32) -> Result<(), CallStop> {
        if self.number < 0 {
            return Ok(());
        }
        let Ok(open) = files::named(call, self.number) else {
            self.found = INVALID;
            return Ok(());
        };
        let ready = match &open.object {
            Object::Device(_) | Object::Above(_) => IN | OUT,
            Object::Pipe(end) => pipe::ready(end, call)?,
            Object::Host(handle) => match call.program().as_stream(handle) {
                None => IN | OUT,
                Some(Stream::Output | Stream::Error) => OUT,
                Some(Stream::Input) if self.events & (IN | IN_NORMAL) == 0 => 0,
                Some(Stream::Input) => match call.program().wait_ready(handle, milliseconds)? {
                    true => IN,
                    false => 0,
                },
            },
        };
        let normal = [(IN, IN_NORMAL), (OUT, OUT_NORMAL)];
        let normal = normal.into_iter().filter(|(bit, _)| ready & bit != 0);
        let ready = normal.fold(ready, |all, (_, other)| all | other);
        self.found = ready & (self.events | ERROR | HANGUP);
        Ok(())
    }

    /// Whether only a wait for the host's input tells when there is more.
    fn is_input(&self, call: &Call<'_>) -> bool {
        files::named(call, self.number).is_ok_and(|open| match &open.object {
            Object::Host(handle) => call.program().as_stream(handle) == Some(Stream::Input),
            _ => false,
        })
    }
}

/// Waits for one of them until `end`, for ever without one. A time to wait for is a clock, so it needs that grant.
fn wait(call: &Call<'_>, asked: &mut [Asked], limit: Option<Moment>) -> Answer {
    let mut end = None;
    loop {
        for each in &mut *asked {
            each.look(call, 0)?;
        }
        let count = asked.iter().filter(|each| each.found != 0).count();
        if count > 0 || limit == Some((0, 0)) {
            return Ok(count as u64);
        }
        if call.is_out_of_time() {
            return Err(Errno::INTR.into());
        }
        if let Some((seconds, rest)) = limit {
            let now = call.program().now(MONOTONIC)?;
            let end = *end.get_or_insert_with(|| {
                let sum = now.1.saturating_add(rest);
                let (more, rest) = (sum / 1_000_000_000, sum % 1_000_000_000);
                (now.0.saturating_add(seconds).saturating_add(more), rest)
            });
            if now >= end {
                return Ok(0);
            }
        }
        match asked.iter().position(|each| each.is_input(call)) {
            Some(input) => match asked.get_mut(input) {
                Some(each) => each.look(call, STEP)?,
                None => return Err(Errno::FAULT.into()),
            },
            None => call.program().wait_a_moment()?,
        }
    }
}

fn answer(call: &Call<'_>, limit: Option<Moment>) -> Answer {
    let count = call.argument(1);
    if count > MOST {
        return Err(Errno::INVAL.into());
    }
    let records = match count {
        0 => Vec::new(),
        _ => call.records(0, count as usize)?,
    };
    let mut asked: Vec<Asked> = records.into_iter().map(Asked::of).collect();
    let ready = wait(call, &mut asked, limit)?;
    let bytes: Vec<u8> = asked.iter().flat_map(Asked::bytes).collect();
    if !bytes.is_empty() {
        call.write(call.argument(0), &bytes)?;
    }
    Ok(ready)
}

pub(crate) fn poll(call: &Call<'_>) -> Answer {
    let milliseconds = i64::from(call.int(2));
    let limit =
        (milliseconds >= 0).then_some((milliseconds / 1000, milliseconds % 1000 * 1_000_000));
    answer(call, limit)
}

/// Its mask of signals is the C library's affair.
pub(crate) fn ppoll(call: &Call<'_>) -> Answer {
    let limit = match call.argument(2) {
        0 => None,
        _ => {
            let [seconds, rest] = call.record(2)?.map(|word: u64| word as i64);
            if seconds < 0 || !(0..1_000_000_000).contains(&rest) {
                return Err(Errno::INVAL.into());
            }
            Some((seconds, rest))
        }
    };
    answer(call, limit)
}
