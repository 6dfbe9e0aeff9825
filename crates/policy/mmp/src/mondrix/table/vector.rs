//! The paper's encoding: bit vectors.
//!
//! ```text
//!   leaf    31                                                          0
//!          | 16 words, two bits each                                     |
//!   above  |0|        unused (15)        | 8 sub-blocks, two bits each   |
//!          |1|        first word of the next table (31)                  |
//! ```

use super::encoding::{Content, Encoding};

/// Two bits for each word (Mondrix, section 5.2, "the bitvector format").
#[derive(Clone, Copy, Debug)]
pub struct Vector;

impl Encoding for Vector {
    const PARTS_LOG2: u32 = 4;
    const OUT_OF_LINE: bool = false;

    fn decode(entry: u32, leaf: bool) -> Content {
        if leaf {
            return Content::Perms(u64::from(entry));
        }
        if entry >> 31 == 1 {
            return Content::Table(entry & 0x7fff_ffff);
        }
        // Each of the eight sub-blocks is two of the sixteen.
        let pairs = (0..8).map(|part| {
            let perm = u64::from(entry >> (2 * part) & 3);
            (perm | perm << 2) << (4 * part)
        });
        Content::Perms(pairs.sum())
    }

    fn encode(perms: u64, leaf: bool) -> Option<u32> {
        if leaf {
            return Some(perms as u32);
        }
        let mut entry = 0;
        for part in 0..8 {
            let pair = perms >> (4 * part) & 15;
            if pair & 3 != pair >> 2 {
                return None;
            }
            entry |= (pair as u32 & 3) << (2 * part);
        }
        Some(entry)
    }

    fn table(at: u32) -> u32 {
        1 << 31 | at
    }

    fn out_of_line(at: u32) -> u32 {
        at
    }
}
