//! Digests against an independent description of types.
//!
//! A program of random types is written down, each with a text that says its whole structure, and compiled once. Two
//! types must have equal digests exactly if their texts are equal. Half of the types have a twin in another module: a
//! copy, or one with a single change. Names are those that could be mistaken: `ExVec`, `u64`, `Option`.
//!
//! `MULLION_SHAPES="SEED TYPES" cargo test -p mullion-sip --test shapes` makes another program, of any length.

use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const SEED: u64 = 2026;
const TYPES: usize = 40;

const NAMES: [&str; 7] = ["Node", "Letter", "ExVec", "u64", "Option", "Digest", "Box"];
const PLAIN: [&str; 13] = [
    "u8", "u16", "u32", "u64", "u128", "i8", "i16", "i32", "i64", "f32", "f64", "bool", "char",
];
const REPRESENTATIONS: [&str; 6] = ["u8", "i16", "u32", "C", "C, u8", "u8, C"];

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        // Knuth's constants; the upper bits are the random ones.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

#[derive(Clone, PartialEq)]
enum Type {
    Plain(&'static str),
    Unit,
    Text,
    Array(Box<Type>, usize),
    Tuple(Vec<Type>),
    Option(Box<Type>),
    Result(Box<Type>, Box<Type>),
    Box(Box<Type>),
    Vector(Box<Type>),
    /// The definition that this is in, behind a box.
    Own,
    /// An earlier definition, by its number.
    Defined(usize),
}

#[derive(Clone, PartialEq)]
struct Field {
    name: &'static str,
    kind: Type,
}

#[derive(Clone, PartialEq)]
enum Shape {
    Structure(&'static str, Vec<Field>),
    Enumeration(&'static str, Vec<(&'static str, Option<u8>, Vec<Field>)>),
}

#[derive(Clone, PartialEq)]
struct Definition {
    name: &'static str,
    shape: Shape,
}

fn kind(random: &mut Random, depth: usize, defined: usize) -> Type {
    let inner = |random: &mut Random| Box::new(kind(random, depth - 1, defined));
    match if depth == 0 { 0 } else { random.below(12) } {
        1 => Type::Array(inner(random), 1 + random.below(3)),
        2 => Type::Tuple((0..1 + random.below(4)).map(|_| *inner(random)).collect()),
        3 | 4 => Type::Option(inner(random)),
        5 => Type::Result(inner(random), inner(random)),
        6 => Type::Box(inner(random)),
        7 => Type::Text,
        // Values without a size need no vector.
        8 => Type::Vector(Box::new(Type::Plain(random.one(&PLAIN)))),
        9 if defined > 0 => Type::Defined(random.below(defined)),
        10 => Type::Own,
        11 => Type::Unit,
        _ => Type::Plain(random.one(&PLAIN)),
    }
}

fn fields(random: &mut Random, defined: usize) -> Vec<Field> {
    const FIELDS: [&str; 4] = ["one", "two", "three", "four"];
    let count = random.below(5);
    let each = FIELDS.into_iter().take(count);
    each.map(|name| Field {
        name,
        kind: kind(random, 3, defined),
    })
    .collect()
}

fn definition(random: &mut Random, defined: usize) -> Definition {
    let shape = if random.below(3) > 0 {
        let representation = random.one(&["", "", "C", "align(16)"]);
        Shape::Structure(representation, fields(random, defined))
    } else {
        let mut next = 0;
        let mut variants = Vec::new();
        for name in &["First", "Second", "Third"][..1 + random.below(3)] {
            let own = (random.below(3) == 0).then(|| next + random.below(5) as u8);
            next = own.unwrap_or(next) + 1;
            variants.push((*name, own, fields(random, defined)));
        }
        Shape::Enumeration(random.one(&REPRESENTATIONS), variants)
    };
    Definition {
        name: random.one(&NAMES),
        shape,
    }
}

/// The same with one change at most.
fn twin(random: &mut Random, of: &Definition, defined: usize) -> Definition {
    let mut twin = of.clone();
    if random.below(3) == 0 {
        return twin;
    }
    let lists: Vec<&mut Vec<Field>> = match &mut twin.shape {
        Shape::Structure(representation, fields) => {
            if random.below(4) == 0 {
                *representation = random.one(&["", "C", "align(16)"]);
                return twin;
            }
            vec![fields]
        }
        Shape::Enumeration(representation, variants) => {
            match random.below(4) {
                0 => {
                    *representation = random.one(&REPRESENTATIONS);
                    return twin;
                }
                1 => {
                    // Numbers grow by at most seven for each variant.
                    let last = variants.len() - 1;
                    variants[last].1 = Some(100 + random.below(3) as u8);
                    return twin;
                }
                _ => variants.iter_mut().map(|variant| &mut variant.2).collect(),
            }
        }
    };
    let mut lists: Vec<_> = lists.into_iter().filter(|list| !list.is_empty()).collect();
    if lists.is_empty() {
        twin.name = random.one(&NAMES);
        return twin;
    }
    let which = random.below(lists.len());
    let list = &mut lists[which];
    let at = random.below(list.len());
    match random.below(4) {
        0 => list[at].name = "other",
        1 => {
            let (first, second) = (list[0].kind.clone(), list[at].kind.clone());
            (list[0].kind, list[at].kind) = (second, first);
        }
        // Two words, like a vector.
        2 => list[at].kind = Type::Array(Box::new(Type::Plain("u64")), 2),
        _ => list[at].kind = kind(random, 3, defined),
    }
    twin
}

/// Variants with fields have numbers of their own only where their type is said.
fn as_rust_has_it(mut definition: Definition) -> Definition {
    if let Shape::Enumeration("C", variants) = &mut definition.shape {
        for (_, own, _) in variants {
            *own = None;
        }
    }
    definition
}

/// As Rust is written. Names of this program's own types hide none of these.
fn written(kind: &Type, own: &str, all: &[Definition]) -> String {
    let inner = |kind: &Type| written(kind, own, all);
    match kind {
        Type::Plain(name) => format!("::core::primitive::{name}"),
        Type::Unit => "()".into(),
        Type::Text => "::mullion_sip::ExString".into(),
        Type::Array(of, count) => format!("[{}; {count}]", inner(of)),
        Type::Tuple(of) => {
            let each: String = of.iter().map(|kind| inner(kind) + ", ").collect();
            format!("({each})")
        }
        Type::Option(of) => format!("::core::option::Option<{}>", inner(of)),
        Type::Result(of, or) => format!("::core::result::Result<{}, {}>", inner(of), inner(or)),
        Type::Box(of) => format!("::mullion_sip::ExBox<{}>", inner(of)),
        Type::Vector(of) => format!("::mullion_sip::ExVec<{}>", inner(of)),
        Type::Own => format!("::core::option::Option<::mullion_sip::ExBox<{own}>>"),
        Type::Defined(number) => format!("super::m{number}::{}", all[*number].name),
    }
}

/// Everything about a type, in words, but for layouts and earlier definitions (`<7>`): these the program adds.
fn described(kind: &Type) -> String {
    let inner = |kind: &Type| described(kind);
    match kind {
        Type::Plain(name) => (*name).into(),
        Type::Unit => "nothing".into(),
        Type::Text => "text".into(),
        Type::Array(of, count) => format!("{count} of ({})", inner(of)),
        Type::Tuple(of) => {
            let each: Vec<String> = of.iter().map(inner).collect();
            format!("tuple ({})", each.join("; "))
        }
        Type::Option(of) => format!("maybe ({})", inner(of)),
        Type::Result(of, or) => format!("({}) or ({})", inner(of), inner(or)),
        Type::Box(of) => format!("box ({})", inner(of)),
        Type::Vector(of) => format!("vector ({})", inner(of)),
        Type::Own => "maybe (box (the one around))".into(),
        Type::Defined(number) => format!("<{number}>"),
    }
}

fn whole(definition: &Definition) -> String {
    let list = |fields: &[Field]| {
        let each = fields.iter();
        let each: Vec<String> = each
            .map(|field| format!("{}: {}", field.name, described(&field.kind)))
            .collect();
        format!("{{{}}}", each.join(", "))
    };
    match &definition.shape {
        Shape::Structure(_, fields) => {
            format!("struct {} {}", definition.name, list(fields))
        }
        Shape::Enumeration(representation, variants) => {
            let mut next = 0;
            let each = variants.iter().map(|(name, own, fields)| {
                let number = own.unwrap_or(next);
                next = number + 1;
                format!("{name} = {number} {}", list(fields))
            });
            let each: Vec<String> = each.collect();
            let mut parts: Vec<&str> = representation.split(", ").collect();
            parts.sort_unstable();
            format!(
                "enum {} [{}] {}",
                definition.name,
                parts.join(", "),
                each.join(" | ")
            )
        }
    }
}

fn program(random: &mut Random, count: usize) -> String {
    let mut all = Vec::new();
    while all.len() < count {
        let base = definition(random, all.len());
        let twin = twin(random, &base, all.len());
        all.extend([base, twin].map(as_rust_has_it));
    }
    let mut text = String::from(
        "#![allow(dead_code, non_camel_case_types)]\nuse mullion_sip::{Digest, Exchange};\n",
    );
    for (number, definition) in all.iter().enumerate() {
        let list = |fields: &[Field]| -> String {
            let each = fields.iter();
            each.map(|field| {
                let kind = written(&field.kind, definition.name, &all);
                format!("pub {}: {kind}, ", field.name)
            })
            .collect()
        };
        let name = definition.name;
        let _ = writeln!(text, "pub mod m{number} {{");
        let _ = match &definition.shape {
            Shape::Structure(representation, fields) => {
                let attribute = match *representation {
                    "" => String::new(),
                    of => format!("#[repr({of})] "),
                };
                let fields = list(fields);
                writeln!(
                    text,
                    "#[derive(::mullion_sip::Exchange)] {attribute}pub struct {name} {{ {fields} }}"
                )
            }
            Shape::Enumeration(representation, variants) => {
                let each: String = variants
                    .iter()
                    .map(|(variant, own, fields)| {
                        let fields = list(fields).replace("pub ", "");
                        let own = own.map_or(String::new(), |own| format!(" = {own}"));
                        format!("{variant} {{ {fields} }}{own}, ")
                    })
                    .collect();
                writeln!(
                    text,
                    "#[derive(::mullion_sip::Exchange)] #[repr({representation})] pub enum {name} {{ {each} }}"
                )
            }
        };
        text += "}\n";
    }
    text += "fn main() {\n    let mut all: Vec<(String, Digest)> = Vec::new();\n";
    for (number, definition) in all.iter().enumerate() {
        let path = format!("m{number}::{}", definition.name);
        let places = match &definition.shape {
            Shape::Structure(_, fields) => {
                let each = fields.iter();
                let each: Vec<String> = each
                    .map(|field| format!("std::mem::offset_of!({path}, {})", field.name))
                    .collect();
                format!("vec![{}]", each.join(", "))
            }
            Shape::Enumeration(..) => "Vec::<usize>::new()".into(),
        };
        let description = whole(definition);
        let _ = writeln!(
            text,
            "    add(&mut all, {description:?}, {places}, <{path} as Exchange>::DIGEST, size_of::<{path}>(), align_of::<{path}>());"
        );
    }
    text += r#"
    let (mut same, mut apart) = (0, 0);
    for (index, one) in all.iter().enumerate() {
        for other in &all[..index] {
            let means_the_same = one.0 == other.0;
            assert_eq!(one.1 == other.1, means_the_same, "\n{one:?}\n{other:?}");
            if means_the_same { same += 1 } else { apart += 1 }
        }
    }
    assert!(same >= all.len() / 8, "{same} pairs are the same");
    assert!(apart >= all.len(), "{apart} pairs differ");
}

/// An earlier definition stands in the text as the first one that has the same text: so texts stay short.
fn add(all: &mut Vec<(String, Digest)>, text: &str, places: Vec<usize>, digest: Digest, size: usize, align: usize) {
    let mut whole = format!("{size} {align} {places:?} ");
    for (index, piece) in text.split('<').enumerate() {
        let Some((number, rest)) = piece.split_once('>').filter(|_| index > 0) else {
            whole.push_str(piece);
            continue;
        };
        let earlier = &all[number.parse::<usize>().expect("a number")].0;
        let first = all.iter().position(|one| one.0 == *earlier).expect("it is there");
        whole.push_str(&format!("(the text of {first}){rest}"));
    }
    all.push((whole, digest));
}
"#;
    text
}

#[test]
fn equal_digests_mean_equal_types() {
    let wanted = std::env::var("MULLION_SHAPES").unwrap_or_else(|_| format!("{SEED} {TYPES}"));
    let mut words = wanted
        .split(' ')
        .map(|word| word.parse::<u64>().expect("a number"));
    let (seed, types) = (
        words.next().expect("a seed"),
        words.next().expect("how many"),
    );
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, compiled) = (place.join("shapes.rs"), place.join("shapes"));
    std::fs::write(&source, program(&mut Random(seed), types as usize)).expect("written");
    compile(&source, &compiled);
    let ran = Command::new(&compiled).status().expect("it starts");
    assert!(ran.success(), "{}: {ran}", source.display());
}

/// Compiles a program with the library that this very test is built with: nothing but the program is compiled.
fn compile(source: &Path, compiled: &Path) {
    let library = library();
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "-L"]);
    let mut dependencies = std::ffi::OsString::from("dependency=");
    dependencies.push(library.parent().expect("it lies with what it needs"));
    let mut library_as = std::ffi::OsString::from("mullion_sip=");
    library_as.push(&library);
    rustc.arg(dependencies).arg("--extern").arg(library_as);
    let status = rustc.arg("-o").arg(compiled).arg(source).status();
    assert!(status.expect("rustc starts").success());
}

/// Where cargo has `libmullion_sip.rlib`. It says so when it builds this test again, which has nothing left to do.
fn library() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args([
        "build",
        "--quiet",
        "--message-format=json",
        "--test",
        "shapes",
    ]);
    match std::env::var_os("MULLION_TEST_WORKSPACE") {
        Some(_) => build.arg("--workspace"),
        None => build.args(["--package", "mullion-sip"]),
    };
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    let output = build.current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let output = output.expect("cargo starts");
    assert!(output.status.success(), "{output:?}");
    let messages = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    let mut files = messages
        .map(|message| message.expect("a message of cargo's"))
        .filter(|message| message["target"]["name"] == "mullion_sip")
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|file| Some(PathBuf::from(file.as_str()?)));
    files
        .find(|file| file.extension().is_some_and(|kind| kind == "rlib"))
        .expect("the library of this crate")
}
