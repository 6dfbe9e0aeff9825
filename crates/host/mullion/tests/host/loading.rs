//! What is loaded, and what is refused.

use crate::{IMAGE, fault, imports, support};
use mullion::{
    BoxedError, Candidate, Cause, Error, Host, Image, Imports, Limits, Policy, ProgramEnd, Streams,
};
use std::path::Path;
use std::sync::{Arc, Mutex};

#[test]
fn what_is_no_image_is_refused_with_its_first_violation() {
    let host = Host::new();
    for bytes in [&b"MZ"[..], b"", &[0x7f; 5000]] {
        let error = host.image("rubbish", bytes).unwrap_err();
        let Error::Rejected { image, source } = &error else {
            panic!("{error}");
        };
        assert_eq!(image, "rubbish");
        assert!(!source.violations.is_empty());
    }
    let missing = Image::open("/nonexistent/image.mx").unwrap_err();
    assert!(matches!(missing, Error::Open { .. }), "{missing}");
}

#[test]
fn a_file_without_an_end_is_read_to_the_limit_and_no_further() {
    let too_large = |opened: Result<Image, Error>| match opened {
        Err(Error::Open { source, .. }) => {
            assert_eq!(source.kind(), std::io::ErrorKind::FileTooLarge);
        }
        other => panic!("{other:?}"),
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image.mx");
    let bytes = IMAGE.file().bytes();
    std::fs::write(&file, bytes).unwrap();
    let limited = |limit| Host::builder().max_image(limit).build();
    too_large(limited(bytes.len() as u64 - 1).open(&file));
    too_large(limited(1 << 20).open("/dev/zero"));
    limited(bytes.len() as u64).open(&file).unwrap();
    // By its length, before a byte is read.
    let sparse = std::fs::File::create(&file).unwrap();
    sparse.set_len(1 << 40).unwrap();
    too_large(Image::open(&file));
}

#[test]
fn a_changed_image_is_refused() {
    let good = IMAGE.file().bytes();
    let code = &IMAGE.file().segments()[1];
    let mut changed = good.to_vec();
    // System call instructions in the midst of the code: more than one can hide.
    let at = code.file.start + 128;
    changed[at..at + 64].copy_from_slice(&[0x0f, 0x05].repeat(32));
    let error = Host::new().image("changed", changed).unwrap_err();
    assert!(matches!(error, Error::Rejected { .. }), "{error}");
}

#[test]
fn a_program_is_no_extension() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("program.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let image = directory.path().join("program.mx");
    support::build(&source, &image, &["--mullion-kind=program"]);
    let error = Image::open(&image).unwrap_err();
    assert!(matches!(error, Error::NotAnExtension { .. }), "{error}");
}

const PROGRAM: &str = "
    #include <stdio.h>
    #include <stdlib.h>
    int main(int count, char **arguments) {
        if (count == 1) abort();
        printf(\"%s %s\", arguments[1], getenv(\"COLOUR\"));
        return count;
    }
";

#[test]
fn a_program_runs_to_its_end_once() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("program.c");
    std::fs::write(&source, PROGRAM).unwrap();
    let image = directory.path().join("program.mx");
    support::build(&source, &image, &["--mullion-kind=program"]);
    let program = Host::new().program("program.mx", std::fs::read(&image).unwrap());
    let program = program.unwrap();
    let written = Arc::new(Mutex::new(Vec::new()));
    let taken = written.clone();
    let streams = Streams::Taken(Arc::new(move |_, bytes| {
        taken.lock().unwrap().extend_from_slice(bytes);
        Ok(())
    }));
    let run = program.run().arguments(["program", "blue"]);
    let run = run.environment(["COLOUR=red"]).streams(streams);
    let run = run.load().unwrap();
    let end = run.finish().unwrap();
    assert!(matches!(end, ProgramEnd::Exit(2)), "{end:?}");
    assert_eq!(*written.lock().unwrap(), b"blue red");
    let again = run.finish().unwrap_err();
    assert!(matches!(again, Error::Ended { .. }), "{again}");
    assert_eq!(run.domain().metrics().counts.exits, 1);

    let aborted = program.run().arguments(["program"]).load().unwrap();
    let ProgramEnd::Fault(fault) = aborted.finish().unwrap() else {
        panic!("it aborts");
    };
    assert!(matches!(fault.cause(), Cause::Raised { signal: 6 }));

    let memory = Limits {
        memory: 4096,
        ..Limits::default()
    };
    let refused = program.run().limits(memory).load().unwrap_err();
    assert!(matches!(refused, Error::Runtime(_)), "{refused}");
}

#[test]
fn an_extension_is_no_program() {
    let bytes = IMAGE.file().bytes().clone();
    let error = Host::new().program("extension", bytes).unwrap_err();
    assert!(matches!(error, Error::NotAProgram { .. }), "{error}");
}

#[test]
fn imports_are_what_the_list_has() {
    let error = IMAGE.domain().imports(Imports::new()).load().unwrap_err();
    let Error::UnknownImports { names, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(names.len(), 6, "{names:?}");
    assert!(names.contains(&"host_log".to_owned()));
    let error = IMAGE
        .domain()
        .imports(imports())
        .without_system()
        .load()
        .unwrap_err();
    let Error::UnknownImports { names, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(names, ["__mullion_system"]);
}

#[test]
fn an_export_that_is_none_is_an_error_that_lists_those_that_are() {
    let domain = crate::domain();
    let error = domain.function::<fn()>("cuont").err().unwrap();
    let text = error.to_string();
    assert!(
        text.starts_with("everything.mx: it exports no `cuont`; it has "),
        "{text}"
    );
    assert!(text.contains("count, narrow"), "{text}");
}

#[test]
fn the_policy_decides() {
    struct Exporting(&'static str);
    impl Policy for Exporting {
        fn admit(&self, candidate: &Candidate<'_>) -> Result<(), BoxedError> {
            match candidate.file.export(self.0) {
                Some(_) => Ok(()),
                None => Err(format!("{} does not export {}", candidate.name, self.0).into()),
            }
        }
    }
    let bytes = IMAGE.file().bytes().clone();
    let host = Host::builder().policy(Exporting("count")).build();
    host.image("good", bytes.clone()).unwrap();
    let host = Host::builder().policy(Exporting("plugin_main")).build();
    let error = host.image("bad", bytes).unwrap_err();
    assert!(matches!(error, Error::NotPermitted { .. }));
    assert_eq!(
        error.to_string(),
        "bad: not permitted: bad does not export plugin_main"
    );
}

#[test]
fn perf_finds_names_in_its_map() {
    let host = Host::builder().perf_map(true).build();
    let image = host
        .image("profiled", IMAGE.file().bytes().clone())
        .unwrap();
    let domain = image.domain().imports(imports()).load().unwrap();
    let path = format!("/tmp/perf-{}.map", std::process::id());
    let map = std::fs::read_to_string(&path).unwrap();
    let get = domain.function::<fn() -> u64>("get_twice").unwrap();
    let twice = format!("{:x} ", get.call().unwrap());
    let line = map.lines().find(|line| line.starts_with(&twice));
    assert!(
        line.is_some_and(|line| line.ends_with(" twice [profiled]")),
        "{line:?}"
    );
    std::fs::remove_file(Path::new(&path)).unwrap();
}

#[test]
fn a_thousand_domains_come_and_go() {
    let maps = || {
        std::fs::read_to_string("/proc/self/maps")
            .unwrap()
            .lines()
            .count()
    };
    let load = || IMAGE.domain().imports(imports()).load().unwrap();
    drop(load());
    let before = maps();
    for _ in 0..1000 {
        let domain = load();
        assert_eq!(
            domain
                .function::<fn() -> i32>("count")
                .unwrap()
                .call()
                .unwrap(),
            42
        );
    }
    // Other tests of this process load domains meanwhile.
    let after = maps();
    assert!(after < before + 500, "{before} mappings, then {after}");
}

#[test]
fn domains_of_windows_mapped_in_advance_are_as_others() {
    IMAGE.prepare(2).unwrap();
    for _ in 0..3 {
        let domain = IMAGE.domain().imports(imports()).load().unwrap();
        let count = domain.function::<fn() -> i32>("count").unwrap();
        assert_eq!(count.call().unwrap(), 42);
    }
}

/// A host that wants no debug information read has names of functions alone, and no types.
#[test]
fn debug_information_is_read_only_if_the_host_wants_it() {
    let read = |wanted: bool| {
        let host = Host::builder().debug_information(wanted).build();
        let image = host.image("quiet", IMAGE.file().bytes().clone()).unwrap();
        let domain = image.domain().imports(imports()).load().unwrap();
        let wrong = domain.function::<fn(f64) -> f64>("down").is_err();
        let fault = fault(domain.function::<fn()>("fault").unwrap().call());
        let place = fault.location().unwrap();
        (wrong, place.line.is_some(), place.function)
    };
    let name = Some("scribble".into());
    assert_eq!(read(true), (true, true, name.clone()));
    assert_eq!(read(false), (false, false, name));
}
