//! Files that are refused, each for what is wrong with it, and before any of their code runs.

#![forbid(unsafe_code)]

#[path = "built/mod.rs"]
mod built;
#[path = "../../../language/sip/tests/host/mod.rs"]
mod host;

use std::ops::Range;
use std::path::Path;
use std::process::Command;

use built::library;
use host::host;
use mullion_sip::manifest::{BUILD, Unreadable};
use mullion_sip_host::image::{ElfError, ImageReason, SipImage, What};
use mullion_sip_host::supervisor::RunSetupError;
use mullion_sip_host::{Configuration, SipSupervisor};

const MAGIC: &[u8] = b"mullion-sip\0";

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(library(name)).expect("it was built")
}

/// What becomes of a file with these bytes.
fn judged(bytes: &[u8]) -> Result<SipImage, ImageReason> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("lib.so");
    std::fs::write(&path, bytes).expect("written");
    SipImage::read(&path, None).map_err(|error| {
        assert!(error.to_string().contains("lib.so"), "{error}");
        error.reason
    })
}

/// Where the manifest is in a file, and where a part of it is.
fn manifest(bytes: &[u8]) -> usize {
    find(bytes, &[MAGIC, &1u64.to_le_bytes()].concat()).start
}

fn find(bytes: &[u8], part: &[u8]) -> Range<usize> {
    let start = bytes
        .windows(part.len())
        .position(|window| window == part)
        .expect("it is there");
    start..start + part.len()
}

/// The library with a part of its manifest replaced by as many bytes.
fn with(part: &[u8], other: &[u8]) -> Vec<u8> {
    assert_eq!(part.len(), other.len());
    let mut all = bytes("odd");
    let start = manifest(&all);
    let place = find(&all[start..], part);
    all[start + place.start..start + place.end].copy_from_slice(other);
    all
}

#[test]
fn what_was_built_for_this_host_is_taken() {
    let image = SipImage::read(&library("odd"), None).expect("taken");
    assert_eq!((image.name(), image.limits().threads), ("odd", 4));
    assert_eq!(image.contracts()[0].name, "echo");
    let pinned = SipImage::read(&library("odd"), Some(image.digest()));
    assert!(pinned.is_ok());
}

#[test]
fn what_is_no_library() {
    assert!(matches!(
        judged(b""),
        Err(ImageReason::Elf(ElfError::NotElf))
    ));
    assert!(matches!(
        judged(b"#!/bin/sh\n"),
        Err(ImageReason::Elf(ElfError::NotElf))
    ));
    let mut small = bytes("odd");
    small[4] = 1;
    assert!(matches!(
        judged(&small),
        Err(ImageReason::Elf(ElfError::NotForThisMachine))
    ));
    let mut other = bytes("odd");
    other[18] = 183; // AArch64
    assert!(matches!(
        judged(&other),
        Err(ImageReason::Elf(ElfError::NotForThisMachine))
    ));
    let absent = SipImage::read(Path::new("/nonexistent/lib.so"), None);
    assert!(matches!(
        absent.expect_err("absent").reason,
        ImageReason::Unreadable(_)
    ));
    let program = std::env::current_exe().expect("a program");
    let reason = SipImage::read(&program, None)
        .expect_err("a program")
        .reason;
    assert!(
        matches!(reason, ImageReason::NoManifest | ImageReason::Manifest(_)),
        "{reason}"
    );
}

#[test]
fn what_is_cut_short() {
    let all = bytes("odd");
    let step = all.len() / 97;
    for length in (0..all.len()).step_by(step).chain([all.len() - 1]) {
        let reason = judged(&all[..length]).expect_err("cut");
        assert!(matches!(reason, ImageReason::Elf(_)), "{length}: {reason}");
    }
}

#[test]
fn what_another_format_or_build_made() {
    let other = with(
        &[MAGIC, &1u64.to_le_bytes()].concat(),
        &[MAGIC, &2u64.to_le_bytes()].concat(),
    );
    assert!(matches!(
        judged(&other),
        Err(ImageReason::Manifest(Unreadable::Format(2)))
    ));
    let damaged = with(b"mullion-sip\0", b"mullion-slip");
    assert!(matches!(
        judged(&damaged),
        Err(ImageReason::Manifest(Unreadable::NoManifest))
    ));
    for (part, expected) in [
        (BUILD.compiler.as_bytes(), What::Compiler),
        (BUILD.target.as_bytes(), What::Target),
        (BUILD.panic.as_bytes(), What::Panic),
        (&BUILD.sources.0, What::Sources),
        (&BUILD.layout.0, What::Layout),
    ] {
        let mut other = part.to_vec();
        other[0] ^= 1;
        let reason = judged(&with(part, &other)).expect_err("another build");
        let text = reason.to_string();
        match reason {
            ImageReason::Differs { what, advice, .. } => {
                assert_eq!(what, expected);
                assert!(
                    text.contains(&what.to_string()) && text.contains(advice),
                    "{text}"
                );
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn what_has_changed_since_it_was_pinned() {
    let pinned = SipImage::read(&library("odd"), None)
        .expect("taken")
        .digest();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("lib.so");
    let mut all = bytes("odd");
    for at in [0, all.len() / 3, all.len() / 2, all.len() - 1] {
        all[at] ^= 0x10;
        std::fs::write(&path, &all).expect("written");
        let reason = SipImage::read(&path, Some(pinned))
            .expect_err("changed")
            .reason;
        assert!(
            matches!(reason, ImageReason::Changed { wanted, .. } if wanted == pinned),
            "{reason}"
        );
        all[at] ^= 0x10;
    }
}

/// What the constructor of `examples/sip/tests/hostile` makes where it runs.
const MARK: &str = "sip-hostile-mark";

#[test]
fn what_would_run_a_constructor() {
    let directory = tempfile::tempdir().expect("a directory");
    let mark = directory.path().join(MARK);
    let hostile = library("hostile");
    let reason = SipImage::read(&hostile, None)
        .expect_err("a constructor")
        .reason;
    assert!(
        matches!(reason, ImageReason::Elf(ElfError::Constructor(_))),
        "{reason}"
    );
    let text = format!("[processes.hostile]\nlibrary = {hostile:?}");
    let ran = |library: Option<&Path>| {
        let mut command = Command::new("/bin/true");
        command.current_dir(directory.path());
        library.map(|library| command.env("LD_PRELOAD", library));
        assert!(command.status().expect("it runs").success());
        mark.exists()
    };
    let refused = SipSupervisor::new(&host(), &Configuration::parse(&text).expect("well formed"));
    assert!(matches!(refused.err(), Some(RunSetupError::Image { .. })));
    assert!(!Path::new(MARK).exists(), "nothing has run here");
    assert!(!ran(None), "nothing has run");
    assert!(ran(Some(&hostile)), "it would, if it were loaded");
}

#[test]
fn what_needs_other_libraries_or_is_resolved_by_code() {
    // A library that is needed, by its name in the table of names.
    let mut all = bytes("odd");
    let place = find(&all, b"\0libgcc_s.so.1\0");
    all[place.start + 4] = b'x';
    match judged(&all) {
        Err(ImageReason::Elf(ElfError::Needs(name))) => assert_eq!(name, "libxcc_s.so.1"),
        other => panic!("{:?}", other.err()),
    }
    // A relocation by the library's own address, made one that calls what is there: three in a row are a table.
    let mut all = bytes("odd");
    let words: Vec<u64> = all
        .chunks_exact(8)
        .map(|word| {
            word.iter()
                .rev()
                .fold(0, |value, byte| value << 8 | u64::from(*byte))
        })
        .collect();
    let relative = words
        .windows(7)
        .position(|words| words[0] == 8 && words[3] == 8 && words[6] == 8);
    all[8 * relative.expect("a table of relocations")] = 37;
    let reason = judged(&all).expect_err("a resolver");
    assert!(
        matches!(reason, ImageReason::Elf(ElfError::Relocation(37))),
        "{reason}"
    );
}

/// Segments that are written and executed, and a stack that is executed or of which nothing is said.
#[test]
fn what_could_be_written_and_run() {
    const LOAD: u32 = 1;
    const STACK: u32 = 0x6474_e551;
    let all = bytes("odd");
    let number = |at: usize, bytes: usize| {
        let bytes = all[at..at + bytes].iter().rev();
        bytes.fold(0, |value, byte| value << 8 | usize::from(*byte))
    };
    let (first, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    let segments = || (0..count).map(|index| first + index * size);
    let is_refused = |at: usize, with: &[u8]| {
        let mut changed = all.clone();
        changed[at..at + with.len()].copy_from_slice(with);
        let reason = judged(&changed).expect_err("code that can be written");
        assert!(
            matches!(reason, ImageReason::Elf(ElfError::WritableCode)),
            "{reason}"
        );
    };
    let mut kinds = [0, 0, 0];
    for at in segments() {
        let (kind, flags) = (number(at, 4) as u32, number(at + 4, 4) as u8);
        match kind {
            LOAD if flags & 1 != 0 => {
                kinds[0] += 1;
                is_refused(at + 4, &[flags | 2]);
            }
            LOAD if flags & 2 != 0 => {
                kinds[1] += 1;
                is_refused(at + 4, &[flags | 1]);
            }
            STACK => {
                kinds[2] += 1;
                is_refused(at + 4, &[flags | 1]);
                is_refused(at, &[0; 4]);
            }
            _ => {}
        }
    }
    assert!(kinds.iter().all(|kind| *kind > 0), "{kinds:?}");
}

/// Nobody waits for what a pipe would say.
#[test]
fn what_is_no_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let pipe = directory.path().join("lib.so");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("it runs");
    assert!(made.success());
    for path in [&*pipe, directory.path(), Path::new("/dev/zero")] {
        let refused = SipImage::read(path, None).expect_err("no file");
        assert!(matches!(refused.reason, ImageReason::NotAFile), "{refused}");
    }
}

#[test]
fn libraries_with_different_contracts_of_one_name_do_not_start() {
    let echo = SipImage::read(&library("echo"), None).expect("taken");
    let digest = echo.contracts()[0].digest;
    let mut other = digest.0;
    other[31] ^= 0xff;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("other.so");
    std::fs::write(&path, with(&digest.0, &other)).expect("written");
    let text = format!(
        "[processes.echo]\nlibrary = {:?}\n[processes.other]\nlibrary = {path:?}",
        library("echo")
    );
    match SipSupervisor::new(&host(), &Configuration::parse(&text).expect("well formed")).err() {
        Some(RunSetupError::Contracts(found)) => {
            assert_eq!((&*found.contract, found.ours), ("echo", digest));
            assert_eq!((found.second, found.theirs.0), (path, other));
        }
        other => panic!("{other:?}"),
    }
}

/// A process ends at any instruction. In one of these it would leave a lock of the C library's to its host.
#[test]
fn what_would_hold_a_lock_of_the_host() {
    let before = b"\0_Unwind_GetLanguageSpecificData\0";
    for name in [
        "dl_iterate_phdr",
        "malloc",
        "calloc",
        "realloc",
        "free",
        "posix_memalign",
        "aligned_alloc",
        "memalign",
        "__xpg_strerror_r",
        "pthread_key_create",
        "pthread_setspecific",
        "dlopen",
        "dlsym",
        "setlocale",
        "tzset",
    ] {
        let mut all = bytes("odd");
        let start = find(&all, before).start + 1;
        all[start..start + name.len()].copy_from_slice(name.as_bytes());
        all[start + name.len()] = 0;
        match judged(&all) {
            Err(ImageReason::Elf(ElfError::Imports(found))) => {
                assert_eq!(found.names().collect::<Vec<_>>(), [name]);
            }
            other => panic!("{name}: {:?}", other.err()),
        }
    }
}

/// Thread-locals are each thread's own only where the library finds them by itself.
#[test]
fn what_would_share_thread_locals() {
    let names: [(&[u8], &str); 2] = [
        (b"\0__cxa_finalize\0", "__tls_get_addr"),
        (
            b"\0_Unwind_GetLanguageSpecificData\0",
            "__cxa_thread_atexit_impl",
        ),
    ];
    for (before, name) in names {
        let mut all = bytes("odd");
        let start = find(&all, before).start + 1;
        all[start..start + name.len()].copy_from_slice(name.as_bytes());
        all[start + name.len()] = 0;
        match judged(&all) {
            Err(ImageReason::Elf(ElfError::ThreadLocals(found))) => assert_eq!(found, name),
            other => panic!("{:?}", other.err()),
        }
    }
    // Offsets from the OS thread's pointer, into another module, and functions that know them.
    let all = bytes("odd");
    let at = |kind: u8| {
        let mut words = all.chunks_exact(8).enumerate();
        let word = words.find(|(_, word)| word[..4] == [kind, 0, 0, 0] && word[4..] == [0; 4]);
        word.map(|(index, _)| 8 * index)
    };
    // In a table of relocations each third word is a kind: here of the library's own number.
    let own = at(16).expect("the library's number for its thread-locals");
    for kind in [17, 18, 36] {
        let mut changed = all.clone();
        changed[own] = kind;
        let reason = judged(&changed).expect_err("a way around");
        let refused = matches!(reason, ImageReason::Elf(ElfError::Relocation(found)) if found == u32::from(kind));
        assert!(refused, "{kind}: {reason}");
    }
}

/// The image that each thread's thread-locals begin as lies in the library, and is no larger than it may be.
#[test]
fn what_says_nonsense_of_its_thread_locals() {
    const LOCALS: u64 = 7;
    let all = bytes("odd");
    let number = |at: usize, bytes: usize| {
        let bytes = all[at..at + bytes].iter().rev();
        bytes.fold(0, |value, byte| value << 8 | u64::from(*byte))
    };
    let (first, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    let mut segments = (0..count).map(|index| (first + index * size) as usize);
    let segment = segments.find(|at| number(*at, 4) == LOCALS).expect("one");
    let (start, filled, bytes, align) = (segment + 16, segment + 32, segment + 40, segment + 48);
    let changes: [(usize, u64); 9] = [
        (start, 1 << 40),
        (start, u64::MAX - 7),
        (start, number(start, 8) + 1),
        (filled, number(bytes, 8) + 8),
        (filled, u64::MAX),
        (bytes, 1 << 20),
        (bytes, u64::MAX),
        (align, 3),
        (align, 1 << 20),
    ];
    for (at, value) in changes {
        let mut changed = all.clone();
        changed[at..at + 8].copy_from_slice(&value.to_le_bytes());
        let reason = judged(&changed).expect_err("nonsense");
        let refused = matches!(
            reason,
            ImageReason::Elf(ElfError::Damaged("its thread-locals"))
        );
        assert!(refused, "{value:#x} at {at}: {reason}");
    }
}
