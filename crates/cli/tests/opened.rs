//! `dlopen` of libraries that became parts of the image when it was linked, and objects that `mullion cc` did not make.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const MULLION: &str = env!("CARGO_BIN_EXE_mullion");

/// Opens what its words name, and calls it. What is opened stays, as it does in a domain.
const MAIN: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int host_value(int x) { return x + 100; }
int main(int count, char **words) {
    puts("main begins");
    for (int at = 1; at < count; at++) {
        void *library = dlopen(words[at], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!library) {
            const char *why = dlerror(), *more = dlerror();
            printf("%s: %s, then %s\n", words[at], why ? "refused" : "?", more ? "?" : "nothing");
            continue;
        }
        int (*run)(int) = (int (*)(int))dlsym(library, "run");
        int *number = dlsym(library, "number");
        int answer = run(7);
        printf("%s: %d, %d\n", words[at], answer, *number);
        printf("missing: %s\n", dlsym(library, "missing") ? "?" : dlerror() ? "refused" : "?");
        printf("inner: %s\n", dlsym(library, "inner") ? "?" : "hidden");
        void *again = dlopen(words[at], RTLD_NOW | RTLD_NOLOAD);
        printf("again: %d %d\n", again == library, dlclose(again));
    }
    printf("for all: %d\n", !!dlsym(RTLD_DEFAULT, "run"));
    void *self = dlopen(0, RTLD_NOW);
    int (*own)(int) = (int (*)(int))dlsym(self, "host_value");
    printf("own: %d\n", own ? own(1) : -1);
    return 0;
}
"#;

const ONE: &str = r#"
#include <stdio.h>
int host_value(int);
int number = 1;
__attribute__((visibility("hidden"))) int inner = 3;
static __attribute__((constructor)) void second(void) { number *= 10; puts("one, second"); }
static __attribute__((constructor(101))) void first(void) { number += 1; puts("one, first"); }
static __attribute__((destructor)) void end(void) { puts("one ends"); }
int run(int x) { number++; return host_value(x) + inner; }
"#;

/// The same names as in the other one, in C++, with an exception.
const TWO: &str = r#"
#include <cstdio>
#include <stdexcept>
#include <string>
extern "C" {
int host_value(int);
int number = 5;
int run(int x);
}
struct Loud {
    std::string name;
    Loud() : name("two") { std::puts("two begins"); }
    ~Loud() { std::puts("two ends"); }
};
static Loud loud;
int run(int x) {
    try {
        if (x > 3)
            throw std::runtime_error(loud.name);
    } catch (const std::exception &error) {
        number += std::string(error.what()).size();
    }
    return host_value(x) + 2;
}
"#;

/// Uses a name of the other plug-in's.
const THREE: &str = r#"
extern int shared_number;
int number = 7;
int run(int x) { return x + shared_number++; }
"#;
const SHARED: &str =
    "int shared_number = 40; int number = 8; int run(int x) { return shared_number += x; }";

fn output(command: &mut Command) -> Output {
    let output = command.output().expect("the command starts");
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The compilers of one side.
fn compiler(walled: bool, cxx: bool, place: &Path) -> Command {
    let mut command = match walled {
        true => Command::new(MULLION),
        false => Command::new(if cxx { "g++" } else { "gcc" }),
    };
    if walled {
        command.arg(if cxx { "c++" } else { "cc" });
    }
    command.current_dir(place);
    command
}

/// Builds two plug-ins and the program; what it says of them.
fn plugged(walled: bool, level: &str) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = directory.path();
    fs::create_dir(place.join("plugins")).expect("room");
    for (name, content) in [
        ("main.c", MAIN),
        ("plugins/one.c", ONE),
        ("plugins/two.cc", TWO),
        ("plugins/three.c", THREE),
        ("plugins/shared.c", SHARED),
    ] {
        fs::write(place.join(name), content).expect("written");
    }
    for name in ["one.c", "two.cc"] {
        let mut build = compiler(walled, name.ends_with("cc"), place);
        build.args([level, "-shared", "-fPIC"]);
        let (from, to) = (format!("plugins/{name}"), format!("plugins/{name}.so"));
        output(build.args([&from, "-o", &to]));
    }
    let mut build = compiler(walled, false, place);
    build.args([level, "main.c", "-rdynamic", "-o", "program.mx", "-ldl"]);
    if walled {
        build.arg("--mullion-dlopen=plugins");
    }
    output(&mut build);
    let mut run = match walled {
        true => Command::new(MULLION),
        false => Command::new("./program.mx"),
    };
    if walled {
        output(
            Command::new(MULLION)
                .args(["verify", "program.mx"])
                .current_dir(place),
        );
        run.args(["run", "program.mx"]);
    }
    run.args([
        "./plugins/one.c.so",
        "plugins/../plugins/two.cc.so",
        "none.so",
    ]);
    text(&output(run.current_dir(place)))
}

#[test]
fn a_library_that_was_linked_to_be_opened_is_opened_as_natively() {
    for level in ["-O0", "-O2"] {
        let expected = plugged(false, level);
        for part in [
            "one, first\none, second\n",
            "two begins",
            "none.so: refused",
            "own: 101",
        ] {
            assert!(expected.contains(part), "{part}: {expected}");
        }
        assert_eq!(plugged(true, level), expected, "{level}");
    }
}

#[test]
fn a_library_may_use_names_of_another_one_and_an_image_that_opens_nothing_has_none() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = directory.path();
    for (name, content) in [
        ("main.c", MAIN),
        ("three.c", THREE),
        ("shared.c", SHARED),
        (
            "hello.c",
            "#include <stdio.h>\nint main(void) { puts(\"hello\"); }\n",
        ),
    ] {
        fs::write(place.join(name), content).expect("written");
    }
    for name in ["three", "shared"] {
        let mut build = compiler(true, false, place);
        let (from, to) = (format!("{name}.c"), format!("lib{name}.so.1.2"));
        output(build.args(["-shared", "-fPIC", &from, "-o", &to]));
    }
    let build = |source: &str| {
        let mut build = compiler(true, false, place);
        build.args([source, "-o", &format!("{source}.mx")]);
        output(build.env("MULLION_DLOPEN", "libshared.so.1.2:libthree.so.1.2"));
    };
    build("main.c");
    build("hello.c");
    let mut run = Command::new(MULLION);
    // By other versions of the name, and from another place.
    run.args(["run", "main.c.mx", "libshared.so.1", "/usr/lib/libthree.so"]);
    let said = text(&output(run.current_dir(place)));
    for part in [
        "libshared.so.1: 47, 8\n",
        "/usr/lib/libthree.so: 54, 7\n",
        "own: -1",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let image = fs::read(place.join("hello.c.mx")).expect("an image");
    let name = b"__mullion_opened";
    assert!(!image.windows(name.len()).any(|part| part == name));
}

#[test]
fn what_is_not_in_the_image_is_not_found_and_the_way_out_is_said() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = directory.path();
    let source = "#include <dlfcn.h>\n#include <stdio.h>\n\
        int main(void) { printf(\"%d \", !!dlopen(\"libx.so\", RTLD_NOW)); puts(dlerror()); }\n";
    fs::write(place.join("main.c"), source).expect("written");
    fs::write(place.join("other.c"), "int other;\n").expect("written");
    output(compiler(true, false, place).args(["main.c", "-o", "main.mx"]));
    let said = text(&output(
        Command::new(MULLION)
            .args(["run", "main.mx"])
            .current_dir(place),
    ));
    assert!(
        said.starts_with("0 libx.so: ") && said.contains("--mullion-dlopen="),
        "{said}"
    );
    // A library of the system's is none.
    output(
        Command::new("gcc")
            .args(["-shared", "-fPIC", "other.c", "-o", "other.so"])
            .current_dir(place),
    );
    let mut build = compiler(true, false, place);
    let refused = build.args(["main.c", "--mullion-dlopen=other.so"]).output();
    let refused = refused.expect("the command starts");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success()
            && said.contains("other.so: no library that mullion cc -shared made"),
        "{said}"
    );
}

#[test]
fn code_that_was_not_rewritten_is_named_where_it_is_linked() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = directory.path();
    let store = "\t.globl store\nstore:\n\tmovl\t$1, (%rdi)\n\tret\n";
    for (name, content) in [
        (
            "main.c",
            "int store(int *); int main(void) { int x; store(&x); return x; }\n",
        ),
        ("store.s", store),
        ("simd.asm", "section .text\n"),
    ] {
        fs::write(place.join(name), content).expect("written");
    }
    output(
        Command::new("as")
            .args(["store.s", "-o", "foreign.o"])
            .current_dir(place),
    );
    output(
        Command::new("ar")
            .args(["rcs", "libforeign.a", "foreign.o"])
            .current_dir(place),
    );
    for (input, named) in [
        ("foreign.o", "foreign.o: "),
        ("-lforeign", "libforeign.a(foreign.o): "),
    ] {
        let mut build = compiler(true, false, place);
        let refused = build
            .args(["main.c", "-L.", input, "-o", "program.mx"])
            .output();
        let refused = refused.expect("the command starts");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        for part in [named, "code that mullion cc did not make", "--disable-asm"] {
            assert!(
                !refused.status.success() && said.contains(part),
                "{part}: {said}"
            );
        }
        assert!(!place.join("program.mx").exists());
    }
    // The same source, assembled here, is good.
    output(compiler(true, false, place).args(["main.c", "store.s", "-o", "program.mx"]));
    let ended = Command::new(MULLION)
        .args(["run", "program.mx"])
        .current_dir(place)
        .status();
    assert_eq!(ended.expect("it starts").code(), Some(1));

    let mut build = compiler(true, false, place);
    let refused = build
        .args(["main.c", "simd.asm"])
        .output()
        .expect("the command starts");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("simd.asm: a source of NASM's"),
        "{said}"
    );
}
