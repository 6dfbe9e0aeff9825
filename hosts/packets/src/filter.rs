//! Which packets a module gets: a small part of the language of tcpdump.
//!
//! ```text
//!   filter  := term { "or" term }
//!   term    := factor { "and" factor }
//!   factor  := "not" factor | "(" filter ")" | primitive
//!   primitive := "any" | "ip" | "ip6" | "udp" | "tcp" | "icmp" | "fragment" | "vlan" [NUMBER]
//!              | ["src" | "dst"] "host" ADDRESS | ["src" | "dst"] "net" ADDRESS/BITS | ["src" | "dst"] "port" NUMBER
//! ```

use crate::frame::{Layout, protocol};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use thiserror::Error;

/// Deepest nesting of parentheses and `not`.
const DEPTH: usize = 32;
/// Longest text.
const LONGEST: usize = 4096;

/// Why a text is no filter.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FilterError {
    /// A word that does not belong where it stands.
    #[error("`{found}` where {wanted} is due")]
    Word {
        /// The word.
        found: String,
        /// What would fit.
        wanted: &'static str,
    },
    /// It ends too early.
    #[error("it ends where {0} is due")]
    Ends(&'static str),
    /// Too deep or too long.
    #[error("it is too long, or parentheses nest deeper than {DEPTH}")]
    Large,
}

/// A filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    text: String,
    node: Node,
    /// The same, if it is as plain as most are.
    plain: Option<Plain>,
}

/// One version, protocol, destination and port that packets go to, and no pieces: compared without a walk over nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Plain {
    version: Option<u8>,
    protocol: Option<u8>,
    host: Option<IpAddr>,
    port: Option<u16>,
    is_whole: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Any,
    All(Vec<Node>),
    Some(Vec<Node>),
    Not(Box<Node>),
    Version(u8),
    Protocol(u8),
    Icmp,
    Fragment,
    Vlan(Option<u16>),
    Net(Side, IpAddr, u8),
    Port(Side, u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Source,
    Destination,
    Either,
}

impl Side {
    fn holds<T>(self, source: T, destination: T, holds: impl Fn(T) -> bool) -> bool {
        match self {
            Side::Source => holds(source),
            Side::Destination => holds(destination),
            Side::Either => holds(source) || holds(destination),
        }
    }
}

impl Filter {
    /// The one that lets everything through, frames without a packet too.
    #[must_use]
    pub fn any() -> Filter {
        Filter {
            text: "any".to_owned(),
            node: Node::Any,
            plain: None,
        }
    }

    /// Whether a frame with this layout is meant.
    #[must_use]
    #[inline]
    pub fn holds(&self, layout: &Layout) -> bool {
        match &self.plain {
            Some(plain) => plain.holds(layout),
            None => self.node.holds(layout),
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Filter, FilterError> {
        if text.len() > LONGEST {
            return Err(FilterError::Large);
        }
        let spaced = text.replace('(', " ( ").replace(')', " ) ");
        let mut words = Words(spaced.split_whitespace().peekable());
        let node = words.filter(DEPTH)?;
        match words.0.next() {
            None => Ok(Filter {
                text: text.to_owned(),
                plain: Plain::of(&node),
                node,
            }),
            Some(word) => Err(FilterError::Word {
                found: word.to_owned(),
                wanted: "`and` or `or`",
            }),
        }
    }
}

struct Words<'t>(std::iter::Peekable<std::str::SplitWhitespace<'t>>);

impl Words<'_> {
    fn is(&mut self, word: &str) -> bool {
        self.0.next_if_eq(&word).is_some()
    }

    fn filter(&mut self, depth: usize) -> Result<Node, FilterError> {
        let depth = depth.checked_sub(1).ok_or(FilterError::Large)?;
        let mut terms = vec![self.term(depth)?];
        while self.is("or") {
            terms.push(self.term(depth)?);
        }
        Ok(one_or(terms, Node::Some))
    }

    fn term(&mut self, depth: usize) -> Result<Node, FilterError> {
        let mut factors = vec![self.factor(depth)?];
        while self.is("and") {
            factors.push(self.factor(depth)?);
        }
        Ok(one_or(factors, Node::All))
    }

    fn factor(&mut self, depth: usize) -> Result<Node, FilterError> {
        let depth = depth.checked_sub(1).ok_or(FilterError::Large)?;
        if self.is("not") {
            return Ok(Node::Not(Box::new(self.factor(depth)?)));
        }
        if self.is("(") {
            let inside = self.filter(depth)?;
            return match self.is(")") {
                true => Ok(inside),
                false => Err(self.unexpected("`)`")),
            };
        }
        self.primitive()
    }

    fn primitive(&mut self) -> Result<Node, FilterError> {
        let side = match (self.is("src"), self.is("dst")) {
            (true, _) => Side::Source,
            (_, true) => Side::Destination,
            _ => Side::Either,
        };
        let wanted = match side {
            Side::Either => "a primitive, as `udp` or `dst host 10.0.0.2`",
            _ => "`host`, `net` or `port`",
        };
        let word = self.0.peek().copied().unwrap_or_default();
        let node = match word {
            "host" | "net" | "port" => {
                self.0.next();
                return self.operand(side, word);
            }
            _ if side != Side::Either => return Err(self.unexpected(wanted)),
            "any" => Node::Any,
            "ip" => Node::Version(4),
            "ip6" => Node::Version(6),
            "udp" => Node::Protocol(protocol::UDP),
            "tcp" => Node::Protocol(protocol::TCP),
            "icmp" => Node::Icmp,
            "fragment" => Node::Fragment,
            "vlan" => {
                self.0.next();
                let number = self.0.peek().and_then(|word| word.parse().ok());
                if number.is_some() {
                    self.0.next();
                }
                return Ok(Node::Vlan(number));
            }
            _ => return Err(self.unexpected(wanted)),
        };
        self.0.next();
        Ok(node)
    }

    fn operand(&mut self, side: Side, what: &str) -> Result<Node, FilterError> {
        let word = self.0.peek().copied().unwrap_or_default();
        let node = match what {
            "port" => word.parse().ok().map(|port| Node::Port(side, port)),
            "host" => word
                .parse()
                .ok()
                .map(|address: IpAddr| Node::Net(side, address, bits(&address))),
            _ => word.split_once('/').and_then(|(address, length)| {
                let address: IpAddr = address.parse().ok()?;
                let length = length.parse().ok().filter(|&n| n <= bits(&address))?;
                Some(Node::Net(side, address, length))
            }),
        };
        match node {
            Some(node) => {
                self.0.next();
                Ok(node)
            }
            None => Err(self.unexpected(match what {
                "port" => "a number of a port",
                "host" => "an address",
                _ => "a network, as 10.0.0.0/8",
            })),
        }
    }

    fn unexpected(&mut self, wanted: &'static str) -> FilterError {
        match self.0.next() {
            Some(word) => FilterError::Word {
                found: word.to_owned(),
                wanted,
            },
            None => FilterError::Ends(wanted),
        }
    }
}

fn one_or(mut nodes: Vec<Node>, several: impl Fn(Vec<Node>) -> Node) -> Node {
    match (nodes.len(), nodes.pop()) {
        (1, Some(node)) => node,
        (_, Some(last)) => {
            nodes.push(last);
            several(nodes)
        }
        (_, None) => Node::Any,
    }
}

fn bits(address: &IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn is_in(address: IpAddr, net: IpAddr, length: u8) -> bool {
    let shift = |width: u32| width - u32::from(length);
    match (address, net) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            (a.to_bits() ^ b.to_bits())
                .checked_shr(shift(32))
                .unwrap_or(0)
                == 0
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            (a.to_bits() ^ b.to_bits())
                .checked_shr(shift(128))
                .unwrap_or(0)
                == 0
        }
        _ => false,
    }
}

impl Plain {
    /// What `node` says; nothing, if it says more than this can.
    fn of(node: &Node) -> Option<Plain> {
        let nodes = match node {
            Node::All(nodes) => nodes.as_slice(),
            one => std::slice::from_ref(one),
        };
        let mut plain = Plain::default();
        for node in nodes {
            let was_there = match node {
                Node::Version(version) => plain.version.replace(*version).is_some(),
                Node::Protocol(number) => plain.protocol.replace(*number).is_some(),
                Node::Port(Side::Destination, port) => plain.port.replace(*port).is_some(),
                Node::Net(Side::Destination, host, length) if *length == bits(host) => {
                    plain.host.replace(*host).is_some()
                }
                Node::Not(inner) if **inner == Node::Fragment => {
                    plain.is_whole = true;
                    false
                }
                _ => true,
            };
            if was_there {
                return None;
            }
        }
        // What is no packet is no piece of one either: something else must ask for a packet.
        let wants_packet = plain.version.is_some() || plain.protocol.is_some();
        (wants_packet || plain.host.is_some() || plain.port.is_some()).then_some(plain)
    }

    #[inline]
    fn holds(&self, layout: &Layout) -> bool {
        layout.packet.as_ref().is_some_and(|packet| {
            let version = if packet.source.is_ipv4() { 4 } else { 6 };
            self.version.is_none_or(|wanted| version == wanted)
                && self.protocol.is_none_or(|wanted| packet.protocol == wanted)
                && !(self.is_whole && packet.is_fragment)
                && self.host.is_none_or(|wanted| packet.destination == wanted)
                && (self
                    .port
                    .is_none_or(|wanted| packet.ports.is_some_and(|(_, to)| to == wanted)))
        })
    }
}

impl Node {
    fn holds(&self, layout: &Layout) -> bool {
        match self {
            Node::Any => return true,
            Node::All(nodes) => return nodes.iter().all(|node| node.holds(layout)),
            Node::Some(nodes) => return nodes.iter().any(|node| node.holds(layout)),
            Node::Not(node) => return !node.holds(layout),
            Node::Vlan(None) => return !layout.vlans.is_empty(),
            Node::Vlan(Some(number)) => return layout.vlans.contains(number),
            _ => {}
        }
        let Some(packet) = &layout.packet else {
            return false;
        };
        match self {
            Node::Version(version) => packet.source.is_ipv4() == (*version == 4),
            Node::Protocol(number) => packet.protocol == *number,
            Node::Icmp => [protocol::ICMP, protocol::ICMP6].contains(&packet.protocol),
            Node::Fragment => packet.is_fragment,
            Node::Net(side, net, length) => side.holds(packet.source, packet.destination, |a| {
                is_in(a, *net, *length)
            }),
            Node::Port(side, port) => packet
                .ports
                .is_some_and(|(from, to)| side.holds(from, to, |p| p == *port)),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::layout;
    use crate::frame::tests::{udp, udp6};
    use proptest::prelude::*;

    fn holds(filter: &str, frame: &[u8]) -> bool {
        let (filter, layout) = (filter.parse::<Filter>().unwrap(), layout(frame));
        let held = filter.holds(&layout);
        assert_eq!(held, filter.node.holds(&layout), "{filter}");
        held
    }

    #[test]
    fn a_plain_filter_says_what_its_nodes_say() {
        let mut piece = udp(b"hello");
        piece[20] = 0x20;
        let no_packet = [0; 60];
        let frames = [&udp(b"x"), &udp6(b"x"), &piece, &no_packet[..]];
        let words = [
            "ip",
            "ip6",
            "udp",
            "tcp",
            "not fragment",
            "dst port 5001",
            "dst port 7",
            "dst host 10.0.0.2",
            "dst host fd00::2",
            "dst host 10.0.0.7",
            "src host 10.0.0.1",
            "any",
        ];
        let mut plain = 0;
        for one in words {
            for other in words {
                for third in words {
                    let text = format!("{one} and {other} and {third}");
                    plain += usize::from(text.parse::<Filter>().unwrap().plain.is_some());
                    frames.iter().for_each(|frame| {
                        holds(&text, frame);
                    });
                }
                frames.iter().for_each(|frame| {
                    holds(one, frame);
                });
            }
        }
        assert!(plain > 300, "{plain}");
    }

    #[test]
    fn a_filter_means_what_it_says() {
        let (four, six) = (udp(b"x"), udp6(b"x"));
        for (filter, of_four, of_six) in [
            ("any", true, true),
            ("ip", true, false),
            ("ip6", false, true),
            ("udp", true, true),
            ("tcp", false, false),
            ("dst host 10.0.0.2", true, false),
            ("src host 10.0.0.2", false, false),
            ("host 10.0.0.2", true, false),
            ("net 10.0.0.0/24", true, false),
            ("net 0.0.0.0/0", true, false),
            ("net fd00::/8", false, true),
            ("vlan", false, true),
            ("vlan 7", false, true),
            ("vlan 8", false, false),
            ("dst port 5001 and not vlan", true, false),
            ("(ip6 or tcp) and port 5000", false, true),
            ("not (ip or ip6)", false, false),
            ("fragment", false, false),
        ] {
            assert_eq!(
                (holds(filter, &four), holds(filter, &six)),
                (of_four, of_six),
                "{filter}"
            );
        }
        assert!(holds("any", b"short") && !holds("ip", b"short"));
    }

    #[test]
    fn what_is_no_filter_is_told_where() {
        for (text, said) in [
            (
                "",
                "it ends where a primitive, as `udp` or `dst host 10.0.0.2` is due",
            ),
            ("udp tcp", "`tcp` where `and` or `or` is due"),
            ("dst udp", "`udp` where `host`, `net` or `port` is due"),
            ("port 70000", "`70000` where a number of a port is due"),
            (
                "net 10.0.0.0/33",
                "`10.0.0.0/33` where a network, as 10.0.0.0/8 is due",
            ),
            ("(udp", "it ends where `)` is due"),
        ] {
            assert_eq!(text.parse::<Filter>().unwrap_err().to_string(), said);
        }
        let deep = format!("{}udp{}", "(".repeat(100), ")".repeat(100));
        assert_eq!(deep.parse::<Filter>(), Err(FilterError::Large));
        assert_eq!(
            "not ".repeat(900).parse::<Filter>(),
            Err(FilterError::Large)
        );
    }

    proptest! {
        #[test]
        fn any_text_is_a_filter_or_refused(text in "[a-z0-9/.:() ]{0,60}") {
            let _ = text.parse::<Filter>();
        }
    }
}
