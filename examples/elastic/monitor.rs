//! Counts packets and fragments. It cannot see where they came from, and hands that on.
use environment::{Counter, Kept, MORE_FRAGMENTS, OFFSET, Packet, Report, lock_table};

static PACKETS: Counter = Counter::new();
static FRAGMENTS: Counter = Counter::new();
static LAST: Kept = Kept::new();

pub fn OKE_monitor_handle_packet(packet: &Packet) {
    lock_table(); // and forgets it
    PACKETS.add(1);
    if packet.fragment & (MORE_FRAGMENTS | OFFSET) != 0 {
        FRAGMENTS.add(1);
    }
    LAST.set(packet.source);
}

pub fn OKE_monitor_report(report: &mut Report) {
    report.packets = PACKETS.get();
    report.fragments = FRAGMENTS.get();
    report.last = LAST.get();
}
