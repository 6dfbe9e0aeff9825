//! The verifier against a slow one that is built differently (`slow/mod.rs`):
//! on random programs both accept, or both reject at the same place.

mod slow;
mod support;

use mullion_abi::Protection;
use mullion_verifier::{Place, Rule, survey};
use support::{build, pool};

/// Rules by which undecodable bytes are rejected; which of them is a matter of taste.
fn by_kind(rule: Rule) -> Rule {
    match rule {
        Rule::Prefix
        | Rule::OperandForm
        | Rule::InstructionLength
        | Rule::InstructionTruncated
        | Rule::SegmentOverride
        | Rule::AddressSize => Rule::Instruction,
        rule => rule,
    }
}

fn decodes(rule: Rule) -> bool {
    by_kind(rule) != Rule::Instruction
}

/// Compares the two on one program; true if both accept.
fn compare(code: &[u8], protection: Protection) -> bool {
    let built = build::build(code, protection);
    let fast = survey(built.bytes, usize::MAX);
    let image = fast.image.as_ref().expect("a well-formed image");
    let slow = slow::verify(image);
    let listing = || {
        let fast: Vec<_> = fast.violations.iter().map(|v| (v.place, v.rule)).collect();
        format!("{code:02x?}\nfast {fast:?}\nslow {:?}", slow.violations)
    };
    let first = fast.violations.first().map(|v| (v.place, by_kind(v.rule)));
    let expected = slow
        .violations
        .first()
        .map(|(place, rule)| (*place, by_kind(*rule)));
    if let Some(undecodable) = slow.undecodable {
        let found = fast
            .violations
            .iter()
            .any(|v| v.place == undecodable && !decodes(v.rule));
        assert!(
            found,
            "only the slow one cannot decode {undecodable}\n{}",
            listing()
        );
        let linear = |place: Place, rule: Rule| {
            place < undecodable
                && !matches!(
                    rule,
                    Rule::BranchTarget
                        | Rule::BranchSequence
                        | Rule::LabelStray
                        | Rule::LabelFragment
                )
        };
        let ours: Vec<_> = fast
            .violations
            .iter()
            .filter(|v| linear(v.place, v.rule))
            .map(|v| (v.place, v.rule))
            .collect();
        let theirs: Vec<_> = slow
            .violations
            .iter()
            .copied()
            .filter(|(place, rule)| linear(*place, *rule))
            .collect();
        assert_eq!(ours.first(), theirs.first(), "{}", listing());
    } else {
        assert_eq!(first, expected, "{}", listing());
    }
    fast.is_verified()
}

/// `MULLION_DIFFERENTIAL` programs, or 20,000.
fn rounds() -> u64 {
    std::env::var("MULLION_DIFFERENTIAL")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20_000)
}

#[test]
fn both_verifiers_agree_on_random_programs() {
    let items = pool::items();
    let mut random = pool::Random(0x6d75_6c6c_696f_6e31);
    let mut accepted = 0;
    for round in 0..rounds() {
        let code = pool::program(&items, &mut random);
        let protection = if round % 3 == 0 {
            Protection::WriteCall
        } else {
            Protection::ReadWriteCall
        };
        accepted += u64::from(compare(&code, protection));
    }
    println!("{accepted} of {} programs accepted, by both", rounds());
    assert!(
        accepted > rounds() / 200,
        "hardly any program is accepted: {accepted}"
    );
}

#[test]
fn both_verifiers_agree_on_random_bytes() {
    let mut random = pool::Random(0x6d75_6c6c_696f_6e32);
    for _ in 0..rounds() {
        let code: Vec<u8> = (0..1 + random.below(20))
            .map(|_| random.next() as u8)
            .collect();
        compare(&code, Protection::WriteCall);
    }
}
