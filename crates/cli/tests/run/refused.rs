//! Files that are no images, images that are not to be run, and misuse of the command.

use crate::{expect, image, mullion, text};
use object::{Object, ObjectSection};
use std::fs;
use std::path::Path;

/// Runs a file, which must be refused with these words, and nothing else done.
#[track_caller]
fn refused(path: &Path, words: &str) {
    let output = mullion(&["run"]).arg(path).output().expect("started");
    expect(&output, 126, "");
    let said = text(&output.stderr);
    assert!(
        said.starts_with("mullion: ") && said.contains(words),
        "{said}"
    );
}

#[test]
fn files_that_are_no_images() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    refused(&at("missing"), "No such file");
    refused(directory.path(), "directory");
    for (name, content) in [
        ("empty", &b""[..]),
        ("text", b"#!/bin/sh\n"),
        ("magic", b"\x7fELF"),
    ] {
        fs::write(at(name), content).expect("a file");
        refused(&at(name), "refused");
    }
    refused(Path::new(env!("CARGO_BIN_EXE_mullion")), "refused");
    let whole = fs::read(image("streams")).expect("an image");
    for part in [64, 4096, whole.len() / 4] {
        fs::write(at("part"), &whole[..part]).expect("a file");
        refused(&at("part"), "refused");
    }
}

#[test]
fn a_source_file_is_refused_with_the_command_that_compiles_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, tool) in [("prog.c", "cc"), ("prog.cc", "c++"), ("prog.o", "cc")] {
        let path = directory.path().join(name);
        fs::write(&path, "int main(void) { return 0; }\n").expect("a file");
        let image = path.with_extension("mx");
        let way_out = format!(
            "first: mullion {tool} {} -o {}",
            path.display(),
            image.display()
        );
        refused(&path, &way_out);
        for command in ["verify", "inspect"] {
            let output = mullion(&[command]).arg(&path).output().expect("started");
            assert_eq!(output.status.code(), Some(1));
            let said = text(&output.stdout) + &text(&output.stderr);
            assert!(said.contains(&way_out), "{said}");
        }
    }
}

#[test]
fn files_beyond_the_limit_are_not_read() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("vast.mx");
    let file = fs::File::create(&path).expect("a file");
    // A hole: it takes no room on the disk.
    file.set_len((1 << 30) + 1).expect("a hole");
    refused(&path, "larger than 1073741824 bytes");
    let endless = |arguments: &[&str]| {
        let output = mullion(arguments).arg("/dev/zero").output();
        let output = output.expect("started");
        let said = text(&output.stderr);
        assert!(
            said.contains("/dev/zero: larger than 65536 bytes"),
            "{said}"
        );
        output.status.code()
    };
    assert_eq!(endless(&["run", "--max-image=64K"]), Some(126));
    for command in ["verify", "inspect"] {
        assert_eq!(endless(&[command, "--max-image=64K"]), Some(1));
    }
    let size = fs::metadata(image("streams")).expect("an image").len();
    let limit = |size: u64| {
        let option = format!("--max-image={size}");
        let output = mullion(&["verify", &option]).arg(image("streams")).output();
        output.expect("started").status.code()
    };
    assert_eq!((limit(size), limit(size - 1)), (Some(0), Some(1)));
}

#[test]
fn an_image_with_one_byte_changed() {
    let mut bytes = fs::read(image("streams")).expect("an image");
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let entry = file.entry();
    let code = file
        .sections()
        .find(|section| (section.address()..section.address() + section.size()).contains(&entry));
    let code = code.expect("code");
    let start = code.file_range().expect("in the file").0;
    // `hlt` has no row.
    let place = (start + entry - code.address()) as usize;
    bytes[place] = 0xf4;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("changed.mx");
    fs::write(&path, bytes).expect("a file");
    refused(&path, "mullion verify");
}

#[test]
fn an_image_that_imports_what_nobody_offers() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    let mut bytes = fs::read(image("streams")).expect("an image");
    let name = b"__mullion_system\0";
    let places: Vec<usize> = (0..bytes.len() - 64)
        .filter(|at| {
            bytes[*at..].starts_with(name)
                && bytes[*at..*at + 64][name.len()..] == [0; 64][name.len()..]
        })
        .collect();
    assert!(!places.is_empty(), "the import's record");
    for place in places {
        bytes[place + 2] = b'X';
    }
    fs::write(at("unknown.mx"), bytes).expect("a file");
    refused(
        &at("unknown.mx"),
        "imports __Xullion_system, which this host does not offer",
    );
}

#[test]
fn misuse_has_status_2_and_a_hint() {
    for (arguments, hint) in [
        (&["run"][..], "Usage"),
        (&["run", "--dir", "nowhere", "x.mx"], "HOST::GUEST"),
        (
            &["run", "--dir", "/nonexistent::/d", "x.mx"],
            "/nonexistent",
        ),
        (&["run", "--max-time", "soon", "x.mx"], "like 500ms"),
        (&["run", "--max-memory", "much", "x.mx"], "K, M or G"),
        (&["run", "--max-stack", "1G", "x.mx"], "8128K"),
        (&["run", "--no-such-option", "x.mx"], "--no-such-option"),
    ] {
        let output = mullion(arguments).output().expect("started");
        expect(&output, 2, "");
        assert!(
            text(&output.stderr).contains(hint),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn the_help_tells_every_status() {
    let output = mullion(&["run", "--help"]).output().expect("started");
    let help = text(&output.stdout);
    for status in ["124", "125", "126", "2 for bad"] {
        assert!(help.contains(status), "{status}:\n{help}");
    }
}
