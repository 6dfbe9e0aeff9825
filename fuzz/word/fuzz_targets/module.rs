//! Any bytes as the code of a module of the word wall, or as changes of its file. Nothing panics, what is accepted is as
//! it says, and a second verifier, which is slow and built differently, accepts the same code.
//!
//! With `MULLION_SEEDS=FOLDER` it writes code that is accepted there, and ends.
#![no_main]

#[allow(dead_code)]
#[path = "../../../crates/word/verifier/tests/slow/mod.rs"]
mod slow;
#[allow(dead_code)]
#[path = "../../../crates/word/verifier/tests/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use mullion_word_verifier::{Permission, Rule, Verified, survey, verify};
use std::sync::OnceLock;
use support::Random;
use support::generate::functions;

/// Bytes of code.
const ROOM: usize = 3800;

struct Template {
    bytes: Vec<u8>,
    place: usize,
}

/// A module with room for code, behind its gate.
fn template() -> &'static Template {
    static TEMPLATE: OnceLock<Template> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let bytes = support::assemble(&format!("    ret\n    .skip {ROOM}, 0xcc")).bytes;
        let place = bytes.windows(ROOM).position(|w| w == [0xcc; ROOM]);
        let place = place.expect("the room") - 1;
        if let Some(folder) = std::env::var_os("MULLION_SEEDS") {
            seeds(folder.as_ref(), place);
            std::process::exit(0);
        }
        Template { bytes, place }
    })
}

/// Code of random functions, at the addresses where the template has its room.
fn seeds(folder: &std::path::Path, place: usize) {
    let mut random = Random(0x6d75_6c6c_776f_7264);
    for number in 0..40 {
        let text = functions(&mut random, 1 + number % 2);
        let bytes = support::assemble(&text).bytes;
        let code = &bytes[place..];
        let end = code
            .windows(64)
            .position(|w| w.iter().all(|byte| *byte == 0));
        let code = &code[..end.unwrap_or(ROOM).min(ROOM)];
        std::fs::write(folder.join(number.to_string()), code).expect("a seed");
    }
}

/// Triples of offset (two bytes) and value, applied to the file.
fn changed(changes: &[u8]) -> Vec<u8> {
    let mut bytes = template().bytes.clone();
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
        bytes[at] = change[2];
    }
    bytes
}

fn sound(module: &Verified) {
    let segments = module.segments();
    assert!(segments.is_sorted_by(|a, b| a.page_end() <= b.address()));
    let code = |at: u64| {
        let mut code = segments
            .iter()
            .filter(|s| s.permission() == Permission::ReadExecute);
        code.any(|s| s.address() <= at && at < s.address() + s.size())
    };
    assert!(
        module
            .gates()
            .iter()
            .all(|gate| code(gate.address) && code(gate.body))
    );
    let ranges = module.checked_ranges();
    assert!(ranges.is_sorted_by(|a, b| a.end < b.start));
    assert!(
        ranges
            .iter()
            .all(|range| code(range.start) && code(range.end - 1))
    );
    for relocation in module.relocations() {
        let data = |s: &&mullion_word_verifier::Segment| {
            s.permission() == Permission::ReadWrite
                && s.address() <= relocation.address
                && relocation.address + 8 <= s.address() + s.size()
        };
        assert!(segments.iter().any(|segment| data(&segment)));
        assert!(!module.slots().contains(&relocation.address));
    }
}

fuzz_target!(|input: &[u8]| {
    let (bytes, of_code) = match input {
        [b'!', changes @ ..] => (changed(changes), false),
        [b'?', file @ ..] => (file.to_vec(), false),
        code => {
            let Template { mut bytes, place } = Template {
                bytes: template().bytes.clone(),
                place: template().place,
            };
            let length = code.len().min(ROOM);
            bytes[place..place + length].copy_from_slice(&code[..length]);
            (bytes, true)
        }
    };
    let surveyed = survey(bytes.clone(), usize::MAX);
    let verified = verify(bytes);
    assert_eq!(surveyed.is_verified(), verified.is_ok());
    if let Ok(module) = &verified {
        sound(module);
    }
    if of_code && let Some(module) = &surveyed.module {
        let mut code = surveyed
            .violations
            .iter()
            .filter(|v| v.rule != Rule::InitArray);
        assert_eq!(code.next().is_none(), slow::accepts(module));
    }
});
