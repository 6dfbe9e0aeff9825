//! From a recipe to a directory that a host's developer can use.

use crate::{GetError, Recipe};
use indicatif::{ProgressBar, ProgressStyle};
use mullion_fetch::{Lock, cache_directory};
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// What recipes are carried out with.
#[derive(Debug)]
pub struct Kitchen<'a> {
    /// The `mullion` command.
    pub command: &'a Path,
    /// Which sources there are, and with which digests.
    pub lock: &'a Lock,
}

/// How much of a failed step's output an error holds, in bytes.
const SHOWN: u64 = 2000;
/// How long one step may take, in seconds.
const LONGEST: &str = "3600";

/// Makes `recipe` ready in `into`: the image, its interface, stubs for hosts, the example and the licences.
/// What was made before, by this very `mullion`, comes from the cache.
///
/// The library's own build system runs on this machine with the rights of whoever called, as every package's does.
/// Programs that it compiles and runs are in a domain.
///
/// # Errors
/// `into` has files already, and `replace` is not set; no source, a step that failed, a full disk.
pub fn make(
    kitchen: &Kitchen<'_>,
    recipe: &Recipe,
    into: &Path,
    replace: bool,
) -> Result<(), GetError> {
    let occupied = fs::read_dir(into).is_ok_and(|mut entries| entries.next().is_some());
    if occupied && !replace {
        return Err(GetError::Occupied(into.to_path_buf()));
    }
    let made = cooked(kitchen, recipe)?;
    fs::create_dir_all(into).map_err(|cause| GetError::io(into, cause))?;
    copy(&made, into)
}

/// The finished directory in the cache.
fn cooked(kitchen: &Kitchen<'_>, recipe: &Recipe) -> Result<PathBuf, GetError> {
    let cache = cache_directory()?.join("get");
    let place = cache.join(format!("{}-{}", recipe.name, key(kitchen, recipe)?));
    if place.is_dir() {
        return Ok(place);
    }
    fs::create_dir_all(&cache).map_err(|cause| GetError::io(&cache, cause))?;
    let lock = cache.join(format!(".{}.lock", recipe.name));
    let guard = File::create(&lock).map_err(|cause| GetError::io(&lock, cause))?;
    guard.lock().map_err(|cause| GetError::io(&lock, cause))?;
    if place.is_dir() {
        return Ok(place);
    }
    let work = tempfile::Builder::new()
        .prefix(".get-")
        .tempdir_in(&cache)
        .map_err(|cause| GetError::io(&cache, cause))?;
    let bar = bar(recipe);
    let mut cook = Cook {
        kitchen,
        recipe,
        work: work.path(),
        log: cache.join(format!("{}.log", recipe.name)),
        bar: &bar,
    };
    cook.all()?;
    bar.finish_and_clear();
    let done = work.path().join("done");
    fs::rename(&done, &place).map_err(|cause| GetError::io(&place, cause))?;
    Ok(place)
}

/// What a result depends on: the recipe, the sources, and the command that compiles.
fn key(kitchen: &Kitchen<'_>, recipe: &Recipe) -> Result<String, GetError> {
    let mut hash = Sha256::new();
    let (_, header) = recipe.header;
    for text in [recipe.text, header, recipe.glue, recipe.host] {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    }
    for name in &recipe.sources {
        for release in &kitchen.lock.source(name)?.releases {
            hash.update(&release.sha256);
        }
    }
    hash.update(mullion_fetch::digest(kitchen.command)?);
    let digest = hash.finalize();
    Ok(digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

fn bar(recipe: &Recipe) -> ProgressBar {
    // Sources, steps, the link, the proof.
    let bar = ProgressBar::new((recipe.sources.len() + recipe.steps.len() + 2) as u64);
    if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:30}] {elapsed} {wide_msg}") {
        bar.set_style(style);
    }
    bar.set_prefix(recipe.name);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// One library in the making.
struct Cook<'a> {
    kitchen: &'a Kitchen<'a>,
    recipe: &'a Recipe,
    work: &'a Path,
    log: PathBuf,
    bar: &'a ProgressBar,
}

impl Cook<'_> {
    fn all(&mut self) -> Result<(), GetError> {
        let done = self.work.join("done");
        for directory in [&done, &self.work.join(TOOLS), &self.work.join(TEMPORARY)] {
            fs::create_dir_all(directory).map_err(|cause| GetError::io(directory, cause))?;
        }
        for name in ["mullion", "mullion-cc", "mullion-c++"] {
            let link = self.work.join(TOOLS).join(name);
            std::os::unix::fs::symlink(self.kitchen.command, &link)
                .map_err(|cause| GetError::io(&link, cause))?;
        }
        File::create(&self.log).map_err(|cause| GetError::io(&self.log, cause))?;
        for source in &self.recipe.sources {
            self.fetch(source, &done)?;
        }
        for step in &self.recipe.steps {
            self.shell(step)?;
        }
        self.bind(&done)?;
        self.link()?;
        let image = format!("done/{}.mx", self.recipe.name);
        self.shell(&format!("mullion verify {image}"))
    }

    /// A copy of a source, for the build may write into it, and its licences.
    fn fetch(&self, name: &str, done: &Path) -> Result<(), GetError> {
        self.bar.set_message(format!("sources of {name}"));
        let unpacked = mullion_fetch::fetch(self.kitchen.lock.source(name)?)?;
        let tree = self.work.join(name);
        fs::create_dir_all(&tree).map_err(|cause| GetError::io(&tree, cause))?;
        copy(&unpacked, &tree)?;
        let licences = done.join("licences").join(name);
        fs::create_dir_all(&licences).map_err(|cause| GetError::io(&licences, cause))?;
        let entries = fs::read_dir(&tree).map_err(|cause| GetError::io(&tree, cause))?;
        for entry in entries.flatten() {
            let file = entry.file_name();
            if entry.path().is_file() && is_licence(&file.to_string_lossy()) {
                let place = licences.join(&file);
                fs::copy(entry.path(), &place).map_err(|cause| GetError::io(&place, cause))?;
            }
        }
        let note = format!("{}\n", self.kitchen.lock.source(name)?.licence);
        write(&licences.join("SPDX"), &note)?;
        self.bar.inc(1);
        Ok(())
    }

    /// The interface and its stubs.
    fn bind(&self, done: &Path) -> Result<(), GetError> {
        let (header, text) = &self.recipe.header;
        let place = done.join(header);
        write(&place, text)?;
        write(&self.work.join("glue.c"), self.recipe.glue)?;
        let failed = |cause| GetError::Bind {
            header: header.clone(),
            cause,
        };
        let interface = mullion_bind::read(&place, &[]).map_err(failed)?;
        let stem = self.recipe.stem();
        write(
            &self.work.join("records.c"),
            &mullion_bind::extension(&interface, header),
        )?;
        let stubs = mullion_bind::c(&interface, header).map_err(failed)?;
        write(&done.join(format!("{stem}_host.h")), &stubs)?;
        write(
            &done.join(format!("{stem}.rs")),
            &mullion_bind::rust(&interface, header),
        )?;
        write(&done.join("host.c"), self.recipe.host)
    }

    fn link(&self) -> Result<(), GetError> {
        let include: Vec<String> = self
            .recipe
            .include
            .iter()
            .map(|directory| format!("-I{directory}"))
            .collect();
        self.shell(&format!(
            "$CC --mullion-kind=extension -g -O2 -Idone {} glue.c records.c {} -o done/{}.mx",
            include.join(" "),
            self.recipe.archives.join(" "),
            self.recipe.name
        ))
    }

    /// Runs a command in the directory of the build. What it says goes to the log.
    fn shell(&self, command: &str) -> Result<(), GetError> {
        self.bar.set_message(command.to_owned());
        let mut log = File::options()
            .append(true)
            .read(true)
            .open(&self.log)
            .map_err(|cause| GetError::io(&self.log, cause))?;
        let handle = || {
            log.try_clone()
                .map_err(|cause| GetError::io(&self.log, cause))
        };
        let whole = self.work.display();
        let mut path = self.work.join(TOOLS).into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin")));
        let status = Command::new("timeout")
            .args([LONGEST, "bash", "-c", command])
            .current_dir(self.work)
            .env("PATH", path)
            .env("CC", "mullion-cc")
            .env("CXX", "mullion-c++")
            .env("LC_ALL", "C.UTF-8")
            .env("TMPDIR", self.work.join(TEMPORARY))
            .env(
                "MULLION_RUN",
                format!("--clock --cwd . --dir {whole}::{whole}"),
            )
            .env_remove("MAKEFLAGS")
            .env_remove("MAKELEVEL")
            .env_remove("CFLAGS")
            .env_remove("CPPFLAGS")
            .env_remove("LDFLAGS")
            .stdin(Stdio::null())
            .stdout(handle()?)
            .stderr(handle()?)
            .status()
            .map_err(|cause| GetError::io(Path::new("timeout"), cause))?;
        self.bar.inc(1);
        if status.success() {
            return Ok(());
        }
        Err(GetError::Step {
            command: command.to_owned(),
            status,
            said: end(&mut log).map_err(|cause| GetError::io(&self.log, cause))?,
            log: self.log.clone(),
        })
    }
}

/// Where the compilers are called by one word each, as some build systems ask.
const TOOLS: &str = ".tools";
/// Temporary files of the build.
const TEMPORARY: &str = ".temporary";

/// The last lines of a log.
fn end(log: &mut File) -> std::io::Result<String> {
    let length = log.metadata()?.len();
    log.seek(SeekFrom::Start(length.saturating_sub(SHOWN)))?;
    let mut bytes = Vec::new();
    log.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // The first line may be a part of one.
    let whole = match text.split_once('\n') {
        Some((_, rest)) if length > SHOWN => rest,
        _ => &text,
    };
    Ok(whole.trim_end().replace('\n', "\n  "))
}

fn is_licence(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    [
        "COPYING",
        "COPYRIGHT",
        "LICENSE",
        "LICENCE",
        "NOTICE",
        "PATENTS",
    ]
    .iter()
    .any(|begin| name.starts_with(begin))
}

fn write(path: &Path, text: &str) -> Result<(), GetError> {
    fs::write(path, text).map_err(|cause| GetError::io(path, cause))
}

/// What `from` holds, into `to`, with its times: what is older than what it was made from would be made again.
fn copy(from: &Path, to: &Path) -> Result<(), GetError> {
    let status = Command::new("cp")
        .arg("-a")
        .arg(from.join("."))
        .arg(to)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(GetError::io(
            to,
            std::io::Error::other(format!("cp -a: {status}")),
        )),
        Err(cause) => Err(GetError::io(Path::new("cp"), cause)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_are_known_by_their_names() {
        assert!(is_licence("COPYING"));
        assert!(is_licence("LICENSE.md"));
        assert!(is_licence("Copyright.txt"));
        assert!(!is_licence("README"));
    }

    #[test]
    fn a_directory_with_files_is_left_alone() {
        let place = tempfile::tempdir().expect("a directory");
        let own = place.path().join("own.c");
        fs::write(&own, "mine").expect("written");
        let lock = Lock::parse(include_str!("../../../../sysroot/sources.toml")).expect("a lock");
        let kitchen = Kitchen {
            command: Path::new("/bin/false"),
            lock: &lock,
        };
        let recipe = Recipe::named("zlib").expect("a recipe");
        let error = make(&kitchen, &recipe, place.path(), false).expect_err("it is occupied");
        assert!(matches!(error, GetError::Occupied(_)), "{error}");
        assert_eq!(fs::read_to_string(own).expect("it is there"), "mine");
    }

    #[test]
    fn the_end_of_a_long_log_begins_with_a_whole_line() {
        let mut log = tempfile::tempfile().expect("a file");
        let lines: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        std::io::Write::write_all(&mut log, lines.as_bytes()).expect("written");
        let said = end(&mut log).expect("read");
        assert!(
            said.starts_with("line ") && said.ends_with("line 999"),
            "{said}"
        );
        assert!(said.len() < 3000);
    }
}
