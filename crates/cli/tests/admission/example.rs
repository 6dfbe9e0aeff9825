//! The tour of examples/trust, which docs/operating.md and docs/trust.md speak of.

use crate::text;
use std::path::Path;
use std::process::Command;

#[test]
fn the_tour_goes_the_whole_way() {
    let place = tempfile::tempdir().expect("a directory");
    let tour = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/trust/tour");
    let mut command = Command::new(tour);
    command
        .arg(place.path())
        .env("MULLION", env!("CARGO_BIN_EXE_mullion"));
    for name in [
        "MULLION_POLICY",
        "MULLION_AS",
        "MULLION_LOADER",
        "MULLION_PROTECTION",
    ] {
        command.env_remove(name);
    }
    let output = command.output().expect("bash is there");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    for part in [
        "bob may load this image as packet-monitor:\n  the policy gives leave to root",
        "limits: heap 512K, stack 256K, time 5ms, calls 1000",
        "packet\n1\n",
        "packet\n2\n",
        "count 53\n2\n",
        "module 1: a port that was not seen before",
        "mullion: stopping",
        "\"kind\":\"admitted\"",
        "\"kind\":\"refused\"",
        "good: 2 lines",
    ] {
        assert!(said.contains(part), "{part:?} is missing:\n{said}");
    }
    let refused = text(&output.stderr);
    assert!(refused.contains("refused: "), "{refused}");
}
