//! Looks at one argument, by the word of its row.

use super::{has, is_connection, lacks, with_name, with_place};
use crate::copied::Texts;
use crate::frame::Frame;
use crate::interface::{Extent, Param, Text};
use crate::object::Kind;
use crate::outs::Outs;
use crate::walled::Answer;

/// Looks at an argument that is an object; what the function gets for it.
#[inline]
pub(super) fn look(
    frame: &Frame,
    name: &str,
    at: usize,
    param: &Param,
    arguments: &[u64],
    outs: Option<&Outs>,
    texts: &mut Texts,
) -> Answer<u64> {
    let (walled, value) = (frame.walled, arguments[at]);
    match *param {
        Param::Text { what, .. } if value != 0 => match what {
            Text::Encoding if value == 1 => {}
            _ => {
                let text = texts.copy(frame, value);
                return text.map_err(|what| with_place(name, at, &what));
            }
        },
        Param::Text { null: false, .. } => return lacks(name, at, value, "string"),
        Param::Read { null: true, .. } if value == 0 => {}
        Param::Read { what, .. } => {
            let read = reads(frame, what, value, arguments, outs);
            read.map_err(|what| with_place(name, at, &what))?;
        }
        Param::Pool => {
            let pool = walled.pool(frame, value);
            pool.map_err(|what| with_name(name, &what))?;
        }
        Param::Request { null: true } if value == 0 => {}
        Param::Request { .. } => {
            let real = walled.shadow(frame, value);
            return match real.map_err(|what| with_name(name, &what))? {
                Some(real) => Ok(real),
                None => lacks(name, at, value, "request"),
            };
        }
        Param::Connection { null } if !(is_connection(frame, value) || null && value == 0) => {
            return lacks(name, at, value, "connection");
        }
        Param::Server { null } if !(frame.has_server(value) || null && value == 0) => {
            return lacks(name, at, value, "server");
        }
        Param::Object {
            kind: Kind::Regex, ..
        } if walled.pattern(value).is_some() => {
            return Ok(walled.pattern(value).unwrap_or(0));
        }
        Param::Object { kind, null } if !(has(frame, kind, value) || null && value == 0) => {
            return lacks(name, at, value, kind.name());
        }
        _ => {}
    }
    Ok(value)
}

/// A number is not above the most that a function may get.
pub(super) fn is_below(name: &str, at: usize, value: u64, (most, wide): (u64, bool)) -> Answer<()> {
    let number = if wide { value } else { value & 0xffff_ffff };
    match number > most {
        true => Err(format!("{name}: argument {at}, {number}, is above {most}")),
        false => Ok(()),
    }
}

/// Whether [`look`] would find an argument to be as it should, and would pass it on as it is, as far as that is seen at once: it is of
/// the request that the call was given.
#[inline(always)]
fn is_near(frame: &Frame, param: &Param, value: u64) -> bool {
    match *param {
        Param::Object {
            kind: Kind::Table, ..
        } => frame.has_near_table(value),
        Param::Request { .. } => value != 0 && value == frame.first_request(),
        _ => false,
    }
}

/// The word that a function gets for an argument that is looked at alone. There is a quick way for most arguments, and [`look`] for the rest.
#[inline(always)]
pub(super) fn look_quickly(
    frame: &Frame,
    (name, at, param): (&str, usize, &Param),
    arguments: &[u64],
    texts: &mut Texts,
) -> Answer<u64> {
    let value = arguments[at];
    match *param {
        Param::Text {
            what: Text::Read, ..
        } if value != 0 => {
            let copy = texts.copy(frame, value);
            copy.map_err(|what| with_place(name, at, &what))
        }
        _ if is_near(frame, param, value) => Ok(value),
        _ => look(frame, name, at, param, arguments, None, texts),
    }
}

/// Memory that the host reads in its place is there, and the module may read it.
#[inline]
fn reads(
    frame: &Frame,
    what: Extent,
    from: u64,
    arguments: &[u64],
    outs: Option<&Outs>,
) -> Answer<()> {
    let argument = |at: usize| arguments.get(at).copied().unwrap_or(0);
    let bytes = match what {
        Extent::Most(at) => return frame.walled.length(from, argument(at)).map(drop),
        Extent::Key(at) if argument(at) == u64::MAX => {
            return frame.walled.length(from, u64::MAX).map(drop);
        }
        Extent::Key(at) => argument(at),
        Extent::Bytes(bytes) => bytes,
        Extent::Int(at) => i64::from(argument(at) as i32) as u64,
        Extent::Unsigned(at) => u64::from(argument(at) as u32),
        Extent::By(at, scale) => argument(at).saturating_mul(scale),
        // The function gets the number that is looked at.
        Extent::At(at) => outs
            .and_then(|outs| outs.word(at))
            .ok_or("no number of bytes")?,
    };
    frame.walled.must_find(from, bytes)
}
