//! What the pass accepts, on the processor itself. Each encoding is single-stepped by `step.c`. It
//! must be as long as decoded, and access what its operand says and nothing else. It must leave
//! alone what it is not said to write, and zero-extend what is believed to be.
//!
//! `MULLION_STEPS=1000000 cargo test --release -p mullion-verifier --lib processor -- --nocapture`
//! steps a million encodings, `MULLION_SEED=N` others.

use crate::code::{Code, Pass};
use crate::line::{Line, Value};
use crate::stats::Stats;
use mullion_decoder::decode::{self, Instruction, LONGEST, R14, R15, RIP, RSP, WINDOW};
use mullion_decoder::marks::Marks;
use mullion_decoder::row::{self, Kind};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

/// As in `step.c`.
const CODE_END: u64 = 0x2000_1000;
const UNMAPPED: u64 = 0x4000_0800;
const READ_ONLY: u64 = 0x4000_2800;
const WRITABLE: u64 = 0x4000_4800;
/// Bytes of the widest access.
const WIDEST: u64 = 64;
const START: u32 = 0x20000;
const AT: u32 = START + 0x200;
const EXECUTED: u32 = 5;
const ILLEGAL: u32 = 4;
const DIVIDED: u32 = 8;
const ACCESS: u32 = 11;
/// Direction and alignment check.
const NEVER: u64 = 1 << 10 | 1 << 18;
/// Carry, parity, adjust, zero, sign, overflow.
const FLAGS: u64 = 0x8d5;
const RECORD: usize = 16 * 8 + 8 + 16;
const OUTCOME: usize = 16 * 8 + 16 + 16;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[(self.next() >> 20) as usize % list.len()]
    }
}

/// One step to be made, and what is believed of it.
struct Step {
    bytes: [u8; WINDOW],
    instruction: Instruction,
    /// What is known behind it.
    line: Line,
    /// What was known of each register in front of it.
    fact: Value,
    registers: [u64; 16],
    flags: u64,
    target: Option<u64>,
}

struct Outcome {
    registers: [u64; 16],
    flags: u64,
    address: u64,
    signal: u32,
    advanced: i32,
    changed: (i32, i32),
}

/// Bytes that may be an instruction: prefixes and opcodes of all maps, random operands.
fn encoding(random: &mut Random) -> [u8; WINDOW] {
    let prefixes: [&[u8]; 12] = [
        &[],
        &[],
        &[0x66],
        &[0xf3],
        &[0xf2],
        &[0xf0],
        &[0x66, 0xf2],
        &[0x65, 0x67],
        &[0x65, 0x67, 0x66],
        &[0x65, 0x67, 0xf3],
        &[0x65, 0x67, 0xf2],
        &[0x65, 0x67, 0xf0],
    ];
    let mut bytes = random.of(&prefixes).to_vec();
    let escapes: [&[u8]; 5] = [&[], &[0x0f], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a]];
    match random.next() >> 30 & 7 {
        0 => bytes.extend([0xc5, random.next() as u8]),
        1 | 2 => bytes.extend([
            0xc4,
            random.next() as u8 & 0xe0 | random.of(&[1, 2, 3]),
            random.next() as u8,
        ]),
        kind => {
            bytes.extend((kind > 3).then(|| 0x40 | random.next() as u8 & 15));
            bytes.extend(random.of(&escapes));
        }
    }
    bytes.extend([
        random.next() as u8,
        random.next() as u8,
        random.next() as u8,
    ]);
    // A displacement that is near more often than not, and an immediate.
    let far = random.next();
    let near = (far as i32) >> random.of(&[0, 18, 18, 24]);
    bytes.extend(near.to_le_bytes());
    bytes.extend(random.next().to_le_bytes());
    let mut window = [0; WINDOW];
    let length = bytes.len().min(WINDOW);
    window[..length].copy_from_slice(&bytes[..length]);
    window
}

/// The instruction, if the pass accepts it in a place where `fact` is known of all registers.
fn accepted(bytes: &[u8; WINDOW], fact: Value) -> Option<(Instruction, Line)> {
    let instruction = decode::decode((bytes, LONGEST)).ok()?;
    use Kind::{
        Breakpoint, Call, Cmps, Conditional, Indirect, Jump, Lods, Movs, Return, Scas, Stop, Stos,
    };
    if matches!(
        instruction.row.kind,
        Conditional
            | Jump
            | Call
            | Return
            | Indirect
            | Stop
            | Breakpoint
            | Movs
            | Stos
            | Lods
            | Scas
            | Cmps
    ) {
        return None;
    }
    let mut line = Line::new();
    for register in (0..14).filter(|register| *register != RSP) {
        line.set(register, fact, AT - 0x40);
    }
    let code = vec![0; 0x400];
    let mut pass = Pass {
        code: Code {
            start: START,
            bytes: &code,
            marks: Marks::new(code.len()),
        },
        codes: Vec::new(),
        confine_reads: false,
        imports: 1,
        line,
        stats: Stats::new(1),
    };
    pass.instruction(&instruction, AT, bytes).ok()?;
    Some((instruction, pass.line))
}

/// Registers with which the operand of `instruction` is at `target`.
fn aim(
    instruction: &Instruction,
    registers: &mut [u64; 16],
    target: u64,
    wide: bool,
) -> Option<()> {
    let displacement = i64::from(instruction.displacement) as u64;
    let rest = target.wrapping_sub(displacement);
    let (base, index) = (
        usize::from(instruction.base),
        usize::from(instruction.index),
    );
    let (has_base, has_index) = (instruction.base < 16, instruction.index < 16);
    let narrow = |value: u64| match instruction.gs {
        true => Some(value & 0xffff_ffff),
        false => (wide || value >> 32 == 0 || instruction.base >= R14).then_some(value),
    };
    if instruction.base == RIP {
        return (CODE_END.wrapping_add(displacement) == target).then_some(());
    }
    match (has_base, has_index) {
        (true, true) if base == index => return None,
        (true, true) => {
            registers[index] &= 0xffff;
            registers[base] = narrow(rest.wrapping_sub(registers[index] << instruction.scale))?;
        }
        (true, false) => registers[base] = narrow(rest)?,
        (false, true) => {
            let rest = if instruction.gs {
                rest & 0xffff_ffff
            } else {
                rest
            };
            if rest.trailing_zeros() < u32::from(instruction.scale) {
                return None;
            }
            registers[index] = narrow(rest >> instruction.scale)?;
        }
        (false, false) => {
            let reached = if instruction.gs {
                rest & 0xffff_ffff
            } else {
                rest
            };
            return (reached == 0).then_some(());
        }
    }
    Some(())
}

/// The steps that an encoding is worth: with each kind of memory, with each kind of facts.
fn steps(bytes: [u8; WINDOW], random: &mut Random, to: &mut Vec<Step>) {
    for fact in [Value::ZERO, Value::WINDOW] {
        let targets = [Some(UNMAPPED), Some(READ_ONLY), Some(WRITABLE)];
        for target in targets {
            let mut bytes = bytes;
            let Some((instruction, line)) = accepted(&bytes, fact) else {
                break;
            };
            let accesses = instruction.memory && !instruction.row.has(row::NO_ACCESS);
            let target = target.filter(|_| accesses);
            let wide = fact == Value::WINDOW;
            let mut registers = [0; 16];
            for (number, register) in registers.iter_mut().enumerate() {
                let value = random.next() ^ random.next() << 31;
                let narrow = !wide && number < 14 && number != usize::from(RSP);
                // What is not narrow is no address, so that an access nobody told of faults.
                *register = if narrow {
                    value & 0xffff_ffff
                } else {
                    value | 0x00ff << 48
                };
            }
            if let Some(target) = target {
                if instruction.base == RIP && !retarget(&mut bytes, &instruction, target) {
                    break;
                }
                let Some((instruction, _)) = accepted(&bytes, fact) else {
                    break;
                };
                if aim(&instruction, &mut registers, target, wide).is_none() {
                    break;
                }
            }
            to.push(Step {
                bytes,
                instruction,
                line,
                fact,
                registers,
                flags: random.next() & FLAGS | 0x202,
                target,
            });
            if target.is_none() {
                break;
            }
        }
    }
}

/// Has an operand relative to `%rip` lead to `target`.
fn retarget(bytes: &mut [u8; WINDOW], instruction: &Instruction, target: u64) -> bool {
    let wanted = target.wrapping_sub(CODE_END) as i32;
    for place in 2..usize::from(instruction.length).saturating_sub(3) {
        let mut other = *bytes;
        other[place..place + 4].copy_from_slice(&wanted.to_le_bytes());
        if let Ok(read) = decode::decode((&other, LONGEST))
            && read.base == RIP
            && read.displacement == wanted
            && read.length == instruction.length
        {
            *bytes = other;
            return true;
        }
    }
    false
}

impl Step {
    fn record(&self) -> Vec<u8> {
        let mut record: Vec<u8> = self
            .registers
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        record.extend(self.flags.to_le_bytes());
        record.push(self.instruction.length);
        record.extend(&self.bytes[..15]);
        record
    }

    /// What is not as believed.
    fn differences(&self, outcome: &Outcome) -> Vec<String> {
        let mut found = Vec::new();
        let mut check = |good: bool, what: &str| {
            if !good {
                found.push(what.to_owned());
            }
        };
        let row = self.instruction.row;
        let lazy = row.has(row::LAZY);
        match (outcome.signal, self.target) {
            (ILLEGAL | DIVIDED, _) => return found,
            (ACCESS, Some(UNMAPPED)) => {
                let distance = outcome.address.wrapping_sub(UNMAPPED);
                check(distance < WIDEST, "accesses another address");
                return found;
            }
            (ACCESS, Some(READ_ONLY)) => {
                check(row.has(row::RM_WRITE), "writes memory");
                let distance = outcome.address.wrapping_sub(READ_ONLY);
                check(distance < WIDEST, "accesses another address");
                return found;
            }
            (EXECUTED, Some(UNMAPPED)) => check(lazy, "does not access its operand"),
            (EXECUTED, _) => {}
            // Bits of the control word that must be 0: refused, and nothing was accessed.
            (ACCESS, Some(_)) if row.has(row::MXCSR) && outcome.address == 0 => return found,
            (signal, _) => {
                check(false, &format!("signal {signal} at {:#x}", outcome.address));
                return found;
            }
        }
        check(
            outcome.advanced == i32::from(self.instruction.length),
            "another length",
        );
        check(outcome.flags & NEVER == 0, "direction or alignment check");
        let (low, high) = (outcome.changed.0 - 1, outcome.changed.1);
        let inside = low >= 0x800 && high as u64 <= 0x800 + WIDEST;
        let writes = self.target == Some(WRITABLE) && row.has(row::RM_WRITE);
        check(
            outcome.changed == (0, 0) || writes && inside,
            "writes other memory",
        );
        for register in 0..16_u8 {
            let (before, after) = (
                self.registers[usize::from(register)],
                outcome.registers[usize::from(register)],
            );
            let known = self.line.value(register);
            if known.is(Value::ZERO) {
                check(
                    after >> 32 == 0,
                    &format!("register {register} is not zero-extended"),
                );
            }
            let kept = match register {
                RSP | R14 => true,
                R15 => self.line.stepped.is_none() && !self.line.unfinished(),
                _ => self.fact == Value::WINDOW && known.is(Value::WINDOW),
            };
            check(
                !kept || before == after,
                &format!("register {register} changes"),
            );
        }
        found
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("8 bytes"))
}

impl Outcome {
    fn read(bytes: &[u8]) -> Self {
        let mut registers = [0; 16];
        for (at, register) in registers.iter_mut().enumerate() {
            *register = number(bytes, 8 * at);
        }
        let (ends, memory) = (number(bytes, 144), number(bytes, 152));
        Self {
            registers,
            flags: number(bytes, 128),
            address: number(bytes, 136),
            signal: ends as u32,
            advanced: (ends >> 32) as i32,
            changed: (memory as i32, (memory >> 32) as i32),
        }
    }
}

/// Has the processor make the steps.
fn run(program: &std::path::Path, steps: &[Step]) -> Vec<Outcome> {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the stepping program starts");
    let mut to = child.stdin.take().expect("a pipe");
    let records: Vec<u8> = steps.iter().flat_map(Step::record).collect();
    assert_eq!(records.len(), steps.len() * RECORD);
    let writer = std::thread::spawn(move || to.write_all(&records).expect("it reads"));
    let mut bytes = Vec::new();
    let mut from = child.stdout.take().expect("a pipe");
    from.read_to_end(&mut bytes).expect("it writes");
    writer.join().expect("all was written");
    assert!(
        child.wait().expect("it ends").success(),
        "the stepping program failed"
    );
    bytes.chunks_exact(OUTCOME).map(Outcome::read).collect()
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|value| value.parse().ok())
        .unwrap_or(otherwise)
}

/// `step.c`, compiled.
fn program(directory: &std::path::Path) -> std::path::PathBuf {
    let program = directory.join("step");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-o"])
        .arg(&program)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/step.c"));
    assert!(gcc.status().expect("gcc starts").success());
    program
}

/// Beliefs that are wrong are told from those that are right.
#[test]
fn the_processor_contradicts_what_is_false() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = program(directory.path());
    // What is executed, what is believed to be, where the operand is, and what comes of it.
    type Lie<'a> = (&'a [u8], &'a [u8], Option<u64>, &'a str);
    let lies: [Lie<'_>; 6] = [
        (
            &[0x48, 0x89, 0xc8],
            &[0x89, 0xc8, 0x90],
            None,
            "signal 11 at 0x20001000",
        ),
        (
            &[0x89, 0xc8, 0x90],
            &[0x48, 0x89, 0xc8],
            None,
            "another length",
        ),
        (
            &[0x48, 0x89, 0xc8],
            &[0x48, 0x89, 0xca],
            None,
            "register 0 changes",
        ),
        (
            &[0x48, 0x8b, 0x07],
            &[0x48, 0x89, 0xf8],
            None,
            "signal 11 at 0x0",
        ),
        (
            &[0x48, 0x8b, 0x07],
            &[0x48, 0x8d, 0x07],
            None,
            "signal 11 at 0x0",
        ),
        (
            &[0x48, 0x89, 0x07],
            &[0x48, 0x8b, 0x07],
            Some(READ_ONLY),
            "writes memory",
        ),
    ];
    for (executed, believed, target, what) in lies {
        let mut bytes = [0; WINDOW];
        bytes[..believed.len()].copy_from_slice(believed);
        let (instruction, line) = accepted(&bytes, Value::WINDOW).expect("it is accepted");
        bytes[..executed.len()].copy_from_slice(executed);
        let mut registers = [0x00ff_1234_5678_9abc; 16];
        registers[1] += 1;
        registers[7] = target.unwrap_or(registers[7]);
        let step = Step {
            bytes,
            instruction,
            line,
            fact: Value::WINDOW,
            registers,
            flags: 0x202,
            target,
        };
        let found = step.differences(&run(&program, std::slice::from_ref(&step))[0]);
        assert!(
            found.iter().any(|found| found == what),
            "{executed:02x?} as {believed:02x?}: {found:?}"
        );
    }
    // A write of 16 bits that is taken for one of 32.
    let mut bytes = [0; WINDOW];
    bytes[..2].copy_from_slice(&[0x89, 0xc8]);
    let (mut instruction, line) = accepted(&bytes, Value::ANY).expect("it is accepted");
    bytes[..3].copy_from_slice(&[0x66, 0x89, 0xc8]);
    instruction.length = 3;
    let step = Step {
        bytes,
        instruction,
        line,
        fact: Value::ANY,
        registers: [0x00ff_1234_5678_9abc; 16],
        flags: 0x202,
        target: None,
    };
    let found = step.differences(&run(&program, std::slice::from_ref(&step))[0]);
    assert_eq!(found, ["register 0 is not zero-extended"]);
}

#[test]
fn the_processor_does_what_the_pass_believes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = program(directory.path());
    let (wanted, seed) = (setting("MULLION_STEPS", 10_000), setting("MULLION_SEED", 1));
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut failures: BTreeMap<String, String> = BTreeMap::new();
    let mut rows = std::collections::BTreeSet::new();
    let (mut encodings, mut made, mut illegal, mut faults) = (0_u64, 0_u64, 0_u64, 0_u64);
    while encodings < wanted {
        let mut batch = Vec::new();
        while batch.len() < 20_000 && encodings < wanted {
            let before = batch.len();
            steps(encoding(&mut random), &mut random, &mut batch);
            encodings += u64::from(batch.len() > before);
        }
        let outcomes = run(&program, &batch);
        assert_eq!(outcomes.len(), batch.len());
        for (step, outcome) in batch.iter().zip(&outcomes) {
            made += 1;
            illegal += u64::from(outcome.signal == ILLEGAL);
            faults += u64::from(outcome.signal == ACCESS);
            if outcome.signal == EXECUTED {
                rows.insert(std::ptr::from_ref(step.instruction.row) as usize);
            }
            for what in step.differences(outcome) {
                let bytes = &step.bytes[..usize::from(step.instruction.length)];
                failures
                    .entry(format!("{what}: opcode {:02x}", step.instruction.opcode))
                    .or_insert_with(|| {
                        format!(
                            "{bytes:02x?} at {:x?}, {:x?} -> {:x?}",
                            step.target, step.registers, outcome.registers
                        )
                    });
            }
        }
    }
    println!(
        "{encodings} encodings of {} of {} rows, {made} steps: {faults} faults as they must be, {illegal} unknown to this processor",
        rows.len(),
        row::ROWS.len() - 1
    );
    let lines: Vec<String> = failures
        .iter()
        .map(|(what, example)| format!("{what}: {example}"))
        .collect();
    assert!(
        lines.is_empty(),
        "{} differences:\n{}",
        lines.len(),
        lines.join("\n")
    );
}
