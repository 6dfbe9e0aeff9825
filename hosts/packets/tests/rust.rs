//! The paper's monitors in elastic Rust, compiled by `mullion compile`, in the forwarder beside those in C: the same
//! frames give the same reports. Needs rustc 1.99.1 with rustc-dev; where it is not there, the test says so
//! (`MULLION_REQUIRE_RUSTC_DEV=1` makes that a failure).

#[path = "../../../crates/host/mullion/tests/support/mod.rs"]
mod support;

use mullion::Host;
use mullion_packets::batch::Batch;
use mullion_packets::config::{Description, Kind};
use mullion_packets::forward::Forwarder;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn mullion(place: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(&*support::MULLION);
    command.args(words).current_dir(place);
    command
        .env("MULLION_KEYS", place.join("keys"))
        .env("MULLION_POLICY", place.join("policy.toml"));
    command.output().unwrap()
}

/// The image of a module in Rust; `None`: nothing here can judge it.
fn of_rust(place: &Path, name: &str) -> Option<PathBuf> {
    let of_type = here()
        .join(format!("types/{name}-rust.toml"))
        .display()
        .to_string();
    let source = here()
        .join(format!("modules/{name}.rs"))
        .display()
        .to_string();
    let image = format!("{name}-rust.mx");
    let words = [
        "compile", "--type", &of_type, "--as", "root", "--key", "compiler", "-o", &image, &source,
    ];
    let output = mullion(place, &words);
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("rustup") && std::env::var_os("MULLION_REQUIRE_RUSTC_DEV").is_none() {
        eprintln!("not tested: monitors in elastic Rust: {said}");
        return None;
    }
    assert!(output.status.success(), "{said}");
    Some(place.join(image))
}

/// The same in C.
fn of_c(place: &Path, name: &str) -> PathBuf {
    let image = place.join(format!("{name}-c.mx"));
    let include = here().display().to_string();
    support::build(
        &here().join(format!("modules/{name}.c")),
        &image,
        &["-O2", "-I", &include],
    );
    image
}

fn module(name: &str, image: PathBuf) -> Description {
    Description {
        name: name.to_owned(),
        image,
        kind: Kind::Monitor,
        filter: None,
        from: None,
        sees: Some(28),
        locked: vec![mullion_packets::view::Locked::Source],
        time: Some("1s".to_owned()),
        memory: None,
    }
}

/// Frames of IPv4, some of them pieces, some short, some of other protocols.
fn frames() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for n in 0..2500u16 {
        let mut bytes = vec![2; 12];
        bytes.extend([0x08, if n % 97 == 0 { 6 } else { 0 }]);
        bytes.extend([if n % 89 == 0 { 0x60 } else { 0x45 }, 0]);
        bytes.extend((20 + n % 41).to_be_bytes());
        bytes.extend(n.to_be_bytes());
        let field = match n % 7 {
            0 => 0x2000,
            1 => 0x2000 | (n % 0x1fff),
            2 => n % 0x1fff,
            3 => 0x4000,
            _ => 0,
        };
        bytes.extend(u16::to_be_bytes(field));
        bytes.extend([
            64,
            if n % 3 == 0 { 17 } else { 6 },
            0,
            0,
            10,
            0,
            0,
            1,
            10,
            0,
            0,
            2,
        ]);
        bytes.extend([0; 40]);
        bytes.truncate(if n % 101 == 0 { 30 } else { 74 });
        frames.push(bytes);
    }
    frames
}

fn reports(name: &str, image: PathBuf) -> Vec<String> {
    let forwarder = Forwarder::new(Host::new(), &[module(name, image)]).unwrap();
    for frames in frames().chunks(37) {
        let mut batch = Batch::default();
        for frame in frames {
            batch.push(Duration::from_secs(1), frame);
        }
        forwarder.handle(&forwarder.modules(), 0, &mut batch);
        assert!(batch.out().eq(frames.iter()), "a monitor changes nothing");
    }
    let reports = forwarder.modules()[0].take_reports();
    reports
        .into_iter()
        .map(|report| String::from_utf8(report).unwrap())
        .collect()
}

#[test]
fn monitors_in_rust_report_what_those_in_c_do() {
    let place = tempfile::tempdir().unwrap();
    let mut keys = String::new();
    for name in ["root", "compiler"] {
        assert!(
            mullion(place.path(), &["key", "new", name])
                .status
                .success()
        );
        let key = std::fs::read_to_string(place.path().join(format!("keys/{name}.pub"))).unwrap();
        keys += &format!("{name} = {:?}\n", key.trim());
    }
    let types = ["monitor", "fragments"].map(|name| here().join(format!("types/{name}-rust.toml")));
    std::fs::write(
        place.path().join("policy.toml"),
        format!("version = 1\ntypes = {types:?}\n[keys]\n{keys}[allow]\nload = [\"root\"]\ncompile = [\"root\", \"compiler\"]\n"),
    )
    .unwrap();
    for name in ["monitor", "fragments"] {
        let Some(image) = of_rust(place.path(), name) else {
            return;
        };
        let (rust, c) = (
            reports("rust", image),
            reports("c", of_c(place.path(), name)),
        );
        assert!(rust.len() >= 2, "{name}: {rust:?}, in C {c:?}");
        assert_eq!(rust, c);
    }
}
