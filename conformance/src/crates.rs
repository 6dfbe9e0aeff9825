//! `conformance crates`: the own tests of ten crates from crates.io, unmodified, natively and in a domain.
//!
//! Each package is copied from where Cargo has unpacked it, as `conformance/rust/Cargo.lock` pins it. `cargo test`
//! and `mullion cargo test` run the same targets of it. A test that passes natively must pass in a domain. Two kinds
//! are left out: tests that must panic, since a panic ends the domain, and those that `crates.toml` lists with a
//! reason.

use crate::Tested;
use crate::process;
use anyhow::{Context, bail};
use clap::Args;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What `conformance crates` can be told.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) tested: Tested,
    /// Only these crates, by commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only the crates that are done in a minute.
    #[arg(long)]
    quick: bool,
    /// The package that depends on the crates.
    #[arg(long, default_value = "conformance/rust")]
    package: PathBuf,
    /// Where they are built, outside of any workspace of Cargo's.
    #[arg(long, default_value = "build/crates")]
    directory: PathBuf,
    /// The release of rustc, by rustup, for the native side.
    #[arg(long, default_value = mullion_driver::rust::RELEASE)]
    release: String,
}

/// `crates.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Crates {
    #[serde(rename = "crate")]
    crates: Vec<Suite>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Suite {
    name: String,
    #[serde(default)]
    quick: bool,
    targets: Vec<String>,
    /// Why it is not run, unless `--only` names it.
    left_out: Option<String>,
    /// Its `Cargo.lock` names a release that is gone: Cargo chooses anew.
    #[serde(default)]
    relock: bool,
    /// For rustc, on the walled side.
    #[serde(default)]
    flags: String,
    #[serde(default)]
    absent: Vec<PathBuf>,
    #[serde(default)]
    skipped: Vec<Skipped>,
}

/// A test that cannot run in a domain.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Skipped {
    test: String,
    reason: String,
}

/// How often tests of each name ended in one way. Programs of one crate may have tests of the same name.
type Names = BTreeMap<String, usize>;

/// What a run of a suite said.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    passed: Names,
    failed: Names,
    /// Those among the passed that had to panic.
    panicked: usize,
}

/// One suite on both sides.
struct Row {
    version: String,
    native: Said,
    /// Of the native side: tests that pass there and are left out in the domain.
    skipped: usize,
    walled: usize,
    /// What passed natively and not in the domain.
    missing: Vec<String>,
}

const LONGEST: Duration = Duration::from_secs(1800);

/// Runs the suites and prints the table; false if something passed natively alone.
pub(crate) fn run(options: &Options) -> anyhow::Result<bool> {
    let known: Crates = toml::from_str(include_str!("../crates.toml")).context("crates.toml")?;
    let unknown = |name: &&String| known.crates.iter().all(|suite| suite.name != **name);
    if let Some(name) = options.only.iter().find(unknown) {
        bail!("crates.toml has no crate named {name}");
    }
    let chosen = known
        .crates
        .iter()
        .filter(|suite| options.only.is_empty() || options.only.contains(&suite.name))
        .filter(|suite| suite.quick || !options.quick);
    if !has_release(&options.release) {
        let release = &options.release;
        let how = format!("rustup toolchain install {release} --profile minimal -c rust-src");
        if !options.quick {
            bail!("rustc {release} with its sources is not there: {how}");
        }
        // `make test` runs it so, and announces what is absent.
        println!("not tested: crates of Rust, since rustc {release} is not there ({how})");
        return Ok(std::env::var_os("MULLION_REQUIRE_RUST").is_none());
    }
    let sources = sources(options)?;
    println!(
        "| crate | version | passed natively | failed natively | must panic | skipped | passed in a domain |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let (mut same, mut sums, mut notes) = (true, [0; 5], Vec::new());
    for suite in chosen {
        if let Some(reason) = &suite.left_out
            && options.only.is_empty()
        {
            notes.push(format!("{}: left out: {reason}", suite.name));
            continue;
        }
        let source = sources.get(&suite.name);
        let source = source.with_context(|| format!("{} is no dependency", suite.name))?;
        let row = match one(options, suite, source) {
            Ok(row) => row,
            Err(error) => {
                same = false;
                notes.push(format!("{}: not run: {error:#}", suite.name));
                continue;
            }
        };
        let count = |names: &Names| names.values().sum::<usize>();
        let numbers = [
            count(&row.native.passed),
            count(&row.native.failed),
            row.native.panicked,
            row.skipped,
            row.walled,
        ];
        let [passed, failed, panicked, skipped, walled] = numbers;
        println!(
            "| {} | {} | {passed} | {failed} | {panicked} | {skipped} | {walled} |",
            suite.name, row.version
        );
        sums.iter_mut()
            .zip(numbers)
            .for_each(|(sum, number)| *sum += number);
        let reasons = suite.skipped.iter();
        notes.extend(
            reasons.map(|skip| format!("skipped: {}: {}: {}", suite.name, skip.test, skip.reason)),
        );
        for name in row.missing {
            same = false;
            notes.push(format!("{}: {name} passes natively alone", suite.name));
        }
        if passed == 0 {
            same = false;
            notes.push(format!("{}: no test ran", suite.name));
        }
    }
    let [passed, failed, panicked, skipped, walled] = sums;
    println!("| all | | {passed} | {failed} | {panicked} | {skipped} | {walled} |");
    for note in notes {
        println!("{note}");
    }
    Ok(same)
}

/// Whether rustup has a release of rustc, with its sources.
fn has_release(release: &str) -> bool {
    let mut rustc = Command::new("rustc");
    rustc
        .env("RUSTUP_TOOLCHAIN", release)
        .args(["--print", "sysroot"]);
    let said = rustc.output().ok().filter(|output| output.status.success());
    let sysroot = said.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    sysroot.is_some_and(|sysroot| {
        Path::new(&sysroot)
            .join("lib/rustlib/src/rust/library")
            .is_dir()
    })
}

/// Where Cargo has unpacked the dependencies of the package.
fn sources(options: &Options) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let mut cargo = Command::new("cargo");
    cargo
        .env("RUSTUP_TOOLCHAIN", &options.release)
        .args([
            "metadata",
            "--locked",
            "--format-version=1",
            "--manifest-path",
        ])
        .arg(options.package.join("Cargo.toml"));
    let said = cargo.output().context("cargo")?;
    if !said.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&said.stderr));
    }
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
        resolve: Resolve,
    }
    #[derive(Deserialize)]
    struct Package {
        id: String,
        name: String,
        manifest_path: PathBuf,
    }
    #[derive(Deserialize)]
    struct Resolve {
        root: String,
        nodes: Vec<Node>,
    }
    #[derive(Deserialize)]
    struct Node {
        id: String,
        dependencies: Vec<String>,
    }
    let metadata: Metadata = serde_json::from_slice(&said.stdout).context("cargo metadata")?;
    let root = metadata
        .resolve
        .nodes
        .into_iter()
        .find(|node| node.id == metadata.resolve.root);
    let direct = root.map(|root| root.dependencies).unwrap_or_default();
    let packages = metadata
        .packages
        .into_iter()
        .filter(|package| direct.contains(&package.id));
    Ok(packages
        .filter_map(|package| Some((package.name, package.manifest_path.parent()?.to_owned())))
        .collect())
}

fn one(options: &Options, suite: &Suite, source: &Path) -> anyhow::Result<Row> {
    let name = source.file_name().unwrap_or_default();
    let tree = options.directory.join(name);
    if tree.exists() {
        fs::remove_dir_all(&tree).with_context(|| tree.display().to_string())?;
    }
    fs::create_dir_all(&options.directory)?;
    let copied = Command::new("cp")
        .arg("-r")
        .arg(source)
        .arg(&tree)
        .status()?;
    if !copied.success() {
        bail!("cp -r {} {}", source.display(), tree.display());
    }
    if suite.relock {
        fs::remove_file(tree.join("Cargo.lock"))?;
    }
    for absent in &suite.absent {
        let absent = tree.join(absent);
        fs::create_dir_all(absent.parent().unwrap_or(&tree))?;
        fs::write(&absent, "").with_context(|| absent.display().to_string())?;
    }
    let tree = fs::canonicalize(&tree)?;
    let mut cargo = Command::new("cargo");
    cargo.env("RUSTUP_TOOLCHAIN", &options.release).arg("test");
    let native = tests(cargo, options, suite, &tree, "native", &[])?;
    let mut mullion = Command::new(&options.tested.mullion);
    let whole = tree.display();
    mullion.args(["cargo", "test"]).env(
        "MULLION_RUN",
        format!("--max-memory 3G --dir {whole}::{whole} --dir {whole}::/"),
    );
    if !suite.flags.is_empty() {
        mullion.env("RUSTFLAGS", &suite.flags);
    }
    let skipped: Vec<&str> = suite
        .skipped
        .iter()
        .map(|skip| skip.test.as_str())
        .collect();
    // What fails natively would end the program in the domain, with all tests behind it.
    let failed = native
        .failed
        .keys()
        .map(|name| name.strip_suffix(PANICS).unwrap_or(name));
    let left_out: Vec<&str> = failed.chain(skipped.clone()).collect();
    let walled = tests(mullion, options, suite, &tree, "walled", &left_out)?;
    let is_skipped = |name: &str| skipped.contains(&name);
    let mut row = Row {
        version: version(&name.to_string_lossy(), &suite.name),
        skipped: 0,
        walled: walled.passed.values().sum(),
        missing: Vec::new(),
        native,
    };
    for (name, count) in &row.native.passed {
        if is_skipped(name) {
            row.skipped += count;
        } else if !name.ends_with(PANICS) && walled.passed.get(name) < Some(count) {
            row.missing.push(name.clone());
        }
    }
    Ok(row)
}

/// Runs a crate's tests, and reads what the harness says of each.
fn tests(
    mut command: Command,
    options: &Options,
    suite: &Suite,
    tree: &Path,
    side: &str,
    skipped: &[&str],
) -> anyhow::Result<Said> {
    let target = std::path::absolute(&options.directory)?.join(side);
    command
        .args(&suite.targets)
        .args(["--no-fail-fast", "--", "--exact"])
        .args(skipped.iter().flat_map(|name| ["--skip", name]))
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    let ended = process::run(&mut command, LONGEST)?;
    let said = String::from_utf8_lossy(&ended.stdout);
    let kept = options.directory.join(format!("{}.{side}", suite.name));
    fs::write(kept, format!("{said}\n{}", ended.stderr))?;
    // Some tests may fail natively; that nothing could be built is told apart by there being none.
    let found = read(&said);
    if found.passed.is_empty() {
        bail!("{} {side}: {}", suite.name, ended.tail(12));
    }
    Ok(found)
}

/// What the harness adds to the name of a test that must panic.
const PANICS: &str = " - should panic";

/// Lines of the harness: `test NAME ... ok`.
fn read(text: &str) -> Said {
    let mut said = Said::default();
    for line in text.lines() {
        let Some((name, rest)) = line
            .strip_prefix("test ")
            .and_then(|line| line.split_once(" ... "))
        else {
            continue;
        };
        // What a test itself prints may stand between.
        if rest.ends_with("ok") {
            *said.passed.entry(name.to_owned()).or_default() += 1;
            said.panicked += usize::from(name.ends_with(PANICS));
        } else if rest.ends_with("FAILED") {
            *said.failed.entry(name.to_owned()).or_default() += 1;
        }
    }
    said
}

/// `NAME-VERSION`.
fn version(directory: &str, name: &str) -> String {
    let rest = directory.strip_prefix(name).unwrap_or(directory);
    rest.trim_start_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_harness_are_read() {
        let said = read(
            "running 4 tests\ntest a::b ... ok\ntest c - should panic ... ok\ntest d ... FAILED\ntest a::b ... ok\n\
             test e ... ignored, too slow\ntest result: FAILED. 2 passed\n",
        );
        assert_eq!(said.passed.get("a::b"), Some(&2));
        assert_eq!(said.failed.len(), 1);
        assert_eq!(said.panicked, 1);
    }

    #[test]
    fn the_list_names_ten_crates() {
        let known: Crates = toml::from_str(include_str!("../crates.toml")).expect("crates.toml");
        assert_eq!(known.crates.len(), 10);
    }
}
