//! `--coverage`, `-fprofile-generate` and `-fprofile-use`: counts of a run in a domain are those of the native run, by
//! the words of gcc's own `gcov`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Branches, loops, a call by a pointer, a file that is included by the other's name, an end by `exit` below `main`.
const MAIN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int digits(int number);
static int twice(int x) { return 2 * x; }
static int thrice(int x) { return 3 * x; }
static void end(int sum) { printf("%d\n", sum); exit(sum == 420 ? 0 : 1); }
int main(int count, char **words) {
    int (*by)(int) = count > 5 ? thrice : twice;
    int sum = 0;
    for (int at = 0; at < 37; at++) {
        if (at % 3 == 0)
            sum += by(at);
        else if (at < 10)
            sum -= digits(at * 11);
        else
            sum -= digits(at);
    }
    if (count > 9)
        puts(words[0]);
    end(sum);
    return 0;
}
"#;

const DIGITS: &str = r"
int digits(int number) {
    int count = 1;
    while (number >= 10) {
        number /= 10;
        count++;
    }
    return count;
}
";

fn run(directory: &Path, program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    let output = command.args(arguments).current_dir(directory).output();
    let output = output.expect("the command starts");
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn sources(directory: &Path) {
    fs::write(directory.join("main.c"), MAIN).expect("written");
    fs::write(directory.join("digits.c"), DIGITS).expect("written");
}

/// Compiles and runs `times` times; what `gcov` says of both files.
fn counts(walled: bool, options: &[&str], times: usize) -> Vec<String> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = directory.path();
    sources(place);
    let mullion = env!("CARGO_BIN_EXE_mullion");
    for file in ["main", "digits"] {
        let (source, object) = (format!("{file}.c"), format!("{file}.o"));
        let mut line = vec!["-O1", "-c", &source, "-o", &object];
        line.extend(options);
        match walled {
            true => run(place, mullion, &[&["cc"], &line[..]].concat()),
            false => run(place, "gcc", &line),
        };
    }
    let mut line = vec!["main.o", "digits.o", "-o", "program.mx"];
    line.extend(options);
    match walled {
        true => run(place, mullion, &[&["cc"], &line[..]].concat()),
        false => run(place, "gcc", &line),
    };
    let grant = format!("{0}::{0}", place.display());
    for _ in 0..times {
        let output = match walled {
            true => run(place, mullion, &["run", "--dir", &grant, "program.mx"]),
            false => run(place, "./program.mx", &[]),
        };
        assert_eq!(String::from_utf8_lossy(&output.stdout), "420\n");
    }
    let read = |file: &str| {
        run(place, "gcov", &["-b", "-c", file]);
        let text = fs::read_to_string(place.join(format!("{file}.gcov")));
        text.expect("gcov's words")
    };
    ["main.c", "digits.c"].map(read).to_vec()
}

#[test]
fn coverage_of_a_run_is_that_of_the_native_run() {
    let walled = counts(true, &["--coverage"], 2);
    assert_eq!(walled, counts(false, &["--coverage"], 2));
    let line = |text: &str| {
        let line = walled.iter().flat_map(|file| file.lines());
        let mut line = line.filter(|line| line.contains(text));
        line.next().expect(text).to_owned()
    };
    // Two runs of 37 rounds.
    assert!(line("sum += by(at)").trim().starts_with("26"), "{walled:?}");
    assert!(line("puts(words[0])").contains("#####"), "{walled:?}");
}

#[test]
fn a_profile_of_a_domain_is_used_by_the_next_build() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = directory.path();
    sources(place);
    let mullion = env!("CARGO_BIN_EXE_mullion");
    let grant = format!("{0}::{0}", place.display());
    let build = |options: &[&str]| {
        let line = ["cc", "-O2", "main.c", "digits.c", "-o", "program.mx"];
        run(place, mullion, &[&line, options].concat());
        run(place, mullion, &["run", "--dir", &grant, "program.mx"]);
    };
    build(&["-fprofile-generate"]);
    let kept = fs::read_dir(place).expect("the directory");
    let kept = kept.map(|entry| entry.expect("an entry").path());
    let data = kept.filter(|path| path.extension().is_some_and(|name| name == "gcda"));
    assert_eq!(data.count(), 2);
    // A profile that is not there, or of other code, is an error then.
    build(&[
        "-fprofile-use",
        "-Werror=missing-profile",
        "-Werror=coverage-mismatch",
    ]);
}

#[test]
fn without_a_directory_the_program_says_that_it_has_no_place_for_counts() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = directory.path();
    sources(place);
    let mullion = env!("CARGO_BIN_EXE_mullion");
    let line = ["cc", "--coverage", "main.c", "digits.c", "-o", "program.mx"];
    run(place, mullion, &line);
    let output = run(place, mullion, &["run", "program.mx"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "420\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("profiling:") && said.contains(".gcda"),
        "{said}"
    );
}

/// Arguments in vector registers and in `al` go through `mcount`, which is called before they are used.
const CALLS: &str = r#"
#include <stdarg.h>
#include <stdio.h>
__attribute__((noinline)) double add(double x, double y, float z, int n) { return n ? x + y + z : add(z, x, y, 1); }
__attribute__((noinline)) double sum(int count, ...) {
    va_list list;
    va_start(list, count);
    double all = 0;
    for (int at = 0; at < count; at++)
        all = add(all, va_arg(list, double), 1, at & 1);
    va_end(list);
    return all;
}
struct large { long words[9]; };
__attribute__((noinline)) struct large large(struct large x, long y) { x.words[8] += y; return x; }
int main(void) {
    struct large x = {{1, 2, 3, 4, 5, 6, 7, 8, 9}};
    for (int at = 0; at < 70; at++) {
        x = large(x, x.words[8] + at);
    }
    printf("%.3f %ld\n", sum(5, 1.5, 2.5, 3.5, 4.5, 5.5), x.words[8]);
    return 0;
}
"#;

/// What gprof says of a run: names with numbers of calls.
fn calls(walled: bool, level: &str) -> (String, Vec<(String, u64)>) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = directory.path();
    fs::write(place.join("calls.c"), CALLS).expect("written");
    let mullion = env!("CARGO_BIN_EXE_mullion");
    let line = ["-pg", level, "calls.c", "-o", "program.mx"];
    let output = match walled {
        true => {
            run(place, mullion, &[&["cc"], &line[..]].concat());
            run(place, mullion, &["run", "--dir", ".::/", "program.mx"])
        }
        false => {
            run(place, "gcc", &line);
            run(place, "./program.mx", &[])
        }
    };
    let said = run(place, "gprof", &["-b", "-p", "program.mx", "gmon.out"]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let numbers = words.get(3)?.parse().ok()?;
        let name = words.last()?.split('.').next()?;
        Some((name.to_owned(), numbers))
    };
    let mut rows: Vec<(String, u64)> = said.lines().filter_map(row).collect();
    // Natively the caller of main lies outside the program, and its call is not counted.
    rows.retain(|(name, _)| name != "main");
    rows.sort();
    (String::from_utf8_lossy(&output.stdout).into_owned(), rows)
}

#[test]
fn gprof_counts_the_calls_of_a_run_as_natively() {
    for level in ["-O0", "-O2"] {
        let (said, rows) = calls(true, level);
        let (native, expected) = calls(false, level);
        assert_eq!((&said, &rows), (&native, &expected), "{level}");
        assert!(rows.contains(&("large".to_owned(), 70)), "{rows:?}");
        assert!(rows.contains(&("sum".to_owned(), 1)), "{rows:?}");
        // More than 32 bits of an argument.
        assert!(said.ends_with(" -71\n"), "{said}");
    }
}

#[test]
fn calls_without_a_directory_are_told_and_lost() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = directory.path();
    fs::write(place.join("calls.c"), CALLS).expect("written");
    let mullion = env!("CARGO_BIN_EXE_mullion");
    run(
        place,
        mullion,
        &["cc", "-pg", "calls.c", "-o", "program.mx"],
    );
    let output = run(place, mullion, &["run", "program.mx"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("profile: gmon.out: "), "{said}");
}
