//! `mullion clang`: programs that clang reads and LLVM 23 makes code of run in a domain. Needs clang, and `llvm-tools`
//! of rustc 1.99.1; where they are not there, the test says so (`MULLION_REQUIRE_CLANG=1` makes that a failure).

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn mullion(place: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mullion"));
    command.args(words).current_dir(place);
    command.output().expect("it starts")
}

fn is_missing(output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    let missing = said.contains("install");
    if missing {
        assert!(
            std::env::var_os("MULLION_REQUIRE_CLANG").is_none(),
            "{said}"
        );
        eprintln!("not tested: mullion clang: {said}");
    }
    missing
}

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int weight(int kind);
static _Thread_local int calls;
static int compared(const void *a, const void *b) { calls++; return *(const int *)a - *(const int *)b; }
int main(int argc, char **argv)
{
	int numbers[64];
	for (int i = 0; i < 64; i++)
		numbers[i] = (i * 37) % 64;
	qsort(numbers, 64, sizeof *numbers, compared);
	long sum = 0;
	for (int i = 0; i < 64; i++)
		sum += (long)numbers[i] * i + weight(i % 9);
	double half = sum / 2.0;
	char *text = malloc(32);
	snprintf(text, 32, "%ld %.1f %d", sum, half, calls > 0);
	puts(text);
	free(text);
	return (int)strlen(argv[0]) < argc;
}
"#;

const OTHER: &str = "int weight(int kind) { switch (kind) { case 0: return 3; case 1: return 9; case 2: return 27; \
                     case 3: return 1; case 4: return 8; case 5: return 64; case 6: return 5; default: return kind; } }\n";

#[test]
fn a_program_by_clang_answers_as_one_by_gcc() {
    let place = tempfile::tempdir().expect("a directory");
    fs::write(place.path().join("a.c"), PROGRAM).expect("room");
    fs::create_dir(place.path().join("other")).expect("room");
    fs::write(place.path().join("other/a.c"), OTHER).expect("room");
    for level in ["-O0", "-O2"] {
        let words = ["clang", level, "-g", "a.c", "other/a.c", "-o", "clang.mx"];
        let output = mullion(place.path(), &words);
        if is_missing(&output) {
            return;
        }
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let output = mullion(
            place.path(),
            &["cc", level, "a.c", "other/a.c", "-o", "gcc.mx"],
        );
        assert!(output.status.success());
        let [clang, gcc] =
            ["clang.mx", "gcc.mx"].map(|image| mullion(place.path(), &["run", image]));
        assert!(
            clang.status.success(),
            "{}",
            String::from_utf8_lossy(&clang.stderr)
        );
        assert_eq!(
            String::from_utf8_lossy(&clang.stdout),
            String::from_utf8_lossy(&gcc.stdout)
        );
        let verified = mullion(place.path(), &["verify", "clang.mx"]);
        assert!(verified.status.success());
    }
}

const CXX: &str = r#"
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
struct Shape { virtual ~Shape() { std::puts("gone"); } virtual double area() const = 0; };
struct Square : Shape { double side; explicit Square(double s) : side(s) { if (s < 0) throw std::domain_error("negative"); } double area() const override { return side * side; } };
static int deep(int n) { std::string held(40, 'x'); if (n == 0) throw 17; return deep(n - 1) + (int)held.size(); }
int main()
{
	std::map<std::string, int> table{{"two", 2}, {"one", 1}};
	for (auto &entry : table)
		std::printf("%s %d\n", entry.first.c_str(), entry.second);
	std::vector<std::unique_ptr<Shape>> shapes;
	for (double side : {1.5, 2.0, -1.0}) {
		try {
			shapes.push_back(std::make_unique<Square>(side));
		} catch (const std::exception &wrong) {
			std::printf("caught %s\n", wrong.what());
		}
	}
	for (auto &shape : shapes)
		std::printf("%.2f %d\n", shape->area(), dynamic_cast<Square *>(shape.get()) != nullptr);
	try { deep(5); } catch (int number) { std::printf("caught %d\n", number); }
	try { try { std::vector<int>().at(3); } catch (...) { throw; } } catch (std::out_of_range &) { std::puts("out of range"); }
}
"#;

#[test]
fn a_program_in_cxx_by_clang_throws_and_catches() {
    let place = tempfile::tempdir().expect("a directory");
    fs::write(place.path().join("a.cc"), CXX).expect("room");
    for level in ["-O0", "-O2"] {
        let output = mullion(
            place.path(),
            &["clang++", level, "-g", "a.cc", "-o", "clang.mx"],
        );
        if is_missing(&output) {
            return;
        }
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let output = mullion(place.path(), &["c++", level, "a.cc", "-o", "gcc.mx"]);
        assert!(output.status.success());
        let [clang, gcc] =
            ["clang.mx", "gcc.mx"].map(|image| mullion(place.path(), &["run", image]));
        let said = String::from_utf8_lossy(&clang.stderr);
        assert!(clang.status.success(), "{level}: {said}");
        let printed = String::from_utf8_lossy(&clang.stdout);
        assert_eq!(printed, String::from_utf8_lossy(&gcc.stdout), "{level}");
        assert!(printed.ends_with("out of range\ngone\ngone\n"), "{printed}");
    }
}

#[test]
fn objects_and_errors_are_as_clangs_own() {
    let place = tempfile::tempdir().expect("a directory");
    fs::write(place.path().join("a.c"), OTHER).expect("room");
    fs::write(place.path().join("b.c"), "int f(void) { return x; }\n").expect("room");
    let output = mullion(place.path(), &["clang", "-c", "-O2", "a.c"]);
    if is_missing(&output) {
        return;
    }
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(place.path().join("a.o").is_file());
    let output = mullion(place.path(), &["clang", "-c", "b.c"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1) && said.contains("undeclared identifier"),
        "{said}"
    );
    assert!(!place.path().join("b.o").exists());
}

#[test]
fn what_is_missing_is_said_with_how_to_get_it() {
    let place = tempfile::tempdir().expect("a directory");
    fs::write(place.path().join("a.c"), OTHER).expect("room");
    let mut command = Command::new(env!("CARGO_BIN_EXE_mullion"));
    command
        .args(["clang", "-c", "a.c"])
        .current_dir(place.path());
    let output = command
        .env("MULLION_RUST", place.path())
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1) && said.contains("rustup"),
        "{said}"
    );
}
