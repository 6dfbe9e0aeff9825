//! The decoder and every row of the table, against iced-x86, exhaustively over
//! prefixes, opcodes, ModRM bytes and the REX and VEX bits that matter.

use crate::decode::{self, Instruction, NONE, RIP, WINDOW};
use crate::row::{self, Kind, Row, Text, V_WRITE};
use crate::size;
use crate::table::GROUPS;
use iced_x86::{
    Decoder, DecoderOptions, InstructionInfoFactory, MemorySize, OpAccess, OpKind, Register,
};
use std::collections::{BTreeMap, BTreeSet};

fn texts() -> Vec<&'static Text> {
    GROUPS.iter().flat_map(|group| group.rows).collect()
}

fn number(row: &'static Row) -> usize {
    row::ROWS
        .iter()
        .position(|other| std::ptr::eq(other, row))
        .expect("a row of the table")
}

/// `bytes`, then whatever an immediate and displacement may need.
fn window(bytes: &[u8]) -> [u8; WINDOW] {
    let mut window = [0x21; WINDOW];
    window[..bytes.len()].copy_from_slice(bytes);
    window
}

/// Every encoding that the comparison is made over.
fn encodings(mut visit: impl FnMut(&[u8])) {
    let escapes: [&[u8]; 4] = [&[], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a]];
    for prefixes in [
        &[][..],
        &[0x66],
        &[0xf3],
        &[0xf2],
        &[0xf0],
        &[0x66, 0xf3],
        &[0x66, 0xf2],
        &[0x66, 0xf0],
        &[0x65, 0x67],
        &[0x67],
    ] {
        for rex in [0, 0x41, 0x44, 0x48, 0x4f] {
            for escape in escapes {
                for tail in 0..=0xffff_u16 {
                    let [opcode, modrm] = tail.to_be_bytes();
                    let mut bytes = prefixes.to_vec();
                    if rex != 0 {
                        bytes.push(rex);
                    }
                    bytes.extend(escape);
                    bytes.extend([opcode, modrm]);
                    visit(&bytes);
                }
            }
        }
    }
    for prefixes in [&[][..], &[0x65, 0x67]] {
        for first in [
            0xe1_u8, 0x61, 0xe2, 0x62, 0x02, 0xe3, 0x63, 0x03, 0xe0, 0xe8,
        ] {
            for last in [
                0x78_u8, 0x79, 0x7a, 0x7b, 0x7c, 0x7d, 0x7e, 0x7f, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc,
                0xfd, 0xfe, 0xff, 0x41, 0x40, 0x43, 0xc2,
            ] {
                for tail in 0..=0xffff_u16 {
                    let [opcode, modrm] = tail.to_be_bytes();
                    visit(&[prefixes, &[0xc4, first, last, opcode, modrm]].concat());
                    if first & 0x7f == 0x61 {
                        visit(
                            &[
                                prefixes,
                                &[0xc5, (first & 0x80) | (last & 0x7f), opcode, modrm],
                            ]
                            .concat(),
                        );
                    }
                }
            }
        }
    }
}

fn general(register: Register) -> Option<u8> {
    register
        .is_gpr()
        .then(|| register.full_register().number() as u8)
}

/// What differs between our reading and iced's; empty if nothing does.
fn differences(
    ours: &Instruction,
    theirs: &iced_x86::Instruction,
    factory: &mut InstructionInfoFactory,
) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |good: bool, what: String| {
        if !good {
            found.push(what)
        }
    };
    check(
        usize::from(ours.length) == theirs.len(),
        format!("length {} {}", ours.length, theirs.len()),
    );
    let row = ours.row;
    check(!theirs.is_privileged(), "privileged".into());
    check(
        !theirs.has_xacquire_prefix() || theirs.mnemonic() == iced_x86::Mnemonic::Xchg,
        "xacquire".into(),
    );
    let stack = matches!(row.kind, Kind::Call | Kind::Return | Kind::Indirect);
    check(stack || !theirs.is_stack_instruction(), "stack".into());
    let string = matches!(
        row.kind,
        Kind::Movs | Kind::Stos | Kind::Lods | Kind::Scas | Kind::Cmps
    );
    let info = factory.info(theirs);
    // Memory.
    let explicit = (0..theirs.op_count()).any(|operand| theirs.op_kind(operand) == OpKind::Memory);
    check(string || explicit == ours.memory, "memory operand".into());
    if ours.memory && explicit {
        let base = match theirs.memory_base() {
            Register::None => NONE,
            Register::RIP | Register::EIP => RIP,
            register => general(register).expect("a base"),
        };
        let index = general(theirs.memory_index()).unwrap_or(NONE);
        check(base == ours.base, format!("base {base} {}", ours.base));
        check(index == ours.index, format!("index {index} {}", ours.index));
        check(
            index == NONE || theirs.memory_index_scale() == 1 << ours.scale,
            "scale".into(),
        );
        let displacement = theirs.memory_displacement64() as i32;
        check(
            base == RIP || displacement == ours.displacement,
            format!("displacement {displacement} {}", ours.displacement),
        );
        check(
            (theirs.memory_segment() == Register::GS) == ours.gs || row.has(row::NO_ACCESS),
            "segment".into(),
        );
    }
    if !string && !stack {
        let accesses: Vec<_> = info.used_memory().iter().collect();
        check(accesses.len() <= 1, "several accesses".into());
        for access in accesses {
            let writes = !matches!(
                access.access(),
                OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
            );
            check(ours.memory, "implicit access".into());
            check(!writes || row.has(row::RM_WRITE), "write to memory".into());
            check(
                access.access() == OpAccess::NoMemAccess || !row.has(row::NO_ACCESS),
                "accesses".into(),
            );
            let lazy = matches!(
                access.access(),
                OpAccess::CondRead | OpAccess::CondWrite | OpAccess::ReadCondWrite
            );
            check(
                !lazy || row.has(row::LAZY) || writes_anyway(theirs),
                format!("lazy {:?}", access.access()),
            );
            let theirs = match access.memory_size() {
                MemorySize::Unknown => 0,
                size => size.size() as u32,
            };
            let prefetch =
                row.has(row::LAZY) && ours.memory_bytes() == size::UNKNOWN && theirs <= 1;
            check(
                ours.memory_bytes() == theirs || row.has(row::NO_ACCESS) || prefetch,
                format!("bytes {} {theirs}", ours.memory_bytes()),
            );
        }
    }
    // Registers.
    let mut written: BTreeSet<u8> = BTreeSet::new();
    for used in info.used_registers() {
        let Some(register) = general(used.register()) else {
            check(
                !used.register().is_segment_register() || stack || string || ours.memory,
                format!("{:?}", used.register()),
            );
            continue;
        };
        if !matches!(used.access(), OpAccess::Read | OpAccess::CondRead) {
            written.insert(register);
        }
        check(
            register != 4 || stack || mentions(ours, 4),
            "uses %rsp".into(),
        );
    }
    for register in written {
        check(
            stack || writes(ours, register),
            format!("writes {register}"),
        );
    }
    found
}

/// iced calls the write conditional; the access happens.
fn writes_anyway(instruction: &iced_x86::Instruction) -> bool {
    use iced_x86::Mnemonic as M;
    matches!(
        instruction.mnemonic(),
        M::Cmpxchg | M::Cmpxchg8b | M::Cmpxchg16b
    ) || matches!(
        instruction.mnemonic(),
        M::Rol | M::Ror | M::Rcl | M::Rcr | M::Shl | M::Shr | M::Sar | M::Shld | M::Shrd
    ) || format!("{:?}", instruction.mnemonic()).starts_with("Cmov")
}

fn byte(instruction: &Instruction, register: u8, flag: u64) -> u8 {
    if instruction.row.has(flag) && !instruction.rex && register >= 4 {
        register - 4
    } else {
        register
    }
}

fn mentions(ours: &Instruction, register: u8) -> bool {
    let row = ours.row;
    (row.has(row::RM_GPR) && !ours.memory && byte(ours, ours.rm, row::RM_BYTE) == register)
        || (row.has(row::REG_GPR) && byte(ours, ours.reg, row::REG_BYTE) == register)
        || (row.has(row::V_GPR) && ours.vvvv == register)
        || (ours.memory && ours.base == register)
}

fn writes(ours: &Instruction, register: u8) -> bool {
    let row = ours.row;
    row.clobbers >> register & 1 == 1
        || (row.has(row::RM_WRITE)
            && row.has(row::RM_GPR)
            && !ours.memory
            && byte(ours, ours.rm, row::RM_BYTE) == register)
        || (row.has(row::REG_WRITE) && byte(ours, ours.reg, row::REG_BYTE) == register)
        || (row.has(V_WRITE) && ours.vvvv == register)
}

/// Whether the 32-bit result that our row promises is one in iced's eyes.
fn promises_zero_extension(ours: &Instruction) -> bool {
    let row = ours.row;
    let wide = ours.size == 8 || ours.size == 2;
    let rm = row.has(row::RM_WRITE)
        && row.has(row::RM_GPR)
        && !ours.memory
        && !row.has(row::RM_LOOSE | row::RM_BYTE);
    let reg = row.has(row::REG_WRITE) && !row.has(row::REG_LOOSE | row::REG_BYTE);
    (rm || reg) && (!wide || row.has(row::FIXED32))
}

#[test]
fn every_row_means_what_iced_says() {
    let texts = texts();
    let mut seen: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    let mut factory = InstructionInfoFactory::new();
    let mut failures = BTreeMap::new();
    let (mut accepted, mut compared) = (0_u64, 0_u64);
    encodings(|bytes| {
        compared += 1;
        let window = window(bytes);
        let Ok(ours) = decode::decode((&window, decode::LONGEST)) else {
            return;
        };
        accepted += 1;
        let theirs = Decoder::with_ip(64, &window[..15], 0, DecoderOptions::NONE).decode();
        let number = number(ours.row);
        let mut found = Vec::new();
        if theirs.is_invalid() {
            found.push("invalid".to_owned());
        } else {
            found = differences(&ours, &theirs, &mut factory);
            let mnemonic = format!("{:?}", theirs.mnemonic()).to_lowercase();
            if !texts[number - 1]
                .names
                .split(' ')
                .any(|name| name == mnemonic)
            {
                found.push(format!("is {mnemonic}"));
            }
            if promises_zero_extension(&ours) {
                let info = factory.info(&theirs);
                let written = info
                    .used_registers()
                    .iter()
                    .filter(|used| used.register().is_gpr());
                let narrow = written.filter(|used| {
                    matches!(
                        used.access(),
                        OpAccess::Write
                            | OpAccess::ReadWrite
                            | OpAccess::CondWrite
                            | OpAccess::ReadCondWrite
                    ) && used.register().size() < 4
                });
                if narrow.count() > 0 {
                    found.push("zero extension".to_owned());
                }
            }
            seen.entry(number).or_default().insert(mnemonic);
        }
        for what in found {
            failures
                .entry((number, what))
                .or_insert_with(|| format!("{bytes:02x?} {theirs}"));
        }
    });
    let mut lines: Vec<String> = failures
        .iter()
        .map(|((number, what), example)| {
            format!("{:?}: {what}: {example}", texts[number - 1].opcodes)
        })
        .collect();
    for (number, text) in texts.iter().enumerate() {
        let names: BTreeSet<String> = text.names.split(' ').map(str::to_owned).collect();
        let missing: Vec<_> = names
            .difference(seen.get(&(number + 1)).unwrap_or(&BTreeSet::new()))
            .cloned()
            .collect();
        if !missing.is_empty() {
            lines.push(format!(
                "{} {}: never seen: {missing:?}",
                text.map, text.opcodes
            ));
        }
    }
    assert!(
        lines.is_empty(),
        "{} differences:\n{}",
        lines.len(),
        lines.join("\n")
    );
    println!(
        "{} rows; {accepted} of {compared} encodings accepted, and read as iced reads them",
        texts.len()
    );
}
