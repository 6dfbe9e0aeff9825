//! Which memory the processes of a domain have: what its kernel says, and what the host takes of that.
//!
//! Addresses are the domain's own, and what it says of them concerns nobody else. It may lie all the same. So what the
//! host takes is bounded, lies in the half of the address space that programs have, and is nobody's twice.

use std::collections::HashMap;

use mullion_sip::owner::Owner;
use mullion_sip::process::{Holding, Kind};
use mullion_sip::{ExString, ExVec};
use mullion_sip_hosting::{Host, remote};

use crate::message::{HolderRow, LineRow, PieceRow, ToHost};

/// Rows at most: they are one message.
const HOLDERS: usize = 200;
const PIECES: usize = 1200;
const LINES: usize = 300;
/// Bytes of a name that the host takes.
const NAME: usize = 64;
/// No program has memory from here on.
const HIGHEST: u64 = 1 << 47;
/// Pieces begin and end at multiples of this.
const WORD: u64 = 4;

/// What a domain says of its memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MemorySeen {
    /// Its processes: the numbers of their lives (0, if all began together), and their names.
    pub holders: Vec<(u64, String)>,
    /// In the order of their addresses; no two have a word in common.
    pub pieces: Vec<PieceSeen>,
    /// Memory of channels to other OS processes, in the order of their numbers; twice, if both ends are here.
    pub lines: Vec<LineSeen>,
    /// Pieces that there was no room for, or that cannot be.
    pub left_out: u64,
}

/// A piece of a domain's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PieceSeen {
    /// Whose it is, by the place among the holders; the kernel's, if nobody's.
    pub holder: Option<usize>,
    /// What it is.
    pub kind: Kind,
    /// Its first address, a multiple of four.
    pub start: u64,
    /// Its bytes, a multiple of four, and more than none.
    pub bytes: u64,
}

/// The memory of a channel to another OS process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineSeen {
    /// Its number, as the host has given it out.
    pub number: u64,
    /// Where the domain has it.
    pub start: u64,
    /// Its bytes.
    pub bytes: u64,
}

const KINDS: [Kind; 5] = [
    Kind::Heap,
    Kind::Stack,
    Kind::Exchange,
    Kind::Queues,
    Kind::Waiting,
];

/// A process of this domain.
pub(crate) struct Holder<'a> {
    pub(crate) owner: Owner,
    pub(crate) life: u64,
    pub(crate) name: &'a str,
}

/// What this domain's kernel says.
pub(crate) fn tell(host: &Host, request: u64, mut holders: Vec<Holder<'_>>) -> ToHost {
    holders.truncate(HOLDERS);
    let memory = host.memory();
    let places: HashMap<Owner, u32> = (1..)
        .zip(&holders)
        .map(|(place, holder)| (holder.owner, place))
        .collect();
    let mut pieces = Vec::<PieceRow>::new();
    for holding in &memory.holdings {
        let Some(row) = row(holding, &places) else {
            continue;
        };
        // Neighbours that are alike are one piece.
        match pieces.last_mut() {
            Some(last) if last.end() == row.start && last.is_like(&row) => last.bytes += row.bytes,
            _ => pieces.push(row),
        }
    }
    // What is left out is what there is most of.
    pieces.sort_by_key(|piece| (piece.kind == number(Kind::Exchange), piece.start));
    let left_out = pieces.len().saturating_sub(PIECES) + memory.moved;
    let lines = remote::line_memory().into_iter().map(|line| LineRow {
        number: line.number,
        start: line.start as u64,
        bytes: line.bytes as u64,
    });
    let holders = holders.iter().map(|holder| HolderRow {
        life: holder.life,
        name: ExString::from(&holder.name[..holder.name.floor_char_boundary(NAME)]),
    });
    ToHost::Mapped {
        request,
        holders: holders.collect(),
        pieces: pieces.into_iter().take(PIECES).collect(),
        lines: lines.take(LINES).collect(),
        left_out: left_out as u64,
    }
}

fn row(holding: &Holding, places: &HashMap<Owner, u32>) -> Option<PieceRow> {
    let holder = match holding.owner {
        Owner::HOST => 0,
        owner => *places.get(&owner)?,
    };
    Some(PieceRow {
        start: holding.start as u64,
        bytes: holding.bytes as u64,
        holder,
        kind: number(holding.kind),
    })
}

fn number(kind: Kind) -> u32 {
    let place = KINDS.iter().position(|known| *known == kind);
    place.unwrap_or(0) as u32
}

impl PieceRow {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes)
    }

    fn is_like(&self, other: &PieceRow) -> bool {
        (self.holder, self.kind) == (other.holder, other.kind)
    }

    /// What the host takes of it.
    fn judge(&self, holders: usize) -> Option<PieceSeen> {
        let holder = (self.holder as usize).checked_sub(1);
        let kind = *KINDS.get(self.kind as usize)?;
        let aligned = self.start.is_multiple_of(WORD) && self.bytes.is_multiple_of(WORD);
        let known = holder.is_none_or(|place| place < holders);
        let inside = self.bytes > 0 && self.end() <= HIGHEST;
        (aligned && known && inside).then_some(PieceSeen {
            holder,
            kind,
            start: self.start,
            bytes: self.bytes,
        })
    }
}

impl MemorySeen {
    /// What the host takes of what a domain says.
    pub(crate) fn new(
        holders: &ExVec<HolderRow>,
        pieces: &ExVec<PieceRow>,
        lines: &ExVec<LineRow>,
        left_out: u64,
    ) -> MemorySeen {
        let holders: Vec<(u64, String)> = holders
            .iter()
            .take(HOLDERS)
            .map(|row| (row.life, row.name.chars().take(NAME).collect()))
            .collect();
        let mut taken: Vec<PieceSeen> = pieces
            .iter()
            .filter_map(|row| row.judge(holders.len()))
            .collect();
        taken.sort_by_key(|piece| piece.start);
        let mut end = 0;
        taken.retain(|piece| {
            let free = piece.start >= end;
            end = end.max(piece.start + piece.bytes);
            free
        });
        let mut lines: Vec<LineSeen> = lines
            .iter()
            .filter(|row| row.bytes > 0 && row.start.saturating_add(row.bytes) <= HIGHEST)
            .map(|row| LineSeen {
                number: row.number,
                start: row.start,
                bytes: row.bytes,
            })
            .collect();
        lines.sort_by_key(|line| (line.number, line.start));
        lines.dedup_by_key(|line| (line.number, line.start));
        // It has two ends, and both may be here.
        let mut run = (0, 0);
        lines.retain(|line| {
            let before = if run.0 == line.number { run.1 } else { 0 };
            run = (line.number, before + 1);
            before < 2
        });
        let refused = (pieces.len() - taken.len()) as u64;
        MemorySeen {
            holders,
            pieces: taken,
            lines,
            left_out: left_out.saturating_add(refused),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::LONGEST;
    use mullion_sip::exchange::wire::to_bytes;

    fn piece(start: u64, bytes: u64, holder: u32, kind: u32) -> PieceRow {
        PieceRow {
            start,
            bytes,
            holder,
            kind,
        }
    }

    fn holders(count: usize) -> ExVec<HolderRow> {
        let row = |life| HolderRow {
            life: life as u64,
            name: "x".repeat(NAME).as_str().into(),
        };
        (0..count).map(row).collect()
    }

    #[test]
    fn what_cannot_be_is_left_out_and_counted() {
        let good = [piece(0x1000, 64, 1, 0), piece(0x2000, 4, 0, 4)];
        let bad = [
            piece(0x1001, 64, 1, 0),
            piece(0x3000, 2, 1, 0),
            piece(0x3000, 0, 1, 0),
            piece(0x3000, 64, 3, 0),
            piece(0x3000, 64, 1, 5),
            piece(HIGHEST - 64, 128, 1, 0),
            piece(u64::MAX - 3, 8, 1, 0),
            // Somebody's already.
            piece(0x103c, 64, 2, 2),
        ];
        let rows: ExVec<PieceRow> = bad.into_iter().chain(good).collect();
        let lines = [
            (7, 0x1000, 8),
            (7, 0x2000, 8),
            (7, 0x3000, 8),
            (7, 0x1000, 9),
            (8, HIGHEST, 8),
            (9, 0, 0),
        ];
        let lines = lines.into_iter().map(|(number, start, bytes)| LineRow {
            number,
            start,
            bytes,
        });
        let seen = MemorySeen::new(&holders(2), &rows, &lines.collect(), 5);
        assert_eq!(seen.left_out, 5 + bad.len() as u64);
        let starts: Vec<u64> = seen.pieces.iter().map(|piece| piece.start).collect();
        assert_eq!(starts, [0x1000, 0x2000]);
        let lines: Vec<_> = seen.lines.iter().map(|line| line.start).collect();
        assert_eq!(lines, [0x1000, 0x2000]);
        let most = MemorySeen::new(&ExVec::new(), &rows, &ExVec::new(), u64::MAX);
        assert_eq!((most.pieces.len(), most.left_out), (1, u64::MAX));
    }

    #[test]
    fn the_largest_answer_is_one_message() {
        let largest = ToHost::Mapped {
            request: u64::MAX,
            holders: holders(HOLDERS),
            pieces: vec![piece(u64::MAX, u64::MAX, u32::MAX, 0); PIECES]
                .into_iter()
                .collect(),
            lines: vec![LineRow::default(); LINES].into_iter().collect(),
            left_out: u64::MAX,
        };
        assert!(to_bytes(&largest, LONGEST).is_ok());
    }
}
