//! What is written: the tree of the whole crate behind macros, before types. And the letters of its files, for names
//! of macros that read other files.

use crate::places::{is_of_others, refusal, unknown_macro};
use crate::told::{Refusal, Told};
use rustc_ast::visit::{self, AssocCtxt, FnKind, Visitor};
use rustc_ast::{
    self as ast, AssocItemKind, BlockCheckMode, ExprKind, GenericParamKind, ItemKind, TyKind,
};
use rustc_lexer::TokenKind;
use rustc_middle::ty::TyCtxt;
use rustc_span::{BytePos, FileName, Span};

/// Attributes that change nothing but what the compiler says, or how fast code is.
const ATTRIBUTES: &[&str] = &[
    "doc",
    "inline",
    "must_use",
    "allow",
    "warn",
    "deny",
    "forbid",
    "expect",
    "cold",
    "non_exhaustive",
    "default",
    "deprecated",
    "derive",
    "cfg",
    "<cfg_trace>",
    "cfg_attr",
    "<cfg_attr_trace>",
    "automatically_derived",
];

/// Names of macros that read files and variables of the machine, or are no Rust. Each is refused as a word, since a
/// macro can be handed on under any name but its own.
const WORDS: &[(&str, &str)] = &[
    ("include", "escaping-macros"),
    ("include_str", "escaping-macros"),
    ("include_bytes", "escaping-macros"),
    ("env", "escaping-macros"),
    ("option_env", "escaping-macros"),
    ("concat_idents", "escaping-macros"),
    ("concat_bytes", "escaping-macros"),
    ("log_syntax", "escaping-macros"),
    ("trace_macros", "escaping-macros"),
    ("asm", "inline-assembly"),
    ("global_asm", "inline-assembly"),
    ("naked_asm", "inline-assembly"),
];

/// The most bytes of a file.
const FILE: usize = 1 << 20;

pub fn judge(tcx: TyCtxt<'_>, told: &Told) -> Vec<Refusal> {
    let mut found = files(tcx, told);
    let (_, tree) = tcx.resolver_for_lowering();
    let tree = tree.borrow();
    let mut judge = Judge {
        tcx,
        told,
        found: Vec::new(),
    };
    visit::walk_crate(&mut judge, &tree);
    found.extend(judge.found);
    found
}

/// The program's files.
pub fn names(tcx: TyCtxt<'_>) -> Vec<String> {
    let files = tcx.sess.source_map().files();
    let real = files
        .iter()
        .filter(|file| file.src.is_some())
        .filter_map(|file| match &file.name {
            FileName::Real(name) => name.local_path(),
            _ => None,
        });
    real.map(|path| path.display().to_string()).collect()
}

/// Every file that was read is the program's, and its words are looked at.
fn files(tcx: TyCtxt<'_>, told: &Told) -> Vec<Refusal> {
    let mut found = Vec::new();
    let nowhere = |rule, construct: String| Refusal {
        place: None,
        rule,
        construct,
        note: String::new(),
    };
    for file in tcx.sess.source_map().files().iter() {
        let FileName::Real(name) = &file.name else {
            continue;
        };
        let Some(text) = &file.src else { continue };
        let path = name.local_path().and_then(|path| path.canonicalize().ok());
        if !path
            .as_ref()
            .is_some_and(|path| path.starts_with(&told.root))
        {
            let name = name
                .local_path()
                .map(|path| path.display().to_string())
                .unwrap_or_default();
            found.push(nowhere("includes", format!("`{name}`")));
            continue;
        }
        if text.len() > FILE {
            found.push(nowhere(
                "compiler-bounds",
                "a file of more than 1 MiB".to_owned(),
            ));
            continue;
        }
        // The compiler skips a shebang line before it reads tokens. A comment that begins there would begin here alone,
        // and hide the rest of the file.
        let skipped = rustc_lexer::strip_shebang(text).unwrap_or(0);
        if skipped > 0 {
            let line = Span::with_root_ctxt(file.start_pos, file.start_pos + BytePos(2));
            found.push(refusal(tcx, "syntax", "a shebang line", line));
        }
        let mut at = skipped as u32;
        let tokens = rustc_lexer::tokenize(
            &text[skipped..],
            rustc_lexer::FrontmatterAllowed::Yes,
        );
        for token in tokens {
            let word = &text[at as usize..(at + token.len) as usize];
            let span = || {
                let low = file.start_pos + BytePos(at);
                Span::with_root_ctxt(low, low + BytePos(token.len))
            };
            match token.kind {
                TokenKind::Ident | TokenKind::RawIdent => {
                    let plain = word.trim_start_matches("r#");
                    if let Some((_, rule)) = WORDS.iter().find(|(name, _)| *name == plain) {
                        found.push(refusal(tcx, rule, format!("the name `{plain}`"), span()));
                    }
                    if !word.is_ascii() {
                        found.push(refusal(
                            tcx,
                            "syntax",
                            "a name with letters beyond ASCII",
                            span(),
                        ));
                    }
                }
                TokenKind::Frontmatter { .. } => {
                    found.push(refusal(tcx, "syntax", "a front matter", span()));
                }
                TokenKind::InvalidIdent => {
                    found.push(refusal(tcx, "syntax", "a name that is none", span()));
                }
                _ => {}
            }
            at += token.len;
        }
    }
    found
}

struct Judge<'a, 'tcx> {
    tcx: TyCtxt<'tcx>,
    told: &'a Told,
    found: Vec<Refusal>,
}

impl Judge<'_, '_> {
    /// Refuses a construct that no elastic Rust has.
    fn never(&mut self, rule: &'static str, construct: &str, span: Span) {
        if !is_of_others(span) {
            self.found.push(refusal(self.tcx, rule, construct, span));
        }
    }

    /// What a type may take away.
    fn unless(&mut self, rule: &'static str, construct: &str, span: Span) {
        if self.told.forbids(rule) {
            self.never(rule, construct, span);
        }
    }

    fn header(&mut self, header: &ast::FnHeader, span: Span) {
        if let ast::Safety::Unsafe(at) = header.safety {
            self.never("unsafe", "an `unsafe fn`", at);
        }
        if header.coroutine_kind.is_some() {
            self.never("async", "a function that can be suspended", span);
        }
        match &header.ext {
            ast::Extern::None => {}
            ast::Extern::Implicit(at) | ast::Extern::Explicit(_, at) => {
                self.never("external-linkage", "a function with an ABI of its own", *at);
            }
        }
    }

    fn bounds(&mut self, params: &[ast::GenericParam]) {
        if let Some(first) = params.first() {
            self.unless("higher-ranked", "`for<...>`", first.ident.span);
        }
    }
}

impl<'ast> Visitor<'ast> for Judge<'_, '_> {
    fn visit_item(&mut self, item: &'ast ast::Item) {
        let span = item.span;
        match &item.kind {
            ItemKind::ExternCrate(..) => self.never("crates", "`extern crate`", span),
            ItemKind::ForeignMod(_) => self.never("external-linkage", "an `extern` block", span),
            ItemKind::GlobalAsm(_) => self.never("inline-assembly", "`global_asm!`", span),
            ItemKind::Static(_) => self.unless("statics", "`static`", span),
            ItemKind::MacroDef(..) => {
                self.unless("own-macros", "a macro of the program's own", span)
            }
            ItemKind::Trait(part) => {
                self.unless("own-traits", "`trait`", span);
                if matches!(part.safety, ast::Safety::Unsafe(_)) {
                    self.never("unsafe", "an `unsafe trait`", span);
                }
            }
            ItemKind::TraitAlias(..) => self.never("own-traits", "a trait alias", span),
            ItemKind::Union(..) => self.never("unions", "`union`", span),
            ItemKind::Impl(part) => {
                if let Some(of) = &part.of_trait {
                    // Derives write some of their own.
                    if let ast::Safety::Unsafe(_) = of.safety {
                        self.never("unsafe", "an implementation that is `unsafe`", span);
                    }
                    if !matches!(of.polarity, ast::ImplPolarity::Positive) {
                        self.never("types", "a negative `impl`", span);
                    }
                }
            }
            ItemKind::Mod(ast::Safety::Unsafe(at), ..) => {
                self.never("unsafe", "an `unsafe mod`", *at)
            }
            _ => {}
        }
        visit::walk_item(self, item);
    }

    fn visit_fn(&mut self, kind: FnKind<'ast>, _: &ast::AttrVec, span: Span, _: ast::NodeId) {
        match &kind {
            FnKind::Fn(_, _, function) => {
                self.header(&function.sig.header, span);
                if function.sig.decl.c_variadic() {
                    self.never("external-linkage", "a variable number of parameters", span);
                }
            }
            FnKind::Closure(_, coroutine, _, _) => {
                if coroutine.is_some() {
                    self.never("async", "a closure that can be suspended", span);
                }
            }
        }
        visit::walk_fn(self, kind);
    }

    fn visit_assoc_item(&mut self, item: &'ast ast::AssocItem, context: AssocCtxt) {
        if let AssocItemKind::Type(_) = &item.kind {
            self.unless("associated-types", "an associated type", item.span);
        }
        visit::walk_assoc_item(self, item, context);
    }

    fn visit_generic_param(&mut self, param: &'ast ast::GenericParam) {
        let span = param.ident.span;
        match &param.kind {
            GenericParamKind::Lifetime => {
                self.unless("named-lifetimes", "a lifetime with a name", span)
            }
            GenericParamKind::Type { .. } => self.unless("generics", "a type parameter", span),
            GenericParamKind::Const { .. } => self.unless("generics", "a constant parameter", span),
        }
        visit::walk_generic_param(self, param);
    }

    fn visit_poly_trait_ref(&mut self, bound: &'ast ast::PolyTraitRef) {
        self.bounds(&bound.bound_generic_params);
        visit::walk_poly_trait_ref(self, bound);
    }

    fn visit_where_predicate_kind(&mut self, kind: &'ast ast::WherePredicateKind) {
        if let ast::WherePredicateKind::BoundPredicate(bound) = kind {
            self.bounds(&bound.bound_generic_params);
        }
        visit::walk_where_predicate_kind(self, kind);
    }

    fn visit_ty(&mut self, ty: &'ast ast::Ty) {
        let span = ty.span;
        match &ty.kind {
            TyKind::TraitObject(..) => self.unless("trait-objects", "`dyn`", span),
            TyKind::FnPtr(pointer) => {
                self.unless("function-pointers", "a type of pointers to functions", span);
                if !matches!(pointer.safety, ast::Safety::Default) {
                    self.never("unsafe", "an `unsafe fn` pointer", span);
                }
                if !matches!(pointer.ext, ast::Extern::None) {
                    self.never(
                        "external-linkage",
                        "a function with an ABI of its own",
                        span,
                    );
                }
                self.bounds(&pointer.generic_params);
            }
            TyKind::UnsafeBinder(_) => self.never("unsafe", "an unsafe binder", span),
            TyKind::ImplTrait(..) => self.unless("generics", "`impl Trait`", span),
            TyKind::Path(Some(_), _) => self.unless("associated-types", "an associated type", span),
            _ => {}
        }
        visit::walk_ty(self, ty);
    }

    fn visit_block(&mut self, block: &'ast ast::Block) {
        if let BlockCheckMode::Unsafe(ast::UnsafeSource::UserProvided) = block.rules {
            self.never("unsafe", "an `unsafe` block", block.span);
        }
        visit::walk_block(self, block);
    }

    fn visit_expr(&mut self, expr: &'ast ast::Expr) {
        let span = expr.span;
        match &expr.kind {
            ExprKind::While(..) => self.unless("loops", "`while`", span),
            ExprKind::ForLoop { .. } => self.unless("loops", "`for`", span),
            ExprKind::Loop(..) => self.unless("loops", "`loop`", span),
            ExprKind::Closure(_) => self.unless("closures", "a closure", span),
            ExprKind::InlineAsm(_) => self.never("inline-assembly", "`asm!`", span),
            ExprKind::Gen(..) | ExprKind::Await(..) => self.never("async", "`async`", span),
            ExprKind::IncludedBytes(_) => {
                self.never("escaping-macros", "bytes of another file", span)
            }
            ExprKind::AddrOf(ast::BorrowKind::Raw, ..) => {
                self.unless("raw-pointers", "`&raw`", span)
            }
            ExprKind::Lit(lit) if matches!(lit.kind, ast::token::LitKind::Float) => {
                self.unless("floating-point", "a number with a point", span);
            }
            _ => {}
        }
        if let Some(name) = unknown_macro(self.tcx, span, &self.told.public) {
            self.found.push(refusal(
                self.tcx,
                "escaping-macros",
                format!("the macro `{name}`"),
                span,
            ));
        }
        visit::walk_expr(self, expr);
    }

    fn visit_attribute(&mut self, attribute: &'ast ast::Attribute) {
        let span = attribute.span;
        let ast::AttrKind::Normal(normal) = &attribute.kind else {
            return;
        };
        // The judge's own attributes in front of the crate are in no file.
        if matches!(
            self.tcx.sess.source_map().span_to_filename(span),
            FileName::Real(_)
        ) {
            let path = &normal.item.path;
            let name = path
                .segments
                .last()
                .map(|segment| segment.ident.to_string())
                .unwrap_or_default();
            let known = path.segments.len() == 1 && ATTRIBUTES.contains(&name.as_str());
            if !(known || name == "repr" && plain_repr(normal)) {
                self.never("attributes", &format!("the attribute `{name}`"), span);
            }
        }
        visit::walk_attribute(self, attribute);
    }
}

/// Whether a layout has no gaps that references could not lie in.
fn plain_repr(attribute: &ast::NormalAttr) -> bool {
    let text = rustc_ast_text(attribute);
    let kinds = [
        "C",
        "transparent",
        "u8",
        "u16",
        "u32",
        "u64",
        "usize",
        "i8",
        "i16",
        "i32",
        "i64",
        "isize",
    ];
    text.split(',').all(|part| kinds.contains(&part.trim()))
}

fn rustc_ast_text(attribute: &ast::NormalAttr) -> String {
    let list = attribute.item.meta_item_list().unwrap_or_default();
    let name = |inner: &ast::MetaItemInner| match inner.meta_item() {
        Some(item) if item.is_word() => {
            item.path.segments.last().map(|part| part.ident.to_string())
        }
        _ => None,
    };
    let names: Vec<String> = list
        .iter()
        .map(|inner| name(inner).unwrap_or_default())
        .collect();
    names.join(",")
}
