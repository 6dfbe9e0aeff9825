//! Linux refuses memory for real: by limits on the address space and on data, and, where the machine is set up so, by
//! strict accounting (`vm.overcommit_memory=2`). Domains are made and filled until something is refused, again and
//! again: each refusal is a typed error, domains that live still answer, and everything comes back.

mod support;

use mullion_runtime::{Access, Limits, PAGE};
use std::io::Write as _;
use std::process::Command;
use support::{Loaded, Program};

const PROGRAM: &str = "
    .data
    value: .quad 7
    .text
    export get
        movq value(%rip), %rax
        ret
";

/// The child's part: which limit, by its number.
const ROLE: &str = "MULLION_SCARCE";

/// Address space that the child gets beyond what it has: nine windows.
const SPACE: u64 = 40 << 30;
/// Private memory that can be written, beyond what it has.
const DATA: u64 = 384 << 20;
const PIECE: u64 = 8 << 20;

/// A figure of `/proc/self/status`, in bytes.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let figure = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    figure.expect("Linux says it") * 1024
}

/// Domains, and memory in the last one, until something is refused: how many of both.
fn fill(program: &Program, most: usize) -> (usize, usize) {
    let limits = Limits {
        memory: 1 << 32,
        ..Limits::default()
    };
    let mut domains: Vec<Loaded> = Vec::new();
    let mut pieces = 0;
    while domains.len() < most {
        let loaded = match program.try_load_with(Vec::new(), limits.clone()) {
            Ok(loaded) => loaded,
            Err(error) => {
                println!("domain {}: {error}", domains.len());
                break;
            }
        };
        if let Err(error) = loaded.call("get", &[]) {
            println!("first call of {}: {error:?}", domains.len());
            break;
        }
        let mut refused = false;
        for _ in 0..8 {
            match loaded.domain.memory().map(None, PIECE, Access::ReadWrite) {
                Ok(_) => pieces += 1,
                Err(error) => {
                    println!("piece {pieces}: {error:?}");
                    refused = true;
                    break;
                }
            }
        }
        domains.push(loaded);
        if refused {
            break;
        }
    }
    // What is refused to one harms none of those that live.
    for loaded in &domains {
        let answer = loaded.call("get", &[]).expect("it needs no memory");
        assert_eq!(answer.integer, 7);
    }
    (domains.len(), pieces)
}

fn child(role: &str) {
    let program = Program::new(PROGRAM);
    let (kind, most) = match role {
        "space" => (Some((libc::RLIMIT_AS, status("VmSize:") + SPACE)), 64),
        "data" => (Some((libc::RLIMIT_DATA, status("VmData:") + DATA)), 64),
        _ => (None, 4096),
    };
    if let Some((kind, bytes)) = kind {
        let limit = libc::rlimit {
            rlim_cur: bytes,
            rlim_max: bytes,
        };
        // SAFETY: a structure of the right size, read alone.
        assert_eq!(unsafe { libc::setrlimit(kind, &limit) }, 0);
    }
    let mut all = Vec::new();
    for _ in 0..4 {
        all.push(fill(&program, most));
    }
    println!("{role}: domains and pieces: {all:?}");
    let (domains, pieces) = all[1];
    assert!(
        domains >= 2 && domains < most,
        "{domains} domains of {most}"
    );
    assert!(pieces >= 8, "{pieces} pieces");
    // As much comes back each time, but for what is kept for the next domain.
    for (other, more) in &all[1..] {
        assert!(other.abs_diff(domains) <= 1, "{all:?}");
        assert!(more.abs_diff(pieces) <= 8, "{all:?}");
    }
    // And to the host.
    let own = vec![1u8; 32 * PAGE as usize];
    assert_eq!(
        own.iter().map(|byte| u64::from(*byte)).sum::<u64>(),
        32 * PAGE
    );
}

fn in_a_child(role: &str) {
    if let Ok(role) = std::env::var(ROLE) {
        return child(&role);
    }
    let test = std::thread::current().name().expect("a test").to_owned();
    let this = std::env::current_exe().expect("Linux");
    let output = Command::new(this)
        .args([&*test, "--exact", "--nocapture"])
        .env(ROLE, role)
        .output()
        .expect("it starts");
    let _shown = std::io::stdout().write_all(&output.stdout);
    assert!(
        output.status.success(),
        "{}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_limit_on_the_address_space() {
    in_a_child("space");
}

#[test]
fn a_limit_on_data() {
    in_a_child("data");
}

#[test]
fn strict_accounting() {
    let set = std::fs::read_to_string("/proc/sys/vm/overcommit_memory");
    match set.as_deref().map(str::trim) {
        Ok("2") => in_a_child("committed"),
        _ => println!("not tried: vm.overcommit_memory is not 2 on this machine"),
    }
}
