//! `mullion bind` and names: whatever functions, parameters, structures and members are called, what is made compiles,
//! or the header is refused with the reason.

use mullion_bind::{BindError, HeaderInterface};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Words that Rust keeps and C does not.
const KEPT: &str = "abstract as async await become box crate dyn false final fn gen impl in let loop macro match mod move \
     mut override priv pub raw ref safe self Self super trait true try type unsafe unsized use virtual where yield _ __";

/// Names in what is made for Rust.
const MADE: &str = "new new_ domain call_new call_x find found result host imports own caller self_ Self_ crate_ super_ \
     extension Extension Host host_ LONGEST Struct_x Struct_Host x x_inside x_copy x_slice inside copy";

/// Names that every Rust module has, and that stubs use or once used.
const PRELUDE: &str = "None None_ Some Ok Err Option Result Vec String Box drop clone Clone Copy Send Sync Sized Drop Fn \
     FnMut FnOnce ToOwned ToString Iterator From Into TryFrom TryInto Default AsRef Eq Ord PartialEq PartialOrd Debug Hash \
     size_of align_of vec format println panic assert u8 usize i32 f32 str option result std core alloc mullion zerocopy \
     FromBytes IntoBytes Immutable FromZeros Ptr Caller Domain Error Function Imports DomainMemory len slice copy_to copy_from \
     string string_in copy_in cast call ptr new_zeroed try_from Arc arc";

/// Names in what is made for C, and what its stubs use.
const USED_IN_C: &str = "user offer status types exported value returned arguments p_inside p low_half host_new names_host \
     stacked names size count read write error";

/// Names that are refused for C, where they are the library's; Rust takes them.
const OF_MULLION: &str = "mullion_own mullion_caller mullion_result mullion_host mullion_imports mullion_length \
     mullion_elements mullion_x_inside mullion_x_copy _mullion_own __mullion_own";

/// Which side has a header's functions.
const SIDES: [&str; 2] = ["MULLION_EXTENSION", "MULLION_HOST"];

fn words(lists: &[&'static str]) -> Vec<&'static str> {
    let mut words: Vec<_> = lists
        .iter()
        .flat_map(|list| list.split_whitespace())
        .collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// A header in which each word is a function, a structure, a member of one, and each of a function's parameters.
fn header(words: &[impl AsRef<str>], side: &str) -> String {
    let mut text = "#include <mullion/bind.h>\n#include <stdint.h>\n".to_owned();
    for (index, word) in words.iter().enumerate() {
        let word = word.as_ref();
        let other = |further: usize| words[(index + further) % words.len()].as_ref();
        let [a, b, c, d, e, f] = [0, 1, 2, 3, 4, 5].map(other);
        text += &format!(
            "struct {word} {{ uint32_t {a}, {b}; }};\n\
             {side} uint32_t {word}(uint32_t {a}, const char *{b} MULLION_STRING, struct {word} *{c} MULLION_INOUT(1),\n\
             \tconst uint8_t *{d} MULLION_IN({e}), uint32_t {e}, uint16_t *{f} MULLION_OUT(4));\n"
        );
    }
    text
}

fn read(directory: &Path, text: &str) -> HeaderInterface {
    let header = directory.join("names.h");
    std::fs::write(&header, text).unwrap();
    mullion_bind::read(&header, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The library that this test is linked with: the newest beside it.
fn library(beside: &Path) -> PathBuf {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libmullion-") && name.ends_with(".rlib")
    };
    let made = |path: &PathBuf| {
        let data = std::fs::metadata(path).and_then(|data| data.modified());
        data.unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let all = std::fs::read_dir(beside).unwrap().flatten();
    let all = all.map(|entry| entry.path()).filter(is_library);
    all.max_by_key(made).expect("the library is built")
}

fn compiles_as_rust(directory: &Path, made: &str) {
    let module = directory.join("names.rs");
    std::fs::write(&module, made).unwrap();
    let program = std::env::current_exe().unwrap();
    let beside = program.parent().unwrap();
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler)
        .args([
            "--edition=2024",
            "--crate-type=lib",
            "--emit=metadata",
            "-Dwarnings",
        ])
        .arg("--extern")
        .arg(format!("mullion={}", library(beside).display()))
        .arg("-L")
        .arg(format!("dependency={}", beside.display()))
        .arg("--out-dir")
        .arg(directory)
        .arg(&module)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}", &said[..said.len().min(6000)]);
}

fn compiles_as_c(directory: &Path, made: &str) {
    let stubs = directory.join("stubs.h");
    std::fs::write(&stubs, made).unwrap();
    let top = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let output = Command::new("gcc")
        .args(["-std=gnu11", "-Wall", "-Werror", "-fsyntax-only", "-I"])
        .arg(format!("{top}/include"))
        .arg(format!("-I{top}/sysroot/include"))
        .arg(&stubs)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}", &said[..said.len().min(6000)]);
}

#[test]
fn every_name_compiles_in_rust() {
    let words = words(&[KEPT, MADE, PRELUDE, USED_IN_C, OF_MULLION]);
    for side in SIDES {
        let directory = tempfile::tempdir().unwrap();
        let interface = read(directory.path(), &header(&words, side));
        assert_eq!(interface.functions.len(), words.len());
        compiles_as_rust(directory.path(), &mullion_bind::rust(&interface, "names.h"));
    }
}

/// Those that the header needs for itself are refused, one by one; all others compile together.
#[test]
fn every_name_compiles_in_c_or_is_refused() {
    let words = words(&[
        KEPT,
        MADE,
        PRELUDE,
        USED_IN_C,
        OF_MULLION,
        "malloc_ calloc_ uint64_t_ find_",
    ]);
    for (side, refused) in SIDES
        .into_iter()
        .zip([&["domain", "find", "offer"][..], &["user"]])
    {
        let directory = tempfile::tempdir().unwrap();
        let interface = read(directory.path(), &header(&words, side));
        let is_refused = |name: &str| refused.contains(&name) || name.starts_with("mullion_");
        for function in &interface.functions {
            let alone = HeaderInterface {
                functions: vec![mullion_bind::BoundFunction {
                    parameters: Vec::new(),
                    ..function.clone()
                }],
                structs: Vec::new(),
            };
            match (
                mullion_bind::c(&alone, "names.h"),
                is_refused(&function.name),
            ) {
                (Ok(_), false) => {}
                (Err(BindError::Unsupported { place, .. }), true) => {
                    assert_eq!(place, function.name)
                }
                (answer, _) => panic!("{}: {answer:?}", function.name),
            }
        }
        let tags = ["names_host", "names_extension"];
        let rest = words
            .iter()
            .filter(|word| !is_refused(word) && !tags.contains(word));
        let rest: Vec<_> = rest.collect();
        let interface = read(directory.path(), &header(&rest, side));
        let made = mullion_bind::c(&interface, "names.h").unwrap();
        compiles_as_c(directory.path(), &made);
    }
}

/// The made header's own functions and structures.
#[test]
fn what_the_made_header_has_is_refused_in_an_interface_for_c() {
    let directory = tempfile::tempdir().unwrap();
    for (text, name) in [
        (
            "MULLION_EXTENSION int check(int a); MULLION_EXTENSION int names_check(int a);",
            "names_check",
        ),
        ("MULLION_EXTENSION int names_find(int a);", "names_find"),
        ("MULLION_HOST int names_offer(int a);", "names_offer"),
        (
            "struct names_host { int a; }; MULLION_HOST void f(struct names_host *a MULLION_IN(1));",
            "names_host",
        ),
        (
            "struct names_extension { int a; }; MULLION_HOST void f(struct names_extension *a MULLION_IN(1));",
            "names_extension",
        ),
    ] {
        let interface = read(
            directory.path(),
            &format!("#include <mullion/bind.h>\n{text}\n"),
        );
        match mullion_bind::c(&interface, "names.h") {
            Err(BindError::Unsupported { place, .. }) => assert_eq!(place, name),
            answer => panic!("{text}: {answer:?}"),
        }
    }
    // An export that is called as the stub of one of the host's functions once was.
    let text = "#include <mullion/bind.h>\nMULLION_EXTENSION float host_a(float a); MULLION_HOST float a(float b);\n";
    let interface = read(directory.path(), text);
    compiles_as_c(
        directory.path(),
        &mullion_bind::c(&interface, "names.h").unwrap(),
    );
}

/// Names that are nearly the same, from all pieces that names are changed by.
#[test]
fn names_that_are_nearly_the_same_stay_different() {
    let mut words = Vec::new();
    for stem in [
        "new",
        "self",
        "Self",
        "type",
        "None",
        "ab",
        "a_b",
        "aB",
        "mullion_a",
        "_1",
        "Host",
    ] {
        for (front, back) in [
            ("", ""),
            ("_", ""),
            ("__", ""),
            ("", "_"),
            ("", "__"),
            ("_", "_"),
        ] {
            words.push(format!("{front}{stem}{back}"));
        }
    }
    words.sort_unstable();
    words.dedup();
    for side in SIDES {
        let directory = tempfile::tempdir().unwrap();
        let interface = read(directory.path(), &header(&words, side));
        compiles_as_rust(directory.path(), &mullion_bind::rust(&interface, "names.h"));
    }
}

/// Names of letters that make most collisions, at random.
#[test]
fn random_names_compile() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 16) as usize % below
    };
    let pieces = [
        "_", "a", "A", "n", "new", "self", "type", "mullion_", "inside", "None", "host", "1",
    ];
    let mut words: Vec<String> = (0..150)
        .map(|_| {
            (0..=random(4))
                .map(|_| pieces[random(pieces.len())])
                .collect()
        })
        .filter(|word: &String| !word.starts_with('1'))
        .collect();
    words.sort_unstable();
    words.dedup();
    let directory = tempfile::tempdir().unwrap();
    for side in SIDES {
        let interface = read(directory.path(), &header(&words, side));
        compiles_as_rust(directory.path(), &mullion_bind::rust(&interface, "names.h"));
    }
    words.retain(|word| !word.starts_with("mullion_"));
    for side in SIDES {
        let interface = read(directory.path(), &header(&words, side));
        let made = mullion_bind::c(&interface, "names.h").unwrap();
        compiles_as_c(directory.path(), &made);
    }
}
