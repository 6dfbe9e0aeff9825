//! Numbers made of addresses. LLVM takes two places for different and computes with addresses that are equal
//! (rust-lang/rust#107975), and so it leaves checks out. A program that learns no address has no such numbers.

use rustc_data_structures::fx::FxHashSet;
use rustc_index::bit_set::DenseBitSet;
use rustc_middle::mir::visit::{PlaceContext, Visitor};
use rustc_middle::mir::{
    AggregateKind, BasicBlock, Body, CastKind, Local, Location, Operand, Place, RETURN_PLACE,
    Rvalue, StatementKind, TerminatorKind,
};
use rustc_middle::ty::{self, EarlyBinder, Instance, Ty, TyCtxt, TypingEnv};

/// Whether a function of the library makes a number of a pointer, and hands it on. It may compare the number, as checks
/// of alignment do, since then a `bool` is all that is told.
pub fn told<'tcx>(
    tcx: TyCtxt<'tcx>,
    instance: Instance<'tcx>,
    body: &Body<'tcx>,
    reached: &DenseBitSet<BasicBlock>,
) -> bool {
    let function = Function {
        tcx,
        instance,
        body,
        reached,
    };
    let mut numbers = FxHashSet::default();
    loop {
        let before = numbers.len();
        if function.tells(&mut numbers) {
            return true;
        }
        if numbers.len() == before {
            return false;
        }
    }
}

struct Function<'a, 'tcx> {
    tcx: TyCtxt<'tcx>,
    instance: Instance<'tcx>,
    body: &'a Body<'tcx>,
    reached: &'a DenseBitSet<BasicBlock>,
}

impl<'tcx> Function<'_, 'tcx> {
    /// Follows such numbers from one variable to the next. Whether one leaves the function.
    fn tells(&self, numbers: &mut FxHashSet<Local>) -> bool {
        for (block, data) in self.body.basic_blocks.iter_enumerated() {
            if !self.reached.contains(block) {
                continue;
            }
            for statement in &data.statements {
                if let StatementKind::Assign(assigned) = &statement.kind
                    && self.is_number(&assigned.1, numbers)
                    && Self::leaves(&assigned.0, numbers)
                {
                    return true;
                }
            }
            let TerminatorKind::Call {
                args, destination, ..
            } = &data.terminator().kind
            else {
                continue;
            };
            let has = |operand: &Operand<'tcx>| {
                operand
                    .place()
                    .is_some_and(|place| numbers.contains(&place.local))
            };
            if args.iter().any(|argument| has(&argument.node)) {
                // A function of numbers alone computes another one; what has more may keep it.
                let plain = |operand: &Operand<'tcx>| {
                    self.filled(operand.ty(self.body, self.tcx)).is_integral()
                };
                let more = !args.iter().all(|argument| plain(&argument.node));
                if more || Self::leaves(destination, numbers) {
                    return true;
                }
            }
        }
        false
    }

    /// Whether a place that is given such a number is beyond the function.
    fn leaves(place: &Place<'tcx>, numbers: &mut FxHashSet<Local>) -> bool {
        numbers.insert(place.local);
        place.local == RETURN_PLACE || place.is_indirect()
    }

    fn is_number(&self, value: &Rvalue<'tcx>, numbers: &FxHashSet<Local>) -> bool {
        match value {
            Rvalue::Cast(CastKind::PointerExposeProvenance, ..) => return true,
            Rvalue::Cast(CastKind::Transmute, from, to) => {
                let from = self.filled(from.ty(self.body, self.tcx));
                if is_pointer(self.tcx, from) && !is_pointer(self.tcx, self.filled(*to)) {
                    return true;
                }
            }
            // A pointer again, whose length this is: so `fmt::Arguments` keeps the length of a text.
            Rvalue::Aggregate(kind, _) if matches!(**kind, AggregateKind::RawPtr(..)) => {
                return false;
            }
            Rvalue::BinaryOp(..) if value.ty(self.body, self.tcx).is_bool() => return false,
            _ => {}
        }
        let mut uses = Uses {
            numbers,
            found: false,
        };
        uses.visit_rvalue(value, Location::START);
        uses.found
    }

    fn filled(&self, ty: Ty<'tcx>) -> Ty<'tcx> {
        let env = TypingEnv::fully_monomorphized();
        let bound = EarlyBinder::bind(self.tcx, ty);
        self.instance
            .instantiate_mir_and_normalize_erasing_regions(self.tcx, env, bound)
    }
}

struct Uses<'a> {
    numbers: &'a FxHashSet<Local>,
    found: bool,
}

impl Visitor<'_> for Uses<'_> {
    fn visit_local(&mut self, local: Local, _: PlaceContext, _: Location) {
        self.found |= self.numbers.contains(&local);
    }
}

/// Whether a value holds a pointer of any kind.
fn is_pointer<'tcx>(tcx: TyCtxt<'tcx>, ty: Ty<'tcx>) -> bool {
    match ty.kind() {
        ty::RawPtr(..) | ty::Ref(..) | ty::FnPtr(..) => true,
        ty::Pat(of, _) | ty::Array(of, _) | ty::Slice(of) => is_pointer(tcx, *of),
        ty::Tuple(parts) => parts.iter().any(|part| is_pointer(tcx, part)),
        // Behind a structure's own pointers nothing is looked at, so this ends.
        ty::Adt(adt, arguments) => adt.all_fields().any(|field| {
            let own = tcx.type_of(field.did).instantiate(tcx, arguments);
            let env = TypingEnv::fully_monomorphized();
            is_pointer(tcx, tcx.normalize_erasing_regions(env, own))
        }),
        _ => false,
    }
}

/// A pointer of the library's that is no reference: its address is there for who asks.
pub fn is_raw<'tcx>(tcx: TyCtxt<'tcx>, ty: Ty<'tcx>) -> bool {
    match ty.kind() {
        ty::RawPtr(..) => true,
        ty::Adt(adt, _) => {
            tcx.crate_name(adt.did().krate).as_str() == "core"
                && ["NonNull", "AtomicPtr"].contains(&tcx.item_name(adt.did()).as_str())
        }
        _ => false,
    }
}
