//! Lines of `valgrind --tool=lackey --trace-mem=yes`.
//!
//! ```text
//! I  0023C790,2     an instruction: address in base 16, bytes in base 10
//!  S BE80199C,4     a store of the instruction above
//!  L BE801950,4     a load
//!  M 0025747C,1     a load and then a store of the same bytes
//! ==1234== ...      valgrind's own words, passed over; so are lines that begin with `--`
//! ```

use super::follower::{Follower, Kind};
use super::{Stop, decimal, hexadecimal, shown};
use crate::event::TraceEvent;

/// Takes one line.
pub(super) fn line<E, S: FnMut(TraceEvent) -> Result<(), E>>(
    line: &[u8],
    follower: &mut Follower<'_, S>,
) -> Result<(), Stop<E>> {
    if line.starts_with(b"==") || line.starts_with(b"--") {
        return Ok(());
    }
    let (Some(kind), Some(rest)) = (line.get(..3), line.get(3..)) else {
        return Err(unknown(line));
    };
    let known = matches!(kind, b"I  " | b" L " | b" S " | b" M ");
    if !known {
        return Err(unknown(line));
    }
    let comma = rest.iter().position(|&byte| byte == b',');
    let comma = comma.ok_or_else(|| Stop::what("a comma between address and bytes is missing"))?;
    let address = hexadecimal(&rest[..comma]);
    let address = address.ok_or_else(|| {
        Stop::what(format!(
            "{} is no address in base 16",
            shown(&rest[..comma])
        ))
    })?;
    let bytes = decimal(&rest[comma + 1..]);
    let bytes = bytes.ok_or_else(|| {
        Stop::what(format!(
            "{} is no number of bytes",
            shown(&rest[comma + 1..])
        ))
    })?;
    match kind {
        b"I  " => follower.instruction(0, address, bytes),
        b" L " => follower.access(Kind::Load, address, bytes),
        b" S " => follower.access(Kind::Store, address, bytes),
        _ => {
            follower.access(Kind::Load, address, bytes)?;
            follower.access(Kind::Store, address, bytes)
        }
    }
}

fn unknown<E>(line: &[u8]) -> Stop<E> {
    Stop::what(format!(
        "{} is no line of lackey (valgrind's --log-file keeps the program's own output apart)",
        shown(line)
    ))
}
