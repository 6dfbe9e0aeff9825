//! A filter of system calls that is closed too early ends the process, and does not leave rights in force.

use mullion_word_table::{Inside, barrier};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

const CHILD: &str = "MULLION_BARRIER_CHILD";

/// From now on `membarrier` gives EPERM.
fn close_the_filter() {
    let instruction = |code: u32, yes: u8, no: u8, value: u32| libc::sock_filter {
        code: code as u16,
        jt: yes,
        jf: no,
        k: value,
    };
    let mut program = [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            libc::SYS_membarrier as u32,
        ),
        instruction(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
        ),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the program is there for the call, and only the calling thread of a process of its own is concerned.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const filter,
            ) == 0
    };
    assert!(done, "{}", std::io::Error::last_os_error());
}

#[test]
fn a_refused_barrier_ends_the_process() {
    if std::env::var_os(CHILD).is_some() {
        let _inside = Inside::new().unwrap();
        barrier();
        eprintln!("the first passed");
        close_the_filter();
        barrier();
        std::process::exit(0);
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["a_refused_barrier_ends_the_process", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(said.contains("the first passed"), "{said}");
    assert!(
        said.contains("mullion: membarrier is refused (Operation not permitted"),
        "{said}"
    );
    assert_eq!(child.status.signal(), Some(libc::SIGABRT));
}
