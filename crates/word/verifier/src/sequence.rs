//! The sequences of the form: checks, the points behind them, checks of branches, gates.
//!
//! Each is recognised as a whole from its bytes, without what stands in front of it. So whoever meets one
//! twice, by a branch and in the order of addresses, finds the same.
//!
//! ```text
//!   check   lea  shr  ( cmp  jne )+                        the access behind it relies on it
//!   lines   lea  not  sar  ( cmp  jne )+                   the same, of 64 bytes at once
//!   points  ( lea  shr  movzwl  testb  je )+ jmp trap      the last je and jmp may be one jne
//!   enter   mov  shr  movzwl  testb  je                    an indirect call or jump relies on it
//!   label   mov  shr  movzwl  testb  je  mov  add  jne     an indirect jump relies on it
//!   within  lea  sub  cmp  jbe  mov  add  jne              the same, of labels in the same code
//!   near    mov  shr  movzwl  movzbl  and  xor  jne  mov  and  add     a call of the module's own function relies on it
//!   gate    endbr64  lea  jmp                              17 bytes
//! ```

use mullion_decoder::decode::{self, Instruction, LONGEST, NONE, R14, R15, RIP, RSP, WINDOW};
use mullion_decoder::row::{self, Kind};
use mullion_word_abi as abi;
use mullion_word_abi::right;
use mullion_word_rules::Rule;
use std::ops::Range;

/// The scratch register.
pub(crate) const R11: u8 = 11;
/// `shr $2, %r11`.
const SHR: [u8; 4] = [0x49, 0xc1, 0xeb, 0x02];
/// `not %r11` and `sar $6, %r11`: minus the line's number, and one less.
const LINE: [u8; 7] = [0x49, 0xf7, 0xd3, 0x49, 0xc1, 0xfb, 0x06];
const _: () = assert!(abi::LINE == 1 << LINE[6]);
/// `and $12, %r11d` and `xor $12, %r11d`: zero if both rights are there, to execute and to enter.
const BOTH: [u8; 8] = [0x41, 0x83, 0xe3, 0x0c, 0x41, 0x83, 0xf3, 0x0c];
const _: () = assert!(right::EXECUTE | right::ENTER == 0x0c);
/// `and $-16, %r11` and `add $32, %r11`: from anywhere in a gate's first word to the body behind it.
const BEHIND: [u8; 8] = [0x49, 0x83, 0xe3, 0xf0, 0x49, 0x83, 0xc3, 0x20];
const _: () = assert!(abi::GATE_ALIGNMENT == 16 && abi::GATE_TO_BODY == 32);

/// Code to look at: its bytes, and the address of the first.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) start: u32,
    pub(crate) bytes: &'a [u8],
}

/// An operand in memory, without segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    pub(crate) base: u8,
    pub(crate) index: u8,
    pub(crate) scale: u8,
    pub(crate) displacement: i32,
}

impl Operand {
    #[inline]
    pub(crate) fn of(instruction: &Instruction) -> Self {
        Self {
            base: instruction.base,
            index: instruction.index,
            // Without an index it says nothing.
            scale: if instruction.index == NONE {
                0
            } else {
                instruction.scale
            },
            displacement: instruction.displacement,
        }
    }

    /// The same but for the displacement.
    #[inline]
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        (self.base, self.index, self.scale) == (other.base, other.index, other.scale)
    }

    /// Whether a check may have it.
    fn is_checkable(&self) -> bool {
        ![R11, R14, RSP, RIP].contains(&self.base) && ![R11, R14, R15].contains(&self.index)
    }
}

/// Of what the numbers are that a check compares.
#[derive(Clone, Copy)]
enum Grain {
    Word,
    Line,
}

/// The compares of a check.
#[derive(Clone, Debug)]
pub(crate) struct Compares {
    pub(crate) operand: Operand,
    /// The bytes that they cover, as displacements from base and index.
    pub(crate) covered: Range<i64>,
    /// Where the jumps go.
    pub(crate) cold: i64,
    /// Behind the first compare.
    pub(crate) looked: usize,
    pub(crate) end: usize,
}

/// What a check's jump goes to.
#[derive(Clone, Debug)]
pub(crate) struct Points {
    pub(crate) operand: Operand,
    /// The bytes that are looked at for either right, as displacements.
    pub(crate) read: Range<i64>,
    /// ... and for the right to write.
    pub(crate) write: Range<i64>,
    /// Where the last jump goes.
    pub(crate) back: i64,
    /// Position of the trap.
    pub(crate) trap: usize,
    pub(crate) end: usize,
}

/// A check of a branch's target.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The register that has it.
    pub(crate) register: u8,
    /// Whether it is one within the domain's own code; otherwise it may be entered.
    pub(crate) own: bool,
    /// Where the jumps go.
    pub(crate) away: [Option<i64>; 2],
    /// Behind the look at the shadow.
    pub(crate) looked: usize,
    pub(crate) end: usize,
}

/// A check that a register has the address of one of the module's own gates. The scratch register has that of its body.
#[derive(Clone, Debug)]
pub(crate) struct Near {
    /// Where the jump goes.
    pub(crate) far: i64,
    /// Behind the look at the shadow.
    pub(crate) looked: usize,
    pub(crate) end: usize,
}

/// What a position of the code was taken for.
pub(crate) enum Sequence {
    Near(Near),
    Compares(Compares),
    Points(Points),
    Target(Target),
}

/// A rule that is broken at a position.
pub(crate) type Broken = (usize, Rule);

impl<'a> View<'a> {
    /// The bytes from `position` on.
    #[inline]
    pub(crate) fn rest(&self, position: usize) -> &'a [u8] {
        self.bytes.get(position..).unwrap_or(&[])
    }

    pub(crate) fn at(&self, position: usize) -> u32 {
        self.start.saturating_add(position as u32)
    }

    /// The position of an address, if it is in this code.
    #[inline]
    pub(crate) fn position(&self, address: i64) -> Option<usize> {
        let position = usize::try_from(address.checked_sub(i64::from(self.start))?).ok()?;
        (position < self.bytes.len()).then_some(position)
    }

    /// The instruction at `position`.
    #[inline]
    pub(crate) fn decode(&self, position: usize) -> Result<Instruction, Rule> {
        let rest = self.rest(position);
        match rest.first_chunk::<WINDOW>() {
            Some(window) => decode::decode_word((window, LONGEST)),
            None => {
                let mut window = [0; WINDOW];
                let copied = window.iter_mut().zip(rest);
                copied.for_each(|(to, from)| *to = *from);
                decode::decode_word((&window, rest.len().min(LONGEST)))
            }
        }
        .map_err(Rule::from)
    }

    fn branch(&self, instruction: &Instruction, position: usize) -> i64 {
        instruction.branch(self.rest(position), self.at(position))
    }

    fn immediate(&self, instruction: &Instruction, position: usize) -> i64 {
        instruction.immediate(self.rest(position))
    }

    /// A conditional jump of the condition `nibble`, and where it goes.
    fn conditional(&self, position: usize, nibble: u8) -> Option<(Instruction, i64)> {
        let jump = self.decode(position).ok()?;
        let fits = jump.row.kind == Kind::Conditional && jump.opcode & 15 == nibble;
        fits.then(|| (jump, self.branch(&jump, position)))
    }

    /// The sequence at `position`, where `first` stands, if it is one. An error: it looks like one, and is not.
    #[inline]
    pub(crate) fn sequence(
        &self,
        position: usize,
        first: &Instruction,
    ) -> Option<Result<Sequence, Broken>> {
        let shr = position + usize::from(first.length);
        if self.rest(shr).starts_with(&LINE) {
            let look = self.decode(shr + LINE.len()).ok()?;
            let found = first.row.kind == Kind::Lea && is_compare(&look) && !look.narrow;
            return found.then(|| {
                self.compares(position, first, Grain::Line)
                    .map(Sequence::Compares)
            });
        }
        if !self.rest(shr).starts_with(&SHR) {
            let near = first.row.kind == Kind::Lea && first.base == RIP;
            return self
                .within(position, first)
                .filter(|_| near)
                .map(|found| found.map(Sequence::Target));
        }
        let third = shr + SHR.len();
        let look = self.decode(third).ok()?;
        if !look.gs || look.narrow {
            return None;
        }
        let lea = first.row.kind == Kind::Lea;
        if is_compare(&look) {
            return lea.then(|| {
                self.compares(position, first, Grain::Word)
                    .map(Sequence::Compares)
            });
        }
        if !is_look(&look) {
            return None;
        }
        if lea {
            return Some(self.points(position).map(Sequence::Points));
        }
        let looked = third + usize::from(look.length);
        Some(match self.decode(looked) {
            Ok(map) if is_map_read(&map) => {
                let at = looked + usize::from(map.length);
                self.near(position, first, looked, at).map(Sequence::Near)
            }
            _ => self.target(position, first).map(Sequence::Target),
        })
    }

    fn compares(
        &self,
        position: usize,
        lea: &Instruction,
        grain: Grain,
    ) -> Result<Compares, Broken> {
        let operand = Operand::of(lea);
        if !operand.is_checkable() {
            return Err((position, Rule::CheckOperand));
        }
        let (shift, bytes) = match grain {
            Grain::Word => (SHR.len(), abi::WORD as i64),
            Grain::Line => (LINE.len(), abi::LINE as i64),
        };
        let mut end = position + usize::from(lea.length) + shift;
        let mut found: Option<Compares> = None;
        let near = i64::from(operand.displacement);
        while let Ok(compare) = self.decode(end)
            && is_compare(&compare)
        {
            let (distance, count) = (i64::from(compare.displacement), i64::from(compare.size) / 2);
            let jump_at = end + usize::from(compare.length);
            let broken = Err((end, Rule::CheckForm));
            if distance % 2 != 0 {
                return broken;
            }
            let Some((jump, cold)) = self.conditional(jump_at, 5) else {
                return Err((jump_at, Rule::CheckForm));
            };
            // Which of them is the first one: lines lie the other way around.
            let first = match grain {
                Grain::Word => distance / 2,
                Grain::Line => 1 - count - distance / 2,
            };
            // The last bytes are lost: the operand's address need not be where a word or a line begins.
            let start = near + bytes * first;
            let covered = start..start + bytes * (count - 1) + 1;
            end = jump_at + usize::from(jump.length);
            match &mut found {
                None => {
                    found = Some(Compares {
                        operand,
                        covered,
                        cold,
                        looked: jump_at,
                        end,
                    });
                }
                Some(first) => {
                    if first.covered.end + bytes - 1 != covered.start || first.cold != cold {
                        return broken;
                    }
                    first.covered.end = covered.end;
                    first.end = end;
                }
            }
        }
        found.ok_or((position, Rule::CheckForm))
    }

    /// The points at `position`.
    pub(crate) fn points(&self, position: usize) -> Result<Points, Broken> {
        let mut at = position;
        let mut found: Option<Points> = None;
        // The longest run of points with the right to write, and the present one.
        let mut run: Range<i64> = 0..0;
        let mut refusals: Option<i64> = None;
        // Each check reads its points, so that their number must be bounded.
        for number in 0.. {
            if number == abi::MAX_POINTS {
                return Err((at, Rule::ColdPoints));
            }
            let form = |at| (at, Rule::ColdForm);
            let lea = self.decode(at).map_err(|_| form(at))?;
            if lea.row.kind != Kind::Lea || lea.size != 8 || lea.reg != R11 {
                return Err(form(at));
            }
            let operand = Operand::of(&lea);
            if !operand.is_checkable() {
                return Err((at, Rule::CheckOperand));
            }
            let shr = at + usize::from(lea.length);
            if !self.rest(shr).starts_with(&SHR) {
                return Err(form(shr));
            }
            let look = shr + SHR.len();
            let (looked, right, test) = self.look(look).ok_or(form(look))?;
            let writes = match right {
                right::READ => false,
                right::WRITE => true,
                _ => return Err(form(looked)),
            };
            let point = i64::from(operand.displacement);
            let points = match &mut found {
                None => found.insert(Points {
                    operand,
                    read: point..point + 1,
                    write: 0..0,
                    back: 0,
                    trap: 0,
                    end: 0,
                }),
                Some(points) => {
                    if !points.operand.is_beside(&operand) {
                        return Err((at, Rule::ColdOperand));
                    }
                    let step = point - (points.read.end - 1);
                    if !(1..=4).contains(&step) {
                        return Err((at, Rule::ColdPoints));
                    }
                    points.read.end = point + 1;
                    points
                }
            };
            run = match writes {
                true if run.is_empty() => point..point + 1,
                true => run.start..point + 1,
                false => 0..0,
            };
            if run.end - run.start > points.write.end - points.write.start {
                points.write = run.clone();
            }
            at = test;
            if let Some((jump, back)) = self.conditional(at, 5) {
                points.back = back;
                at += usize::from(jump.length);
                break;
            }
            let (jump, refusal) = self.conditional(at, 4).ok_or(form(at))?;
            if refusals.is_some_and(|other| other != refusal) {
                return Err(form(at));
            }
            refusals = Some(refusal);
            at += usize::from(jump.length);
            if let Ok(jump) = self.decode(at)
                && jump.row.kind == Kind::Jump
            {
                points.back = self.branch(&jump, at);
                at += usize::from(jump.length);
                break;
            }
        }
        let trap = i64::from(self.at(at));
        if !self.rest(at).starts_with(&abi::TRAP_ACCESS)
            || refusals.is_some_and(|refusal| refusal != trap)
        {
            return Err((at, Rule::ColdForm));
        }
        let mut points = found.ok_or((position, Rule::ColdForm))?;
        points.trap = at;
        points.end = at + abi::TRAP_ACCESS.len();
        Ok(points)
    }

    /// `movzwl` and `testb` at `position`: where each ends, and the right that is tested for.
    fn look(&self, position: usize) -> Option<(usize, u8, usize)> {
        let look = self.decode(position).ok()?;
        let tested = position + usize::from(look.length);
        let test = self.decode(tested).ok()?;
        let map = test.gs && test.narrow && (test.base, test.index) == (R14, R11);
        let fits = is_look(&look)
            && map
            && test.plane == 0
            && test.opcode == 0xf6
            && test.reg & 7 == 0
            && test.scale == 0
            && test.displacement == 0;
        let right = self.immediate(&test, tested) as u8;
        fits.then_some((tested, right, tested + usize::from(test.length)))
    }

    /// What a move to the scratch register takes.
    fn pointer(position: usize, mov: &Instruction) -> Result<u8, Broken> {
        let register = if mov.opcode == 0x8b { mov.rm } else { mov.reg };
        match [R11, R14, R15, RSP].contains(&register) {
            true => Err((position, Rule::CheckOperand)),
            false => Ok(register),
        }
    }

    /// The rest of a call's check, behind the read of the map, which ends at `at`.
    fn near(
        &self,
        position: usize,
        mov: &Instruction,
        looked: usize,
        at: usize,
    ) -> Result<Near, Broken> {
        let register = Self::pointer(position, mov)?;
        let form = |at| (at, Rule::CheckForm);
        if !self.rest(at).starts_with(&BOTH) {
            return Err(form(at));
        }
        let jump_at = at + BOTH.len();
        let (jump, far) = self.conditional(jump_at, 5).ok_or(form(jump_at))?;
        let again = jump_at + usize::from(jump.length);
        let mov = self.decode(again).map_err(|_| form(again))?;
        let copies = mov.row.kind == Kind::Move && mov.size == 8 && !mov.memory;
        let (from, to) = match mov.opcode {
            0x8b => (mov.rm, mov.reg),
            _ => (mov.reg, mov.rm),
        };
        if !copies || (from, to) != (register, R11) {
            return Err(form(again));
        }
        let behind = again + usize::from(mov.length);
        if !self.rest(behind).starts_with(&BEHIND) {
            return Err(form(behind));
        }
        Ok(Near {
            far,
            looked,
            end: behind + BEHIND.len(),
        })
    }

    fn target(&self, position: usize, mov: &Instruction) -> Result<Target, Broken> {
        let register = Self::pointer(position, mov)?;
        let look = position + usize::from(mov.length) + SHR.len();
        let form = |at| (at, Rule::CheckForm);
        let (looked, right, jump_at) = self.look(look).ok_or(form(look))?;
        let (jump, away) = self.conditional(jump_at, 4).ok_or(form(jump_at))?;
        let end = jump_at + usize::from(jump.length);
        let entered = Target {
            register,
            own: false,
            away: [Some(away), None],
            looked,
            end,
        };
        match right {
            right::ENTER => Ok(entered),
            right::EXECUTE => self.label(entered),
            _ => Err(form(looked)),
        }
    }

    /// The check that a jump is to a label of this very code, by the distance: `lea`, `sub`, `cmp`, `jbe`, and the label.
    fn within(&self, position: usize, lea: &Instruction) -> Option<Result<Target, Broken>> {
        let end = position + usize::from(lea.length);
        let first = i64::from(self.at(end)) + i64::from(lea.displacement);
        let sub = self.decode(end).ok()?;
        let (to, register) = match sub.opcode {
            0x29 => (sub.rm, sub.reg),
            0x2b => (sub.reg, sub.rm),
            _ => return None,
        };
        if sub.plane != 0 || sub.size != 8 || sub.memory || to != R11 {
            return None;
        }
        let compare_at = end + usize::from(sub.length);
        let compare = self.decode(compare_at).ok()?;
        if !matches!(compare.opcode, 0x81 | 0x83)
            || compare.plane != 0
            || compare.memory
            || (compare.reg & 7, compare.rm, compare.size) != (7, R11, 8)
        {
            return None;
        }
        // `first` less the target is above this, without signs: the target is behind `first`, and less than so far.
        let length = -self.immediate(&compare, compare_at);
        let jump_at = compare_at + usize::from(compare.length);
        let (jump, away) = self.conditional(jump_at, 6)?;
        let start = i64::from(self.start);
        let stop = start + self.bytes.len() as i64;
        if length < 1 || first < start + 4 || first + length > stop {
            return Some(Err((position, Rule::CheckForm)));
        }
        if [R11, R14, R15, RSP].contains(&register) {
            return Some(Err((end, Rule::CheckOperand)));
        }
        let end = jump_at + usize::from(jump.length);
        let found = self.label(Target {
            register,
            own: true,
            away: [Some(away), None],
            looked: end,
            end,
        });
        Some(found)
    }

    /// The rest of a jump's check: the label.
    fn label(&self, target: Target) -> Result<Target, Broken> {
        let mut at = target.end;
        let form = |at| (at, Rule::CheckForm);
        let mov = self.decode(at).map_err(|_| form(at))?;
        let complement = self.immediate(&mov, at) as u32 == abi::LABEL.wrapping_neg();
        let into = mov.row.kind == Kind::MoveImmediate && mov.rm == R11 && mov.size == 4;
        if !into || !complement {
            return Err(form(at));
        }
        at += usize::from(mov.length);
        let add = self.decode(at).map_err(|_| form(at))?;
        let operand = Operand {
            base: target.register,
            index: NONE,
            scale: 0,
            displacement: -4,
        };
        let sum = add.row.kind == Kind::AddFrom && add.reg == R11 && add.size == 4;
        if !sum || !add.memory || add.gs || Operand::of(&add) != operand {
            return Err(form(at));
        }
        at += usize::from(add.length);
        let (jump, away) = self.conditional(at, 5).ok_or(form(at))?;
        let [first, _] = target.away;
        Ok(Target {
            own: true,
            away: [first, Some(away)],
            end: at + usize::from(jump.length),
            ..target
        })
    }

    /// A gate at `position`: where its body is, and which address its jump reads.
    pub(crate) fn gate(&self, position: usize) -> Option<(i64, i64)> {
        let gate: &[u8; abi::GATE_BYTES as usize] = self.rest(position).first_chunk()?;
        let (first, rest) = gate.split_first_chunk()?;
        let (lea, rest) = rest.split_first_chunk()?;
        let (body, rest) = rest.split_first_chunk()?;
        let (jump, slot) = rest.split_first_chunk()?;
        let fits = *first == abi::ENDBR64 && *lea == [0x4c, 0x8d, 0x1d] && *jump == [0xff, 0x25];
        let slot: [u8; 4] = slot.first_chunk().copied()?;
        let end = i64::from(self.at(position)) + abi::GATE_BYTES as i64;
        let relative = |bytes| i64::from(i32::from_le_bytes(bytes));
        let aligned = u64::from(self.at(position)).is_multiple_of(abi::GATE_ALIGNMENT);
        (fits && aligned).then(|| (end - 6 + relative(*body), end + relative(slot)))
    }
}

/// `cmp` of the own number with the shadow at `D(%r11,%r11)`.
fn is_compare(instruction: &Instruction) -> bool {
    instruction.plane == 0
        && instruction.opcode == 0x39
        && instruction.reg == R14
        && is_shadow(instruction)
}

/// `movzwl %gs:(%r11,%r11), %r11d`.
fn is_look(instruction: &Instruction) -> bool {
    usize::from(instruction.plane) == row::plane(1, 0)
        && instruction.opcode == 0xb7
        && instruction.reg == R11
        && instruction.size == 4
        && instruction.displacement == 0
        && is_shadow(instruction)
}

/// `movzbl %gs:(%r14d,%r11d), %r11d`.
fn is_map_read(instruction: &Instruction) -> bool {
    usize::from(instruction.plane) == row::plane(1, 0)
        && instruction.opcode == 0xb6
        && instruction.reg == R11
        && instruction.size == 4
        && instruction.memory
        && instruction.gs
        && instruction.narrow
        && (instruction.base, instruction.index, instruction.scale) == (R14, R11, 0)
        && instruction.displacement == 0
}

fn is_shadow(instruction: &Instruction) -> bool {
    instruction.memory
        && instruction.gs
        && !instruction.narrow
        && (instruction.base, instruction.index, instruction.scale) == (R11, R11, 0)
}

/// Moves of whole vectors that fault unless their address is a multiple of 16 at least, whatever `%mxcsr` says.
pub(crate) fn is_aligned(instruction: &Instruction) -> bool {
    let plane = usize::from(instruction.plane);
    let floats = [
        row::plane(1, 0),
        row::plane(1, 1),
        row::plane(4, 0),
        row::plane(4, 1),
    ];
    let integers = [row::plane(1, 1), row::plane(4, 1)];
    match instruction.opcode {
        // movaps, movapd
        0x28 | 0x29 => floats.contains(&plane),
        // movdqa
        0x6f | 0x7f => integers.contains(&plane),
        _ => false,
    }
}
