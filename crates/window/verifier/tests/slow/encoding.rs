//! What the slow verifier lets through at all: by processor feature, a list of
//! exceptions, and the page's words on prefixes.

use iced_x86::{Code, CpuidFeature, EncodingKind, Instruction, MandatoryPrefix, Mnemonic, OpKind};
use mullion_verifier::Rule;
use std::collections::BTreeSet;

/// All prefixes, in order, REX included.
fn prefixes(bytes: &[u8]) -> Vec<u8> {
    let legacy = |byte: &u8| {
        matches!(
            byte,
            0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3
        )
    };
    bytes
        .iter()
        .copied()
        .take_while(|byte| legacy(byte) || byte & 0xf0 == 0x40)
        .collect()
}

const FEATURES: &[CpuidFeature] = {
    use CpuidFeature as F;
    &[
        F::INTEL8086,
        F::INTEL186,
        F::INTEL286,
        F::INTEL386,
        F::INTEL486,
        F::X64,
        F::CMOV,
        F::CPUID,
        F::FPU,
        F::FPU287,
        F::FPU387,
        F::SSE,
        F::SSE2,
        F::SSE3,
        F::SSSE3,
        F::SSE4_1,
        F::SSE4_2,
        F::AES,
        F::PCLMULQDQ,
        F::VPCLMULQDQ,
        F::SHA,
        F::AVX,
        F::AVX2,
        F::FMA,
        F::F16C,
        F::BMI1,
        F::BMI2,
        F::ADX,
        F::LZCNT,
        F::POPCNT,
        F::MOVBE,
        F::CX8,
        F::CMPXCHG16B,
        F::PREFETCHW,
        F::MULTIBYTENOP,
        F::PAUSE,
        F::CET_IBT,
        F::XSAVE,
    ]
};

pub(super) fn allowed(instruction: &Instruction, bytes: &[u8]) -> bool {
    use Mnemonic as M;
    let name = format!("{:?}", instruction.mnemonic());
    let mmx = (0..instruction.op_count()).any(|operand| {
        instruction.op_kind(operand) == OpKind::Register && instruction.op_register(operand).is_mm()
    });
    let odd_register = (0..instruction.op_count()).any(|operand| {
        instruction.op_kind(operand) == OpKind::Register
            && (instruction.op_register(operand).is_segment_register()
                || instruction.op_register(operand).is_cr()
                || instruction.op_register(operand).is_dr())
    });
    let refused = matches!(
        instruction.mnemonic(),
        M::Push
            | M::Pop
            | M::Pushf
            | M::Pushfq
            | M::Popf
            | M::Popfq
            | M::Enter
            | M::Leave
            | M::Int
            | M::Int1
            | M::Into
            | M::Iret
            | M::Iretd
            | M::Iretq
            | M::Retf
            | M::Syscall
            | M::Sysret
            | M::Sysretq
            | M::Hlt
            | M::Cli
            | M::Sti
            | M::Std
            | M::In
            | M::Out
            | M::Insb
            | M::Insw
            | M::Insd
            | M::Outsb
            | M::Outsw
            | M::Outsd
            | M::Xlatb
            | M::Loop
            | M::Loope
            | M::Loopne
            | M::Jrcxz
            | M::Jecxz
            | M::Jcxz
            | M::Maskmovdqu
            | M::Vmaskmovdqu
            | M::Maskmovq
            | M::Emms
            | M::Lgs
            | M::Lfs
            | M::Lss
            | M::Lar
            | M::Lsl
            | M::Verr
            | M::Verw
            | M::Sldt
            | M::Str
            | M::Lldt
            | M::Ltr
            | M::Sgdt
            | M::Sidt
            | M::Lgdt
            | M::Lidt
            | M::Smsw
            | M::Lmsw
            | M::Invlpg
            | M::Invd
            | M::Wbinvd
            | M::Clts
            | M::Fxsave
            | M::Fxrstor
            | M::Fxsave64
            | M::Fxrstor64
            | M::Fnsave
            | M::Frstor
            | M::Fbld
            | M::Fbstp
            | M::Xgetbv
            | M::Xsetbv
            | M::Xsave
            | M::Xsave64
            | M::Xrstor
            | M::Xrstor64
            | M::Swapgs
            | M::Ud0
            | M::Fneni
            | M::Fndisi
            | M::Fnsetpm
            | M::Ffreep
            | M::Fstpnce
            | M::Salc
            | M::Sysenter
            | M::Sysexit
            | M::Sysexitq
            | M::Clflush
            | M::Wait
            | M::Sal
    ) || name.starts_with("Vgather")
        || name.starts_with("Vpgather")
        || name.starts_with("Reservednop");
    let far = matches!(
        instruction.op0_kind(),
        OpKind::FarBranch16 | OpKind::FarBranch32
    ) || matches!(
        instruction.code(),
        Code::Jmp_m1616
            | Code::Jmp_m1632
            | Code::Jmp_m1664
            | Code::Call_m1616
            | Code::Call_m1632
            | Code::Call_m1664
    );
    let exceptions = match instruction.mnemonic() {
        M::Wait | M::Xgetbv => true,
        M::Ret => instruction.op_count() == 0,
        M::Bswap => !instruction.op0_register().is_gpr16(),
        M::Movsxd => instruction.code() == Code::Movsxd_r64_rm32,
        M::Ud1 => {
            instruction.op1_kind() == OpKind::Register && instruction.code() != Code::Ud1_r64_rm64
                || instruction.code() == Code::Ud1_r64_rm64
                    && instruction.op1_kind() == OpKind::Register
        }
        M::Bt | M::Bts | M::Btr | M::Btc => {
            instruction.op1_kind() != OpKind::Register || instruction.op0_kind() == OpKind::Register
        }
        M::Call | M::Jmp => instruction.op0_kind() != OpKind::Memory,
        M::Prefetchw | M::Prefetch => true,
        _ => !refused,
    };
    let code = format!("{:?}", instruction.code());
    let alias = [
        "DCD0", "DCD8", "DDC8", "DED0", "DFC8", "DFD0", "DFD8", "F6r1", "F7r1",
    ];
    if code.contains("_mm_")
        || code.contains("_mmm64")
        || code.starts_with("Prefetchreserved")
        || code.contains("fence_")
    {
        return false;
    }
    if alias.iter().any(|suffix| code.ends_with(suffix)) {
        return false;
    }
    let features = instruction
        .cpuid_features()
        .iter()
        .all(|feature| FEATURES.contains(feature));
    let encoding = matches!(
        instruction.encoding(),
        EncodingKind::Legacy | EncodingKind::VEX
    );
    features && encoding && exceptions && !mmx && !odd_register && !far && !moffs(bytes)
}

/// `mov` with a 64-bit address.
fn moffs(bytes: &[u8]) -> bool {
    bytes
        .get(prefixes(bytes).len())
        .is_some_and(|opcode| (0xa0..=0xa3).contains(opcode))
}

/// Whether the prefixes are as the page wants them.
pub(super) fn proper_prefixes(instruction: &Instruction, bytes: &[u8]) -> Result<(), Rule> {
    let all = prefixes(bytes);
    let aligned = all.ends_with(&[0x2e]) && all[..all.len() - 1].iter().all(|byte| *byte == 0x66);
    if aligned && bytes[all.len()..] == [0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0] {
        return Ok(());
    }
    let legacy: Vec<u8> = all
        .iter()
        .copied()
        .filter(|byte| byte & 0xf0 != 0x40)
        .collect();
    let rex: Vec<usize> = (0..all.len())
        .filter(|at| all[*at] & 0xf0 == 0x40)
        .collect();
    let has = |byte: u8| legacy.contains(&byte);
    let distinct = legacy.iter().collect::<BTreeSet<_>>().len() == legacy.len();
    let rex_last = rex.is_empty() || rex == [all.len() - 1];
    let string = instruction.is_string_instruction();
    let opcode = &bytes[all.len()..];
    let vex = matches!(opcode[0], 0xc4 | 0xc5) && instruction.encoding() == EncodingKind::VEX;
    let one_byte = opcode[0] != 0x0f;
    let memory =
        (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    let accesses = memory && !matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop);
    if legacy
        .iter()
        .any(|byte| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64))
    {
        return Err(Rule::SegmentOverride);
    }
    let wide = rex.first().is_some_and(|at| all[*at] & 8 != 0);
    let w16 =
        instruction.encoding() == EncodingKind::Legacy && has(0x66) && sixteen(instruction, opcode);
    let mandatory = instruction.op_code().mandatory_prefix();
    let repeats = string || (opcode[0] == 0x90 && one_byte);
    let good = distinct
        && rex_last
        && !(has(0xf2) && has(0xf3))
        && !(vex && (!rex.is_empty() || has(0x66) || has(0xf2) || has(0xf3) || has(0xf0)))
        && !(has(0xf2) && mandatory != MandatoryPrefix::PF2 && !repeats)
        && !(has(0xf3) && mandatory != MandatoryPrefix::PF3 && !repeats)
        && !(has(0x66) && mandatory != MandatoryPrefix::P66 && !w16)
        && !(w16 && wide)
        && (rex.is_empty() || uses_rex(instruction, opcode))
        && (!has(0xf0) || instruction.has_lock_prefix())
        && !(opcode[0] == 0x90 && rex.first().is_some_and(|at| all[*at] & 1 != 0))
        && (has(0x65) == has(0x67))
        && (!has(0x65) || accesses);
    if good { Ok(()) } else { Err(Rule::Prefix) }
}

/// Whether the instruction has an operand, or a width, that REX could change.
fn uses_rex(instruction: &Instruction, opcode: &[u8]) -> bool {
    let operand = (0..instruction.op_count()).any(|operand| {
        matches!(
            instruction.op_kind(operand),
            OpKind::Register | OpKind::Memory
        )
    });
    let modrm_alone = opcode[0] == 0x0f || (0xd8..=0xdf).contains(&opcode[0]);
    let far = matches!(opcode.get(..2), Some([0x0f, 0x80..=0x8f | 0x0b | 0xa2]));
    let width = matches!(
        instruction.mnemonic(),
        Mnemonic::Cbw
            | Mnemonic::Cwd
            | Mnemonic::Cwde
            | Mnemonic::Cdq
            | Mnemonic::Cdqe
            | Mnemonic::Cqo
    );
    (operand || width || instruction.is_string_instruction() || opcode[0] == 0x90 || modrm_alone)
        && !far
}

/// Whether prefix 66 makes a 16-bit operand of this instruction (or would, but for W).
fn sixteen(instruction: &Instruction, opcode: &[u8]) -> bool {
    let name = format!("{:?}", instruction.code());
    let general = |size: &str| {
        ["_rm", "_r", "_m", "_AX_imm"].iter().any(|kind| {
            let operand = format!("{kind}{size}");
            name.match_indices(&operand).any(|(at, _)| {
                !name[at + operand.len()..].starts_with(|c: char| c.is_ascii_digit())
            })
        })
    };
    let plain = matches!(
        instruction.op_code().mandatory_prefix(),
        MandatoryPrefix::None | MandatoryPrefix::PNP
    ) || matches!(
        instruction.mnemonic(),
        Mnemonic::Popcnt | Mnemonic::Tzcnt | Mnemonic::Lzcnt | Mnemonic::Crc32
    );
    if instruction.mnemonic() == Mnemonic::Ud1 {
        return false;
    }
    instruction.is_string_instruction()
        || matches!(
            instruction.mnemonic(),
            Mnemonic::Cbw
                | Mnemonic::Cwd
                | Mnemonic::Cwde
                | Mnemonic::Cdq
                | Mnemonic::Cdqe
                | Mnemonic::Cqo
        )
        || opcode[0] == 0x90
        || (plain && instruction.op_code().operand_size() == 16)
        || (plain && general("16") && instruction.op_code().operand_size() != 0)
}
