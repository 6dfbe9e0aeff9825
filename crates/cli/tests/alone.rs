//! Types that want the language and a process: `mullion run --process` is the host that loads them.

#[allow(dead_code, reason = "others use more of it")]
mod office;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use office::Office;

const ENVIRONMENT: &str = "#include <stdio.h>\n#include <unistd.h>\n\
     int seen(void) { puts(\"here\"); fflush(stdout); return getchar(); }\n\
     void *ask(void) { return fopen(\"/etc/passwd\", \"r\"); }\nint main(void);\n";

/// With an image of a type that wants a process.
fn compiled(program: &str) -> Office {
    let office = Office::with(&["root"], &["own.toml".to_owned()]);
    office.file("env.c", ENVIRONMENT);
    let digest = mullion_trust::Sha256Digest::of(ENVIRONMENT.as_bytes());
    let text = format!(
        "version = 1\nid = \"own\"\nlanguage = \"c\"\nprotection = \"read-write-call\"\nmechanism = [\"process\"]\n\
             imports = [\"__mullion_system\"]\n[elastic]\nwall = \"language-and-process\"\nentries = [\"main\"]\n\
             [elastic.environment]\nfile = \"env.c\"\nsha256 = \"{digest}\"\npublic = [\"seen\", \"ask\"]\n"
    );
    office.file("own.toml", &text);
    office.file("a.c", program);
    let (good, said) = office.compile_as_root("own.toml", "a.c");
    assert!(good, "{said}");
    office
}

#[test]
fn it_is_loaded_in_a_process_of_its_own_and_nowhere_else() {
    let office = compiled("int main(void) { return ask() ? 1 : seen() == 'y' ? 42 : 2; }");
    let record = office.record();
    assert_eq!(record["elastic"]["wall"], "language-and-process");

    let refused = office.run(&["run", "--as", "root", "x.mx"], None);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(126), "{said}");
    assert!(
        said.contains("does not allow the mechanism window"),
        "{said}"
    );
    assert!(said.contains("mullion run --process"), "{said}");

    let mut host = office.command(&["run", "--process", "--as", "root", "x.mx"]);
    host.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut host = host.spawn().expect("it starts");
    let mut line = String::new();
    let mut output = BufReader::new(host.stdout.take().expect("a pipe"));
    output.read_line(&mut line).expect("a line");
    assert_eq!(line, "here\n");
    // While the module runs, its process has no power left, and it is another than the host's.
    let own = host.id();
    let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).expect("/proc");
    let inside: u32 = children.trim().parse().expect("one process");
    let status = fs::read_to_string(format!("/proc/{inside}/status")).expect("it is there");
    for (field, expected) in [
        ("Seccomp:", "2"),
        ("NoNewPrivs:", "1"),
        ("CapEff:", "0000000000000000"),
    ] {
        let found = status.lines().find_map(|line| line.strip_prefix(field));
        assert_eq!(found.map(str::trim), Some(expected), "{field}");
    }
    host.stdin
        .take()
        .expect("a pipe")
        .write_all(b"y")
        .expect("it reads");
    assert_eq!(host.wait().expect("it ends").code(), Some(42));
}

#[test]
fn what_goes_wrong_inside_is_told_by_the_host() {
    let office = compiled("int main(void) { volatile int *p = (int *)64; *p = 1; return 0; }");
    let output = office.run(&["run", "--process", "--as", "root", "x.mx"], None);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("a.c:1"), "{said}");

    let office = compiled("int main(void) { for (;;) ; }");
    let words = [
        "run",
        "--process",
        "--max-processor-time",
        "20ms",
        "--as",
        "root",
        "x.mx",
    ];
    assert_eq!(office.run(&words, None).status.code(), Some(124));

    // Its process is killed: the host goes on, and says so.
    let office = compiled("int main(void) { return seen(); }");
    let mut host = office.command(&["run", "--process", "--as", "root", "x.mx"]);
    host.stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut host = host.spawn().expect("it starts");
    let mut line = String::new();
    let mut output = BufReader::new(host.stdout.take().expect("a pipe"));
    output.read_line(&mut line).expect("a line");
    let own = host.id();
    let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).expect("/proc");
    let inside = children.trim().parse().expect("one process");
    let inside = rustix::process::Pid::from_raw(inside).expect("a number");
    rustix::process::kill_process(inside, rustix::process::Signal::KILL).expect("it is ours");
    let ended = host.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(125), "{said}");
    assert!(said.contains("its process was ended by signal 9"), "{said}");
}

#[test]
fn any_program_can_have_one() {
    let place = tempfile::tempdir().expect("a directory");
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mullion"));
        command
            .args(words)
            .current_dir(place.path())
            .env_remove("MULLION_POLICY");
        command.stdin(Stdio::null()).output().expect("it starts")
    };
    let text = "#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\n#include <unistd.h>\n\
                int main(void) { char *p = malloc(1 << 22); p[1 << 21] = isatty(0); struct timespec t = {0, 1000};\n\
                nanosleep(&t, 0); clock_gettime(CLOCK_REALTIME, &t); printf(\"%d\\n\", t.tv_sec > 0);\n\
                free(p); return fopen(\"/new\", \"w\") ? 1 : 7; }\n";
    fs::write(place.path().join("a.c"), text).expect("room");
    let output = run(&["cc", "a.c", "-o", "a.mx"]);
    assert!(output.status.success(), "{output:?}");
    let output = run(&["run", "--process", "--clock", "a.mx"]);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert_eq!(output.stdout, b"1\n");
}
