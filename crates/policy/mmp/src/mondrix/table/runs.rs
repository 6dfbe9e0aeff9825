//! An encoding of ours, which Mondrix does not have: run lengths.
//!
//! ```text
//!   any    |00|  b1 (5) | b2 (5) | b3 (5) | b4 (5) | p0 p1 p2 p3 p4 (10) |
//!   above  |01|        first word of the next table (30)                 |
//!   leaf   |10|        first of two words with 32 permissions (30)       |
//! ```
//!
//! An entry cuts its span into 32 sub-blocks and holds at most five runs of equal permission. Run `i` begins at
//! sub-block `b_i` (`b_0` is 0), so unused runs stand empty in front. The earlier MMP design had a small sorted
//! segment table in each entry, so that one load described as much as possible. That design's overlap fields say how
//! far a run continues beyond the entry. They fed its per-register caches; Mondrix has none, so their bits go into
//! twice as many sub-blocks and a fifth run. A leaf entry spans 128 bytes instead of 64, a page with few objects
//! needs no leaf table at all. A block in the lookaside buffer reaches twice as far. The price is a read-modify-write
//! with decoding where the vector only masks, and a second load for the rare leaf with more than five runs.

use super::encoding::{Content, Encoding, ONES, low_parts};

/// Up to five runs over 32 sub-blocks.
#[derive(Clone, Copy, Debug)]
pub struct Runs;

impl Encoding for Runs {
    const PARTS_LOG2: u32 = 5;
    const OUT_OF_LINE: bool = true;

    fn decode(entry: u32, _leaf: bool) -> Content {
        match entry >> 30 {
            0 => {}
            1 => return Content::Table(entry & 0x3fff_ffff),
            _ => return Content::OutOfLine(entry & 0x3fff_ffff),
        }
        let mut perms = 0;
        for run in 0..5 {
            let perm = u64::from(entry >> (2 * run) & 3);
            let begin = if run == 0 {
                0
            } else {
                entry >> (10 + 5 * (run - 1)) & 31
            };
            // A later run overrides an earlier one from its beginning on.
            perms = perms & low_parts(begin) | (perm * ONES) & !low_parts(begin);
        }
        Content::Perms(perms)
    }

    fn encode(perms: u64, _leaf: bool) -> Option<u32> {
        let mut begins = [0u32; 5];
        let mut values = [0u32; 5];
        let mut count = 0;
        let mut previous = u64::MAX;
        for part in 0..32 {
            let perm = perms >> (2 * part) & 3;
            if perm != previous {
                if count == 5 {
                    return None;
                }
                begins[count] = part;
                values[count] = perm as u32;
                count += 1;
                previous = perm;
            }
        }
        // The runs go to the end; the unused ones in front are empty.
        let unused = 5 - count;
        let mut entry = 0;
        for run in 0..count {
            entry |= values[run] << (2 * (run + unused));
            if run + unused > 0 {
                entry |= begins[run] << (10 + 5 * (run + unused - 1));
            }
        }
        Some(entry)
    }

    fn table(at: u32) -> u32 {
        1 << 30 | at
    }

    fn out_of_line(at: u32) -> u32 {
        2 << 30 | at
    }
}
