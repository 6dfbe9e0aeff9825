//! The types that a crate gives out, by name: structures, enumerations, unions, traits and aliases.
//!
//! A name is given out if the crate's top file has it in public, or a public module of it. The same goes for a `pub
//! use` that leads to it. A type that a crate passes on belongs to the crate that defines it. Types that macros write
//! are not seen.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module with what it says in public.
#[derive(Debug, Default)]
struct Module {
    /// The types that it has, and whether they are public.
    types: BTreeMap<String, bool>,
    /// Its modules, and whether they are public.
    modules: BTreeMap<String, (bool, Module)>,
    /// What `pub use` gives out: the path as written, and the name; no name for all names of a module.
    uses: Vec<(Vec<String>, Option<String>)>,
}

/// The names of the types that the crate gives out whose top file is `top`.
///
/// # Panics
///
/// If a file is missing, or not made of Rust's tokens.
#[must_use]
pub fn given_out(top: &Path) -> BTreeSet<String> {
    defined(top).into_keys().collect()
}

/// The types that the crate gives out whose top file is `top`: the names, each with the modules that define a type so.
///
/// # Panics
///
/// As [`given_out`].
#[must_use]
pub fn defined(top: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut whole = Module::default();
    read(
        top,
        top.parent().expect("a file is in a folder"),
        &mut whole,
    );
    let mut found = BTreeMap::new();
    gather(&whole, &mut Vec::new(), &mut found, 0);
    found
}

fn read(file: &Path, folder: &Path, module: &mut Module) {
    let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let tokens: TokenStream = text.parse().expect("the compiler reads it too");
    items(tokens, folder, module);
}

fn items(tokens: TokenStream, folder: &Path, module: &mut Module) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let word = |at: usize| tokens.get(at).map(ToString::to_string).unwrap_or_default();
    let (mut at, mut is_public, mut is_test) = (0, false, false);
    while at < tokens.len() {
        let next = word(at);
        at += 1;
        match next.as_str() {
            "#" => {
                is_test |= word(at).replace(' ', "") == "[cfg(test)]";
                at += 1 + usize::from(word(at) == "!");
                continue;
            }
            "pub" => {
                is_public = !matches!(tokens.get(at), Some(TokenTree::Group(_)));
                at += usize::from(!is_public);
                continue;
            }
            "unsafe" | "auto" => continue,
            "mod" if !is_test => {
                let name = word(at);
                let mut inner = Module::default();
                match tokens.get(at + 1) {
                    Some(TokenTree::Group(body)) => {
                        items(body.stream(), &folder.join(&name), &mut inner);
                    }
                    _ => {
                        let flat = folder.join(format!("{name}.rs"));
                        let deep = folder.join(&name).join("mod.rs");
                        // A module elsewhere (`#[path]`) is a test's, or one of twins: none gives out types.
                        if let Some(file) = [flat, deep].iter().find(|file| file.exists()) {
                            read(file, &folder.join(&name), &mut inner);
                        }
                    }
                }
                module.modules.insert(name, (is_public, inner));
            }
            "struct" | "enum" | "union" | "trait" | "type" if !is_test => {
                module.types.insert(word(at), is_public);
            }
            "use" if is_public && !is_test => {
                let end = (at..tokens.len()).find(|&end| word(end) == ";");
                uses(&tokens[at..end.unwrap_or(tokens.len())], &[], module);
            }
            _ => {}
        }
        // On to the end of the item.
        while tokens.get(at - 1).is_some_and(|token| !ends(token)) {
            at += 1;
        }
        (is_public, is_test) = (false, false);
    }
}

/// Whether an item ends here.
fn ends(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        token => token.to_string() == ";",
    }
}

fn uses(tokens: &[TokenTree], before: &[String], module: &mut Module) {
    let mut path = before.to_vec();
    let mut words = tokens.iter();
    let mut name = None;
    while let Some(token) = words.next() {
        match token {
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for part in inner.split(|token| token.to_string() == ",") {
                    uses(part, &path, module);
                }
                return;
            }
            TokenTree::Ident(word) if word == "as" => name = words.next().map(ToString::to_string),
            TokenTree::Ident(word) => path.push(word.to_string()),
            TokenTree::Punct(sign) if sign.as_char() == '*' => {
                module.uses.push((path, None));
                return;
            }
            _ => {}
        }
    }
    if path.len() > before.len() {
        let name = name.or_else(|| path.last().cloned());
        module.uses.push((path, name));
    }
}

/// Adds what the module at `here` gives out.
fn gather(
    whole: &Module,
    here: &mut Vec<String>,
    found: &mut BTreeMap<String, BTreeSet<String>>,
    depth: usize,
) {
    let Some(module) = at(whole, here).filter(|_| depth < 16) else {
        return;
    };
    let types = module.types.iter().filter(|(_, is_public)| **is_public);
    for (name, _) in types {
        let places = found.entry(name.clone()).or_default();
        places.insert(here.join("::"));
    }
    for (name, (is_public, _)) in &module.modules {
        if *is_public {
            here.push(name.clone());
            gather(whole, here, found, depth + 1);
            here.pop();
        }
    }
    for (path, name) in &module.uses {
        let Some(target) = absolute(whole, here, path) else {
            continue;
        };
        match name {
            None => gather(whole, &mut target.clone(), found, depth + 1),
            Some(name) if at(whole, &target).is_some() && name != "_" => {
                gather(whole, &mut target.clone(), found, depth + 1);
            }
            Some(name) => {
                if let Some(mut place) = type_at(whole, &target, depth) {
                    place.pop();
                    let places = found.entry(name.clone()).or_default();
                    places.insert(place.join("::"));
                }
            }
        }
    }
}

/// Where the type is that the crate has at `path`, or passes on from there.
fn type_at(whole: &Module, path: &[String], depth: usize) -> Option<Vec<String>> {
    let (last, above) = path.split_last().filter(|_| depth < 16)?;
    let module = at(whole, above)?;
    if module.types.contains_key(last) {
        return Some(path.to_vec());
    }
    module.uses.iter().find_map(|(target, name)| {
        let mut target = absolute(whole, above, target)?;
        match name {
            Some(name) if name != last => return None,
            Some(_) => {}
            None => target.push(last.clone()),
        }
        type_at(whole, &target, depth + 1)
    })
}

fn at<'a>(whole: &'a Module, path: &[String]) -> Option<&'a Module> {
    let mut modules = path.iter();
    modules.try_fold(whole, |module, name| Some(&module.modules.get(name)?.1))
}

/// The path from the crate's top; none, if it leads to another crate.
fn absolute(whole: &Module, here: &[String], path: &[String]) -> Option<Vec<String>> {
    let mut whole_path = here.to_vec();
    for (number, name) in path.iter().enumerate() {
        match name.as_str() {
            "crate" => whole_path.clear(),
            "self" => {}
            "super" => {
                whole_path.pop()?;
            }
            name if number == 0 => {
                let module = at(whole, here)?;
                let is_own = module.modules.contains_key(name) || module.types.contains_key(name);
                if !is_own {
                    return None;
                }
                whole_path.push(name.to_owned());
            }
            name => whole_path.push(name.to_owned()),
        }
    }
    Some(whole_path)
}

/// The names that several public types of one crate under `crates/` have, each with the modules that define one.
#[must_use]
pub fn twice() -> Vec<(String, String, BTreeSet<String>)> {
    let mut found = Vec::new();
    for folder in crate::tree::crates() {
        let library = folder.join("src/lib.rs");
        if library.exists() {
            let folder = folder.display().to_string();
            let names = defined(&library).into_iter();
            let several = names.filter(|(_, places)| places.len() > 1);
            found.extend(several.map(|(name, places)| (folder.clone(), name, places)));
        }
    }
    found
}

/// The names that public types of several crates under `crates/` share, each with the crates.
#[must_use]
pub fn shared() -> BTreeMap<String, Vec<String>> {
    let above = crate::tree::root().join("crates");
    let mut crates: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in crate::tree::crates() {
        let library = folder.join("src/lib.rs");
        if library.exists() {
            let folder = folder.strip_prefix(&above).expect("under it");
            for name in given_out(&library) {
                let folder = folder.display().to_string();
                crates.entry(name).or_default().push(folder);
            }
        }
    }
    crates.retain(|_, crates| crates.len() > 1);
    crates
}
