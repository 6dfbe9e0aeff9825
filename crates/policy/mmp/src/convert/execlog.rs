//! Lines of QEMU's plugin `execlog` (contrib/plugins/execlog.c), for x86-64 guests.
//!
//! ```text
//! 0, 0x401c5f, 0xc52815c3, "retq ", load, 0x4000800608
//! |  |         |           |        \ each access in order: `load` or `store`, and its address; of a
//! |  |         |           |          whole system, the name of a device behind it
//! |  |         |           \ the disassembly
//! |  |         \ the first four bytes of the instruction, the lowest first
//! |  \ its address
//! \ the processor
//! ```
//!
//! Two things are missing. The length of an instruction is the distance to the next one, if that is at most the
//! longest instruction. Otherwise it follows from its first bytes, where they are those of a jump, a call or a
//! return. The size of an access is what the map says.

use super::follower::{Follower, Kind};
use super::{Stop, decimal, hexadecimal, shown};
use crate::event::TraceEvent;

/// The longest instruction of an x86 processor.
const LONGEST: u64 = 15;

/// An instruction whose length is not known before the next line.
struct Held {
    processor: u32,
    address: u64,
    opcode: [u8; 4],
    accesses: Vec<(Kind, u64)>,
}

/// What was read of a file.
pub(super) struct TraceReader {
    access_bytes: u32,
    held: Option<Held>,
}

impl TraceReader {
    pub(super) fn new(access_bytes: u32) -> Self {
        TraceReader {
            access_bytes,
            held: None,
        }
    }

    /// Takes one line.
    pub(super) fn line<E, S: FnMut(TraceEvent) -> Result<(), E>>(
        &mut self,
        line: &[u8],
        follower: &mut Follower<'_, S>,
    ) -> Result<(), Stop<E>> {
        // The plugin ends with an empty line for a processor that did nothing.
        if line.is_empty() {
            return Ok(());
        }
        let mut accesses = Vec::new();
        if let Some(held) = self.held.take() {
            let next = next_address(line).filter(|(processor, _)| *processor == held.processor);
            self.take(&held, next.map(|(_, address)| address), follower)?;
            accesses = held.accesses;
        }
        accesses.clear();
        self.held = Some(parse(line, accesses)?);
        Ok(())
    }

    /// Takes the last instruction.
    pub(super) fn finish<E, S: FnMut(TraceEvent) -> Result<(), E>>(
        &mut self,
        follower: &mut Follower<'_, S>,
    ) -> Result<(), Stop<E>> {
        match self.held.take() {
            Some(held) => self.take(&held, None, follower),
            None => Ok(()),
        }
    }

    fn take<E, S: FnMut(TraceEvent) -> Result<(), E>>(
        &self,
        held: &Held,
        next: Option<u64>,
        follower: &mut Follower<'_, S>,
    ) -> Result<(), Stop<E>> {
        let distance = next.map(|next| next.wrapping_sub(held.address));
        let bytes = match (transfer_bytes(held.opcode), distance) {
            (Some(bytes), _) => bytes,
            (None, Some(distance @ 1..=LONGEST)) => distance as u32,
            (None, _) => 1,
        };
        follower.instruction(held.processor, held.address, bytes)?;
        for &(kind, address) in &held.accesses {
            follower.access(kind, address, self.access_bytes)?;
        }
        Ok(())
    }
}

/// The next field and what is behind it.
fn field(line: &[u8]) -> (&[u8], &[u8]) {
    match line.windows(2).position(|pair| pair == b", ") {
        Some(comma) => (&line[..comma], &line[comma + 2..]),
        None => (line, &[]),
    }
}

fn prefixed(field: &[u8]) -> Option<u64> {
    hexadecimal(field.strip_prefix(b"0x")?)
}

/// Processor and address alone.
fn next_address(line: &[u8]) -> Option<(u32, u64)> {
    let (processor, rest) = field(line);
    Some((decimal(processor)?, prefixed(field(rest).0)?))
}

fn parse<E>(line: &[u8], mut accesses: Vec<(Kind, u64)>) -> Result<Held, Stop<E>> {
    let wrong = |field: &[u8], what: &str| Stop::what(format!("{} is no {what}", shown(field)));
    let (first, rest) = field(line);
    let processor = decimal(first).ok_or_else(|| wrong(first, "number of a processor"))?;
    let (second, rest) = field(rest);
    let address = prefixed(second).ok_or_else(|| wrong(second, "address, like 0x401000"))?;
    let (third, rest) = field(rest);
    let opcode = prefixed(third).and_then(|opcode| u32::try_from(opcode).ok());
    let opcode = opcode.ok_or_else(|| wrong(third, "opcode of four bytes, like 0xc3"))?;
    let quoted = rest.strip_prefix(b"\"");
    let quoted = quoted.ok_or_else(|| wrong(rest, "disassembly in quotation marks"))?;
    let end = quoted.iter().position(|&byte| byte == b'"');
    let end = end.ok_or_else(|| Stop::what("the disassembly has no end"))?;
    let mut rest = &quoted[end + 1..];
    while !rest.is_empty() {
        let behind = rest.strip_prefix(b", ");
        let (name, more) = field(behind.ok_or_else(|| wrong(rest, "access"))?);
        let kind = match name {
            b"load" => Kind::Load,
            b"store" => Kind::Store,
            // A device's name, or a register's value in later versions of the plugin.
            _ if !name.is_empty() => {
                rest = remainder(rest, more);
                continue;
            }
            _ => return Err(wrong(rest, "access")),
        };
        let (place, more) = field(more);
        let place = prefixed(place).ok_or_else(|| wrong(place, "address of an access"))?;
        accesses.push((kind, place));
        rest = remainder(rest, more);
    }
    Ok(Held {
        processor,
        address,
        opcode: opcode.to_le_bytes(),
        accesses,
    })
}

/// `more` again with the ", " in front of it, or nothing if there is no more.
fn remainder<'a>(rest: &'a [u8], more: &'a [u8]) -> &'a [u8] {
    match more.is_empty() {
        true => &[],
        false => &rest[rest.len() - more.len() - 2..],
    }
}

/// The length of a jump, call or return, from its first bytes.
fn transfer_bytes(opcode: [u8; 4]) -> Option<u32> {
    let mut prefixes = 0;
    // Prefixes: operand size, segments (`notrack`), `bnd` and `rep`, and those of 64-bit code.
    while prefixes < 2
        && matches!(
            opcode[prefixes],
            0x66 | 0x2e | 0x3e | 0xf2 | 0xf3 | 0x40..=0x4f
        )
    {
        prefixes += 1;
    }
    let rest = &opcode[prefixes..];
    let bytes = match rest {
        [0xc3, ..] => 1,
        [0xc2, ..] => 3,
        [0xe8 | 0xe9, ..] => 5,
        [0xeb | 0x70..=0x7f, ..] => 2,
        [0x0f, 0x80..=0x8f, ..] => 6,
        // Through a register or memory: /2 is a call, /4 a jump.
        [0xff, form, more @ ..] if matches!(form >> 3 & 7, 2 | 4) => {
            2 + operand_bytes(*form, more.first().copied())
        }
        _ => return None,
    };
    Some(prefixes as u32 + bytes)
}

/// Bytes of an operand behind its first one.
fn operand_bytes(form: u8, scale: Option<u8>) -> u32 {
    let (mode, register) = (form >> 6, form & 7);
    let scaled = u32::from(mode != 3 && register == 4);
    let displacement = match mode {
        0 if register == 5 => 4,
        0 if register == 4 && scale.is_some_and(|scale| scale & 7 == 5) => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    scaled + displacement
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_calls_jumps_and_returns() {
        for (opcode, bytes) in [
            (0x138f_e8e8_u32, Some(5)), // call rel32
            (0x0000_00c3, Some(1)),     // ret
            (0x0000_c3f2, Some(2)),     // bnd ret
            (0x0000_d0ff, Some(2)),     // call *%rax
            (0x00d0_ff41, Some(3)),     // call *%r8
            (0x1234_15ff, Some(6)),     // call *disp(%rip)
            (0x0008_50ff, Some(3)),     // call *8(%rax)
            (0x0824_54ff, Some(4)),     // call *8(%rsp)
            (0xc524_14ff, Some(3)),     // call *(%rsp)
            (0x00c5_14ff, Some(7)),     // call *table(,%rax,8)
            (0x3425_fff2, Some(7)),     // bnd jmp *disp(%rip)
            (0x0000_05eb, Some(2)),     // jmp
            (0x1234_840f, Some(6)),     // je rel32
            (0x00c0_8948, None),        // mov
        ] {
            assert_eq!(transfer_bytes(opcode.to_le_bytes()), bytes, "{opcode:#x}");
        }
    }
}
