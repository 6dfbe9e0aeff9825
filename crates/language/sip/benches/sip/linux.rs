//! What Linux has for the same: calls, and pipes, socket pairs and a futex between two threads.

use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex;

use crate::messages::SIZES;
use crate::row::{Of, Where, measure};
use crate::threads::{beside, times};

const fn of(operation: &'static str) -> Of {
    Of::new(operation, "Linux", Where::OneCore)
}

/// Everything on one core.
pub(crate) fn calls() {
    crate::clock::pin(0);
    measure(of("system call (getppid)"), 101, 1_000, |times| {
        for _ in 0..times {
            // SAFETY: asks only.
            black_box(unsafe { libc::syscall(libc::SYS_getppid) });
        }
    });
    measure(of("mmap, touch and munmap (16 KiB)"), 101, 50, |times| {
        for _ in 0..times {
            // SAFETY: a mapping of our own.
            unsafe {
                let (access, kind) = (
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                );
                let pages = libc::mmap(std::ptr::null_mut(), 16 << 10, access, kind, -1, 0);
                pages.cast::<u8>().write_volatile(1);
                libc::munmap(pages, 16 << 10);
            }
        }
    });
    measure(of("pthread create and join"), 51, 10, |times| {
        for _ in 0..times {
            std::thread::spawn(|| ()).join().expect("it returns");
        }
    });
    measure(of("sched_yield between two threads"), 51, 500, |times| {
        let yields = move || (0..times / 2).for_each(|_| std::thread::yield_now());
        let other = std::thread::spawn(yields);
        yields();
        other.join().expect("it returns");
    });
    measure(of("pipe and close"), 101, 50, |times| {
        for _ in 0..times {
            black_box(std::io::pipe().expect("a pipe"));
        }
    });
    measure(of("posix_spawn and wait (/bin/true)"), 21, 2, |times| {
        for _ in 0..times {
            Command::new("/bin/true").status().expect("true");
        }
    });
    measure(of("fork, exec and wait (/bin/true)"), 21, 2, |times| {
        for _ in 0..times {
            let path = c"/bin/true";
            // SAFETY: the child does nothing but exec or leave.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    let arguments = [path.as_ptr(), std::ptr::null()];
                    libc::execv(path.as_ptr(), arguments.as_ptr());
                    libc::_exit(1);
                }
                let mut status = 0;
                libc::waitpid(child, &mut status, 0);
            }
        }
    });
}

/// Messages between two threads that sleep while they wait.
pub(crate) fn messages(place: Where) {
    for bytes in SIZES {
        let (arriving, there) = std::io::pipe().expect("a pipe");
        let (returning, back) = std::io::pipe().expect("a pipe");
        ping_pong(
            "Linux, pipe",
            place,
            bytes,
            (there, returning),
            (back, arriving),
        );
        let (here, far) = UnixStream::pair().expect("a pair");
        let again = |end: &UnixStream| end.try_clone().expect("a descriptor");
        let (here_too, far_too) = (again(&here), again(&far));
        ping_pong(
            "Linux, socketpair",
            place,
            bytes,
            (here, here_too),
            (far, far_too),
        );
    }
    futexes(place);
}

fn ping_pong<W: Write + Send, R: Read + Send>(
    who: &'static str,
    place: Where,
    bytes: usize,
    (mut there, mut returning): (W, R),
    (mut back, mut arriving): (W, R),
) {
    let (batches, times) = times(place);
    beside(
        place,
        move || {
            let mut message = vec![1; bytes];
            let row = Of::new("message there and back", who, place).bytes(bytes);
            measure(row, batches, times, |times| {
                for _ in 0..times {
                    there.write_all(&message).expect("alive");
                    returning.read_exact(&mut message).expect("alive");
                }
            });
        },
        move || {
            let mut message = vec![1; bytes];
            // Until the other end is closed.
            while arriving.read_exact(&mut message).is_ok() {
                back.write_all(&message).expect("alive");
            }
        },
    );
}

/// A word that two threads take turns at, asleep in between. It counts; the last turn is odd and beyond all.
fn futexes(place: Where) {
    const END: u32 = u32::MAX;
    let (batches, times) = times(place);
    let turn = AtomicU32::new(0);
    let wait_beyond = |seen: u32| {
        while turn.load(Ordering::Acquire) == seen {
            // An error means that the word has changed already.
            let _ = futex::wait(&turn, futex::Flags::PRIVATE, seen, None);
        }
        turn.load(Ordering::Acquire)
    };
    let pass = |value: u32| {
        turn.store(value, Ordering::Release);
        let _ = futex::wake(&turn, futex::Flags::PRIVATE, 1);
    };
    beside(
        place,
        || {
            let mut next = 0;
            let row = Of::new("futex there and back", "Linux", place);
            measure(row, batches, times, |times| {
                for _ in 0..times {
                    pass(next + 1);
                    next = wait_beyond(next + 1);
                }
            });
            pass(END);
        },
        || {
            let mut seen = 0;
            loop {
                let now = wait_beyond(seen);
                if now == END {
                    return;
                }
                seen = now + 1;
                pass(seen);
            }
        },
    );
}
