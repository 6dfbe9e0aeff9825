//! The virtual stack pointer: how far each instruction has moved it since the
//! entry of its function, and where `%r15` stands beside it.
//!
//! `V` is what `%rsp` was in the source, `depth` how far it has been lowered
//! since the entry, `delta` is `%r15 - V`. At the ends of straight lines
//! `delta` is 8 at depth 0 and 0 elsewhere (`docs/window.md`, "Calling
//! convention"). Within a straight line, steps of one direction are taken all at
//! once by the first of them. So pushes and pops become plain moves.
//!
//! A function in which that is not certain everywhere is *unsettled*. Paths that meet do not agree, call frame
//! information says something else, or it is left at another depth. There `delta` is 0 from its first instruction to
//! its last, whatever the depth, and `%r15` moves with each move of the source. Only where an indirect jump may
//! arrive, which may come from another function, and at entries and ends is `delta` 8. So nothing of the analysis is
//! relied on.

use crate::cfi::{Cfa, DWARF_RBP, DWARF_RSP};
use crate::operand::{Operand, integer, number};
use crate::refusal::{Reason, Refusal};
use crate::table::Class;
use crate::unit::{Instruction, Position, Unit};
use std::collections::{HashMap, HashSet};

/// What is known at one point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    /// `None` once it cannot be known (`alloca`): it is not 0 then.
    depth: Option<i64>,
    /// If `%rbp` holds the virtual stack pointer of some depth, that depth.
    frame: Option<i64>,
}

const ENTRY: State = State {
    depth: Some(0),
    frame: None,
};

const UNKNOWN: State = State {
    depth: None,
    frame: None,
};

/// What an instruction does to the virtual stack pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Move {
    None,
    /// Lowered by a constant.
    Step(i64),
    /// Written; the new depth, if known.
    Set(Option<i64>),
}

/// What to emit for an instruction's effect on the stack pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Plan {
    /// `%r15 - V` before the instruction, and before `lead`, but behind `enter`.
    pub(crate) delta: i64,
    /// To be added to `%r15` first of all; counted in `delta`.
    pub(crate) enter: i64,
    /// To be added in front of a branch that leaves the function, or may.
    pub(crate) leave: i64,
    /// To be added behind the instruction, where control goes on to such a place.
    pub(crate) fall: i64,
    /// To be added to `%r15` before the instruction; its memory operands see `delta + lead`.
    pub(crate) lead: i64,
    /// `%r15 - V` behind it.
    pub(crate) after: i64,
    /// It moves the stack pointer by a constant; how far it lowers it.
    pub(crate) step: Option<i64>,
    /// Its depth is not known.
    pub(crate) unknown: bool,
    /// `%rbp - V` before the instruction, if known.
    pub(crate) frame: Option<i64>,
    /// Its function is unsettled.
    pub(crate) unsettled: bool,
}

/// Plans the whole file.
pub(crate) fn plan(unit: &Unit<'_>, refusals: &mut Vec<Refusal>) -> Vec<Plan> {
    let (states, mut unsettled) = depths(unit, refusals);
    unsettled.extend(doubtful(unit, &states));
    let unused = unused_frames(unit, &states);
    let gates = gates(unit);
    let mut plans = vec![Plan::default(); unit.instructions.len()];
    let mut start = 0;
    while start < plans.len() {
        let mut end = start + 1;
        while end < plans.len()
            && !ends_straight_line(&unit.instructions[end - 1])
            && unit.instructions[end].section == unit.instructions[start].section
            && !unit.is_target(end)
        {
            end += 1;
        }
        if unsettled.contains(&unit.functions[start]) {
            for (position, plan) in (start..end).zip(&mut plans[start..end]) {
                *plan = unsettled_plan(unit, &gates, position);
            }
        } else {
            straight_line(unit, &states, &unused, &mut plans, start..end);
        }
        start = end;
    }
    plans
}

/// `%r15` follows every move of the stack pointer, which it equals.
fn unsettled_plan(unit: &Unit<'_>, gates: &HashSet<Position>, position: Position) -> Plan {
    let instruction = &unit.instructions[position];
    let class = instruction.row.class;
    let target = unit.branch_target(position);
    let leaves = unit.leaves(position)
        || (class == Class::Jmp && instruction.target.is_none())
        || (class != Class::Call && target.is_some_and(|t| gates.contains(&t)));
    let falls = !instruction.ends_path() && unit.next(position).is_some_and(|n| gates.contains(&n));
    let step = match movement(unit, position, UNKNOWN) {
        Move::Step(step) => Some(step),
        Move::None | Move::Set(_) => None,
    };
    Plan {
        enter: if gates.contains(&position) { -8 } else { 0 },
        leave: if leaves { 8 } else { 0 },
        fall: if falls { 8 } else { 0 },
        delta: 0,
        lead: -step.unwrap_or(0),
        after: 0,
        step,
        unknown: true,
        frame: None,
        unsettled: true,
    }
}

/// How many functions there are, and how many of them are unsettled.
pub(crate) fn count(unit: &Unit<'_>, plans: &[Plan]) -> (u64, u64) {
    let all: HashSet<usize> = unit.functions.iter().copied().collect();
    let places = unit.functions.iter().zip(plans);
    let unsettled: HashSet<usize> = places
        .filter_map(|(function, plan)| plan.unsettled.then_some(*function))
        .collect();
    (all.len() as u64, unsettled.len() as u64)
}

/// Where control arrives with `delta` 8: entries, and whatever an indirect jump may go to.
/// (To a landing pad none does; the unwinder knows the stack there.)
fn gates(unit: &Unit<'_>) -> HashSet<Position> {
    let pads: HashSet<Position> = unit
        .landing_pads
        .iter()
        .filter_map(|&(_, pad)| unit.labels[pad].at)
        .collect();
    let indirect = |position: &Position| {
        let mut labels = unit.labels_at[*position].iter();
        !pads.contains(position) && labels.any(|&l| unit.labels[l].is_indirect_target())
    };
    (0..unit.instructions.len())
        .filter(|position| unit.is_entry(*position) || indirect(position))
        .collect()
}

/// Functions about which call frame information, or an end of theirs, says something else.
fn doubtful(unit: &Unit<'_>, states: &[State]) -> HashSet<usize> {
    let doubtful = (0..states.len()).filter(|&position| {
        let (state, instruction) = (states[position], &unit.instructions[position]);
        let (surely, bottom) = (state.depth.is_some(), state.depth == Some(0));
        let told_otherwise = match from_cfi(instruction.cfa) {
            Some(State {
                depth: Some(depth), ..
            }) => (surely && state.depth != Some(depth)) || bottom != (depth == 0),
            Some(_) => bottom,
            None => false,
        };
        let left =
            unit.leaves(position) && !bottom && (surely || instruction.row.class == Class::Jcc);
        told_otherwise || left
    });
    doubtful.map(|position| unit.functions[position]).collect()
}

/// Functions that lower the stack only to align it for their calls: nothing is in their
/// frames, so `%r15` can stay where it is, and is as aligned there as at their entry.
fn unused_frames(unit: &Unit<'_>, states: &[State]) -> HashSet<usize> {
    let all: HashSet<usize> = unit.functions.iter().copied().collect();
    let used = (0..states.len())
        .filter(|&position| uses_frame(unit, position, states[position]))
        .map(|p| unit.functions[p]);
    let used: HashSet<usize> = used.collect();
    all.difference(&used).copied().collect()
}

fn uses_frame(unit: &Unit<'_>, position: Position, state: State) -> bool {
    let instruction = &unit.instructions[position];
    let names_stack = instruction.operands.iter().any(|operand| match operand {
        Operand::Mem(mem) | Operand::ThroughMem(mem) => {
            mem.base.is_some_and(|b| b.number == number::RSP)
        }
        _ => is_stack_pointer(operand),
    });
    let by_constant = matches!(instruction.row.class, Class::Plain)
        && matches!(movement(unit, position, state), Move::Step(_));
    state.depth.is_none()
        || matches!(
            instruction.row.class,
            Class::Push | Class::Pop | Class::Leave
        )
        || (names_stack && !by_constant)
}

/// Whether a straight line, as far as `%r15` goes, ends behind the instruction.
fn ends_straight_line(instruction: &Instruction<'_>) -> bool {
    matches!(
        instruction.row.class,
        Class::Jcc | Class::Jmp | Class::Call | Class::Ret | Class::Stop
    )
}

fn rest(depth: Option<i64>) -> i64 {
    if depth == Some(0) { 8 } else { 0 }
}

/// Groups the steps of a straight line.
fn straight_line(
    unit: &Unit<'_>,
    states: &[State],
    unused: &HashSet<usize>,
    plans: &mut [Plan],
    range: std::ops::Range<Position>,
) {
    if unused.contains(&unit.functions[range.start]) {
        for position in range {
            let depth = |state: State| state.depth.unwrap_or(0) + 8;
            let step =
                matches!(movement(unit, position, states[position]), Move::Step(_)).then_some(0);
            let (delta, after) = (
                depth(states[position]),
                depth(transfer(unit, position, states[position])),
            );
            plans[position] = Plan {
                delta,
                after,
                step,
                ..Plan::default()
            };
        }
        return;
    }
    let mut delta = rest(states[range.start].depth);
    for position in range.clone() {
        let state = states[position];
        let movement = movement(unit, position, state);
        let plan = &mut plans[position];
        plan.delta = delta;
        plan.unknown = state.depth.is_none();
        plan.frame = state
            .depth
            .zip(state.frame)
            .map(|(depth, frame)| depth - frame);
        match movement {
            Move::None => {}
            Move::Set(depth) => delta = rest(depth),
            Move::Step(step) => {
                if !joins(unit, states, position, range.start) {
                    let (mut total, mut depth) = (0, state.depth);
                    for (follower, state) in
                        states.iter().enumerate().take(range.end).skip(position)
                    {
                        match self::movement(unit, follower, *state) {
                            Move::Step(more) if more.signum() == step.signum() => {
                                total += more;
                                depth = transfer(unit, follower, *state).depth;
                            }
                            Move::None => {}
                            _ => break,
                        }
                    }
                    plan.lead = rest(depth) - total - delta;
                    delta += plan.lead;
                }
                plan.step = Some(step);
                delta += step;
            }
        }
        plan.after = delta;
        if unit.leaves(position) {
            plan.leave = 8 - plan.delta;
        }
    }
}

/// Whether an earlier step of the same direction has already moved `%r15` for this one.
fn joins(unit: &Unit<'_>, states: &[State], position: Position, start: Position) -> bool {
    let Move::Step(step) = movement(unit, position, states[position]) else {
        return false;
    };
    for earlier in (start..position).rev() {
        match movement(unit, earlier, states[earlier]) {
            Move::None => {}
            Move::Step(other) => return other.signum() == step.signum(),
            Move::Set(_) => return false,
        }
    }
    false
}

/// Depths by a forward pass over the control flow, and the functions in which paths that meet
/// do not agree on whether the stack has moved.
fn depths(unit: &Unit<'_>, refusals: &mut Vec<Refusal>) -> (Vec<State>, HashSet<usize>) {
    let count = unit.instructions.len();
    let mut states: Vec<Option<State>> = vec![None; count];
    let mut work: Vec<Position> = Vec::new();
    let edges = Edges::of(unit);
    for position in (0..count).rev() {
        if unit.is_entry(position) {
            states[position] = Some(ENTRY);
            work.push(position);
        } else if unit.labels_at[position]
            .iter()
            .any(|&l| unit.labels[l].is_indirect_target())
            && let Some(state) = from_cfi(unit.instructions[position].cfa)
            && state.depth.is_some()
        {
            states[position] = Some(state);
            work.push(position);
        }
    }
    let mut weak: Vec<(Position, State)> = Vec::new();
    let mut unvisited = 0;
    let mut unsettled = HashSet::new();
    loop {
        while let Some(position) = work.pop() {
            let Some(state) = states[position] else {
                continue;
            };
            flow(
                unit,
                &edges,
                position,
                state,
                &mut states,
                &mut work,
                &mut weak,
                &mut unsettled,
                refusals,
            );
        }
        // What lies behind a call is reached only if the callee returns: believed last.
        if let Some((position, state)) = weak.pop() {
            if states[position].is_none() {
                states[position] = Some(state);
                work.push(position);
            }
            continue;
        }
        // Code that nothing in the file leads to.
        match (unvisited..count).find(|&p| states[p].is_none()) {
            Some(position) => {
                unvisited = position;
                states[position] = Some(from_cfi(unit.instructions[position].cfa).unwrap_or(ENTRY));
                work.push(position);
            }
            None => break,
        }
    }
    let states = states.into_iter().map(|s| s.unwrap_or(ENTRY)).collect();
    (states, unsettled)
}

/// Edges that no direct branch shows, to places whose depth call frame information does not tell.
struct Edges {
    /// By function: targets of its indirect jumps.
    jumps: HashMap<usize, Vec<Position>>,
    /// By call: landing pads.
    pads: HashMap<Position, Vec<Position>>,
}

impl Edges {
    fn of(unit: &Unit<'_>) -> Self {
        let mut edges = Self {
            jumps: HashMap::new(),
            pads: HashMap::new(),
        };
        let settled = |position: Position| {
            from_cfi(unit.instructions[position].cfa).is_some_and(|s| s.depth.is_some())
        };
        let pads: Vec<Position> = unit
            .landing_pads
            .iter()
            .filter_map(|&(_, pad)| unit.labels[pad].at)
            .collect();
        for label in &unit.labels {
            if let Some(at) = label.at
                && label.taken
                && !label.is_entry()
                && !settled(at)
                && !pads.contains(&at)
            {
                edges.jumps.entry(unit.functions[at]).or_default().push(at);
            }
        }
        for &(start, pad) in &unit.landing_pads {
            let (Some(start), Some(pad)) = (unit.labels[start].at, unit.labels[pad].at) else {
                continue;
            };
            let call = (start..unit.instructions.len())
                .find(|&p| unit.instructions[p].row.class == Class::Call);
            if let Some(call) = call.filter(|_| !settled(pad)) {
                edges.pads.entry(call).or_default().push(pad);
            }
        }
        edges
    }
}

/// What call frame information says, where it says something of the depth.
fn from_cfi(cfa: Cfa) -> Option<State> {
    match cfa {
        Cfa::Register(DWARF_RSP, offset) => Some(State {
            depth: Some(offset - 8),
            frame: None,
        }),
        Cfa::Register(DWARF_RBP, offset) => Some(State {
            depth: None,
            frame: Some(offset - 8),
        }),
        Cfa::Register(..) | Cfa::Expression => Some(State {
            depth: None,
            frame: None,
        }),
        Cfa::None => None,
    }
}

#[allow(clippy::too_many_arguments)]
fn flow(
    unit: &Unit<'_>,
    edges: &Edges,
    position: Position,
    state: State,
    states: &mut [Option<State>],
    work: &mut Vec<Position>,
    weak: &mut Vec<(Position, State)>,
    unsettled: &mut HashSet<usize>,
    refusals: &mut Vec<Refusal>,
) {
    let instruction = &unit.instructions[position];
    if let Some(reason) = impossible(instruction) {
        refusals.push(Refusal::new(instruction.line, instruction.text, reason));
    }
    let after = transfer(unit, position, state);
    let mut join = |to: Position, after: State| match states[to] {
        None => {
            states[to] = Some(after);
            work.push(to);
        }
        Some(old) => {
            let met = State {
                depth: if old.depth == after.depth {
                    old.depth
                } else {
                    None
                },
                frame: if old.frame == after.frame {
                    old.frame
                } else {
                    None
                },
            };
            let zero = [old.depth, after.depth]
                .iter()
                .filter(|d| **d == Some(0))
                .count();
            if zero == 1 {
                unsettled.extend([unit.functions[position], unit.functions[to]]);
            }
            if met != old {
                states[to] = Some(met);
                work.push(to);
            }
        }
    };
    match instruction.row.class {
        Class::Jmp | Class::Jcc => match (instruction.target, unit.branch_target(position)) {
            (Some(_), Some(target)) => join(target, after),
            (None, _) if instruction.row.class == Class::Jmp && after.depth != Some(0) => {
                // A jump within the function: to any label of it that call frame information did not settle.
                edges
                    .jumps
                    .get(&unit.functions[position])
                    .into_iter()
                    .flatten()
                    .for_each(|&t| join(t, after));
            }
            _ => {}
        },
        Class::Call => {
            let popped = State {
                depth: after.depth.map(|depth| depth - instruction.arguments),
                ..after
            };
            let pads = edges.pads.get(&position).into_iter().flatten();
            pads.for_each(|&pad| join(pad, popped));
        }
        _ => {}
    }
    if instruction.ends_path() {
        return;
    }
    let Some(next) = unit.next(position) else {
        return;
    };
    if instruction.row.class == Class::Call && unit.is_target(next) {
        weak.push((next, after));
    } else {
        join(next, after);
    }
}

fn transfer(unit: &Unit<'_>, position: Position, state: State) -> State {
    let instruction = &unit.instructions[position];
    let depth = match movement(unit, position, state) {
        Move::None => state.depth,
        Move::Step(step) => state
            .depth
            .map(|d| d + step)
            .or_else(|| before_return(unit, position)),
        Move::Set(depth) => depth,
    };
    let writes = instruction.effects().writes;
    let frame = if instruction.row.class == Class::Leave {
        None
    } else if writes & (1 << number::RBP) != 0 {
        new_frame(instruction, state)
    } else {
        state.frame
    };
    State { depth, frame }
}

/// The depth that `%rbp` marks after the instruction wrote it.
fn new_frame(instruction: &Instruction<'_>, state: State) -> Option<i64> {
    match (instruction.base_mnemonic(), instruction.operands.as_slice()) {
        ("mov", [Operand::Gpr(from), _]) if from.number == number::RSP => state.depth,
        ("lea", [Operand::Mem(mem), _])
            if mem.base.is_some_and(|b| b.number == number::RSP) && mem.index.is_none() =>
        {
            Some(state.depth? - mem.number()?)
        }
        _ => None,
    }
}

fn is_stack_pointer(operand: &Operand<'_>) -> bool {
    matches!(operand, Operand::Gpr(r) if r.number == number::RSP)
}

/// Whether the instruction names the stack pointer as what it writes.
pub(crate) fn writes_stack_pointer(instruction: &Instruction<'_>) -> bool {
    instruction
        .roles()
        .any(|(operand, role)| role.writes() && is_stack_pointer(operand))
}

fn movement(unit: &Unit<'_>, position: Position, state: State) -> Move {
    let instruction = &unit.instructions[position];
    match instruction.row.class {
        Class::Push => return Move::Step(8),
        Class::Pop => return Move::Step(-8),
        Class::Leave => {
            return match (state.depth, state.frame) {
                (Some(depth), Some(frame)) => Move::Step(frame - 8 - depth),
                (None, Some(frame)) => Move::Set(Some(frame - 8)),
                _ => Move::Set(before_return(unit, position)),
            };
        }
        _ => {}
    }
    if !writes_stack_pointer(instruction) {
        return Move::None;
    }
    let set = |depth: Option<i64>| Move::Set(depth.or_else(|| before_return(unit, position)));
    match (instruction.base_mnemonic(), instruction.operands.as_slice()) {
        ("add", [Operand::Imm(text), _]) if integer(text).is_some() => {
            Move::Step(-integer(text).unwrap_or(0))
        }
        ("sub", [Operand::Imm(text), _]) if integer(text).is_some() => {
            Move::Step(integer(text).unwrap_or(0))
        }
        ("lea", [Operand::Mem(mem), _]) => {
            match (mem.base.map(|b| b.number), mem.index, mem.number()) {
                (Some(number::RSP), None, Some(disp)) => Move::Step(-disp),
                (Some(number::RBP), None, Some(disp)) => set(state.frame.map(|f| f - disp)),
                _ => set(None),
            }
        }
        ("mov", [Operand::Gpr(from), _]) if from.number == number::RBP => set(state.frame),
        _ => set(None),
    }
}

/// Depth 0 if the function is left right behind the instruction: a function
/// cannot be left otherwise.
fn before_return(unit: &Unit<'_>, position: Position) -> Option<i64> {
    let next = unit.next(position)?;
    let goes_on = unit.instructions[next].row.class == Class::Jcc;
    (unit.leaves(next) && !goes_on).then_some(0)
}

/// What no translation exists for.
fn impossible(instruction: &Instruction<'_>) -> Option<Reason> {
    match instruction.row.class {
        Class::Push | Class::Pop => {
            let narrow = instruction.mnemonic.ends_with('w')
                || matches!(instruction.operands[0], Operand::Gpr(r) if r.width != 8);
            let odd = instruction.row.class == Class::Pop
                && is_stack_pointer(&instruction.operands[0])
                || matches!(instruction.operands[0], Operand::Other(_));
            (narrow || odd).then_some(Reason::NarrowStackPointer)
        }
        _ if !writes_stack_pointer(instruction) => None,
        _ => {
            let known = matches!(
                instruction.base_mnemonic(),
                "add" | "sub" | "lea" | "mov" | "and"
            );
            (!known).then_some(Reason::StackPointer)
        }
    }
}
