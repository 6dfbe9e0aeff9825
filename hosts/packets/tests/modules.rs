//! Real modules, built by `mullion cc`, on frames from files.

#[path = "../../../crates/host/mullion/tests/support/mod.rs"]
mod support;

use mullion::Host;
use mullion_packets::batch::Batch;
use mullion_packets::config::{Description, Kind, Wall};
use mullion_packets::forward::{ChangeError, Forwarder};
use mullion_packets::{frame, pcap, run};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Builds a module of ours, or one whose text is given.
fn build(name: &str, source: Option<&str>, into: &Path) -> PathBuf {
    let file = match source {
        None => here().join("modules").join(name).with_extension("c"),
        Some(text) => {
            let file = into.join(name).with_extension("c");
            std::fs::write(&file, text).unwrap();
            file
        }
    };
    let image = into.join(name).with_extension("mx");
    let include = here().display().to_string();
    support::build(&file, &image, &["-O2", "-I", &include]);
    image
}

fn module(name: &str, image: PathBuf, kind: Kind) -> Description {
    Description {
        name: name.to_owned(),
        image,
        kind,
        wall: Wall::Window,
        filter: None,
        from: None,
        sees: None,
        locked: Vec::new(),
        time: Some("1s".to_owned()),
        memory: None,
    }
}

/// A frame of UDP over IPv4 from 10.0.0.1 to port 5001 of 10.0.0.2.
fn udp(payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2; 12];
    bytes.extend([0x08, 0x00, 0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0]);
    bytes.extend([10, 0, 0, 1, 10, 0, 0, 2, 0x13, 0x88, 0x13, 0x89, 0, 0, 0, 0]);
    bytes.extend(payload);
    let end = bytes.len();
    frame::repair(&mut bytes, end);
    bytes
}

/// What comes out where these frames go in.
fn through(forwarder: &Forwarder, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    // As they come from a ring: several at a time, and sometimes one alone.
    let mut out = Vec::new();
    for frames in frames.chunks(37) {
        let mut batch = Batch::default();
        for frame in frames {
            batch.push(Duration::from_secs(1), frame);
        }
        forwarder.handle(&forwarder.modules(), 0, &mut batch);
        out.extend(batch.out().map(<[u8]>::to_vec));
    }
    out
}

/// Numbers that are the same each time.
fn random(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    *state >> 33
}

#[test]
fn a_monitor_sees_its_28_bytes_and_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let spy = r#"
        #include "packets.h"
        int packets_next(struct packets_frame *frame)
        {
            packets_report(frame->bytes, frame->length);
            for (unsigned i = 0; i < sizeof frame->bytes; i++)
                frame->bytes[i] = 0xff;
            packets_emit(frame->bytes, 60, 60);
            return PACKETS_CHANGED;
        }"#;
    let mut spy = module("spy", build("spy", Some(spy), place.path()), Kind::Monitor);
    spy.filter = Some("dst host 10.0.0.2".to_owned());
    spy.sees = Some(28);
    spy.locked = vec![mullion_packets::view::Locked::Source];
    let forwarder = Forwarder::new(Host::new(), &[spy]).unwrap();
    let frames = [udp(b"a secret"), vec![0; 60]];
    assert_eq!(through(&forwarder, &frames), frames);
    let reports = forwarder.modules()[0].take_reports();
    assert_eq!(reports.len(), 1);
    let mut wanted = frames[0][14..42].to_vec();
    // The source, and checksums over it.
    wanted[10..16].fill(0);
    wanted[26..28].fill(0);
    assert_eq!(reports[0], wanted);
}

#[test]
fn errors_of_single_bits_are_repaired_and_others_counted() {
    let place = tempfile::tempdir().unwrap();
    let (send, receive) = (
        build("fec_send", None, place.path()),
        build("fec_receive", None, place.path()),
    );
    let sender = Forwarder::new(Host::new(), &[module("send", send, Kind::Transcoder)]).unwrap();
    let receiver =
        Forwarder::new(Host::new(), &[module("receive", receive, Kind::Transcoder)]).unwrap();
    let mut state = 7;
    let (mut repaired, mut dropped, mut wrong) = (0u64, 0, 0);
    for length in (0..1390)
        .step_by(13)
        .chain([1, 7, 8, 9, 732, 733, 1464, 1465, 1470])
    {
        let payload: Vec<u8> = (0..length).map(|_| random(&mut state) as u8).collect();
        let frame = udp(&payload);
        let mut coded = through(&sender, std::slice::from_ref(&frame));
        assert_eq!(coded.len(), 1 + (length.max(1) - 1) / 732, "{length}");
        let is_hopeless = length % 7 == 5;
        for coded in &mut coded {
            assert!(frame::is_sound(coded) && coded.len() <= 1514, "{length}");
            // One wrong bit in every eighth byte or so; two in one, sometimes.
            for byte in &mut coded[42..] {
                if random(&mut state).is_multiple_of(8) {
                    *byte ^= 1 << (random(&mut state) % 8);
                    repaired += 1;
                }
            }
        }
        if is_hopeless {
            let last = coded[0].len() - 1;
            coded[0][last] = hamming(15) ^ 0x03;
            wrong += 1;
        }
        let end = coded[0].len();
        frame::repair(&mut coded[0], end);
        let back = through(&receiver, &coded);
        match is_hopeless {
            true => {
                assert!(back.is_empty(), "{length}");
                dropped += 1;
            }
            false => assert_eq!(back, [frame], "{length}"),
        }
    }
    assert!(repaired > 1000 && dropped == wrong && wrong > 5);
}

/// The code of a nibble, written anew from the definition of an extended Hamming code.
fn hamming(nibble: u8) -> u8 {
    let bit = |place: u8| nibble >> place & 1;
    let data = [(3, bit(0)), (5, bit(1)), (6, bit(2)), (7, bit(3))];
    let mut code = 0u8;
    for (place, value) in data {
        code |= value << place;
    }
    for parity in [1, 2, 4] {
        let sum: u8 = data
            .iter()
            .filter(|(place, _)| place & parity != 0)
            .map(|(_, value)| value)
            .sum();
        code |= (sum & 1) << parity;
    }
    code | (code.count_ones() as u8 & 1)
}

/// Each way to misbehave: the module is stopped with the reason, and its frames and others' go on.
#[test]
fn who_misbehaves_is_taken_out_and_no_frame_is_lost() {
    let place = tempfile::tempdir().unwrap();
    let frames: Vec<Vec<u8>> = (0..20).map(|n| udp(&[n; 100])).collect();
    for (name, body, said) in [
        ("loops", "for (volatile int i = 0;; i++);", "time"),
        ("faults", "*(volatile int *)0x10 = 1;", "fault"),
        (
            "recurses",
            "volatile char a[4096]; a[0] = 1; return packets_next(frame) + a[0];",
            "stack",
        ),
        ("aborts", "__builtin_trap();", "fault"),
    ] {
        let text = format!(
            "#include \"packets.h\"\nint packets_next(struct packets_frame *frame)\n{{\n\
             static int n; if (n++ < 5) return PACKETS_PASS;\n{body}\nreturn PACKETS_DROP;\n}}\n"
        );
        let mut bad = module(
            name,
            build(name, Some(&text), place.path()),
            Kind::Transcoder,
        );
        bad.time = Some("50ms".to_owned());
        let monitor = module(
            "monitor",
            build("monitor", None, place.path()),
            Kind::Monitor,
        );
        let forwarder = Forwarder::new(Host::new(), &[bad, monitor]).unwrap();
        assert_eq!(through(&forwarder, &frames), frames, "{name}");
        let modules = forwarder.modules();
        let why = modules[0].stopped().expect(name);
        assert!(
            !why.is_empty() && modules[0].counters.frames.load(Ordering::Relaxed) == 20,
            "{name}: {why} ({said})"
        );
        assert!(modules[1].stopped().is_none());
        assert_eq!(
            modules[1].counters.frames.load(Ordering::Relaxed),
            20,
            "{name}"
        );
    }
}

#[test]
fn what_a_module_may_not_is_refused_and_counted() {
    let place = tempfile::tempdir().unwrap();
    let greedy = r#"
        #include "packets.h"
        int packets_next(struct packets_frame *frame)
        {
            static int n;
            for (int i = 0; i < 1000; i++)
                packets_emit(frame->bytes, frame->length, frame->end);
            for (int i = 0; i < 1000; i++)
                packets_report("x", 1);
            packets_report(frame->bytes, 1 << 20);
            switch (n++) {
            case 0: frame->length = 1u << 31; return PACKETS_CHANGED;
            case 1: frame->length = 3; return PACKETS_CHANGED;
            default: return 77;
            }
        }"#;
    let image = build("greedy", Some(greedy), place.path());
    let forwarder =
        Forwarder::new(Host::new(), &[module("greedy", image, Kind::Transcoder)]).unwrap();
    let frames = [udp(b"1"), udp(b"2"), udp(b"3")];
    let out = through(&forwarder, &frames);
    assert_eq!(out.len(), 3 * (1 + 16));
    assert!(frames.iter().all(|frame| out.contains(frame)));
    let modules = forwarder.modules();
    assert_eq!(modules[0].take_reports().len(), 256);
    assert_eq!(modules[0].refused(), 3 * (984 + 1) + 3 * 1000 - 256 + 3);
    assert_eq!(modules[0].stopped(), None);
}

#[test]
fn modules_come_and_go_while_frames_flow() {
    let place = tempfile::tempdir().unwrap();
    let monitor = module(
        "monitor",
        build("monitor", None, place.path()),
        Kind::Monitor,
    );
    let forwarder = Forwarder::new(Host::new(), &[]).unwrap();
    let frames: Vec<Vec<u8>> = (0..200u8).map(|n| udp(&[n])).collect();
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut out = Vec::new();
            for _ in 0..20 {
                out.extend(through(&forwarder, &frames));
            }
            out
        });
        for _ in 0..20 {
            forwarder.load(&monitor, false).unwrap();
            assert!(matches!(
                forwarder.load(&monitor, false),
                Err(ChangeError::Taken(_))
            ));
            forwarder.load(&monitor, true).unwrap();
            forwarder.unload("monitor").unwrap();
        }
        let out = sender.join().unwrap();
        assert_eq!(
            out,
            vec![frames.clone(); 20].concat(),
            "none is lost, and they are in order"
        );
    });
    assert!(matches!(
        forwarder.unload("monitor"),
        Err(ChangeError::Unknown(_))
    ));
}

#[test]
fn a_capture_goes_through_and_tcpdump_reads_it() {
    let place = tempfile::tempdir().unwrap();
    let mut fragments = module(
        "fragments",
        build("fragments", None, place.path()),
        Kind::Monitor,
    );
    fragments.sees = Some(20);
    let forwarder = Forwarder::new(Host::new(), &[fragments]).unwrap();
    let mut capture = pcap::Writer::new(Vec::new()).unwrap();
    for n in 0..100u8 {
        let mut frame = udp(&[n; 40]);
        // Every tenth is a piece of a packet; every tenth of these the last.
        if n % 10 == 0 {
            let field: u16 = if n == 0 { 0x0010 } else { 0x2000 };
            frame[20..22].copy_from_slice(&field.to_be_bytes());
            let end = frame.len();
            frame::repair(&mut frame, end);
        }
        capture
            .write(Duration::from_secs(n.into()), &frame)
            .unwrap();
    }
    let capture = capture.finish().unwrap();
    let mut out = Vec::new();
    run::file(&forwarder, &capture[..], &mut out).unwrap();
    assert_eq!(out, capture);
    let reports = forwarder.modules()[0].take_reports();
    assert_eq!(String::from_utf8_lossy(&reports[0]), "100 10 1\n");
    let file = place.path().join("out.pcap");
    std::fs::write(&file, out).unwrap();
    let Some(mut tcpdump) = tcpdump() else {
        return;
    };
    let output = tcpdump
        .args(["-Z", "root", "-nnttvv", "-r"])
        .arg(&file)
        .output();
    let output = output.expect("tcpdump starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // Each packet is a line of IP and one of UDP, or of a piece; each sum is right.
    let packets: Vec<&str> = said.lines().filter(|line| line.contains(" IP ")).collect();
    assert_eq!(packets.len(), 100, "{said}");
    for (n, packet) in packets.iter().enumerate() {
        assert!(packet.starts_with(&format!("{n}.000000 IP ")), "{packet}");
    }
    assert!(!said.contains("bad "), "{said}");
    assert_eq!(said.matches("[udp sum ok]").count(), 90, "{said}");
    assert_eq!(said.matches("flags [+]").count(), 9, "{said}");
}

/// The same over IPv6, in a VLAN.
fn udp6(payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2; 12];
    bytes.extend([0x81, 0, 0, 7, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 17, 64]);
    for last in 1..=2 {
        bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    bytes.extend([0x13, 0x88, 0x13, 0x89, 0, 0, 0, 0]);
    bytes.extend(payload);
    let end = bytes.len();
    frame::repair(&mut bytes, end);
    bytes
}

/// Frames that are made shorter, longer, and two of one: tcpdump finds each length and each sum right.
#[test]
fn what_modules_have_changed_is_right_for_tcpdump() {
    let Some(mut tcpdump) = tcpdump() else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let mut capture = pcap::Writer::new(Vec::new()).unwrap();
    for name in ["resample", "fec_send", "mirror"] {
        let module = module(name, build(name, None, place.path()), Kind::Transcoder);
        let forwarder = Forwarder::new(Host::new(), &[module]).unwrap();
        let frames: Vec<Vec<u8>> = [udp, udp6]
            .iter()
            .flat_map(|make| [1, 60, 601, 1300].map(|length| make(&vec![7; length])))
            .collect();
        for frame in through(&forwarder, &frames) {
            capture.write(Duration::from_secs(1), &frame).unwrap();
        }
    }
    let file = place.path().join("changed.pcap");
    std::fs::write(&file, capture.finish().unwrap()).unwrap();
    let output = tcpdump.args(["-Z", "root", "-nntvv", "-r"]).arg(&file);
    let output = output.output().expect("tcpdump starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    // Eight of the resampler, ten of the sender, as two were too long; the mirror's eight, and as many copies, whose
    // sums are seen within and without.
    let sums = said.matches("udp sum ok]").count();
    assert_eq!(sums, 8 + 10 + 8 + 2 * 8, "{said}");
    for wrong in ["bad ", "incorrect", "wrong", "truncated"] {
        assert!(!said.contains(wrong), "{said}");
    }
}

/// The machine's own tcpdump, or Debian's package of it, which is fetched and run from the cache.
fn tcpdump() -> Option<Command> {
    if Command::new("tcpdump").arg("--version").output().is_ok() {
        return Some(Command::new("tcpdump"));
    }
    let lock = include_str!("../../../sysroot/sources.toml");
    let lock = mullion_fetch::Lock::parse(lock).expect("a lock file");
    let fetch = |name: &str| {
        let source = lock.source(name).expect("it is in the lock file");
        let place = mullion_fetch::fetch(source);
        place.inspect_err(|why| eprintln!("not run: there is no tcpdump: {why}"))
    };
    let (program, library) = (fetch("tcpdump").ok()?, fetch("libpcap").ok()?);
    let mut command = Command::new(program.join("usr/bin/tcpdump"));
    command.env("LD_LIBRARY_PATH", library.join("usr/lib/x86_64-linux-gnu"));
    match command.arg("--version").output() {
        Ok(output) if output.status.success() => {
            let mut again = Command::new(command.get_program());
            again.envs(
                command
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
            Some(again)
        }
        _ => {
            eprintln!("not run: Debian's tcpdump does not start here");
            None
        }
    }
}
