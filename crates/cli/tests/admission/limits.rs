//! What a type or a credential grants is what the domain gets: each limit exceeded, for real.

use crate::{TYPE, World, refused, text};
use std::process::Output;

/// A type with limits, and a grant with others: what the type has, then what the credential has.
fn world(in_type: &str, in_grant: &[&str]) -> World {
    let world = World::of_type(&format!("{TYPE}[limits]\n{in_type}\n"), "");
    world.grant(in_grant);
    world
}

#[track_caller]
fn number(output: &Output) -> u32 {
    let said = text(&output.stdout);
    said.parse()
        .unwrap_or_else(|_| panic!("{said}: {}", text(&output.stderr)))
}

#[test]
fn of_type_credential_and_option_the_smallest_heap_holds() {
    // The C library takes memory in larger pieces, so not all of it is had.
    let within = |world: &World, options: &[&str], mebibytes: u32| {
        let output = world.run_with(
            &[&["--credentials", "alice.kn"], options].concat(),
            &["heap"],
        );
        let got = number(&output);
        assert!(
            (mebibytes / 2..=mebibytes).contains(&got),
            "{got} of {mebibytes} MiB: {}",
            text(&output.stderr)
        );
    };
    within(&world("heap = \"24M\"", &[]), &[], 24);
    within(&world("", &["--limit", "heap=12M"]), &[], 12);
    within(&world("heap = \"24M\"", &["--limit", "heap=12M"]), &[], 12);
    within(&world("heap = \"12M\"", &["--limit", "heap=24M"]), &[], 12);
    within(&world("heap = \"48M\"", &[]), &["--max-memory", "16M"], 16);
}

#[test]
fn the_stack_ends_where_it_was_granted() {
    for world in [
        world("stack = \"64K\"", &["--limit", "stack=1M"]),
        world("stack = \"1M\"", &["--limit", "stack=64K"]),
    ] {
        let output = world.run(&["stack"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{said}");
        assert!(said.contains("data stack overflow (64 KiB)"), "{said}");
        let reached = text(&output.stdout).lines().count();
        assert!(reached < 16, "{reached} blocks of 4 KiB in 64 KiB");
    }
    // Less than the run time can make is not rounded up.
    refused(
        &world("", &["--limit", "stack=8K"]).run(&["hello"]),
        &["a stack of 8192 bytes was granted"],
    );
}

#[test]
fn time_is_up_when_it_was_granted() {
    for world in [
        world("time = \"50ms\"", &["--limit", "time=1s"]),
        world("time = \"1s\"", &["--limit", "time=50ms"]),
    ] {
        let output = world.run(&["spin"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(124), "{said}");
        assert!(said.contains("time limit of 50ms exceeded"), "{said}");
    }
}

#[test]
fn calls_through_imports_are_counted() {
    for world in [
        world("calls = 30", &["--limit", "calls=500"]),
        world("calls = 500", &["--limit", "calls=30"]),
    ] {
        let output = world.run(&["calls", "400"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{said}");
        assert!(said.contains("limit of 30 gate calls exceeded"), "{said}");
        let made = text(&output.stdout).len();
        assert!((1..=30).contains(&made), "{made} calls");
    }
    let output = world("calls = 500", &[]).run(&["calls", "400"]);
    assert_eq!(text(&output.stdout).len(), 400, "{}", text(&output.stderr));
}

#[test]
fn an_import_that_type_or_credential_leaves_out_is_refused() {
    let without = TYPE.replace("\"__mullion_system\"", "\"now\"");
    let world = World::of_type(&without, "");
    world.grant(&[]);
    refused(
        &world.run(&["hello"]),
        &["imports `__mullion_system`, which was not granted"],
    );
    let world = World::of_type(&TYPE.replace("[\"__", "[\"now\", \"__"), "");
    world.grant(&["--import", "now"]);
    refused(
        &world.run(&["hello"]),
        &["imports `__mullion_system`, which was not granted"],
    );
}

#[test]
fn a_wall_that_is_not_this_one_is_refused() {
    let elsewhere = TYPE.replace("[\"window\"]", "[\"process\"]");
    let world = World::of_type(&elsewhere, "");
    world.grant(&[]);
    refused(
        &world.run(&["hello"]),
        &["does not allow the mechanism window", "it allows process"],
    );
    let world = World::of_type(
        &TYPE.replace("[\"window\"]", "[\"window\", \"process\"]"),
        "",
    );
    world.grant(&["--when", "mechanism == \"process\""]);
    refused(&world.run(&["hello"]), &["alice may not load"]);
}
