//! The paper's forwarding module in elastic Rust, as mirror.c has it in C. It tunnels a copy of each frame to another
//! node, as VXLAN has it (RFC 7348), and lets the frame go on. kind = "transcoder", filter = "ip and tcp and dst port
//! 80"
use environment::{Frame, PASS, another};

/// 10.9.0.254 to 10.9.0.99.
const FROM: u32 = 0x0a09_00fe;
const TO: u32 = 0x0a09_0063;
const PORT: u32 = 4789;
const NETWORK: u32 = 42;
/// Ethernet, IPv4, UDP, VXLAN; and what fits behind them.
const BEFORE: u32 = 14 + 20 + 8 + 8;
const MOST: u32 = 1514 - BEFORE;

fn two(copy: &mut Frame, at: u32, value: u32) {
    copy.put(at, (value >> 8) as u8);
    copy.put(at.wrapping_add(1), value as u8);
}

fn four(copy: &mut Frame, at: u32, value: u32) {
    two(copy, at, value >> 16);
    two(copy, at.wrapping_add(2), value);
}

pub fn packets_next(frame: &mut Frame) -> i32 {
    if frame.length() < 14 {
        return PASS;
    }
    let Some(mut sent) = another() else {
        return PASS;
    };
    let length = if frame.length() < MOST { frame.length() } else { MOST };
    let copy = sent.frame();
    // To the same neighbour as the frame.
    copy.copy(0, frame, 0, 12);
    two(copy, 12, 0x0800);
    four(copy, 14, 0x4500_0000);
    four(copy, 18, 0);
    four(copy, 22, 0x4011_0000);
    four(copy, 26, FROM);
    four(copy, 30, TO);
    four(copy, 34, PORT << 16 | PORT);
    four(copy, 38, 8 << 16);
    four(copy, 42, 0x0800_0000);
    four(copy, 46, NETWORK << 8);
    copy.copy(BEFORE, frame, 0, length);
    copy.end_at(BEFORE.wrapping_add(length));
    sent.send();
    PASS
}
