//! Audio to half the bits in elastic Rust, as resample.c has it in C: two neighbouring samples (16 bits, little endian)
//! become their mean. kind = "transcoder", filter = "ip and udp and dst port 5004 and not fragment"
use environment::{CHANGED, Frame, PASS};

fn sample(frame: &Frame, at: u32) -> i32 {
    u16::from_le_bytes([frame.byte(at), frame.byte(at.wrapping_add(1))]) as i16 as i32
}

const SIGNS: u64 = 0x8000_8000_8000_8000;

/// Two means of four samples. Without their signs, sums of two have room between them; the means' are to be put back.
fn means(four: u64) -> u64 {
    const BOTH: u64 = 0x0000_ffff_0000_ffff;
    let four = four ^ SIGNS;
    let sums = (four & BOTH).wrapping_add(four >> 16 & BOTH) >> 1 & BOTH;
    (sums | sums >> 16) & 0xffff_ffff
}

/// Places are compared so that the compiler sees that none lies beyond the room: each access is checked otherwise.
pub fn packets_next(frame: &mut Frame) -> i32 {
    let (to, end) = (frame.payload(), frame.end());
    if to > 16384 || end > 16384 || end < to || end.wrapping_sub(to) < 4 {
        return PASS;
    }
    let mut from = to;
    if end >= 16 {
        let last = end.wrapping_sub(16);
        while from <= last {
            let (low, high) = (means(frame.eight(from)), means(frame.eight(from.wrapping_add(8))));
            frame.put_eight(from.wrapping_add(to) / 2, (low | high << 32) ^ SIGNS);
            from = from.wrapping_add(16);
        }
    }
    let last = end.wrapping_sub(4);
    while from <= last {
        let both = sample(frame, from).wrapping_add(sample(frame, from.wrapping_add(2)));
        let (mean, put) = (both >> 1, from.wrapping_add(to) / 2);
        frame.put(put, mean as u8);
        frame.put(put.wrapping_add(1), (mean >> 8) as u8);
        from = from.wrapping_add(4);
    }
    frame.end_at(from.wrapping_add(to) / 2);
    CHANGED
}
