//! Traces that valgrind and QEMU recorded, and lines that they would never write.

use mullion_mmp::config::Config;
use mullion_mmp::convert::{ConvertError, Map, Summary, SymbolMapError, TraceSource, convert};
use mullion_mmp::event::{TraceEvent, TraceRequest};
use mullion_mmp::machine::Machine;
use mullion_mmp::measurement::Measurement;
use mullion_mmp::trace::{Header, TraceReader, TraceWriter};
use mullion_supervisor::Permission;
use proptest::prelude::*;
use std::convert::Infallible;

const LACKEY: &str = include_str!("samples/tiny.lackey");
const EXECLOG: &str = include_str!("samples/tiny.execlog");
const MAP: &str = include_str!("samples/tiny.toml");

/// Where QEMU had put the stack.
const QEMU_STACK: &str = "start = 0x4000001000\nend = 0x4000801000";

fn map(source: TraceSource) -> Map {
    let lackey = "start = 0x1ffe801000\nend = 0x1fff001000";
    let text = match source {
        TraceSource::Lackey => MAP.to_owned(),
        TraceSource::Qemu => MAP.replace(lackey, QEMU_STACK),
    };
    Map::from_toml(&text).unwrap()
}

fn events(
    source: TraceSource,
    text: &[u8],
    map: &Map,
) -> Result<(Vec<TraceEvent>, Summary), ConvertError<Infallible>> {
    let mut events = Vec::new();
    let summary = convert(source, text, map, |event| {
        events.push(event);
        Ok(())
    })?;
    Ok((events, summary))
}

/// Through a file and a machine, as the command does it.
fn run(events: &[TraceEvent], map: &Map) -> Measurement {
    let header = Header {
        address_bits: map.address_bits(),
        note: String::new(),
    };
    let mut writer = TraceWriter::new(Vec::new(), &header).unwrap();
    for event in events {
        writer.write(event).unwrap();
    }
    let file = writer.finish().unwrap();
    let mut reader = TraceReader::new(&file[..]).unwrap();
    let mut machine = Machine::new(&Config::default(), map.address_bits()).unwrap();
    while let Some(block) = reader.next_block().unwrap() {
        for event in block.events() {
            machine.step(&event.unwrap()).unwrap();
        }
    }
    machine.report()
}

const RECORDINGS: [(TraceSource, &str); 2] =
    [(TraceSource::Lackey, LACKEY), (TraceSource::Qemu, EXECLOG)];

#[test]
fn a_recorded_program_runs_and_its_wild_stores_are_refused() {
    for (source, text) in RECORDINGS {
        let map = map(source);
        let (events, summary) = events(source, text.as_bytes(), &map).unwrap();
        assert_eq!((summary.calls, summary.returns), (2, 2), "{source:?}");
        assert_eq!(summary.events, events.len() as u64);
        let report = run(&events, &map);
        assert_eq!((report.crossings.calls, report.crossings.to_other), (2, 2));
        assert_eq!(report.crossings.returns, 2);
        assert_eq!(report.refused_calls, 0, "{:?}", report.refusals);
        let refusals: Vec<_> = report.refusals.iter().map(ToString::to_string).collect();
        assert_eq!(refusals.len(), 2, "{refusals:?}");
        for refusal in refusals {
            let what = "domain 2, thread 0: write of 0x403000, held is none";
            assert!(refusal.ends_with(what), "{refusal}");
        }
    }
}

#[test]
fn both_recordings_tell_the_same() {
    let told = |source, text: &str| {
        let (events, summary) = events(source, text.as_bytes(), &map(source)).unwrap();
        let path = events.iter().filter_map(|event| match *event {
            TraceEvent::Fetch {
                address,
                instructions,
                ..
            } => Some((0, address, u64::from(instructions))),
            TraceEvent::Call {
                target,
                return_address,
                ..
            } => Some((1, target, return_address)),
            TraceEvent::Return { at, target } => Some((2, at, target)),
            _ => None,
        });
        (path.collect::<Vec<_>>(), summary)
    };
    let (lackey, by_lackey) = told(TraceSource::Lackey, LACKEY);
    let (qemu, by_qemu) = told(TraceSource::Qemu, EXECLOG);
    assert_eq!(lackey, qemu);
    assert_eq!(by_lackey.instructions, 87);
    assert_eq!(by_lackey.instructions, by_qemu.instructions);
    assert_eq!(by_lackey.accesses, by_qemu.accesses);
}

#[test]
fn a_call_through_a_stub_and_the_return_gate_of_its_first_return() {
    // A call, a stub of two instructions that jumps through a table, the function, its return; twice.
    let once = "I  00401010,5\n S 1fff000640,8\nI  00401100,4\nI  00401104,6\n L 00403000,8\n\
                I  00402000,2\nI  00402025,1\n L 1fff000640,8\nI  00401015,5\n";
    let text = format!("{once}I  0040101a,2\n{once}");
    let map = map(TraceSource::Lackey);
    let (events, summary) = events(TraceSource::Lackey, text.as_bytes(), &map).unwrap();
    assert_eq!((summary.calls, summary.returns), (2, 2));
    let gates = events.iter().filter(|event| {
        matches!(
            event,
            TraceEvent::Supervisor(TraceRequest::Mprot {
                permission: Permission::ReturnGate,
                span,
            }) if span.address == 0x40_2024
        )
    });
    assert_eq!(gates.count(), 1);
    let report = run(&events, &map);
    assert_eq!(report.refusals, []);
    assert_eq!(report.crossings.returns, 2);
}

#[test]
fn processors_are_threads() {
    let text =
        "0, 0x401000, 0x90, \"nop\"\n1, 0x401000, 0x90, \"nop\"\n1, 0x401001, 0x90, \"nop\"\n";
    let one = events(TraceSource::Qemu, text.as_bytes(), &map(TraceSource::Qemu));
    assert_eq!(
        one.unwrap_err().to_string(),
        "line 3: processor 1: the map has 1 threads"
    );
    let two = format!("{MAP}\n[[thread]]\n{QEMU_STACK}\n");
    let two = Map::from_toml(&two).unwrap();
    let (events, _) = events(TraceSource::Qemu, text.as_bytes(), &two).unwrap();
    assert!(events.contains(&TraceEvent::Switch { thread: 1 }));
    assert_eq!(run(&events, &two).refusals, []);
}

#[test]
fn malformed_lines_are_named_with_their_reason() {
    let good = "I  00401000,1\n";
    for (line, reason) in [
        ("hello", "is no line of lackey"),
        ("", "is no line of lackey"),
        ("I 00401000,1", "is no line of lackey"),
        ("X  00401000,1", "is no line of lackey"),
        (
            "I  00401000",
            "a comma between address and bytes is missing",
        ),
        ("I  ,1", "is no address in base 16"),
        ("I  0040100g,1", "`0040100g` is no address in base 16"),
        ("I  10000000000000000,1", "is no address in base 16"),
        ("I  00401000,", "is no number of bytes"),
        ("I  00401000,-1", "`-1` is no number of bytes"),
        ("I  00401000,1 ", "is no number of bytes"),
        ("I  00401000,9999999999", "is no number of bytes"),
        ("I  00401000,0", "an instruction of 0 bytes"),
        ("I  00401000,65", "an instruction of 65 bytes"),
        (" L 00401000,0", "an access of 0 bytes"),
        (" S 00401000,16385", "an access of 16385 bytes"),
        (" S ffffffffffffffff,8", "is beyond addresses of 48 bits"),
        ("I  ffffffffff600000,1", "is beyond addresses of 48 bits"),
        ("I  \u{1b}[31m,1", "\\u{1b}[31m"),
    ] {
        let text = format!("{good}{line}\n{good}");
        let error = events(
            TraceSource::Lackey,
            text.as_bytes(),
            &map(TraceSource::Lackey),
        )
        .unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("line 2: "), "{line}: {error}");
        assert!(error.contains(reason), "{line}: {error}");
    }
    let good = "0, 0x401000, 0x90, \"nop\"\n";
    for (line, reason) in [
        ("hello", "`hello` is no number of a processor"),
        ("0", "is no address"),
        ("0, 401000, 0x90, \"nop\"", "`401000` is no address"),
        (
            "0, 0x401000, 0x190909090, \"nop\"",
            "is no opcode of four bytes",
        ),
        (
            "0, 0x401000, 0x90, nop",
            "is no disassembly in quotation marks",
        ),
        ("0, 0x401000, 0x90, \"nop", "the disassembly has no end"),
        ("0, 0x401000, 0x90, \"nop\" load", "is no access"),
        (
            "0, 0x401000, 0x90, \"nop\", load",
            "is no address of an access",
        ),
        (
            "0, 0x401000, 0x90, \"nop\", load, 12",
            "`12` is no address of an access",
        ),
    ] {
        let text = format!("{good}{line}\n");
        let error =
            events(TraceSource::Qemu, text.as_bytes(), &map(TraceSource::Qemu)).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("line 2: "), "{line}: {error}");
        assert!(error.contains(reason), "{line}: {error}");
    }
}

#[test]
fn a_line_without_end_is_refused_before_it_is_read() {
    let text = [b"I  00401000,1\n".to_vec(), vec![b'1'; 1 << 20]].concat();
    for source in [TraceSource::Lackey, TraceSource::Qemu] {
        let error = events(source, &text[14..], &map(source)).unwrap_err();
        assert_eq!(error.to_string(), "line 1: it has more than 16384 bytes");
    }
    let error = events(TraceSource::Lackey, &text, &map(TraceSource::Lackey)).unwrap_err();
    assert_eq!(error.to_string(), "line 2: it has more than 16384 bytes");
    let nothing = events(
        TraceSource::Lackey,
        b"==1== words\n",
        &map(TraceSource::Lackey),
    );
    assert!(matches!(nothing, Err(ConvertError::Empty)));
    let access = events(
        TraceSource::Lackey,
        b" L 00401000,1\n",
        &map(TraceSource::Lackey),
    );
    let error = access.unwrap_err().to_string();
    assert_eq!(error, "line 1: an access before the first instruction");
}

#[test]
fn devices_and_registers_behind_an_access_are_passed_over() {
    let text =
        "0, 0x401000, 0x90, \"nop\", load, 0x00403010, RAM, store, 0x00403018, RAM, rax -> 0x1\n";
    let (_, summary) = events(TraceSource::Qemu, text.as_bytes(), &map(TraceSource::Qemu)).unwrap();
    assert_eq!(summary.accesses, 2);
}

#[test]
fn a_function_that_returns_at_once_cannot_be_a_gate() {
    let text = "I  00401010,5\n S 1fff000640,8\nI  00402000,1\n L 1fff000640,8\nI  00401015,5\n";
    let error = events(
        TraceSource::Lackey,
        text.as_bytes(),
        &map(TraceSource::Lackey),
    )
    .unwrap_err();
    let error = error.to_string();
    assert!(
        error.starts_with("line 5: the function at 0x402000 returns within"),
        "{error}"
    );
}

#[test]
fn maps_without_meaning_are_refused() {
    let changed = |from: &str, to: &str| {
        assert!(MAP.contains(from), "{from}");
        match Map::from_toml(&MAP.replacen(from, to, 1)) {
            Err(error) => error,
            Ok(_) => panic!("{to} is taken"),
        }
    };
    assert!(matches!(
        changed("[[gate]]", "[[gaet]]"),
        SymbolMapError::Syntax(_)
    ));
    assert!(matches!(
        changed("\"read\"", "\"write\""),
        SymbolMapError::Syntax(_)
    ));
    for (from, to, reason) in [
        (
            "name = \"module\"",
            "name = \"program\"",
            "two domains are called `program`",
        ),
        (
            "into = \"module\"",
            "into = \"other\"",
            "no domain is called `other`",
        ),
        (
            "into = \"module\"",
            "into = \"program\"",
            "not memory of domain `program`",
        ),
        (
            "function = 0x402000",
            "function = 0x402002",
            "does not begin on a word",
        ),
        ("end = 0x403020", "end = 0x403021", "begin and end on words"),
        ("end = 0x403020", "end = 0x403010", "is empty"),
        (
            "start = 0x403010",
            "start = 0x402010",
            "is not all in one region",
        ),
        (
            "end = 0x1fff001000",
            "end = 0x2fff001000",
            "the stack at 0x1ffe801000 has at most",
        ),
        (
            "end = 0x403000",
            "end = 0xfffffffffffff000",
            "reaches beyond",
        ),
    ] {
        // Beyond what TOML's numbers hold is a fault of syntax.
        let to = to.replace("0xfffffffffffff000", "0x1000000000000");
        let error = changed(from, &to).to_string();
        assert!(error.contains(reason), "{to}: {error}");
    }
    let overlap = format!(
        "{MAP}\n[[domain]]\nname = \"third\"\nregions = [{{ start = 0x402ff0, end = 0x403004, permission = \"read\" }}]\n"
    );
    let error = Map::from_toml(&overlap).unwrap_err().to_string();
    assert!(error.contains("overlap at 0x402ff0"), "{error}");
}

proptest! {
    /// Whatever a line says, the converter refuses it or writes a trace that reads and runs.
    #[test]
    fn damaged_recordings_are_refused_or_run(
        from_qemu: bool,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let (source, text) = RECORDINGS[usize::from(from_qemu)];
        let mut bytes = text.as_bytes().to_vec();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            // Digits are what leads furthest.
            bytes[place] = if byte < 128 { b"0123456789abcdef, \n"[usize::from(byte) % 19] } else { byte };
        }
        bytes.truncate(bytes.len() - cut.index(bytes.len()) / 8);
        let map = map(source);
        if let Ok((events, summary)) = events(source, &bytes, &map) {
            let report = run(&events, &map);
            prop_assert_eq!(report.events, summary.events);
        }
    }

    #[test]
    fn random_bytes_are_no_trace(bytes in proptest::collection::vec(any::<u8>(), 0..400), from_qemu: bool) {
        let source = RECORDINGS[usize::from(from_qemu)].0;
        let _refused = events(source, &bytes, &map(source));
    }
}
