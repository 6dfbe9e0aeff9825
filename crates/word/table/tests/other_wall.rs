//! Windows and the word wall both need the `%gs` base of each thread. So one process has one of them, whichever comes first,
//! and the other one says why it is refused. Each order runs in a process of its own.

use mullion_runtime::{Error, prepare_thread};
use mullion_word_abi::CLOSED_FIRST;
use mullion_word_table::{Inside, Limits, SpaceError, Table};
use std::process::Command;

const _: () = assert!(mullion_abi::OTHER_WALL == CLOSED_FIRST);

fn table() -> Result<Table, SpaceError> {
    let inside = Inside::new().expect("Linux has what it needs");
    Table::reserve(Limits::default(), inside)
}

fn word_first() {
    let table = table().expect("nothing is in its way");
    for _ in 0..2 {
        let refused = prepare_thread();
        assert!(matches!(refused, Err(Error::OtherWall)), "{refused:?}");
    }
    // With the table the wall goes.
    drop(table);
    prepare_thread().expect("windows have the process to themselves");
}

fn window_first() {
    prepare_thread().expect("nothing is in its way");
    for _ in 0..2 {
        match table() {
            Err(SpaceError::Closed { who }) => assert!(who.contains("---p"), "{who}"),
            other => panic!("{other:?}"),
        }
        prepare_thread().expect("windows are there already");
    }
}

/// What lies there may be somebody else's, such as a sanitiser's shadow: then windows go on, and the word wall is refused.
fn neither() {
    // SAFETY: nothing is mapped there in this process, and nothing is replaced.
    let found = unsafe {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        libc::mmap(CLOSED_FIRST as *mut _, 4096, both, flags, -1, 0)
    };
    assert_eq!(found as u64, CLOSED_FIRST);
    prepare_thread().expect("it is no wall");
    assert!(matches!(table(), Err(SpaceError::Closed { .. })));
}

const ORDERS: [(&str, fn()); 3] = [
    ("word", word_first),
    ("window", window_first),
    ("neither", neither),
];

fn main() {
    const ORDER: &str = "MULLION_TEST_ORDER";
    if let Ok(order) = std::env::var(ORDER) {
        let (_, run) = ORDERS
            .iter()
            .find(|(name, _)| *name == order)
            .expect("an order");
        return run();
    }
    let this = std::env::current_exe().expect("this program");
    for (name, _) in ORDERS {
        let done = Command::new(&this)
            .env(ORDER, name)
            .status()
            .expect("it runs");
        assert!(done.success(), "{name} first: {done}");
        println!("{name} first: ok");
    }
}
