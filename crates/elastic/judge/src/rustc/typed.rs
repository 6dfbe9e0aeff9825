//! What the typed tree says: names of others, types that no word shows, and conversions that nobody writes.

use crate::addresses::is_raw;
use crate::places::{is_of_others, refusal};
use crate::told::{Refusal, Told};
use rustc_hir as hir;
use rustc_hir::def::{DefKind, Res};
use rustc_hir::def_id::{DefId, LocalDefId};
use rustc_hir::intravisit::{self, Visitor};
use rustc_middle::hir::nested_filter;
use rustc_middle::ty::adjustment::{Adjust, PointerCoercion};
use rustc_middle::ty::{self, Ty, TyCtxt, TypeckResults};
use rustc_span::Span;

pub fn judge(tcx: TyCtxt<'_>, told: &Told) -> Vec<Refusal> {
    let mut judge = Judge {
        tcx,
        told,
        types: None,
        found: Vec::new(),
    };
    tcx.hir_walk_toplevel_module(&mut judge);
    judge.found
}

struct Judge<'a, 'tcx> {
    tcx: TyCtxt<'tcx>,
    told: &'a Told,
    types: Option<&'tcx TypeckResults<'tcx>>,
    found: Vec<Refusal>,
}

impl<'tcx> Judge<'_, 'tcx> {
    fn refuse(&mut self, rule: &'static str, construct: impl Into<String>, span: Span) {
        self.found.push(refusal(self.tcx, rule, construct, span));
    }

    /// A name that leads to another crate.
    fn named(&mut self, id: DefId, span: Span) {
        if id.is_local() || is_of_others(span) {
            return;
        }
        let tcx = self.tcx;
        let shown = || format!("`{}`", tcx.def_path_str(id));
        match tcx.crate_name(id.krate).as_str() {
            "environment" => {
                let Some(name) = first_name(tcx, id) else {
                    return;
                };
                if !self.told.public.contains(&name) {
                    self.refuse("hidden-name", shown(), span);
                }
            }
            "core" => {
                let path = tcx.def_path(id);
                let first = path.data.first().and_then(|part| part.data.get_opt_name());
                let first = first.map(|name| name.to_string()).unwrap_or_default();
                if matches!(
                    first.as_str(),
                    "arch" | "core_arch" | "intrinsics" | "simd" | "core_simd"
                ) {
                    self.refuse("crates", shown(), span);
                }
            }
            // What the environment hands on of `alloc` came in by a public name of its own.
            "alloc" if self.told.forbids("allocation") => self.refuse("allocation", shown(), span),
            "alloc" => {}
            _ => self.refuse("crates", shown(), span),
        }
    }

    /// Whether something of the environment is not the role's to see.
    fn is_hidden(&self, id: DefId) -> bool {
        self.tcx.crate_name(id.krate).as_str() == "environment"
            && first_name(self.tcx, id).is_some_and(|name| !self.told.public.contains(&name))
    }

    fn typed(&mut self, ty: Ty<'tcx>, span: Span) {
        if is_of_others(span) {
            return;
        }
        let mut parts = ty.walk();
        while let Some(part) = parts.next() {
            let Some(part) = part.as_type() else { continue };
            match part.kind() {
                // Its parts are the compiler's own notes.
                ty::Closure(..) => parts.skip_current_subtree(),
                // A value of a hidden type comes by a public function or member, and no word names its type. Its
                // members and operators would be open.
                ty::Adt(adt, _) if self.is_hidden(adt.did()) => {
                    self.refuse("hidden-name", format!("a value of type `{part}`"), span);
                }
                ty::Float(_) if self.told.forbids("floating-point") => {
                    self.refuse("floating-point", format!("a value of type `{part}`"), span);
                }
                ty::FnPtr(..) if self.told.forbids("function-pointers") => {
                    self.refuse(
                        "function-pointers",
                        format!("a value of type `{part}`"),
                        span,
                    );
                }
                ty::Dynamic(..) if self.told.forbids("trait-objects") => {
                    self.refuse("trait-objects", format!("a value of type `{part}`"), span);
                }
                _ if self.told.forbids("raw-pointers") && is_raw(self.tcx, part) => {
                    self.refuse("raw-pointers", format!("a value of type `{part}`"), span);
                }
                _ => {}
            }
        }
    }
}

/// The name at the root of the environment that leads to this: for what stands in an `impl`, its type's.
pub fn first_name(tcx: TyCtxt<'_>, id: DefId) -> Option<String> {
    let mut at = id;
    let mut found = None;
    loop {
        if let DefKind::Impl { .. } = tcx.def_kind(at) {
            let own = tcx.type_of(at).instantiate_identity().skip_norm_wip();
            return match own.peel_refs().kind() {
                ty::Adt(adt, _) if adt.did().krate == id.krate => first_name(tcx, adt.did()),
                // An environment's trait for a type of the language's: the trait decides.
                _ => tcx
                    .impl_opt_trait_ref(at)
                    .and_then(|of| first_name(tcx, of.skip_binder().def_id)),
            };
        }
        match tcx.opt_parent(at) {
            None => return found,
            Some(parent) => {
                found = tcx.opt_item_name(at).map(|name| name.to_string()).or(found);
                at = parent;
            }
        }
    }
}

impl<'tcx> Visitor<'tcx> for Judge<'_, 'tcx> {
    type NestedFilter = nested_filter::All;

    fn maybe_tcx(&mut self) -> TyCtxt<'tcx> {
        self.tcx
    }

    fn visit_nested_body(&mut self, id: hir::BodyId) {
        let before = self.types.replace(self.tcx.typeck_body(id));
        intravisit::walk_body(self, self.tcx.hir_body(id));
        self.types = before;
    }

    fn visit_path(&mut self, path: &hir::Path<'tcx>, _: hir::HirId) {
        if let Res::Def(_, id) = path.res {
            self.named(id, path.span);
        }
        intravisit::walk_path(self, path);
    }

    fn visit_expr(&mut self, expr: &'tcx hir::Expr<'tcx>) {
        if let Some(types) = self.types {
            if let Some(ty) = types.expr_ty_opt(expr) {
                self.typed(ty, expr.span);
            }
            if let hir::ExprKind::Path(path) = &expr.kind
                && let Res::Def(DefKind::Ctor(..), id) = types.qpath_res(path, expr.hir_id)
                && self.tcx.crate_name(id.krate).as_str() == "environment"
                && let Some(name) = first_name(self.tcx, id)
                && self.told.locked.contains(&name)
            {
                let construct = format!("what makes a `{name}` of something else");
                self.refuse("locked", construct, expr.span);
            }
            // Methods, and `T::name`.
            if let Some(id) = types.type_dependent_def_id(expr.hir_id) {
                let span = match expr.kind {
                    hir::ExprKind::MethodCall(segment, ..) => segment.ident.span,
                    _ => expr.span,
                };
                self.named(id, span);
            }
            for adjustment in types.expr_adjustments(expr) {
                self.typed(adjustment.target, expr.span);
                if let Adjust::Pointer(
                    PointerCoercion::ReifyFnPointer(_)
                    | PointerCoercion::ClosureFnPointer(_)
                    | PointerCoercion::UnsafeFnPointer,
                ) = adjustment.kind
                    && self.told.forbids("function-pointers")
                    && !is_of_others(expr.span)
                {
                    self.refuse(
                        "function-pointers",
                        "a function that becomes a pointer",
                        expr.span,
                    );
                }
            }
        }
        intravisit::walk_expr(self, expr);
    }

    fn visit_pat(&mut self, pat: &'tcx hir::Pat<'tcx>) {
        if let Some(types) = self.types
            && let Some(ty) = types.node_type_opt(pat.hir_id)
        {
            self.typed(ty, pat.span);
        }
        intravisit::walk_pat(self, pat);
    }

    fn visit_ty(&mut self, ty: &'tcx hir::Ty<'tcx, hir::AmbigArg>) {
        if let hir::TyKind::Path(hir::QPath::TypeRelative(..)) = ty.kind
            && self.told.forbids("associated-types")
            && !is_of_others(ty.span)
        {
            self.refuse("associated-types", "an associated type", ty.span);
        }
        if let hir::TyKind::Path(hir::QPath::Resolved(_, path)) = ty.kind
            && let Res::PrimTy(hir::PrimTy::Float(_)) = path.res
            && self.told.forbids("floating-point")
        {
            self.refuse("floating-point", "a type of floating point", ty.span);
        }
        if let hir::TyKind::Ptr(_) = ty.kind
            && self.told.forbids("raw-pointers")
            && !is_of_others(ty.span)
        {
            self.refuse("raw-pointers", "a type of raw pointers", ty.span);
        }
        intravisit::walk_ty(self, ty);
    }
}

/// Whether a function is one that the compiler makes code of as it stands.
pub fn is_whole(tcx: TyCtxt<'_>, id: LocalDefId) -> bool {
    matches!(tcx.def_kind(id), DefKind::Fn | DefKind::AssocFn)
        && !tcx.generics_of(id).requires_monomorphization(tcx)
}
