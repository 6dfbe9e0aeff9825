//! Libraries' own test suites, built by their own build systems with `mullion cc`, and run as they are.

use crate::Tested;
use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use mullion_fetch::Lock;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// `conformance suites`.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) tested: Tested,
    /// Only the suites of these libraries, by commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only the suites that are done in a minute.
    #[arg(long)]
    quick: bool,
    /// Where the libraries are built; what is there from another time is removed.
    #[arg(long, default_value = "build/suites")]
    directory: PathBuf,
}

/// `suites.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Suites {
    suite: Vec<Suite>,
}

/// One library's suite.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Suite {
    name: String,
    /// Its name in `sysroot/sources.toml`.
    source: String,
    /// Whether it is part of the short form.
    #[serde(default)]
    quick: bool,
    /// Commands for a shell, in the library's directory.
    steps: Vec<String>,
    count: Count,
    /// How many tests there must be.
    tests: usize,
    /// Tests of the suite that are left out.
    #[serde(default)]
    skipped: Vec<Skipped>,
}

/// How tests that passed are told from the output of the last step.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Count {
    /// Each line that holds one of these is a test.
    lines: Vec<String>,
    /// The number behind each of these is that many tests.
    number: Vec<String>,
}

/// A test that cannot run in a domain.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Skipped {
    test: String,
    reason: String,
}

/// What came of one suite.
struct Result {
    version: String,
    programs: usize,
    passed: usize,
    elapsed: Duration,
}

/// How much of a failed step's output is shown, in lines.
const SHOWN: usize = 40;

pub(crate) fn run(options: &Options) -> anyhow::Result<bool> {
    let suites: Suites = toml::from_str(include_str!("../suites.toml")).context("suites.toml")?;
    let lock = Lock::parse(include_str!("../../sysroot/sources.toml"))?;
    if let Some(name) = options
        .only
        .iter()
        .find(|name| suites.suite.iter().all(|suite| suite.name != **name))
    {
        bail!("suites.toml has no suite named {name}");
    }
    let chosen: Vec<&Suite> = suites
        .suite
        .iter()
        .filter(|suite| options.only.is_empty() || options.only.contains(&suite.name))
        .filter(|suite| suite.quick || !options.quick)
        .collect();
    fs::create_dir_all(&options.directory)?;
    let directory = fs::canonicalize(&options.directory)?;
    println!(
        "{:<10} {:<14} {:>8} {:>6} {:>7} {:>8}",
        "library", "version", "programs", "tests", "passed", "time"
    );
    let (mut passed, mut failed) = (0, 0);
    for suite in &chosen {
        match one(options, suite, &lock, &directory) {
            Ok(result) => {
                passed += result.passed;
                println!(
                    "{:<10} {:<14} {:>8} {:>6} {:>7} {:>6.1} s",
                    suite.name,
                    result.version,
                    result.programs,
                    suite.tests,
                    result.passed,
                    result.elapsed.as_secs_f64()
                );
            }
            Err(error) => {
                failed += 1;
                println!("{:<10} FAILED: {error:#}", suite.name);
            }
        }
    }
    let skipped: Vec<(&str, &Skipped)> = chosen
        .iter()
        .flat_map(|suite| suite.skipped.iter().map(|s| (suite.name.as_str(), s)))
        .collect();
    for (name, skipped) in &skipped {
        println!("skipped    {name} {}: {}", skipped.test, skipped.reason);
    }
    if failed == 0 {
        println!("every program that the suites built has been verified and ran in a domain");
    }
    println!(
        "{passed} passed, {failed} failed, {} skipped",
        skipped.len()
    );
    Ok(failed == 0)
}

/// Builds and runs one suite in a fresh copy of its sources.
fn one(options: &Options, suite: &Suite, lock: &Lock, directory: &Path) -> anyhow::Result<Result> {
    let start = Instant::now();
    let source = lock.source(&suite.source)?;
    let unpacked = mullion_fetch::fetch(source)?;
    let tree = directory.join(&suite.name);
    if tree.exists() {
        fs::remove_dir_all(&tree).with_context(|| tree.display().to_string())?;
    }
    // With its times: what is older than what it was made from would be made again.
    let copied = Command::new("cp")
        .arg("-a")
        .arg(&unpacked)
        .arg(&tree)
        .status()?;
    if !copied.success() {
        bail!("cp -a {} {}", unpacked.display(), tree.display());
    }
    let bar = ProgressBar::new(suite.steps.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{prefix:10} [{bar:40}] {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar.set_prefix(suite.name.clone());
    bar.enable_steady_tick(Duration::from_millis(200));
    let mut said = String::new();
    for command in &suite.steps {
        bar.set_message(command.clone());
        said = step(options, command, &tree)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let programs = verify_all(&options.tested.mullion, &tree)?;
    let passed = suite.count.tests(&said);
    if passed != suite.tests {
        bail!("{passed} tests passed, {} were expected", suite.tests);
    }
    Ok(Result {
        version: version(&unpacked, &suite.source),
        programs,
        passed,
        elapsed: start.elapsed(),
    })
}

/// One command of a suite; what it said, or an error with the end of that.
fn step(options: &Options, command: &str, tree: &Path) -> anyhow::Result<String> {
    let tools = options.tested.mullion.parent().unwrap_or(Path::new("/"));
    let mut path = tools.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let whole = tree.display();
    let output = Command::new("bash")
        .arg("-c")
        .arg(format!("({command}) 2>&1"))
        .current_dir(tree)
        .env("PATH", path)
        .env("MULLION_RUN", format!("--dir .::/ --dir {whole}::{whole}"))
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL")
        .output()
        .context("bash")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(said);
    }
    let lines: Vec<&str> = said.lines().collect();
    let end = lines[lines.len().saturating_sub(SHOWN)..].join("\n    ");
    bail!("{command}: {}\n    {end}", output.status)
}

/// Verifies every program below `tree`, and counts them: an image that verifies holds no system call, so
/// what it printed it printed from a domain. What CMake builds for itself is verified but not counted.
fn verify_all(mullion: &Path, tree: &Path) -> anyhow::Result<usize> {
    let mut programs = Vec::new();
    find_programs(tree, &mut programs)?;
    for program in &programs {
        let verified = Command::new(mullion).arg("verify").arg(program).output()?;
        if !verified.status.success() {
            bail!(
                "{} did not run in a domain: {}",
                program.display(),
                String::from_utf8_lossy(&verified.stderr).trim()
            );
        }
    }
    let own = |path: &&PathBuf| path.iter().all(|part| part != "CMakeFiles");
    match programs.iter().filter(own).count() {
        0 => bail!("it built no program"),
        count => Ok(count),
    }
}

/// Linked ELF files: programs, and shared libraries, of which there must be none.
fn find_programs(directory: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            find_programs(&entry.path(), found)?;
        } else if kind.is_file() && is_linked(&fs::read(entry.path())?) {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// An ELF file that is not an object (`ET_REL`, 1).
fn is_linked(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF") && bytes.get(16).is_some_and(|kind| *kind != 1)
}

/// The release that was unpacked: its directory is `NAME-VERSION-DIGEST`.
fn version(unpacked: &Path, name: &str) -> String {
    let directory = unpacked.file_name().unwrap_or_default().to_string_lossy();
    let rest = directory.strip_prefix(name).unwrap_or(&directory);
    let version = rest.rsplit_once('-').map_or(rest, |(version, _)| version);
    version.trim_start_matches('-').to_owned()
}

impl Count {
    fn tests(&self, said: &str) -> usize {
        let lines = said
            .lines()
            .filter(|line| self.lines.iter().any(|mark| line.contains(mark)))
            .count();
        let numbers = self
            .number
            .iter()
            .flat_map(|mark| said.split(mark.as_str()).skip(1).filter_map(leading_number));
        lines + numbers.sum::<usize>()
    }
}

fn leading_number(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_by_lines_and_numbers() {
        let count = Count {
            lines: vec!["Passed".to_owned()],
            number: vec!["Checks: ".to_owned()],
        };
        let said = "1/2 a Passed\n2/2 b ***Failed\n100%: Checks: 345, Failed: 0\nChecks: 5\n";
        assert_eq!(count.tests(said), 351);
        assert_eq!(count.tests(""), 0);
    }

    #[test]
    fn every_suite_has_its_source() {
        let suites: Suites = toml::from_str(include_str!("../suites.toml")).unwrap();
        let lock = Lock::parse(include_str!("../../sysroot/sources.toml")).unwrap();
        for suite in &suites.suite {
            lock.source(&suite.source).unwrap();
            assert!(suite.tests > 0, "{}", suite.name);
        }
        assert!(suites.suite.iter().any(|suite| suite.quick));
    }

    #[test]
    fn a_version_is_read_off_the_directory() {
        let place = Path::new("/c/zlib-suite-1.2.13.dfsg-71feb7947e3c");
        assert_eq!(version(place, "zlib-suite"), "1.2.13.dfsg");
    }
}
