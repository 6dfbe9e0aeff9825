//! What is in a frame: where its headers are, and checksums. Any bytes may come; nothing here fails on them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// Bytes of an Ethernet header without tags.
pub const ETHERNET: usize = 14;

/// Numbers of Ethernet types.
const VLAN: [u16; 2] = [0x8100, 0x88a8];
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// Tags in front of a packet that are looked through: a frame with more has no packet here.
const TAGS: usize = 2;

/// Headers of IPv6 that are looked through in front of the transport's.
const EXTENSIONS: usize = 8;

/// Numbers of IP protocols.
pub mod protocol {
    /// The control messages of IPv4.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// The control messages of IPv6.
    pub const ICMP6: u8 = 58;
}

/// What is known of a frame. What cannot be read is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The numbers of its VLANs, the outer one first.
    pub vlans: Vlans,
    /// The packet of IP in it.
    pub packet: Option<Packet>,
}

/// The numbers of a frame's VLANs, the outer one first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vlans {
    numbers: [u16; TAGS],
    count: usize,
}

impl std::ops::Deref for Vlans {
    type Target = [u16];

    fn deref(&self) -> &[u16] {
        &self.numbers[..self.count]
    }
}

/// A packet of IP: places are offsets in the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Header and content, without what pads the frame.
    pub bytes: Range<usize>,
    /// Where it comes from.
    pub source: IpAddr,
    /// Where it goes.
    pub destination: IpAddr,
    /// The protocol of its content.
    pub protocol: u8,
    /// It is a piece of a packet.
    pub is_fragment: bool,
    /// Where the content begins: the transport's header, in a packet that is no later piece.
    pub content: usize,
    /// Ports of UDP and TCP, if the header is there.
    pub ports: Option<(u16, u16)>,
    /// What the transport carries, if its header is there.
    pub payload: Option<Range<usize>>,
}

/// Headers of IPv6 behind which there may be another: options, routing, pieces, authentication, mobility, identities of
/// hosts and their links (the registry of RFC 7045).
const EXTENDED: [u8; 8] = [0, 43, 44, 51, 60, 135, 139, 140];

impl Packet {
    /// Options and extensions of its header. If something follows that may be an extension and was not read, all of it.
    pub(crate) fn further(&self) -> Range<usize> {
        match self.source {
            IpAddr::V4(_) => self.bytes.start + 20..self.content,
            IpAddr::V6(_) if EXTENDED.contains(&self.protocol) => {
                self.bytes.start + 40..self.bytes.end
            }
            IpAddr::V6(_) => self.bytes.start + 40..self.content,
        }
    }
}

#[inline]
fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Reads the headers of a frame.
#[must_use]
pub fn layout(frame: &[u8]) -> Layout {
    let mut layout = Layout::default();
    read(frame, &mut layout);
    layout
}

/// As [`layout`], into a place: what is put together elsewhere and copied takes longer than the reading.
#[inline]
pub(crate) fn read(frame: &[u8], layout: &mut Layout) {
    layout.vlans.count = 0;
    layout.packet = None;
    let mut at = ETHERNET;
    let Some(mut kind) = number(frame, at - 2) else {
        return;
    };
    while VLAN.contains(&kind) && layout.vlans.count < TAGS {
        let (Some(tag), Some(next)) = (number(frame, at), number(frame, at + 2)) else {
            return;
        };
        layout.vlans.numbers[layout.vlans.count] = tag & 0xfff;
        layout.vlans.count += 1;
        kind = next;
        at += 4;
    }
    match kind {
        IPV4 => version_4(frame, at, &mut layout.packet),
        IPV6 => layout.packet = version_6(frame, at),
        _ => {}
    }
}

#[inline]
fn version_4(frame: &[u8], at: usize, packet: &mut Option<Packet>) {
    let Some(header) = frame.get(at..).and_then(|rest| rest.first_chunk::<20>()) else {
        return;
    };
    let length = usize::from(header[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header[0] >> 4 != 4 || length < 20 || total < length || total > frame.len() - at {
        return;
    }
    let pieces = u16::from_be_bytes([header[6], header[7]]);
    let (protocol, content, end) = (header[9], at + length, at + total);
    let transport = match pieces & 0x1fff {
        0 => transport(&frame[content..end], protocol),
        _ => None,
    };
    *packet = Some(Packet {
        bytes: at..end,
        source: Ipv4Addr::new(header[12], header[13], header[14], header[15]).into(),
        destination: Ipv4Addr::new(header[16], header[17], header[18], header[19]).into(),
        protocol,
        // More pieces follow, or others come before.
        is_fragment: pieces & 0x3fff != 0,
        content,
        ports: transport.map(|(ports, _)| ports),
        payload: transport.map(|(_, header)| content + header..end),
    });
}

fn version_6(frame: &[u8], at: usize) -> Option<Packet> {
    let header: &[u8; 40] = frame.get(at..)?.first_chunk()?;
    let total = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
    if header[0] >> 4 != 6 || total > frame.len() - at {
        return None;
    }
    let address = |from: usize| -> Option<IpAddr> {
        let bytes: &[u8; 16] = header.get(from..)?.first_chunk()?;
        Some(Ipv6Addr::from(*bytes).into())
    };
    let mut packet = Packet {
        bytes: at..at + total,
        source: address(8)?,
        destination: address(24)?,
        protocol: header[6],
        is_fragment: false,
        content: at + 40,
        ports: None,
        payload: None,
    };
    let mut is_later_piece = false;
    for _ in 0..EXTENSIONS {
        let extension = frame.get(packet.content..packet.bytes.end)?;
        let length = match packet.protocol {
            // Options hop by hop, routing, options of the destination.
            0 | 43 | 60 => 8 + usize::from(*extension.get(1)?) * 8,
            44 => {
                packet.is_fragment = true;
                is_later_piece = number(extension, 2)? & 0xfff8 != 0;
                8
            }
            _ => break,
        };
        if length > extension.len() {
            return None;
        }
        packet.protocol = extension[0];
        packet.content += length;
        if is_later_piece {
            break;
        }
    }
    let content = frame.get(packet.content..packet.bytes.end);
    let content = content.filter(|_| !is_later_piece);
    if let Some((ports, header)) = content.and_then(|content| transport(content, packet.protocol)) {
        packet.ports = Some(ports);
        packet.payload = Some(packet.content + header..packet.bytes.end);
    }
    Some(packet)
}

/// The ports of UDP or TCP, and the length of its header.
#[inline]
fn transport(content: &[u8], protocol: u8) -> Option<((u16, u16), usize)> {
    let header = match protocol {
        protocol::UDP if content.len() >= 8 => 8,
        protocol::TCP if content.len() >= 20 => usize::from(content[12] >> 4) * 4,
        _ => return None,
    };
    if header < 8 || header > content.len() {
        return None;
    }
    let ports = number(content, 0).zip(number(content, 2))?;
    Some((ports, header))
}

/// The sum of 16-bit words of RFC 1071, of what was summed before and of these bytes.
///
/// Taken in the machine's own order, four bytes at a time: section 2 (B) says why that is the same.
fn sum(before: u32, bytes: &[u8]) -> u32 {
    let mut fours = bytes.chunks_exact(4);
    let mut total: u64 = fours
        .by_ref()
        .map(|four| u64::from(u32::from_ne_bytes([four[0], four[1], four[2], four[3]])))
        .sum();
    let mut last = [0; 4];
    let rest = fours.remainder();
    last[..rest.len()].copy_from_slice(rest);
    total += u64::from(u32::from_ne_bytes(last));
    u32::from(folded(
        u64::from(u16::from_be(folded(total))) + u64::from(before),
    ))
}

fn folded(mut total: u64) -> u16 {
    while total >> 16 != 0 {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// The sum of the pseudo-header of UDP, TCP and ICMPv6 (RFC 768, RFC 8200).
fn pseudo(packet: &Packet, length: usize) -> u32 {
    let of = |before, address: &IpAddr| match address {
        IpAddr::V4(address) => sum(before, &address.octets()),
        IpAddr::V6(address) => sum(before, &address.octets()),
    };
    let addresses = of(of(0, &packet.source), &packet.destination);
    let length = (length as u32).to_be_bytes();
    sum(sum(addresses, &length), &[0, packet.protocol])
}

/// Makes lengths and checksums right, after the frame was changed or its length was.
/// A frame without a packet, or whose header says no more than that it is one, is left as it is.
///
/// `end` is where the packet ends in the frame: behind it may be what pads it. Gives the frame's layout.
pub fn repair(frame: &mut [u8], end: usize) -> Layout {
    let mut layout = Layout::default();
    repair_into(frame, end, &mut layout);
    layout
}

/// As [`repair`], with the layout in a place.
pub(crate) fn repair_into(frame: &mut [u8], end: usize, layout: &mut Layout) {
    set_length(frame, end);
    read(frame, layout);
    if let Some(packet) = &layout.packet {
        repair_packet(frame, packet);
    }
}

fn repair_packet(frame: &mut [u8], packet: &Packet) {
    if packet.source.is_ipv4() {
        let header = packet.bytes.start..packet.content;
        put(frame, packet.bytes.start + 10, 0);
        let value = !sum(0, &frame[header]) as u16;
        put(frame, packet.bytes.start + 10, value);
    }
    if packet.is_fragment {
        return;
    }
    if packet.protocol == protocol::UDP && packet.ports.is_some() {
        put(
            frame,
            packet.content + 4,
            (packet.bytes.end - packet.content) as u16,
        );
    }
    let field = match packet.protocol {
        protocol::UDP if packet.ports.is_some() => 6,
        protocol::TCP if packet.ports.is_some() => 16,
        protocol::ICMP | protocol::ICMP6 => 2,
        _ => return,
    };
    let content = packet.content..packet.bytes.end;
    if content.len() < field + 2 {
        return;
    }
    put(frame, packet.content + field, 0);
    let before = match packet.protocol {
        protocol::ICMP => 0,
        _ => pseudo(packet, content.len()),
    };
    let value = match (packet.protocol, !sum(before, &frame[content]) as u16) {
        // None at all would be 0 (RFC 768).
        (protocol::UDP, 0) => 0xffff,
        (_, value) => value,
    };
    put(frame, packet.content + field, value);
}

/// Makes the checksum that the frame's sender has left to its card: its field has the sum of the pseudo-header alone.
///
/// Of frames whose sum is right, none becomes another one by this. One with a wrong sum in 65,536 looks so, too.
pub(crate) fn complete(frame: &mut [u8]) {
    let Some(packet) = layout(frame).packet else {
        return;
    };
    let field = match packet.protocol {
        protocol::UDP => 6,
        protocol::TCP => 16,
        _ => return,
    };
    if packet.is_fragment || packet.ports.is_none() {
        return;
    }
    let content = packet.bytes.end - packet.content;
    if number(frame, packet.content + field) == Some(pseudo(&packet, content) as u16) {
        repair(frame, packet.bytes.end);
    }
}

/// Makes the length of IP that of a packet that ends at `end`.
fn set_length(frame: &mut [u8], end: usize) {
    let mut at = ETHERNET;
    let Some(mut kind) = number(frame, at - 2) else {
        return;
    };
    for _ in 0..TAGS {
        if VLAN.contains(&kind) {
            kind = number(frame, at + 2).unwrap_or(0);
            at += 4;
        }
    }
    let end = end.min(frame.len());
    let Some(length) = end.checked_sub(at).map(|length| length.min(0xffff)) else {
        return;
    };
    match kind {
        IPV4 if length >= 20 => put(frame, at + 2, length as u16),
        IPV6 if length >= 40 => put(frame, at + 4, (length - 40) as u16),
        _ => {}
    }
}

fn put(frame: &mut [u8], at: usize, value: u16) {
    if let Some(place) = frame.get_mut(at..at + 2) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

/// Whether lengths and checksums of the frame's packet are right, as far as there are any.
#[must_use]
pub fn is_sound(frame: &[u8]) -> bool {
    let mut copy = frame.to_vec();
    let end = layout(frame)
        .packet
        .map_or(frame.len(), |packet| packet.bytes.end);
    repair(&mut copy, end);
    copy == frame
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A frame of UDP over IPv4, with everything right.
    pub(crate) fn udp(payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend(IPV4.to_be_bytes());
        frame.extend([0x45, 0, 0, 0, 0, 1, 0, 0, 64, protocol::UDP, 0, 0]);
        frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x13, 0x88, 0x13, 0x89, 0, 0, 0, 0]);
        frame.extend(payload);
        let end = frame.len();
        repair(&mut frame, end);
        frame
    }

    /// The same over IPv6, in a VLAN.
    pub(crate) fn udp6(payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([0x81, 0, 0x20, 7]);
        frame.extend(IPV6.to_be_bytes());
        frame.extend([0x60, 0, 0, 0, 0, 0, protocol::UDP, 64]);
        for last in 1..=2 {
            frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        frame.extend([0x13, 0x88, 0x13, 0x89, 0, 0, 0, 0]);
        frame.extend(payload);
        let end = frame.len();
        repair(&mut frame, end);
        frame
    }

    #[test]
    fn a_sum_that_was_left_to_a_card_is_made() {
        for frame in [udp(b"hello"), udp6(b"hello")] {
            let packet = layout(&frame).packet.unwrap();
            let at = packet.content + 6;
            let mut left = frame.clone();
            let sum = pseudo(&packet, packet.bytes.end - packet.content) as u16;
            put(&mut left, at, sum);
            assert!(!is_sound(&left));
            complete(&mut left);
            assert_eq!(left, frame);
            // What is right stays, and what is wrong in another way is left to who receives it.
            complete(&mut left);
            assert_eq!(left, frame);
            put(&mut left, at, sum ^ 0x0110);
            let wrong = left.clone();
            complete(&mut left);
            assert_eq!(left, wrong);
        }
    }

    #[test]
    fn headers_are_found() {
        let frame = udp(b"hello");
        let packet = layout(&frame).packet.unwrap();
        assert_eq!(packet.source, "10.0.0.1".parse::<IpAddr>().unwrap());
        assert_eq!(packet.ports, Some((5000, 5001)));
        assert_eq!(&frame[packet.payload.unwrap()], b"hello");
        let frame = udp6(b"hello");
        let found = layout(&frame);
        assert_eq!(*found.vlans, [7]);
        let packet = found.packet.unwrap();
        assert_eq!(packet.destination, "fd00::2".parse::<IpAddr>().unwrap());
        assert_eq!(&frame[packet.payload.unwrap()], b"hello");
    }

    /// The example of RFC 1071, section 3: its sum is ddf2.
    #[test]
    fn the_sum_is_that_of_the_rfc() {
        assert_eq!(
            sum(0, &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
            0xddf2
        );
        // A header with its checksum, as it went over a wire: the sum of all is ffff.
        let header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8,
            0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert_eq!(sum(0, &header), 0xffff);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_and_repaired(bytes in prop::collection::vec(any::<u8>(), 0..200), end in 0usize..220) {
            let _ = layout(&bytes);
            let mut copy = bytes.clone();
            repair(&mut copy, end);
            prop_assert_eq!(copy.len(), bytes.len());
        }

        #[test]
        fn any_change_of_a_good_frame_is_read(
            payload in prop::collection::vec(any::<u8>(), 0..64),
            at in any::<prop::sample::Index>(),
            to in any::<u8>(),
            cut in any::<prop::sample::Index>(),
            six in any::<bool>(),
        ) {
            let mut frame = if six { udp6(&payload) } else { udp(&payload) };
            prop_assert!(is_sound(&frame));
            let place = at.index(frame.len());
            frame[place] = to;
            frame.truncate(cut.index(frame.len()) + 1);
            if let Some(packet) = layout(&frame).packet {
                prop_assert!(packet.bytes.end <= frame.len());
                prop_assert!(packet.content <= packet.bytes.end);
                if let Some(payload) = packet.payload {
                    prop_assert!(payload.start <= payload.end && payload.end == packet.bytes.end);
                }
            }
        }

        #[test]
        fn a_repaired_frame_is_sound(payload in prop::collection::vec(any::<u8>(), 0..64), pad in 0usize..20, six in any::<bool>()) {
            let mut frame = if six { udp6(&payload) } else { udp(&payload) };
            let end = frame.len();
            frame.extend(std::iter::repeat_n(0, pad));
            repair(&mut frame, end);
            prop_assert!(is_sound(&frame));
            prop_assert_eq!(layout(&frame).packet.unwrap().bytes.end, end);
        }
    }
}
