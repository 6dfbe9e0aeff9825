//! Checks of any operand, as machine code, for tests that make code without an assembler.

use mullion_decoder::decode::{Instruction, NONE};

/// An operand in memory; [`NONE`] where there is no register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    pub(crate) base: u8,
    pub(crate) index: u8,
    pub(crate) scale: u8,
    pub(crate) displacement: i32,
}

impl Operand {
    pub(crate) const fn base(base: u8) -> Self {
        Self {
            base,
            index: NONE,
            scale: 0,
            displacement: 0,
        }
    }

    pub(crate) const fn of(instruction: &Instruction) -> Self {
        Self {
            base: instruction.base,
            index: instruction.index,
            scale: instruction.scale,
            displacement: instruction.displacement,
        }
    }

    /// ModRM, SIB and displacement of 32 bits, and the bits of REX.
    fn encode(&self, reg: u8, by: i32) -> (u8, Vec<u8>) {
        let mut rex = (reg >> 3) << 2;
        let index = match self.index {
            NONE => 4,
            index => {
                rex |= (index >> 3) << 1;
                index & 7
            }
        };
        let (mode, base) = match self.base {
            NONE => (0, 5),
            base => {
                rex |= base >> 3;
                (0x80, base & 7)
            }
        };
        let mut bytes = vec![
            mode | (reg & 7) << 3 | 4,
            self.scale << 6 | index << 3 | base,
        ];
        bytes.extend(self.displacement.wrapping_add(by).to_le_bytes());
        (rex, bytes)
    }

    /// `lea by+OPERAND, %r11` and `shr $2, %r11`.
    fn scaled(&self, by: i32) -> Vec<u8> {
        let (rex, rest) = self.encode(11, by);
        let mut code = vec![0x48 | rex, 0x8d];
        code.extend(rest);
        code.extend([0x49, 0xc1, 0xeb, 0x02]);
        code
    }

    /// `cmpb $0, OPERAND`: an access of a byte that changes nothing.
    pub(crate) fn touch(&self) -> Vec<u8> {
        let (rex, rest) = self.encode(7, 0);
        let mut code = vec![0x40 | rex, 0x80];
        code.extend(rest);
        code.push(0);
        code
    }
}

/// A check whose points are still to be written.
pub(crate) struct Pending {
    operand: Operand,
    bytes: u32,
    right: u8,
    jumps: Vec<usize>,
    back: usize,
}

fn lead(code: &mut [u8], jump: usize, to: usize) {
    let distance = to as i32 - (jump as i32 + 4);
    code[jump..jump + 4].copy_from_slice(&distance.to_le_bytes());
}

/// The compares for `bytes` bytes at the operand. `right` is what its points ask for: 1 or 2.
pub(crate) fn check(code: &mut Vec<u8>, operand: Operand, bytes: u32, right: u8) -> Pending {
    code.extend(operand.scaled(0));
    let mut jumps = Vec::new();
    for block in 0..(bytes + 3).div_ceil(16) as u8 {
        // cmp %r14, %gs:8*block(%r11,%r11)
        code.extend([0x65, 0x4f, 0x39, 0x74, 0x1b, 8 * block, 0x0f, 0x85]);
        jumps.push(code.len());
        code.extend([0; 4]);
    }
    Pending {
        operand,
        bytes,
        right,
        jumps,
        back: code.len(),
    }
}

impl Pending {
    /// The points, somewhere behind.
    pub(crate) fn points(self, code: &mut Vec<u8>) {
        for jump in self.jumps {
            let here = code.len();
            lead(code, jump, here);
        }
        let mut refusals = Vec::new();
        let mut point = 0;
        loop {
            code.extend(self.operand.scaled(point));
            code.extend([0x65, 0x47, 0x0f, 0xb7, 0x1c, 0x1b]);
            code.extend([0x65, 0x67, 0x43, 0xf6, 0x04, 0x1e, self.right]);
            if point == self.bytes as i32 - 1 {
                break;
            }
            code.extend([0x0f, 0x84]);
            refusals.push(code.len());
            code.extend([0; 4]);
            point = (point + 4).min(self.bytes as i32 - 1);
        }
        code.extend([0x0f, 0x85]);
        let last = code.len();
        code.extend([0; 4]);
        lead(code, last, self.back);
        for refusal in refusals {
            let here = code.len();
            lead(code, refusal, here);
        }
        code.extend([0x0f, 0xb9, 0xc1]);
    }
}
