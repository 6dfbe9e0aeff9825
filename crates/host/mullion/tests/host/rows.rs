//! Every row of the system interface against a limit of time, and against threads of the domain that rewrite
//! what its arguments point to.

use crate::support;
use mullion::{CallLimits, Cause, Domain, Error, Image, Mount};
use mullion_system::table::TABLE;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const GRANTED: Duration = Duration::from_millis(20);
/// Processor time that one call may take beside: many times what a busy machine needs to stop
/// it, a small part of what the longest call takes that is not stopped.
const SLACK: Duration = Duration::from_secs(2);

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A directory with what the rows need: a file without bytes on the disk, 64 GiB long.
fn directory() -> tempfile::TempDir {
    let top = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| top.path().join(name);
    std::fs::create_dir(at("sub")).expect("a directory");
    File::create(at("other")).expect("a file");
    symlink("other", at("link")).expect("a link");
    let large = File::create(at("large")).expect("a file");
    large.set_len(64 << 30).expect("a sparse file");
    top
}

fn domain(image: &Image, top: &Path) -> Domain {
    let mount = Mount::new(top, "/d", false).expect("a directory");
    let domain = image.domain().clock().directory(Arc::new(mount));
    let domain = domain.load().expect("a domain");
    let prepare = domain.function::<fn() -> i32>("prepare").expect("it is");
    assert_eq!(prepare.call().expect("no fault"), 0);
    domain
}

fn image() -> Image {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/rows.c");
    support::build(&source, file.path(), &[]);
    Image::open(file.path()).expect("it is verified")
}

fn limits() -> CallLimits {
    CallLimits {
        time: Some(GRANTED),
        ..CallLimits::default()
    }
}

#[test]
fn no_call_of_the_system_interface_goes_on_when_the_time_is_up() {
    let image = image();
    for row in TABLE {
        let top = directory();
        let domain = domain(&image, top.path());
        let repeat = domain.function::<fn(i64) -> i32>("repeat").expect("it is");
        let before = processor_time();
        let end = repeat.limited(limits()).call(i64::from(row.number));
        let used = processor_time() - before;
        match end {
            Err(Error::Fault(fault)) => {
                let limit = Cause::TimeLimit { granted: GRANTED };
                assert_eq!(*fault.cause(), limit, "{}", row.name);
            }
            Err(Error::Exit { .. }) => assert!(row.name.starts_with("exit"), "{}", row.name),
            other => panic!("{}: {other:?}: rows.c has no arguments for it", row.name),
        }
        assert!(used < GRANTED + SLACK, "{}: {used:?}", row.name);
    }
}

/// The host lives, and a call ends as any other one does.
#[test]
fn no_call_of_the_system_interface_relies_on_what_another_thread_rewrites() {
    let image = image();
    for row in TABLE {
        let top = directory();
        let domain = domain(&image, top.path());
        let repeat = domain.function::<fn(i64) -> i32>("repeat").expect("it is");
        let rewrite = domain.function::<fn()>("rewrite").expect("it is");
        std::thread::scope(|scope| {
            scope.spawn(|| rewrite.limited(limits()).call());
            match repeat.limited(limits()).call(i64::from(row.number)) {
                // Whichever of the two was stopped first has ended the domain.
                Err(Error::Fault(fault)) => {
                    let limit = Cause::TimeLimit { granted: GRANTED };
                    assert_eq!(*fault.cause(), limit, "{}", row.name);
                }
                Err(Error::Ended { .. }) => {}
                Err(Error::Exit { .. }) => assert!(row.name.starts_with("exit"), "{}", row.name),
                other => panic!("{}: {other:?}", row.name),
            }
        });
        domain.restart().expect("nobody is in it");
    }
}

/// A path is read once: what is decided by it and what is opened is one text.
#[test]
fn a_path_that_changes_meanwhile_is_one_or_the_other() {
    let image = image();
    let top = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| top.path().join(name);
    for name in ["here", "there"] {
        std::fs::create_dir(at(name)).expect("a directory");
    }
    for name in ["o", "there/.o"] {
        File::create(at(name)).expect("a file");
    }
    let mount = Arc::new(Mount::new(top.path(), "/", false).expect("a directory"));
    let domain = image.domain().directory(mount);
    let domain = domain.load().expect("a domain");
    let find = domain.function::<fn(i32) -> i32>("find_switched");
    let switch = domain.function::<fn()>("switch_path").expect("it is");
    std::thread::scope(|scope| {
        scope.spawn(|| switch.call());
        let missed = find.expect("it is").call(20_000).expect("no fault");
        assert_eq!(missed, 0);
    });
}
