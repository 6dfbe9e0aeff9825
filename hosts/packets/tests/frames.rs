//! Malformed frames of every kind never stop the forwarder, and never harm what they go through. And bit errors: what
//! the receiver of forward error correction repairs, beside theory.
//!
//! The long form: `MULLION_FUZZ_SECONDS=600 MULLION_FUZZ_SEED=7 cargo test -p mullion-packets --test frames`.

#[path = "../../../crates/host/mullion/tests/support/mod.rs"]
mod support;

use mullion::Host;
use mullion_packets::batch::Batch;
use mullion_packets::config::{Description, Kind, Wall};
use mullion_packets::forward::Forwarder;
use mullion_packets::frame;
use mullion_packets::view::Locked;
use std::path::Path;
use std::time::{Duration, Instant};

fn module(name: &str, kind: Kind, place: &Path) -> Description {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let image = place.join(name).with_extension("mx");
    if !image.exists() {
        let source = here.join("modules").join(name).with_extension("c");
        support::build(&source, &image, &["-O2", "-I", &here.display().to_string()]);
    }
    Description {
        name: name.to_owned(),
        image,
        kind,
        wall: Wall::Window,
        filter: None,
        from: None,
        sees: None,
        locked: Vec::new(),
        time: Some("10s".to_owned()),
        memory: None,
    }
}

/// Numbers that a seed stands for.
struct Random(u64);

impl Random {
    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// A frame that is right: tags, IPv4 or IPv6 with what lies between, UDP, TCP, ICMP or a piece.
fn good(random: &mut Random) -> Vec<u8> {
    let mut bytes = random.bytes(12);
    for _ in 0..random.one_of(&[0, 0, 0, 1, 2, 3]) {
        let kind: u16 = random.one_of(&[0x8100, 0x88a8]);
        bytes.extend(kind.to_be_bytes());
        bytes.extend(random.bytes(2));
    }
    let protocol = random.one_of(&[17, 17, 17, 6, 1, 58, 89]);
    let piece = random.one_of(&[0u16, 0, 0, 0x2000, 0x4000, 0x2010, 0x1fff]);
    if random.below(2) == 0 {
        let options = random.one_of(&[0, 0, 0, 4, 40]);
        bytes.extend([0x08, 0x00, 0x45 + (options / 4) as u8, 0, 0, 0, 0, 1]);
        bytes.extend(piece.to_be_bytes());
        bytes.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend(random.bytes(options));
    } else {
        let extension = random.one_of(&[None, None, None, Some(0), Some(43), Some(44), Some(60)]);
        bytes.extend([
            0x86,
            0xdd,
            0x60,
            0,
            0,
            0,
            0,
            0,
            extension.unwrap_or(protocol),
            64,
        ]);
        bytes.extend(random.bytes(32));
        if extension.is_some() {
            bytes.extend([protocol, 0]);
            bytes.extend(piece.to_be_bytes());
            bytes.extend(random.bytes(4));
        }
    }
    match protocol {
        6 => {
            bytes.extend(random.bytes(12));
            bytes.extend([0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        }
        _ => {
            bytes.extend([0x13, 0x88]);
            let port: u16 = random.one_of(&[5001, 5004, 80]);
            bytes.extend(port.to_be_bytes());
            bytes.extend([0; 4]);
        }
    }
    let length = random.one_of(&[0, 1, 3, 8, 17, 64, 600, 1400, 1470]);
    bytes.extend(random.bytes(length));
    let end = bytes.len();
    let pad = random.one_of(&[0, 0, 0, 1, 18]);
    bytes.extend(vec![0; pad]);
    frame::repair(&mut bytes, end);
    bytes
}

/// The same with something wrong.
fn malformed(random: &mut Random) -> Vec<u8> {
    let mut bytes = good(random);
    for _ in 0..random.below(4) {
        // Mostly in the headers, where it matters.
        let near = random.one_of(&[24, 60, 120, bytes.len()]).min(bytes.len());
        let at = random.below(near);
        match random.below(7) {
            0 => {
                bytes[at] =
                    random.one_of(&[0, 1, 4, 5, 0x0f, 0x40, 0x45, 0x4f, 0x60, 0x7f, 0x80, 0xff])
            }
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes.truncate(at.max(1)),
            3 => {
                let more = random.bytes(random.0 as usize % 40);
                bytes.splice(at..at, more);
            }
            4 if at + 2 <= bytes.len() => {
                let value: u16 = random.one_of(&[0, 1, 7, 8, 19, 20, 0x7fff, 0x8000, 0xffff]);
                bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
            }
            5 => {
                let longer = random.one_of(&[0, 1515, 9000, 16384, 16385, 20000]);
                bytes.resize(longer.max(bytes.len()), 0xaa);
            }
            _ => {
                let piece = bytes[..near].to_vec();
                bytes.splice(at..at, piece);
            }
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
    bytes
}

fn is_consistent(bytes: &[u8]) -> bool {
    frame::layout(bytes).packet.is_none_or(|packet| {
        packet.bytes.end <= bytes.len()
            && packet.bytes.start <= packet.content
            && packet.content <= packet.bytes.end
            && packet.payload.is_none_or(|payload| {
                payload.start <= payload.end && payload.end == packet.bytes.end
            })
    })
}

#[test]
fn malformed_frames_never_stop_the_forwarder() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = number("MULLION_FUZZ_SEED").unwrap_or(1);
    let seconds = number("MULLION_FUZZ_SECONDS").map(Duration::from_secs);
    let place = tempfile::tempdir().unwrap();
    let mut monitor = module("monitor", Kind::Monitor, place.path());
    monitor.sees = Some(28);
    monitor.locked = vec![Locked::Source, Locked::Payload];
    let mut modules = vec![monitor, module("flows", Kind::Monitor, place.path())];
    for (name, filter) in [
        ("fec_receive", "dst port 5001"),
        ("fec_send", "dst port 80"),
        ("resample", "dst port 5004 or tcp"),
        ("mirror", "vlan or fragment"),
    ] {
        let mut module = module(name, Kind::Transcoder, place.path());
        module.filter = Some(filter.to_owned());
        module.locked = match name {
            "resample" => vec![Locked::Ethernet, Locked::Source, Locked::Destination],
            _ => Vec::new(),
        };
        modules.push(module);
    }
    let forwarder = Forwarder::new(Host::new(), &modules).unwrap();
    let chain = forwarder.modules();
    let mut random = Random(seed);
    let (begun, mut rounds) = (Instant::now(), 0u64);
    while seconds.map_or(rounds < 500, |seconds| begun.elapsed() < seconds) {
        let before: Vec<Vec<u8>> = (0..64).map(|_| malformed(&mut random)).collect();
        let mut batch = Batch::default();
        for frame in &before {
            batch.push(Duration::from_secs(1), frame);
        }
        let changes = || -> u64 {
            let counters = chain.iter().map(|module| &module.counters);
            let load = |counter: &std::sync::atomic::AtomicU64| {
                counter.load(std::sync::atomic::Ordering::Relaxed)
            };
            counters
                .map(|all| load(&all.changed) + load(&all.dropped))
                .sum()
        };
        let changed = changes();
        forwarder.handle(&chain, (rounds % 2) as u32, &mut batch);
        let is_other = |at: &usize| batch.frame(*at) != Some(&before[*at]);
        let other = (0..batch.len()).filter(is_other).count() as u64;
        assert!(
            other <= changes() - changed,
            "round {rounds} of seed {seed}"
        );
        assert!(
            batch.out().all(is_consistent),
            "round {rounds} of seed {seed}"
        );
        for added in (0..batch.len()).flat_map(|at| batch.added(at)) {
            assert!(
                frame::layout(added).packet.is_none() || frame::is_sound(added),
                "round {rounds} of seed {seed}"
            );
        }
        rounds += 1;
    }
    for module in chain.iter() {
        assert_eq!(
            module.stopped(),
            None,
            "{} after {rounds} rounds of seed {seed}",
            module.description().name
        );
    }
    assert_eq!(
        forwarder
            .traffic
            .iter()
            .map(|port| port.received.load(std::sync::atomic::Ordering::Relaxed))
            .sum::<u64>(),
        rounds * 64
    );
}

fn udp(payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2; 12];
    bytes.extend([0x08, 0x00, 0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0]);
    bytes.extend([10, 0, 0, 1, 10, 0, 0, 2, 0x13, 0x88, 0x13, 0x89, 0, 0, 0, 0]);
    bytes.extend(payload);
    let end = bytes.len();
    frame::repair(&mut bytes, end);
    bytes
}

/// Whether a count of `trials` things of probability `p` is within five standard deviations of its mean: a seed for
/// which it is not would be one of two millions.
fn is_binomial(found: f64, trials: f64, p: f64) -> bool {
    let deviation = (trials * p * (1.0 - p)).sqrt();
    (found - trials * p).abs() <= 5.0 * deviation.max(1.0)
}

/// Bits are wrong independently with probability `p`. A byte with one wrong bit is repaired, with two its frame is
/// dropped; three look like one, and the frame is wrong.
#[test]
fn bit_errors_are_repaired_as_theory_says() {
    const FRAMES: usize = 4000;
    const PAYLOAD: usize = 200;
    let place = tempfile::tempdir().unwrap();
    for (seed, p) in [(1, 0.0005), (2, 0.002), (3, 0.01)] {
        let one = |name| {
            let module = module(name, Kind::Transcoder, place.path());
            Forwarder::new(Host::new(), &[module]).unwrap()
        };
        let (sender, receiver) = (one("fec_send"), one("fec_receive"));
        let mut random = Random(seed);
        let (mut delivered, mut wrong, mut flipped, mut report) = (0, 0, 0u64, String::new());
        for _ in 0..FRAMES {
            let frame = udp(&random.bytes(PAYLOAD));
            let through = |forwarder: &Forwarder, frame: &[u8]| {
                let mut batch = Batch::default();
                batch.push(Duration::from_secs(1), frame);
                forwarder.handle(&forwarder.modules(), 0, &mut batch);
                batch.frame(0).map(<[u8]>::to_vec)
            };
            let mut coded = through(&sender, &frame).expect("it goes on");
            assert_eq!(coded.len(), 42 + 2 * (PAYLOAD + 4));
            for byte in &mut coded[42..] {
                for bit in 0..8 {
                    if (random.next() as f64) < p * u64::MAX as f64 {
                        *byte ^= 1 << bit;
                        flipped += 1;
                    }
                }
            }
            if let Some(found) = through(&receiver, &coded) {
                delivered += 1;
                wrong += u64::from(found != frame);
            }
            for text in receiver.modules()[0].take_reports() {
                report = String::from_utf8(text).unwrap();
            }
        }
        let bytes = (2 * (PAYLOAD + 4)) as f64;
        let choose = |k: i32| (1..=k).fold(1.0, |all, i| all * f64::from(9 - i) / f64::from(i));
        let of = |k: i32| choose(k) * p.powi(k) * (1.0 - p).powi(8 - k);
        // Of the 70 ways to have four bits wrong 14 are other codewords, and eight wrong bits are one.
        let hopeless = of(2) + of(4) * 56.0 / 70.0 + of(6);
        let lost_frames = 1.0 - (1.0 - hopeless).powf(bytes);
        let silent = of(3) + of(5) + of(7) + of(8) + of(4) * 14.0 / 70.0;
        let bits = FRAMES as f64 * bytes * 8.0;
        assert!(is_binomial(flipped as f64, bits, p), "{flipped} of {bits}");
        let dropped = FRAMES as f64 - f64::from(delivered);
        assert!(
            is_binomial(dropped, FRAMES as f64, lost_frames),
            "{p}: {dropped} dropped, and not {lost_frames} of all"
        );
        // Among those that are not dropped; one in four bytes of a head is not of the payload.
        let wrong_frame = 1.0 - (1.0 - silent / (1.0 - hopeless)).powf(bytes);
        assert!(
            is_binomial(wrong as f64, f64::from(delivered), wrong_frame),
            "{p}: {wrong} wrong"
        );
        // The report comes with the last hundredth frame, before it is looked at.
        let told: Vec<f64> = report
            .split_whitespace()
            .map(|word| word.parse().unwrap())
            .collect();
        let [frames, repaired, lost] = told[..] else {
            panic!("{report}");
        };
        assert_eq!(frames, FRAMES as f64);
        let tried = (frames - 1.0 - lost) * bytes;
        let each = (of(1) + of(3) + of(5) + of(7)) / (1.0 - hopeless);
        assert!(
            is_binomial(repaired, tried, each),
            "{p}: {repaired} bits repaired of {tried} at {each}"
        );
        println!(
            "| {p} | {flipped} | {repaired} | {dropped}, {:.1} | {wrong}, {:.2} |",
            FRAMES as f64 * lost_frames,
            f64::from(delivered) * wrong_frame
        );
    }
}
