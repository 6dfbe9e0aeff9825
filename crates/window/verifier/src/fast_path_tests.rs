//! The fast path against the slow path. Over all opcodes, prefixes, ModRM bytes and what may be
//! known, either it leaves the pass as it was, or both do the same.

use crate::code::{Code, Pass};
use crate::line::{Check, Line, Value};
use crate::stats::Stats;
use mullion_decoder::decode::{self, LONGEST, R15, WINDOW};
use mullion_decoder::marks::Marks;

/// Offset of the segment, its length, and where in it the instruction is.
const START: u32 = 0x20000;
const LENGTH: usize = 0x400;
const AT: u32 = START + 0x200;

/// Prefixes of opcodes of one byte, and behind 0F.
const PREFIXES: [&[u8]; 9] = [
    &[],
    &[0x65, 0x67],
    &[0x66],
    &[0xf3],
    &[0xf2],
    &[0x65, 0x67, 0x66],
    &[0x65, 0x67, 0xf3],
    &[0x65, 0x67, 0xf2],
    &[0x67],
];
const REX: [u8; 9] = [0, 0x40, 0x41, 0x42, 0x44, 0x48, 0x49, 0x4d, 0x4f];
/// SIB: bases %r14 or %rsi, %rsp or %r12, none or %r13; with index, without, scaled.
const SIB: [u8; 7] = [0x06, 0x3e, 0x26, 0x24, 0x25, 0x05, 0x86];
/// What follows: displacements near and far, immediates, distances of branches.
const TAILS: [[u8; 10]; 4] = [
    [0x10, 0, 0, 0, 0x10, 0, 0, 0, 0x20, 0],
    [0xf0, 0xff, 0xff, 0xff, 0xf0, 0xff, 0xff, 0xff, 0, 0],
    [0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0],
    // The label's complement, as an immediate.
    [0xb3, 0x8a, 0x93, 0xb1, 0xb3, 0x8a, 0x93, 0xb1, 0, 0],
];

/// What is known in front of the instruction, in many ways.
fn lines() -> Vec<Line> {
    let values = [
        Value::ANY,
        Value::ZERO,
        Value::WINDOW,
        Value::COMPLEMENT,
        Value::LABELLED,
        Value::ZERO.and(Value::LABELLED),
        Value::WINDOW.and(Value::LABELLED),
    ];
    let mut lines: Vec<Line> = Vec::new();
    for value in values {
        let mut line = Line::new();
        for register in (0..14).filter(|register| *register != decode::RSP) {
            line.set(register, value, AT - 0x40 - 16 * u32::from(register));
        }
        line.labelled = value.is(Value::LABELLED);
        lines.push(line);
    }
    let with = |change: fn(&mut Line)| {
        let mut line = lines[1].clone();
        change(&mut line);
        line
    };
    let more = [
        with(|line| line.stepped = Some(AT - 0x10)),
        with(|line| {
            line.stepped = Some(AT - 0x90);
            line.steps = 0x6ff8;
        }),
        with(|line| line.set(R15, Value::ZERO, AT - 0x20)),
        with(|line| {
            line.check = Some(Check {
                register: 0,
                made: AT - 5,
                end: AT,
            });
        }),
    ];
    lines.extend(more);
    lines
}

fn pass(bytes: &[u8], line: Line, confine_reads: bool) -> Pass<'_> {
    Pass {
        code: Code {
            start: START,
            bytes,
            marks: Marks::new(bytes.len()),
        },
        codes: Vec::new(),
        confine_reads,
        imports: 1,
        line,
        stats: Stats::new(1),
    }
}

fn encodings(mut visit: impl FnMut(&[u8])) {
    for prefixes in PREFIXES {
        for rex in REX {
            for opcode in 0..0x200_u32 {
                for modrm in 0..=0xff_u8 {
                    let mut bytes = prefixes.to_vec();
                    bytes.extend((rex != 0).then_some(rex));
                    bytes.extend((opcode >= 0x100).then_some(0x0f));
                    bytes.extend([opcode as u8, modrm]);
                    if modrm < 0xc0 && modrm & 7 == 4 {
                        for sib in SIB {
                            visit(&[&bytes[..], &[sib]].concat());
                        }
                    } else {
                        visit(&bytes);
                    }
                }
            }
        }
    }
}

#[test]
fn the_short_way_is_the_long_way() {
    let bytes = vec![0; LENGTH];
    let lines = lines();
    let (mut turn, mut same, mut left) = (0_usize, 0_u64, 0_u64);
    encodings(|encoding| {
        // Two of all combinations with each encoding, others each time.
        for _ in 0..2 {
            turn = turn
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let choice = turn >> 33;
            let line = &lines[choice % lines.len()];
            let tail = TAILS[choice / lines.len() % TAILS.len()];
            let confine_reads = choice / 64 % 4 != 0;
            let mut window = [0x11; WINDOW];
            window[..encoding.len()].copy_from_slice(encoding);
            window[encoding.len()..encoding.len() + 10].copy_from_slice(&tail);
            let mut short = pass(&bytes, line.clone(), confine_reads);
            let mut long = pass(&bytes, line.clone(), confine_reads);
            let what = || format!("{window:02x?} {line:?}, confining reads: {confine_reads}");
            match short.fast_path(&window, AT) {
                None => left += 1,
                Some(length) => {
                    same += 1;
                    let decoded = decode::decode((&window, LONGEST));
                    let instruction = decoded.unwrap_or_else(|rule| panic!("{rule}: {}", what()));
                    assert_eq!(u32::from(instruction.length), length, "{}", what());
                    let outcome = long.instruction(&instruction, AT, &window);
                    assert_eq!(outcome, Ok(()), "{}", what());
                }
            }
            assert_eq!(short.line, long.line, "{}", what());
            assert_eq!(short.stats, long.stats, "{}", what());
            assert_eq!(short.code.marks, long.code.marks, "{}", what());
        }
    });
    println!("{same} instructions passed alike, {left} left to the slow path");
    assert!(same > 1_000_000, "the fast path is hardly gone");
}
