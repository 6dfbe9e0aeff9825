//! A second verifier, slow and simple, which reads instructions with iced-x86.
//!
//! It knows the whole list of instructions before it asks anything. Whatever relies on something looks for it
//! backwards, instruction by instruction, until it finds it or meets what ends its search. Only the list of what
//! instructions are allowed is the decoder's own.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register,
};
use mullion_decoder::decode::{self, LONGEST, WINDOW};
use mullion_word_abi as abi;
use mullion_word_verifier::Module;
use std::collections::{BTreeMap, BTreeSet};

/// Base, index and scale.
type Registers = (Register, Register, u32);

enum Kind {
    Plain,
    Check {
        registers: Registers,
        read: (i64, i64),
        write: (i64, i64),
        /// The ends of both where addresses are multiples of four.
        whole: (i64, i64),
        near: i64,
        cold: u64,
    },
    Points {
        falls: bool,
    },
    Target {
        register: Register,
        own: bool,
    },
    Near,
    Gate {
        body: u64,
    },
    Slot,
    Label,
}

/// One instruction, or a sequence.
struct Item {
    kind: Kind,
    at: u64,
    first: Instruction,
    /// Where it goes, as far as branches must be allowed.
    goes: Vec<u64>,
}

struct Points {
    registers: Registers,
    /// Displacement and right of each.
    points: Vec<(i64, u8)>,
    back: u64,
    end: u64,
}

struct Reader<'a> {
    base: u64,
    bytes: &'a [u8],
}

fn is_r11(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::Register && instruction.op0_register() == Register::R11
}

fn registers(instruction: &Instruction) -> Registers {
    let index = instruction.memory_index();
    let scale = match index {
        Register::None => 1,
        _ => instruction.memory_index_scale(),
    };
    (instruction.memory_base(), index, scale)
}

fn displacement(instruction: &Instruction) -> i64 {
    i64::from(instruction.memory_displacement64() as i32)
}

impl Reader<'_> {
    fn at(&self, address: u64) -> Option<Instruction> {
        let position = usize::try_from(address.checked_sub(self.base)?).ok()?;
        let bytes = self
            .bytes
            .get(position..)
            .filter(|bytes| !bytes.is_empty())?;
        let decoded = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
        let slot = bytes[0] == 0xff && matches!(bytes.get(1), Some(0x15 | 0x25));
        let mut window = [0; WINDOW];
        let length = bytes.len().min(WINDOW);
        window[..length].copy_from_slice(&bytes[..length]);
        let listed = decode::decode_word((&window, bytes.len().min(LONGEST))).is_ok();
        (!decoded.is_invalid() && (listed || slot)).then_some(decoded)
    }

    fn shadow(&self, address: u64) -> Option<Instruction> {
        let found = self.at(address)?;
        let shape = registers(&found) == (Register::R11, Register::R11, 1);
        (found.segment_prefix() == Register::GS && shape).then_some(found)
    }

    fn shifted(&self, address: u64) -> Option<u64> {
        let shr = self.at(address)?;
        let fits = shr.code() == Code::Shr_rm64_imm8 && is_r11(&shr) && shr.immediate8() == 2;
        // The one encoding of assemblers.
        let position = (address - self.base) as usize;
        let plain = self.bytes[position..].starts_with(&[0x49]);
        (fits && shr.len() == 4 && plain).then_some(shr.next_ip())
    }

    fn jump(&self, address: u64, wanted: Mnemonic) -> Option<(u64, u64)> {
        let jump = self.at(address)?;
        (jump.mnemonic() == wanted).then_some((jump.near_branch_target(), jump.next_ip()))
    }

    /// `movzwl` and `testb`.
    fn looked(&self, address: u64) -> Option<(u8, u64)> {
        let look = self.shadow(address)?;
        let test = self.at(look.next_ip())?;
        let fits = look.code() == Code::Movzx_r32_rm16
            && look.op0_register() == Register::R11D
            && look.memory_displacement64() == 0
            && test.code() == Code::Test_rm8_imm8
            && test.segment_prefix() == Register::GS
            && registers(&test) == (Register::R14D, Register::R11D, 1)
            && test.memory_displacement64() == 0;
        fits.then_some((test.immediate8(), test.next_ip()))
    }

    fn operand(&self, address: u64) -> Option<(Instruction, u64)> {
        let lea = self.at(address)?;
        let bad = [Register::R11, Register::R14, Register::RSP, Register::RIP];
        let (base, index, _) = registers(&lea);
        let fits = lea.code() == Code::Lea_r64_m
            && is_r11(&lea)
            && !bad.contains(&base)
            && !bad.contains(&index)
            && index != Register::R15;
        fits.then_some((lea, self.shifted(lea.next_ip())?))
    }

    fn points(&self, address: u64) -> Option<Points> {
        let (mut at, mut found) = (address, Vec::new());
        let mut refusals = BTreeSet::new();
        let mut same = None;
        let back = loop {
            let (lea, look) = self.operand(at)?;
            let (right, jump) = self.looked(look)?;
            let here = registers(&lea);
            (*same.get_or_insert(here) == here && (right == 1 || right == 2)).then_some(())?;
            let last = found.last().map(|(last, _)| displacement(&lea) - last);
            last.is_none_or(|step: i64| (1..=4).contains(&step))
                .then_some(())?;
            found.push((displacement(&lea), right));
            (found.len() <= abi::MAX_POINTS).then_some(())?;
            if let Some((back, end)) = self.jump(jump, Mnemonic::Jne) {
                at = end;
                break back;
            }
            let (refusal, end) = self.jump(jump, Mnemonic::Je)?;
            refusals.insert(refusal);
            at = end;
            if let Some((back, end)) = self.jump(at, Mnemonic::Jmp).filter(|_| {
                self.at(at)
                    .is_some_and(|jump| jump.flow_control() == FlowControl::UnconditionalBranch)
            }) {
                at = end;
                break back;
            }
        };
        let position = (at - self.base) as usize;
        let trap = self.bytes.get(position..)?.starts_with(&abi::TRAP_ACCESS);
        (trap && refusals.iter().all(|refusal| *refusal == at)).then_some(Points {
            registers: same?,
            points: found,
            back,
            end: at + 3,
        })
    }

    fn check(&self, address: u64) -> Option<(Kind, u64)> {
        let (lea, mut at) = self.operand(address)?;
        let near = displacement(&lea);
        let (mut start, mut end, mut cold) = (None, 0, None);
        while let Some(compare) = self.shadow(at)
            && compare.mnemonic() == Mnemonic::Cmp
            && compare.op0_kind() == OpKind::Memory
            && compare.op1_register().full_register() == Register::R14
            && compare.op1_register().size() > 1
        {
            let from = near + 2 * displacement(&compare);
            let (to, next) = self.jump(compare.next_ip(), Mnemonic::Jne)?;
            let even = displacement(&compare) % 2 == 0;
            let first = start.is_none();
            start.get_or_insert(from);
            (even && (first || from == end) && *cold.get_or_insert(to) == to).then_some(())?;
            end = from + 2 * compare.op1_register().size() as i64;
            at = next;
        }
        let points = self.points(cold?)?;
        (points.registers == registers(&lea) && points.back == at).then_some(())?;
        // Bytes are covered by two points side by side with the right, or by one that is on them.
        let covered = |rights: &[u8]| {
            let mut best = (0, 0);
            for (number, (first, _)) in points.points.iter().enumerate() {
                let run = points.points[number..]
                    .iter()
                    .take_while(|(_, right)| rights.contains(right));
                if let Some((last, _)) = run.last()
                    && last + 1 - first > best.1 - best.0
                {
                    best = (*first, last + 1);
                }
            }
            (best.0.max(start.unwrap_or(0)), best.1)
        };
        let (read, write) = (covered(&[1, 2]), covered(&[2]));
        let kind = Kind::Check {
            registers: registers(&lea),
            read: (read.0, read.1.min(end - 3)),
            write: (write.0, write.1.min(end - 3)),
            whole: (read.1.min(end), write.1.min(end)),
            near,
            cold: cold?,
        };
        Some((kind, at))
    }

    /// The check of a jump by its distance from a place in this code.
    fn within(&self, address: u64) -> Option<(Kind, u64, Vec<u64>)> {
        let lea = self.at(address)?;
        let near =
            lea.code() == Code::Lea_r64_m && is_r11(&lea) && lea.memory_base() == Register::RIP;
        near.then_some(())?;
        let first = lea.memory_displacement64();
        let sub = self.at(lea.next_ip())?;
        let register = sub.op1_register();
        let bad = [Register::R11, Register::R14, Register::R15, Register::RSP];
        let fits = matches!(sub.code(), Code::Sub_rm64_r64 | Code::Sub_r64_rm64)
            && is_r11(&sub)
            && sub.op1_kind() == OpKind::Register
            && !bad.contains(&register);
        fits.then_some(())?;
        let compare = self.at(sub.next_ip())?;
        let fits = matches!(compare.code(), Code::Cmp_rm64_imm32 | Code::Cmp_rm64_imm8)
            && is_r11(&compare);
        fits.then_some(())?;
        let far = immediate(&compare)?.wrapping_neg();
        let (away, at) = self.jump(compare.next_ip(), Mnemonic::Jbe)?;
        // All that passes: from `first + 1` to `first + far - 1`, with the label's four bytes in front.
        let stop = self.base + self.bytes.len() as u64;
        let room = first >= self.base + 4 && far >= 1 && first.checked_add(far as u64)? <= stop;
        room.then_some(())?;
        let (trap, end) = self.labelled(at, register)?;
        let kind = Kind::Target {
            register,
            own: true,
        };
        Some((kind, end, vec![away, trap]))
    }

    /// `mov`, `add` and `jne` that look for the label in front of a register's address.
    fn labelled(&self, at: u64, register: Register) -> Option<(u64, u64)> {
        let label = self.at(at)?;
        let add = self.at(label.next_ip())?;
        let (trap, behind) = self.jump(add.next_ip(), Mnemonic::Jne)?;
        let fits = label.code() == Code::Mov_r32_imm32
            && label.op0_register() == Register::R11D
            && label.immediate32() == abi::LABEL.wrapping_neg()
            && add.code() == Code::Add_r32_rm32
            && add.op0_register() == Register::R11D
            && add.op1_kind() == OpKind::Memory
            && registers(&add) == (register, Register::None, 1)
            && displacement(&add) == -4
            && add.segment_prefix() == Register::None;
        fits.then_some((trap, behind))
    }

    fn target(&self, address: u64) -> Option<(Kind, u64, Vec<u64>)> {
        let mov = self.at(address)?;
        let register = mov.op1_register();
        let bad = [Register::R11, Register::R14, Register::R15, Register::RSP];
        let fits = matches!(mov.code(), Code::Mov_r64_rm64 | Code::Mov_rm64_r64)
            && is_r11(&mov)
            && mov.op1_kind() == OpKind::Register
            && !bad.contains(&register);
        fits.then_some(())?;
        let (right, jump) = self.looked(self.shifted(mov.next_ip())?)?;
        let (away, end) = self.jump(jump, Mnemonic::Je)?;
        match right {
            8 => Some((
                Kind::Target {
                    register,
                    own: false,
                },
                end,
                vec![away],
            )),
            4 => {
                let (trap, behind) = self.labelled(end, register)?;
                let kind = Kind::Target {
                    register,
                    own: true,
                };
                Some((kind, behind, vec![away, trap]))
            }
            _ => None,
        }
    }

    /// The check that a call is to a function of the module's own: where it ends, and where its jump goes.
    fn near(&self, address: u64) -> Option<(u64, u64)> {
        let mov = self.at(address)?;
        let register = mov.op1_register();
        let bad = [Register::R11, Register::R14, Register::R15, Register::RSP];
        let copies = |mov: &Instruction| {
            matches!(mov.code(), Code::Mov_r64_rm64 | Code::Mov_rm64_r64)
                && is_r11(mov)
                && mov.op1_kind() == OpKind::Register
                && mov.op1_register() == register
        };
        (copies(&mov) && !bad.contains(&register)).then_some(())?;
        let look = self.shadow(self.shifted(mov.next_ip())?)?;
        let map = self.at(look.next_ip())?;
        let reads = look.code() == Code::Movzx_r32_rm16
            && look.op0_register() == Register::R11D
            && look.memory_displacement64() == 0
            && map.code() == Code::Movzx_r32_rm8
            && map.op0_register() == Register::R11D
            && map.segment_prefix() == Register::GS
            && registers(&map) == (Register::R14D, Register::R11D, 1)
            && map.memory_displacement64() == 0;
        reads.then_some(())?;
        let step = |at: u64, code: Code, register: Register, by: i64| {
            let found = self.at(at)?;
            let fits = found.code() == code
                && found.op0_register() == register
                && immediate(&found) == Some(by)
                && found.len() == 4
                // The one encoding of assemblers.
                && matches!(self.bytes[(at - self.base) as usize], 0x41 | 0x49);
            fits.then_some(found.next_ip())
        };
        let at = step(map.next_ip(), Code::And_rm32_imm8, Register::R11D, 12)?;
        let at = step(at, Code::Xor_rm32_imm8, Register::R11D, 12)?;
        let (far, at) = self.jump(at, Mnemonic::Jne)?;
        let again = self.at(at).filter(copies)?;
        let at = step(again.next_ip(), Code::And_rm64_imm8, Register::R11, -16)?;
        let at = step(at, Code::Add_rm64_imm8, Register::R11, 32)?;
        Some((at, far))
    }

    fn gate(&self, address: u64, module: &Module) -> Option<(u64, u64)> {
        let (first, lea) = (self.at(address)?, self.at(address + 4)?);
        let jump = self.at(address + 11)?;
        let fits = first.code() == Code::Endbr64
            && lea.code() == Code::Lea_r64_m
            && is_r11(&lea)
            && lea.memory_base() == Register::RIP
            && lea.len() == 7
            && self.bytes[(address - self.base) as usize..].get(4) == Some(&0x4c)
            && jump.code() == Code::Jmp_rm64
            && jump.op0_kind() == OpKind::Memory
            && jump.memory_base() == Register::RIP
            && jump.len() == 6
            && jump.memory_displacement64() == module.slots().start + 8 * abi::SLOT_ENTER;
        (fits && address.is_multiple_of(16)).then_some((lea.memory_displacement64(), address + 17))
    }
}

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
    (0..items.len())
        .all(|number| judge.item(number).is_some())
        .then_some(())?;
    labels(&reader, &items).then_some(())
}

fn read(reader: &Reader, module: &Module) -> Option<Vec<Item>> {
    let mut items: Vec<Item> = Vec::new();
    let (mut at, stop) = (reader.base, reader.base + reader.bytes.len() as u64);
    let mut forward: BTreeSet<u64> = BTreeSet::new();
    let mut padding: Option<u64> = None;
    let mut closed: Vec<(u64, u64)> = Vec::new();
    while at < stop {
        let first = reader.at(at)?;
        let mut goes = Vec::new();
        if forward.contains(&at) {
            padding = None;
        }
        let mut dead = None;
        let (kind, end) = if let Some((body, end)) = reader.gate(at, module) {
            goes.push(body);
            dead = Some(end);
            (Kind::Gate { body }, end)
        } else if let Some((kind, end)) = reader.check(at) {
            (kind, end)
        } else if let Some(points) = reader.points(at) {
            closed.extend(padding.map(|from| (from, at)));
            dead = Some(points.end);
            (
                Kind::Points {
                    falls: padding.is_none(),
                },
                points.end,
            )
        } else if let Some((kind, end, away)) = reader.target(at).or_else(|| reader.within(at)) {
            goes = away;
            (kind, end)
        } else if let Some((end, far)) = reader.near(at) {
            goes.push(far);
            (Kind::Near, end)
        } else {
            let position = (at - reader.base) as usize;
            let label = reader.bytes[position..].starts_with(&abi::LABEL_NOP);
            let end = first.next_ip();
            match first.flow_control() {
                FlowControl::ConditionalBranch | FlowControl::Call => {
                    goes.push(first.near_branch_target());
                }
                FlowControl::UnconditionalBranch => {
                    goes.push(first.near_branch_target());
                    dead = Some(end);
                }
                FlowControl::Return | FlowControl::Exception | FlowControl::IndirectBranch => {
                    dead = Some(end)
                }
                _ => {}
            }
            let idle = matches!(
                first.mnemonic(),
                Mnemonic::Nop | Mnemonic::Pause | Mnemonic::Int3
            );
            if idle && !label {
                dead = padding;
            }
            let memory = first.op_count() > 0 && first.op0_kind() == OpKind::Memory;
            let indirect = matches!(
                first.flow_control(),
                FlowControl::IndirectBranch | FlowControl::IndirectCall
            );
            if indirect && memory {
                let slot = first
                    .memory_displacement64()
                    .checked_sub(module.slots().start)?;
                let inside = module.slots().contains(&first.memory_displacement64());
                (first.memory_base() == Register::RIP && inside && slot % 8 == 0).then_some(())?;
                ((2..=4).contains(&(slot / 8)) || slot / 8 >= 16).then_some(())?;
                (Kind::Slot, end)
            } else if label {
                (Kind::Label, end)
            } else {
                (Kind::Plain, end)
            }
        };
        forward.extend(&goes);
        padding = dead;
        items.push(Item {
            kind,
            at,
            first,
            goes,
        });
        at = end;
    }
    // Nothing goes back to padding in front of points.
    let back = |target: &u64| closed.iter().any(|(from, to)| (from..to).contains(&target));
    let bad = items.iter().flat_map(|item| &item.goes).any(back);
    (at == stop && !bad).then_some(items)
}

struct Judge<'a> {
    module: &'a Module,
    items: &'a [Item],
    targets: &'a BTreeSet<u64>,
}

fn written(instruction: &Instruction) -> Vec<Register> {
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(instruction);
    let used = info.used_registers().iter();
    let written = used.filter(|used| !matches!(used.access(), OpAccess::Read | OpAccess::CondRead));
    written
        .map(|used| used.register().full_register())
        .collect()
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

fn has_memory(instruction: &Instruction) -> bool {
    (0..instruction.op_count()).any(|n| instruction.op_kind(n) == OpKind::Memory)
}

/// Whether an operand has an address of 32 bits.
fn is_narrow(instruction: &Instruction) -> bool {
    let registers = [instruction.memory_base(), instruction.memory_index()];
    let narrow = |register: &Register| *register != Register::None && register.size() == 4;
    registers.iter().any(narrow)
        || instruction.memory_displ_size() == 4 && registers == [Register::None; 2]
}

/// What an instruction leaves in a register at most.
fn at_most(instruction: &Instruction, register: Register) -> Option<i64> {
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

fn is_padding(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Nop
}

/// A number added to a register other than the data stack pointer, and which one.
fn constant(instruction: &Instruction) -> Option<(Register, i64)> {
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

/// Whether an access faults unless its address is a multiple of 16.
fn aligned(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(
        instruction.mnemonic(),
        Movaps
            | Movapd
            | Movdqa
            | Movntps
            | Movntpd
            | Movntdq
            | Vmovaps
            | Vmovapd
            | Vmovdqa
            | Vmovntps
            | Vmovntpd
            | Vmovntdq
    )
}

/// A constant step of the data stack pointer.
fn step(instruction: &Instruction) -> Option<i64> {
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

fn immediate(instruction: &Instruction) -> Option<i64> {
    instruction
        .try_immediate(1)
        .ok()
        .map(|immediate| immediate as i64)
}

/// The register that is `xor`ed to the data stack pointer.
fn xor(instruction: &Instruction) -> Option<Register> {
    let whole = matches!(instruction.code(), Code::Xor_rm64_r64 | Code::Xor_r64_rm64);
    let to = instruction.op_count() > 0 && instruction.op0_register() == Register::R15;
    let register = instruction.op1_kind() == OpKind::Register;
    (whole && to && register).then(|| instruction.op1_register())
}

/// `and` of a mask below 8 MiB to 32 bits of `register`.
fn small(instruction: &Instruction, register: Register) -> bool {
    let code = matches!(
        instruction.code(),
        Code::And_rm32_imm32 | Code::And_rm32_imm8 | Code::And_EAX_imm32
    );
    let to = instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().full_register() == register;
    code && to
        && immediate(instruction).is_some_and(|mask| (0..8 << 20).contains(&i64::from(mask as i32)))
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
