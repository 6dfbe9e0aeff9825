//! What of a frame a module's role may see and change.

use crate::frame::{ETHERNET, Layout, protocol};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::ops::Range;

/// A part of a frame that is locked: a module finds zeros there, and what it writes there does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Locked {
    /// The addresses of Ethernet.
    Ethernet,
    /// The address of IP that the packet comes from.
    Source,
    /// The address of IP that it goes to.
    Destination,
    /// What UDP or TCP carries.
    Payload,
}

/// What a module sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// At most so many bytes, from the packet's first. Without it: the whole frame.
    pub bytes: Option<usize>,
    /// Parts of it that are locked.
    pub locked: Vec<Locked>,
}

impl View {
    /// Which bytes of a frame of `length` bytes are shown.
    #[must_use]
    #[inline]
    pub fn shown(&self, layout: &Layout, length: usize) -> Range<usize> {
        match (self.bytes, &layout.packet) {
            // Nobody knows where in it an address or a payload lies.
            (None, None) if self.locks_packets() => 0..0,
            (None, _) => 0..length,
            (Some(bytes), Some(packet)) => {
                packet.bytes.start..packet.bytes.end.min(packet.bytes.start + bytes)
            }
            // What is no packet of IP has nothing that a role with a bound may see.
            (Some(_), None) => 0..0,
        }
    }

    /// Whether a part of packets is locked.
    fn locks_packets(&self) -> bool {
        let is_of_packet = |part: &Locked| *part != Locked::Ethernet;
        self.locked.iter().any(is_of_packet)
    }

    /// Which bytes of a frame of `length` bytes are locked.
    #[must_use]
    pub fn locked(&self, layout: &Layout, length: usize) -> Vec<Range<usize>> {
        let place = |locked: &Locked| -> Option<Range<usize>> {
            if *locked == Locked::Ethernet {
                return Some(0..ETHERNET - 2);
            }
            let packet = layout.packet.as_ref()?;
            let start = packet.bytes.start;
            match (locked, packet.source) {
                (Locked::Source, IpAddr::V4(_)) => Some(start + 12..start + 16),
                (Locked::Destination, IpAddr::V4(_)) => Some(start + 16..start + 20),
                (Locked::Source, IpAddr::V6(_)) => Some(start + 8..start + 24),
                (Locked::Destination, IpAddr::V6(_)) => Some(start + 24..start + 40),
                // Of a piece of a packet, nobody knows where its payload begins: all of it is.
                _ => Some(match packet.payload.clone() {
                    Some(payload) => payload,
                    None => packet.content..packet.bytes.end,
                }),
            }
        };
        let places = self.locked.iter().filter_map(place);
        places
            .chain(self.further(layout))
            .chain(self.sums(layout))
            .map(|p| p.start.min(length)..p.end.min(length))
            .collect()
    }

    /// Where addresses are locked: options and extensions of the header, in which there may be more of them (source routes,
    /// where a packet is from when its sender is not at home).
    fn further(&self, layout: &Layout) -> Option<Range<usize>> {
        let is_address = |part: &Locked| matches!(part, Locked::Source | Locked::Destination);
        let packet = layout.packet.as_ref()?;
        let place = packet.further();
        (self.locked.iter().any(is_address) && !place.is_empty()).then_some(place)
    }

    /// Checksums over what is locked: from one, and from the rest, the sum of what is locked could be had.
    fn sums(&self, layout: &Layout) -> impl Iterator<Item = Range<usize>> {
        let packet = layout.packet.as_ref();
        let packet = packet.filter(|_| self.locks_packets());
        let header = packet.filter(|packet| packet.source.is_ipv4());
        let header = header.map(|packet| packet.bytes.start + 10);
        let transport = packet.and_then(|packet| {
            let field = match packet.protocol {
                protocol::UDP if packet.ports.is_some() => 6,
                protocol::TCP if packet.ports.is_some() => 16,
                // Of a later piece this is something else, and nobody misses it.
                protocol::ICMP | protocol::ICMP6 => 2,
                _ => return None,
            };
            (packet.content + field + 2 <= packet.bytes.end).then_some(packet.content + field)
        });
        header
            .into_iter()
            .chain(transport)
            .map(|start| start..start + 2)
    }

    /// Makes what is locked zeros in a copy of the bytes that are shown of a frame of `length` bytes.
    #[inline]
    pub fn hide(&self, layout: &Layout, shown: &Range<usize>, length: usize, copy: &mut [u8]) {
        if self.locked.is_empty() {
            return;
        }
        for locked in self.locked(layout, length) {
            let (from, to) = (locked.start.max(shown.start), locked.end.min(shown.end));
            if from < to {
                copy[from - shown.start..to - shown.start].fill(0);
            }
        }
    }

    /// Copies the bytes that are shown, with zeros where it is locked.
    #[must_use]
    pub fn show(&self, layout: &Layout, frame: &[u8]) -> Vec<u8> {
        let shown = self.shown(layout, frame.len());
        let mut copy = frame[shown.clone()].to_vec();
        self.hide(layout, &shown, frame.len(), &mut copy);
        copy
    }

    /// Whether what is locked is at the same places in a changed frame. Else a header in front of an address would make
    /// other bytes the address.
    #[must_use]
    pub fn keeps(&self, old: &Layout, new: &Layout) -> bool {
        if self.locked.is_empty() {
            return true;
        }
        // What is no packet could be one to others, with any address.
        if self.locks_packets() && (old.packet.is_none() || new.packet.is_none()) {
            return false;
        }
        let starts = |layout| {
            let places = self.locked(layout, usize::MAX);
            places.into_iter().map(|place| place.start)
        };
        starts(old).eq(starts(new))
    }

    /// Puts back what is locked into a changed frame, whose beginning is that of the old one.
    pub fn put_back(&self, layout: &Layout, old: &[u8], new: &mut [u8]) {
        if self.locked.is_empty() {
            return;
        }
        for locked in self.locked(layout, old.len().min(new.len())) {
            new[locked.clone()].copy_from_slice(&old[locked]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::layout;
    use crate::frame::tests::{udp, udp6};
    use proptest::prelude::*;

    fn shown(view: &View, frame: &[u8]) -> Vec<u8> {
        view.show(&layout(frame), frame)
    }

    /// The paper's monitor: 28 bytes, and the source's address locked (section IV.B).
    #[test]
    fn a_monitor_sees_28_bytes_without_the_source() {
        let frame = udp(b"secret");
        let view = View {
            bytes: Some(28),
            locked: vec![Locked::Source],
        };
        let seen = shown(&view, &frame);
        assert_eq!(seen.len(), 28);
        assert_eq!(seen[12..16], [0; 4]);
        assert_eq!(seen[16..20], [10, 0, 0, 2]);
        assert_eq!(seen[20..26], frame[34..40]);
        // From the sums of header and datagram the source could be computed.
        assert_eq!((&seen[10..12], &seen[26..28]), (&[0, 0][..], &[0, 0][..]));
        assert!(shown(&view, &[0xaa; 60]).is_empty());
    }

    /// Headers in front of the packet that [`layout`] does not look through, and packets that are not whole.
    fn unread() -> Vec<Vec<u8>> {
        let good = udp(b"secret");
        let behind = |header: &[u8]| [&good[..12], header, &good[12..]].concat();
        let mut cut = good.clone();
        cut.truncate(good.len() - 1);
        vec![
            behind(&[0x81, 0, 0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3]),
            behind(&[0x91, 0, 0, 1]),
            // MPLS, PPPoE, LLC with SNAP.
            [&good[..12], &[0x88, 0x47, 0, 0, 0x11, 0xff], &good[14..]].concat(),
            [
                &good[..12],
                &[0x88, 0x64, 0x11, 0, 0, 1, 0, 36, 0, 0x21],
                &good[14..],
            ]
            .concat(),
            [
                &good[..12],
                &[0, 42, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0],
                &good[14..],
            ]
            .concat(),
            cut,
        ]
    }

    #[test]
    fn what_is_not_read_is_not_shown_where_a_part_of_packets_is_locked() {
        for which in [Locked::Source, Locked::Destination, Locked::Payload] {
            let view = View {
                bytes: None,
                locked: vec![which],
            };
            for frame in unread() {
                assert_eq!(layout(&frame).packet, None);
                assert!(shown(&view, &frame).is_empty(), "{which:?}: {frame:x?}");
                // Nor is such a frame taken from it, in any place.
                let (unread, good) = (layout(&frame), layout(&udp(b"secret")));
                assert!(!view.keeps(&unread, &unread));
                assert!(!view.keeps(&good, &unread) && !view.keeps(&unread, &good));
                assert!(view.keeps(&good, &good));
            }
        }
        let ethernet = View {
            bytes: None,
            locked: vec![Locked::Ethernet],
        };
        for frame in unread() {
            let seen = shown(&ethernet, &frame);
            assert_eq!((&seen[..12], &seen[12..]), (&[0; 12][..], &frame[12..]));
        }
    }

    #[test]
    fn an_address_in_an_option_is_locked_with_the_addresses() {
        let there = [0xc0, 0xff, 0xee, 0x07];
        // A source route of IPv4.
        let mut four = udp(b"hello");
        four[14] = 0x47;
        four.splice(34..34, [&[131, 7, 4][..], &there, &[0]].concat());
        let end = four.len();
        crate::frame::repair(&mut four, end);
        // A routing header of IPv6; options, and a routing header behind more extensions than are looked at.
        let mut six = vec![udp6(b"hello"), udp6(b"hello")];
        let routing = [&[17, 0, 4, 1][..], &there].concat();
        six[0][24] = 43;
        six[0].splice(58..58, routing.clone());
        six[1][24] = 60;
        let mut chain = [60, 0, 1, 4, 0, 0, 0, 0].repeat(7);
        chain.extend([43, 0, 1, 4, 0, 0, 0, 0]);
        six[1].splice(58..58, [chain, routing].concat());
        for frame in six.iter_mut() {
            let end = frame.len();
            crate::frame::repair(frame, end);
        }
        for frame in [vec![four], six].concat() {
            let found = layout(&frame);
            assert!(found.packet.is_some());
            let has = |bytes: &[u8]| bytes.windows(4).any(|four| four == there);
            for which in [Locked::Source, Locked::Destination] {
                let view = View {
                    bytes: None,
                    locked: vec![which],
                };
                assert!(has(&frame) && !has(&shown(&view, &frame)), "{frame:x?}");
                let mut new = vec![0xff; frame.len()];
                view.put_back(&found, &frame, &mut new);
                assert!(has(&new));
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_locked_is_shown_and_nothing_locked_changes(
            payload in prop::collection::vec(1u8.., 1..64), six in any::<bool>(), bytes in prop::option::of(0usize..120),
            which in prop::sample::subsequence(vec![Locked::Ethernet, Locked::Source, Locked::Destination, Locked::Payload], 0..4),
        ) {
            let frame = if six { udp6(&payload) } else { udp(&payload) };
            let found = layout(&frame);
            let view = View { bytes, locked: which };
            let seen = shown(&view, &frame);
            let shown = view.shown(&found, frame.len());
            prop_assert_eq!(seen.len(), shown.len());
            for locked in view.locked(&found, frame.len()) {
                for at in locked {
                    if shown.contains(&at) {
                        prop_assert_eq!(seen[at - shown.start], 0);
                    }
                }
            }
            let mut new = vec![0xff; frame.len()];
            view.put_back(&found, &frame, &mut new);
            for locked in view.locked(&found, frame.len()) {
                prop_assert_eq!(&new[locked.clone()], &frame[locked]);
            }
        }
    }
}
