//! Values that can be copied and not looked at, and members that cannot be written: each place that the program's
//! MIR reads or writes.

use crate::places::refusal;
use crate::told::{Refusal, Told};
use rustc_middle::mir::visit::{PlaceContext, Visitor};
use rustc_middle::mir::{Body, Location, Place, PlaceElem, PlaceRef, Rvalue, TerminatorKind};
use rustc_middle::ty::{self, Ty, TyCtxt};
use rustc_span::Span;

pub fn judge(tcx: TyCtxt<'_>, told: &Told) -> Vec<Refusal> {
    let mut found = Vec::new();
    if told.locked.is_empty() && told.read_only.is_empty() {
        return found;
    }
    for id in tcx.hir_body_owners() {
        if !tcx.def_kind(id).is_fn_like() {
            continue;
        }
        let body = tcx.optimized_mir(id);
        let mut judge = Judge { tcx, told, body, found: Vec::new() };
        judge.visit_body(body);
        found.extend(judge.found);
    }
    found
}

struct Judge<'a, 'tcx> {
    tcx: TyCtxt<'tcx>,
    told: &'a Told,
    body: &'a Body<'tcx>,
    found: Vec<Refusal>,
}

impl<'tcx> Judge<'_, 'tcx> {
    fn refuse(&mut self, rule: &'static str, construct: String, span: Span) {
        self.found.push(refusal(self.tcx, rule, construct, span));
    }

    /// The environment's name of a type.
    fn name(&self, ty: Ty<'tcx>) -> Option<String> {
        let ty::Adt(adt, _) = ty.kind() else { return None };
        let own = self.tcx.crate_name(adt.did().krate).as_str() == "environment";
        own.then(|| self.tcx.item_name(adt.did()).to_string())
    }

    fn is_locked(&self, ty: Ty<'tcx>) -> bool {
        self.name(ty).is_some_and(|name| self.told.locked.contains(&name))
    }

    /// Whether a type has a member that cannot be written.
    fn is_read_only(&self, ty: Ty<'tcx>) -> bool {
        self.name(ty).is_some_and(|name| {
            let prefix = format!("{name}.");
            self.told.read_only.iter().any(|member| member.starts_with(&prefix))
        })
    }
}

impl<'tcx> Visitor<'tcx> for Judge<'_, 'tcx> {
    fn visit_place(&mut self, place: &Place<'tcx>, context: PlaceContext, location: Location) {
        let span = self.body.source_info(location).span;
        let writes = context.is_mutating_use() && !context.is_drop();
        for (base, element) in place.as_ref().iter_projections() {
            let PlaceElem::Field(field, _) = element else { continue };
            let of = PlaceRef { local: base.local, projection: base.projection }.ty(self.body, self.tcx).ty;
            if self.is_locked(of) {
                self.refuse("locked", format!("a member of `{of}`"), span);
            }
            if writes
                && let Some(name) = self.name(of)
                && let ty::Adt(adt, _) = of.kind()
                && adt.is_struct()
            {
                let member = adt.non_enum_variant().fields[field].name;
                if self.told.read_only.contains(&format!("{name}.{member}")) {
                    self.refuse("read-only", format!("`{name}.{member}`"), span);
                }
            }
        }
        // A whole structure over another one. Behind a reference alone: a variable of its own is the program's.
        let whole = place.ty(self.body, self.tcx).ty;
        if writes && place.is_indirect() && self.is_read_only(whole) && !context.is_borrow() {
            self.refuse("read-only", format!("the whole of `{whole}`"), span);
        }
        self.super_place(place, context, location);
    }

    fn visit_rvalue(&mut self, value: &Rvalue<'tcx>, location: Location) {
        if let Rvalue::Aggregate(..) = value {
            let ty = value.ty(self.body, self.tcx);
            if self.is_locked(ty) {
                self.refuse("locked", format!("a `{ty}` made of something else"), self.body.source_info(location).span);
            }
        }
        self.super_rvalue(value, location);
    }

    fn visit_terminator(&mut self, terminator: &rustc_middle::mir::Terminator<'tcx>, location: Location) {
        // The library may copy a locked value, and do nothing else with it.
        if let TerminatorKind::Call { func, .. } = &terminator.kind
            && let ty::FnDef(id, arguments) = func.ty(self.body, self.tcx).kind()
            && !id.is_local()
            && self.tcx.crate_name(id.krate).as_str() != "environment"
        {
            let span = terminator.source_info.span;
            let copies = self.tcx.opt_item_name(*id).is_some_and(|name| name.as_str() == "clone");
            for part in arguments.skip_binder().iter().flat_map(|part| part.walk()) {
                let Some(ty) = part.as_type() else { continue };
                if self.is_locked(ty) && !copies {
                    self.refuse("locked", format!("`{ty}` in a function of the library"), span);
                }
                if self.is_read_only(ty) {
                    self.refuse("read-only", format!("`{ty}` in a function of the library"), span);
                }
            }
        }
        self.super_terminator(terminator, location);
    }
}
