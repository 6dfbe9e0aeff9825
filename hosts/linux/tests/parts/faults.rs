//! Faults in the sources of modules: what they do without a wall, and behind one.

use crate::library;
use mullion_linux::{Built, End, Machine, Protection, SUBJECTS, Subject, Trial, Trials, table};
use std::fs;
use std::path::Path;

/// The first faults of `linux-walls faults`: whatever they do without a wall, the walled kernel comes to its end.
pub(crate) fn faults_are_caught_and_survived(built: &Built, machine: &Machine<'_>, folder: &Path) {
    let mut ran = Vec::new();
    for (subject, seeds) in SUBJECTS.iter().zip(SEEDS) {
        let folder = folder.join("faults");
        let trials = Trials::new(built, machine, subject, &library(), &folder).expect("trials");
        let run = |seed: &u64| trials.run(*seed, Protection::ReadWrite).expect("a run");
        let all_of = |seeds: &[u64]| seeds.iter().filter_map(run).collect::<Vec<_>>();
        let before = ran.len();
        let (some, others) = seeds.split_at(seeds.len() / 2);
        std::thread::scope(|scope| {
            let beside = scope.spawn(|| all_of(some));
            ran.extend(all_of(others));
            ran.extend(beside.join().expect("runs"));
        });
        assert_eq!(ran.len() - before, seeds.len(), "{}", subject.module);
    }
    let lines: Vec<String> = ran.iter().map(Trial::to_string).collect();
    let text = format!("{}\n{}", lines.join("\n"), table(&ran));
    let caught = |trial: &&Trial| trial.caught.is_some();
    // Only `md5` fails the kernel's own test each time, and is not there then.
    let is_there = |trial: &Trial| trial.goes_on || trial.place.starts_with("md5/");
    assert!(ran.iter().filter(caught).all(is_there), "{text}");
    let count = |end| ran.iter().filter(|one| one.plain == end).count();
    assert!(count(End::Panic) >= 2 && count(End::Hang) >= 2, "{text}");
    assert!(ran.iter().filter(caught).count() >= 6, "{text}");
    let ends = |trial: &Trial| matches!(trial.walled, End::None | End::Corrupted);
    assert!(ran.iter().all(ends), "{text}");
    println!("{} faults:\n{}", ran.len(), table(&ran));
}

/// The driver adds a disk twice, which is refused. Its structure goes at once, and the kernel would find it by its first disk.
pub(crate) fn a_driver_that_is_ended_as_it_begins_leaves_no_disk(
    built: &Built,
    machine: &Machine<'_>,
    folder: &Path,
) {
    let trial = trial_of(built, machine, folder, ("brd", 48));
    let caught = trial.caught.as_deref().unwrap_or_default();
    let is_refused = caught.starts_with("Policy");
    assert!(is_refused && trial.walled == End::None, "{trial}");
    // A beginning that fails, without being ended, leaves an algorithm. The kernel would follow it to memory that is gone.
    let trial = trial_of(built, machine, folder, ("lzo", 44));
    assert!(
        trial.plain != End::None && trial.walled == End::None,
        "{trial}"
    );
    // It gives a disk back that is added. Nobody would answer requests for it.
    let trial = trial_of(built, machine, folder, ("brd", 66));
    let caught = trial.caught.as_deref().unwrap_or_default();
    let is_refused = caught.starts_with("Policy");
    assert!(is_refused && trial.walled == End::None, "{trial}");
}

/// A wild pointer while a pair is made: a panic without a wall. Behind it the driver is loaded again, and the work goes on.
pub(crate) fn a_fault_that_stops_the_kernel_ends_the_pair_s_driver_alone(
    built: &Built,
    machine: &Machine<'_>,
    folder: &Path,
) {
    let trial = trial_of(built, machine, folder, ("veth", 20));
    let caught = trial.caught.as_deref().unwrap_or_default();
    assert!(caught.starts_with("Access"), "{trial}");
    assert!(
        trial.plain == End::Panic && trial.walled == End::None,
        "{trial}"
    );
    assert!(trial.goes_on, "{trial}");
}

/// Wild pointers, in a tree that a name is put into and in a request to the disk, and a loop without an end: panics and a hang without
/// a wall.
pub(crate) fn faults_of_file_systems_end_them_alone(
    built: &Built,
    machine: &Machine<'_>,
    folder: &Path,
) {
    let faults = [
        (("hfs", 20), End::Panic, "Access"),
        (("hfs", 12), End::Hang, "Time"),
        (("squashfs", 46), End::Panic, "Access"),
    ];
    for (fault, plain, what) in faults {
        let trial = trial_of(built, machine, folder, fault);
        let caught = trial.caught.as_deref().unwrap_or_default();
        assert!(caught.starts_with(what) && trial.goes_on, "{trial}");
        assert!(trial.plain == plain && trial.walled == End::None, "{trial}");
    }
}

/// Stores to buffers and pages after they were given back, pages that are given back without end, and locks that are left closed or
/// closed twice. Without a wall each hangs the machine or stops it. No module writes what the kernel has in line of a buffer and a page.
pub(crate) fn buffers_and_pages_are_the_kernel_s(
    built: &Built,
    machine: &Machine<'_>,
    folder: &Path,
) {
    let faults = [
        ("bfs", 21),
        ("ext2", 112),
        ("ext2", 130),
        ("minix", 12),
        ("minix", 25),
        ("sysv", 2),
    ];
    for fault in faults {
        let trial = trial_of(built, machine, folder, fault);
        let harm = matches!(trial.plain, End::Hang | End::Panic);
        let ends = matches!(trial.walled, End::None | End::Corrupted);
        let is_caught = trial.caught.is_some() && trial.goes_on;
        assert!(harm && ends && is_caught, "{trial}");
    }
}

/// A fault in a module, by its seed.
fn trial_of(
    built: &Built,
    machine: &Machine<'_>,
    folder: &Path,
    (module, seed): (&str, u64),
) -> Trial {
    let mut subjects = SUBJECTS.iter();
    let is_it = |one: &&Subject| one.module == module;
    let subject = subjects.find(is_it).expect("a subject");
    let folder = folder.join("faults").join(module);
    fs::create_dir_all(&folder).expect("a folder");
    let trials = Trials::new(built, machine, subject, &library(), &folder).expect("trials");
    let run = trials.run(seed, Protection::ReadWrite).expect("a run");
    run.expect("a fault")
}

/// Of each module: some that do harm, and some that do none.
const SEEDS: [[u64; 8]; 5] = [
    [1, 4, 8, 9, 11, 15, 16, 22],
    [1, 2, 3, 4, 5, 7, 8, 25],
    [1, 2, 3, 4, 5, 7, 8, 9],
    [1, 3, 4, 5, 7, 8, 9, 13],
    [1, 3, 4, 7, 8, 9, 13, 14],
];
