//! Forward error correction in elastic Rust, the receiver's side, as fec_receive.c has it in C. It repairs and puts
//! parts together. It tells after each hundred frames how many there were. It tells how many bits it repaired, and how many
//! frames were beyond repair, or without their first parts. kind = "transcoder", filter = "ip and udp and dst port 5001
//! and not fragment"
use environment::{Bytes, CHANGED, Counter, DROP, Frame, Numbers, PASS, tell};

const HEAD: u32 = 4;
const MAGIC: u32 = 0xfe;
const PART: u32 = 732;
const PARTS: u32 = 3;
/// The last place where a payload may begin.
const LAST: u32 = 16384 - 4 * PART;
const CODED_HEAD: u32 = 2 * HEAD;

/// In a found byte: bits that were repaired, and whether one is beyond repair.
const REPAIRED: u32 = 0x100;
const HOPELESS: u32 = 0x10000;

/// The parts of 256 datagrams that have come, in their order: whose, how many, how long, and the bytes.
static HIGH: Numbers<256> = Numbers::new();
static COUNT: Numbers<256> = Numbers::new();
static LENGTHS: Numbers<768> = Numbers::new();
static PIECES: Bytes<562176> = Bytes::new();

static FRAMES: Counter = Counter::new();
static FOUND: Counter = Counter::new();
static LOST: Counter = Counter::new();

/// The nibble of a code: bits 1, 2 and 4 are parities of the positions that have that bit in their number, bit 0 is the
/// parity of all. The place that the parities name is wrong, if the parity of all is.
fn nibble(code: u8) -> u32 {
    let bad = (code & 0xaa).count_ones() & 1
        | (code & 0xcc).count_ones() % 2 << 1
        | (code & 0xf0).count_ones() % 2 << 2;
    let is_odd = code.count_ones() & 1 == 1;
    if !is_odd && bad != 0 {
        return HOPELESS;
    }
    let right = if is_odd { code ^ 1u8.wrapping_shl(bad) } else { code };
    let found = right >> 3 & 1 | right >> 4 & 0x0e;
    found as u32 | if is_odd { REPAIRED } else { 0 }
}

/// A byte of two codes.
fn byte_at(frame: &Frame, at: u32) -> u32 {
    let (low, high) = (nibble(frame.byte(at)), nibble(frame.byte(at.wrapping_add(1))));
    (low & 15 | (high & 15) << 4 | (low | high) & HOPELESS)
        .wrapping_add(low & REPAIRED)
        .wrapping_add(high & REPAIRED)
}

/// How many bits of it were repaired.
fn bits(byte: u32) -> u64 {
    (byte >> 8 & 3) as u64
}

/// Where a part lies that waits.
fn piece(datagram: u32, part: u32) -> u32 {
    datagram.wrapping_mul(PARTS).wrapping_add(part).wrapping_mul(PART)
}

/// Keeps a part, which lies where the payload begins; puts all together when the last one has come.
fn joined(frame: &mut Frame, id: u32, which: u32, length: u32) -> i32 {
    let (datagram, part, parts) = (id & 0xff, which >> 4 & 15, which & 15);
    let payload = frame.payload();
    if part == 0 {
        COUNT.put(datagram, 0);
        HIGH.put(datagram, (id >> 8) as u64);
    }
    if part >= parts
        || parts > PARTS
        || COUNT.get(datagram) != part as u64
        || HIGH.get(datagram) != (id >> 8) as u64
        || length > PART
    {
        LOST.add(1);
        return DROP;
    }
    let mut at = 0;
    while at < length {
        PIECES.put(piece(datagram, part).wrapping_add(at), frame.byte(payload.wrapping_add(at)));
        at = at.wrapping_add(1);
    }
    LENGTHS.put(datagram.wrapping_mul(PARTS).wrapping_add(part), length as u64);
    COUNT.put(datagram, part.wrapping_add(1) as u64);
    if part.wrapping_add(1) < parts {
        return DROP;
    }
    COUNT.put(datagram, 0);
    let mut to = payload;
    let mut part = 0;
    while part < parts {
        let length = LENGTHS.get(datagram.wrapping_mul(PARTS).wrapping_add(part)) as u32;
        let mut at = 0;
        while at < length {
            frame.put(to, PIECES.get(piece(datagram, part).wrapping_add(at)));
            to = to.wrapping_add(1);
            at = at.wrapping_add(1);
        }
        part = part.wrapping_add(1);
    }
    frame.end_at(to);
    CHANGED
}

pub fn packets_next(frame: &mut Frame) -> i32 {
    let to = frame.payload();
    if to > LAST || frame.end() < to || frame.end() > frame.length() {
        return PASS;
    }
    let length = frame.end().wrapping_sub(to) / 2;
    if length < HEAD || length.wrapping_sub(HEAD) > PART {
        return PASS;
    }
    let length = length.wrapping_sub(HEAD);
    if FRAMES.add(1) % 100 == 0 {
        tell(FRAMES.get(), FOUND.get(), LOST.get());
    }
    let first = byte_at(frame, to);
    let low = byte_at(frame, to.wrapping_add(2));
    let high = byte_at(frame, to.wrapping_add(4));
    let which = byte_at(frame, to.wrapping_add(6));
    let mut all = first | low | high | which;
    if all & HOPELESS == 0 && first & 0xff != MAGIC {
        return PASS;
    }
    let mut found = bits(first)
        .wrapping_add(bits(low))
        .wrapping_add(bits(high))
        .wrapping_add(bits(which));
    let mut from = to.wrapping_add(CODED_HEAD);
    let mut put = to;
    let end = to.wrapping_add(length);
    while put < end {
        let byte = byte_at(frame, from);
        all |= byte;
        found = found.wrapping_add(bits(byte));
        frame.put(put, byte as u8);
        from = from.wrapping_add(2);
        put = put.wrapping_add(1);
    }
    if all & HOPELESS != 0 {
        LOST.add(1);
        return DROP;
    }
    FOUND.add(found);
    if which & 0x0f != 1 {
        return joined(frame, low & 0xff | (high & 0xff) << 8, which & 0xff, length);
    }
    frame.end_at(end);
    CHANGED
}
