//! Keys, grants, files and the log, as their users meet them: what is said, and the exit status.

use crate::{TYPE, World, text};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

/// Fails with status 1 and these words.
#[track_caller]
fn fails(world: &World, arguments: &[&str], words: &[&str]) {
    let output = world.mullion(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
    assert!(said.starts_with("mullion: "), "{said}");
    for word in words {
        assert!(said.contains(word), "{word:?} is missing:\n{said}");
    }
}

/// A command on a terminal, where these answers are typed: the status, and what was shown.
fn typed(world: &World, answers: &[&str], arguments: &[&str]) -> (Option<i32>, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/admission/terminal.py");
    let mut python = Command::new("python3");
    python
        .arg(script)
        .args(answers)
        .arg("--")
        .arg(env!("CARGO_BIN_EXE_mullion"));
    python.args(arguments).current_dir(world.directory.path());
    python.env("MULLION_KEYS", world.path("keys"));
    let output: Output = python.output().expect("python3 is there");
    (output.status.code(), text(&output.stdout))
}

#[test]
fn keys_are_made_shown_imported_and_listed() {
    let world = World::new();
    let shown = world.succeed(&["key", "show", "alice"]);
    let mode = |name: &str| {
        let data = std::fs::metadata(world.path(name)).expect("a file");
        data.permissions().mode() & 0o777
    };
    assert_eq!((mode("keys/alice.key"), mode("keys")), (0o600, 0o700));
    world.write("theirs", &shown);
    assert_eq!(world.succeed(&["key", "import", "friend", "theirs"]), "");
    assert_eq!(world.succeed(&["key", "show", "friend"]), shown);
    world.succeed(&["key", "import", "again", shown.trim()]);
    let listed = world.succeed(&["key", "list"]);
    assert!(
        listed.contains(&format!("friend\tpublic\t{shown}")),
        "{listed}"
    );
    assert!(
        listed.contains(&format!("alice\tsecret\t{shown}")),
        "{listed}"
    );

    fails(&world, &["key", "new", "alice"], &["alice"]);
    fails(&world, &["key", "import", "alice", "theirs"], &["alice"]);
    fails(&world, &["key", "import", "x", "nowhere"], &["nowhere"]);
    fails(
        &world,
        &["key", "import", "x", "tool.toml"],
        &["is no public key"],
    );
    fails(
        &world,
        &["key", "import", "x", "dsa:12"],
        &["is no public key"],
    );
    fails(
        &world,
        &["key", "show", "nobody"],
        &["there is no key `nobody`"],
    );
    fails(&world, &["key", "new", "../x"], &["../x"]);
    for usage in [
        &["key"][..],
        &["key", "new"],
        &["key", "new", "a", "b"],
        &["key", "burn"],
    ] {
        assert_eq!(world.mullion(usage).status.code(), Some(2), "{usage:?}");
    }
}

#[test]
fn a_passphrase_is_asked_for_on_the_terminal_and_not_shown() {
    let world = World::new();
    let new = ["key", "new", "carol", "--passphrase"];
    let (status, shown) = typed(&world, &["open sesame", "open sesame"], &new);
    assert_eq!(status, Some(0), "{shown}");
    assert!(shown.contains("new passphrase of carol: "), "{shown}");
    assert!(!shown.contains("sesame"), "it was shown: {shown}");
    let sign = ["sign", "uses.mx", "--type", "tool.toml", "--key", "carol"];
    let (status, shown) = typed(&world, &["open sesame"], &sign);
    assert_eq!(status, Some(0), "{shown}");
    assert!(shown.starts_with("passphrase of carol: "), "{shown}");
    let (status, shown) = typed(&world, &["open barley"], &sign);
    assert_eq!(status, Some(1), "{shown}");
    assert!(shown.contains("mullion: "), "{shown}");
    assert!(!shown.contains("barley"), "{shown}");
    let different = ["key", "new", "dave", "--passphrase"];
    let (status, shown) = typed(&world, &["one", "two"], &different);
    assert_eq!(status, Some(1));
    assert!(shown.contains("the two passphrases differ"), "{shown}");
    assert!(!world.path("keys/dave.key").exists());
    let (status, shown) = typed(&world, &["", ""], &different);
    assert_eq!(status, Some(1));
    assert!(
        shown.contains("an empty passphrase protects nothing"),
        "{shown}"
    );
    // Without a terminal, by a file.
    world.write("words", "open sesame\n");
    world.succeed(&[&sign[..], &["--passphrase-file", "words"]].concat());
    fails(&world, &sign, &["no terminal", "--passphrase-file"]);
}

#[test]
fn nothing_that_is_said_or_logged_holds_a_secret() {
    let world = World::new();
    world.write("words", "correct horse battery\n");
    let with = ["--passphrase-file", "words"];
    world.succeed(&[&["key", "new", "carol", "--passphrase"][..], &with].concat());
    world.grant(&[]);
    let seed = world.read("keys/alice.key");
    let seed = seed.lines().find_map(|line| line.strip_prefix("secret: "));
    let seed = seed.expect("a plain key").to_owned();
    // The same key where others can read it, cut off, with a line too many, and under another's name.
    let bad = |name: &str, content: &str, mode: u32| {
        let path = world.path(&format!("keys/{name}.key"));
        std::fs::write(&path, content).expect("a file");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
    };
    let whole = world.read("keys/alice.key");
    bad("open", &whole, 0o644);
    bad("cut", &whole[..whole.len() - 9], 0o600);
    bad("more", &whole.replace("secret: ", "secret: 0"), 0o600);
    bad(
        "other",
        &whole.replace("mullion-key 1", "mullion-key 2"),
        0o600,
    );
    world.write("wrong", "incorrect mule\n");
    let sign = ["sign", "uses.mx", "--type", "tool.toml", "--key"];
    let mut all = String::new();
    let mut say = |arguments: &[&str]| {
        let output = world.mullion(arguments);
        all += &text(&output.stdout);
        all += &text(&output.stderr);
        output.status.code()
    };
    for name in ["open", "cut", "more", "other"] {
        assert_eq!(say(&[&sign[..], &[name]].concat()), Some(1), "{name}");
        say(&["run", "--policy", "policy.toml", "--as", name, "uses.mx"]);
        say(&["key", "show", name]);
    }
    say(&["key", "list"]);
    say(&[
        "key",
        "import",
        "x",
        &format!("x-mullion-ed25519-hex:{}", "0".repeat(63)),
    ]);
    assert_eq!(
        say(&[&sign[..], &["carol", "--passphrase-file", "wrong"]].concat()),
        Some(1)
    );
    assert_eq!(say(&[&sign[..], &["carol"], &with].concat()), Some(0));
    say(&[
        "run",
        "-v",
        "--policy",
        "policy.toml",
        "--as",
        "alice",
        "--credentials",
        "alice.kn",
        "uses.mx",
    ]);
    say(&["log", "show", "log"]);
    say(&["log", "checkpoint", "log", "--key", "alice"]);
    say(&["grant", "show", "alice.kn"]);
    all += &world.read("log");
    all += &world.read("alice.kn");
    all += &world.read("uses.mx.record");
    for secret in [&seed[..], &seed[..32], "correct horse", "incorrect mule"] {
        assert!(!all.contains(secret), "{secret} was said:\n{all}");
    }
    assert!(
        !world.read("keys/carol.key").contains("secret: "),
        "it is not sealed"
    );
}

#[test]
fn a_grant_is_explained_in_words() {
    let world = World::new();
    world.grant(&[
        "--limit",
        "heap=1M",
        "--when",
        "hour >= \"09\" && hour < \"17\"",
    ]);
    let grant = world.read("alice.kn");
    for part in [
        "Comment: root lets alice load tool",
        "Licensees: key_alice",
        "type == \"tool\"",
        "@heap_kib <= 1024",
        "hour >= \"09\" && hour < \"17\"",
    ] {
        assert!(grant.contains(part), "{part}:\n{grant}");
    }
    let shown = world.succeed(&["grant", "show", "alice.kn"]);
    for part in [
        "from root",
        "to alice",
        "heap_kib at most 1024",
        "the signature is good",
    ] {
        assert!(shown.contains(part), "{part}:\n{shown}");
    }
    // Alice delegates a part of it, without the root.
    let line = [
        "grant", "--from", "alice", "--to", "bob", "--type", "tool", "-o", "bob.kn",
    ];
    world.succeed(&[&line[..], &["--limit", "heap=512K"]].concat());
    let check = |who: &str, more: &[&str]| {
        let start = [
            "grant",
            "check",
            "--policy",
            "policy.toml",
            "--credentials",
            ".",
        ];
        let line = [&start[..], &["--as", who, "--type", "tool"], more].concat();
        let output = world.mullion(&line);
        (output.status.code(), text(&output.stdout))
    };
    let noon = ["--attribute", "hour=12"];
    let (status, said) = check("bob", &noon);
    assert_eq!(status, Some(0), "{said}");
    let steps: Vec<_> = said.lines().map(str::trim).collect();
    assert_eq!(steps[0], "yes:");
    assert!(
        steps[1].starts_with("the policy gives leave to root"),
        "{said}"
    );
    assert!(
        steps[2].starts_with("root gives leave to alice (alice.kn: "),
        "{said}"
    );
    assert!(
        steps[3].starts_with("alice gives leave to bob (bob.kn: "),
        "{said}"
    );
    for (who, more, reason) in [
        (
            "bob",
            &["--attribute", "hour=20"][..],
            "the leave of root (alice.kn: root lets alice load tool) has conditions that do not hold",
        ),
        (
            "bob",
            &["--attribute", "hour=12", "--attribute", "heap_kib=600"],
            "the leave of alice (bob.kn: alice lets bob load tool) has conditions that do not hold",
        ),
        ("cc", &noon, "the policy itself names cc, root"),
    ] {
        let (status, said) = check(who, more);
        assert_eq!(status, Some(1), "{said}");
        assert!(
            said.starts_with("no:\n") && said.contains(reason),
            "{reason}:\n{said}"
        );
    }
    world.write("alice.kn", &grant.replace("1024", "4096"));
    let output = world.mullion(&["grant", "show", "alice.kn"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("it does not count: "));
    assert_eq!(check("bob", &noon).0, Some(1));

    fails(
        &world,
        &[
            "grant", "--from", "root", "--to", "alice", "--limit", "wishes=3",
        ],
        &["no limit `wishes`"],
    );
    fails(
        &world,
        &[
            "grant",
            "--from",
            "root",
            "--to",
            "alice",
            "--limit",
            "heap=much",
        ],
        &["bytes, as in"],
    );
    fails(
        &world,
        &[
            "grant", "--from", "root", "--to", "alice", "--when", "hour >",
        ],
        &["the condition"],
    );
    fails(
        &world,
        &[
            "grant", "--from", "root", "--to", "alice", "--until", "soon",
        ],
        &["no date"],
    );
    fails(&world, &[&line[..], &[]].concat(), &["bob.kn"]);
    assert_eq!(
        world.mullion(&["grant", "--from", "root"]).status.code(),
        Some(2)
    );
}

#[test]
fn a_grant_that_will_hardly_hold_is_warned_of() {
    let world = World::new();
    let warned = |policy: bool, more: &[&str]| {
        let line = ["grant", "--from", "root", "--to", "alice"];
        let mut command = world.command(&[&line[..], more].concat());
        if policy {
            command.env("MULLION_POLICY", world.path("policy.toml"));
        }
        let output = command.output().expect("started");
        assert!(output.status.success() && !output.stdout.is_empty());
        text(&output.stderr)
    };
    let said = warned(true, &["--type", "tol", "--until", "20200101"]);
    assert!(
        said.contains("20200101 is past, so the grant never holds"),
        "{said}"
    );
    assert!(
        said.contains("knows no module type `tol`; it knows tool"),
        "{said}"
    );
    assert!(warned(false, &["--until", "20200101"]).contains("is past"));
    // What nobody can know, and what is right.
    assert_eq!(warned(false, &["--type", "tol"]), "");
    assert_eq!(warned(true, &["--type", "tool", "--until", "29991231"]), "");
}

#[test]
fn files_are_checked_and_errors_have_a_place_and_a_hint() {
    let world = World::new();
    assert!(
        world
            .succeed(&["type", "check", "tool.toml"])
            .starts_with("tool\t")
    );
    assert!(
        world
            .succeed(&["policy", "check", "policy.toml"])
            .contains("type tool: no limits")
    );
    world.write("bad.toml", &TYPE.replace("\"window\"", "\"moat\""));
    fails(
        &world,
        &["type", "check", "tool.toml", "bad.toml"],
        &["bad.toml:5:", "moat"],
    );
    let policy = world.read("policy.toml");
    world.write("bad.toml", &policy.replace("[\"root\"]", "[\"nobody\"]"));
    fails(
        &world,
        &["policy", "check", "bad.toml"],
        &["bad.toml:", "there is no key `nobody`", "hint: "],
    );
    world.write("bad.toml", &policy.replace("tool.toml", "gone.toml"));
    fails(
        &world,
        &["policy", "check", "bad.toml"],
        &["bad.toml:2:", "gone.toml", "relative to"],
    );
    fails(&world, &["policy", "check", "gone"], &["gone"]);
    assert_eq!(world.mullion(&["type", "check"]).status.code(), Some(2));
}

#[test]
fn admit_asks_without_loading() {
    let world = World::new();
    world.grant(&["--limit", "heap=1M"]);
    let line = [
        "admit",
        "uses.mx",
        "--policy",
        "policy.toml",
        "--as",
        "alice",
    ];
    let granted = world.succeed(&[&line[..], &["--credentials", "alice.kn"]].concat());
    for part in [
        "alice may load this image as tool",
        "root gives leave to alice",
        "heap 1M",
        "cc may say",
    ] {
        assert!(granted.contains(part), "{part}:\n{granted}");
    }
    assert!(
        !world.path("log").exists(),
        "a question is not logged unless asked"
    );
    fails(&world, &line, &["refused: alice may not load", "way out: "]);
    let json = ["--json", "--log", "--credentials", "alice.kn"];
    let json = world.succeed(&[&line[..], &json].concat());
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&json["kind"], &json["limits"]["heap"]),
        (&"admitted".into(), &(1 << 20).into())
    );
    assert_eq!(world.events(), [json]);
    assert_eq!(world.mullion(&["admit", "uses.mx"]).status.code(), Some(2));
}

#[test]
fn the_log_is_shown_verified_and_pinned() {
    let world = World::new();
    world.grant(&[]);
    for _ in 0..3 {
        world.run(&["hello"]);
    }
    let shown = world.succeed(&["log", "show", "log"]);
    assert_eq!(shown.lines().count(), 3, "{shown}");
    assert!(
        world
            .succeed(&["log", "verify", "log"])
            .starts_with("good: 3 lines")
    );
    let checkpoint = world.succeed(&["log", "checkpoint", "log", "--key", "root"]);
    world.write("kept", &checkpoint);
    let since = [
        "log",
        "verify",
        "log",
        "--checkpoint",
        "kept",
        "--signed-by",
        "root",
    ];
    world.run(&["hello"]);
    world.succeed(&since);
    let good = world.read("log");
    world.write("log", &good.replacen("admitted", "refused!", 1));
    fails(&world, &["log", "verify", "log"], &["line 2"]);
    let lines: Vec<_> = good.lines().collect();
    world.write("log", &format!("{}\n", lines[..3].join("\n")));
    fails(&world, &["log", "verify", "log"], &["its end was cut off"]);
    world.write("log", &good);
    fails(
        &world,
        &[
            "log",
            "verify",
            "log",
            "--checkpoint",
            "kept",
            "--signed-by",
            "alice",
        ],
        &["checkpoint"],
    );
    // Begun anew by who can write both files: only the checkpoint tells.
    std::fs::remove_file(world.path("log")).expect("removed");
    std::fs::remove_file(world.path("log.head")).expect("removed");
    world.run(&["hello"]);
    world.succeed(&["log", "verify", "log"]);
    fails(&world, &since, &["cut off"]);
}
