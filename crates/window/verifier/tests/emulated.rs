//! Mutants of good images: each is verified, and each that survives is run in
//! an emulator (`fuzz/emulate.py`) that watches whether it leaves its window.
//!
//! `MULLION_MUTANTS=1000000 cargo test --release -p mullion-verifier --test emulated`
//! is the long form; with another `MULLION_SEED` it makes other mutants. Without Python's unicorn (`fuzz/setup`) nothing is run,
//! which is said; `MULLION_REQUIRE_EMULATOR=1` makes it a failure.

mod support;

use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use mullion_abi::{LABEL_NOP, Protection};
use mullion_verifier::verify;
use std::process::Command;
use support::build::{self, CODE};
use support::pool::{self, Random};

const SHORT: u64 = 20_000;
const SEED: u64 = 0x6d75_6c6c_696f_6e33;

/// Code that leaves the window: the emulator must see it.
const BAD: &[&[u8]] = &[
    &[0xc7, 0x07, 1, 0, 0, 0, 0xc3],                   // movl $1, (%rdi)
    &[0x8b, 0x07, 0xc3],                               // movl (%rdi), %eax
    &[0xff, 0xe0],                                     // jmp *%rax
    &[0xff, 0xd0, 0xc3],                               // call *%rax
    &[0x67, 0x89, 0x01, 0xc3],                         // movl %eax, (%ecx)
    &[0x48, 0x89, 0xc4, 0xc3],                         // movq %rax, %rsp; ret
    &[0x48, 0x89, 0x04, 0x24, 0xc3],                   // movq %rax, (%rsp)
    &[0x49, 0x89, 0xc6, 0xeb, 0],                      // movq %rax, %r14
    &[0x49, 0x89, 0xc7, 0xc3],                         // movq %rax, %r15; ret
    &[0xeb, 0x01, 0xb8, 0x90, 0x90, 0x90, 0x90, 0xc3], // a jump into an instruction
    &[0x49, 0x81, 0xc7, 0, 0, 1, 0, 0xc3],             // addq $0x10000, %r15; ret
    &[0x65, 0x89, 0x07, 0xc3],                         // movl %eax, %gs:(%rdi)
    &[0x43, 0x89, 0x04, 0x26, 0xc3],                   // movl %eax, (%r14,%r12)
    &[0xe9, 0xf5, 0x01, 0xff, 0xff],                   // jmp into a gate slot
];

/// A record for the emulator.
fn record(out: &mut Vec<u8>, code: &[u8], protection: Protection, bad: bool) {
    let text = [&LABEL_NOP[..], code].concat();
    let (mut starts, mut calls, mut entries) = (Vec::new(), Vec::new(), Vec::new());
    for instruction in &mut Decoder::with_ip(64, &text, CODE, DecoderOptions::NONE) {
        starts.push(instruction.ip() as u32);
        if matches!(instruction.mnemonic(), Mnemonic::Call | Mnemonic::Ret) {
            calls.push(instruction.ip() as u32);
        }
    }
    for at in 0..text.len().saturating_sub(LABEL_NOP.len()) {
        if text[at..].starts_with(&LABEL_NOP) {
            entries.push((CODE as usize + at + LABEL_NOP.len()) as u32);
        }
    }
    out.extend([protection as u8, u8::from(bad)]);
    for length in [text.len(), entries.len(), starts.len(), calls.len()] {
        out.extend((length as u16).to_le_bytes());
    }
    out.extend(&text);
    entries
        .iter()
        .chain(&starts)
        .chain(&calls)
        .for_each(|number| out.extend(number.to_le_bytes()));
}

fn mutate(items: &[Vec<u8>], corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut code = if random.below(8) == 0 {
        pool::program(items, random)
    } else {
        corpus[random.below(corpus.len())].clone()
    };
    for _ in 0..1 + random.below(3) {
        let at = random.below(code.len() + 1);
        match random.below(6) {
            0 if at < code.len() => code[at] = random.next() as u8,
            1 if at < code.len() => code[at] ^= 1 << random.below(8),
            2 if at < code.len() => {
                drop(code.drain(at..(at + 1 + random.below(8)).min(code.len())))
            }
            3 => {
                let other = &corpus[random.below(corpus.len())];
                code.extend(&other[random.below(other.len() + 1)..]);
            }
            _ => drop(code.splice(at..at, items[random.below(items.len())].clone())),
        }
    }
    code.truncate(600);
    if code.is_empty() { vec![0xc3] } else { code }
}

fn python() -> Command {
    let mut python = Command::new("python3");
    let packages = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../build/python");
    python.env("PYTHONPATH", packages).arg(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../fuzz/emulate.py"
    ));
    python
}

/// A number from the environment.
fn setting(name: &str, otherwise: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(otherwise, |text| text.parse().expect(name))
}

#[test]
fn no_surviving_mutant_leaves_its_window() {
    let mutants = setting("MULLION_MUTANTS", SHORT);
    let items = pool::items();
    let mut random = Random(setting("MULLION_SEED", SEED));
    let mut corpus = vec![vec![0xc3]];
    let mut records = Vec::new();
    BAD.iter()
        .for_each(|code| record(&mut records, code, Protection::ReadWriteCall, true));
    let mut survivors = 0_u64;
    for number in 0..mutants {
        let code = mutate(&items, &corpus, &mut random);
        let protection = if number % 4 == 0 {
            Protection::WriteCall
        } else {
            Protection::ReadWriteCall
        };
        if verify(build::build(&code, protection).bytes).is_ok() {
            survivors += 1;
            record(&mut records, &code, protection, false);
            if corpus.len() < 4000 {
                corpus.push(code);
            } else {
                let at = random.below(corpus.len());
                corpus[at] = code;
            }
        }
    }
    for code in BAD {
        assert!(
            verify(build::build(code, Protection::ReadWriteCall).bytes).is_err(),
            "{code:02x?} is accepted"
        );
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("records");
    std::fs::write(&path, &records).expect("the records");
    let output = python().arg(&path).output();
    let text = output
        .as_ref()
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    let status = output.as_ref().ok().and_then(|output| output.status.code());
    println!("{mutants} mutants, {survivors} survivors: {text}");
    if status == Some(3) || output.is_err() {
        println!("SKIPPED: no Python with unicorn here (fuzz/setup installs it)");
        assert!(
            std::env::var_os("MULLION_REQUIRE_EMULATOR").is_none(),
            "the emulator is required"
        );
        return;
    }
    assert!(survivors > mutants / 50, "hardly any mutant survives");
    assert_eq!(status, Some(0), "{text}");
}
