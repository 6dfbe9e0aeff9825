//! A second verifier, slow and simple, which reads instructions with iced-x86.
//!
//! It knows the whole list of instructions before it asks anything. Whatever relies on something looks for it
//! backwards, instruction by instruction, until it finds it or meets what ends its search. Only the list of what
//! instructions are allowed is the decoder's own.

mod facts;
mod read;

use facts::{
    aligned, at_most, constant, displacement, has_memory, is_narrow, is_padding, is_r11, is_weak,
    registers, small, step, written, xor,
};
use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use mullion_word_abi as abi;
use mullion_word_verifier::Module;
use read::{Item, Kind, Reader, read};
use std::collections::{BTreeMap, BTreeSet};

/// Whether all is well with the code of `module`, which has one executable segment.
pub(crate) fn accepts(module: &Module) -> bool {
    judge(module).is_some()
}

fn judge(module: &Module) -> Option<()> {
    let segment = module
        .segments()
        .iter()
        .find(|s| s.permission().is_executable())?;
    let reader = Reader {
        base: segment.address(),
        bytes: module.contents(segment),
    };
    let items = read(&reader, module)?;
    let by_address: BTreeMap<u64, usize> = items
        .iter()
        .enumerate()
        .map(|(number, item)| (item.at, number))
        .collect();
    let colds: Vec<u64> = items
        .iter()
        .filter_map(|item| match item.kind {
            Kind::Check { cold, .. } => Some(cold),
            _ => None,
        })
        .collect();
    // Each check has points of its own, and no points are nobody's.
    let unique: BTreeSet<u64> = colds.iter().copied().collect();
    let points: BTreeSet<u64> = items
        .iter()
        .filter(|item| matches!(item.kind, Kind::Points { .. }))
        .map(|item| item.at)
        .collect();
    (unique.len() == colds.len() && unique == points).then_some(())?;
    // Bodies that are called by their gates' addresses are where they must be.
    let near = items.iter().any(|item| matches!(item.kind, Kind::Near));
    let away = |item: &Item| matches!(item.kind, Kind::Gate { body } if body != item.at + 32);
    (!near || !items.iter().any(away)).then_some(())?;
    // Where branches come.
    let mut targets: BTreeSet<u64> = items.iter().flat_map(|item| item.goes.clone()).collect();
    for item in &items {
        if let Kind::Check { cold, .. } = item.kind
            && matches!(items[by_address[&cold]].kind, Kind::Points { falls: true })
        {
            targets.insert(item.at);
        }
    }
    for target in &targets {
        let number = by_address.get(target)?;
        (!matches!(items[*number].kind, Kind::Points { .. })).then_some(())?;
    }
    let judge = Judge {
        module,
        items: &items,
        targets: &targets,
    };
    judge.steps()?;
    judge.ends()?;
    (0..items.len())
        .all(|number| judge.item(number).is_some())
        .then_some(())?;
    labels(&reader, &items).then_some(())
}

struct Judge<'a> {
    module: &'a Module,
    items: &'a [Item],
    targets: &'a BTreeSet<u64>,
}

impl Judge<'_> {
    fn ends_line(&self, item: &Item) -> bool {
        match item.kind {
            Kind::Check { .. } | Kind::Target { .. } | Kind::Near => false,
            Kind::Plain => !matches!(
                item.first.flow_control(),
                FlowControl::Next | FlowControl::ConditionalBranch
            ),
            _ => true,
        }
    }

    fn writes(&self, item: &Item, register: Register) -> bool {
        match item.kind {
            Kind::Check { .. } | Kind::Target { .. } | Kind::Near => register == Register::R11,
            _ => written(&item.first).contains(&register),
        }
    }

    /// What `wanted` finds first, going back from item `number` within its line while `registers` are kept.
    fn back<T>(
        &self,
        number: usize,
        registers: &[Register],
        mut wanted: impl FnMut(&Item) -> Option<T>,
    ) -> Option<T> {
        self.back_over(number, registers, |item, _| wanted(item), false)
    }

    /// The same; with `steps`, constant steps of the registers keep them, and `wanted` is told their sum for each.
    fn back_over<T>(
        &self,
        number: usize,
        registers: &[Register],
        mut wanted: impl FnMut(&Item, &BTreeMap<Register, i64>) -> Option<T>,
        steps: bool,
    ) -> Option<T> {
        let mut sums = BTreeMap::new();
        let mut at = number;
        loop {
            if self.targets.contains(&self.items[at].at) {
                return None;
            }
            at = at.checked_sub(1)?;
            let item = &self.items[at];
            if self.ends_line(item) {
                return None;
            }
            if let Some(found) = wanted(item, &sums) {
                return Some(found);
            }
            if steps
                && matches!(item.kind, Kind::Plain)
                && let Some((register, by)) = constant(&item.first)
            {
                *sums.entry(register).or_default() += by;
                continue;
            }
            if registers
                .iter()
                .any(|register| self.writes(item, *register))
            {
                return None;
            }
        }
    }

    /// Nothing runs on behind the last instruction. Padding there is not reached.
    fn ends(&self) -> Option<()> {
        for item in self.items.iter().rev() {
            let plain = matches!(item.kind, Kind::Plain);
            let skipped = [Mnemonic::Nop, Mnemonic::Pause, Mnemonic::Int3];
            if plain && skipped.contains(&item.first.mnemonic()) {
                (!self.targets.contains(&item.at)).then_some(())?;
                continue;
            }
            let ends = match item.kind {
                Kind::Points { .. } | Kind::Gate { .. } => true,
                Kind::Plain | Kind::Slot => matches!(
                    item.first.flow_control(),
                    FlowControl::UnconditionalBranch
                        | FlowControl::IndirectBranch
                        | FlowControl::Return
                        | FlowControl::Exception
                ),
                _ => false,
            };
            return ends.then_some(());
        }
        Some(())
    }

    /// The data stack pointer: steps and probes, in order.
    fn steps(&self) -> Option<()> {
        let (mut pending, mut sum) = (false, 0_i64);
        for item in self.items {
            (!pending || !self.targets.contains(&item.at)).then_some(())?;
            let plain = matches!(item.kind, Kind::Plain);
            if plain && item.first.flow_control() == FlowControl::Exception {
                (pending, sum) = (false, 0);
                continue;
            }
            let branches = plain && item.first.flow_control() != FlowControl::Next;
            if branches || !matches!(item.kind, Kind::Plain | Kind::Check { .. }) {
                (!pending).then_some(())?;
            }
            if plain && let Some(step) = step(&item.first) {
                sum += step;
                pending = true;
                (sum.abs() <= 0x7000).then_some(())?;
            } else if plain && self.probes(&item.first) {
                (pending, sum) = (false, 0);
            }
            let xor = plain && xor(&item.first).is_some();
            (!xor || !pending).then_some(())?;
        }
        (!pending).then_some(())
    }

    fn probes(&self, instruction: &Instruction) -> bool {
        let mut factory = InstructionInfoFactory::new();
        let memory = factory.info(instruction).used_memory().to_vec();
        memory.iter().any(|memory| {
            let near = (memory.displacement() as i64).abs() <= 0x7000;
            let masked = format!("{:?}", instruction.mnemonic()).to_lowercase();
            memory.base() == Register::R15
                && memory.index() == Register::None
                && near
                && !masked.contains("maskmov")
                && !masked.starts_with("prefetch")
                && memory.access() != OpAccess::NoMemAccess
        })
    }

    fn item(&self, number: usize) -> Option<()> {
        let item = &self.items[number];
        if !matches!(item.kind, Kind::Plain | Kind::Label) {
            return Some(());
        }
        let instruction = &item.first;
        (!is_weak(instruction)).then_some(())?;
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(instruction).clone();
        let stack = matches!(
            instruction.flow_control(),
            FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return
        );
        let memory = (0..instruction.op_count()).any(|n| instruction.op_kind(n) == OpKind::Memory);
        let prefetch = format!("{:?}", instruction.mnemonic()).starts_with("Prefetch");
        let ahead =
            prefetch && instruction.segment_prefix() == Register::GS && !is_narrow(instruction);
        (instruction.segment_prefix() == Register::None
            || !memory
            || is_padding(instruction)
            || ahead)
            .then_some(())?;
        // Registers that are nobody's operands.
        let mut named: Vec<Register> = (0..instruction.op_count())
            .filter(|n| instruction.op_kind(*n) == OpKind::Register)
            .map(|n| instruction.op_register(n).full_register())
            .collect();
        if memory {
            named.extend([instruction.memory_base(), instruction.memory_index()]);
        }
        (!named.contains(&Register::RSP) && !named.contains(&Register::R14)).then_some(())?;
        // The data stack pointer.
        if written(instruction).contains(&Register::R15) && step(instruction).is_none() {
            let register = xor(instruction)?;
            self.back(number, &[register], |item| {
                matches!(item.kind, Kind::Plain)
                    .then(|| small(&item.first, register))?
                    .then_some(())
            })?;
        }
        if instruction.flow_control() == FlowControl::IndirectBranch
            || instruction.flow_control() == FlowControl::IndirectCall
        {
            let wanted = instruction.op0_register();
            let jump = instruction.flow_control() == FlowControl::IndirectBranch;
            let found = self.back(number, &[wanted], |item| match item.kind {
                Kind::Target { register, own } if register == wanted && (jump || !own) => Some(()),
                Kind::Near if wanted == Register::R11 => Some(()),
                _ => None,
            });
            (found.is_some() || (jump && self.is_labelled(number, wanted))).then_some(())?;
        }
        (!instruction.has_rep_prefix() || !instruction.is_string_instruction()).then_some(())?;
        (!instruction.has_repne_prefix() || !instruction.is_string_instruction()).then_some(())?;
        if stack || prefetch {
            return Some(());
        }
        for access in info.used_memory() {
            if access.access() == OpAccess::NoMemAccess {
                continue;
            }
            let write = !matches!(access.access(), OpAccess::Read | OpAccess::CondRead);
            let size = access.memory_size().size() as i64;
            let near = if instruction.memory_base() == Register::RIP {
                instruction.memory_displacement64() as i64
            } else {
                i64::from(access.displacement() as i32)
            };
            self.access(
                number,
                access.base(),
                access.index(),
                access.scale(),
                near,
                size,
                write,
            )?;
        }
        Some(())
    }

    /// Whether a register has a labelled address: it was checked, or copied to the scratch register behind its check.
    fn is_labelled(&self, number: usize, wanted: Register) -> bool {
        let checked = self.back(number, &[wanted], |item| match item.kind {
            Kind::Target { register, own } if register == wanted && own => Some(()),
            _ => None,
        });
        let copy = self.back(number, &[wanted], |item| {
            let mov = &item.first;
            let copies = matches!(item.kind, Kind::Plain)
                && matches!(mov.code(), Code::Mov_r64_rm64 | Code::Mov_rm64_r64)
                && is_r11(mov)
                && mov.op1_kind() == OpKind::Register;
            copies.then(|| (item.at, mov.op1_register()))
        });
        checked.is_some()
            || copy.is_some_and(|(at, from)| {
                let place = self.items.iter().position(|item| item.at == at);
                wanted == Register::R11 && place.is_some_and(|place| self.is_labelled(place, from))
            })
    }

    /// Whether an access of the data stack with an index stays near.
    fn is_near(&self, number: usize, index: Register, scale: u32, near: i64) -> bool {
        let most = self.back(number, &[index], |item| match item.kind {
            Kind::Plain => at_most(&item.first, index),
            _ => None,
        });
        most.is_some_and(|most| near >= -0x7000 && near + most * i64::from(scale) <= 0x7000)
    }

    #[allow(clippy::too_many_arguments, reason = "a test")]
    fn access(
        &self,
        number: usize,
        base: Register,
        index: Register,
        scale: u32,
        near: i64,
        size: i64,
        write: bool,
    ) -> Option<()> {
        let instruction = &self.items[number].first;
        if base == Register::R15 && index == Register::None && near.abs() <= 0x7000 {
            return Some(());
        }
        if base == Register::R15
            && index != Register::None
            && self.is_near(number, index, scale, near)
        {
            return Some(());
        }
        let reads = self.module.protection() == abi::Protection::ReadWrite;
        if !write && !reads {
            return Some(());
        }
        if instruction.memory_base() == Register::RIP {
            let inside = |start: u64, end: u64| start as i64 <= near && near + size <= end as i64;
            let mut segments = self.module.segments().iter();
            return segments
                .any(|segment| {
                    let held = inside(segment.address(), segment.address() + segment.size());
                    let relro = self.module.relro().unwrap_or(0..0);
                    let free = near >= relro.end as i64 || near + size <= relro.start as i64;
                    held && (!write || (segment.permission().name() == "rw-" && free))
                })
                .then_some(());
        }
        let mut passed = 0;
        let scale = if index == Register::None { 1 } else { scale };
        let is_aligned = aligned(instruction);
        let mut known = Vec::new();
        let wanted = |item: &Item, sums: &BTreeMap<Register, i64>| {
            let moved = |register| sums.get(&register).copied().unwrap_or(0);
            let moved = moved(base) + i64::from(scale) * moved(index);
            let beside = registers(&item.first) == (base, index, scale);
            if matches!(item.kind, Kind::Plain)
                && aligned(&item.first)
                && beside
                && has_memory(&item.first)
            {
                known.push(displacement(&item.first) - moved);
            }
            let Kind::Check {
                registers,
                read,
                write: writes,
                whole,
                near: operand,
                ..
            } = &item.kind
            else {
                return None;
            };
            passed += 1;
            let near = near + moved;
            let ((start, mut end), whole) = match write {
                true => (*writes, whole.1),
                false => (*read, whole.0),
            };
            let told = known.iter().any(|at| (at + moved - operand) % 4 == 0);
            if told || is_aligned && (near - operand) % 4 == 0 {
                end = whole;
            }
            let covers = *registers == (base, index, scale) && start <= near && near + size <= end;
            (covers && passed <= abi::MAX_CHECKS).then_some(())
        };
        self.back_over(number, &[base, index], wanted, true)
    }
}

fn labels(reader: &Reader, items: &[Item]) -> bool {
    let label = abi::LABEL.to_le_bytes();
    let proper: BTreeSet<usize> = items
        .iter()
        .filter(|item| matches!(item.kind, Kind::Label))
        .map(|item| (item.at - reader.base) as usize + 3)
        .collect();
    let found = reader
        .bytes
        .windows(4)
        .enumerate()
        .filter(|(_, bytes)| *bytes == label);
    found.map(|(at, _)| at).all(|at| proper.contains(&at))
        && (1..4).all(|cut| !reader.bytes.starts_with(&label[cut..]))
}
