//! Exceptions whose tables lie: the unwinder is the domain's own code, so what it makes of them is the domain's
//! affair. The host goes on, whatever is in them.

mod support;

use mullion::{CallLimits, Callback, Caller, Cause, Domain, Error, Host, Image, Imports};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

const SECTIONS: [&str; 3] = [".eh_frame", ".eh_frame_hdr", ".gcc_except_table"];
const IMAGES: u64 = 400;
const GRANTED: Duration = Duration::from_millis(50);

fn built() -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/throws.cc");
    let image = directory.path().join("throws.mx");
    support::build(&source, &image, &[]);
    std::fs::read(&image).expect("it is there")
}

fn number(bytes: &[u8], at: usize, length: usize) -> usize {
    let bytes = bytes[at..at + length].iter().rev();
    bytes.fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// Where the tables are in the file, by its section headers.
fn tables(file: &[u8]) -> Vec<Range<usize>> {
    let (headers, count, names) = (
        number(file, 40, 8),
        number(file, 60, 2),
        number(file, 62, 2),
    );
    let header = |index: usize| headers + 64 * index;
    let names = number(file, header(names) + 24, 8);
    let of = |index: usize| {
        let name = &file[names + number(file, header(index), 4)..];
        let name = name.split(|byte| *byte == 0).next()?;
        let start = number(file, header(index) + 24, 8);
        let is_one = SECTIONS.iter().any(|section| section.as_bytes() == name);
        is_one.then(|| start..start + number(file, header(index) + 32, 8))
    };
    (0..count).filter_map(of).collect()
}

fn imports() -> Imports {
    Imports::new().function(
        "host_apply",
        |caller: &Caller<'_>, function: Callback<fn(i32) -> i32>, value: i32| {
            function.call(caller, value)
        },
    )
}

fn load(image: &Image) -> Result<Domain, Error> {
    image.domain().imports(imports()).load()
}

fn call(domain: &Domain, name: &str, value: i32) -> Result<i32, Error> {
    let function = domain.function::<fn(i32) -> i32>(name).expect("exported");
    let limits = CallLimits {
        time: Some(GRANTED),
        ..CallLimits::default()
    };
    function.limited(limits).call(value)
}

/// Numbers that differ from run to run in nothing.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % end
    }
}

/// Changes a few places in the tables: bits, bytes, whole words, or pieces in the place of others.
fn forge(file: &mut [u8], tables: &[Range<usize>], random: &mut Random) {
    for _ in 0..1 + random.below(12) {
        let table = tables[random.below(tables.len())].clone();
        let at = table.start + random.below(table.len() - 16);
        match random.below(5) {
            0 => file[at] ^= 1 << random.below(8),
            1 => file[at] = random.below(256) as u8,
            2 => file[at..at + 4]
                .copy_from_slice(&[[0xff; 4], [0; 4], [0, 0, 0, 0x80]][random.below(3)]),
            3 => file[at..at + 8].copy_from_slice(&random.0.to_le_bytes()),
            _ => {
                let from = table.start + random.below(table.len() - 16);
                file.copy_within(from..from + 16, at);
            }
        }
    }
}

/// Why a call ended: the host function hands on what became of its own call.
fn reason(end: &Error) -> &Error {
    match end {
        Error::Refused { source, .. } => source.downcast_ref().expect("a call's end"),
        other => other,
    }
}

fn how(end: &Result<i32, Error>) -> &'static str {
    match end.as_ref().map_err(reason) {
        Ok(_) => "returned",
        Err(Error::Fault(fault)) => match fault.cause() {
            Cause::Access { .. } => "access",
            Cause::Raised { .. } => "raised a signal",
            Cause::TimeLimit { .. } => "time limit",
            Cause::BadUnwind | Cause::UnlabelledUnwind => "bad unwinding",
            _ => "another fault",
        },
        Err(Error::Exit { .. }) => "exit",
        Err(Error::Ended { .. }) => "ended before",
        Err(other) => panic!("no end of a domain: {other}"),
    }
}

#[test]
fn forged_tables_of_exceptions_harm_their_domain_alone() {
    let file = built();
    let tables = tables(&file);
    assert_eq!(tables.len(), SECTIONS.len());
    let host = Host::new();
    let whole = load(&host.image("whole", file.clone()).expect("verified")).expect("a domain");
    let right = call(&whole, "catch_deep", 9).expect("no fault");
    let mut random = Random(1);
    let mut ends = BTreeMap::new();
    for _ in 0..IMAGES {
        let mut forged = file.clone();
        forge(&mut forged, &tables, &mut random);
        // The tables are data: the verifier has nothing to say about them.
        let image = host.image("forged", forged).expect("verified");
        let Ok(domain) = load(&image) else {
            *ends.entry("not started").or_insert(0) += 1;
            continue;
        };
        for name in ["catch_deep", "within", "across"] {
            *ends.entry(how(&call(&domain, name, 9))).or_insert(0) += 1;
        }
        assert_eq!(
            call(&whole, "catch_deep", 9).expect("another domain"),
            right
        );
    }
    println!("{ends:?}");
    let faults = ends
        .iter()
        .filter(|(how, _)| **how != "returned" && **how != "ended before");
    assert!(
        faults.map(|(_, count)| count).sum::<i32>() > 50,
        "most change nothing: {ends:?}"
    );
}

/// An exception that nobody in its invocation catches ends there: it does not pass the host.
#[test]
fn no_exception_passes_the_host() {
    let image = Host::new().image("throws", built()).expect("verified");
    let domain = load(&image).expect("a domain");
    assert_eq!(
        call(&domain, "within", 7).expect("caught where it is thrown"),
        7
    );
    let end = call(&domain, "across", 7).expect_err("it throws");
    match reason(&end) {
        Error::Fault(fault) => {
            const ABORT: i32 = 6;
            assert_eq!(*fault.cause(), Cause::Raised { signal: ABORT }, "{fault}");
        }
        other => panic!("{other:?}"),
    }
    domain.restart().expect("nobody is in it");
    assert_eq!(call(&domain, "within", 8).expect("as new"), 8);
}
