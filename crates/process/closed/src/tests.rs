//! Every row of both tables is tried: that it lets through what it says, and nothing else; as root, and as nobody.

use std::fmt::Write;
use std::sync::atomic::{AtomicI64, Ordering};

use super::call::{Here, filter};
use super::*;
use seccompiler::BpfProgram;

/// The answer here to a call that the filter does not let through. Linux itself does not give it.
const REFUSED: i64 = -libc::ENOTRECOVERABLE as i64;

/// Who tries.
const USERS: [libc::uid_t; 2] = [0, 65534];

type Arguments = [u64; 6];

/// Arguments with which a call may be made, and which hurt nobody. A row without an example fails
/// [`every_row_lets_through_what_it_says`].
fn example(table: &[Call], row: usize, here: Here) -> Option<Arguments> {
    let call = &table[row];
    let second = table[..row].iter().any(|one| one.number == call.number);
    // Nothing is mapped at this address, so a call that wants memory says so.
    let nowhere = 8;
    let memory = u64::from(here.control) + 900;
    let own = u64::from(here.process);
    Some(match (call.name, second) {
        ("read" | "readv" | "poll", _) => [0; 6],
        ("fstat", _) => [memory, nowhere, 0, 0, 0, 0],
        ("ppoll", _) => [0, 0, nowhere, 0, 0, 0],
        ("ioctl", _) => [memory, libc::TCGETS, nowhere, 0, 0, 0],
        ("clock_getres", _) => [libc::CLOCK_MONOTONIC as u64, nowhere, 0, 0, 0, 0],
        ("clone3", _) => [nowhere, 0, 0, 0, 0, 0],
        // No thread has its own data at such an address, so none is made.
        ("clone", _) => [0x003d_0f00, 0, 0, 0, 1 << 63, 0],
        ("set_robust_list" | "rseq", _) => [nowhere, 0, 0, 0, 0, 0],
        ("sched_getaffinity", _) => [0, 0, nowhere, 0, 0, 0],
        ("sched_setattr", _) => [0, nowhere, 0, 0, 0, 0],
        // What this kernel knows of it.
        ("membarrier", _) => [0; 6],
        ("prctl", _) => [libc::PR_SET_NAME as u64, nowhere, 0, 0, 0, 0],
        ("futex", _) => [nowhere, libc::FUTEX_WAKE as u64, 1, 0, 0, 0],
        ("futex_wake", _) => [nowhere, u64::from(u32::MAX), 1, 2, 0, 0],
        ("futex_wait", _) => [nowhere, 0, u64::from(u32::MAX), 2, 0, 0],
        ("futex_waitv", _) => [nowhere, 0, 0, 0, libc::CLOCK_MONOTONIC as u64, 0],
        ("mmap", _) => [
            0,
            4096,
            libc::PROT_READ as u64,
            (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64,
            u64::MAX,
            0,
        ],
        ("mprotect", _) => [0, 0, libc::PROT_READ as u64, 0, 0, 0],
        ("munmap", _) => [1, 0, 0, 0, 0, 0],
        ("mremap", _) => [1, 0, 0, libc::MREMAP_MAYMOVE as u64, 0, 0],
        ("madvise", _) => [0, 0, libc::MADV_DONTNEED as u64, 0, 0, 0],
        ("brk", _) => [0; 6],
        ("clock_gettime", false) => [libc::CLOCK_MONOTONIC as u64, nowhere, 0, 0, 0, 0],
        ("clock_gettime", true) => [u64::from(!(own as u32) << 3 | 6), nowhere, 0, 0, 0, 0],
        ("clock_nanosleep", _) => [libc::CLOCK_MONOTONIC as u64, 0, nowhere, 0, 0, 0],
        ("nanosleep", _) => [nowhere, 0, 0, 0, 0, 0],
        ("restart_syscall" | "sched_yield" | "gettid" | "getpid" | "rt_sigreturn", _) => [0; 6],
        ("getrandom", _) => [nowhere, 0, 0, 0, 0, 0],
        ("tgkill", _) => [own, own, 0, 0, 0, 0],
        ("rt_sigaction", _) => [libc::SIGURG as u64, 0, 0, 8, 0, 0],
        ("rt_sigprocmask", _) => [libc::SIG_BLOCK as u64, 0, 0, 8, 0, 0],
        ("sigaltstack", _) => [0; 6],
        ("write" | "writev", _) => [1, nowhere, 0, 0, 0, 0],
        ("sendmsg" | "recvmsg", _) => [u64::from(here.control), nowhere, 0, 0, 0, 0],
        ("lseek", _) => [memory, 0, libc::SEEK_END as u64, 0, 0, 0],
        ("fcntl", _) => [memory, libc::F_GETFD as u64, 0, 0, 0, 0],
        ("close", _) => [memory, 0, 0, 0, 0, 0],
        ("exit" | "exit_group", _) => [0; 6],
        _ => return None,
    })
}

/// What the table says: as slow and plain as it can be.
fn may(table: &[Call], number: i64, arguments: Arguments, here: Here) -> bool {
    let rows = table.iter().filter(|call| call.number == number);
    let holds = |when: &When| {
        let low = |place: u8| arguments[usize::from(place)] as u32;
        match *when {
            When::Is(place, values) => values.contains(&low(place)),
            When::Bits(place, value, of) => low(place) & of == value,
            When::Within(place, bits) => low(place) & !bits == 0,
            When::UpTo(place, most) => low(place) <= most,
            When::Zero(place) => arguments[usize::from(place)] == 0,
            When::Control(place) => low(place) == here.control,
            When::Memory(place) => low(place) > here.control,
            When::Own(place) => low(place) == here.process,
        }
    };
    rows.into_iter().any(|call| call.when.iter().all(holds))
}

fn place(when: &When) -> u8 {
    match *when {
        When::Is(place, _)
        | When::Bits(place, ..)
        | When::Within(place, _)
        | When::UpTo(place, _)
        | When::Zero(place)
        | When::Control(place)
        | When::Memory(place)
        | When::Own(place) => place,
    }
}

/// Makes calls in a child of a user's, with the filter closed there, and says how each was answered, and how the child
/// ended. `calls` and `otherwise` are told where they are.
fn tried(
    table: &[Call],
    user: libc::uid_t,
    otherwise: SeccompAction,
    calls: impl FnOnce(Here) -> Vec<(i64, Arguments)>,
) -> (Vec<i64>, i32) {
    const MOST: usize = 1 << 16;
    // SAFETY: a new mapping of zeros, which are valid in an atomic word; it stays, so that references to it may.
    let answers: &'static [AtomicI64] = unsafe {
        let (rights, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
        );
        let at = libc::mmap(std::ptr::null_mut(), MOST * 8, rights, kind, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        std::slice::from_raw_parts(at.cast(), MOST)
    };
    // SAFETY: the child runs its one thread until it ends; it takes no lock that another may have held but the allocator's,
    // which the C library keeps in order.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: takes nothing.
        let process = unsafe { libc::getpid() };
        let here = Here {
            control: 900,
            process: process as u32,
        };
        let program = filter(table, here, otherwise).expect("a filter");
        let calls = calls(here);
        assert!(calls.len() < MOST);
        // SAFETY: the calls change what this child is, which ends soon.
        unsafe {
            if libc::getuid() == 0 {
                assert_eq!(libc::syscall(libc::SYS_setresuid, user, user, user), 0);
            }
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        }
        seccompiler::apply_filter(&program).expect("closed");
        for ((number, [a, b, c, d, e, f]), answer) in calls.iter().zip(answers) {
            // SAFETY: refused, or an example, which touches nothing that is used here.
            let said = unsafe { libc::syscall(*number, *a, *b, *c, *d, *e, *f) };
            let error = std::io::Error::last_os_error().raw_os_error();
            let said = if said == -1 {
                -i64::from(error.unwrap_or(0))
            } else {
                said
            };
            answer.store(said, Ordering::Relaxed);
        }
        // SAFETY: takes nothing, and does not return.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the status outlives the call.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    let said = answers.iter().map(|answer| answer.load(Ordering::Relaxed));
    (said.collect(), status)
}

fn refuse() -> SeccompAction {
    SeccompAction::Errno(libc::ENOTRECOVERABLE as u32)
}

const TABLES: [&[Call]; 2] = [DOMAIN_CALLS, PROGRAM_CALLS];

/// Each row of each table, as each user.
fn rows() -> impl Iterator<Item = (&'static [Call], libc::uid_t, usize)> {
    TABLES.into_iter().flat_map(|table| {
        let rows = 0..table.len();
        rows.flat_map(move |row| USERS.map(|user| (table, user, row)))
    })
}

#[test]
fn every_row_lets_through_what_it_says() {
    for (table, user, row) in rows() {
        let name = table[row].name;
        let (_, status) = tried(table, user, SeccompAction::KillProcess, |here| {
            let arguments =
                example(table, row, here).unwrap_or_else(|| panic!("no example of {name}"));
            assert!(may(table, table[row].number, arguments, here), "{name}");
            vec![(table[row].number, arguments)]
        });
        let ended = match name {
            // There is no handler to return from: what ends the child is up to what lies on its stack, but not the filter.
            "rt_sigreturn" => !libc::WIFSIGNALED(status) || libc::WTERMSIG(status) != libc::SIGSYS,
            _ => libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
        };
        assert!(ended, "{name}, as {user}: {status:#x}");
    }
}

/// Arguments of an example, of which one is changed so that the table does not let them through.
fn forbidden(table: &[Call], row: usize, here: Here) -> Vec<(i64, Arguments)> {
    let (call, example) = (&table[row], example(table, row, here).expect("an example"));
    let strangers = [
        0,
        1,
        u64::MAX,
        u64::from(here.process) + 1,
        u64::from(here.process) - 1,
    ];
    let low = (0..32).map(|bit| 1 << bit);
    let mut all = Vec::new();
    for argument in call.when.iter().map(|when| usize::from(place(when))) {
        let known = example[argument];
        let flipped = low.clone().map(|bit| known ^ bit);
        let pairs = (0..31).map(|bit| known ^ (3 << bit));
        let small = 0..600;
        for value in flipped.chain(pairs).chain(small).chain(strangers) {
            let mut changed = example;
            changed[argument] = value;
            all.push((call.number, changed));
        }
    }
    all.retain(|(number, arguments)| !may(table, *number, *arguments, here));
    all
}

#[test]
fn every_condition_of_every_row_refuses_what_it_does_not_say() {
    for (table, user, row) in rows() {
        let call = &table[row];
        let (answers, status) = tried(table, user, refuse(), |here| forbidden(table, row, here));
        assert!(
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
            "{}",
            call.name
        );
        let asked = answers.iter().take_while(|answer| **answer != 0);
        let (refused, other): (Vec<i64>, Vec<i64>) = asked.partition(|answer| **answer == REFUSED);
        assert!(other.is_empty(), "{}: {other:?}", call.name);
        // For each condition a hundred and more.
        assert!(
            refused.len() >= 100 * call.when.len(),
            "{}: {}",
            call.name,
            refused.len()
        );
    }
}

/// Linux looks at no filter for these two (from 6.14, and 6.18, on): they are the kernel's own way back from a probe, and
/// whoever calls them from elsewhere gets SIGILL, or nothing.
const OF_PROBES: [i64; 2] = [335, 336];

#[test]
fn calls_of_probes_are_nobodys() {
    for number in OF_PROBES {
        let (answers, status) = tried(DOMAIN_CALLS, 0, refuse(), |_| vec![(number, [0; 6])]);
        let ended = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGILL;
        // Older kernels do not know them.
        let refused = [REFUSED, -i64::from(libc::ENXIO)].contains(&answers[0]);
        assert!(ended || refused, "{number}: {status:#x}, {}", answers[0]);
    }
}

#[test]
fn every_call_without_a_row_is_refused() {
    const X32: i64 = 1 << 30;
    for table in TABLES {
        let numbers = (0..=1023).flat_map(|number| [number, X32 | number]);
        let others: Vec<i64> = numbers
            .filter(|number| table.iter().all(|call| call.number != *number))
            .filter(|number| !OF_PROBES.contains(number))
            .collect();
        for user in USERS {
            let asked = others.clone();
            let (answers, status) = tried(table, user, refuse(), |_| {
                asked.iter().map(|number| (*number, [0; 6])).collect()
            });
            assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0);
            for (number, answer) in others.iter().zip(answers) {
                assert_eq!(answer, REFUSED, "call {number}, as {user}");
            }
        }
    }
}

#[test]
fn what_is_refused_ends_the_process() {
    for (table, user) in TABLES
        .into_iter()
        .flat_map(|table| USERS.map(|user| (table, user)))
    {
        for number in [
            libc::SYS_getppid,
            libc::SYS_sched_setaffinity,
            libc::SYS_openat,
        ] {
            let kill = SeccompAction::KillProcess;
            let (_, status) = tried(table, user, kill, |_| vec![(number, [0; 6])]);
            let killed = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSYS;
            assert!(killed, "{number}: {status:#x}");
        }
    }
}

/// A call without a condition has no second row, whose conditions would then mean nothing.
#[test]
fn rows_do_not_undo_each_other() {
    for (table, call) in TABLES
        .into_iter()
        .flat_map(|table| table.iter().map(move |call| (table, call)))
    {
        let same = table.iter().filter(|one| one.number == call.number);
        let same: Vec<&Call> = same.collect();
        assert!(
            same.len() == 1 || same.iter().all(|one| !one.when.is_empty()),
            "{}",
            call.name
        );
        assert!(same.iter().all(|one| one.name == call.name));
        assert!(!call.wanted.is_empty() && !call.reach.is_empty());
    }
}

/// A clock's number can name any OS process, and there are several calls that take one.
#[test]
fn no_table_lets_a_clock_of_another_os_process_through() {
    let clocks = [
        libc::SYS_clock_gettime,
        libc::SYS_clock_getres,
        libc::SYS_clock_nanosleep,
        libc::SYS_clock_settime,
        libc::SYS_clock_adjtime,
        libc::SYS_timer_create,
    ];
    let here = Here {
        control: 900,
        process: std::process::id(),
    };
    for table in TABLES {
        let program = filter(table, here, SeccompAction::Trap).expect("a filter");
        for call in clocks {
            for process in [1, here.process, here.process + 1] {
                // 0 to 2 are a whole process's clocks, 4 to 6 a thread's. Linux itself shows the thread's time, and nothing
                // else by it, to threads of the same OS process.
                for kind in 0..8 {
                    let number = !process << 3 | kind;
                    let said = answer(&program, call, [number.into(), 1, 0, 0, 0, 0]);
                    let own = call == libc::SYS_clock_gettime && kind == 6;
                    let expected = if own { 0x7fff_0000 } else { 0x0003_0000 };
                    assert_eq!(said, expected, "call {call}, clock {number:#x}");
                }
            }
        }
    }
}

/// As a document has it.
fn page(table: &[Call]) -> String {
    let mut page = String::from(
        "| call | when | wanted for | why nothing else is reached |\n| --- | --- | --- | --- |\n",
    );
    for call in table {
        let when: Vec<String> = call.when.iter().map(words).collect();
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} |",
            call.name,
            if when.is_empty() {
                "always".into()
            } else {
                when.join("; ")
            },
            call.wanted,
            call.reach
        );
    }
    page
}

fn words(when: &When) -> String {
    let nth = ["first", "second", "third", "fourth", "fifth", "sixth"];
    let nth = nth[usize::from(place(when))];
    match when {
        When::Is(_, values) => {
            let values: Vec<String> = values.iter().map(u32::to_string).collect();
            format!("{nth} is {}", values.join(", "))
        }
        When::Bits(_, value, of) => format!("{nth} is {value:#x} in the bits {of:#x}"),
        When::Within(_, bits) => format!("{nth} within {bits:#x}"),
        When::UpTo(_, most) => format!("{nth} is {most} or less"),
        When::Zero(_) => format!("{nth} is 0"),
        When::Control(_) => format!("{nth} is the control socket"),
        When::Memory(_) => format!("{nth} is beyond the control socket"),
        When::Own(_) => format!("{nth} is its own number"),
    }
}

#[test]
fn the_documents_have_the_tables() {
    let documents = ["sip-domains.md", "elastic.md"];
    for (table, name) in TABLES.into_iter().zip(documents) {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/");
        let path = format!("{docs}{name}");
        let text = std::fs::read_to_string(&path).expect("the document");
        let page = page(table);
        if std::env::var_os("MULLION_BLESS").is_some() {
            let begin = text.find("| call | when |").expect("a table");
            let end = begin + text[begin..].find("\n\n").expect("its end") + 1;
            let text = [&text[..begin], &page, &text[end..]].concat();
            std::fs::write(path, text).expect("written");
            continue;
        }
        assert!(
            text.contains(&page),
            "docs/{name} differs from the table; MULLION_BLESS=1 writes it there"
        );
    }
}

/// With an error in the place of the end, in a thread alone.
#[test]
fn a_program_opens_starts_and_runs_nothing() {
    let refused = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    let tried = std::thread::spawn(move || {
        for each in of_program(SeccompAction::Errno(libc::EPERM as u32)) {
            seccompiler::apply_filter(&each).expect("it holds");
        }
        assert!(std::fs::File::open("/dev/null").is_err_and(refused));
        assert!(std::net::UdpSocket::bind("127.0.0.1:0").is_err_and(refused));
        assert!(std::fs::metadata("/").is_err_and(refused));
        // SAFETY: each takes numbers only, and is refused.
        let [kill, dup] = unsafe { [libc::kill(libc::getpid(), 0), libc::dup(0)] };
        assert_eq!([kill, dup], [-1, -1]);
        // SAFETY: it writes eight bytes, which are there.
        let random = unsafe { libc::getrandom([0u8; 8].as_mut_ptr().cast(), 8, 0) };
        assert_eq!(random, 8);
    });
    tried.join().expect("as expected");
}

fn of_program(refused: SeccompAction) -> [BpfProgram; 4] {
    let here = Here {
        control: NO_SOCKET,
        process: std::process::id(),
    };
    program::filters(here, refused).expect("filters")
}

/// What Linux would answer, by a second reading of the program: the few instructions that filters are made of.
fn answer(program: &BpfProgram, call: i64, arguments: [u64; 6]) -> u32 {
    const X86_64: u32 = 0xc000_003e;
    let mut data = vec![call as u32, X86_64, 0, 0];
    data.extend(
        arguments
            .iter()
            .flat_map(|word| [*word as u32, (word >> 32) as u32]),
    );
    let (mut at, mut value) = (0, 0u32);
    loop {
        let one = &program[at];
        let jump = |taken: bool| at + 1 + usize::from(if taken { one.jt } else { one.jf });
        at = match one.code {
            0x20 => {
                value = data[one.k as usize / 4];
                at + 1
            }
            0x54 => {
                value &= one.k;
                at + 1
            }
            0x05 => at + 1 + one.k as usize,
            0x15 => jump(value == one.k),
            0x25 => jump(value > one.k),
            0x35 => jump(value >= one.k),
            0x06 => return one.k,
            other => panic!("instruction {other:#x}"),
        };
    }
}

#[test]
fn the_streams_of_a_program_are_written_at_their_end_and_in_no_other_way() {
    let [_, seek, affinity, calls] = of_program(SeccompAction::Trap);
    let [allowed, refused] = [0x7fff_0000, 0x0003_0000];
    let [private, shared] = [2, 1];
    let [read, write, run] = [1, 2, 4];
    let map =
        |rights: u64, flags: u64, file: u64| answer(&calls, 9, [0, 4096, rights, flags, file, 0]);
    assert_eq!(map(read | write, private | 0x20, u64::MAX), allowed);
    assert_eq!(map(read | write, shared, 1), refused);
    assert_eq!(map(read, private, 1), refused);
    assert_eq!(map(read | run, private | 0x20, u64::MAX), refused);
    assert_eq!(
        answer(&calls, 10, [0, 4096, read | write, 0, 0, 0]),
        allowed
    );
    assert_eq!(answer(&calls, 10, [0, 4096, read | run, 0, 0, 0]), refused);
    let no_place = 0x0005_0000 | libc::ESPIPE as u32;
    assert_eq!(answer(&seek, libc::SYS_lseek, [1, 0, 0, 0, 0, 0]), no_place);
    let not_there = 0x0005_0000 | libc::ENOSYS as u32;
    for (process, expected) in [(0, allowed), (1, not_there), (1 << 32 | 1, not_there)] {
        let found = answer(
            &affinity,
            libc::SYS_sched_getaffinity,
            [process, 8, 0, 0, 0, 0],
        );
        assert_eq!(found, expected, "{process}");
    }
    assert_eq!(answer(&calls, 1, [1, 0, 1, 0, 0, 0]), allowed);
    // `pwrite64`, `ftruncate`, `sendfile`, `copy_file_range`.
    for call in [18, 77, 40, 326] {
        assert_eq!(answer(&calls, call, [1, 0, 0, 0, 0, 0]), refused, "{call}");
    }
}

#[test]
fn a_program_asks_for_no_others_clock_and_for_no_lock_with_a_priority() {
    let [.., calls] = of_program(SeccompAction::Trap);
    let [allowed, refused] = [0x7fff_0000, 0x0003_0000];
    let clock = |number: u32| {
        answer(
            &calls,
            libc::SYS_clock_gettime,
            [number.into(), 0, 0, 0, 0, 0],
        )
    };
    let of = |process: u32, kind: u32| !process << 3 | kind;
    // The machine's, one's own, and a thread's, which Linux does not show to others.
    for number in [0, 1, 2, 3, 4, 7, of(1, 6)] {
        assert_eq!(clock(number), allowed, "{number:#x}");
    }
    // A whole process's by its number, and a device's.
    for number in [of(1, 2), of(1, 0), of(1, 1), of(5, 3)] {
        assert_eq!(clock(number), refused, "{number:#x}");
    }
    let futex = |operation: i32| answer(&calls, libc::SYS_futex, [0, operation as u64, 0, 0, 0, 0]);
    for operation in [libc::FUTEX_WAIT, libc::FUTEX_WAKE, libc::FUTEX_WAIT_BITSET] {
        assert_eq!(futex(operation), allowed, "{operation}");
        assert_eq!(futex(operation | libc::FUTEX_PRIVATE_FLAG), allowed);
    }
    for operation in [
        libc::FUTEX_LOCK_PI,
        libc::FUTEX_LOCK_PI2,
        libc::FUTEX_TRYLOCK_PI,
        libc::FUTEX_UNLOCK_PI,
        libc::FUTEX_WAIT_REQUEUE_PI,
        libc::FUTEX_CMP_REQUEUE_PI,
        libc::FUTEX_WAKE_OP,
    ] {
        assert_eq!(futex(operation), refused, "{operation}");
        assert_eq!(futex(operation | libc::FUTEX_PRIVATE_FLAG), refused);
    }
}
