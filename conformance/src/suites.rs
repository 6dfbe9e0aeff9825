//! Packages' own test suites, built by their own build systems natively and with `mullion cc`, and run as they are.

use crate::Tested;
use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use mullion_fetch::{Lock, Source};
use serde::Deserialize;
use std::fs::{self, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
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
    /// Where results are kept: a run that was stopped is taken up again, with the same build of `mullion`.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Leave the native builds out.
    #[arg(long)]
    walled: bool,
    /// Another list of suites, as conformance/suites.toml is one.
    #[arg(long, value_name = "FILE")]
    suites: Option<PathBuf>,
    /// Where the sources of that list are, as conformance/sources.toml lists them.
    #[arg(long, value_name = "FILE")]
    sources: Option<PathBuf>,
}

impl Options {
    fn suites(&self) -> anyhow::Result<Suites> {
        let Some(path) = &self.suites else {
            return toml::from_str(SUITES).context("suites.toml");
        };
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        toml::from_str(&text).with_context(|| path.display().to_string())
    }

    fn locks(&self) -> anyhow::Result<Locks> {
        let mut locks = Locks::own()?;
        if let Some(path) = &self.sources {
            let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
            locks.0.insert(0, Lock::parse(&text)?);
        }
        Ok(locks)
    }
}

const SUITES: &str = include_str!("../suites.toml");

/// The lock files in which sources are looked for, in turn.
struct Locks(Vec<Lock>);

impl Locks {
    /// Those that nothing but suites needs have a file of their own: `sysroot/sources.toml` is part of what the C library is
    /// made from, so a line there makes it anew.
    fn own() -> anyhow::Result<Self> {
        let texts = [
            include_str!("../sources.toml"),
            include_str!("../../sysroot/sources.toml"),
        ];
        let locks: std::result::Result<_, _> = texts.into_iter().map(Lock::parse).collect();
        Ok(Self(locks?))
    }

    fn source(&self, name: &str) -> anyhow::Result<&Source> {
        let mut found = self.0.iter().filter_map(|lock| lock.source(name).ok());
        found
            .next()
            .with_context(|| format!("no list has a source named {name}"))
    }
}

/// `suites.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Suites {
    suite: Vec<Suite>,
}

/// One package's suite.
#[derive(Deserialize, Hash)]
#[serde(deny_unknown_fields)]
struct Suite {
    name: String,
    /// Its name in `conformance/sources.toml` or `sysroot/sources.toml`.
    source: String,
    /// Sources that it needs besides, each in a directory of its tree that has its name.
    #[serde(default)]
    beside: Vec<String>,
    /// Whether it is part of the short form.
    #[serde(default)]
    quick: bool,
    /// Commands for a shell, in the library's directory.
    steps: Vec<String>,
    count: Count,
    /// How many tests must pass in a domain.
    tests: usize,
    /// How many must pass natively; as many, if it is not said.
    native: Option<usize>,
    /// Why they are more natively.
    why: Option<String>,
    /// Options of `mullion run` for its programs, besides those that all have.
    #[serde(default)]
    options: String,
    /// Tests of the suite that are left out.
    #[serde(default)]
    skipped: Vec<Skipped>,
}

/// How tests that passed are told from the output of the last step.
#[derive(Deserialize, Default, Hash)]
#[serde(deny_unknown_fields, default)]
struct Count {
    /// Each line that holds one of these is a test.
    lines: Vec<String>,
    /// The number behind each of these is that many tests.
    number: Vec<String>,
    /// The same of the number in front of each of these.
    before: Vec<String>,
}

/// A test that cannot run in a domain.
#[derive(Deserialize, Hash)]
#[serde(deny_unknown_fields)]
struct Skipped {
    test: String,
    reason: String,
}

/// What came of one suite.
#[derive(Debug, PartialEq)]
struct Result {
    version: String,
    programs: usize,
    /// `None`: not run.
    native: Option<usize>,
    passed: usize,
    seconds: f64,
}

/// Where a suite is built and run.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Native,
    Walled,
}

/// Results of earlier runs, by suite.
struct State {
    path: Option<PathBuf>,
    /// Of the command under test.
    build: u64,
    lines: Vec<String>,
}

impl State {
    fn open(options: &Options) -> anyhow::Result<Self> {
        let mut hash = DefaultHasher::new();
        fs::read(&options.tested.mullion)?.hash(&mut hash);
        options.walled.hash(&mut hash);
        let text = match &options.state {
            Some(path) => fs::read_to_string(path).unwrap_or_default(),
            None => String::new(),
        };
        Ok(Self {
            path: options.state.clone(),
            build: hash.finish(),
            lines: text.lines().map(str::to_owned).collect(),
        })
    }

    /// What a result depends on: the build, and what the suite's entry says of how it is run.
    fn key(&self, suite: &Suite) -> String {
        let mut hash = DefaultHasher::new();
        (self.build, &suite.source, &suite.steps).hash(&mut hash);
        (&suite.count, &suite.options).hash(&mut hash);
        for source in &suite.beside {
            source.hash(&mut hash);
        }
        format!("{} {:016x}", suite.name, hash.finish())
    }

    /// A result that is as the entry expects. Any other is not taken up: that suite runs again.
    fn get(&self, suite: &Suite) -> Option<Result> {
        let key = self.key(suite);
        let lines = self.lines.iter().rev();
        let mut results = lines.filter_map(|line| Result::read(line.strip_prefix(&key)?));
        results.find(|result| result.check(suite).is_ok())
    }

    /// Writes down what was counted, expected or not: if the entry is mended, it need not run again.
    fn keep(&self, suite: &Suite, result: &Result) -> anyhow::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let file = OpenOptions::new().append(true).create(true).open(path);
        let mut file = file.with_context(|| path.display().to_string())?;
        let native = result
            .native
            .map_or("-".to_owned(), |count| count.to_string());
        writeln!(
            file,
            "{} {} {} {native} {} {:.1}",
            self.key(suite),
            result.version,
            result.programs,
            result.passed,
            result.seconds
        )?;
        Ok(())
    }
}

impl Result {
    /// Whether as many tests passed on each side as the entry says.
    fn check(&self, suite: &Suite) -> anyhow::Result<()> {
        let expected = suite.native.unwrap_or(suite.tests);
        let native = self.native.unwrap_or(expected);
        if (native, self.passed) != (expected, suite.tests) {
            bail!(
                "{native} tests passed natively and {} in domains, {expected} and {} were expected",
                self.passed,
                suite.tests
            );
        }
        Ok(())
    }

    /// What `State::keep` wrote behind the key; a line that was cut off is none.
    fn read(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [version, programs, native, passed, seconds] = words.as_slice() else {
            return None;
        };
        Some(Self {
            version: (*version).to_owned(),
            programs: programs.parse().ok()?,
            native: match *native {
                "-" => None,
                count => Some(count.parse().ok()?),
            },
            passed: passed.parse().ok()?,
            seconds: seconds.parse().ok()?,
        })
    }
}

/// How much of a failed step's output is shown, in lines.
const SHOWN: usize = 40;
/// How long one step may take, in seconds.
const LONGEST: &str = "3600";
pub(crate) fn run(options: &Options) -> anyhow::Result<bool> {
    let suites = options.suites()?;
    let locks = options.locks()?;
    if let Some(name) = options
        .only
        .iter()
        .find(|name| suites.suite.iter().all(|suite| suite.name != **name))
    {
        bail!("the list has no suite named {name}");
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
        "{:<12} {:<14} {:>8} {:>7} {:>7} {:>8}",
        "package", "version", "programs", "native", "walled", "time"
    );
    let state = State::open(options)?;
    let (mut passed, mut failed) = (0, 0);
    for suite in &chosen {
        let result = match state.get(suite) {
            Some(known) => Ok(known),
            None => one(options, suite, &locks, &directory).and_then(|result| {
                state.keep(suite, &result)?;
                result.check(suite)?;
                Ok(result)
            }),
        };
        match result {
            Ok(result) => {
                passed += result.passed;
                println!(
                    "{:<12} {:<14} {:>8} {:>7} {:>7} {:>6.1} s",
                    suite.name,
                    result.version,
                    result.programs,
                    result
                        .native
                        .map_or("-".to_owned(), |count| count.to_string()),
                    result.passed,
                    result.seconds
                );
            }
            Err(error) => {
                failed += 1;
                println!("{:<12} FAILED: {error:#}", suite.name);
            }
        }
    }
    let skipped: Vec<(&str, &Skipped)> = chosen
        .iter()
        .flat_map(|suite| suite.skipped.iter().map(|s| (suite.name.as_str(), s)))
        .collect();
    for (name, skipped) in &skipped {
        println!("skipped      {name} {}: {}", skipped.test, skipped.reason);
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

/// Builds and runs one suite on each side, in fresh copies of its sources.
fn one(
    options: &Options,
    suite: &Suite,
    locks: &Locks,
    directory: &Path,
) -> anyhow::Result<Result> {
    let start = Instant::now();
    let unpacked = mullion_fetch::fetch(locks.source(&suite.source)?)?;
    let mut beside = Vec::new();
    for name in &suite.beside {
        beside.push((name, mullion_fetch::fetch(locks.source(name)?)?));
    }
    let fresh = |name: &str| {
        let tree = directory.join(name);
        if tree.exists() {
            fs::remove_dir_all(&tree).with_context(|| tree.display().to_string())?;
        }
        copy(&unpacked, &tree)?;
        for (name, unpacked) in &beside {
            copy(unpacked, &tree.join(name))?;
        }
        fs::create_dir_all(tree.join(TEMPORARY))?;
        anyhow::Ok(tree)
    };
    let native = match options.walled {
        true => None,
        false => {
            let tree = fresh(&format!("{}-native", suite.name))?;
            let said = steps(options, suite, &tree, Side::Native).context("natively")?;
            Some(suite.count.tests(&said))
        }
    };
    let tree = fresh(&suite.name)?;
    let said = steps(options, suite, &tree, Side::Walled)?;
    let programs = verify_all(&options.tested.mullion, &tree, &unpacked)?;
    Ok(Result {
        version: version(&unpacked, &suite.source),
        programs,
        native,
        passed: suite.count.tests(&said),
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// A copy of sources, with their times: what is older than what it was made from would be made again.
fn copy(unpacked: &Path, tree: &Path) -> anyhow::Result<()> {
    let copied = Command::new("cp")
        .arg("-a")
        .arg(unpacked)
        .arg(tree)
        .status()?;
    if !copied.success() {
        bail!("cp -a {} {}", unpacked.display(), tree.display());
    }
    Ok(())
}

/// Where a package's programs have temporary files: `/tmp` to those in a domain.
const TEMPORARY: &str = ".temporary";

/// All commands of a suite; what the last one said.
fn steps(options: &Options, suite: &Suite, tree: &Path, side: Side) -> anyhow::Result<String> {
    let bar = ProgressBar::new(suite.steps.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{prefix:10} [{bar:40}] {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar.set_prefix(suite.name.clone());
    bar.enable_steady_tick(Duration::from_millis(200));
    let mut said = String::new();
    for command in &suite.steps {
        bar.set_message(command.clone());
        said = step(options, suite, command, tree, side)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(said)
}

/// One command of a suite; what it said, or an error with the end of that. The status of a command with `-` in front
/// does not count, as in a makefile: then the tests that passed do.
fn step(
    options: &Options,
    suite: &Suite,
    command: &str,
    tree: &Path,
    side: Side,
) -> anyhow::Result<String> {
    let (command, counts) = match command.strip_prefix('-') {
        Some(command) => (command, false),
        None => (command, true),
    };
    let whole = tree.display();
    let mut shell = Command::new("timeout");
    shell
        .args([LONGEST, "bash", "-c"])
        .arg(format!("({command}) 2>&1"))
        .current_dir(tree)
        .env("TMPDIR", tree.join(TEMPORARY))
        .env("LC_ALL", "C.UTF-8")
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL");
    if side == Side::Walled {
        let mut path = tools(options)?.into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let run = format!(
            "--clock --cwd . --dir {whole}::{whole} --dir {whole}/{TEMPORARY}::/tmp --env * {}",
            suite.options
        );
        shell
            .env("PATH", path)
            .env("CC", "mullion-cc")
            .env("CXX", "mullion-c++")
            .env("MULLION_RUN", run);
    } else {
        shell.env("CC", "gcc").env("CXX", "g++");
    }
    let (status, said) = whole_output(&mut shell)?;
    if status.success() || !counts {
        return Ok(said);
    }
    let lines: Vec<&str> = said.lines().collect();
    let end = lines[lines.len().saturating_sub(SHOWN)..].join("\n    ");
    bail!("{command}: {status}\n    {end}")
}

/// How `timeout` ended, and what was said until then. A test may leave a program behind that waits for ever, and has the
/// output open. So that is a file, not a pipe; and what is left is ended, since `timeout` makes a group of its own of all that it
/// starts.
fn whole_output(timeout: &mut Command) -> anyhow::Result<(ExitStatus, String)> {
    let mut file = tempfile::tempfile()?;
    let stdin = Stdio::null();
    let mut child = (timeout.stdin(stdin).stdout(file.try_clone()?).spawn()).context("timeout")?;
    let status = child.wait()?;
    // There may be nobody left.
    let _left = Command::new("kill")
        .args(["-KILL", "--", &format!("-{}", child.id())])
        .stderr(Stdio::null())
        .status();
    let mut said = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut said)?;
    Ok((status, String::from_utf8_lossy(&said).into_owned()))
}

/// The compilers' names as one word each, which some build systems ask for.
fn tools(options: &Options) -> anyhow::Result<PathBuf> {
    let directory = fs::canonicalize(&options.directory)?.join(".tools");
    fs::create_dir_all(&directory)?;
    for name in ["mullion", "mullion-cc", "mullion-c++"] {
        let link = directory.join(name);
        let _absent = fs::remove_file(&link);
        std::os::unix::fs::symlink(&options.tested.mullion, &link)?;
    }
    // No program in a domain runs under valgrind; suites ask it about `true` and skip what needs it.
    let valgrind = directory.join("valgrind");
    let _absent = fs::remove_file(&valgrind);
    std::os::unix::fs::symlink("/bin/false", &valgrind)?;
    Ok(directory)
}

/// Verifies every program below `tree`, and counts them: an image that verifies holds no system call, so
/// what it printed it printed from a domain. Programs of CMake's own are verified but not counted. A file that is as the
/// package delivers it is the suite's data: a program of another machine to compress, say.
fn verify_all(mullion: &Path, tree: &Path, unpacked: &Path) -> anyhow::Result<usize> {
    let mut programs = Vec::new();
    find_programs(tree, &mut programs)?;
    programs.retain(|program| !is_delivered(program, tree, unpacked));
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

/// Whether the package delivers a file of the tree, as it is.
fn is_delivered(program: &Path, tree: &Path, unpacked: &Path) -> bool {
    let delivered = (program.strip_prefix(tree)).map(|name| unpacked.join(name));
    let bytes = delivered.ok().and_then(|file| fs::read(file).ok());
    bytes.is_some_and(|bytes| fs::read(program).is_ok_and(|built| built == bytes))
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
        let before = self.before.iter().flat_map(|mark| {
            let parts = said.split(mark.as_str());
            let ends = parts.clone().count().saturating_sub(1);
            parts.take(ends).filter_map(trailing_number)
        });
        lines + numbers.chain(before).sum::<usize>()
    }
}

fn leading_number(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..digits].parse().ok()
}

fn trailing_number(text: &str) -> Option<usize> {
    let digits = text.bytes().rev().take_while(u8::is_ascii_digit).count();
    text[text.len() - digits..].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_by_lines_and_numbers() {
        let count = Count {
            lines: vec!["Passed".to_owned()],
            number: vec!["Checks: ".to_owned()],
            before: vec![" right".to_owned()],
        };
        let said = "1/2 a Passed\n2/2 b ***Failed\n100%: Checks: 345, Failed: 0\nChecks: 5\n37 right, 2 wrong\n";
        assert_eq!(count.tests(said), 388);
        assert_eq!(count.tests(""), 0);
    }

    #[test]
    fn what_a_step_leaves_behind_is_not_waited_for() {
        let mut shell = Command::new("timeout");
        shell.args(["60", "sh", "-c", "sleep 1000 & echo $!; exit 3"]);
        let (status, said) = whole_output(&mut shell).unwrap();
        assert_eq!(status.code(), Some(3));
        let number: u32 = said.trim().parse().unwrap();
        // It is gone soon, or nobody has asked yet how it ended. Otherwise this does not end.
        let state = || fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        while !state().is_empty() && !state().contains(") Z ") {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_program_is_data_only_as_it_was_delivered() {
        let directory = tempfile::tempdir().unwrap();
        let [tree, unpacked] = ["tree", "unpacked"].map(|name| directory.path().join(name));
        for place in [&tree, &unpacked] {
            fs::create_dir(place).unwrap();
            fs::write(place.join("data"), b"\x7fELF as delivered").unwrap();
            fs::write(place.join("changed"), b"\x7fELF as delivered").unwrap();
        }
        for name in ["changed", "built"] {
            fs::write(tree.join(name), b"\x7fELF as built").unwrap();
        }
        let is_data = |name: &str| is_delivered(&tree.join(name), &tree, &unpacked);
        assert_eq!(
            ["data", "changed", "built"].map(is_data),
            [true, false, false]
        );
    }

    #[test]
    fn every_suite_has_its_source() {
        let suites: Suites = toml::from_str(SUITES).unwrap();
        let locks = Locks::own().unwrap();
        for suite in &suites.suite {
            for source in std::iter::once(&suite.source).chain(&suite.beside) {
                locks.source(source).unwrap();
            }
            assert!(suite.tests > 0, "{}", suite.name);
            let fewer = suite.native.is_some_and(|native| native > suite.tests);
            assert_eq!(fewer, suite.why.is_some(), "{}", suite.name);
        }
        assert!(suites.suite.iter().any(|suite| suite.quick));
    }

    #[test]
    fn a_result_is_taken_up_by_the_same_build_and_a_fitting_entry_only() {
        let directory = tempfile::tempdir().unwrap();
        let mut suites: Suites = toml::from_str(SUITES).unwrap();
        let mut suite = suites.suite.remove(0);
        let path = directory.path().join("state");
        let state = |build| State {
            path: Some(path.clone()),
            build,
            lines: fs::read_to_string(&path)
                .unwrap_or_default()
                .lines()
                .map(str::to_owned)
                .collect(),
        };
        let result = Result {
            version: "1.2".to_owned(),
            programs: 4,
            native: None,
            passed: suite.tests,
            seconds: 2.5,
        };
        state(7).keep(&suite, &result).unwrap();
        assert_eq!(state(7).get(&suite), Some(result));
        assert_eq!(state(8).get(&suite), None);
        suite.tests += 1;
        assert_eq!(state(7).get(&suite), None);
        suite.tests -= 1;
        assert!(state(7).get(&suite).is_some());
        suite.beside.push("zlib-suite".to_owned());
        assert_eq!(state(7).get(&suite), None);
        suite.beside.clear();
        suite.steps.push("make check".to_owned());
        assert_eq!(state(7).get(&suite), None);
        assert_eq!(Result::read(" 1.2 4 - 16"), None);
    }

    #[test]
    fn a_version_is_read_off_the_directory() {
        let place = Path::new("/c/zlib-suite-1.2.13.dfsg-71feb7947e3c");
        assert_eq!(version(place, "zlib-suite"), "1.2.13.dfsg");
    }
}
