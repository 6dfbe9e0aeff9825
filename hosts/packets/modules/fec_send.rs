//! Forward error correction in elastic Rust, the sender's side, as fec_send.c has it in C. Each byte that UDP carries
//! becomes two, which survive a wrong bit each. A payload that would not fit any more goes in two or three frames.
//! kind = "transcoder", filter = "ip and udp and dst port 5001 and not fragment"
use environment::{CHANGED, Counter, Frame, PASS, another};

/// In front of each coded part: what it is, which datagram's (two bytes), and which part of how many.
const HEAD: u32 = 4;
const MAGIC: u32 = 0xfe;
/// Bytes of a payload that go into one frame, and frames that a payload may take.
const PART: u32 = 732;
const PARTS: u32 = 3;
/// The last place where a payload may begin.
const LAST: u32 = 16384 - 4 * PART;
/// The last places where eight bytes, and the codes of eight bytes, may begin. Places are compared with them so that the
/// compiler sees that none lies beyond the room: each access is checked otherwise, and nothing is computed with vectors.
const LAST_EIGHT: u32 = 16384 - 8;
const LAST_CODES: u32 = 16384 - 16;
const CODED_HEAD: u32 = 2 * HEAD;
const TWO_PARTS: u32 = 2 * PART;
const MOST: u32 = PARTS * PART;

static NEXT: Counter = Counter::new();

/// Hamming's codes of four bytes, eight at once: a nibble in each byte, and each parity by shifts of all of them.
fn code(four: u64) -> u64 {
    const ONE: u64 = 0x0101_0101_0101_0101;
    let all = (four | four << 16) & 0x0000_ffff_0000_ffff;
    let all = (all | all << 8) & 0x00ff_00ff_00ff_00ff;
    let all = (all & 0x000f_000f_000f_000f) | (all & 0x00f0_00f0_00f0_00f0) << 4;
    let near = all ^ all >> 1;
    (all & ONE) << 3
        | (all & 0x0e0e_0e0e_0e0e_0e0e) << 4
        | ((near ^ all >> 2) & ONE)
        | ((near ^ all >> 3) & ONE) << 1
        | ((all ^ all >> 2 ^ all >> 3) & ONE) << 2
        | ((near >> 1 ^ all >> 3) & ONE) << 4
}

fn put(to: &mut Frame, at: u32, byte: u32) {
    let both = code((byte & 0xff) as u64);
    to.put(at, both as u8);
    to.put(at.wrapping_add(1), (both >> 8) as u8);
}

/// What stands in front of a part, and where it ends.
fn head(to: &mut Frame, payload: u32, id: u64, length: u32, which: u32) {
    put(to, payload, MAGIC);
    put(to, payload.wrapping_add(2), id as u32);
    put(to, payload.wrapping_add(4), (id >> 8) as u32);
    put(to, payload.wrapping_add(6), which);
    to.end_at(payload.wrapping_add(CODED_HEAD).wrapping_add(length.wrapping_mul(2)));
}

/// Codes a part of the payload into another frame, eight bytes at a time.
fn part(to: &mut Frame, from: &Frame, begin: u32, length: u32) {
    let mut at = from.payload().wrapping_add(begin);
    let mut put_at = from.payload().wrapping_add(CODED_HEAD);
    let end = at.wrapping_add(length);
    while at <= LAST_EIGHT && put_at <= LAST_CODES && at.wrapping_add(8) <= end {
        let eight = from.eight(at);
        to.put_eight(put_at, code(eight & 0xffff_ffff));
        to.put_eight(put_at.wrapping_add(8), code(eight >> 32));
        at = at.wrapping_add(8);
        put_at = put_at.wrapping_add(16);
    }
    while at < end {
        put(to, put_at, from.byte(at) as u32);
        at = at.wrapping_add(1);
        put_at = put_at.wrapping_add(2);
    }
}

/// Codes the payload's first bytes in their place, from their end.
fn own(frame: &mut Frame, length: u32) {
    let payload = frame.payload();
    let coded = payload.wrapping_add(CODED_HEAD);
    let mut left = length;
    while left % 8 != 0 {
        left = left.wrapping_sub(1);
        let byte = frame.byte(payload.wrapping_add(left)) as u32;
        put(frame, coded.wrapping_add(left.wrapping_mul(2)), byte);
    }
    let mut at = payload.wrapping_add(left);
    let mut put_at = coded.wrapping_add(left.wrapping_mul(2));
    while left != 0 {
        left = left.wrapping_sub(8);
        at = at.wrapping_sub(8);
        put_at = put_at.wrapping_sub(16);
        if at > LAST_EIGHT || put_at > LAST_CODES {
            return;
        }
        let eight = frame.eight(at);
        frame.put_eight(put_at, code(eight & 0xffff_ffff));
        frame.put_eight(put_at.wrapping_add(8), code(eight >> 32));
    }
}

pub fn packets_next(frame: &mut Frame) -> i32 {
    let payload = frame.payload();
    if payload > LAST || frame.end() < payload || frame.end() > frame.length() {
        return PASS;
    }
    let length = frame.end().wrapping_sub(payload);
    if length > MOST {
        return PASS;
    }
    let parts = if length <= PART {
        1
    } else if length <= TWO_PARTS {
        2
    } else {
        3
    };
    let each = match parts {
        1 => length,
        2 => length.wrapping_add(1) / 2,
        _ => length.wrapping_add(2) / 3,
    };
    let id = NEXT.get();
    let mut which = 1;
    while which < parts {
        let Some(mut other) = another() else {
            return PASS;
        };
        let begin = each.wrapping_mul(which);
        let rest = length.wrapping_sub(begin);
        let rest = if rest < each { rest } else { each };
        other.frame().copy(0, frame, 0, payload);
        part(other.frame(), frame, begin, rest);
        head(other.frame(), payload, id, rest, which << 4 | parts);
        other.send();
        which = which.wrapping_add(1);
    }
    own(frame, each);
    head(frame, payload, id, each, parts);
    NEXT.add(1);
    CHANGED
}
