//! Each construct that Rust can be forbidden, in each place where it may hide; `matrix.rs` is the same of C.

use super::{TOOLS, here};
use mullion_elastic::Rule;

/// Rules, and expressions that break them. `R`: what breaks it runs, so a constant cannot.
const CONSTRUCTS: &[(&str, &str, &str)] = &[
    (
        "unsafe",
        "",
        "unsafe { core::mem::transmute::<u32, i32>(1) }",
    ),
    ("inline-assembly", "", "core::arch::asm!(\"nop\")"),
    ("escaping-macros", "", "env!(\"PATH\")"),
    ("escaping-macros", "", "include_str!(\"/etc/passwd\")"),
    (
        "crates",
        "",
        "core::mem::size_of::<core::arch::x86_64::__m128i>()",
    ),
    ("attributes", "", "{ #[track_caller] fn q() {} 1u8 }"),
    (
        "external-linkage",
        "",
        "{ unsafe extern \"C\" { safe fn abs(n: i32) -> i32; } 1u8 }",
    ),
    ("async", "", "{ async fn q() {} 1u8 }"),
    ("unions", "", "{ union U { a: u8, b: i8 } 1u8 }"),
    ("loops", "", "loop { break 1u8 }"),
    (
        "loops",
        "",
        "{ let mut n = 3u8; while n > 1 { n = n >> 1; } n }",
    ),
    ("loops", "R", "[3u32, 1].iter().copied().sum::<u32>()"),
    (
        "unbounded-loops",
        "R",
        "{ let mut n = 3u8; while n > 1 { n = n >> 1; } n }",
    ),
    (
        "recursion",
        "R",
        "{ const fn r(n: u32) -> u32 { if n == 0 { 0 } else { r(n >> 1) } } r(3) }",
    ),
    ("floating-point", "", "1.5f32"),
    ("statics", "", "{ static X: u8 = 1; 1u8 }"),
    ("panics", "R", "Some(1u8).filter(|x| *x > 3).unwrap()"),
    (
        "division",
        "R",
        "{ let n = core::hint::black_box(3u32); 7 / n }",
    ),
    (
        "indirect-calls",
        "R",
        "{ fn q() -> u8 { 1 } let g: fn() -> u8 = q; g() }",
    ),
    (
        "function-pointers",
        "",
        "core::mem::size_of::<fn(u8) -> u8>()",
    ),
    ("raw-pointers", "", "core::mem::size_of::<*const u8>()"),
    (
        "trait-objects",
        "",
        "core::mem::size_of::<&dyn core::fmt::Debug>()",
    ),
    ("closures", "", "{ let q = |x: u8| x; 1u8 }"),
    ("own-traits", "", "{ trait T {} 1u8 }"),
    (
        "associated-types",
        "",
        "core::mem::size_of::<<u8 as core::ops::Not>::Output>()",
    ),
    (
        "named-lifetimes",
        "",
        "{ fn q<'a>(x: &'a u8) -> &'a u8 { x } 1u8 }",
    ),
    (
        "higher-ranked",
        "",
        "core::mem::size_of::<for<'b> fn(&'b u8)>()",
    ),
    ("guards", "", "match 1u8 { n if n > 2 => 1u8, n => n }"),
    ("operand-jumps", "", "'q: { (1u8, break 'q 2u8).0 }"),
    ("index-statements", "", "[1u8][{ 0 }]"),
    ("generics", "", "{ fn q<T>(t: T) -> T { t } 1u8 }"),
    (
        "own-macros",
        "",
        "{ macro_rules! q { () => { 1u8 } } q!() }",
    ),
];

/// Places, and programs in which `@` stands for the expression. `C`: a constant.
const PLACES: &[(&str, &str, &str)] = &[
    ("plain", "", "pub fn f() { let _x = @; }"),
    ("unused", "", "fn f() { let _x = @; }"),
    (
        "macro",
        "",
        "macro_rules! m { () => { @ } }\npub fn f() { let _x = m!(); }",
    ),
    (
        "nested macro",
        "",
        "macro_rules! m { () => { @ } }\nmacro_rules! n { ($e:expr) => { { let _x = $e; m!() } } }\npub fn f() { let _x = n!(1); }",
    ),
    (
        "argument",
        "",
        "macro_rules! m { ($e:expr) => { $e } }\npub fn f() { let _x = m!(@); }",
    ),
    (
        "tokens",
        "",
        "macro_rules! m { ($($t:tt)*) => { $($t)* } }\npub fn f() { let _x = m!(@); }",
    ),
    (
        "generic",
        "",
        "fn g<T: Copy>(t: T) -> T { let _x = @; t }\npub fn f() -> u32 { g(1) }",
    ),
    (
        "method",
        "",
        "pub struct S<T>(T);\nimpl<T> S<T> { pub fn g(&self) { let _x = @; } }\npub fn f() { S(1u8).g() }",
    ),
    (
        "trait",
        "",
        "pub struct S;\nimpl Default for S { fn default() -> S { let _x = @; S } }\npub fn f() -> S { S::default() }",
    ),
    ("constant", "C", "pub const C: () = { let _x = @; };"),
    (
        "array's length",
        "C",
        "pub fn f() -> usize { [0u8; { let _x = @; 1 }].len() }",
    ),
    ("const block", "C", "pub fn f() { const { let _x = @; } }"),
    (
        "closure",
        "",
        "pub fn f() { let g = || { let _x = @; }; g() }",
    ),
    (
        "modules",
        "",
        "mod a { pub mod b { pub fn g() { let _x = @; } } }\npub fn f() { a::b::g() }",
    ),
    (
        "file",
        "",
        "mod a;\npub fn f() { a::g() }\n//-- a.rs\npub fn g() { let _x = @; }\n",
    ),
    (
        "build flag",
        "",
        "#[cfg(all(panic = \"abort\", target_arch = \"x86_64\"))]\npub fn f() { let _x = @; }",
    ),
    (
        "branch",
        "",
        "pub fn f() { if cfg!(debug_assertions) || true { let _x = @; } }",
    ),
];

#[test]
fn a_construct_is_refused_wherever_it_hides() {
    let Some(tools) = &*TOOLS else { return };
    let (mut table, mut wrong) = (head(), Vec::new());
    for (row, (rule, runs, construct)) in CONSTRUCTS.iter().enumerate() {
        table.push_str(&format!(
            "| `{}` | `{rule}` |",
            construct.replace('|', "\\|")
        ));
        let optional = Rule::ALL.iter().find(|known| known.name() == *rule);
        let optional = optional.expect("a rule").is_optional();
        let forbid = if optional {
            format!("; forbid = [\"{rule}\"]")
        } else {
            String::new()
        };
        for (column, (place, constant, program)) in PLACES.iter().enumerate() {
            if !runs.is_empty() && !constant.is_empty() {
                table.push_str(" runs nowhere |");
                continue;
            }
            let text = program.replace('@', construct);
            let types = format!("authors = \"trusted\"{forbid}").replace(';', "\n");
            let (_, answer, said) = tools.judge(&format!("x-{row}-{column}"), &types, &text);
            let found: Vec<_> = answer
                .refusals
                .iter()
                .map(|refusal| refusal.rule.name())
                .collect();
            let refused = found.contains(rule);
            table.push_str(if refused { " refused |" } else { " **no** |" });
            if !refused {
                wrong.push(format!("{rule}, {place}: {found:?}\n{text}\n{said}"));
            }
        }
        table.push('\n');
    }
    assert!(
        wrong.is_empty(),
        "{} pass:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    let path = here().join("../matrix-rust.md");
    if std::env::var_os("MULLION_BLESS").is_some() {
        std::fs::write(&path, &table).expect("room");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == table,
        "{} is of another time: MULLION_BLESS=1",
        path.display()
    );
}

fn head() -> String {
    let places: Vec<&str> = PLACES.iter().map(|(place, ..)| *place).collect();
    format!(
        "# Constructs of Rust, and where they hide\n\n`tests/rust/matrix.rs` writes this table: {} constructs in {} places.\n\
         Code in constants runs in the compiler alone, so rules about what a call does say nothing of it.\n\n\
         | construct | rule | {} |\n|{}\n",
        CONSTRUCTS.len(),
        PLACES.len(),
        places.join(" | "),
        " --- |".repeat(PLACES.len() + 2)
    )
}
