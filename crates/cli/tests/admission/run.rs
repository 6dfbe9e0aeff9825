//! `mullion run` asks before it maps anything.

use crate::{TYPE, World, refused, text};

#[test]
fn who_holds_a_grant_runs_and_nobody_else() {
    let world = World::new();
    refused(
        &world.run_with(&[], &["hello"]),
        &["alice may not load", "names alice", "way out: "],
    );
    world.grant(&[]);
    let output = world.run(&["hello"]);
    assert_eq!(text(&output.stdout), "hello\n", "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "", "nothing is said unasked");
    let nobody = world.mullion(&["run", "--policy", "policy.toml", "uses.mx", "hello"]);
    refused(&nobody, &["no key has been proven", "--as"]);
    // A grant to alice does not help bob, and a key without its secret proves nothing.
    let bob = ["run", "--policy", "policy.toml", "--as", "bob"];
    let bob = [&bob[..], &["--credentials", "alice.kn", "uses.mx", "hello"]].concat();
    refused(&world.mullion(&bob), &["bob may not load"]);
    std::fs::remove_file(world.path("keys/alice.key")).expect("removed");
    refused(&world.run(&["hello"]), &["there is no key `alice`"]);

    let kinds: Vec<_> = world
        .events()
        .iter()
        .map(|event| event["kind"].clone())
        .collect();
    assert_eq!(kinds, ["refused", "admitted", "refused", "refused"]);
}

#[test]
fn the_policy_may_come_from_the_environment_and_the_explanation_on_request() {
    let world = World::new();
    world.grant(&["--limit", "heap=8M"]);
    let mut command =
        world.command(&["run", "-v", "--credentials", "alice.kn", "uses.mx", "hello"]);
    command.env("MULLION_POLICY", world.path("policy.toml"));
    let output = command
        .env("MULLION_AS", "alice")
        .output()
        .expect("started");
    assert_eq!(text(&output.stdout), "hello\n", "{}", text(&output.stderr));
    for part in [
        "alice may load this image as tool",
        "root gives leave to alice",
        "heap 8M",
        "must pass the verifier",
    ] {
        assert!(
            text(&output.stderr).contains(part),
            "{part}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn without_a_policy_everyone_is_trusted_and_one_line_says_so() {
    let world = World::new();
    let output = world.mullion(&["run", "-v", "uses.mx", "hello"]);
    assert_eq!(text(&output.stdout), "hello\n");
    assert_eq!(
        text(&output.stderr),
        "mullion: note: no policy is configured, so everyone is trusted (see --policy)\n"
    );
    let output = world.mullion(&["run", "uses.mx", "hello"]);
    assert_eq!(text(&output.stderr), "", "not where no person reads it");
}

#[test]
fn an_image_without_a_record_or_with_anothers_is_refused() {
    let world = World::new();
    world.grant(&[]);
    std::fs::rename(world.path("uses.mx.record"), world.path("kept")).expect("renamed");
    refused(&world.run(&["hello"]), &["there is none", "mullion sign"]);
    refused(
        &world.run_with(&["--credentials", "alice.kn", "--record", "nowhere"], &[]),
        &["nowhere"],
    );
    let mut image = std::fs::read(world.path("uses.mx")).expect("a file");
    image.push(0);
    std::fs::write(world.path("uses.mx"), image).expect("a file");
    refused(
        &world.run_with(&["--credentials", "alice.kn", "--record", "kept"], &[]),
        &["the compilation record is about the image"],
    );
}

#[test]
fn a_type_changed_since_compilation_is_refused() {
    let world = World::new();
    world.grant(&[]);
    world.write("tool.toml", &format!("{TYPE}# newer\n"));
    refused(
        &world.run(&["hello"]),
        &["another version of the module type"],
    );
}

#[test]
fn the_image_must_be_confined_as_its_record_says() {
    let world = World::new();
    world.grant(&[]);
    // The record claims more than write-call; the image's own note is what counts.
    let weak = std::fs::read(crate::IMAGES.path().join("write-call.mx")).expect("an image");
    std::fs::write(world.path("uses.mx"), weak).expect("a file");
    world.sign("uses.mx");
    refused(
        &world.run(&["hello"]),
        &["confined in write-call, and its compilation record says read-write-call"],
    );
}

#[test]
fn code_that_breaks_the_rules_is_refused_though_signed() {
    let world = World::new();
    world.grant(&[]);
    break_code(&world);
    refused(&world.run(&["hello"]), &["it breaks rules of the window"]);
    let last = world.events().pop().expect("an event");
    assert_eq!(last["kind"], "refused");
}

#[test]
fn a_type_that_wants_to_be_trusted_needs_the_policys_word_and_is_spoken_of() {
    let trusted = format!("{TYPE}verification = \"trusted\"\n");
    let world = World::of_type(&trusted, "");
    world.grant(&[]);
    refused(&world.run(&["hello"]), &["the policy does not trust it"]);

    let world = World::of_type(&trusted, "trusted-types = [\"tool\"]");
    world.grant(&[]);
    break_code(&world);
    let output = world.run_with(&["-v", "--credentials", "alice.kn"], &["hello"]);
    assert_eq!(text(&output.stdout), "hello\n", "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("THE CODE IS NOT VERIFIED"));
    assert_eq!(world.events().pop().expect("an event")["verified"], false);
    let seen = world.succeed(&["inspect", "--policy", "policy.toml", "uses.mx"]);
    for part in [
        "NOT verified",
        "record     of type tool",
        "THE CODE IS NOT VERIFIED",
    ] {
        assert!(seen.contains(part), "{part}:\n{seen}");
    }
    // Trust in the compiler's code is no trust in the file's structure.
    let image = std::fs::read(world.path("uses.mx")).expect("a file");
    std::fs::write(world.path("uses.mx"), &image[..image.len() / 4]).expect("a file");
    world.sign("uses.mx");
    refused(&world.run(&["hello"]), &["breaks rules"]);
}

#[test]
fn a_log_that_cannot_be_written_lets_nobody_in() {
    let world = World::new();
    world.grant(&[]);
    world.write("log", "not a log\n");
    refused(&world.run(&["hello"]), &["could not be written to the log"]);
}

/// Puts an instruction that has no row into code that never runs, and signs again.
fn break_code(world: &World) {
    use object::{Object, ObjectSymbol};
    let mut image = std::fs::read(world.path("uses.mx")).expect("a file");
    let file = object::File::parse(&*image).expect("an ELF file");
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok("stack"));
    let address = symbol.expect("the function").address();
    let segments = object::ObjectSegment::file_range;
    let place = file.segments().find_map(|segment| {
        let (offset, length) = segments(&segment);
        let at = address.checked_sub(object::ObjectSegment::address(&segment))?;
        (at < length).then_some(offset + at)
    });
    // `hlt`, a byte long.
    image[place.expect("in the file") as usize] = 0xf4;
    std::fs::write(world.path("uses.mx"), image).expect("a file");
    world.sign("uses.mx");
}
