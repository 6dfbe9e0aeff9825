//! Where a construct is, and which macros it came out of.

use crate::told::{Place, Refusal};
use rustc_middle::ty::TyCtxt;
use rustc_span::hygiene::{ExpnKind, MacroKind};
use rustc_span::{FileName, Span};

/// Macros of the library that leave nothing in the program but what their arguments say.
const KNOWN: &[&str] = &[
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "panic",
    "panic_2021",
    "const_panic",
    "unreachable",
    "unreachable_2021",
    "todo",
    "unimplemented",
    "matches",
    "write",
    "writeln",
    "format_args",
    "const_format_args",
    "concat",
    "stringify",
    "line",
    "column",
    "module_path",
    "cfg",
    "try",
    "assert_matches",
    "vec",
    "format",
    "compile_error",
    "cfg_select",
    "const_format_args_nl",
    "format_args_nl",
    // Derives.
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "Eq",
    "Hash",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "derive",
    "derive_const",
];

/// The place that an author can look at: of the outermost use of a macro of others, else of the text itself.
pub fn place(tcx: TyCtxt<'_>, span: Span) -> (Option<Place>, String) {
    let mut note = String::new();
    let mut at = span;
    while at.from_expansion() {
        let data = at.ctxt().outer_expn_data();
        if let ExpnKind::Macro(_, name) = data.kind {
            note = format!("it came out of the macro `{name}`");
        }
        if data.call_site.is_dummy() {
            break;
        }
        at = data.call_site;
    }
    if at.is_dummy() {
        return (None, note);
    }
    let map = tcx.sess.source_map();
    let low = map.lookup_byte_offset(at.lo());
    let file = match &low.sf.name {
        FileName::Real(name) => match name.local_path() {
            Some(path) => path.display().to_string(),
            None => return (None, note),
        },
        _ => return (None, note),
    };
    let from = low.sf.relative_position(at.lo());
    let (line, start) = match low.sf.lookup_line(from) {
        Some(line) => (line, low.sf.lines()[line]),
        None => return (None, note),
    };
    let length = (at.hi().0.saturating_sub(at.lo().0)) as usize;
    let column = (from - start).0 as usize;
    // Of several lines the first is shown.
    let rest = low
        .sf
        .get_line(line)
        .map_or(0, |text| text.len().saturating_sub(column));
    (
        Some(Place {
            file,
            line: line + 1,
            column: column + 1,
            length: length.min(rest).max(1),
        }),
        note,
    )
}

/// A refusal at a place.
pub fn refusal(
    tcx: TyCtxt<'_>,
    rule: &'static str,
    construct: impl Into<String>,
    span: Span,
) -> Refusal {
    let (place, note) = place(tcx, span);
    Refusal {
        place,
        rule,
        construct: construct.into(),
        note,
    }
}

/// Whether all of this was written by a macro of the library or of the environment, not by the author.
pub fn is_of_others(span: Span) -> bool {
    if !span.from_expansion() {
        return false;
    }
    let data = span.ctxt().outer_expn_data();
    match data.kind {
        ExpnKind::Macro(..) => data.macro_def_id.is_none_or(|id| !id.is_local()),
        // Code that the compiler makes of `for`, `?` and the like belongs to the author.
        ExpnKind::Desugaring(_) => is_of_others(data.call_site),
        ExpnKind::Root => false,
        ExpnKind::AstPass(_) => true,
    }
}

/// A macro that the author may not use, on the way to this text.
pub fn unknown_macro(
    tcx: TyCtxt<'_>,
    span: Span,
    public: &std::collections::BTreeSet<String>,
) -> Option<String> {
    let mut at = span;
    while at.from_expansion() {
        let data = at.ctxt().outer_expn_data();
        if let ExpnKind::Macro(kind, name) = data.kind {
            let name = name.to_string();
            // Its own name: it may be called by another, which `use` has given it.
            let short = match data.macro_def_id {
                Some(id) => tcx.item_name(id).to_string(),
                None => name.rsplit("::").next().unwrap_or(&name).to_owned(),
            };
            let known = match data.macro_def_id {
                Some(id) if id.is_local() => true,
                Some(id) if tcx.crate_name(id.krate).as_str() == "environment" => {
                    // A macro within a public one is the environment's own affair.
                    is_of_others(data.call_site) || public.contains(&short)
                }
                Some(_) => KNOWN.contains(&short.as_str()) || is_of_others(data.call_site),
                None => {
                    matches!(kind, MacroKind::Derive | MacroKind::Attr)
                        && KNOWN.contains(&short.as_str())
                }
            };
            if !known {
                return Some(name);
            }
        }
        if data.call_site.is_dummy() {
            break;
        }
        at = data.call_site;
    }
    None
}
