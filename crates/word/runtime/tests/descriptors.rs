//! No descriptor of the process leads to code that it could change: a host may offer a function that writes to a descriptor of
//! the module's choice. In a process of its own, because it looks at all descriptors.

mod module;

use module::{function, load};
use mullion_word_runtime::{Domain, Host, Policy};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};

/// A file that the other test is just making is not sealed yet.
static ONE: Mutex<()> = Mutex::new(());

/// Files of which the process has mappings that may be executed: device and inode, as both lists have them.
fn executed() -> BTreeSet<u64> {
    let maps = fs::read_to_string("/proc/self/maps").expect("mappings");
    let inode = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_executed = words[1].contains('x');
        words[4]
            .parse::<u64>()
            .ok()
            .filter(|inode| is_executed && *inode != 0)
    };
    maps.lines().filter_map(inode).collect()
}

#[test]
fn no_descriptor_leads_to_code_that_can_be_changed() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let text = "import nothing\n gate f\n mov $7, %eax\n ret";
    let (_host, domain) = load("one", text, Policy::new());
    assert_eq!(function::<extern "C" fn() -> u64>(&domain, "f")(), 7);
    let executed = executed();
    let (mut open, mut mapped) = (Vec::new(), 0);
    for entry in fs::read_dir("/proc/self/fd")
        .expect("descriptors")
        .flatten()
    {
        let Ok(number) = entry.file_name().to_string_lossy().parse::<i32>() else {
            continue;
        };
        let Ok(file) = fs::metadata(entry.path()) else {
            continue;
        };
        // SAFETY: it asks.
        let seals = unsafe { libc::fcntl(number, libc::F_GET_SEALS) };
        let target = fs::read_link(entry.path()).unwrap_or_default();
        let is_ours = target.to_string_lossy().starts_with("/memfd:mullion");
        mapped += u32::from(executed.contains(&file.ino()));
        let can_change = seals == -1 || seals & libc::F_SEAL_WRITE == 0;
        if can_change && (is_ours || executed.contains(&file.ino())) {
            open.push(target);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    // The module's own file, sealed.
    assert_ne!(mapped, 0);
}

/// For the limits in SECURITY.md: a process has room for 65,530 mappings.
#[test]
fn a_domain_takes_few_mappings() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let count = || {
        let maps = fs::read_to_string("/proc/self/maps").expect("mappings");
        maps.lines().count()
    };
    let text = "import nothing\n gate f\n mov $7, %eax\n ret\n .data\n .long 1\n .bss\n .zero 8192\n .text";
    let module = module::module("many", text);
    let host = Host::new().unwrap();
    let load = || host.load(&module, Policy::new()).unwrap();
    let _first = load();
    let before = count();
    let domains: Vec<Domain> = (0..100).map(|_| load()).collect();
    let loaded = count();
    for domain in &domains {
        assert_eq!(function::<extern "C" fn() -> u64>(domain, "f")(), 7);
    }
    let called = count();
    println!("{before}, of 100 more {loaded}, called {called}");
    assert!(called - before <= 1000, "{before} {called}");
}
