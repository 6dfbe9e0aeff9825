//! Any frame: its headers are read, what a role sees of it is shown, and it is repaired, without a panic and within its
//! bytes. The first two bytes say what is locked and how many bytes are seen.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mullion_packets::filter::Filter;
use mullion_packets::frame;
use mullion_packets::view::{Locked, View};

fuzz_target!(|bytes: &[u8]| {
    let Some((&[which, sees], frame)) = bytes.split_first_chunk() else {
        return;
    };
    let all = [Locked::Ethernet, Locked::Source, Locked::Destination, Locked::Payload];
    let locked = (0..4).filter(|bit| which >> bit & 1 == 1).map(|bit| all[bit]);
    let view = View {
        bytes: (which & 0x80 != 0).then_some(usize::from(sees)),
        locked: locked.collect(),
    };
    let layout = frame::layout(frame);
    if let Some(packet) = &layout.packet {
        assert!(packet.bytes.end <= frame.len() && packet.content <= packet.bytes.end);
    }
    let filter: Filter = "not (udp or tcp) or vlan 7 or net 10.0.0.0/8 or port 80".parse().expect("a filter");
    let _ = filter.holds(&layout);
    let (shown, mut changed) = (view.show(&layout, frame), frame.to_vec());
    assert!(shown.len() <= frame.len());
    view.put_back(&layout, frame, &mut changed);
    assert_eq!(changed, frame);
    let found = frame::repair(&mut changed, usize::from(sees) * 8);
    assert_eq!(frame::layout(&changed), found);
    if found.packet.is_some() {
        assert!(frame::is_sound(&changed));
    }
});
