//! Every function that safe code of a process can name has a line in `docs/sip-surface.md` that says why it is sound, and
//! every line there is of such a function. The sources of `mullion-sip` and of the crates below it are read as a process has
//! them: with the feature `separate`.
//!
//! Listed are functions and methods that are `pub`, of whatever module (a few that are not re-exported are listed too:
//! better one too many), and implementations of traits of values that a process can have.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, ImplItem, Item, ItemImpl, ItemMod, Meta, TraitItem, Type, Visibility};

/// The crates whose public items a process can name, and by which module the page knows each.
const CRATES: [(&str, &str); 4] = [
    ("sip", ""),
    ("sip-exchange", ""),
    ("sip-core", ""),
    ("sip-digest", "digest"),
];

/// Types of which no process has a value: only `unsafe` code makes a `Core` and an `Interior`, and their methods alone give
/// values of the others. So a process can call no method of these.
const KERNELS: [&str; 11] = [
    "Host",
    "Core",
    "Interior",
    "Running",
    "Worker",
    "SharedWorker",
    "Workers",
    "OwnerLedger",
    "EndpointPlace",
    "Foreign",
    "ByBytes",
];

/// What a process can name, as `module::Type::function`.
#[derive(Default)]
struct Surface(BTreeSet<String>);

/// Whether an item is there in a library of a process.
fn is_there(attributes: &[Attribute]) -> bool {
    !attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let text = list.tokens.to_string().replace(' ', "");
            ["test", "miri", "loom", "not(feature=\"separate\")"]
                .iter()
                .any(|absent| text == *absent || text == format!("all(test,not({absent}))"))
                || text.starts_with("all(test,")
        }
        _ => false,
    })
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn name_of(kind: &Type) -> String {
    match kind {
        Type::Path(path) => path
            .path
            .segments
            .last()
            .map_or(String::new(), |segment| segment.ident.to_string()),
        _ => "_".to_owned(),
    }
}

impl Surface {
    fn file(&mut self, file: &Path, module: &str, beneath: &Path) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        let parsed = syn::parse_file(&text).expect("it compiles");
        self.items(&parsed.items, module, beneath);
    }

    fn items(&mut self, items: &[Item], module: &str, beneath: &Path) {
        for item in items {
            match item {
                Item::Mod(one) if is_there(&one.attrs) => self.module(one, module, beneath),
                Item::Fn(one) if is_there(&one.attrs) && is_public(&one.vis) => {
                    self.add(module, &one.sig);
                }
                Item::Impl(one) if is_there(&one.attrs) => self.implementation(one, module),
                Item::Trait(one) if is_there(&one.attrs) && is_public(&one.vis) => {
                    for item in &one.items {
                        if let TraitItem::Fn(function) = item {
                            self.add(&format!("{module}::{}", one.ident), &function.sig);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn module(&mut self, one: &ItemMod, module: &str, beneath: &Path) {
        let name = one.ident.to_string();
        // The modules that only a host has are there in every build, and private in that of a process.
        if ["host", "remote", "critical", "common_memory"].contains(&&*name) {
            assert!(!is_public(&one.vis), "{name} is for hosts alone");
            return;
        }
        let inner = match module {
            "" => name.clone(),
            outer => format!("{outer}::{name}"),
        };
        match &one.content {
            Some((_, items)) => self.items(items, &inner, &beneath.join(&name)),
            None => {
                let named = one
                    .attrs
                    .iter()
                    .find_map(|attribute| match &attribute.meta {
                        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
                            syn::Expr::Lit(literal) => match &literal.lit {
                                syn::Lit::Str(text) => Some(text.value()),
                                _ => None,
                            },
                            _ => None,
                        },
                        _ => None,
                    });
                let candidates: [PathBuf; 3] = [
                    beneath.join(named.unwrap_or_default()),
                    beneath.join(format!("{name}.rs")),
                    beneath.join(&name).join("mod.rs"),
                ];
                let file = candidates.iter().find(|file| file.is_file());
                let file = file.unwrap_or_else(|| panic!("{inner} has no file"));
                self.file(file, &inner, &beneath.join(&name));
            }
        }
    }

    fn implementation(&mut self, one: &ItemImpl, module: &str) {
        let of = name_of(&one.self_ty);
        if KERNELS.contains(&&*of) {
            return;
        }
        if let Some((_, path, _)) = &one.trait_ {
            let of_trait = path.segments.last().map(|last| last.ident.to_string());
            // What these do is what the trait says; the others run code of the crate on what a process has.
            let plain = [
                "Debug", "Display", "Default", "Copy", "Clone", "Send", "Sync", "Error",
            ];
            if let Some(name) = of_trait.filter(|name| !plain.contains(&&**name))
                && one.unsafety.is_none()
            {
                self.0.insert(format!("impl {name} for {module}::{of}"));
            }
            return;
        }
        for item in &one.items {
            if let ImplItem::Fn(function) = item
                && is_public(&function.vis)
                && is_there(&function.attrs)
            {
                self.add(&format!("{module}::{of}"), &function.sig);
            }
        }
    }

    fn add(&mut self, module: &str, signature: &syn::Signature) {
        let keyword = if signature.unsafety.is_some() {
            "unsafe "
        } else {
            ""
        };
        self.0
            .insert(format!("{keyword}{module}::{}", signature.ident));
    }
}

/// The first column of the tables in the document's last part, and whether the others say anything.
fn documented(text: &str) -> BTreeSet<String> {
    let (_, functions) = text.split_once("\n## The functions\n").expect("the part");
    let rows = functions.lines().filter(|line| line.starts_with("| `"));
    let row = |line: &str| {
        let mut columns = line.trim_matches('|').splitn(2, " | ");
        let name = columns.next().unwrap_or_default().trim().trim_matches('`');
        let why = columns.next().unwrap_or_default().trim();
        assert!(why.len() > 4, "{name} is listed without a reason");
        name.to_owned()
    };
    rows.map(row).collect()
}

#[test]
fn every_function_of_a_process_has_its_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut surface = Surface::default();
    for (name, module) in CRATES {
        let source = root.join("..").join(name).join("src");
        surface.file(&source.join("lib.rs"), module, &source);
    }
    let page = root.join("../../../docs/sip-surface.md");
    let known = documented(&fs::read_to_string(&page).expect("the document"));
    let new: Vec<_> = surface.0.difference(&known).collect();
    let gone: Vec<_> = known.difference(&surface.0).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "docs/sip-surface.md lacks {new:#?}\nand has {gone:#?}, which no process can name: \
         say of each new function why hostile safe code does no harm with it, or hide it from processes"
    );
    assert!(surface.0.len() > 100, "{} functions", surface.0.len());
}
