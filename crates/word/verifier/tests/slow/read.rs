//! From bytes to instructions and sequences.

use super::facts::{displacement, immediate, is_r11, registers};
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};
use mullion_decoder::decode::{self, LONGEST, WINDOW};
use mullion_word_abi as abi;
use mullion_word_verifier::Module;
use std::collections::BTreeSet;

/// Base, index and scale.
pub(super) type Registers = (Register, Register, u32);

pub(super) enum Kind {
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
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) at: u64,
    pub(super) first: Instruction,
    /// Where it goes, as far as branches must be allowed.
    pub(super) goes: Vec<u64>,
}

pub(super) struct Points {
    pub(super) registers: Registers,
    /// Displacement and right of each.
    pub(super) points: Vec<(i64, u8)>,
    pub(super) back: u64,
    pub(super) end: u64,
}

pub(super) struct Reader<'a> {
    pub(super) base: u64,
    pub(super) bytes: &'a [u8],
}

impl Reader<'_> {
    pub(super) fn at(&self, address: u64) -> Option<Instruction> {
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

    pub(super) fn shadow(&self, address: u64) -> Option<Instruction> {
        let found = self.at(address)?;
        let shape = registers(&found) == (Register::R11, Register::R11, 1);
        (found.segment_prefix() == Register::GS && shape).then_some(found)
    }

    pub(super) fn shifted(&self, address: u64) -> Option<u64> {
        let shr = self.at(address)?;
        let fits = shr.code() == Code::Shr_rm64_imm8 && is_r11(&shr) && shr.immediate8() == 2;
        // The one encoding of assemblers.
        let position = (address - self.base) as usize;
        let plain = self.bytes[position..].starts_with(&[0x49]);
        (fits && shr.len() == 4 && plain).then_some(shr.next_ip())
    }

    /// `not` and `sar`, in the one encoding of assemblers.
    fn lined(&self, address: u64) -> Option<u64> {
        let not = self.at(address)?;
        let sar = self.at(not.next_ip())?;
        let fits = not.code() == Code::Not_rm64
            && is_r11(&not)
            && sar.code() == Code::Sar_rm64_imm8
            && is_r11(&sar)
            && sar.immediate8() == 6;
        let plain = |at: u64| self.bytes[(at - self.base) as usize..].starts_with(&[0x49]);
        let short = not.len() == 3 && sar.len() == 4;
        (fits && short && plain(address) && plain(not.next_ip())).then_some(sar.next_ip())
    }

    pub(super) fn jump(&self, address: u64, wanted: Mnemonic) -> Option<(u64, u64)> {
        let jump = self.at(address)?;
        (jump.mnemonic() == wanted).then_some((jump.near_branch_target(), jump.next_ip()))
    }

    /// `movzwl` and `testb`.
    pub(super) fn looked(&self, address: u64) -> Option<(u8, u64)> {
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

    pub(super) fn operand(&self, address: u64) -> Option<(Instruction, u64)> {
        let lea = self.address(address)?;
        Some((lea, self.shifted(lea.next_ip())?))
    }

    fn address(&self, address: u64) -> Option<Instruction> {
        let lea = self.at(address)?;
        let bad = [Register::R11, Register::R14, Register::RSP, Register::RIP];
        let (base, index, _) = registers(&lea);
        let fits = lea.code() == Code::Lea_r64_m
            && is_r11(&lea)
            && !bad.contains(&base)
            && !bad.contains(&index)
            && index != Register::R15;
        fits.then_some(lea)
    }

    pub(super) fn points(&self, address: u64) -> Option<Points> {
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

    pub(super) fn check(&self, address: u64) -> Option<(Kind, u64)> {
        let lea = self.address(address)?;
        let words = self.shifted(lea.next_ip());
        let grain = if words.is_some() { 4 } else { 64 };
        let mut at = words.or_else(|| self.lined(lea.next_ip()))?;
        let near = displacement(&lea);
        let (mut start, mut end, mut cold) = (None, 0, None);
        while let Some(compare) = self.shadow(at)
            && compare.mnemonic() == Mnemonic::Cmp
            && compare.op0_kind() == OpKind::Memory
            && compare.op1_register().full_register() == Register::R14
            && compare.op1_register().size() > 1
        {
            let count = compare.op1_register().size() as i64 / 2;
            // A line lies in front of the one below it.
            let from = match grain {
                4 => near + 2 * displacement(&compare),
                _ => near + 64 * (1 - count) - 32 * displacement(&compare),
            };
            let (to, next) = self.jump(compare.next_ip(), Mnemonic::Jne)?;
            let even = displacement(&compare) % 2 == 0;
            let first = start.is_none();
            start.get_or_insert(from);
            (even && (first || from == end) && *cold.get_or_insert(to) == to).then_some(())?;
            end = from + grain * count;
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
            // At worst the operand's last bit in the first of them is the last one; at a multiple of four, the last word's.
            read: (read.0, read.1.min(end - grain + 1)),
            write: (write.0, write.1.min(end - grain + 1)),
            whole: (read.1.min(end - grain + 4), write.1.min(end - grain + 4)),
            near,
            cold: cold?,
        };
        Some((kind, at))
    }

    /// The check of a jump by its distance from a place in this code.
    pub(super) fn within(&self, address: u64) -> Option<(Kind, u64, Vec<u64>)> {
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
    pub(super) fn labelled(&self, at: u64, register: Register) -> Option<(u64, u64)> {
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

    pub(super) fn target(&self, address: u64) -> Option<(Kind, u64, Vec<u64>)> {
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
    pub(super) fn near(&self, address: u64) -> Option<(u64, u64)> {
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

    pub(super) fn gate(&self, address: u64, module: &Module) -> Option<(u64, u64)> {
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

pub(super) fn read(reader: &Reader, module: &Module) -> Option<Vec<Item>> {
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
                ((2..=5).contains(&(slot / 8)) || slot / 8 >= 16).then_some(())?;
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
