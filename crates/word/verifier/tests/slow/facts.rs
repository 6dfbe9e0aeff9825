//! What single instructions do.

use super::read::Registers;
use iced_x86::{Code, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

pub(super) fn is_r11(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::Register && instruction.op0_register() == Register::R11
}

pub(super) fn registers(instruction: &Instruction) -> Registers {
    let index = instruction.memory_index();
    let scale = match index {
        Register::None => 1,
        _ => instruction.memory_index_scale(),
    };
    (instruction.memory_base(), index, scale)
}

pub(super) fn displacement(instruction: &Instruction) -> i64 {
    i64::from(instruction.memory_displacement64() as i32)
}

pub(super) fn written(instruction: &Instruction) -> Vec<Register> {
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(instruction);
    let used = info.used_registers().iter();
    let written = used.filter(|used| !matches!(used.access(), OpAccess::Read | OpAccess::CondRead));
    written
        .map(|used| used.register().full_register())
        .collect()
}

pub(super) fn has_memory(instruction: &Instruction) -> bool {
    (0..instruction.op_count()).any(|n| instruction.op_kind(n) == OpKind::Memory)
}

/// Whether an operand has an address of 32 bits.
pub(super) fn is_narrow(instruction: &Instruction) -> bool {
    let registers = [instruction.memory_base(), instruction.memory_index()];
    let narrow = |register: &Register| *register != Register::None && register.size() == 4;
    registers.iter().any(narrow)
        || instruction.memory_displ_size() == 4 && registers == [Register::None; 2]
}

/// What an instruction leaves in a register at most.
pub(super) fn at_most(instruction: &Instruction, register: Register) -> Option<i64> {
    let to = instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().full_register() == register;
    let value = immediate(instruction).map(|value| i64::from(value as i32));
    match instruction.code() {
        _ if !to => None,
        Code::Movzx_r32_rm8 | Code::Movzx_r64_rm8 => Some(0xff),
        Code::Movzx_r32_rm16 | Code::Movzx_r64_rm16 => Some(0xffff),
        Code::And_rm32_imm32 | Code::And_rm32_imm8 | Code::And_EAX_imm32 => {
            value.filter(|most| *most >= 0)
        }
        Code::Shr_rm32_imm8 => {
            let count = value.filter(|count| (1..32).contains(count))?;
            Some(i64::from(u32::MAX >> count))
        }
        _ => None,
    }
}

pub(super) fn is_padding(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Nop
}

/// A number added to a register other than the data stack pointer, and which one.
pub(super) fn constant(instruction: &Instruction) -> Option<(Register, i64)> {
    let to = instruction.op0_register();
    let by = match instruction.code() {
        Code::Add_rm64_imm8 | Code::Add_rm64_imm32 => immediate(instruction)?,
        Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 => -immediate(instruction)?,
        Code::Lea_r64_m if registers(instruction) == (to, Register::None, 1) => {
            displacement(instruction)
        }
        _ => return None,
    };
    (instruction.op0_kind() == OpKind::Register && to != Register::R15).then_some((to, by))
}

/// Whether it is a store that is not ordered with later ones.
pub(super) fn is_weak(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(
        instruction.mnemonic(),
        Movnti | Movntps | Movntpd | Movntdq | Vmovntps | Vmovntpd | Vmovntdq
    )
}

/// Whether an access faults unless its address is a multiple of 16.
pub(super) fn aligned(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(
        instruction.mnemonic(),
        Movaps | Movapd | Movdqa | Vmovaps | Vmovapd | Vmovdqa
    )
}

/// A constant step of the data stack pointer.
pub(super) fn step(instruction: &Instruction) -> Option<i64> {
    let to = instruction.op_count() > 0 && instruction.op0_register() == Register::R15;
    match instruction.mnemonic() {
        Mnemonic::Add if to && instruction.op1_kind() != OpKind::Register => immediate(instruction),
        Mnemonic::Sub if to && instruction.op1_kind() != OpKind::Register => {
            immediate(instruction).map(|step| -step)
        }
        Mnemonic::Lea if to && registers(instruction) == (Register::R15, Register::None, 1) => {
            Some(displacement(instruction))
        }
        _ => None,
    }
}

pub(super) fn immediate(instruction: &Instruction) -> Option<i64> {
    instruction
        .try_immediate(1)
        .ok()
        .map(|immediate| immediate as i64)
}

/// The register that is `xor`ed to the data stack pointer.
pub(super) fn xor(instruction: &Instruction) -> Option<Register> {
    let whole = matches!(instruction.code(), Code::Xor_rm64_r64 | Code::Xor_r64_rm64);
    let to = instruction.op_count() > 0 && instruction.op0_register() == Register::R15;
    let register = instruction.op1_kind() == OpKind::Register;
    (whole && to && register).then(|| instruction.op1_register())
}

/// `and` of a mask below 8 MiB to 32 bits of `register`.
pub(super) fn small(instruction: &Instruction, register: Register) -> bool {
    let code = matches!(
        instruction.code(),
        Code::And_rm32_imm32 | Code::And_rm32_imm8 | Code::And_EAX_imm32
    );
    let to = instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().full_register() == register;
    code && to
        && immediate(instruction).is_some_and(|mask| (0..8 << 20).contains(&i64::from(mask as i32)))
}
