//! Counts pieces of packets in elastic Rust, as fragments.c does in C (the paper's second monitor). It tells after
//! each hundred how many packets there were, how many of them were pieces, and how many the last piece of theirs.
//! kind = "monitor", filter = "ip", sees = 20
use environment::{Counter, Frame, PASS, tell};

static PACKETS: Counter = Counter::new();
static PIECES: Counter = Counter::new();
static LAST_PIECES: Counter = Counter::new();

const OFFSET: u16 = 0x1fff;
const MORE: u16 = 0x2000;

pub fn packets_next(frame: &mut Frame) -> i32 {
    if frame.length() < 20 || frame.byte(0) >> 4 != 4 {
        return PASS;
    }
    let field = frame.two(6);
    let packets = PACKETS.add(1);
    let pieces = PIECES.add((field & (OFFSET | MORE) != 0) as u64);
    let last = LAST_PIECES.add((field & OFFSET != 0 && field & MORE == 0) as u64);
    if packets % 100 == 0 {
        tell(packets, pieces, last);
    }
    PASS
}
