//! Limits on steps: the same input ends at the same instruction, with the same memory.

mod support;

use mullion::{Cause, Domain, Error, FaultKind, Image, LimitKind, Limits, Ptr};
use std::path::Path;
use std::sync::LazyLock;

const NUMBERS: u64 = 500;

static IMAGE: LazyLock<Image> = LazyLock::new(|| build(&["--mullion-count", "-O2"]));

fn build(options: &[&str]) -> Image {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let image = directory.path().join("steps.mx");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/steps.c");
    support::build(&source, &image, options);
    Image::open(&image).expect("it is verified")
}

fn limited(steps: Option<u64>) -> Domain {
    let limits = Limits {
        steps,
        ..Limits::default()
    };
    IMAGE.domain().limits(limits).load().expect("a domain")
}

/// Where a run ended, by its registers, and what it left in memory.
type End = (u64, Vec<u64>, Vec<u64>);

fn end(domain: &Domain) -> End {
    let place = domain.function::<fn(u64) -> Ptr<u64>>("place").unwrap();
    let numbers = place.call(NUMBERS).unwrap();
    let run = domain.function::<fn(u64, u64)>("run").unwrap();
    let Err(Error::Fault(fault)) = run.call(NUMBERS, 88_172_645_463_325_252) else {
        panic!("it has no end");
    };
    assert_eq!(*fault.cause(), Cause::StepLimit { granted: 100_000 });
    assert_eq!(domain.steps_left().unwrap(), Some(0));
    let mut memory = vec![0u64; NUMBERS as usize];
    let slice = numbers.slice(domain, NUMBERS).unwrap();
    slice.copy_to(&mut memory).unwrap();
    let raw = fault.raw();
    let registers = raw.registers.as_ref().expect("not in a host function");
    (raw.instruction, registers.values.to_vec(), memory)
}

#[test]
fn a_hundred_runs_end_alike() {
    let domain = limited(Some(100_000));
    let expected = end(&domain);
    assert!(expected.2.iter().filter(|number| **number != 0).count() > 100);
    for _ in 0..99 {
        domain.restart().unwrap();
        assert_eq!(end(&domain), expected);
    }
    let counts = domain.metrics().counts;
    assert_eq!(counts.faults_of(FaultKind::StepLimit), 100);
    assert_eq!(counts.limit_hits_of(LimitKind::Steps), 100);
    // Another domain has another window; all else is alike.
    let other = limited(Some(100_000));
    let found = end(&other);
    assert_eq!(found.2, expected.2);
    assert_eq!(found.0 - other.base(), expected.0 - domain.base());
}

/// What a call takes is the same every time; a call that needs no more than is left returns.
#[test]
fn steps_are_for_all_calls_until_a_restart() {
    let domain = limited(Some(10_000));
    let count_down = domain.function::<fn(u64) -> u64>("count_down").unwrap();
    let left = || domain.steps_left().unwrap().unwrap();
    let first = left();
    count_down.call(100).unwrap();
    let used = first - left();
    assert!((100..200).contains(&used), "{used}");
    count_down.call(100).unwrap();
    assert_eq!(left(), first - 2 * used);
    count_down.call(20_000).unwrap_err();
    domain.restart().unwrap();
    assert_eq!(left(), first);
    assert_eq!(count_down.call(2).unwrap(), 1);
}

#[test]
fn without_a_limit_nothing_ends() {
    let domain = limited(None);
    let count_down = domain.function::<fn(u64) -> u64>("count_down").unwrap();
    count_down.call(1_000_000).unwrap();
    assert_eq!(domain.steps_left().unwrap(), None);
}

#[test]
fn an_image_that_counts_nothing_is_not_limited_silently() {
    let image = build(&[]);
    let limits = Limits {
        steps: Some(1),
        ..Limits::default()
    };
    let refused = image.domain().limits(limits).load();
    let text = refused.expect_err("it counts nothing").to_string();
    assert!(text.contains("--mullion-count"), "{text}");
}
