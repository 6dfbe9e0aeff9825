//! What the verifier accepts, on the processor itself. Each encoding is verified behind checks of exactly the bytes that
//! the decoder says it accesses, and of every register; then it is single-stepped (`crates/window/verifier/src/step.c`).
//! It must be as long as decoded, touch no byte but those, write memory only if it is said to, and write no register
//! by which a check still counts behind it.
//!
//! `MULLION_STEPS=1000000 cargo test --release -p mullion-word-verifier --test processor -- --nocapture`
//! steps a million encodings, `MULLION_SEED=N` others.

mod support;

use mullion_decoder::decode::{self, Instruction, LONGEST, R14, R15, RIP, RSP, WINDOW};
use mullion_decoder::row::{self, Kind};
use mullion_word_verifier::{Place, survey};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use support::Random;
use support::encode::{self, Operand};

/// As in `step.c`.
const UNMAPPED: u64 = 0x4000_0800;
const READ_ONLY: u64 = 0x4000_2000;
const WRITABLE: u64 = 0x4000_4000;
const PAGE: u64 = 0x1000;
const EXECUTED: u32 = 5;
const ILLEGAL: u32 = 4;
const DIVIDED: u32 = 8;
const ACCESS: u32 = 11;
/// Direction and alignment check.
const NEVER: u64 = 1 << 10 | 1 << 18;
const FLAGS: u64 = 0x8d5;
const OUTCOME: usize = 16 * 8 + 16 + 16;
const R11: u8 = 11;
const RSI: u8 = 6;
const RDI: u8 = 7;
/// Registers that a check may have as its base.
const BASES: [u8; 13] = [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 12, 13, R15];

/// A module with room for code.
struct Template {
    bytes: Vec<u8>,
    place: usize,
    address: u64,
}

const ROOM: usize = 4096;

impl Template {
    fn new() -> Self {
        let made = support::assemble(&format!("    ret\npatch: .skip {ROOM}, 0xcc"));
        let place = made.bytes.windows(ROOM).position(|w| w == [0xcc; ROOM]);
        Self {
            place: place.expect("the room"),
            address: made.symbols["patch"],
            bytes: made.bytes,
        }
    }

    /// Which addresses of `code` are refused.
    fn refused(&self, code: &[u8]) -> Vec<u64> {
        let mut bytes = self.bytes.clone();
        bytes[self.place..self.place + code.len()].copy_from_slice(code);
        let found = survey(bytes, 100).violations;
        let places = found.iter().map(|violation| match violation.place {
            Place::Address(at) => at.wrapping_sub(self.address),
            Place::File(_) => u64::MAX,
        });
        places.collect()
    }
}

/// What is believed of an encoding.
struct Belief {
    bytes: [u8; WINDOW],
    instruction: Instruction,
    /// Its operand in memory, how many bytes, and whether they are written.
    memory: Option<(Operand, u32, bool)>,
    /// Registers by which checks still count behind it.
    kept: Vec<u8>,
}

fn believe(template: &Template, bytes: [u8; WINDOW]) -> Option<Belief> {
    let instruction = decode::decode_word((&bytes, LONGEST)).ok()?;
    let row = instruction.row;
    let string = matches!(
        row.kind,
        Kind::Movs | Kind::Stos | Kind::Lods | Kind::Scas | Kind::Cmps
    );
    if matches!(
        row.kind,
        Kind::Conditional
            | Kind::Jump
            | Kind::Call
            | Kind::Return
            | Kind::Indirect
            | Kind::Stop
            | Kind::Breakpoint
    ) || instruction.gs
    {
        return None;
    }
    let size = match string {
        true if instruction.opcode & 1 == 0 => 1,
        true => u32::from(instruction.size),
        false => instruction.memory_bytes(),
    };
    let writes = row.has(row::RM_WRITE);
    let accesses = instruction.memory && !row.has(row::NO_ACCESS);
    let checkable = |operand: &Operand| {
        ![R11, R14, R15, RSP, RIP].contains(&operand.base)
            && ![R11, R14, R15].contains(&operand.index)
    };
    let memory = match (accesses, string) {
        (true, _) => Some((Operand::of(&instruction), size, writes)),
        (_, true) => {
            let writes = matches!(row.kind, Kind::Movs | Kind::Stos);
            let base = if row.kind == Kind::Lods { RSI } else { RDI };
            Some((Operand::base(base), size, writes))
        }
        _ => None,
    };
    if memory.is_some_and(|(operand, size, _)| !checkable(&operand) || size > 64) {
        return None;
    }
    let mut code = Vec::new();
    let mut pending = Vec::new();
    for base in BASES {
        pending.push(encode::check(&mut code, Operand::base(base), 1, 1));
    }
    if let Some((operand, size, writes)) = memory {
        let right = if writes { 2 } else { 1 };
        pending.push(encode::check(&mut code, operand, size, right));
    }
    if matches!(row.kind, Kind::Movs | Kind::Cmps) {
        pending.push(encode::check(&mut code, Operand::base(RSI), size, 1));
    }
    let at = code.len() as u64;
    code.extend(&bytes[..usize::from(instruction.length)]);
    let mut touches = Vec::new();
    for base in BASES {
        touches.push((code.len() as u64, base));
        code.extend(Operand::base(base).touch());
    }
    code.push(0xc3);
    for check in pending {
        check.points(&mut code);
    }
    let refused = template.refused(&code);
    let touch = |place: &u64| touches.iter().any(|(at, _)| at == place);
    if refused.contains(&at) || !refused.iter().all(touch) {
        return None;
    }
    let kept = touches.into_iter().filter(|(at, _)| !refused.contains(at));
    Some(Belief {
        bytes,
        instruction,
        memory,
        kept: kept.map(|(_, base)| base).collect(),
    })
}

/// Where the operand is put: its begin, or its end, at the border of memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    None,
    Unmapped,
    ReadOnlyEnd,
    WritableEnd,
    WritableStart,
}

struct Step<'a> {
    belief: &'a Belief,
    registers: [u64; 16],
    flags: u64,
    target: Target,
    address: u64,
}

/// Registers with which the operand is at `target`.
fn aim(operand: &Operand, registers: &mut [u64; 16], target: u64) -> Option<()> {
    let rest = target.wrapping_sub(i64::from(operand.displacement) as u64);
    let (base, index) = (usize::from(operand.base), usize::from(operand.index));
    match (operand.base < 16, operand.index < 16) {
        (true, true) if base == index => return None,
        (true, true) => {
            registers[index] &= 0xffff;
            registers[base] = rest.wrapping_sub(registers[index] << operand.scale);
        }
        (true, false) => registers[base] = rest,
        (false, true) => {
            if rest.trailing_zeros() < u32::from(operand.scale) {
                return None;
            }
            registers[index] = rest >> operand.scale;
        }
        (false, false) => return (rest == 0).then_some(()),
    }
    Some(())
}

fn steps<'a>(belief: &'a Belief, random: &mut Random, to: &mut Vec<Step<'a>>) {
    let targets: &[Target] = match belief.memory {
        None => &[Target::None],
        Some(_) => &[
            Target::Unmapped,
            Target::ReadOnlyEnd,
            Target::WritableEnd,
            Target::WritableStart,
        ],
    };
    for target in targets {
        let mut registers = [0; 16];
        // No addresses, so that an access nobody told of faults.
        registers.fill_with(|| (random.next() ^ random.next() << 31) | 0x00ff << 48);
        let mut address = 0;
        if let Some((operand, size, _)) = belief.memory {
            let size = u64::from(size);
            address = match target {
                Target::ReadOnlyEnd => READ_ONLY + PAGE - size,
                Target::WritableEnd => WRITABLE + PAGE - size,
                Target::WritableStart => WRITABLE,
                _ => UNMAPPED,
            };
            if aim(&operand, &mut registers, address).is_none() {
                return;
            }
            if matches!(belief.instruction.row.kind, Kind::Movs | Kind::Cmps) {
                registers[usize::from(RSI)] = READ_ONLY + PAGE - size;
            }
        }
        to.push(Step {
            belief,
            registers,
            flags: random.next() & FLAGS | 0x202,
            target: *target,
            address,
        });
    }
}

struct Outcome {
    registers: [u64; 16],
    flags: u64,
    address: u64,
    signal: u32,
    advanced: i32,
    changed: (i32, i32),
}

impl Step<'_> {
    fn record(&self) -> Vec<u8> {
        let registers = self.registers.iter();
        let mut record: Vec<u8> = registers.flat_map(|value| value.to_le_bytes()).collect();
        record.extend(self.flags.to_le_bytes());
        record.push(self.belief.instruction.length);
        record.extend(&self.belief.bytes[..15]);
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
        let row = self.belief.instruction.row;
        let (size, writes) = self
            .belief
            .memory
            .map_or((0, false), |(_, size, w)| (size, w));
        let inside = outcome.address.wrapping_sub(self.address) < u64::from(size);
        let lazy = row.has(row::LAZY);
        match (outcome.signal, self.target) {
            (ILLEGAL | DIVIDED, _) => return found,
            // Bits of the control word that must be 0.
            (ACCESS, _) if row.has(row::MXCSR) && outcome.address == 0 => return found,
            (ACCESS, Target::Unmapped) => {
                check(inside, "accesses another address");
                return found;
            }
            (ACCESS, Target::ReadOnlyEnd) if inside => {
                check(writes, "writes memory");
                return found;
            }
            (EXECUTED, Target::Unmapped) => check(lazy, "does not access its operand"),
            (EXECUTED, _) => {}
            (signal, _) => {
                check(false, &format!("signal {signal} at {:#x}", outcome.address));
                return found;
            }
        }
        let length = i32::from(self.belief.instruction.length);
        check(outcome.advanced == length, "another length");
        check(outcome.flags & NEVER == 0, "direction or alignment check");
        let (low, high) = (
            i64::from(outcome.changed.0) - 1,
            i64::from(outcome.changed.1),
        );
        let start = self.address as i64 - WRITABLE as i64;
        let within = start <= low && high <= start + i64::from(size);
        check(
            outcome.changed == (0, 0) || writes && within,
            "writes other memory",
        );
        let kept = self.belief.kept.iter().copied();
        let steps = |register| {
            let instruction = &self.belief.instruction;
            let named = instruction.reg == register || instruction.rm == register;
            register == R15 && named && matches!(row.kind, Kind::Lea | Kind::Arithmetic)
        };
        let always = [RSP, R14].into_iter().chain((!steps(R15)).then_some(R15));
        for register in kept.chain(always) {
            let number = usize::from(register);
            check(
                self.registers[number] == outcome.registers[number],
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
fn run(program: &std::path::Path, steps: &[Step<'_>]) -> Vec<Outcome> {
    let mut stepper = Command::new(program);
    let piped = stepper.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = piped.spawn().expect("the stepping program starts");
    let mut to = child.stdin.take().expect("a pipe");
    let records: Vec<u8> = steps.iter().flat_map(Step::record).collect();
    let writer = std::thread::spawn(move || to.write_all(&records).expect("it reads"));
    let mut bytes = Vec::new();
    let mut from = child.stdout.take().expect("a pipe");
    from.read_to_end(&mut bytes).expect("it writes");
    writer.join().expect("all was written");
    assert!(child.wait().expect("it ends").success());
    bytes.chunks_exact(OUTCOME).map(Outcome::read).collect()
}

/// `step.c`, compiled.
fn program(directory: &std::path::Path) -> std::path::PathBuf {
    let program = directory.join("step");
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../window/verifier/src/step.c"
    );
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-o"]).arg(&program).arg(source);
    assert!(gcc.status().expect("gcc starts").success());
    program
}

fn setting(name: &str, otherwise: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Bytes that may be an instruction: prefixes and opcodes of all maps, random operands.
fn encoding(random: &mut Random) -> [u8; WINDOW] {
    let prefixes: [&[u8]; 8] = [
        &[],
        &[],
        &[],
        &[0x66],
        &[0xf3],
        &[0xf2],
        &[0xf0],
        &[0x66, 0xf2],
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
    bytes.extend([random.next(), random.next(), random.next()].map(|byte| byte as u8));
    // A displacement that is near more often than not, and an immediate.
    let near = (random.next() as i32) >> random.of(&[0, 18, 18, 24]);
    bytes.extend(near.to_le_bytes());
    bytes.extend(random.next().to_le_bytes());
    let mut window = [0; WINDOW];
    let length = bytes.len().min(WINDOW);
    window[..length].copy_from_slice(&bytes[..length]);
    window
}

#[test]
fn the_processor_does_what_the_verifier_believes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (program, template) = (program(directory.path()), Template::new());
    let (wanted, seed) = (setting("MULLION_STEPS", 4_000), setting("MULLION_SEED", 1));
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut failures: BTreeMap<String, String> = BTreeMap::new();
    let mut rows = std::collections::BTreeSet::new();
    let (mut encodings, mut made, mut illegal, mut faults) = (0_u64, 0_u64, 0_u64, 0_u64);
    while encodings < wanted {
        let mut beliefs = Vec::new();
        while beliefs.len() < 5_000 && encodings < wanted {
            if let Some(belief) = believe(&template, encoding(&mut random)) {
                beliefs.push(belief);
                encodings += 1;
            }
        }
        let mut batch = Vec::new();
        beliefs
            .iter()
            .for_each(|belief| steps(belief, &mut random, &mut batch));
        let outcomes = run(&program, &batch);
        assert_eq!(outcomes.len(), batch.len());
        for (step, outcome) in batch.iter().zip(&outcomes) {
            made += 1;
            illegal += u64::from(outcome.signal == ILLEGAL);
            faults += u64::from(outcome.signal == ACCESS);
            if outcome.signal == EXECUTED {
                rows.insert(std::ptr::from_ref(step.belief.instruction.row) as usize);
            }
            for what in step.differences(outcome) {
                let opcode = step.belief.instruction.opcode;
                let bytes = &step.belief.bytes[..usize::from(step.belief.instruction.length)];
                let example = || format!("{bytes:02x?} at {:#x}", step.address);
                failures
                    .entry(format!("{what}: opcode {opcode:02x}"))
                    .or_insert_with(example);
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
        .map(|(what, at)| format!("{what}: {at}"))
        .collect();
    assert!(
        lines.is_empty(),
        "{} differences:\n{}",
        lines.len(),
        lines.join("\n")
    );
}

/// Beliefs that are wrong are told from those that are right.
#[test]
fn the_processor_contradicts_what_is_false() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (program, template) = (program(directory.path()), Template::new());
    // What is executed, what is believed, and what comes of it.
    type Lie<'a> = (&'a [u8], &'a [u8], &'a str);
    let lies: [Lie<'_>; 7] = [
        (
            &[0x48, 0x89, 0x07],
            &[0x40, 0x89, 0x07],
            "signal 11 at 0x40005000",
        ),
        (
            &[0x0f, 0x10, 0x07],
            &[0x40, 0x8b, 0x07],
            "signal 11 at 0x40003000",
        ),
        (&[0x48, 0x89, 0x07], &[0x48, 0x8b, 0x07], "writes memory"),
        (
            &[0x89, 0x4f, 0x08],
            &[0x89, 0x4f, 0x04],
            "writes other memory",
        ),
        (
            &[0x48, 0x89, 0xc8],
            &[0x48, 0x89, 0xca],
            "register 0 changes",
        ),
        (&[0x89, 0xc8, 0x90], &[0x48, 0x89, 0xc8], "another length"),
        (&[0xfd], &[0xfc], "direction or alignment check"),
    ];
    for (executed, believed, what) in lies {
        let window = |bytes: &[u8]| {
            let mut window = [0; WINDOW];
            window[..bytes.len()].copy_from_slice(bytes);
            window
        };
        let mut belief = believe(&template, window(believed))
            .unwrap_or_else(|| panic!("{believed:02x?} is accepted"));
        belief.bytes = window(executed);
        let mut batch = Vec::new();
        steps(&belief, &mut Random(7), &mut batch);
        let outcomes = run(&program, &batch);
        let found: Vec<String> = batch
            .iter()
            .zip(&outcomes)
            .flat_map(|(step, outcome)| step.differences(outcome))
            .collect();
        assert!(
            found.iter().any(|found| found == what),
            "{executed:02x?} as {believed:02x?}: {found:?}"
        );
    }
}
