//! Any bytes as an image file, or as changes of a good one: nothing panics, and
//! what is accepted is as it says.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/window/verifier/tests/support/build.rs"]
mod build;

use libfuzzer_sys::fuzz_target;
use mullion_verifier::{Permission, survey, verify};

/// Triples of offset (two bytes) and value, applied to a good image.
fn changed(changes: &[u8]) -> Vec<u8> {
    let mut bytes = build::build(&[0xc3], mullion_abi::Protection::ReadWriteCall).bytes;
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
        bytes[at] = change[2];
    }
    bytes
}

fuzz_target!(|input: &[u8]| {
    let bytes = match input {
        [b'!', changes @ ..] => changed(changes),
        bytes => bytes.to_vec(),
    };
    let survey = survey(bytes.clone(), usize::MAX);
    let verified = verify(bytes);
    assert_eq!(survey.is_verified(), verified.is_ok());
    let Ok(image) = verified else { return };
    let segments = image.segments();
    assert!(segments.is_sorted_by(|a, b| a.offset + a.size <= b.offset));
    assert!(image.is_labelled(image.entry()));
    assert!(
        image
            .exports()
            .iter()
            .all(|export| image.is_labelled(export.offset))
    );
    for relocation in image.relocations() {
        let holds = |s: &&mullion_verifier::Segment| {
            s.permission != Permission::ReadExecute
                && s.offset <= relocation.offset
                && relocation.offset + 8 <= s.offset + s.size
        };
        assert!(segments.iter().any(|segment| holds(&segment)));
    }
});
