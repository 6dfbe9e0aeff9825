//! libstdc++'s own tests, from gcc's sources: each is built natively and by `mullion c++`, and must return 0 in a domain if
//! it does so natively.

use crate::process::{self, Ended};
use crate::progress::{Progress, Verdict};
use crate::{Tested, pool};
use anyhow::{Context, bail};
use mullion_fetch::Lock;
use serde::Deserialize;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// `conformance libstdcxx`.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) tested: Tested,
    /// Only tests whose path contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Every nth test only (1: all), for a short run.
    #[arg(long, default_value_t = 1)]
    every: usize,
    /// Programs built and run at a time (0: one for each core).
    #[arg(long, default_value_t = 0)]
    jobs: usize,
    /// Seconds that one program may run.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Keeps what has passed in this file, and does not run it again with the same build of `mullion`.
    #[arg(long)]
    state: Option<PathBuf>,
    /// Where the tests are unpacked.
    #[arg(long, default_value = "build/libstdcxx")]
    directory: PathBuf,
}

/// Directories that hold no tests of the library's functions.
const LEFT_OUT: &[&str] = &["abi", "config", "data", "lib", "performance", "util"];
/// What all tests share, as the suite's own driver builds it.
const SHARED: &[&str] = &[
    "testsuite_allocator",
    "testsuite_character",
    "testsuite_hooks",
];
/// How all are compiled, as the suite does by default.
const FLAGS: &[&str] = &[
    "-O2",
    "-w",
    "-std=gnu++17",
    "-D_GLIBCXX_ASSERT",
    "-fmessage-length=0",
];

/// `libstdcxx.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    known: Vec<Explained>,
}

/// Tests that pass natively and not in a domain.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Explained {
    tests: Vec<String>,
    reason: String,
}

/// What came of one test.
#[derive(Debug, PartialEq)]
enum Outcome {
    Pass,
    /// The native build does not pass, so there is nothing to compare with.
    NotNative,
    NotBuilt(String),
    Failed(String),
}

/// One side of the comparison: a compiler, how it is asked, and what all tests share.
struct Side {
    compiler: PathBuf,
    first: Vec<String>,
    shared: Vec<PathBuf>,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<bool> {
    let known: Known =
        toml::from_str(include_str!("../libstdcxx.toml")).context("libstdcxx.toml")?;
    let tests = unpack(&options.directory)?;
    leave_permissions_out(&tests)?;
    let names = list(&tests, options)?;
    let native = side(
        PathBuf::from("g++"),
        &[],
        &tests,
        &options.directory,
        "native",
    )?;
    let mullion = options.tested.mullion.clone();
    let walled = side(mullion, &["c++"], &tests, &options.directory, "walled")?;
    let progress = match &options.state {
        Some(file) => Progress::open(file, &identity(options)?)?,
        None => Progress::default(),
    };
    let results = pool::map(&names, options.jobs, "libstdc++", |name| {
        let outcome = match progress.get(name) {
            Some(Verdict::Same) => Outcome::Pass,
            Some(Verdict::Skipped) => Outcome::NotNative,
            _ => one(options, &tests, name, &native, &walled)?,
        };
        let verdict = match &outcome {
            Outcome::Pass => Verdict::Same,
            Outcome::NotNative => Verdict::Skipped,
            Outcome::NotBuilt(said) | Outcome::Failed(said) => Verdict::Different(said.clone()),
        };
        progress.keep(name, verdict)?;
        anyhow::Ok(outcome)
    });
    let mut outcomes = Vec::new();
    for (name, outcome) in names.iter().zip(results) {
        outcomes.push((name.as_str(), outcome?));
    }
    Ok(report(&outcomes, &known.known))
}

/// Prints what is not explained, and the counts; true if all is.
fn report(outcomes: &[(&str, Outcome)], known: &[Explained]) -> bool {
    let (mut passed, mut explained, mut left_out, mut unexpected) = (0, 0, 0, 0);
    for (name, outcome) in outcomes {
        let reason = known
            .iter()
            .find(|it| it.tests.iter().any(|test| test == name));
        match (outcome, reason) {
            (Outcome::NotNative, _) => left_out += 1,
            (Outcome::Pass, None) => passed += 1,
            (Outcome::Pass, Some(_)) => {
                unexpected += 1;
                println!("UNEXPECTED {name}: passes, and libstdcxx.toml explains why it does not");
            }
            (Outcome::NotBuilt(_) | Outcome::Failed(_), Some(reason)) => {
                explained += 1;
                println!("known      {name}: {}", reason.reason);
            }
            (Outcome::NotBuilt(said), None) => {
                unexpected += 1;
                println!("NOT BUILT  {name}\n    {}", said.replace('\n', "\n    "));
            }
            (Outcome::Failed(said), None) => {
                unexpected += 1;
                println!("FAILED     {name}\n    {}", said.replace('\n', "\n    "));
            }
        }
    }
    println!(
        "libstdc++: {passed} of {} that pass natively pass in a domain, {explained} known and explained, {unexpected} \
         unexpected; {left_out} do not pass natively here",
        outcomes.len() - left_out
    );
    println!(
        "{passed} passed, {unexpected} failed, {} skipped",
        explained + left_out
    );
    unexpected == 0
}

/// What results depend on.
fn identity(options: &Options) -> anyhow::Result<String> {
    let mut hash = DefaultHasher::new();
    fs::read(&options.tested.mullion)?.hash(&mut hash);
    (FLAGS, options.seconds).hash(&mut hash);
    Ok(format!("libstdc++ {:016x}", hash.finish()))
}

/// Takes the tests out of gcc's archive, once.
fn unpack(directory: &Path) -> anyhow::Result<PathBuf> {
    let tests = std::path::absolute(directory)?.join("testsuite");
    if tests.join("28_regex").exists() {
        return Ok(tests);
    }
    let lock = Lock::parse(include_str!("../../sysroot/sources.toml"))?;
    let tree = mullion_fetch::fetch(lock.source("libstdc++")?)?;
    let mut entries = fs::read_dir(&tree)?.filter_map(|entry| Some(entry.ok()?.path()));
    // The package has the archives of newlib and of a front end for Modula-2, too.
    let archive = entries.find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("gcc-") && name.contains(".tar")
    });
    let archive = archive.with_context(|| format!("no archive in {}", tree.display()))?;
    fs::create_dir_all(directory)?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(&archive).arg("-C").arg(directory);
    tar.args([
        "--wildcards",
        "--strip-components=2",
        "*/libstdc++-v3/testsuite/*",
    ]);
    if !tar.status().context("tar")?.success() {
        bail!("tar could not read {}", archive.display());
    }
    Ok(tests)
}

/// Whose processes no permission of a file stops, natively and in a domain: the suite asks for the user's number, which
/// in a domain is nobody's.
fn leave_permissions_out(tests: &Path) -> anyhow::Result<()> {
    const ASKED: &str = "if (geteuid() != 0)";
    if fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(());
    }
    let file = tests.join("util/testsuite_fs.h");
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    fs::write(&file, text.replace(ASKED, "if (false)"))?;
    Ok(())
}

/// The tests that are programs, by their paths below `tests`.
fn list(tests: &Path, options: &Options) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(tests)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let own = LEFT_OUT.contains(&name.as_str()) || name.starts_with("libstdc++-");
        if entry.path().is_dir() && !own {
            below(&entry.path(), &name, &mut names)?;
        }
    }
    names.retain(|name| name.contains(&options.only));
    names.sort();
    Ok(names.into_iter().step_by(options.every.max(1)).collect())
}

fn below(directory: &Path, prefix: &str, names: &mut Vec<String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{prefix}/{name}");
        if path.is_dir() {
            below(&path, &name, names)?;
        } else if name.ends_with(".cc") && runs(&String::from_utf8_lossy(&fs::read(&path)?)) {
            names.push(name);
        }
    }
    Ok(())
}

/// Whether a test is a program to run, which is what the suite takes it for if it says nothing.
fn runs(text: &str) -> bool {
    let mut said = text
        .lines()
        .filter_map(|line| line.split_once("dg-do").map(|parts| parts.1));
    said.next()
        .is_none_or(|what| what.trim_start().starts_with("run"))
}

/// The options that a test asks for, where they are not for other machines.
fn flags(text: &str) -> Vec<String> {
    let mut flags = Vec::new();
    for line in text
        .lines()
        .filter(|line| line.contains("dg-options") || line.contains("dg-additional-options"))
    {
        let mut parts = line.split('"').skip(1);
        let (Some(options), target) = (parts.next(), parts.next().unwrap_or_default()) else {
            continue;
        };
        let here = ["x86_64", "*-*-*", "*-*-linux", "pthread", "c++"];
        if !target.contains("target") || here.iter().any(|name| target.contains(name)) {
            flags.extend(options.split_whitespace().map(str::to_owned));
        }
    }
    flags
}

/// Builds what all tests share.
fn side(
    compiler: PathBuf,
    first: &[&str],
    tests: &Path,
    directory: &Path,
    name: &str,
) -> anyhow::Result<Side> {
    let place = std::path::absolute(directory)?.join(name);
    fs::create_dir_all(&place)?;
    let mut side = Side {
        compiler,
        first: first.iter().map(|word| (*word).to_owned()).collect(),
        shared: Vec::new(),
    };
    for name in SHARED {
        let object = place.join(format!("{name}.o"));
        let mut command = side.command(tests);
        command
            .arg("-c")
            .arg(tests.join("util").join(format!("{name}.cc")));
        let ended = process::run(command.arg("-o").arg(&object), BUILD)?;
        if !ended.succeeded() {
            bail!("{name}: {}", ended.tail(20));
        }
        side.shared.push(object);
    }
    Ok(side)
}

/// How long a compilation may take.
const BUILD: Duration = Duration::from_secs(600);

impl Side {
    fn command(&self, tests: &Path) -> Command {
        let mut command = Command::new(&self.compiler);
        command.args(&self.first).args(FLAGS);
        command.arg("-I").arg(tests.join("util"));
        command
    }

    fn build(
        &self,
        tests: &Path,
        name: &str,
        flags: &[String],
        to: &Path,
    ) -> anyhow::Result<Ended> {
        let (libraries, flags): (Vec<&String>, Vec<&String>) =
            flags.iter().partition(|flag| flag.starts_with("-l"));
        let mut command = self.command(tests);
        command.args(flags).arg(tests.join(name)).args(&self.shared);
        Ok(process::run(
            command.args(libraries).arg("-o").arg(to),
            BUILD,
        )?)
    }
}

/// A directory with the suite's files of data, for one program.
fn place(tests: &Path) -> anyhow::Result<tempfile::TempDir> {
    let place = tempfile::tempdir()?;
    for entry in fs::read_dir(tests.join("data"))? {
        let file = entry?.path();
        fs::copy(
            &file,
            place.path().join(file.file_name().unwrap_or_default()),
        )?;
    }
    Ok(place)
}

fn one(
    options: &Options,
    tests: &Path,
    name: &str,
    native: &Side,
    walled: &Side,
) -> anyhow::Result<Outcome> {
    let limit = Duration::from_secs(options.seconds);
    let text = String::from_utf8_lossy(&fs::read(tests.join(name))?).into_owned();
    let flags = flags(&text);
    let work = tempfile::tempdir()?;
    let program = work.path().join("native");
    if !native.build(tests, name, &flags, &program)?.succeeded() {
        return Ok(Outcome::NotNative);
    }
    let data = place(tests)?;
    let ended = process::run(Command::new(&program).current_dir(data.path()), limit)?;
    if !ended.succeeded() {
        return Ok(Outcome::NotNative);
    }
    let image = work.path().join("program.mx");
    let built = walled.build(tests, name, &flags, &image)?;
    if !built.succeeded() {
        return Ok(Outcome::NotBuilt(built.tail(6)));
    }
    let data = place(tests)?;
    let here = data.path().display();
    let mut command = Command::new(&options.tested.mullion);
    command
        .arg("run")
        .args(["--clock", "--threads", "64", "--cwd", "."]);
    command.arg("--dir").arg(format!("{here}::{here}"));
    command.arg("--dir").arg(format!("{here}::/tmp"));
    command
        .args(["--env", "*"])
        .arg(&image)
        .current_dir(data.path());
    let ended = process::run(&mut command, limit)?;
    Ok(match ended.code() {
        Some(0) => Outcome::Pass,
        code => Outcome::Failed(format!("status {code:?}\n{}", ended.tail(6))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_run_is_what_the_suite_runs() {
        for text in [
            "// { dg-do run { target c++17 } }",
            "int main() {}",
            "//\n// { dg-do run }",
        ] {
            assert!(runs(text), "{text}");
        }
        for text in [
            "// { dg-do compile { target c++11 } }",
            "/* { dg-do link } */",
        ] {
            assert!(!runs(text), "{text}");
        }
    }

    #[test]
    fn options_of_other_machines_are_left_out() {
        let text = "// { dg-options \"-std=gnu++2a -g\" }\n\
                    // { dg-additional-options \"-pthread\" { target pthread } }\n\
                    // { dg-options \"-DITERATIONS=5\" { target simulator } }\n";
        assert_eq!(flags(text), ["-std=gnu++2a", "-g", "-pthread"]);
    }

    #[test]
    fn counts_are_of_what_passes_natively() {
        let known = [Explained {
            tests: vec!["b".to_owned()],
            reason: "so it is".to_owned(),
        }];
        let failed = || Outcome::Failed(String::new());
        let both = |b| [("a", Outcome::Pass), ("b", b), ("c", Outcome::NotNative)];
        assert!(report(&both(failed()), &known));
        assert!(!report(&both(Outcome::Pass), &known));
        assert!(!report(&both(failed()), &[]));
        let known: Known = toml::from_str(include_str!("../libstdcxx.toml")).unwrap();
        assert!(
            known
                .known
                .iter()
                .all(|it| !it.reason.is_empty() && !it.tests.is_empty())
        );
    }
}
