//! In which order the parts of an expression run. rustc's borrow checker has open holes where a jump, a statement or an assignment
//! runs between two parts of one expression. It has more between a pattern and its arm
//! (rust-lang/rust#160525, #160598, #160599, #161578). So operands have no jumps,
//! indices have no statements, and arms have no guards. All other parts run in the order in which they are written.

use crate::places::refusal;
use crate::told::{Refusal, Told};
use rustc_hir as hir;
use rustc_hir::ExprKind;
use rustc_hir::intravisit::{self, Visitor};
use rustc_middle::hir::nested_filter;
use rustc_middle::ty::TyCtxt;
use rustc_span::Span;

pub fn judge(tcx: TyCtxt<'_>, told: &Told) -> Vec<Refusal> {
    let mut judge = Judge {
        tcx,
        told,
        found: Vec::new(),
        within: Within::Statement,
    };
    tcx.hir_visit_all_item_likes_in_crate(&mut judge);
    judge.found
}

/// What an expression is a part of, however deep.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Within {
    /// Nothing but blocks, and their branches and loops: no other part of an expression waits for it.
    Statement,
    Operand,
    Index,
}

struct Judge<'a, 'tcx> {
    tcx: TyCtxt<'tcx>,
    told: &'a Told,
    found: Vec<Refusal>,
    within: Within,
}

impl<'tcx> Judge<'_, 'tcx> {
    fn refuse(&mut self, rule: &'static str, construct: &str, span: Span) {
        // Also where a macro of others has written it, since what stands around it is the author's.
        if self.told.forbids(rule) {
            self.found.push(refusal(self.tcx, rule, construct, span));
        }
    }

    fn visit_within(&mut self, within: Within, visit: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.within, within);
        visit(self);
        self.within = before;
    }
}

impl<'tcx> Visitor<'tcx> for Judge<'_, 'tcx> {
    type NestedFilter = nested_filter::All;

    fn maybe_tcx(&mut self) -> TyCtxt<'tcx> {
        self.tcx
    }

    fn visit_nested_body(&mut self, id: hir::BodyId) {
        // Of a closure, or of a constant: it runs by itself.
        self.visit_within(Within::Statement, |judge| {
            intravisit::walk_body(judge, judge.tcx.hir_body(id));
        });
    }

    fn visit_arm(&mut self, arm: &'tcx hir::Arm<'tcx>) {
        if let Some(guard) = arm.guard {
            self.refuse("guards", "a guard of a `match`", guard.span);
        }
        intravisit::walk_arm(self, arm);
    }

    fn visit_expr(&mut self, expr: &'tcx hir::Expr<'tcx>) {
        let within = self.within;
        let inner = match expr.kind {
            ExprKind::Break(..)
            | ExprKind::Continue(..)
            | ExprKind::Ret(..)
            | ExprKind::Become(..) => {
                if within != Within::Statement {
                    self.refuse("operand-jumps", "a jump out of an operand", expr.span);
                }
                within
            }
            ExprKind::Block(..)
            | ExprKind::If(..)
            | ExprKind::Match(..)
            | ExprKind::Loop(..)
            | ExprKind::Let(..)
            | ExprKind::Assign(..)
            | ExprKind::AssignOp(..)
            | ExprKind::Closure(..)
                if within == Within::Index =>
            {
                self.refuse(
                    "index-statements",
                    "more than a value in an index",
                    expr.span,
                );
                within
            }
            ExprKind::Block(..)
            | ExprKind::If(..)
            | ExprKind::Match(..)
            | ExprKind::Loop(..)
            | ExprKind::Let(..)
            | ExprKind::DropTemps(..) => within,
            ExprKind::Assign(to, value, _) => {
                self.visit_expr(value);
                return self
                    .visit_within(within.max(Within::Operand), |judge| judge.visit_expr(to));
            }
            ExprKind::Index(of, at, _) => {
                self.visit_within(within.max(Within::Operand), |judge| judge.visit_expr(of));
                return self.visit_within(Within::Index, |judge| judge.visit_expr(at));
            }
            _ => within.max(Within::Operand),
        };
        self.visit_within(inner, |judge| intravisit::walk_expr(judge, expr));
    }
}
