//! The rules for code once more: slow, obvious, and by another decoder.
//!
//! Everything is looked up in lists and maps: first all instructions are
//! decoded by iced-x86, then all branches are collected, then each straight
//! line is followed. What is allowed is told by processor feature and a list of
//! exceptions, not by opcode.

mod encoding;

use encoding::{allowed, proper_prefixes};
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register,
};
use mullion_abi as abi;
use mullion_verifier::{Image, Permission, Place, Rule};
use std::collections::{BTreeMap, BTreeSet};

/// What the slow verifier says.
pub(crate) struct Verdict {
    /// By address, at most one for each instruction and phase.
    pub(crate) violations: BTreeSet<(Place, Rule)>,
    /// Where decoding had to stop, if it had to.
    pub(crate) undecodable: Option<Place>,
}

#[derive(Clone, Copy, PartialEq)]
enum Fact {
    Zero,
    ZeroLabelled,
    Complement,
    Window,
    WindowLabelled,
    LowLabelled,
}

struct Known {
    fact: Fact,
    since: u64,
}

#[derive(Default)]
struct Line {
    known: BTreeMap<Register, Known>,
    /// Steps of `%r15` since the last probe: sum, and where they began.
    steps: Option<(i64, u64)>,
    /// `%r15` is no address: since when.
    unfinished: bool,
    /// The label of this register was compared, by the instruction at this address.
    check: Option<(Register, u64)>,
}

struct Slow<'a> {
    image: &'a Image,
    code: Vec<(u64, Vec<u8>)>,
    instructions: BTreeMap<u64, Instruction>,
    line: Line,
    /// No branch may go behind the first and up to the second.
    closed: Vec<(u64, u64)>,
    violations: BTreeSet<(Place, Rule)>,
    factory: InstructionInfoFactory,
}

/// Checks the code of `image`.
pub(crate) fn verify(image: &Image) -> Verdict {
    let segments = image
        .segments()
        .iter()
        .filter(|segment| segment.permission == Permission::ReadExecute);
    let code: Vec<_> = segments
        .map(|segment| (segment.offset, image.contents(segment).to_vec()))
        .collect();
    let mut slow = Slow {
        image,
        code: code.clone(),
        instructions: BTreeMap::new(),
        line: Line::default(),
        closed: Vec::new(),
        violations: BTreeSet::new(),
        factory: InstructionInfoFactory::new(),
    };
    let undecodable = code
        .iter()
        .find_map(|(start, bytes)| slow.decode(*start, bytes).err());
    if let Some((address, rule)) = undecodable {
        slow.violations.insert((Place::Window(address), rule));
    }
    let branches: Vec<(u64, i64)> = slow
        .instructions
        .iter()
        .filter(|(_, i)| is_direct(i))
        .map(|(at, i)| (*at, target(i)))
        .collect();
    for (start, bytes) in &code {
        slow.line = Line::default();
        let end = undecodable.map_or(start + bytes.len() as u64, |(address, _)| {
            address.min(start + bytes.len() as u64)
        });
        let lines: Vec<_> = slow
            .instructions
            .range(start..&end.max(*start))
            .map(|(at, i)| (*at, *i))
            .collect();
        for (at, instruction) in lines {
            let mut outcome = Ok(());
            if branches
                .iter()
                .any(|(from, to)| *from < at && *to == at as i64)
            {
                outcome = slow.settle();
                slow.line = Line::default();
            }
            let own = slow.instruction(at, &instruction);
            if let Err(rule) = outcome.and(own) {
                slow.violations.insert((Place::Window(at), rule));
                slow.line = Line::default();
            }
        }
        if undecodable.is_none()
            && let Err(rule) = slow.settle()
        {
            slow.violations
                .insert((Place::Window(start + bytes.len() as u64), rule));
        }
    }
    if undecodable.is_none() {
        slow.branches(&branches);
        slow.labels();
    }
    Verdict {
        violations: slow.violations,
        undecodable: undecodable.map(|(address, _)| Place::Window(address)),
    }
}

fn target(instruction: &Instruction) -> i64 {
    instruction.near_branch_target() as i64
}

fn is_direct(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::NearBranch64
}

impl Slow<'_> {
    fn decode(&mut self, start: u64, bytes: &[u8]) -> Result<(), (u64, Rule)> {
        let mut at = 0;
        while at < bytes.len() {
            let address = start + at as u64;
            let rest = &bytes[at..bytes.len().min(at + 15)];
            let instruction = Decoder::with_ip(64, rest, address, DecoderOptions::NONE).decode();
            if instruction.is_invalid() {
                return Err((address, Rule::Instruction));
            }
            let own = &rest[..instruction.len()];
            if !allowed(&instruction, own) {
                return Err((address, Rule::Instruction));
            }
            proper_prefixes(&instruction, own).map_err(|rule| (address, rule))?;
            self.instructions.insert(address, instruction);
            at += instruction.len();
        }
        Ok(())
    }

    fn settle(&self) -> Result<(), Rule> {
        if self.line.unfinished {
            return Err(Rule::StackUnfinished);
        }
        if self.line.steps.is_some() {
            return Err(Rule::StackProbe);
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Rule> {
        self.settle()?;
        self.line = Line::default();
        Ok(())
    }

    fn fact(&self, register: Register) -> Option<Fact> {
        self.line.known.get(&register).map(|known| known.fact)
    }

    fn is_zero(&self, register: Register) -> bool {
        matches!(
            self.fact(register),
            Some(Fact::Zero | Fact::ZeroLabelled | Fact::Complement)
        )
    }

    fn is_window(&self, register: Register) -> bool {
        matches!(
            self.fact(register),
            Some(Fact::Window | Fact::WindowLabelled)
        )
    }

    fn rely(&mut self, register: Register, at: u64) {
        let since = self.line.known[&register].since;
        self.closed.push((since, at));
    }

    fn learn(&mut self, register: Register, fact: Fact, at: u64) {
        self.line.known.insert(register, Known { fact, since: at });
    }

    fn confines_reads(&self) -> bool {
        self.image.protection() != abi::Protection::WriteCall
    }

    fn instruction(&mut self, at: u64, instruction: &Instruction) -> Result<(), Rule> {
        use Mnemonic as M;
        let info = self.factory.info(instruction).clone();
        let flow = instruction.flow_control();
        let branch = matches!(
            flow,
            FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return
        );
        let memory = (0..instruction.op_count())
            .any(|operand| instruction.op_kind(operand) == OpKind::Memory);
        let rsp = |register: Register| register.full_register() == Register::RSP;
        let explicit_rsp = (0..instruction.op_count()).any(|operand| {
            instruction.op_kind(operand) == OpKind::Register
                && rsp(instruction.op_register(operand))
        }) || (memory && rsp(instruction.memory_base()));
        if explicit_rsp
            || (!branch
                && info
                    .used_registers()
                    .iter()
                    .any(|used| rsp(used.register())))
        {
            return Err(Rule::RegisterRsp);
        }
        let check = self.line.check.take();
        let label_load = self.label_load(instruction);
        if memory && !matches!(instruction.mnemonic(), M::Lea | M::Nop) {
            self.access(at, instruction, &info)?;
        }
        if instruction.is_string_instruction() {
            self.string(at, instruction)?;
        }
        match instruction.mnemonic() {
            M::Nop if self.bytes(at, instruction.len()) == abi::LABEL_NOP => return self.end(),
            M::Ud1 | M::Ud2 => {
                self.line = Line::default();
                return Ok(());
            }
            M::Int3 => return self.end(),
            _ => {}
        }
        match flow {
            FlowControl::ConditionalBranch => {
                self.settle()?;
                self.branch_place(instruction)?;
                if let (Some((register, made)), M::Jne) = (check, instruction.mnemonic()) {
                    self.closed.push((made, at));
                    let fact = if self.is_zero(register) {
                        self.rely(register, at);
                        Fact::ZeroLabelled
                    } else {
                        Fact::LowLabelled
                    };
                    self.learn(register, fact, at);
                }
                return Ok(());
            }
            FlowControl::UnconditionalBranch | FlowControl::Call => {
                self.branch_place(instruction)?;
                return self.end();
            }
            FlowControl::Return => return self.end(),
            FlowControl::IndirectBranch | FlowControl::IndirectCall => {
                let register = instruction.op0_register();
                if self.fact(register) != Some(Fact::WindowLabelled) {
                    return Err(Rule::IndirectUnchecked);
                }
                self.rely(register, at);
                return self.end();
            }
            _ => {}
        }
        if self.stack_pointer(at, instruction)? || self.makes(at, instruction) {
            return Ok(());
        }
        self.writes(at, instruction, &info)?;
        if let Some((sum, offset)) = label_load {
            self.closed.push((sum.1, at));
            if let Some(since) = offset.1 {
                self.closed.push((since, at));
            }
            self.line.check = Some((offset.0, at));
        }
        Ok(())
    }

    fn bytes(&self, at: u64, length: usize) -> &[u8] {
        let (start, bytes) = self
            .code
            .iter()
            .rev()
            .find(|(start, _)| *start <= at)
            .expect("within a segment");
        let at = (at - start) as usize;
        &bytes[at..at + length]
    }

    /// Where the sum's complement was made; the register with the offset, and what its use relies on.
    #[allow(clippy::type_complexity)]
    fn label_load(
        &self,
        instruction: &Instruction,
    ) -> Option<((Register, u64), (Register, Option<u64>))> {
        if instruction.code() != Code::Add_r32_rm32 || instruction.op1_kind() != OpKind::Memory {
            return None;
        }
        let sum = instruction.op0_register().full_register();
        let known = self
            .line
            .known
            .get(&sum)
            .filter(|known| known.fact == Fact::Complement)?;
        if instruction.memory_displacement64() as i32 != -4 {
            return None;
        }
        let (base, index) = (
            instruction.memory_base().full_register(),
            instruction.memory_index().full_register(),
        );
        let gs = instruction.segment_prefix() == Register::GS;
        let offset = if gs && index == Register::None && base.is_gpr() {
            (base, None)
        } else if !gs
            && base == Register::R14
            && instruction.memory_index_scale() == 1
            && self.is_zero(index)
        {
            (index, Some(self.line.known[&index].since))
        } else {
            return None;
        };
        let proper = offset.0 != sum && offset.0 != Register::R14 && offset.0 != Register::R15;
        proper.then_some(((sum, known.since), offset))
    }

    fn access(
        &mut self,
        at: u64,
        instruction: &Instruction,
        info: &iced_x86::InstructionInfo,
    ) -> Result<(), Rule> {
        let access = info
            .used_memory()
            .first()
            .map_or(OpAccess::Read, |memory| memory.access());
        let write = !matches!(
            access,
            OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
        );
        let name = format!("{:?}", instruction.mnemonic());
        let lazy = name.contains("maskmov") || name.starts_with("Prefetch");
        let confined = write || self.confines_reads();
        let (base, index) = (
            instruction.memory_base().full_register(),
            instruction.memory_index().full_register(),
        );
        let displacement = instruction.memory_displacement64() as i64;
        let near = displacement.abs() <= abi::MAX_DISPLACEMENT;
        if instruction.segment_prefix() == Register::GS {
            return Ok(());
        }
        if instruction.is_ip_rel_memory_operand() {
            let target = instruction.ip_rel_memory_address() as i64;
            let inside = target >= abi::GUARD_SIZE as i64
                && target < (abi::WINDOW_SIZE - abi::GUARD_SIZE) as i64;
            return if inside || !confined {
                Ok(())
            } else {
                Err(Rule::RipTarget)
            };
        }
        let far = if near {
            Ok(())
        } else {
            Err(Rule::Displacement)
        };
        if base == Register::R15 && index == Register::None {
            if self.line.unfinished {
                return if confined {
                    Err(Rule::StackUnfinished)
                } else {
                    Ok(())
                };
            }
            if near
                && !lazy
                && let Some((_, since)) = self.line.steps.take()
            {
                self.closed.push((since, at));
            }
            return if confined { far } else { Ok(()) };
        }
        if !confined {
            return Ok(());
        }
        if base == Register::R14 && instruction.memory_index_scale() == 1 && self.is_zero(index) {
            far?;
            self.rely(index, at);
            return Ok(());
        }
        if index == Register::None && self.is_window(base) {
            far?;
            self.rely(base, at);
            return Ok(());
        }
        Err(if write {
            Rule::WriteUnconfined
        } else {
            Rule::ReadUnconfined
        })
    }

    fn string(&mut self, at: u64, instruction: &Instruction) -> Result<(), Rule> {
        use Mnemonic as M;
        let (destination_read, destination_written, source) = match instruction.mnemonic() {
            M::Movsb | M::Movsw | M::Movsd | M::Movsq => (false, true, true),
            M::Stosb | M::Stosw | M::Stosd | M::Stosq => (false, true, false),
            M::Lodsb | M::Lodsw | M::Lodsd | M::Lodsq => (false, false, true),
            M::Scasb | M::Scasw | M::Scasd | M::Scasq => (true, false, false),
            _ => (true, false, true),
        };
        let reads = self.confines_reads();
        let needed = [
            (
                Register::RDI,
                destination_written || (destination_read && reads),
            ),
            (Register::RSI, source && reads),
        ];
        for (register, needed) in needed {
            if needed && !self.is_window(register) {
                return Err(Rule::StringUnconfined);
            }
            if needed {
                self.rely(register, at);
            }
        }
        Ok(())
    }

    /// A constant step of `%r15`. True: done.
    fn stack_pointer(&mut self, at: u64, instruction: &Instruction) -> Result<bool, Rule> {
        let step = match instruction.code() {
            Code::Add_rm64_imm8 | Code::Add_rm64_imm32 => instruction.immediate(1) as i64,
            Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 => -(instruction.immediate(1) as i64),
            Code::Lea_r64_m
                if instruction.memory_base() == Register::R15
                    && instruction.memory_index() == Register::None =>
            {
                instruction.memory_displacement64() as i64
            }
            _ => return Ok(false),
        };
        if instruction.op0_kind() != OpKind::Register || instruction.op0_register() != Register::R15
        {
            return Ok(false);
        }
        if self.line.unfinished {
            return Err(Rule::RegisterR15);
        }
        let (sum, since) = self.line.steps.unwrap_or((0, at));
        self.line.steps = Some((sum + step, since));
        if (sum + step).abs() > abi::MAX_DISPLACEMENT {
            Err(Rule::StackStep)
        } else {
            Ok(true)
        }
    }

    /// What makes more than a zero-extended value. True: done.
    fn makes(&mut self, at: u64, instruction: &Instruction) -> bool {
        let registers = instruction.op_count() == 2
            && instruction.op0_kind() == OpKind::Register
            && instruction.op1_kind() == OpKind::Register;
        let to = instruction.op0_register().full_register();
        match instruction.code() {
            Code::Mov_r32_imm32 if instruction.immediate32() == abi::LABEL.wrapping_neg() => {
                if to == Register::R14 || to == Register::R15 {
                    return false;
                }
                self.learn(to, Fact::Complement, at);
                true
            }
            Code::Mov_r32_rm32 | Code::Mov_rm32_r32 if registers => {
                let from = instruction.op1_register().full_register();
                let labelled = matches!(
                    self.fact(from),
                    Some(Fact::ZeroLabelled | Fact::WindowLabelled | Fact::LowLabelled)
                );
                if !labelled || to == Register::R14 || to == Register::R15 {
                    return false;
                }
                self.rely(from, at);
                self.learn(to, Fact::ZeroLabelled, at);
                true
            }
            Code::Add_r64_rm64 | Code::Add_rm64_r64
                if registers && instruction.op1_register() == Register::R14 =>
            {
                self.window(at, to, to)
            }
            Code::Lea_r64_m
                if instruction.memory_base() == Register::R14
                    && instruction.memory_displacement64() == 0
                    && instruction.memory_index_scale() == 1 =>
            {
                self.window(at, to, instruction.memory_index())
            }
            _ => false,
        }
    }

    fn window(&mut self, at: u64, to: Register, offset: Register) -> bool {
        if to == Register::R14 || !self.is_zero(offset) {
            return false;
        }
        self.rely(offset, at);
        let labelled = self.fact(offset) == Some(Fact::ZeroLabelled);
        if to == Register::R15 {
            self.line.unfinished = false;
            self.line.steps = None;
            self.line.known.remove(&to);
        } else {
            self.learn(
                to,
                if labelled {
                    Fact::WindowLabelled
                } else {
                    Fact::Window
                },
                at,
            );
        }
        true
    }

    fn writes(
        &mut self,
        at: u64,
        instruction: &Instruction,
        info: &iced_x86::InstructionInfo,
    ) -> Result<(), Rule> {
        let mut zero = BTreeSet::new();
        for operand in 0..instruction.op_count() {
            let written = !matches!(
                info.op_access(operand),
                OpAccess::Read | OpAccess::CondRead | OpAccess::None
            );
            if written
                && instruction.op_kind(operand) == OpKind::Register
                && (instruction.op_register(operand).is_gpr32() || widens(instruction))
                && !is_loose(instruction)
            {
                zero.insert(instruction.op_register(operand).full_register());
            }
        }
        let mut written = BTreeSet::new();
        for used in info.used_registers() {
            if used.register().is_gpr()
                && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
            {
                written.insert(used.register().full_register());
            }
        }
        // The register operands in iced's order; the fast verifier's order does not matter: one rule each.
        let mut outcome = Ok(());
        for register in written {
            let zero_extended = zero.contains(&register);
            match register {
                Register::R14 => outcome = Err(Rule::RegisterR14),
                Register::R15 if !zero_extended => outcome = outcome.and(Err(Rule::RegisterR15)),
                Register::R15 => {
                    self.line.steps = None;
                    self.line.unfinished = true;
                    self.learn(register, Fact::Zero, at);
                }
                _ if zero_extended => self.learn(register, Fact::Zero, at),
                _ => {
                    self.line.known.remove(&register);
                }
            }
        }
        outcome
    }

    /// Whether a direct branch goes to code or to a gate at all.
    fn branch_place(&self, instruction: &Instruction) -> Result<(), Rule> {
        let to = target(instruction);
        let inside = self.code.iter().any(|(start, bytes)| {
            (*start as i64..*start as i64 + bytes.len() as i64).contains(&to)
        });
        if inside {
            return Ok(());
        }
        let gate = to - abi::GATE_BASE as i64;
        if !(0..abi::GATE_AREA_SIZE as i64).contains(&gate) {
            return Err(Rule::BranchOutside);
        }
        let (slot, rest) = (gate as u64 / 32, gate % 32);
        let exists =
            (1..=4).contains(&slot) || (16..16 + self.image.imports().len() as u64).contains(&slot);
        if exists && rest == 0 {
            Ok(())
        } else {
            Err(Rule::GateSlot)
        }
    }

    fn branches(&mut self, branches: &[(u64, i64)]) {
        for &(from, to) in branches {
            let inside = self.code.iter().any(|(start, bytes)| {
                (*start as i64..*start as i64 + bytes.len() as i64).contains(&to)
            });
            if !inside {
                continue;
            }
            let place = Place::Window(from);
            if !self.instructions.contains_key(&(to as u64)) {
                self.violations.insert((place, Rule::BranchTarget));
            } else if self
                .closed
                .iter()
                .any(|(after, until)| *after < to as u64 && to as u64 <= *until)
            {
                self.violations.insert((place, Rule::BranchSequence));
            }
        }
    }

    fn labels(&mut self) {
        let label = abi::LABEL.to_le_bytes();
        for (start, bytes) in self.code.clone() {
            if (1..4).any(|cut| bytes.starts_with(&label[cut..])) {
                self.violations
                    .insert((Place::Window(start), Rule::LabelFragment));
            }
            for at in 0..bytes.len().saturating_sub(3) {
                if bytes[at..at + 4] != label {
                    continue;
                }
                let nop = at.checked_sub(3).filter(|nop| {
                    self.instructions.contains_key(&(start + *nop as u64))
                        && bytes[*nop..*nop + 7] == abi::LABEL_NOP
                });
                if nop.is_none() {
                    self.violations
                        .insert((Place::Window(start + at as u64), Rule::LabelStray));
                }
            }
        }
    }
}

/// Writes a zero-extended narrower value into a register of any width.
fn widens(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(
        instruction.mnemonic(),
        M::Movmskps
            | M::Movmskpd
            | M::Pmovmskb
            | M::Vmovmskps
            | M::Vmovmskpd
            | M::Vpmovmskb
            | M::Pextrb
            | M::Pextrw
            | M::Vpextrb
            | M::Vpextrw
            | M::Extractps
            | M::Vextractps
    )
}

/// A write that may not happen, or not extend.
fn is_loose(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    if instruction.is_string_instruction() {
        return true;
    }
    match instruction.mnemonic() {
        M::Xchg
        | M::Xadd
        | M::Cmpxchg
        | M::Bsf
        | M::Bsr
        | M::Tzcnt
        | M::Lzcnt
        | M::Bts
        | M::Btr
        | M::Btc
        | M::Shld
        | M::Shrd
        | M::Cmpxchg8b
        | M::Cmpxchg16b => true,
        M::Rol | M::Ror | M::Rcl | M::Rcr | M::Shl | M::Shr | M::Sar => {
            instruction.op1_kind() == OpKind::Register || instruction.immediate(1) & 31 == 0
        }
        _ => false,
    }
}
