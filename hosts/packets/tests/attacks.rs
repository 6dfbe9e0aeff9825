//! Modules that attack: each is refused or stopped, with the reason, and what goes through the others is unharmed.

#[path = "../../../crates/host/mullion/tests/support/mod.rs"]
mod support;

use mullion::Host;
use mullion_packets::batch::Batch;
use mullion_packets::config::{Description, Kind, Wall};
use mullion_packets::forward::Forwarder;
use mullion_packets::frame;
use mullion_packets::view::Locked;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn build(name: &str, text: Option<&str>, into: &Path) -> PathBuf {
    let source = match text {
        None => here().join("modules").join(name).with_extension("c"),
        Some(text) => {
            let source = into.join(name).with_extension("c");
            std::fs::write(&source, format!("#include \"packets.h\"\n{text}\n")).unwrap();
            source
        }
    };
    let image = into.join(name).with_extension("mx");
    support::build(
        &source,
        &image,
        &["-O1", "-w", "-I", &here().display().to_string()],
    );
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
        time: Some("20ms".to_owned()),
        memory: None,
    }
}

fn udp(payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2; 12];
    bytes.extend([0x08, 0x00, 0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0]);
    // An address that nothing else looks like.
    bytes.extend([
        0xc3, 0x5a, 0x96, 0x7e, 10, 0, 0, 2, 0x13, 0x88, 0x13, 0x89, 0, 0, 0, 0,
    ]);
    bytes.extend(payload);
    let end = bytes.len();
    frame::repair(&mut bytes, end);
    bytes
}

fn through(forwarder: &Forwarder, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for frames in frames.chunks(10) {
        let mut batch = Batch::default();
        for frame in frames {
            batch.push(Duration::from_secs(1), frame);
        }
        forwarder.handle(&forwarder.modules(), 0, &mut batch);
        out.extend(batch.out().map(<[u8]>::to_vec));
    }
    out
}

/// Runs an attacker between two modules that do no harm: the forwarder, and what came out.
fn beside(attacker: Description, place: &Path, frames: &[Vec<u8>]) -> (Forwarder, Vec<Vec<u8>>) {
    let innocent = |name| module(name, build("fragments", None, place), Kind::Monitor);
    let mut modules = [innocent("before"), attacker, innocent("after")];
    for one in [0, 2] {
        modules[one].time = Some("10s".to_owned());
        modules[one].sees = Some(20);
    }
    let forwarder = Forwarder::new(Host::new(), &modules).unwrap();
    let out = through(&forwarder, frames);
    let modules = forwarder.modules();
    for innocent in [&modules[0], &modules[2]] {
        assert_eq!(innocent.stopped(), None);
        let seen = innocent.counters.frames.load(Ordering::Relaxed);
        assert_eq!(seen, frames.len() as u64);
        assert_eq!(innocent.take_reports(), [b"100 0 0\n"]);
    }
    drop(modules);
    (forwarder, out)
}

fn frames() -> Vec<Vec<u8>> {
    (0..100u8).map(|n| udp(&[n; 100])).collect()
}

/// The forwarder puts what is locked back into a frame that goes on. The module's room is of use again after that, and a batch of
/// fewer or shorter frames leaves in it what was there.
#[test]
fn what_is_put_back_is_not_in_the_room_of_the_next_batch() {
    let place = tempfile::tempdir().unwrap();
    let text = r#"
        int packets_next(struct packets_frame *frame)
        {
            static int calls;
            const unsigned char *room = (const unsigned char *)packets_room;
            unsigned long hits = 0;
            if (++calls <= 10)
                return PACKETS_CHANGED;
            for (unsigned long i = 0; i + 4 <= sizeof *packets_room; i++)
                if (room[i] == 0xc3 && room[i + 1] == 0x5a && room[i + 2] == 0x96 && room[i + 3] == 0x7e)
                    hits++;
            packets_tell(hits, calls, 0);
            return PACKETS_PASS;
        }"#;
    let mut attacker = module(
        "finds",
        build("finds", Some(text), place.path()),
        Kind::Transcoder,
    );
    attacker.locked = vec![Locked::Source];
    attacker.time = Some("10s".to_owned());
    let forwarder = Forwarder::new(Host::new(), &[attacker]).unwrap();
    let frames = frames()[..11].to_vec();
    assert_eq!(through(&forwarder, &frames), frames);
    let modules = forwarder.modules();
    assert_eq!(modules[0].stopped(), None);
    assert_eq!(modules[0].take_reports(), [b"0 11 0\n"]);
}

/// Whatever it reads of its own memory, at any alignment, behind the frame's end, and through pointers to elsewhere: the
/// locked address is not there.
#[test]
fn a_locked_part_is_nowhere_in_a_modules_memory() {
    let place = tempfile::tempdir().unwrap();
    let text = r#"
        static unsigned long hits, looked;
        static void look(const unsigned char *at, unsigned long length)
        {
            for (unsigned long i = 0; i + 4 <= length; i++, looked++)
                if (at[i] == 0xc3 && at[i + 1] == 0x5a && at[i + 2] == 0x96 && at[i + 3] == 0x7e)
                    hits++;
        }
        int packets_next(struct packets_frame *frame)
        {
            static int calls;
            unsigned char here[2048];
            look((unsigned char *)packets_room, sizeof *packets_room);
            look((unsigned char *)&packets_room, 4096);
            /* Dead frames of the stack, and what lies where other windows and the host would have it. */
            look(here, sizeof here);
            for (int i = 1; i < 8; i++)
                look(frame->bytes + ((unsigned long)i << 32), frame->length);
            if (++calls == 20)
                packets_tell(hits, looked > 100000, 0);
            return PACKETS_CHANGED;
        }"#;
    let image = build("looks", Some(text), place.path());
    for kind in [Kind::Monitor, Kind::Transcoder] {
        let mut attacker = module("looks", image.clone(), kind);
        attacker.locked = vec![Locked::Source];
        attacker.time = Some("10s".to_owned());
        let (forwarder, out) = beside(attacker, place.path(), &frames());
        assert_eq!(out, frames());
        let modules = forwarder.modules();
        assert_eq!(modules[1].stopped(), None);
        assert_eq!(modules[1].take_reports(), [b"0 1 0\n"]);
    }
    // The same without a lock: so it would have been found.
    let mut open = module("looks", image, Kind::Monitor);
    open.time = Some("10s".to_owned());
    let (forwarder, _) = beside(open, place.path(), &frames());
    assert_ne!(forwarder.modules()[1].take_reports(), [b"0 1 0\n"]);
}

/// A pointer that is kept points into the module's own memory, which is no frame any more.
#[test]
fn a_pointer_that_is_kept_reaches_no_frame() {
    let place = tempfile::tempdir().unwrap();
    let text = r#"
        static struct packets_frame *kept[PACKETS_BATCH];
        static int count;
        int packets_next(struct packets_frame *frame)
        {
            kept[count++ % PACKETS_BATCH] = frame;
            for (int i = 0; i < PACKETS_BATCH; i++)
                if (kept[i] && kept[i] != frame)
                    for (int at = 0; at < 200; at++)
                        kept[i]->bytes[at] ^= 0xff;
            return PACKETS_PASS;
        }"#;
    let image = build("keeps", Some(text), place.path());
    let (forwarder, out) = beside(
        module("keeps", image, Kind::Transcoder),
        place.path(),
        &frames(),
    );
    assert_eq!(out, frames());
    assert_eq!(forwarder.modules()[1].stopped(), None);
}

#[test]
fn what_never_ends_or_leaves_its_memory_is_stopped_with_the_reason() {
    let place = tempfile::tempdir().unwrap();
    for (name, body, said) in [
        (
            "loops",
            "for (volatile int i = 0;; i++);",
            "time limit of 640ms exceeded",
        ),
        (
            "recurses",
            "volatile char room[4096]; room[0] = 1; return packets_next(frame) + room[0];",
            "stack",
        ),
        ("stores", "*(volatile int *)0x10 = 1;", "write"),
        ("traps", "__builtin_trap();", "instruction"),
        ("calls", "((void (*)(void))(frame->bytes + 14))();", ""),
        (
            "grows",
            "static char *volatile all; for (;;) { extern void *malloc(unsigned long); char *more = malloc(1 << 20); if (!more) __builtin_trap(); more[0] = 1; }",
            "instruction",
        ),
    ] {
        let text = format!(
            "int packets_next(struct packets_frame *frame)\n{{\n\
             static int n; if (n++ < 25) return PACKETS_PASS;\n{body}\nreturn PACKETS_DROP;\n}}"
        );
        let attacker = module(
            name,
            build(name, Some(&text), place.path()),
            Kind::Transcoder,
        );
        let (forwarder, out) = beside(attacker, place.path(), &frames());
        assert_eq!(out, frames(), "{name}");
        let modules = forwarder.modules();
        let why = modules[1].stopped().expect(name);
        assert!(why.contains(said), "{name}: {why}");
        // It had three batches of ten, and no more.
        assert_eq!(
            modules[1].counters.frames.load(Ordering::Relaxed),
            30,
            "{name}: {why}"
        );
    }
}

/// A monitor that sends, a transcoder that claims sizes and places, and one that floods its user.
#[test]
fn what_a_module_may_not_is_refused_and_counted() {
    let place = tempfile::tempdir().unwrap();
    let text = r#"
        int packets_next(struct packets_frame *frame)
        {
            static int n;
            static const unsigned behind[] = { 0, 31, 32, -1, 0 };
            for (int i = 0; i < 5; i++) {
                unsigned at = packets_room->added++;
                packets_room->more[at].frame = *frame;
                packets_room->more[at].frame.length = i < 4 ? 60 : 1 << 30;
                packets_room->more[at].frame.end = 60;
                packets_room->behind[at] = behind[i];
            }
            for (int i = 0; i < 10; i++)
                packets_tell(1, 2, 3);
            switch (n++ % 4) {
            case 0: frame->length = 0; return PACKETS_CHANGED;
            case 1: frame->length = PACKETS_ROOM + 1; return PACKETS_CHANGED;
            case 2: frame->length = -1; frame->end = -1; return PACKETS_CHANGED;
            default: return -1;
            }
        }"#;
    let image = build("greedy", Some(text), place.path());
    let (forwarder, out) = beside(
        module("greedy", image.clone(), Kind::Monitor),
        place.path(),
        &frames(),
    );
    assert_eq!(out, frames());
    let monitor = &forwarder.modules()[1];
    assert_eq!(monitor.take_reports().len(), 256);
    assert_eq!(monitor.refused(), 100 * 5 + 1000 - 256);

    let (forwarder, out) = beside(
        module("greedy", image, Kind::Transcoder),
        place.path(),
        &frames(),
    );
    let modules = forwarder.modules();
    // Ten frames a batch: those that are sent behind the sixteenth belong to none. At most 16 behind each.
    let added = modules[1].counters.added.load(Ordering::Relaxed);
    assert_eq!(added, 100);
    assert_eq!(out.len(), 200);
    let wanted = frames();
    let own: Vec<Vec<u8>> = out
        .into_iter()
        .filter(|frame| wanted.contains(frame))
        .collect();
    assert_eq!(own, wanted, "the frames themselves, in order");
    assert_eq!(modules[1].refused(), 100 * 4 + 1000 - 256 + 100);
    assert_eq!(modules[1].stopped(), None);
}

/// A tag in front of the addresses would make other bytes the address; an added frame could go anywhere.
#[test]
fn a_locked_address_cannot_be_moved_or_sent_elsewhere() {
    let place = tempfile::tempdir().unwrap();
    let text = r#"
        int packets_next(struct packets_frame *frame)
        {
            static const unsigned char elsewhere[] = { 10, 9, 9, 9 };
            struct packets_frame *more = packets_another();
            *more = *frame;
            for (int i = 0; i < 4; i++)
                more->bytes[30 + i] = elsewhere[i];
            packets_emit_frame(more);
            for (unsigned i = frame->length; i-- > 12;)
                frame->bytes[i + 4] = frame->bytes[i];
            frame->bytes[12] = 0x81;
            frame->bytes[13] = frame->bytes[14] = frame->bytes[15] = 0;
            for (int i = 0; i < 4; i++)
                frame->bytes[34 + i] = elsewhere[i];
            frame->length += 4;
            frame->end += 4;
            return PACKETS_CHANGED;
        }"#;
    let image = build("moves", Some(text), place.path());
    let mut attacker = module("moves", image.clone(), Kind::Transcoder);
    attacker.locked = vec![Locked::Destination];
    let (forwarder, out) = beside(attacker, place.path(), &frames());
    let twice = frames()
        .into_iter()
        .flat_map(|frame| [frame.clone(), frame]);
    assert!(out.into_iter().eq(twice));
    assert_eq!(forwarder.modules()[1].refused(), 100);
    // Without a lock it may do both.
    let forwarder = Forwarder::new(Host::new(), &[module("moves", image, Kind::Transcoder)]);
    let out = through(&forwarder.unwrap(), &frames());
    assert!(out.iter().all(|frame| !frames().contains(frame)));
}

/// What elastic C has to reach a locked part or to run on, the judge refuses, each with its rule.
#[test]
fn an_elastic_module_cannot_even_say_it() {
    let place = tempfile::tempdir().unwrap();
    let next = |body: &str| format!("int packets_next(struct packets_frame *frame) {{ {body} }}");
    for (rule, text) in [
        (
            "pointer-casts",
            next("return (int)*(unsigned *)frame->bytes;"),
        ),
        ("pointer-arithmetic", next("return *(frame->bytes - 1);")),
        ("integer-to-pointer", next("return *(int *)4096;")),
        (
            "unchecked-index",
            next("unsigned char *at = frame->bytes; return at[20000];"),
        ),
        ("inline-assembly", next("__asm__(\"syscall\"); return 0;")),
        (
            "hidden-name",
            next("packets_room->answers[0] = 1; return 0;"),
        ),
        ("hidden-name", next("packets_room->added = 999; return 0;")),
        (
            "kept-pointers",
            format!(
                "static struct packets_frame *kept; {}",
                next("kept = frame; return 0;")
            ),
        ),
        (
            "unions",
            format!(
                "union u {{ unsigned char *p; unsigned long n; }}; {}",
                next("union u u; u.p = 0; return 0;")
            ),
        ),
        ("loops", next("for (;;) ; return 0;")),
        ("recursion", next("return packets_next(frame);")),
        ("unknown-name", next("return open(\"/etc/passwd\", 0);")),
        ("floating-point", next("return (int)(frame->length * 1.5);")),
    ] {
        let file = place.path().join("attack.c");
        std::fs::write(&file, format!("#include \"packets.h\"\n{text}\n")).unwrap();
        let mut compile = Command::new(&*support::MULLION);
        compile
            .args(["compile", "--check", "--type"])
            .arg(here().join("types/monitor.toml"));
        compile.arg("-I").arg(here().join("elastic")).arg(&file);
        let output = compile.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}: {said}");
        assert!(said.contains(&format!("error[{rule}]")), "{text}: {said}");
    }
}
