//! What Linux has, between two OS processes: this program and, run again, its peer.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::thread::futex;

use crate::cores::{self, Place};
use crate::large;
use crate::row::{SIZES, measure};

const ARGUMENT: &str = "--linux-peer";

/// If this program has been run to be a peer: is it, until its other side has gone.
pub(crate) fn peer(arguments: &[String]) -> bool {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [ARGUMENT, kind, core, bytes] = words[..] else {
        return false;
    };
    let (core, bytes) = (
        core.parse().expect("a number"),
        bytes.parse().expect("a number"),
    );
    cores::stay_on(core);
    match kind {
        "pipe" => echo(
            unbuffered(std::io::stdin()),
            unbuffered(std::io::stdout()),
            bytes,
        ),
        "socket" => echo(
            unbuffered(std::io::stdin()),
            unbuffered(std::io::stdin()),
            bytes,
        ),
        "large" => large::pipe_peer(
            unbuffered(std::io::stdin()),
            unbuffered(std::io::stdout()),
            bytes,
        ),
        // A neighbour who always wants the processor.
        "busy" => spin(),
        // The same, as a program that somebody else started: in a session of its own.
        "stranger" => {
            rustix::process::setsid().expect("not yet a leader");
            spin()
        }
        kind => answer(Turn::map(std::io::stdin().as_fd()), kind == "spin"),
    }
    true
}

fn spin() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

pub(crate) fn start(kind: &str, place: Place, bytes: usize, input: Stdio) -> Child {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command
        .args([ARGUMENT, kind])
        .arg(cores::number(place.core).to_string())
        .arg(bytes.to_string())
        .stdin(input)
        .stdout(Stdio::piped());
    command.spawn().expect("a process")
}

fn unbuffered(file: impl AsFd) -> File {
    let file = file.as_fd().try_clone_to_owned();
    file.expect("a descriptor").into()
}

fn echo(mut from: File, mut to: File, bytes: usize) {
    let mut message = vec![0; bytes];
    while from.read_exact(&mut message).is_ok() {
        to.write_all(&message).expect("alive");
    }
}

/// In a thread of its own, on the first core.
pub(crate) fn measure_all(place: Place) {
    let all = move || {
        cores::pin(0);
        for bytes in SIZES {
            pipe(place, bytes);
            socket(place, bytes);
        }
        turns(place, false);
        if place.core != 0 && !place.asleep {
            turns(place, true);
        }
    };
    std::thread::spawn(all).join().expect("no panic");
}

fn there_and_back(
    who: &str,
    place: Place,
    bytes: usize,
    to: &mut impl Write,
    from: &mut impl Read,
) {
    let mut message = vec![1; bytes];
    measure(who, place, bytes, std::thread::sleep, |times| {
        for _ in 0..times {
            to.write_all(&message).expect("alive");
            from.read_exact(&mut message).expect("alive");
        }
    });
}

fn pipe(place: Place, bytes: usize) {
    let mut peer = start("pipe", place, bytes, Stdio::piped());
    let (to, from) = (peer.stdin.take(), peer.stdout.take());
    let (mut to, mut from) = (to.expect("a pipe"), from.expect("a pipe"));
    there_and_back("Linux, pipe", place, bytes, &mut to, &mut from);
    drop(to);
    peer.wait().expect("it ends");
}

fn socket(place: Place, bytes: usize) {
    let (here, there) = UnixStream::pair().expect("a pair");
    let mut peer = start("socket", place, bytes, OwnedFd::from(there).into());
    let (mut to, mut from) = (here.try_clone().expect("a descriptor"), here);
    there_and_back("Linux, socketpair", place, bytes, &mut to, &mut from);
    drop((to, from));
    peer.wait().expect("it ends");
}

/// A word in memory of two OS processes, at which they take turns. The last turn is odd and beyond all.
struct Turn(&'static AtomicU32);

const END: u32 = u32::MAX;

impl Turn {
    fn map(file: BorrowedFd<'_>) -> Turn {
        let (access, file) = (libc::PROT_READ | libc::PROT_WRITE, file.as_raw_fd());
        // SAFETY: a new mapping, which stays.
        let at = unsafe { libc::mmap(ptr::null_mut(), 4096, access, libc::MAP_SHARED, file, 0) };
        assert_ne!(at, libc::MAP_FAILED, "memory");
        // SAFETY: a page, of which the first word is used, atomically.
        Turn(unsafe { &*at.cast() })
    }

    fn wait_beyond(&self, seen: u32, spin: bool) -> u32 {
        while self.0.load(Ordering::Acquire) == seen {
            match spin {
                true => std::hint::spin_loop(),
                false => {
                    // An error means that the word has changed already.
                    let _ = futex::wait(self.0, futex::Flags::empty(), seen, None);
                }
            }
        }
        self.0.load(Ordering::Acquire)
    }

    fn pass(&self, value: u32, spin: bool) {
        self.0.store(value, Ordering::Release);
        if !spin {
            let _ = futex::wake(self.0, futex::Flags::empty(), 1);
        }
    }
}

fn answer(turn: Turn, spin: bool) {
    // The first turn says that this process is there.
    let mut seen = 1;
    turn.pass(seen, spin);
    loop {
        let now = turn.wait_beyond(seen, spin);
        if now == END {
            return;
        }
        seen = now + 1;
        turn.pass(seen, spin);
    }
}

fn turns(place: Place, spin: bool) {
    let who = match spin {
        true => "a word that both spin on",
        false => "Linux, futex",
    };
    in_turns(place, spin, |batch| {
        measure(who, place, 4, std::thread::sleep, batch);
    });
}

/// Has `measure` measure turns of a pair of OS processes.
pub(crate) fn in_turns(place: Place, spin: bool, measure: impl FnOnce(&mut dyn FnMut(u32))) {
    let kind = if spin { "spin" } else { "futex" };
    let file = memfd_create("turn", MemfdFlags::CLOEXEC).expect("memory");
    ftruncate(&file, 4096).expect("memory");
    let turn = Turn::map(file.as_fd());
    let mut peer = start(kind, place, 4, file.into());
    let mut seen = turn.wait_beyond(0, spin);
    measure(&mut |times| {
        for _ in 0..times {
            turn.pass(seen + 1, spin);
            seen = turn.wait_beyond(seen + 1, spin);
        }
    });
    turn.pass(END, spin);
    peer.wait().expect("it ends");
}
