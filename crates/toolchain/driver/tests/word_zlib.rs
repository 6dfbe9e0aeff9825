//! From C to a call behind the word wall, with all its parts: the driver makes a module of zlib, the verifier accepts
//! it, the run time loads it by a policy, and this program calls it.
//!
//! gcc calls this very program as its assembler and linker, so it has a `main` of its own.

use mullion_driver::{Arguments, Language, assemble, compile, link};
use mullion_word_runtime::{
    Domain, Effect, FaultKind, FunctionPolicy, Host, Module, Note, Policy, Size, Want,
};
use mullion_word_verifier::verify;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

type Codec = extern "C" fn(*mut u8, usize, *const u8, usize) -> i64;
type Sum = extern "C" fn(*const u8, usize) -> u64;

const SOURCES: [&str; 10] = [
    "adler32", "compress", "crc32", "deflate", "inffast", "inflate", "inftrees", "trees",
    "uncompr", "zutil",
];

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = PathBuf::from(arguments.next().unwrap_or_default());
    let tool = match program.file_name().and_then(|name| name.to_str()) {
        Some("as") => assemble(arguments),
        Some("ld") => link(arguments),
        _ => {
            let scratch = tempfile::tempdir().expect("a temporary directory");
            let lock = mullion_fetch::Lock::parse(include_str!("../../../../sysroot/sources.toml"));
            let lock = lock.expect("the lock file");
            let source = lock.source("zlib").expect("it has zlib");
            let zlib = mullion_fetch::fetch(source).expect("zlib's sources");
            for protection in ["read-write", "write"] {
                let module = module(&zlib.join("src/zlib"), scratch.path(), protection);
                let host = Host::new().expect("Linux, with address space");
                it_packs_and_unpacks(&load(&host, &module));
                one_byte_too_many_is_refused(&load(&host, &module), protection);
                nothing_without_a_policy(&host, &module);
                a_learning_domain_does_it_all_the_same(&host, &module, protection);
            }
            return ExitCode::SUCCESS;
        }
    };
    tool.unwrap_or_else(|error| {
        eprintln!("mullion: {error}");
        ExitCode::FAILURE
    })
}

fn module(zlib: &Path, scratch: &Path, protection: &str) -> std::sync::Arc<Module> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/word");
    let output = scratch.join(format!("{protection}.so"));
    let protection = format!("--protection={protection}");
    let mut line: Vec<OsString> = ["--wall=word", &protection, "-w", "-O2", "-g", "-I"]
        .map(OsString::from)
        .into();
    line.extend([zlib.into(), "-o".into(), output.clone().into()]);
    line.push(tests.join("codec.c").into());
    line.extend(SOURCES.map(|name| zlib.join(format!("{name}.c")).into()));
    let arguments = Arguments::parse(&line).expect("a good command line");
    let compiled = compile(Language::C, &arguments).expect("a compiler");
    assert_eq!(compiled.code, 0);
    let bytes = std::fs::read(output).expect("a module");
    let verified = verify(bytes).unwrap_or_else(|rejected| panic!("{rejected:#?}"));
    Module::new("codec", &verified).expect("a module")
}

/// Each buffer for the length of its call, and blocks of the C library's allocator.
fn load(host: &Host, module: &std::sync::Arc<Module>) -> Domain {
    let codec = FunctionPolicy::of(&[
        Effect::Out(0, Size::Argument(1)),
        Effect::In(2, Size::Argument(3)),
    ]);
    let sum = FunctionPolicy::of(&[Effect::In(0, Size::Argument(1))]);
    let policy = Policy::new()
        .allocators()
        .export("pack", codec.clone().error(-100))
        .export("unpack", codec.clone().error(-100))
        .export("unpack_carelessly", codec.error(-100))
        .export("sum", sum.clone())
        .export("sum_carelessly", sum);
    host.load(module, policy).expect("a domain")
}

fn function<F: Copy>(domain: &Domain, name: &str) -> F {
    let address = domain.function(name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(size_of::<F>(), size_of_val(&address));
    // SAFETY: the functions are as `codec.c` has them.
    unsafe { std::mem::transmute_copy(&address) }
}

/// Text that packs well, and is not all the same.
fn text(bytes: usize) -> Vec<u8> {
    let words = ["wall ", "word ", "window ", "gate "];
    let text = (0usize..).flat_map(|n| {
        words[n * n / 3 % 4]
            .bytes()
            .chain((n % 7 == 0).then_some(n as u8))
    });
    text.take(bytes).collect()
}

/// Buffers whose ends are the ends of words.
fn room(bytes: usize) -> Vec<u32> {
    assert!(bytes.is_multiple_of(4));
    vec![0x5a5a_5a5a; bytes / 4 + 1]
}

fn it_packs_and_unpacks(domain: &Domain) {
    let (pack, unpack): (Codec, Codec) = (function(domain, "pack"), function(domain, "unpack"));
    let sum: Sum = function(domain, "sum");
    for bytes in [0, 1, 100, 4_096, 200_000] {
        let plain = text(bytes);
        let mut packed = vec![0u8; bytes + 1_000];
        let length = pack(packed.as_mut_ptr(), packed.len(), plain.as_ptr(), bytes);
        assert!(
            length > 0 && (bytes < 200 || length < bytes as i64 / 2),
            "{bytes}: {length}"
        );
        let mut back = vec![0u8; bytes.max(1)];
        let length = unpack(
            back.as_mut_ptr(),
            back.len(),
            packed.as_ptr(),
            length as usize,
        );
        assert_eq!(length, bytes as i64);
        assert_eq!(back[..bytes], plain);
        assert_eq!(sum(plain.as_ptr(), bytes), crc(&plain));
        // Nothing is left when the calls are over.
        let left = domain.permission(packed.as_ptr() as usize);
        assert_eq!(format!("{left:?}"), "None");
    }
    assert!(domain.take_reports().is_empty() && !domain.is_ended());
    // Data that was spoilt is an error of the library, and no fault.
    let mut back = [0u8; 64];
    assert_eq!(unpack(back.as_mut_ptr(), 64, [7u8; 32].as_ptr(), 32), 3);
}

fn one_byte_too_many_is_refused(domain: &Domain, protection: &str) {
    let (pack, unpack): (Codec, Codec) = (function(domain, "pack"), function(domain, "unpack"));
    let careless: Codec = function(domain, "unpack_carelessly");
    let plain = text(4_097);
    let mut packed = vec![0u8; 8_000];
    let length = pack(
        packed.as_mut_ptr(),
        packed.len(),
        plain.as_ptr(),
        plain.len(),
    ) as usize;
    let mut to = room(4_096);
    let start = to.as_mut_ptr().cast::<u8>();
    // The library sees that there is too little room.
    assert_eq!(unpack(start, 4_096, packed.as_ptr(), length), 5);
    assert!(domain.take_reports().is_empty());
    assert_eq!(careless(start, 4_096, packed.as_ptr(), length), -100);
    assert_eq!(to[1_024], 0x5a5a_5a5a, "what lies behind is as it was");
    let report = domain.take_reports().remove(0);
    assert_eq!(report.kind, FaultKind::Access, "{report}");
    assert_eq!(report.export, "unpack_carelessly");
    assert_eq!(report.address, Some(start as u64 + 4_096), "{report}");
    assert!(
        report.to_string().contains("memory of the host"),
        "{report}"
    );
    assert!(domain.is_ended());
    assert_eq!(unpack(start, 4_096, packed.as_ptr(), length), -100);
    domain.restart().expect("nobody is in it");
    let mut to = room(4_100);
    let length = unpack(to.as_mut_ptr().cast(), 4_100, packed.as_ptr(), length);
    assert_eq!(length, 4_097, "it works again");

    // A load, which `write` does not check.
    let words = room(64);
    let sum: Sum = function(domain, "sum_carelessly");
    let answer = sum(words.as_ptr().cast(), 64);
    let reports = domain.take_reports();
    match protection {
        "write" => assert!(answer != 0 && reports.is_empty()),
        _ => {
            let end = words.as_ptr() as u64 + 64;
            assert_eq!(
                (answer, reports[0].address),
                (0, Some(end)),
                "{}",
                reports[0]
            );
        }
    }
}

/// Without a policy the module has nothing of its caller's, and may call nothing.
fn nothing_without_a_policy(host: &Host, module: &std::sync::Arc<Module>) {
    let domain = host.load(module, Policy::new()).expect("a domain");
    let pack: Codec = function(&domain, "pack");
    let mut to = room(256);
    assert_eq!(pack(to.as_mut_ptr().cast(), 256, to.as_ptr().cast(), 4), 0);
    let report = domain.take_reports().remove(0);
    assert_eq!(report.kind, FaultKind::Policy, "{report}");
    assert!(report.to_string().contains("malloc"), "{report}");
}

/// Without a policy for buffers, every access to them is told, and done: each check that gcc's code gets can be gone on
/// from.
fn a_learning_domain_does_it_all_the_same(
    host: &Host,
    module: &std::sync::Arc<Module>,
    protection: &str,
) {
    let told = std::sync::Arc::new(std::sync::Mutex::new([(); 2].map(|()| Vec::new())));
    let keep = std::sync::Arc::clone(&told);
    let hook = move |note: &Note<'_>| {
        if let Want::Access {
            address,
            bytes,
            write,
        } = note.want
        {
            let list = &mut keep.lock().expect("nobody panics")[usize::from(write)];
            list.push(address..address + bytes);
        }
    };
    // SAFETY: it does what zlib does.
    let domain = unsafe { host.learn(module, Policy::new().allocators(), hook) };
    let domain = domain.expect("a domain");
    let (pack, unpack): (Codec, Codec) = (function(&domain, "pack"), function(&domain, "unpack"));
    let plain = text(3_000);
    let (mut packed, mut back) = (vec![0u8; 4_000], vec![0u8; 3_000]);
    let length = pack(
        packed.as_mut_ptr(),
        packed.len(),
        plain.as_ptr(),
        plain.len(),
    );
    assert!(length > 0 && domain.take_reports().is_empty());
    let length = unpack(
        back.as_mut_ptr(),
        back.len(),
        packed.as_ptr(),
        length as usize,
    );
    assert_eq!((length, back == plain), (3_000, true));
    assert!(domain.take_reports().is_empty() && !domain.is_ended());
    let told = told.lock().expect("nobody panics");
    // Each byte that was written, and, where loads are checked, each that was read.
    let is_in = |list: &[std::ops::Range<u64>], buffer: &[u8]| {
        let start = buffer.as_ptr() as u64;
        (start..start + buffer.len() as u64).all(|at| list.iter().any(|range| range.contains(&at)))
    };
    assert!(is_in(&told[1], &back));
    assert!(protection == "write" || is_in(&told[0], &plain));
}

/// CRC-32, bit by bit.
fn crc(bytes: &[u8]) -> u64 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 * (crc & 1))
        })
    };
    u64::from(!bytes.iter().fold(!0, step))
}
