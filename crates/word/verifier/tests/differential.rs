//! The verifier against a slow one that is built differently (`slow/mod.rs`): random functions of the form are
//! accepted by both, and of their mutants both accept the same.
//!
//! `MULLION_DIFFERENTIAL=1000000 cargo test --release -p mullion-word-verifier --test differential -- --nocapture`
//! is the long form; `MULLION_SEED` makes other programs.

mod slow;
mod support;

use mullion_word_verifier::{Rule, survey};
use support::generate::functions;
use support::{Assembled, Random};

/// A number from the environment.
fn setting(name: &str, otherwise: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(otherwise, |text| text.parse().expect(name))
}

fn modules(random: &mut Random, count: usize) -> Vec<Assembled> {
    (0..count)
        .map(|number| {
            let protection = number % 2;
            let functions = functions(random, 1 + number % 4);
            support::assemble(&format!(
                ".globl PROTECTION\n.set PROTECTION, {protection}\n{functions}"
            ))
        })
        .collect()
}

/// Where the code lies in the file.
fn code(bytes: &[u8]) -> std::ops::Range<usize> {
    let survey = survey(bytes.to_vec(), 1);
    let module = survey.module.expect("a module");
    let mut segments = module.segments().iter();
    let code = segments.find(|segment| segment.permission().is_executable());
    code.expect("code").file()
}

fn mutate(bytes: &mut [u8], code: std::ops::Range<usize>, random: &mut Random) {
    let code = &mut bytes[code];
    for _ in 0..1 + random.below(2) {
        let at = random.below(code.len());
        match random.below(6) {
            0 => code[at] = random.next() as u8,
            1 => code[at] ^= 1 << random.below(8),
            2 => code[at] = code[at].wrapping_add(1),
            // Branches go elsewhere, points are others.
            3 => code[at] = code[random.below(code.len())],
            4 => {
                let length = (1 + random.below(8)).min(code.len() - at);
                code[at..at + length].fill(0x90);
            }
            _ => {
                let length = (1 + random.below(24)).min(code.len() - at);
                let from = random.below(code.len() - length + 1);
                code.copy_within(from..from + length, at);
            }
        }
    }
}

#[test]
fn random_functions_are_accepted_by_both_and_mutants_alike() {
    let mut random = Random(setting("MULLION_SEED", 0x6d75_6c6c_776f_7264));
    let modules = modules(&mut random, 12);
    for module in &modules {
        let survey = survey(module.bytes.clone(), 10);
        assert!(survey.is_verified(), "{:#?}", survey.violations);
        assert!(slow::accepts(survey.module.as_ref().expect("a module")));
    }
    let rounds = setting("MULLION_DIFFERENTIAL", 4_000);
    let mut accepted = 0_u64;
    for round in 0..rounds {
        let module = &modules[round as usize % modules.len()];
        let mut bytes = module.bytes.clone();
        let code = code(&bytes);
        mutate(&mut bytes, code.clone(), &mut random);
        let survey = survey(bytes.clone(), 10);
        // What the arrays name is a matter of the file.
        let mut of_code = survey
            .violations
            .iter()
            .filter(|v| v.rule != Rule::InitArray);
        let fast = of_code.next().is_none();
        let slow = slow::accepts(survey.module.as_ref().expect("a module"));
        if fast != slow {
            let path = std::env::temp_dir().join("mullion-word-differential.so");
            let written = std::fs::write(&path, &bytes);
            let changed: Vec<usize> = code.filter(|at| bytes[*at] != module.bytes[*at]).collect();
            panic!(
                "fast {fast}, slow {slow}: {path:?} {written:?}, changed at {changed:x?}: {:#?}",
                survey.violations
            );
        }
        accepted += u64::from(fast);
    }
    println!("{accepted} of {rounds} mutants accepted, by both");
    assert!(
        accepted > rounds / 100,
        "hardly any mutant is accepted: {accepted}"
    );
}
