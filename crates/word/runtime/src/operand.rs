//! Which address a check refused: the trap does not say, so the cold blocks that lead there are read again.
//!
//! ```text
//!   lea  OPERAND, %r11;  shr $2, %r11;  movzwl %gs:(%r11,%r11), %r11d;  testb $RIGHT, %gs:(%r14d,%r11d);  je trap
//! ```
//!
//! This is for people: a wrong answer is a wrong report, and nothing else.

use crate::core::Core;
use mullion_word_table::Access;

const SHIFT: [u8; 4] = [0x49, 0xc1, 0xeb, 0x02];
/// With and without `%r11d` in the form that the assembler takes.
const LOAD: [u8; 6] = [0x65, 0x47, 0x0f, 0xb7, 0x1c, 0x1b];
const TEST: [u8; 6] = [0x65, 0x67, 0x43, 0xf6, 0x04, 0x1e];

/// The address and the right that were refused at `trap`.
pub(crate) fn refused(core: &Core, trap: u64, registers: &[u64; 16]) -> Option<(u64, u8)> {
    let text = &core.text;
    let length = usize::try_from(text.end - text.start).ok()?;
    // SAFETY: it is the module's text, mapped for the life of the process, and never written.
    let code = unsafe { std::slice::from_raw_parts(text.start as *const u8, length) };
    let mut at = 0;
    while let Some(found) = code
        .get(at..)?
        .windows(TEST.len())
        .position(|bytes| bytes == TEST)
    {
        let test = at + found;
        at = test + 1;
        let right = *code.get(test + 6)?;
        if text.start + target(code, test + 7)? as u64 != trap {
            continue;
        }
        if let Some(address) = operand(code, test, text.start, registers)
            && !core.view.allows(
                address,
                1,
                if right == 2 {
                    Access::WRITE
                } else {
                    Access::READ
                },
            )
        {
            return Some((address, right));
        }
    }
    None
}

/// Where the `je` at `at`, or the `jne` that ends a block in front of its trap, leads when nothing is allowed.
fn target(code: &[u8], at: usize) -> Option<usize> {
    let short =
        |at: usize| Some((at + 2).wrapping_add_signed(isize::from(*code.get(at + 1)? as i8)));
    let long = |at: usize| {
        let bytes = code.get(at + 2..at + 6)?.try_into().ok()?;
        Some((at + 6).wrapping_add_signed(i32::from_le_bytes(bytes) as isize))
    };
    match (code.get(at)?, code.get(at + 1)?) {
        (0x74, _) => short(at),
        (0x0f, 0x84) => long(at),
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
