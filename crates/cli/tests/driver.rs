//! `mullion cc` and `mullion c++` as build systems use them: forms of input and
//! output, exit statuses, what is refused and how.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const HELLO: &str = "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n";

/// Runs the command in a directory.
fn mullion(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mullion"));
    command
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null());
    command
        .env_remove("MULLION_PROTECTION")
        .env_remove("MULLION_BASE")
        .output()
        .expect("the command starts")
}

/// The same, which must succeed, in silence but for a C library that is built first.
fn succeeds(directory: &Path, arguments: &[&str]) -> Output {
    let output = mullion(directory, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    let mut lines = said.lines();
    let said: String = lines
        .by_ref()
        .filter(|line| !line.starts_with("mullion: building the C library"))
        .collect();
    assert!(
        output.status.success() && said.is_empty(),
        "{arguments:?}: {}\n{said}",
        output.status
    );
    output
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn verifies(image: &Path) {
    let output = mullion(
        Path::new("/"),
        &["verify", image.to_str().expect("plain names")],
    );
    assert!(
        output.status.success(),
        "{}: {}",
        image.display(),
        String::from_utf8_lossy(&output.stdout)
    );
}

fn directory_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, text) in files {
        fs::write(directory.path().join(name), text).expect("a file is written");
    }
    directory
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("the directory is there");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

#[test]
fn an_image_says_how_much_the_rewriter_added() {
    let other = "int twice(int x) { return 2 * x; }\n";
    let directory = directory_with(&[("hello.c", HELLO), ("other.c", other)]);
    let growth = |arguments: &[&str]| {
        succeeds(directory.path(), arguments);
        let inspected = succeeds(directory.path(), &["inspect", "--json", "x.mx"]);
        let description: serde_json::Value =
            serde_json::from_slice(&inspected.stdout).expect("JSON");
        let growth = &description["growth"];
        let bytes = |name: &str| growth[name].as_u64().expect("a number");
        let (before, after) = (bytes("bytes_before"), bytes("bytes_after"));
        let ratio = growth["ratio"].as_f64().expect("a number");
        assert!((ratio - after as f64 / before as f64).abs() < 1e-6);
        // All code is counted: what the linker adds is alignment.
        let all = description["code"]["bytes"].as_u64().expect("a number");
        assert!(
            after <= all && all - after < 0x1000 + all / 10,
            "{growth} of {all}"
        );
        (before, after)
    };
    let (before, after) = growth(&["cc", "-O2", "hello.c", "-o", "x.mx"]);
    assert!(before > 1000 && before < after && after < 2 * before);
    // Of two objects it is the sum.
    let (more, _) = growth(&["cc", "-O2", "-pipe", "hello.c", "other.c", "-o", "x.mx"]);
    assert!(more > before && more < before + 64, "{before} {more}");
}

#[test]
fn questions_are_answered_as_gcc_does() {
    let here = Path::new("/");
    for question in ["--version", "-dumpmachine", "-dumpversion"] {
        let ours = succeeds(here, &["cc", question]).stdout;
        // As `mullion cc` chooses: gcc-12 where there is one beside another gcc.
        let theirs = ["gcc-12", "gcc"].into_iter().find_map(|gcc| {
            let output = Command::new(gcc).arg(question).output().ok()?;
            output.status.success().then_some(output.stdout)
        });
        assert_eq!(Some(ours), theirs, "{question}");
    }
    assert!(mullion(here, &["cc", "-v"]).status.success());
    assert!(
        String::from_utf8_lossy(&succeeds(here, &["cc", "--mullion-help"]).stdout)
            .contains("--mullion-kind")
    );
    let nothing = mullion(here, &["cc"]);
    assert!(!nothing.status.success() && said(&nothing).contains("no input files"));
}

#[test]
fn a_program_links_in_one_step_and_in_several() {
    let directory = directory_with(&[
        (
            "main.c",
            "#include \"part.h\"\n#include <math.h>\n#include <pthread.h>\nint main(void) { return part(3) + (int)sqrt(PLUS); }\n",
        ),
        (
            "part.c",
            "#include \"part.h\"\nint part(int n) { return n * 2; }\n",
        ),
        ("other.c", "int other(void) { return 1; }\n"),
        (
            "sub.S",
            "#define F assembled\n.globl F\n.type F, @function\nF:\n\tleal 1(%rdi), %eax\n\tret\n.section .note.GNU-stack,\"\",@progbits\n",
        ),
        ("include.h", "int part(int);\n"),
        (
            "response",
            "-O2 -DPLUS=16 'main.c'\npart.o -o  \"from response.mx\" -lm\n",
        ),
    ]);
    let here = directory.path();
    fs::create_dir(here.join("inc")).expect("a directory");
    fs::rename(here.join("include.h"), here.join("inc/part.h")).expect("a rename");

    succeeds(
        here,
        &[
            "cc",
            "-O2",
            "-Iinc",
            "-DPLUS=16",
            "main.c",
            "part.c",
            "sub.S",
            "-o",
            "one.mx",
            "-lm",
            "-pthread",
        ],
    );
    verifies(&here.join("one.mx"));

    succeeds(
        here,
        &[
            "cc", "-c", "-g", "-O1", "-pipe", "-Iinc", "part.c", "other.c",
        ],
    );
    succeeds(
        here,
        &[
            "cc", "-c", "-Iinc", "-DPLUS=1", "-MD", "-MF", "main.d", "-MT", "target", "main.c",
            "-o", "main.o",
        ],
    );
    let dependencies = fs::read_to_string(here.join("main.d")).expect("a dependency file");
    assert!(
        dependencies.starts_with("target:") && dependencies.contains("inc/part.h"),
        "{dependencies}"
    );
    assert!(
        Command::new("ar")
            .args(["rcs", "libpart.a", "part.o", "other.o"])
            .current_dir(here)
            .status()
            .expect("ar")
            .success()
    );
    succeeds(
        here,
        &[
            "cc",
            "main.o",
            "-L.",
            "-lpart",
            "-lm",
            "-Wl,--gc-sections",
            "-o",
            "two",
        ],
    );
    verifies(&here.join("two"));

    succeeds(here, &["cc", "-Iinc", "@response"]);
    verifies(&here.join("from response.mx"));

    succeeds(
        here,
        &["cc", "-S", "-O2", "-Iinc", "part.c", "-o", "part.s"],
    );
    succeeds(here, &["cc", "-c", "part.s", "-o", "again.o"]);
    succeeds(here, &["cc", "main.o", "again.o", "-lm"]);
    verifies(&here.join("a.out"));
    succeeds(here, &["cc", "-r", "main.o", "again.o", "-o", "both.o"]);
    succeeds(
        here,
        &[
            "cc",
            "-fPIC",
            "-fstack-protector-strong",
            "-flto",
            "-static",
            "both.o",
            "-lm",
            "-o",
            "static.mx",
        ],
    );
    verifies(&here.join("static.mx"));
}

#[test]
fn standard_input_is_an_input() {
    let directory = directory_with(&[]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_mullion"));
    command
        .args(["cc", "-x", "c", "-", "-o", "piped.mx"])
        .current_dir(directory.path())
        .stdin(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), HELLO.as_bytes())
        .expect("it reads");
    assert!(child.wait().expect("it ends").success());
    verifies(&directory.path().join("piped.mx"));
}

#[test]
fn an_extension_has_its_exports_and_imports() {
    let text = "#include <mullion/ext.h>\n#include <stdlib.h>\n\
        MULLION_IMPORT(long, host_log, (const char *, unsigned long));\n\
        MULLION_IMPORT(void, host_unused, (void));\n\
        MULLION_EXPORT(long, twice, (long n)) { char *p = malloc(n); long r = host_log(p, n) * 2; free(p); return r; }\n\
        int also(int a) { return a; }\n";
    let directory = directory_with(&[("ext.c", text)]);
    let here = directory.path();
    succeeds(
        here,
        &[
            "cc",
            "-O2",
            "--mullion-kind=extension",
            "--mullion-export=also",
            "ext.c",
            "-o",
            "ext.mx",
        ],
    );
    verifies(&here.join("ext.mx"));
    let told = String::from_utf8(succeeds(here, &["inspect", "ext.mx"]).stdout).expect("text");
    for word in [
        "extension",
        "twice",
        "also",
        "host_log",
        "host_unused",
        "__mullion_system",
    ] {
        assert!(told.contains(word), "{word} in\n{told}");
    }
}

#[test]
fn failures_leave_nothing_behind_and_say_where() {
    let directory = directory_with(&[
        ("syntax.c", "int main(void) {\n  return nothing;\n}\n"),
        (
            "asm.c",
            "int main(void) {\n  int r;\n  __asm__(\"rdtsc\" : \"=a\"(r) : : \"rdx\");\n  __asm__(\"syscall\");\n  return r;\n}\n",
        ),
        ("raw.S", "\n\n.globl f\nf:\n\tint $0x80\n\tret\n"),
        (
            "link.c",
            "int missing(void);\nint main(void) { return missing(); }\n",
        ),
    ]);
    let here = directory.path();
    let before = names(here);
    for (arguments, message) in [
        (vec!["cc", "-c", "syntax.c"], "syntax.c:2:"),
        (vec!["cc", "-c", "absent.c"], "absent.c"),
        (vec!["cc", "asm.c", "-o", "asm.mx"], "asm.c:4: error:"),
        (vec!["cc", "-c", "raw.S"], "raw.S:5: error:"),
        (
            vec!["cc", "link.c", "-o", "link.mx"],
            "undefined reference to `missing'",
        ),
        (vec!["cc", "-m32", "link.c"], "-m32"),
        (
            vec!["cc", "-c", "link.c", "-o", "no/such/directory/x.o"],
            "no/such/directory",
        ),
        (
            vec!["cc", "--mullion-protection=all", "link.c"],
            "read-write-call",
        ),
    ] {
        let output = mullion(here, &arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(
            said(&output).contains(message),
            "{arguments:?}:\n{}",
            said(&output)
        );
        assert_eq!(names(here), before, "{arguments:?}");
    }
}

/// A configure script asks by a program that is not run, and in which gcc leaves nothing of AVX-512.
#[test]
fn instructions_that_a_domain_lacks_are_missed_where_a_program_asks_for_them() {
    let asks = |what: &str| {
        format!(
            "#pragma GCC target(\"{what}\")\n#include <immintrin.h>\nint main(void) {{ return 0; }}\n"
        )
    };
    let (wide, narrow) = (asks("avx512f"), asks("avx2"));
    let directory = directory_with(&[("wide.c", &wide), ("narrow.c", &narrow)]);
    let output = mullion(directory.path(), &["cc", "-c", "wide.c"]);
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    assert!(said.contains("a domain has no AVX-512"), "{said}");
    succeeds(directory.path(), &["cc", "-c", "narrow.c"]);
}

#[test]
fn a_full_disk_is_an_error() {
    let directory = directory_with(&[("hello.c", HELLO)]);
    let output = mullion(
        directory.path(),
        &["cc", "-c", "hello.c", "-o", "/dev/full"],
    );
    assert!(!output.status.success());
    assert!(fs::metadata("/dev/full").is_ok_and(|metadata| !metadata.is_file()));
}

#[test]
fn nothing_half_written_is_left_where_room_ends() {
    let directory = directory_with(&[("hello.c", HELLO)]);
    // Files may have 8 KiB: an object has room, an image has not.
    let limited = |arguments: &str| {
        Command::new("bash")
            .args(["-c", &format!("ulimit -f 8; exec \"$0\" {arguments}")])
            .arg(env!("CARGO_BIN_EXE_mullion"))
            .current_dir(directory.path())
            .output()
            .expect("a shell starts")
    };
    assert!(limited("cc -c hello.c").status.success());
    let output = limited("cc hello.c -o hello.mx");
    assert!(!output.status.success() && !said(&output).is_empty());
    assert_eq!(names(directory.path()), ["hello.c", "hello.o"]);
}

#[test]
fn protections_are_what_was_asked_for() {
    let directory = directory_with(&[("hello.c", HELLO)]);
    let here = directory.path();
    for protection in ["write-call", "read-write-call", "trap"] {
        succeeds(
            here,
            &[
                "cc",
                "-O2",
                &format!("--mullion-protection={protection}"),
                "hello.c",
                "-o",
                "hello.mx",
            ],
        );
        let told =
            String::from_utf8(succeeds(here, &["inspect", "hello.mx"]).stdout).expect("text");
        assert!(told.contains(protection), "{told}");
    }
}

#[test]
fn without_the_segment_nothing_that_is_linked_uses_it() {
    let program = "#include <cstdio>\n#include <map>\n#include <stdexcept>\n#include <string>\n\
        static thread_local int calls;\n\
        int main(int count, char **) { std::map<std::string, double> all;\n\
        for (int i = 0; i < 40; i++) { calls++; all[std::to_string(i * count)] += i / 3.0; }\n\
        try { all.at(\"none\"); } catch (const std::out_of_range &) { calls++; }\n\
        std::printf(\"%d %.3f %s\\n\", calls, all[\"9\"], all.rbegin()->first.c_str()); }\n";
    let extension = "#include <mullion/ext.h>\n#include <stdlib.h>\n\
        MULLION_EXPORT(int, first, (const char *text)) { return atoi(text); }\n";
    let object = "int other(const int *p, int i) { return p[i]; }\n";
    let directory = directory_with(&[("p.cc", program), ("x.c", extension), ("other.c", object)]);
    let here = directory.path();
    let described = |image: &str| {
        let output = succeeds(here, &["inspect", image]);
        String::from_utf8(output.stdout).expect("text")
    };
    let option = "--mullion-base=register";
    for protection in ["write-call", "read-write-call", "trap"] {
        let protection = format!("--mullion-protection={protection}");
        let asked = [option, &protection, "-O2"];
        succeeds(
            here,
            &[&["c++"], &asked[..], &["p.cc", "-o", "p.mx"]].concat(),
        );
        verifies(&here.join("p.mx"));
        let told = described("p.mx");
        assert!(told.contains("base in a register"), "{told}");
        assert!(!told.contains("accesses %gs:"), "{told}");
        assert_eq!(succeeds(here, &["run", "p.mx"]).stdout, b"41 3.000 9\n");
    }
    let kind = "--mullion-kind=extension";
    succeeds(here, &["cc", option, kind, "x.c", "-o", "x.mx"]);
    assert!(described("x.mx").contains("base in a register"));
    // One object of the other kind is enough for the whole image, and is named as the reason.
    succeeds(here, &["cc", "-c", "-O2", "other.c"]);
    let output = mullion(here, &["cc", option, kind, "x.c", "other.o", "-o", "x.mx"]);
    assert!(output.status.success());
    assert!(
        said(&output).contains("x.mx: 1 accesses go through %gs"),
        "{}",
        said(&output)
    );
    assert!(described("x.mx").contains("base in %gs, too"));
}

#[test]
fn a_program_starts_directly_with_what_it_was_granted() {
    // What autoconf tries first: run it, and write a file.
    let text = "#include <stdio.h>\nint main(int count, char **words) {\n\
        FILE *f = fopen(\"conftest.out\", \"w\");\n\
        if (!f) return 9;\n\
        fprintf(f, \"%s %d %s\", words[0], count, words[1]);\n\
        return fclose(f) != 0;\n}\n";
    let directory = directory_with(&[("conftest.c", text)]);
    let here = directory.path();
    succeeds(here, &["cc", "conftest.c", "-o", "conftest"]);
    let start = |options: &str| {
        let mut command = Command::new(here.join("conftest"));
        command
            .arg0("-called")
            .arg("a b")
            .current_dir(here)
            .env("MULLION_RUN", options);
        command.status().expect("the kernel starts it").code()
    };
    assert_eq!(start(""), Some(9));
    assert!(!here.join("conftest.out").exists());
    assert_eq!(start("--dir .::/"), Some(0));
    let written = fs::read_to_string(here.join("conftest.out")).expect("the file");
    assert_eq!(written, "-called 2 a b");
}
