//! Where the framework runs: a copy of it for each kind of server, with an ordinary user as its owner.

use mullion_apache::{ALONE, Protection, STOCK, Set, Setup, library, sort};
use mullion_fetch::{Lock, SourceKind, fetch};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Other multi-processing modules.
const MPM: [&str; 3] = ["mpm_prefork", "mpm_worker", "mpm_event"];

/// Seconds behind which a program is ended that makes the copy or starts the server.
const PATIENCE: u32 = 600;

/// A module of the framework's own calls these by the names of their functions, which a module behind the wall does not show to others.
const CALLED: [&str; 1] = ["session"];

/// Scripts have these start programs, which the modules' own policies do not allow.
const STARTS_PROGRAMS: [&str; 1] = ["rewrite"];

/// Debian's `nobody`.
const USER: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];

pub(crate) struct Place {
    folder: PathBuf,
    framework: PathBuf,
    /// Perl's modules.
    perl: PathBuf,
    /// A script that takes longer is ended.
    seconds: u32,
    is_root: bool,
}

/// One kind of server.
pub(crate) struct Server<'p> {
    place: &'p Place,
    root: PathBuf,
    is_ready: bool,
}

fn io<T>(path: &Path, result: std::io::Result<T>) -> Result<T, Setup> {
    result.map_err(|cause| Setup::Io(path.to_path_buf(), cause))
}

/// Servers are another user then.
pub(crate) fn is_root() -> Result<bool, Setup> {
    let id = io(Path::new("id"), Command::new("id").arg("-u").output())?;
    Ok(id.stdout.starts_with(b"0\n"))
}

impl Place {
    pub(crate) fn new(folder: &Path, walled: &[String], seconds: u32) -> Result<Place, Setup> {
        let lock = Lock::parse(include_str!("../../../../sysroot/sources.toml"))?;
        let framework = fetch(lock.source("apache-suite")?)?.join("perl-framework");
        io(folder, fs::create_dir_all(folder))?;
        let perl = folder.join("perl");
        io(&perl, fs::create_dir_all(&perl))?;
        for source in &lock.sources {
            if source.kind != SourceKind::DebianPackage || !source.name.ends_with("-perl") {
                continue;
            }
            let done = perl.join(format!(".{}", source.name));
            if done.is_file() {
                continue;
            }
            match fetch(source) {
                Ok(tree) => {
                    for place in ["usr/share/perl5", "usr/lib/x86_64-linux-gnu/perl5/5.36"] {
                        let from = tree.join(place);
                        if from.is_dir() {
                            let mut copy = Command::new("cp");
                            copy.arg("-r").arg(from.join(".")).arg(&perl);
                            io(&from, copy.status())?;
                        }
                    }
                    io(&done, fs::write(&done, ""))?;
                }
                Err(error) => eprintln!("mullion: scripts that need it are skipped: {error}"),
            }
        }
        let place = Place {
            folder: folder.to_path_buf(),
            framework,
            perl,
            seconds,
            is_root: is_root()?,
        };
        place.wrapper(walled)?;
        Ok(place)
    }

    /// All scripts of the framework.
    pub(crate) fn scripts(&self) -> Result<Vec<String>, Setup> {
        let mut found = Vec::new();
        let mut folders = vec![self.framework.join("t")];
        while let Some(folder) = folders.pop() {
            for entry in io(&folder, fs::read_dir(&folder))?.flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "t")
                    && let Ok(name) = path.strip_prefix(&self.framework)
                {
                    found.push(name.display().to_string());
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// The program that the framework takes for httpd: it has modules loaded behind the wall, and starts Debian's.
    fn wrapper(&self, walled: &[String]) -> Result<(), Setup> {
        let names: Vec<&str> = walled.iter().map(String::as_str).collect();
        let set = Set::new(Protection::Write, &names)?;
        // The server is an ordinary user, who cannot read everybody's home.
        let shared = self.folder.join("walled");
        io(&shared, fs::create_dir_all(&shared))?;
        let copy = |from: &Path, name: &str| -> Result<PathBuf, Setup> {
            let to = shared.join(name);
            io(&to, fs::copy(from, &to))?;
            io(
                &to,
                fs::set_permissions(&to, fs::Permissions::from_mode(0o755)),
            )?;
            Ok(to)
        };
        let wall = copy(&library()?, "libmod_mullion.so")?;
        let mut edits = format!("1i LoadModule mullion_module {}\n", wall.display());
        for name in walled
            .iter()
            .filter(|name| !CALLED.contains(&name.as_str()))
        {
            let (file, policy) = set.files(name);
            let file = copy(&file, &format!("mod_{name}.so"))?;
            let policy = copy(&policy, &format!("mod_{name}.toml"))?;
            if STARTS_PROGRAMS.contains(&name.as_str()) {
                let text = io(&policy, fs::read_to_string(&policy))?;
                let text = text.replacen(
                    "\"@default\",",
                    "\"@default\", \"@processes\", \"@logs\",",
                    1,
                );
                io(&policy, fs::write(&policy, text))?;
            }
            let (file, policy) = (file.display(), policy.display());
            let _always = writeln!(
                edits,
                "s|^ *LoadModule {name}_module .*|MullionLoadModule {name}_module {file} {policy}|"
            );
        }
        let edits_at = shared.join("edits.sed");
        io(&edits_at, fs::write(&edits_at, edits))?;
        let script = format!(
            "#!/bin/sh\n\
             # The configuration behind -f, with modules behind the wall.\n\
             count=$#\n\
             while [ $count -gt 0 ]; do\n\
             \x20 word=$1; shift; count=$((count - 1))\n\
             \x20 if [ \"$last\" = -f ]; then sed -f {} \"$word\" > \"$word.walled\" || exit 1; word=$word.walled; fi\n\
             \x20 last=$word; set -- \"$@\" \"$word\"\n\
             done\n\
             exec /usr/sbin/apache2 \"$@\"\n",
            edits_at.display()
        );
        let at = shared.join("httpd");
        io(&at, fs::write(&at, script))?;
        io(
            &at,
            fs::set_permissions(&at, fs::Permissions::from_mode(0o755)),
        )
    }

    pub(crate) fn server(&self, walled: bool) -> Server<'_> {
        let kind = crate::table::kind(walled);
        Server {
            place: self,
            root: self.folder.join(format!("run-{kind}")),
            is_ready: false,
        }
    }
}

impl Server<'_> {
    /// A program as an ordinary user, in the framework's folder.
    fn command(&self, seconds: u32, words: &[&str]) -> Result<Output, Setup> {
        let mut command = match self.place.is_root {
            true => {
                let mut command = Command::new("setpriv");
                command.args(USER).arg("timeout");
                command
            }
            false => Command::new("timeout"),
        };
        let perl = [self.root.join("Apache-Test/lib"), self.place.perl.clone()];
        let perl = std::env::join_paths(perl).unwrap_or_default();
        let seconds = seconds.to_string();
        command.args(["-k", "10", &seconds]).args(words);
        command.current_dir(&self.root).stdin(Stdio::null());
        command.env("PERL5LIB", perl).env("HOME", &self.root);
        command
            .env("LC_ALL", "C")
            .env("APACHE_TEST_NO_STICKY_PREFERENCES", "1");
        io(Path::new(words[0]), command.output())
    }

    /// Makes the copy of the framework, if there is none.
    fn prepare(&mut self) -> Result<(), Setup> {
        if std::mem::replace(&mut self.is_ready, true) {
            return Ok(());
        }
        let done = self.root.join("made");
        if !done.is_file() {
            let (from, to) = (&self.place.framework, &self.root);
            let _old = fs::remove_dir_all(to);
            let mut copy = Command::new("cp");
            copy.arg("-r").arg(from).arg(to);
            io(Path::new("cp"), copy.status())?;
            io(
                &self.root,
                fs::write(self.root.join("modules.conf"), configuration()?),
            )?;
            if self.place.is_root {
                let mut own = Command::new("chown");
                own.args(["-R", "65534:65534"]).arg(to);
                io(Path::new("chown"), own.status())?;
            }
            let walled = self.place.folder.join("walled/httpd");
            let httpd = match self.root.ends_with("run-walled") {
                true => walled.display().to_string(),
                false => "/usr/sbin/apache2".to_owned(),
            };
            let conf = self.root.join("modules.conf").display().to_string();
            let words = [
                "perl",
                "Makefile.PL",
                "-httpd",
                &httpd,
                "-httpd_conf",
                &conf,
                "-apxs",
                "/usr/bin/apxs",
            ];
            let output = self.command(PATIENCE, &words)?;
            if !output.status.success() {
                return Err(Setup::Generate(last_words(&output)));
            }
            io(&done, fs::write(&done, ""))?;
        }
        self.start()
    }

    fn start(&self) -> Result<(), Setup> {
        let output = self.command(PATIENCE, &["perl", "t/TEST", "-start"])?;
        match output.status.success() {
            true => Ok(()),
            false => Err(Setup::Generate(format!(
                "the server does not start: {}",
                last_words(&output)
            ))),
        }
    }

    /// Runs a script: how many checks passed, and which did not; or why it was skipped.
    pub(crate) fn run(&mut self, script: &str) -> Result<String, Setup> {
        self.prepare()?;
        let log = self.root.join("t/logs/error_log");
        let before = fs::metadata(&log).map_or(0, |log| log.len());
        let words = ["perl", "t/TEST", "-verbose", "-run-tests", script];
        let output = self.command(self.place.seconds, &words)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        self.keep(script, &output, &read_behind(&log, before))?;
        if text.contains("httpd server") && text.contains("is not running") {
            self.start()?;
        }
        Ok(outcome(&text))
    }

    /// Keeps what the script and the server said, for the people who look for the reason.
    fn keep(&self, script: &str, output: &Output, log: &[u8]) -> Result<(), Setup> {
        let kind = crate::table::kind(self.root.ends_with("run-walled"));
        let said = self.place.folder.join(format!("said-{kind}"));
        io(&said, fs::create_dir_all(&said))?;
        let file = said.join(script.replace('/', "-"));
        let parts: [&[u8]; 4] = [
            &output.stdout,
            &output.stderr,
            b"\nThe server's log:\n",
            log,
        ];
        io(&file, fs::write(&file, parts.concat()))
    }
}

/// What a log got since it had so many bytes; all of it if it is shorter now.
fn read_behind(log: &Path, before: u64) -> Vec<u8> {
    let text = fs::read(log).unwrap_or_default();
    let before = usize::try_from(before).unwrap_or_default();
    text.get(before..).map_or(text.clone(), <[u8]>::to_vec)
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        if self.is_ready {
            let _gone = self.command(PATIENCE, &["perl", "t/TEST", "-stop"]);
        }
    }
}

fn last_words(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}

/// `LoadModule` lines of all of Debian's modules that can be together.
fn configuration() -> Result<String, Setup> {
    let mut names = Vec::new();
    for entry in io(Path::new(STOCK), fs::read_dir(STOCK))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let name = name
            .strip_prefix("mod_")
            .and_then(|name| name.strip_suffix(".so"));
        names.extend(name.map(str::to_owned));
    }
    names.retain(|name| ![&ALONE[..], &MPM[..]].concat().contains(&name.as_str()));
    sort(&mut names);
    names.insert(0, "mpm_event".to_owned());
    let mut text = String::from("ServerName localhost\nTypesConfig /etc/mime.types\n");
    for name in names {
        let _always = writeln!(text, "LoadModule {name}_module {STOCK}/mod_{name}.so");
    }
    Ok(text)
}

/// What the script's own lines say (the Test Anything Protocol).
fn outcome(text: &str) -> String {
    let mut passed = 0;
    let mut failed: Vec<&str> = Vec::new();
    let mut planned = None;
    let mut expected: Vec<&str> = Vec::new();
    for line in text.lines() {
        if let Some(plan) = line.strip_prefix("1..") {
            if let Some((_, why)) = plan.split_once("# ") {
                return format!(
                    "skipped: {}",
                    why.trim_start_matches("SKIP ")
                        .trim_start_matches("skipped: ")
                );
            }
            // Behind it may be numbers of checks that are expected to fail: `1..3 todo 2;`.
            let (count, behind) = plan.trim().split_once(' ').unwrap_or((plan.trim(), ""));
            planned = count.trim_end_matches(';').parse::<usize>().ok();
            let numbers = behind.trim_start_matches("todo ").trim_end_matches(';');
            expected = numbers.split_ascii_whitespace().collect();
        } else if let Some(rest) = line.strip_prefix("not ok ") {
            let number = rest.split(' ').next().unwrap_or_default();
            match rest.contains("# TODO") || rest.contains("# todo") || expected.contains(&number) {
                true => passed += 1,
                false => failed.push(number),
            }
        } else if let Some((_, why)) = line.split_once(" .. skipped: ") {
            return format!("skipped: {why}");
        } else if line.starts_with("ok ") {
            passed += 1;
        }
    }
    let missing = planned.map_or(0, |planned| planned.saturating_sub(passed + failed.len()));
    match (planned, failed.is_empty(), missing) {
        (None, ..) if passed + failed.len() > 0 => {
            format!(
                "{passed} passed, failed: {}, it ended before its plan",
                failed.join(" ")
            )
        }
        (None, ..) => "0 passed, it ended before its plan".to_owned(),
        (_, true, 0) => format!("{passed} passed"),
        (_, true, missing) => format!("{passed} passed, {missing} not run"),
        (_, false, 0) => format!("{passed} passed, failed: {}", failed.join(" ")),
        (_, false, missing) => {
            format!(
                "{passed} passed, failed: {}, {missing} not run",
                failed.join(" ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::outcome;

    #[test]
    fn lines_of_scripts_are_counted() {
        assert_eq!(outcome("1..3\nok 1\nok 2 - a\nok 3\n"), "3 passed");
        assert_eq!(
            outcome("1..3\nok 1\nnot ok 2\n"),
            "1 passed, failed: 2, 1 not run"
        );
        assert_eq!(
            outcome("1..3 todo 2 3;\nok 1\nnot ok 2\nok 3\n"),
            "3 passed"
        );
        assert_eq!(
            outcome("t/modules/sed.t .. skipped: no module\nResult: NOTESTS\n"),
            "skipped: no module"
        );
        assert_eq!(outcome("1..0 # skipped: no module\n"), "skipped: no module");
        assert_eq!(
            outcome("Can't locate\n"),
            "0 passed, it ended before its plan"
        );
    }
}
