//! A table of flows in elastic Rust, as flows.c has it in C: who talks to whom, by addresses, protocol and ports. Tells
//! after each thousand packets how many flows there are, how many packets the largest has, and how many found no room.
//! kind = "monitor", filter = "ip and (udp or tcp)", sees = 28
use environment::{Counter, Frame, Numbers, PASS, tell};

const FLOWS: u32 = 1024;
const TRIES: u32 = 8;

/// Addresses; ports and protocol; packets: of each flow.
static ADDRESSES: Numbers<1024> = Numbers::new();
static PORTS: Numbers<1024> = Numbers::new();
static PACKETS: Numbers<1024> = Numbers::new();
static SEEN: Counter = Counter::new();
static KNOWN: Counter = Counter::new();
static LARGEST: Counter = Counter::new();
static HOMELESS: Counter = Counter::new();

fn four(frame: &Frame, at: u32) -> u32 {
    (frame.two(at) as u32) << 16 | frame.two(at.wrapping_add(2)) as u32
}

fn find(source: u32, destination: u32, ports: u32, protocol: u32) {
    let mixed = source
        ^ destination.wrapping_mul(0x9e37_79b1)
        ^ ports.wrapping_mul(0x85eb_ca6b)
        ^ protocol;
    let place = mixed.wrapping_mul(0xc2b2_ae35) >> 22;
    let addresses = (source as u64) << 32 | destination as u64;
    let others = (ports as u64) << 32 | protocol as u64;
    let mut tries = 0;
    while tries < TRIES {
        let at = place.wrapping_add(tries) % FLOWS;
        tries = tries.wrapping_add(1);
        let packets = PACKETS.get(at);
        if packets == 0 {
            ADDRESSES.put(at, addresses);
            PORTS.put(at, others);
            KNOWN.add(1);
        } else if ADDRESSES.get(at) != addresses || PORTS.get(at) != others {
            continue;
        }
        let packets = packets.wrapping_add(1);
        PACKETS.put(at, packets);
        if packets > LARGEST.get() {
            LARGEST.add(packets.wrapping_sub(LARGEST.get()));
        }
        return;
    }
    HOMELESS.add(1);
}

pub fn packets_next(frame: &mut Frame) -> i32 {
    // Without options the ports lie behind twenty bytes; a later piece has none.
    if frame.length() < 24 || frame.byte(0) != 0x45 || frame.two(6) & 0x1fff != 0 {
        return PASS;
    }
    find(four(frame, 12), four(frame, 16), four(frame, 20), frame.byte(9) as u32);
    if SEEN.add(1) % 1000 == 0 {
        tell(KNOWN.get(), LARGEST.get(), HOMELESS.get());
    }
    PASS
}
