//! `mullion cc --type T --key K` builds and signs in one step.

use crate::{TYPE, World, text};
use data_encoding::BASE64;
use serde_json::Value;

/// What a record says, its signature not looked at.
fn statement(world: &World, record: &str) -> Value {
    let envelope: Value = serde_json::from_str(&world.read(record)).expect("JSON");
    let payload = envelope["payload"].as_str().expect("a payload");
    let payload = BASE64.decode(payload.as_bytes()).expect("base64");
    serde_json::from_slice(&payload).expect("JSON")
}

fn digest(world: &World, file: &str) -> String {
    let bytes = std::fs::read(world.path(file)).expect("a file");
    mullion_trust::Sha256Digest::of(&bytes).to_string()
}

#[test]
fn one_step_builds_signs_and_says_with_what() {
    let world = World::new();
    world.grant(&[]);
    world.write("hello.h", "#define WORDS \"hello\"\n");
    world.write(
        "hello.c",
        "#include <stdio.h>\n#include \"hello.h\"\nint main(void) { puts(WORDS); return 0; }\n",
    );
    world.write("other file.c", "int other;\n");
    let line = ["cc", "-O2", "-DX=1", "--type", "tool.toml", "--key", "cc"];
    let line = [&line[..], &["hello.c", "other file.c", "-o", "uses.mx"]].concat();
    world.succeed(&line);
    let output = world.run(&[]);
    assert_eq!(text(&output.stdout), "hello\n", "{}", text(&output.stderr));

    let statement = statement(&world, "uses.mx.record");
    let said = &statement["predicate"];
    assert_eq!(
        statement["subject"][0]["digest"]["sha256"],
        digest(&world, "uses.mx")
    );
    assert_eq!(said["protection"], "read-write-call");
    assert_eq!(said["imports"], serde_json::json!(["__mullion_system"]));
    let sources = said["sources"].as_object().expect("sources");
    let names: Vec<_> = sources.keys().map(String::as_str).collect();
    assert_eq!(names, ["hello.c", "hello.h", "other file.c"]);
    for (name, hash) in sources {
        assert_eq!(hash, &digest(&world, name), "{name}");
    }
    let flags: Vec<_> = said["flags"].as_array().expect("flags").iter().collect();
    assert!(
        flags.contains(&&"-O2".into()) && flags.contains(&&"-DX=1".into()),
        "{flags:?}"
    );
    for tool in ["compiler", "assembler", "linker", "rewriter", "sysroot"] {
        let version = said["tools"][tool].as_str().unwrap_or_default();
        assert!(
            version.bytes().any(|byte| byte.is_ascii_digit()),
            "{tool}: {version:?}"
        );
    }
}

#[test]
fn a_type_may_be_named_by_its_identifier_in_the_policy() {
    let world = World::new();
    world.grant(&[]);
    let signed = |name: &str| {
        let mut sign = world.command(&["sign", "uses.mx", "--type", name, "--key", "cc"]);
        sign.env("MULLION_POLICY", world.path("policy.toml"));
        sign.output().expect("started")
    };
    assert!(signed("tool").status.success());
    assert_eq!(world.run(&["hello"]).status.code(), Some(0));
    let said = text(&signed("tol").stderr);
    assert!(
        said.contains("tol is neither a file nor a type of the policy"),
        "{said}"
    );
}

#[test]
fn the_types_protection_is_the_default_and_less_is_refused() {
    let world = World::of_type(&TYPE.replace("read-write-call", "trap"), "");
    world.write("p.c", "int main(void) { return 0; }\n");
    let line = [
        "cc",
        "--type",
        "tool.toml",
        "--key",
        "cc",
        "p.c",
        "-o",
        "p.mx",
    ];
    world.succeed(&line);
    assert_eq!(
        statement(&world, "p.mx.record")["predicate"]["protection"],
        "trap"
    );
    let less = [&line[..], &["--mullion-protection=write-call"]].concat();
    let output = world.mullion(&less);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("demands the protection trap"));
}

#[test]
fn what_a_loader_would_refuse_is_not_signed_and_old_records_go() {
    let world = World::of_type(&TYPE.replace("__mullion_system", "now"), "");
    world.write("p.c", "int main(void) { return 0; }\n");
    world.write("p.mx.record", "an old one");
    let line = ["cc", "p.c", "-o", "p.mx", "--type", "tool.toml"];
    let output = world.mullion(&[&line[..], &["--key", "cc"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("not signed: it imports `__mullion_system`"),
        "{said}"
    );
    assert!(!world.path("p.mx.record").exists());
    // Before anything is built: no key, no type, a half of the two, the wrong language.
    std::fs::remove_file(world.path("p.mx")).expect("removed");
    for (more, reason) in [
        (&["--key", "nobody"][..], "there is no key `nobody`"),
        (&[], "give both"),
        (&["--key", "cc", "-x", "c++"], "is of C, and this is C++"),
    ] {
        let output = world.mullion(&[&line[..], more].concat());
        assert_eq!(output.status.code(), Some(1), "{more:?}");
        assert!(
            text(&output.stderr).contains(reason),
            "{}",
            text(&output.stderr)
        );
        assert!(!world.path("p.mx").exists(), "{more:?}");
    }
}
