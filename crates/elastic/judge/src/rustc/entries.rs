//! The functions that the program defines for others: as the environment declares them, in an `extern` block.

use crate::places::refusal;
use crate::told::{Refusal, Told};
use rustc_hir::def::{DefKind, Res};
use rustc_hir::def_id::DefId;
use rustc_middle::ty::{self, Ty, TyCtxt};
use rustc_span::Symbol;

/// Names of the environment in the type's file that lead nowhere: a rule about nothing would hold nothing.
pub fn names(tcx: TyCtxt<'_>, told: &Told) -> Vec<Refusal> {
    let mut found = Vec::new();
    for listed in told.locked.iter().chain(&told.read_only) {
        let (name, member) = listed
            .split_once('.')
            .map_or((listed.as_str(), None), |(name, member)| {
                (name, Some(member))
            });
        let adts = environment(tcx)
            .flat_map(|root| tcx.module_children(root.as_def_id()))
            .filter_map(|child| match child.res {
                Res::Def(DefKind::Struct | DefKind::Enum, id)
                    if child.ident.name.as_str() == name =>
                {
                    Some(tcx.adt_def(id))
                }
                _ => None,
            });
        let has = |adt: ty::AdtDef<'_>| {
            member.is_none_or(|member| adt.all_fields().any(|field| field.name.as_str() == member))
        };
        if !adts.into_iter().any(has) {
            let construct = format!(
                "`{listed}`, which the environment does not have; the type's author must mend it"
            );
            found.push(Refusal {
                place: None,
                rule: "entry-point",
                construct,
                note: String::new(),
            });
        }
    }
    found
}

fn environment(tcx: TyCtxt<'_>) -> impl Iterator<Item = rustc_hir::def_id::CrateNum> {
    let name = Symbol::intern("environment");
    tcx.crates(())
        .iter()
        .copied()
        .filter(move |number| tcx.crate_name(*number) == name)
}

/// What is wrong with them, and for each one `name`, its parameters' types and its result's, between tabs.
pub fn judge(tcx: TyCtxt<'_>, told: &Told) -> (Vec<Refusal>, Vec<String>) {
    let (mut found, mut glue) = (Vec::new(), Vec::new());
    let nowhere = |construct| Refusal {
        place: None,
        rule: "entry-point",
        construct,
        note: String::new(),
    };
    let declared = declared(tcx);
    for name in &told.entries {
        let Some(wanted) = declared
            .iter()
            .find(|id| tcx.item_name(**id).as_str() == name)
        else {
            found.push(nowhere(format!(
                "`{name}`, which the environment does not declare; its author must mend it"
            )));
            continue;
        };
        let children = tcx.module_children_local(rustc_hir::def_id::CRATE_DEF_ID);
        let defined = children.iter().find_map(|child| match child.res {
            Res::Def(DefKind::Fn, id) if child.ident.name.as_str() == name && id.is_local() => {
                Some(id)
            }
            _ => None,
        });
        let Some(defined) = defined else {
            found.push(nowhere(format!(
                "`{name}` is not defined at the crate's root"
            )));
            continue;
        };
        if !tcx.visibility(defined).is_public() {
            found.push(refusal(
                tcx,
                "entry-point",
                format!("`{name}` is not `pub`"),
                tcx.def_span(defined),
            ));
            continue;
        }
        let erased = |id: DefId| {
            let signature = tcx.fn_sig(id).instantiate_identity().skip_norm_wip();
            tcx.erase_and_anonymize_regions(tcx.instantiate_bound_regions_with_erased(signature))
        };
        let (theirs, ours) = (erased(*wanted), erased(defined));
        let generic = tcx.generics_of(defined).requires_monomorphization(tcx);
        if generic || theirs.inputs_and_output != ours.inputs_and_output {
            let construct = format!(
                "`{name}` is to be `fn{}`",
                shown(theirs.inputs(), theirs.output())
            );
            found.push(refusal(
                tcx,
                "entry-point",
                construct,
                tcx.def_span(defined),
            ));
            continue;
        }
        let types: Option<Vec<String>> = theirs
            .inputs_and_output
            .iter()
            .map(|ty| spelled(tcx, ty))
            .collect();
        match types {
            Some(types) => glue.push(format!("{name}\t{}", types.join("\t"))),
            None => found.push(nowhere(format!(
                "`{name}` has a type that the environment cannot hand over; its author must mend it"
            ))),
        }
    }
    (found, glue)
}

/// The functions that the environment has others define.
fn declared(tcx: TyCtxt<'_>) -> Vec<DefId> {
    let modules = environment(tcx).flat_map(|number| tcx.foreign_modules(number).values());
    modules
        .flat_map(|module| module.foreign_items.iter().copied())
        .collect()
}

fn shown(inputs: &[Ty<'_>], output: Ty<'_>) -> String {
    let inputs: Vec<String> = inputs.iter().map(ToString::to_string).collect();
    format!("({}) -> {output}", inputs.join(", "))
}

/// A type as another crate spells it: numbers, and references to types of the environment.
fn spelled(tcx: TyCtxt<'_>, ty: Ty<'_>) -> Option<String> {
    Some(match ty.kind() {
        ty::Bool | ty::Int(_) | ty::Uint(_) | ty::Float(_) => ty.to_string(),
        ty::Tuple(parts) if parts.is_empty() => "()".to_owned(),
        ty::Adt(adt, arguments)
            if arguments.is_empty()
                && tcx.crate_name(adt.did().krate).as_str() == "environment" =>
        {
            format!(
                "environment::{}",
                tcx.def_path(adt.did())
                    .to_string_no_crate_verbose()
                    .trim_start_matches("::")
            )
        }
        ty::Ref(_, to, ty::Mutability::Not) => format!("&{}", spelled(tcx, *to)?),
        ty::Ref(_, to, ty::Mutability::Mut) => format!("&mut {}", spelled(tcx, *to)?),
        _ => return None,
    })
}
