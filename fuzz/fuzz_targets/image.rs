//! Any bytes as an image file: nothing panics, and what is accepted is as it says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mullion_verifier::{Permission, survey, verify};

fuzz_target!(|bytes: &[u8]| {
    let survey = survey(bytes, usize::MAX);
    let verified = verify(bytes);
    assert_eq!(survey.is_verified(), verified.is_ok());
    let Ok(image) = verified else { return };
    let segments = image.segments();
    assert!(segments.is_sorted_by(|a, b| a.offset() + a.size() <= b.offset()));
    assert!(image.is_labelled(image.entry()));
    assert!(image.exports().iter().all(|export| image.is_labelled(export.offset)));
    for relocation in image.relocations() {
        let holds = |s: &&mullion_verifier::Segment| {
            s.permission() != Permission::ReadExecute
                && s.offset() <= relocation.offset
                && relocation.offset + 8 <= s.offset() + s.size()
        };
        assert!(segments.iter().any(|segment| holds(&segment)));
    }
});
