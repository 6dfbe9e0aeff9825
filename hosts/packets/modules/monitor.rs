//! The paper's monitor (OMA) in elastic Rust, as monitor.c has it in C. It sees the first 28 bytes of packets to one
//! destination. It tells after each thousand how many there were, their bytes, and how many of UDP. What its role may
//! see is for the configuration to say: kind = "monitor", filter = "dst host 10.0.0.2", sees = 28, locked = ["source"]
use environment::{Counter, Frame, PASS, tell};

static PACKETS: Counter = Counter::new();
static BYTES: Counter = Counter::new();
static UDP: Counter = Counter::new();

pub fn packets_next(frame: &mut Frame) -> i32 {
    if frame.length() < 20 || frame.byte(0) >> 4 != 4 {
        return PASS;
    }
    let packets = PACKETS.add(1);
    let bytes = BYTES.add(frame.two(2) as u64);
    let udp = UDP.add((frame.byte(9) == 17) as u64);
    if packets % 1000 == 0 {
        tell(packets, bytes, udp);
    }
    PASS
}
