//! Values that can be copied and not looked at, and members that cannot be written. Each place that a function of the
//! program reads or writes, with its types filled in.

use crate::told::Told;
use rustc_middle::mir::visit::{PlaceContext, Visitor};
use rustc_middle::mir::{
    Body, CastKind, ConstOperand, Location, Place, PlaceElem, PlaceRef, Rvalue,
};
use rustc_middle::ty::adjustment::PointerCoercion;
use rustc_middle::ty::{self, EarlyBinder, Instance, Ty, TyCtxt, TypingEnv};
use rustc_span::Span;
use std::collections::BTreeSet;

/// What a function of the program does with closed values: rule, construct, place.
pub fn judge<'tcx>(
    tcx: TyCtxt<'tcx>,
    told: &Told,
    instance: Instance<'tcx>,
    body: &Body<'tcx>,
) -> Vec<(&'static str, String, Span)> {
    if told.locked.is_empty() && told.read_only.is_empty() {
        return Vec::new();
    }
    let mut judge = Judge {
        tcx,
        told,
        instance,
        body,
        found: Vec::new(),
    };
    judge.visit_body(body);
    judge.found
}

struct Judge<'a, 'tcx> {
    tcx: TyCtxt<'tcx>,
    told: &'a Told,
    instance: Instance<'tcx>,
    body: &'a Body<'tcx>,
    found: Vec<(&'static str, String, Span)>,
}

impl<'tcx> Judge<'_, 'tcx> {
    fn refuse(&mut self, rule: &'static str, construct: String, location: Location) {
        self.found
            .push((rule, construct, self.body.source_info(location).span));
    }

    fn filled(&self, ty: Ty<'tcx>) -> Ty<'tcx> {
        let env = TypingEnv::fully_monomorphized();
        let bound = EarlyBinder::bind(self.tcx, ty);
        self.instance
            .instantiate_mir_and_normalize_erasing_regions(self.tcx, env, bound)
    }

    /// The environment's name of a type.
    fn name(&self, ty: Ty<'tcx>) -> Option<String> {
        let ty::Adt(adt, _) = ty.kind() else {
            return None;
        };
        let own = self.tcx.crate_name(adt.did().krate).as_str() == "environment";
        own.then(|| self.tcx.item_name(adt.did()).to_string())
    }

    fn is_locked(&self, ty: Ty<'tcx>) -> bool {
        self.name(ty)
            .is_some_and(|name| self.told.locked.contains(&name))
    }

    /// A value that becomes a trait object.
    fn hidden(&mut self, ty: Ty<'tcx>, location: Location) {
        let mut parts = ty.walk();
        while let Some(part) = parts.next() {
            let Some(part) = part.as_type() else { continue };
            // Its text is judged, whoever calls it.
            if let ty::Closure(..) = part.kind() {
                parts.skip_current_subtree();
            } else if self.is_locked(part) {
                let construct = format!("a `{part}` that becomes a trait object");
                self.refuse("locked", construct, location);
            }
        }
    }

    /// Whether a type has a member that cannot be written, or holds a value of one that has.
    fn is_read_only(&self, ty: Ty<'tcx>, seen: &mut BTreeSet<String>) -> bool {
        match ty.kind() {
            ty::Array(of, _) | ty::Slice(of) => self.is_read_only(*of, seen),
            ty::Tuple(parts) => parts.iter().any(|part| self.is_read_only(part, seen)),
            ty::Adt(adt, arguments) => {
                let Some(name) = self.name(ty) else {
                    // A structure of the program's own holds a copy, or what it was given.
                    return arguments.types().any(|part| self.is_read_only(part, seen));
                };
                let prefix = format!("{name}.");
                if self
                    .told
                    .read_only
                    .iter()
                    .any(|member| member.starts_with(&prefix))
                {
                    return true;
                }
                seen.insert(name)
                    && adt.all_fields().any(|field| {
                        let own = self.tcx.type_of(field.did).instantiate(self.tcx, arguments);
                        self.is_read_only(own.skip_norm_wip(), seen)
                    })
            }
            _ => false,
        }
    }
}

impl<'tcx> Visitor<'tcx> for Judge<'_, 'tcx> {
    fn visit_place(&mut self, place: &Place<'tcx>, context: PlaceContext, location: Location) {
        let writes = context.is_mutating_use() && !context.is_drop();
        for (base, element) in place.as_ref().iter_projections() {
            let PlaceElem::Field(field, _) = element else {
                continue;
            };
            let of = PlaceRef {
                local: base.local,
                projection: base.projection,
            };
            let of = self.filled(of.ty(self.body, self.tcx).ty);
            if self.is_locked(of) {
                self.refuse("locked", format!("a member of `{of}`"), location);
            }
            if writes
                && let Some(name) = self.name(of)
                && let ty::Adt(adt, _) = of.kind()
                && adt.is_struct()
            {
                let member = adt.non_enum_variant().fields[field].name;
                if self.told.read_only.contains(&format!("{name}.{member}")) {
                    self.refuse("read-only", format!("`{name}.{member}`"), location);
                }
            }
        }
        // A whole structure over another one. Behind a reference alone: a variable of its own is the program's.
        let whole = self.filled(place.ty(self.body, self.tcx).ty);
        if writes
            && place.is_indirect()
            && !context.is_borrow()
            && self.is_read_only(whole, &mut BTreeSet::new())
        {
            self.refuse("read-only", format!("the whole of `{whole}`"), location);
        }
        self.super_place(place, context, location);
    }

    fn visit_rvalue(&mut self, value: &Rvalue<'tcx>, location: Location) {
        match value {
            Rvalue::Aggregate(..) => {
                let ty = self.filled(value.ty(self.body, self.tcx));
                if self.is_locked(ty) {
                    self.refuse(
                        "locked",
                        format!("a `{ty}` made of something else"),
                        location,
                    );
                }
            }
            Rvalue::Discriminant(place) => {
                let ty = self.filled(place.ty(self.body, self.tcx).ty);
                if self.is_locked(ty) {
                    self.refuse("locked", format!("the variant of a `{ty}`"), location);
                }
            }
            // As by a derived `Debug`: what is called then has no types in its name.
            Rvalue::Cast(CastKind::PointerCoercion(PointerCoercion::Unsize, _), from, to) => {
                let is_object = |ty: Ty<'tcx>| matches!(ty.kind(), ty::Dynamic(..));
                let mut parts = self.filled(*to).walk();
                if parts.any(|part| part.as_type().is_some_and(is_object)) {
                    self.hidden(self.filled(from.ty(self.body, self.tcx)), location);
                }
            }
            _ => {}
        }
        self.super_rvalue(value, location);
    }

    fn visit_const_operand(&mut self, constant: &ConstOperand<'tcx>, location: Location) {
        // The library may copy a locked value, and do nothing else with it: neither called nor handed on.
        if let ty::FnDef(id, arguments) = self.filled(constant.const_.ty()).kind()
            && !id.is_local()
            && self.tcx.crate_name(id.krate).as_str() != "environment"
        {
            let copies = self
                .tcx
                .opt_item_name(*id)
                .is_some_and(|name| name.as_str() == "clone");
            for part in arguments.skip_binder().iter().flat_map(|part| part.walk()) {
                let Some(ty) = part.as_type() else { continue };
                if self.is_locked(ty) && !copies {
                    self.refuse(
                        "locked",
                        format!("`{ty}` in a function of the library"),
                        location,
                    );
                }
                if self.is_read_only(ty, &mut BTreeSet::new()) {
                    self.refuse(
                        "read-only",
                        format!("`{ty}` in a function of the library"),
                        location,
                    );
                }
            }
        }
        self.super_const_operand(constant, location);
    }
}
