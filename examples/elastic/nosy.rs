//! A monitor that wants to see more than its type lets it.
use environment::{Packet, Report, give_back};

pub fn OKE_monitor_handle_packet(packet: &Packet) {
    for byte in packet.behind {
        drop(byte);
    }
    let source: u32 = unsafe { core::mem::transmute(packet.source) };
    give_back();
}

#[unsafe(no_mangle)]
pub fn OKE_monitor_report(report: &mut Report) {
    report.packets += 1;
    report.last = report.last;
}
