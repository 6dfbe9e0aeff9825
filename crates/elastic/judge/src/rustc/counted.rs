//! Loops whose rounds are known when they are read: a `for` over numbers between constants, over an array, over what
//! counts or turns these round.
//!
//! A bound on instructions needs the rounds behind the compiler, too. So each such loop gets a mark in its MIR,
//! behind the call of `next`. The mark is inline assembly without an instruction, which the compiler keeps as often
//! as the source says. The author can write no inline assembly, and so no mark.

use rustc_ast::InlineAsmTemplatePiece;
use rustc_ast::ast::InlineAsmOptions;
use rustc_hir::attrs::lang_items::LangItem;
use rustc_hir::def_id::LocalDefId;
use rustc_middle::mir::{
    BasicBlock, BasicBlockData, Body, InlineAsmMacro, Local, Operand, Rvalue, StatementKind,
    Terminator, TerminatorKind, UnwindAction, VarDebugInfoContents,
};
use rustc_middle::ty::{self, Ty, TyCtxt, TypingEnv};
use rustc_span::{DesugaringKind, Symbol};

/// What begins a mark in assembler text; the loop's name and its rounds follow.
const MARK: &str = "# mullion-loop";

/// A function's MIR with its marks.
pub fn marked(tcx: TyCtxt<'_>, id: LocalDefId) -> &Body<'_> {
    let body = (rustc_interface::DEFAULT_QUERY_PROVIDERS
        .queries
        .optimized_mir)(tcx, id);
    // One loop of a generic function may stand within itself, with other types: it has no name of its own.
    let root = tcx.typeck_root_def_id(id.to_def_id());
    if tcx.generics_of(root).requires_monomorphization(tcx) {
        return body;
    }
    let mut found = Vec::new();
    for (block, data) in body.basic_blocks.iter_enumerated() {
        let terminator = data.terminator();
        // Nobody can write this: the call stands for the word `for`, and its iterator has no name.
        if terminator.source_info.span.desugaring_kind() != Some(DesugaringKind::ForLoop) {
            continue;
        }
        let TerminatorKind::Call {
            func,
            args,
            target: Some(_),
            ..
        } = &terminator.kind
        else {
            continue;
        };
        let ty::FnDef(function, _) = func.ty(body, tcx).kind() else {
            continue;
        };
        if tcx.item_name(*function).as_str() != "next" {
            continue;
        }
        let traced = Traced { tcx, id, body };
        if let Some(rounds) = args.first().and_then(|next| traced.behind_next(&next.node)) {
            found.push((block, rounds));
        }
    }
    if found.is_empty() {
        return body;
    }
    let mut body = body.clone();
    for (number, (block, rounds)) in found.into_iter().enumerate() {
        let text = format!("{MARK} {}.{number} {rounds}", id.local_def_index.as_u32());
        mark(tcx, &mut body, block, text);
    }
    tcx.arena.alloc(body)
}

fn mark<'tcx>(tcx: TyCtxt<'tcx>, body: &mut Body<'tcx>, block: BasicBlock, text: String) {
    let blocks = body.basic_blocks_mut();
    let next = blocks.next_index();
    let call = blocks[block].terminator_mut();
    let info = call.source_info;
    let TerminatorKind::Call {
        target: Some(target),
        ..
    } = &mut call.kind
    else {
        return;
    };
    let behind = std::mem::replace(target, next);
    let piece = InlineAsmTemplatePiece::String(text.into());
    let kind = TerminatorKind::InlineAsm {
        asm_macro: InlineAsmMacro::Asm,
        template: tcx.arena.alloc_from_iter([piece]),
        operands: Box::new([]),
        options: InlineAsmOptions::NOMEM
            | InlineAsmOptions::PRESERVES_FLAGS
            | InlineAsmOptions::NOSTACK,
        line_spans: &[],
        targets: Box::new([behind]),
        unwind: UnwindAction::Unreachable,
    };
    let terminator = Terminator {
        source_info: info,
        kind,
        attributes: Default::default(),
    };
    blocks.push(BasicBlockData::new(Some(terminator), false));
}

/// Whether a block ends with a mark.
pub fn is_mark(data: &BasicBlockData<'_>) -> bool {
    let TerminatorKind::InlineAsm { template, .. } = &data.terminator().kind else {
        return false;
    };
    matches!(template, [InlineAsmTemplatePiece::String(text)] if text.starts_with(MARK))
}

/// The block that makes the iterator of a mark.
pub fn made(body: &Body<'_>, mark: BasicBlock) -> Option<usize> {
    let [before] = body.basic_blocks.predecessors()[mark][..] else {
        return None;
    };
    let TerminatorKind::Call { args, .. } = &body.basic_blocks[before].terminator().kind else {
        return None;
    };
    let iterator = iterator(body, &args.first()?.node)?;
    let makes = |data: &BasicBlockData<'_>| {
        let mut statements = data.statements.iter();
        statements.any(|statement| matches!(&statement.kind, StatementKind::Assign(found) if found.0.local == iterator))
    };
    let found = body.basic_blocks.iter_enumerated();
    let mut found = found.filter(|(_, data)| makes(data));
    Some(found.next()?.0.as_usize())
}

/// The variable that `next` is called for: behind `&mut *&mut iterator`.
fn iterator(body: &Body<'_>, argument: &Operand<'_>) -> Option<Local> {
    let mut local = argument.place()?.as_local()?;
    loop {
        let Rvalue::Ref(_, _, place) = assigned(body, local)? else {
            return None;
        };
        match place.as_local() {
            Some(found) => return Some(found),
            None => local = place.local,
        }
    }
}

struct Traced<'a, 'tcx> {
    tcx: TyCtxt<'tcx>,
    id: LocalDefId,
    body: &'a Body<'tcx>,
}

impl<'tcx> Traced<'_, 'tcx> {
    /// How often `next` is called at most: once more than there are rounds.
    fn behind_next(&self, argument: &Operand<'tcx>) -> Option<u128> {
        let iterator = iterator(self.body, argument)?;
        let Rvalue::Use(operand, ..) = assigned(self.body, iterator)? else {
            return None;
        };
        let rounds = self.rounds(operand.ty(self.body, self.tcx), Some(operand))?;
        (rounds < 1 << 40).then_some(rounds + 1)
    }

    /// The most rounds of an iterator of this type; of this operand, if it is known.
    fn rounds(&self, ty: Ty<'tcx>, operand: Option<&Operand<'tcx>>) -> Option<u128> {
        let tcx = self.tcx;
        let ty::Adt(found, arguments) = ty.kind() else {
            return None;
        };
        let called = operand.and_then(|operand| self.called(operand));
        // An iterator is its own.
        if let Some((name, argument)) = called
            && name.as_str() == "into_iter"
            && argument.ty(self.body, tcx) == ty
        {
            return self.rounds(ty, Some(argument));
        }
        let inclusive = tcx.is_lang_item(found.did(), LangItem::RangeInclusiveStruct);
        if inclusive || tcx.is_lang_item(found.did(), LangItem::Range) {
            let number = arguments.type_at(0);
            let ends = operand.and_then(|operand| self.ends(operand));
            let between = match ends {
                Some([start, end]) => end.saturating_sub(start).max(0).unsigned_abs(),
                None => self.most(number)?,
            };
            return Some(between + u128::from(inclusive));
        }
        if tcx.crate_name(found.did().krate).as_str() != "core" {
            return None;
        }
        match tcx.item_name(found.did()).as_str() {
            // Of an array.
            "IntoIter" => arguments
                .consts()
                .next()
                .and_then(|length| self.length(length)),
            "Iter" | "IterMut" => {
                let (name, argument) = called?;
                match name.as_str() {
                    "into_iter" => self.array(argument.ty(self.body, tcx)),
                    "iter" | "iter_mut" => {
                        let slice = assigned(self.body, self.own(argument)?)?;
                        let Rvalue::Cast(_, argument, _) = slice else {
                            return None;
                        };
                        self.array(argument.ty(self.body, tcx))
                    }
                    _ => None,
                }
            }
            "Enumerate" | "Rev" | "Copied" | "Cloned" => {
                let inner = arguments.type_at(0);
                let argument = called.and_then(|(name, argument)| {
                    let same = argument.ty(self.body, tcx) == inner;
                    let known = ["enumerate", "rev", "copied", "cloned"].contains(&name.as_str());
                    (same && known).then_some(argument)
                });
                self.rounds(inner, argument)
            }
            _ => None,
        }
    }

    /// The elements of an array behind a reference.
    fn array(&self, ty: Ty<'tcx>) -> Option<u128> {
        let ty::Ref(_, array, _) = ty.kind() else {
            return None;
        };
        match array.kind() {
            ty::Array(_, length) => self.length(*length),
            _ => None,
        }
    }

    fn length(&self, length: ty::Const<'tcx>) -> Option<u128> {
        let env = TypingEnv::post_analysis(self.tcx, self.id);
        let length = self
            .tcx
            .normalize_erasing_regions(env, ty::Unnormalized::new_wip(length));
        length.try_to_target_usize(self.tcx).map(u128::from)
    }

    /// How far two numbers of a small type are apart at most.
    fn most(&self, ty: Ty<'tcx>) -> Option<u128> {
        let bits = match ty.kind() {
            ty::Int(found) => found.bit_width(),
            ty::Uint(found) => found.bit_width(),
            _ => None,
        }?;
        (bits <= 16).then(|| (1 << bits) - 1)
    }

    /// The constants that a range was made of.
    fn ends(&self, operand: &Operand<'tcx>) -> Option<[i128; 2]> {
        let local = self.own(operand)?;
        if let Some(Rvalue::Aggregate(_, parts)) = assigned(self.body, local) {
            let mut parts = parts.iter();
            let (start, end) = (parts.next()?, parts.next()?);
            return Some([self.number(start)?, self.number(end)?]);
        }
        let (name, arguments) = self.call_of(local)?;
        match (name.as_str(), arguments) {
            ("new", [start, end]) => Some([self.number(&start.node)?, self.number(&end.node)?]),
            _ => None,
        }
    }

    fn number(&self, operand: &Operand<'tcx>) -> Option<i128> {
        let Operand::Constant(constant) = operand else {
            let Some(Rvalue::Use(operand, ..)) = assigned(self.body, self.own(operand)?) else {
                return None;
            };
            return matches!(operand, Operand::Constant(_)).then(|| self.number(operand))?;
        };
        let env = TypingEnv::post_analysis(self.tcx, self.id);
        let bits = constant.const_.try_eval_bits(self.tcx, env)?;
        match constant.const_.ty().kind() {
            ty::Uint(_) => i128::try_from(bits).ok(),
            ty::Int(found) => {
                let width = found.bit_width().unwrap_or(64);
                let unused = 128u32.checked_sub(u32::try_from(width).ok()?)?;
                Some((bits.cast_signed() << unused) >> unused)
            }
            _ => None,
        }
    }

    /// The library's function whose result an operand is, and its first argument.
    fn called(&self, operand: &Operand<'tcx>) -> Option<(Symbol, &Operand<'tcx>)> {
        let (name, arguments) = self.call_of(self.own(operand)?)?;
        Some((name, &arguments.first()?.node))
    }

    fn call_of(&self, local: Local) -> Option<(Symbol, &[rustc_span::Spanned<Operand<'tcx>>])> {
        if changes(self.body, local) != 1 {
            return None;
        }
        self.body.basic_blocks.iter().find_map(|data| {
            let TerminatorKind::Call {
                func,
                args,
                destination,
                ..
            } = &data.terminator().kind
            else {
                return None;
            };
            let ty::FnDef(function, _) = func.ty(self.body, self.tcx).kind() else {
                return None;
            };
            let core = self.tcx.crate_name(function.krate).as_str() == "core";
            let name = self.tcx.item_name(*function);
            (core && destination.as_local() == Some(local)).then_some((name, &args[..]))
        })
    }

    /// A variable of the compiler's, which nothing else reads or writes.
    fn own(&self, operand: &Operand<'tcx>) -> Option<Local> {
        let local = operand.place()?.as_local()?;
        let named = self.body.var_debug_info.iter().any(
            |info| matches!(info.value, VarDebugInfoContents::Place(place) if place.local == local),
        );
        (!named && local.as_usize() > self.body.arg_count).then_some(local)
    }
}

/// What a variable is given, if that happens at one place.
fn assigned<'a, 'tcx>(body: &'a Body<'tcx>, local: Local) -> Option<&'a Rvalue<'tcx>> {
    if changes(body, local) != 1 {
        return None;
    }
    let statements = body.basic_blocks.iter().flat_map(|data| &data.statements);
    statements
        .into_iter()
        .find_map(|statement| match &statement.kind {
            StatementKind::Assign(found) if found.0.as_local() == Some(local) => Some(&found.1),
            _ => None,
        })
}

/// How many places give a variable, or a part of it, a value, or make a reference to it that `next` does not take.
fn changes(body: &Body<'_>, local: Local) -> usize {
    let mut count = 0;
    for data in body.basic_blocks.iter() {
        for statement in &data.statements {
            if let StatementKind::Assign(found) = &statement.kind {
                count += usize::from(found.0.local == local);
                let for_next =
                    statement.source_info.span.desugaring_kind() == Some(DesugaringKind::ForLoop);
                if let Rvalue::Ref(_, _, place) | Rvalue::RawPtr(_, place) = &found.1
                    && place.local == local
                    && !place.is_indirect()
                    && !for_next
                {
                    count += 2;
                }
            }
        }
        if let TerminatorKind::Call { destination, .. } = &data.terminator().kind {
            count += usize::from(destination.local == local);
        }
    }
    count
}
