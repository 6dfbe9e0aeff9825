use super::*;
use std::path::Path;

fn parse(line: &str) -> Result<Arguments, DriverError> {
    Arguments::parse(
        &line
            .split_whitespace()
            .map(OsString::from)
            .collect::<Vec<_>>(),
    )
}

#[test]
fn own_options_are_taken_out() {
    let sorted = parse(
        "--mullion-kind=extension -O2 --mullion-protection=trap a.c --mullion-export=f,g -o a.mx",
    )
    .unwrap();
    assert_eq!(sorted.forwarded, ["-O2", "a.c", "-o", "a.mx"]);
    assert_eq!(
        (sorted.kind, sorted.protection),
        (Kind::Extension, Protection::Trap)
    );
    assert_eq!(sorted.exports, ["f", "g"]);
    assert_eq!(sorted.output.as_deref(), Some(Path::new("a.mx")));
}

#[test]
fn a_named_processor_is_noticed() {
    let sorted = parse("-v -O3 -march=native a.c").unwrap();
    assert!(sorted.verbose && sorted.names_processor);
    assert!(!parse("-O3 -mtune=native a.c").unwrap().names_processor);
}

#[test]
fn gccs_help_is_told_from_ours() {
    assert!(parse("--help").unwrap().asks_for_help());
    assert!(parse("--help=target").unwrap().asks_for_help());
    assert!(!parse("--mullion-help").unwrap().asks_for_help());
    assert!(!parse("-c a.c").unwrap().asks_for_help());
}

#[test]
fn the_base_is_read() {
    assert_eq!(parse("a.c").unwrap().base, Base::Segment);
    let asked = parse("--mullion-base=register a.c").unwrap();
    assert_eq!((asked.base, asked.forwarded.len()), (Base::Register, 1));
    assert!(matches!(
        parse("--mullion-base=gs a.c"),
        Err(DriverError::Value { value, .. }) if value == "gs"
    ));
}

#[test]
fn counting_is_read() {
    assert!(!parse("a.c").unwrap().count);
    assert!(parse("--mullion-count a.c").unwrap().rewriting().count);
    assert!(matches!(
        parse("--mullion-count=5 a.c"),
        Err(DriverError::Unknown(_))
    ));
}

#[test]
fn the_heap_is_read() {
    assert_eq!(parse("--wall=word a.c").unwrap().heap, Heap::Own);
    let asked = parse("--heap=host a.c --wall=word").unwrap();
    assert_eq!((asked.heap, asked.forwarded.len()), (Heap::Host, 1));
    assert!(matches!(
        parse("--wall=word --heap=arena a.c"),
        Err(DriverError::Value { value, .. }) if value == "arena"
    ));
    assert!(matches!(
        parse("--heap=own a.c"),
        Err(DriverError::Refused { .. })
    ));
}

#[test]
fn tasks_are_told_apart() {
    for (line, task) in [
        ("a.c", Task::Link),
        ("a.o -lm -ofoo", Task::Link),
        ("-c a.c", Task::Compile),
        ("-E -", Task::Compile),
        ("-S a.c b.c", Task::Compile),
        ("--version", Task::Question),
        ("-v", Task::Question),
        ("-dumpmachine", Task::Question),
        ("-print-prog-name=ld", Task::Question),
        ("-x c -c -", Task::Compile),
    ] {
        assert_eq!(parse(line).unwrap().task, task, "{line}");
    }
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    for option in [
        "-m32",
        "-fsplit-stack",
        "-fsanitize=address",
        "-fsanitize=undefined,vptr",
        "-mcmodel=large",
    ] {
        match parse(&format!("a.c {option}")) {
            Err(DriverError::Refused { option: named, .. }) => assert_eq!(named, option),
            other => panic!("{option}: {other:?}"),
        }
    }
}

#[test]
fn undefined_behaviour_traps_and_libraries_are_objects() {
    let sorted = parse("a.c -fsanitize=shift,bounds -shared").unwrap();
    assert!(sorted.traps_undefined && sorted.shared);
    assert!(!parse("a.c -Xlinker -shared").unwrap().shared);
}

#[test]
fn a_record_is_asked_for_in_each_spelling() {
    for line in [
        "--type t.toml --key cc a.c",
        "a.c --type=t.toml --key=cc",
        "--mullion-type=t.toml a.c --mullion-key=cc",
    ] {
        let sorted = parse(line).unwrap();
        assert_eq!(sorted.module_type.as_deref(), Some(Path::new("t.toml")));
        assert_eq!(sorted.key.as_deref(), Some("cc"));
        assert_eq!(sorted.forwarded, ["a.c"]);
    }
    assert!(matches!(
        parse("a.c --key"),
        Err(DriverError::Refused { .. })
    ));
    assert_eq!(parse("-Xlinker --key a.c").unwrap().key, None);
}

#[test]
fn a_value_is_not_an_option() {
    let sorted = parse("-Xlinker -shared -include -m32 a.c").unwrap();
    assert_eq!(sorted.task, Task::Link);
    assert_eq!(sorted.forwarded.len(), 5);
}

#[test]
fn cxx_is_known_by_suffix_and_option() {
    for (line, cxx) in [
        ("a.cc", true),
        ("-x c++ -", true),
        ("-xc++ -", true),
        ("a.c b.o", false),
        ("-x c a.C", true),
    ] {
        assert_eq!(parse(line).unwrap().cxx, cxx, "{line}");
    }
}

#[test]
fn a_bad_protection_is_refused() {
    assert!(
        matches!(parse("--mullion-protection=none a.c"), Err(DriverError::Value { value, .. }) if value == "none")
    );
    assert!(matches!(
        parse("--mullion-protect=trap a.c"),
        Err(DriverError::Unknown(_))
    ));
}

#[test]
fn response_files_are_looked_into() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("r");
    std::fs::write(&file, "-c -o x.o 'y z.c'").unwrap();
    let sorted = parse(&format!("@{}", file.display())).unwrap();
    assert_eq!(
        (sorted.task, sorted.output.as_deref()),
        (Task::Compile, Some(Path::new("x.o")))
    );
    std::fs::write(&file, "-m32").unwrap();
    assert!(matches!(
        parse(&format!("@{}", file.display())),
        Err(DriverError::Refused { .. })
    ));
    assert_eq!(parse("@does/not/exist a.c").unwrap().task, Task::Link);
}
