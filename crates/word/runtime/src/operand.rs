//! Which address a check refused: the trap does not say, so the cold blocks that lead there are read again.
//!
//! ```text
//!   lea  OPERAND, %r11;  shr $2, %r11;  movzwl %gs:(%r11,%r11), %r11d;  testb $RIGHT, %gs:(%r14d,%r11d);  je trap
//! ```
//!
//! This is for people: a wrong answer is a wrong report, and nothing else.

use crate::core::{Core, Points};
use crate::holder::Holder;
use mullion_word_table::Access;

const SHIFT: [u8; 4] = [0x49, 0xc1, 0xeb, 0x02];
/// With and without `%r11d` in the form that the assembler takes.
const LOAD: [u8; 6] = [0x65, 0x47, 0x0f, 0xb7, 0x1c, 0x1b];
const TEST: [u8; 6] = [0x65, 0x67, 0x43, 0xf6, 0x04, 0x1e];

/// What a check has refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The first byte without the right.
    pub(crate) address: u64,
    /// From there to the last byte that the check covers.
    pub(crate) bytes: u64,
    /// The bit of the map that was asked for.
    pub(crate) right: u8,
    /// Where the block goes on when all is allowed.
    pub(crate) back: Option<u64>,
}

/// What was refused at `trap`.
pub(crate) fn refused(
    core: &Core,
    holder: &Holder,
    trap: u64,
    registers: &[u64; 16],
) -> Option<Refused> {
    let text = &core.text;
    let length = usize::try_from(text.end - text.start).ok()?;
    // SAFETY: it is the module's text, mapped for the life of the process, and never written.
    let code = unsafe { std::slice::from_raw_parts(text.start as *const u8, length) };
    let points = core.points.get_or_init(|| points(code));
    let trap = u32::try_from(trap.checked_sub(text.start)?).ok()?;
    let first = points.partition_point(|(to, _)| *to < trap);
    let mut found: Option<Refused> = None;
    for (_, test) in points[first..].iter().take_while(|(to, _)| *to == trap) {
        let test = *test as usize;
        let (Some(&right), Some(address)) = (
            code.get(test + TEST.len()),
            operand(code, test, text.start, registers),
        ) else {
            continue;
        };
        let wanted = match right {
            2 => Access::WRITE,
            _ => Access::READ,
        };
        match &mut found {
            Some(found) => found.bytes = address.wrapping_sub(found.address).wrapping_add(1),
            None if holder.view.allows(address, 1, wanted) => {}
            None => {
                found = Some(Refused {
                    address,
                    bytes: 1,
                    right,
                    back: back(code, test).map(|at| text.start + at as u64),
                });
            }
        }
    }
    found
}

fn points(code: &[u8]) -> Points {
    let mut points: Points = looks(code)
        .filter_map(|test| {
            let trap = target(code, test + TEST.len() + 1)?;
            Some((u32::try_from(trap).ok()?, u32::try_from(test).ok()?))
        })
        .collect();
    points.sort_unstable();
    points
}

fn looks(code: &[u8]) -> impl Iterator<Item = usize> {
    let windows = code.windows(TEST.len()).enumerate();
    windows.filter_map(|(at, bytes)| (bytes == TEST).then_some(at))
}

/// Where the block of the look at `test` goes on when this and all later points are allowed.
fn back(code: &[u8], mut test: usize) -> Option<usize> {
    loop {
        let branch = test + TEST.len() + 1;
        let next = match (code.get(branch)?, code.get(branch + 1)?) {
            (0x74, _) => branch + 2,
            (0x0f, 0x84) => branch + 6,
            (0x75, _) => return short(code, branch),
            (0x0f, 0x85) => return long(code, branch, 2),
            _ => return None,
        };
        match code.get(next)? {
            0xeb => return short(code, next),
            0xe9 => return long(code, next, 1),
            _ => {}
        }
        // The next point: a `lea` of 3 to 8 bytes, the shift, the load, the look.
        test = (3..=8).find_map(|length| {
            let test = next + length + SHIFT.len() + LOAD.len();
            (code.get(next + length..test)? == [&SHIFT[..], &LOAD[..]].concat()
                && code.get(test..test + TEST.len())? == TEST)
                .then_some(test)
        })?;
    }
}

/// Where a branch with a distance of one byte leads.
fn short(code: &[u8], at: usize) -> Option<usize> {
    Some((at + 2).wrapping_add_signed(isize::from(*code.get(at + 1)? as i8)))
}

/// Where one with a distance of four bytes behind its opcode leads.
fn long(code: &[u8], at: usize, opcode: usize) -> Option<usize> {
    let bytes = code.get(at + opcode..at + opcode + 4)?.try_into().ok()?;
    Some((at + opcode + 4).wrapping_add_signed(i32::from_le_bytes(bytes) as isize))
}

/// Where the `je` at `at`, or the `jne` that ends a block in front of its trap, leads when nothing is allowed.
fn target(code: &[u8], at: usize) -> Option<usize> {
    match (code.get(at)?, code.get(at + 1)?) {
        (0x74, _) => short(code, at),
        (0x0f, 0x84) => long(code, at, 2),
        (0x75, _) => Some(at + 2),
        (0x0f, 0x85) => Some(at + 6),
        _ => None,
    }
}

/// The operand of the `lea` in front of the look at the map at `test`.
fn operand(code: &[u8], test: usize, start: u64, registers: &[u64; 16]) -> Option<u64> {
    let shift = test.checked_sub(LOAD.len() + SHIFT.len())?;
    if code.get(shift..shift + 4)? != SHIFT || code.get(shift + 4..test)? != LOAD {
        return None;
    }
    // A `lea` has 3 to 8 bytes here; the one that ends at the shift is it.
    (3..=8).find_map(|length| {
        let at = shift.checked_sub(length)?;
        let (address, used) = lea(code.get(at..shift)?, start + shift as u64, registers)?;
        (used == length).then_some(address)
    })
}

/// `lea OPERAND, %r11`: what it gives, and how long it is.
fn lea(code: &[u8], next: u64, registers: &[u64; 16]) -> Option<(u64, usize)> {
    let &[rex, 0x8d, modrm, ..] = code else {
        return None;
    };
    // 64 bits, and the destination %r11.
    if rex & 0xfc != 0x4c || (modrm >> 3) & 7 != 3 || modrm >> 6 == 3 {
        return None;
    }
    let register = |low: u8, high: u8| registers[usize::from(low & 7 | high << 3)];
    let (high_base, high_index) = (rex & 1, rex >> 1 & 1);
    let (mut address, mut used, mut form) = (0u64, 3, modrm >> 6);
    match (modrm & 7, form) {
        (5, 0) => {
            address = next;
            form = 2;
        }
        (4, _) => {
            let sib = *code.get(3)?;
            used = 4;
            if sib & 7 == 5 && form == 0 {
                form = 2;
            } else {
                address = register(sib, high_base);
            }
            if (sib >> 3) & 7 != 4 || high_index == 1 {
                address = address.wrapping_add(register(sib >> 3, high_index) << (sib >> 6));
            }
        }
        (base, _) => address = register(base, high_base),
    }
    let displacement = match form {
        0 => 0,
        1 => i64::from(*code.get(used)? as i8),
        _ => i64::from(i32::from_le_bytes(
            code.get(used..used + 4)?.try_into().ok()?,
        )),
    };
    used += [0, 1, 4][usize::from(form)];
    Some((address.wrapping_add_signed(displacement), used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_what_the_processor_makes_of_them() {
        let mut registers = [0u64; 16];
        for (at, register) in registers.iter_mut().enumerate() {
            *register = 0x1000 * (at as u64 + 1);
        }
        let cases: [(&[u8], u64); 6] = [
            (&[0x4c, 0x8d, 0x1f], 0x8000),                             // (%rdi)
            (&[0x4c, 0x8d, 0x5f, 0xfc], 0x7ffc),                       // -4(%rdi)
            (&[0x4c, 0x8d, 0x5c, 0x87, 0x08], 0x8000 + 0x4000 + 8),    // 8(%rdi,%rax,4)
            (&[0x4f, 0x8d, 0x1c, 0x48], 0x9000 + 0x14000),             // (%r8,%r9,2)
            (&[0x4c, 0x8d, 0x1d, 0x10, 0, 0, 0], 0x5010),              // 0x10(%rip)
            (&[0x4c, 0x8d, 0x1c, 0x8d, 0x20, 0, 0, 0], 0x8000 + 0x20), // 0x20(,%rcx,4)
        ];
        for (code, expected) in cases {
            assert_eq!(
                lea(code, 0x5000, &registers),
                Some((expected, code.len())),
                "{code:x?}"
            );
        }
        assert_eq!(
            lea(&[0x48, 0x8d, 0x1f], 0, &registers),
            None,
            "another destination"
        );
    }
}
