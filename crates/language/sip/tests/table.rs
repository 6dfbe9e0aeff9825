//! The kernel's table, used by a library in C that has nothing else; and the header that describes it in C.

mod host;

use std::fmt::Write;
use std::mem::offset_of;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use host::host;
use mullion_sip::channel::Contract;
use mullion_sip::heap::ProcessHeaps;
use mullion_sip::kernel::{
    Argument, Channel, Kernel, ProcessEnd, ProcessStatistics, Refusal, VERSION, WAITS, Wish, kernel,
};
use mullion_sip::process::{Cause, Limits, Options, Program, Rights, exit, open, serve, spawn};
use mullion_sip::{ExVec, contract, wait};
use mullion_sip_hosting::Start;

#[global_allocator]
static HEAPS: ProcessHeaps = ProcessHeaps;

contract! {
    /// What a library in C and processes in Rust talk by.
    pub mod ask {
        Ask: client { Question(u32) -> Answer, Text(ExVec<u8>) -> Answer, Close -> end }
        Answer: server { Reply(u32) -> Ask, Echo(ExVec<u8>) -> Ask }
    }
}

type Entry = unsafe extern "C" fn(table: &'static Kernel) -> u32;

static CLIENT: OnceLock<Entry> = OnceLock::new();

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/table")
        .join(name)
}

fn gcc(directory: &Path, language: &str, options: &[&str], source: &Path, product: &str) {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../include");
    let output = Command::new("gcc")
        .args(["-Wall", "-Wextra", "-Werror", "-O2", "-x", language])
        .args(options)
        .args([Path::new("-I"), &include, Path::new("-I"), directory])
        .arg(source)
        .arg("-o")
        .arg(directory.join(product))
        .output()
        .expect("gcc");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// The library, without a C library: `-z defs` has the linker refuse whatever it would need of anybody else.
fn library() -> Entry {
    let directory = std::env::temp_dir().join(format!("mullion-table-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let bytes = ask::Contract::INFO.digest.0.map(|byte| byte.to_string());
    let digest = format!(
        "static const unsigned char ask_digest[32] = {{{}}};\n",
        bytes.join(",")
    );
    std::fs::write(directory.join("digest.h"), digest).expect("a file");
    let alone = [
        "-std=c11",
        "-shared",
        "-fPIC",
        "-ffreestanding",
        "-nostdlib",
        "-Wl,-z,defs",
    ];
    gcc(&directory, "c", &alone, &source("client.c"), "client.so");
    let path = directory.join("client.so").to_string_lossy().into_owned() + "\0";
    // SAFETY: a text that ends in a zero; the library has no constructors.
    let handle = unsafe { libc::dlopen(path.as_ptr().cast(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!handle.is_null(), "{path}");
    std::fs::remove_dir_all(&directory).expect("its own");
    // SAFETY: the library is never unloaded.
    let entry = unsafe { libc::dlsym(handle, c"client".as_ptr()) };
    assert!(!entry.is_null());
    // SAFETY: the function's type in the source.
    unsafe { std::mem::transmute::<*mut libc::c_void, Entry>(entry) }
}

fn in_c(_: Argument) {
    let entry = CLIENT.get().expect("loaded");
    // SAFETY: the table is this program's, and lives for ever.
    let line = unsafe { entry(kernel()) };
    assert_eq!(line, 0, "a line of client.c");
}

/// Answers with types, and adds its argument.
fn answerer(argument: Argument) {
    let end = argument.end.expect("given along");
    let mut server = ask::Server::<ask::Ask>::from_any(end).expect("a server's");
    loop {
        server = match server.recv().expect("until it is closed") {
            ask::AskMessage::Question(number, server) => server
                .reply(number + argument.number as u32)
                .expect("there"),
            ask::AskMessage::Text(text, server) => {
                let turned: Vec<u8> = text.iter().rev().copied().collect();
                server.echo(ExVec::copy_of(&turned)).expect("there")
            }
            ask::AskMessage::Close => return,
        };
    }
}

/// Asks at a name, and exits with the answer.
fn asker(argument: Argument) {
    let (client, server) = ask::channel().expect("memory");
    open("/table/service", server.into_any()).expect("bound");
    let client = client.question(argument.number as u32).expect("there");
    let Ok(ask::AnswerMessage::Reply(number, _client)) = client.recv() else {
        panic!("no reply");
    };
    exit(number as u8);
}

fn service(_: Argument) {
    let service = serve("/table/rust", ask::Contract::INFO).expect("permitted");
    answerer(Argument {
        number: 1000,
        end: Some(service.accept()),
    });
}

fn endless(argument: Argument) {
    let _end = argument.end;
    loop {
        wait::park();
    }
}

#[test]
fn a_library_that_has_nothing_but_the_table() {
    host()
        .start(Start {
            workers: NonZeroUsize::new(2),
        })
        .expect("workers");
    CLIENT.get_or_init(library);
    host().offer_contract(ask::Contract::INFO);
    // SAFETY: they keep nothing of their heaps anywhere else.
    let programs = unsafe {
        [
            Program::new("answerer", answerer as fn(Argument)),
            Program::new("asker", asker),
            Program::new("endless", endless),
        ]
    };
    programs
        .into_iter()
        .for_each(|program| host().offer_program(program));
    let options = Options {
        limits: Limits {
            memory: 1 << 20,
            ..Limits::default()
        },
        rights: Rights::none().bind("/table").look_up("/table"),
        ..Options::default()
    };
    // SAFETY: as above; the library keeps a pointer to the table and a number.
    let [service, in_c] = unsafe {
        [
            Program::new("service", service as fn(Argument)),
            Program::new("in-c", in_c),
        ]
    };
    let service = spawn(service, Argument::default(), &options).expect("a process");
    while !host()
        .names()
        .iter()
        .any(|(path, ..)| path == "/table/rust")
    {
        std::thread::yield_now();
    }
    let exit = spawn(in_c, Argument::default(), &options)
        .expect("a process")
        .wait();
    assert_eq!(exit.cause, Cause::Returned, "{}", exit.message);
    // Its client went without a word.
    assert_eq!(service.wait().cause, Cause::Panic);
    assert!(host().names().is_empty());
}

macro_rules! fields {
    ($text:expr, $c:literal, $rust:ty: $($field:ident),* $(,)?) => {
        $(writeln!(
            $text,
            "_Static_assert(offsetof(struct {}, {f}) == {}, \"{f}\");",
            $c, offset_of!($rust, $field), f = stringify!($field)
        ).expect("a text");)*
        writeln!($text, "_Static_assert(sizeof(struct {}) == {}, \"size\");", $c, size_of::<$rust>()).expect("a text");
    };
}

#[test]
fn the_header_says_what_the_table_is() {
    let mut text = String::from("#include <mullion_kernel.h>\n");
    fields!(text, "mullion_kernel", Kernel: version, size, process, now, yield_now, waiter, park, unpark, allocate_pages,
        release_pages, create_thread, exit, state, contract, create_channel, channel, send, receive, wait_any, close, bind,
        unbind, accept, look_up, program, create_process, kill, wait, statistics);
    fields!(text, "mullion_channel", Channel: contract, side, state, sends);
    fields!(text, "mullion_wish", Wish: size, rights, home, threads, memory, exchange, slice, children, reserved);
    fields!(text, "mullion_end", ProcessEnd: cause, status, length, message);
    fields!(text, "mullion_statistics", ProcessStatistics: process, parent, memory, memory_limit, exchange, exchange_limit, sent,
        threads, children, names, worker);
    let numbers = [
        ("VERSION", VERSION),
        ("WAITS", WAITS as u32),
        ("NO_PROCESS", Refusal::NoProcess as u32),
        ("TOO_MANY", Refusal::TooMany as u32),
        ("NO_MEMORY", Refusal::NoMemory as u32),
        ("NULL", Refusal::Null as u32),
        ("MALFORMED", Refusal::Malformed as u32),
        ("UNKNOWN", Refusal::Unknown as u32),
        ("NOT_PERMITTED", Refusal::NotPermitted as u32),
        ("TAKEN", Refusal::Taken as u32),
        ("UNBOUND", Refusal::Unbound as u32),
        ("CONTRACT_DIFFERS", Refusal::ContractDiffers as u32),
        ("BUSY", Refusal::Busy as u32),
        ("OUT_OF_TURN", Refusal::OutOfTurn as u32),
        ("CLOSED", Refusal::Closed as u32),
        ("NOT_A_MESSAGE", Refusal::NotAMessage as u32),
        ("TOO_LONG", Refusal::TooLong as u32),
        ("NO_BYTES", Refusal::NoBytes as u32),
        ("DEADLINE", Refusal::Deadline as u32),
        ("NOT_STARTED", Refusal::NotStarted as u32),
    ];
    for (name, number) in numbers {
        let name = if name == "VERSION" {
            "KERNEL_VERSION"
        } else {
            name
        };
        writeln!(
            text,
            "_Static_assert(MULLION_{name} == {number}, \"{name}\");"
        )
        .expect("a text");
    }
    let directory = std::env::temp_dir().join(format!("mullion-header-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = directory.join("header");
    std::fs::write(&file, &text).expect("a file");
    gcc(
        &directory,
        "c",
        &["-std=c11", "-pedantic", "-fsyntax-only"],
        &file,
        "nothing",
    );
    std::fs::write(&file, text.replace("_Static_assert", "static_assert")).expect("a file");
    gcc(
        &directory,
        "c++",
        &["-std=c++17", "-fsyntax-only"],
        &file,
        "nothing",
    );
    std::fs::remove_dir_all(&directory).expect("its own");
}
