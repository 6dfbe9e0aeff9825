//! Which files of a crate import which, and the circles among them.
//!
//! An import is a path, in a `use` or in code, that leads to another file of the same crate. A name that a file only
//! passes on (`pub use`) counts as an import of the file that has it. Tests do not count.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The files of a crate by their paths from its `src`, each with those that it imports.
pub type Imports = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// A module, of a file of its own or within one.
#[derive(Debug, Default)]
struct Module {
    file: PathBuf,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// Names that `use` brings, with their paths as written.
    brought: BTreeMap<String, Vec<String>>,
    /// Modules all of whose names `use` brings.
    globs: Vec<Vec<String>>,
    /// The names of its items.
    items: BTreeSet<String>,
    /// Paths in its code, as written.
    paths: BTreeSet<Vec<String>>,
}

/// Reads the crate whose top file is `top`.
///
/// # Panics
///
/// If a file is missing, or not made of Rust's tokens.
#[must_use]
pub fn of(top: &Path) -> Imports {
    let source = top.parent().expect("a file is in a folder");
    let mut tree = vec![Module {
        file: top.to_owned(),
        ..Module::default()
    }];
    read(top, source, 0, &mut tree);
    let mut imports: Imports = BTreeMap::new();
    let name = |module: usize| {
        let file: &Module = &tree[module];
        file.file.strip_prefix(source).expect("below").to_owned()
    };
    for (number, module) in tree.iter().enumerate() {
        let found = imports.entry(name(number)).or_default();
        let brought = module.brought.values().chain(&module.globs);
        for path in brought.chain(&module.paths) {
            if let Some(target) = resolve(&tree, number, path, 0) {
                found.insert(name(target));
            }
        }
        found.remove(&name(number));
    }
    imports
}

/// The circles: groups of files each of which imports all others of its group, by way of others or at once.
/// The largest comes first; a file alone is none.
#[must_use]
pub fn circles(imports: &Imports) -> Vec<Vec<PathBuf>> {
    let reached: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> = imports
        .keys()
        .map(|file| {
            let mut reached = BTreeSet::new();
            let mut ahead: Vec<&PathBuf> = imports[file].iter().collect();
            while let Some(next) = ahead.pop() {
                if reached.insert(next) {
                    ahead.extend(&imports[next]);
                }
            }
            (file, reached)
        })
        .collect();
    let mut circles: BTreeSet<Vec<PathBuf>> = BTreeSet::new();
    for (file, ahead) in &reached {
        if ahead.contains(file) {
            let both = ahead.iter().filter(|other| reached[**other].contains(file));
            circles.insert(both.map(|other| (*other).clone()).collect());
        }
    }
    let mut circles: Vec<_> = circles.into_iter().collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// Reads the file of `module`, whose modules' files are in `folder`.
fn read(file: &Path, folder: &Path, module: usize, tree: &mut Vec<Module>) {
    let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let tokens: TokenStream = text.parse().expect("the compiler reads it too");
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    items(&tokens, folder, module, tree);
}

fn items(tokens: &[TokenTree], folder: &Path, module: usize, tree: &mut Vec<Module>) {
    let mut at = 0;
    let mut is_test = false;
    let mut place = None;
    while let Some(token) = tokens.get(at) {
        if let Some((attribute, after)) = attribute(tokens, at) {
            let text = attribute.replace(' ', "");
            is_test |= text == "cfg(test)";
            // Of twins, each with its `cfg_attr`, the first.
            if let Some((before, path)) = text.split_once("path=\"")
                && (before.is_empty() || before.starts_with("cfg_attr("))
            {
                place.get_or_insert(path.split('"').next().unwrap_or_default().to_owned());
            }
            at = after;
            continue;
        }
        let word = token.to_string();
        let next = tokens.get(at + 1);
        if std::mem::take(&mut is_test) {
            while tokens.get(at).is_some_and(|token| !ends(token)) {
                at += 1;
            }
            at += 1;
            place = None;
            continue;
        }
        match (word.as_str(), next, tokens.get(at + 2)) {
            ("mod", Some(TokenTree::Ident(name)), Some(body)) => {
                at += 3;
                let name = name.to_string();
                let child = tree.len();
                tree[module].children.insert(name.clone(), child);
                tree.push(Module {
                    file: tree[module].file.clone(),
                    parent: Some(module),
                    ..Module::default()
                });
                if let TokenTree::Group(body) = body {
                    let body: Vec<TokenTree> = body.stream().into_iter().collect();
                    items(&body, &folder.join(name), child, tree);
                    continue;
                }
                let flat = folder.join(format!("{name}.rs"));
                let deep = folder.join(&name).join("mod.rs");
                let above = tree[module].file.parent().expect("a folder");
                let (file, folder) = match place.take() {
                    Some(place) => {
                        let file = above.join(place);
                        let folder = file.parent().expect("a folder").to_owned();
                        (file, folder)
                    }
                    None if flat.exists() => (flat, folder.join(name)),
                    None => (deep, folder.join(name)),
                };
                tree[child].file.clone_from(&file);
                read(&file, &folder, child, tree);
            }
            ("use", _, _) => {
                let end =
                    (at..tokens.len()).find(|&end| ends(&tokens[end]) && is(&tokens[end], ';'));
                let end = end.unwrap_or(tokens.len());
                brings(&tokens[at + 1..end], &[], &mut tree[module]);
                at = end + 1;
            }
            (
                "struct" | "enum" | "union" | "trait" | "fn" | "const" | "static" | "type",
                Some(TokenTree::Ident(name)),
                _,
            ) => {
                tree[module].items.insert(name.to_string());
                at += 2;
            }
            _ => at = code(tokens, at, folder, module, tree),
        }
    }
}

/// Notes the path that begins at `at`, or what is in the group there; gives where to go on.
fn code(
    tokens: &[TokenTree],
    at: usize,
    folder: &Path,
    module: usize,
    tree: &mut Vec<Module>,
) -> usize {
    match &tokens[at] {
        TokenTree::Ident(first) => {
            let mut path = vec![first.to_string()];
            let mut end = at + 1;
            while let [colon, other, TokenTree::Ident(next)] =
                &tokens[end..(end + 3).min(tokens.len())]
                && is(colon, ':')
                && is(other, ':')
            {
                path.push(next.to_string());
                end += 3;
            }
            let goes_on = at > 0 && is(&tokens[at - 1], ':') && at > 1 && is(&tokens[at - 2], ':');
            if path.len() > 1 && !goes_on {
                tree[module].paths.insert(path);
            }
            end
        }
        TokenTree::Group(group) => {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            // `pub(in path)` imports nothing.
            let is_reach = inner.first().is_some_and(|first| first.to_string() == "in");
            if !is_reach {
                items(&inner, folder, module, tree);
            }
            at + 1
        }
        _ => at + 1,
    }
}

/// Notes what the tree of a `use` brings.
fn brings(tokens: &[TokenTree], before: &[String], module: &mut Module) {
    let mut path = before.to_vec();
    let mut alias = None;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token {
            TokenTree::Ident(word) if word == "as" => {
                alias = tokens.get(at).map(ToString::to_string);
                at += 1;
            }
            TokenTree::Ident(word) => path.push(word.to_string()),
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for part in inner.split(|token| is(token, ',')) {
                    brings(part, &path, module);
                }
                return;
            }
            token if is(token, '*') => {
                module.globs.push(path);
                return;
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => (),
        }
    }
    if path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    if path.len() > before.len() || !path.is_empty() {
        let name = alias.or_else(|| path.last().cloned()).unwrap_or_default();
        // Two names for nothing (`as _`) are two imports.
        let name = match name.as_str() {
            "_" => format!("_{}", module.brought.len()),
            _ => name,
        };
        module.brought.insert(name, path);
    }
}

/// The module that has what `path` means in `from`; none, if it is not of this crate.
fn resolve(tree: &[Module], from: usize, path: &[String], depth: usize) -> Option<usize> {
    // A name that is brought by itself leads nowhere.
    if depth > 16 {
        return None;
    }
    let (first, mut rest) = path.split_first()?;
    let mut here = match first.as_str() {
        "crate" => 0,
        "self" => from,
        "super" => tree[from].parent?,
        name => {
            let module = &tree[from];
            let brought = module.brought.get(name);
            if let Some(&child) = module.children.get(name) {
                child
            } else if let Some(target) = brought.filter(|target| target[..] != path[..1]) {
                let whole: Vec<String> = target.iter().chain(rest).cloned().collect();
                return resolve(tree, from, &whole, depth + 1);
            } else {
                return None;
            }
        }
    };
    while let Some((next, after)) = rest.split_first() {
        let module = &tree[here];
        if next == "super" {
            here = module.parent?;
        } else if let Some(&child) = module.children.get(next) {
            here = child;
        } else if module.items.contains(next) {
            break;
        } else if module.brought.contains_key(next) {
            return resolve(tree, here, rest, depth + 1).or(Some(here));
        } else {
            let found = module.globs.iter().find_map(|glob| {
                let target = resolve(tree, here, glob, depth + 1)?;
                let target_has = tree[target].items.contains(next)
                    || tree[target].brought.contains_key(next)
                    || tree[target].children.contains_key(next);
                let whole: Vec<String> = glob.iter().chain(rest).cloned().collect();
                target_has.then(|| resolve(tree, here, &whole, depth + 1))?
            });
            return Some(found.unwrap_or(here));
        }
        rest = after;
    }
    Some(here)
}

/// The text of the attribute at `at`, and what comes behind it.
fn attribute(tokens: &[TokenTree], at: usize) -> Option<(String, usize)> {
    if !is(tokens.get(at)?, '#') {
        return None;
    }
    let skip = usize::from(tokens.get(at + 1).is_some_and(|token| is(token, '!')));
    match tokens.get(at + 1 + skip)? {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
            Some((group.stream().to_string(), at + 2 + skip))
        }
        _ => None,
    }
}

fn is(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(found) if found.as_char() == sign)
}

/// Whether an item, or a statement, ends here.
fn ends(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        token => is(token, ';'),
    }
}
