//! Debian and Ubuntu packages, by apt-get, as any user: apt's lists and caches
//! go to a private directory of the cache, and its sources are the system's own entries for
//! the system's own release, with source packages switched on.

use crate::{FetchError, Source, SourceKind, cache, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The upstream archive (`.orig.tar.*`) of a source package, or Debian's own (`.debian.tar.*`).
pub(crate) fn download_source(source: &Source, work: &Path) -> Result<PathBuf, FetchError> {
    let apt = Apt::prepare(work)?;
    let answer = run(apt
        .get(work)
        .args(["source", "--download-only"])
        .arg(&source.package));
    let archive = match part(source, work)? {
        Some(archive) => Some(archive),
        None => older(&apt, source, work)?,
    };
    // A mirror that is behind its lists lacks Debian's own part of a package, and apt-get fails;
    // upstream's archive is there all the same, and its digest says whether it is the right one.
    match (archive, answer) {
        (Some(archive), _) => Ok(archive),
        (None, Err(error)) => Err(error),
        (None, Ok(_)) => Err(missing(source, "archive of the source")),
    }
}

/// The part of a source package that is wanted, if it was downloaded.
fn part(source: &Source, work: &Path) -> Result<Option<PathBuf>, FetchError> {
    let kind = match source.kind {
        SourceKind::DebianPackaging => ".debian.tar.",
        _ => ".orig.tar.",
    };
    find(work, |name| {
        name.starts_with(&source.package) && name.contains(kind) && !name.ends_with(".asc")
    })
}

/// Of another version that the lists have and the lock accepts: mirrors may lack the source of the latest one.
fn older(apt: &Apt, source: &Source, work: &Path) -> Result<Option<PathBuf>, FetchError> {
    let Ok(stanzas) = run(apt.cache(work).arg("showsrc").arg(&source.package)) else {
        return Ok(None);
    };
    for version in accepted(&stanzas, source) {
        let wanted = format!("{}={version}", source.package);
        let answer = run(apt.get(work).args(["source", "--download-only", &wanted]));
        let archive = part(source, work)?;
        if archive.is_some() || answer.is_ok() {
            return Ok(archive);
        }
    }
    Ok(None)
}

/// Debian's versions of releases that the lock lists: by upstream's version, or by Debian's own if that is listed.
fn accepted<'a>(stanzas: &'a str, source: &Source) -> Vec<&'a str> {
    let versions = stanzas
        .lines()
        .filter_map(|line| line.strip_prefix("Version: "));
    let listed = |version: &&str| {
        let upstream = version.rsplit_once('-').map_or(*version, |parts| parts.0);
        let upstream = upstream.split_once(':').map_or(upstream, |parts| parts.1);
        let mut releases = source.releases.iter();
        releases.any(|release| [upstream, version].contains(&release.version.as_str()))
    };
    versions.filter(listed).collect()
}

/// A binary package (`.deb`).
pub(crate) fn download_package(source: &Source, work: &Path) -> Result<PathBuf, FetchError> {
    let apt = Apt::prepare(work)?;
    run(apt.get(work).arg("download").arg(&source.package))?;
    find(work, |name| {
        name.starts_with(&source.package) && name.ends_with(".deb")
    })?
    .ok_or_else(|| missing(source, ".deb file"))
}

fn missing(source: &Source, wanted: &str) -> FetchError {
    FetchError::Missing {
        name: source.name.clone(),
        wanted: format!("{wanted} of {}", source.package),
    }
}

fn find(directory: &Path, wanted: impl Fn(&str) -> bool) -> Result<Option<PathBuf>, FetchError> {
    let entries = fs::read_dir(directory).map_err(|cause| FetchError::io(directory, cause))?;
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut fitting = paths.filter(|path| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(&wanted)
    });
    Ok(fitting.next())
}

/// Lists are got again after so long.
const FRESH: Duration = Duration::from_secs(3600);

fn is_fresh(file: &Path) -> bool {
    let changed = fs::metadata(file).and_then(|data| data.modified());
    changed.is_ok_and(|time| time.elapsed().is_ok_and(|age| age < FRESH))
}

/// A private state of apt, in the cache: several packages of one run share its lists.
struct Apt {
    root: PathBuf,
}

impl Apt {
    /// Makes the directories, derives the sources, and gets the lists.
    fn prepare(work: &Path) -> Result<Self, FetchError> {
        let cache = cache::cache_directory()?;
        let root = cache.join("apt");
        fs::create_dir_all(&root).map_err(|cause| FetchError::io(&root, cause))?;
        let _guard = cache::lock(&root.join("lock"))?;
        for directory in ["lists/partial", "cache/archives/partial", "sources"] {
            let directory = root.join(directory);
            fs::create_dir_all(&directory).map_err(|cause| FetchError::io(&directory, cause))?;
        }
        let apt = Self { root };
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let codename = codename(&release).unwrap_or_default();
        apt.derive(Path::new("/etc/apt/sources.list"), codename)?;
        if let Ok(entries) = fs::read_dir("/etc/apt/sources.list.d") {
            for entry in entries.flatten() {
                apt.derive(&entry.path(), codename)?;
            }
        }
        let updated = apt.root.join("updated");
        if !is_fresh(&updated) {
            run(apt.get(work).arg("update"))?;
            fs::write(&updated, "").map_err(|cause| FetchError::io(&updated, cause))?;
        }
        Ok(apt)
    }

    /// Writes the entries of one of the system's source files that serve its own release.
    fn derive(&self, file: &Path, codename: &str) -> Result<(), FetchError> {
        let Ok(text) = fs::read_to_string(file) else {
            return Ok(());
        };
        let extension = file.extension().and_then(|extension| extension.to_str());
        let (name, derived) = match extension {
            Some("list") => (format!("{}.list", stem(file)), lines(&text, codename)),
            Some("sources") => (format!("{}.sources", stem(file)), stanzas(&text, codename)),
            _ => return Ok(()),
        };
        let place = self.root.join("sources").join(name);
        fs::write(&place, derived).map_err(|cause| FetchError::io(&place, cause))
    }

    fn get(&self, work: &Path) -> Command {
        self.client("apt-get", work)
    }

    fn cache(&self, work: &Path) -> Command {
        self.client("apt-cache", work)
    }

    fn client(&self, program: &str, work: &Path) -> Command {
        let mut command = Command::new(program);
        let mut option = |name: &str, value: &Path| {
            command.arg("-o").arg(format!("{name}={}", value.display()));
        };
        option("Dir::State::Lists", &self.root.join("lists"));
        option("Dir::Cache", &self.root.join("cache"));
        option("Dir::Etc::SourceList", Path::new("/dev/null"));
        option("Dir::Etc::SourceParts", &self.root.join("sources"));
        // The system's lists are not touched, so its lock need not be taken;
        // and a private directory is not the download user's to write to.
        option("Debug::NoLocking", Path::new("1"));
        option("APT::Sandbox::User", Path::new("root"));
        command.arg("-q").env("LC_ALL", "C").current_dir(work);
        command
    }
}

fn stem(file: &Path) -> String {
    file.file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// `VERSION_CODENAME` of an os-release file.
fn codename(release: &str) -> Option<&str> {
    release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .map(|name| name.trim_matches('"'))
}

/// Whether a suite belongs to the system's release (`bookworm`, `bookworm-security`).
fn serves(suite: &str, codename: &str) -> bool {
    suite == codename
        || suite
            .strip_prefix(codename)
            .is_some_and(|rest| rest.starts_with('-'))
}

/// One-line entries: each `deb` line of the release, and its `deb-src` twin.
fn lines(text: &str, codename: &str) -> String {
    let mut derived = String::new();
    for line in text.lines() {
        let Some(entry) = line.trim().strip_prefix("deb ") else {
            continue;
        };
        // Options in brackets may hold spaces.
        let bare = if entry.trim_start().starts_with('[') {
            entry.split_once(']').map_or("", |parts| parts.1)
        } else {
            entry
        };
        let suite = bare.split_whitespace().nth(1);
        if suite.is_some_and(|suite| serves(suite, codename)) {
            derived.push_str(&format!("deb {entry}\ndeb-src {entry}\n"));
        }
    }
    derived
}

/// Stanzas of the release, with both types.
fn stanzas(text: &str, codename: &str) -> String {
    let mut derived = String::new();
    let uncommented: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    for stanza in uncommented.join("\n").split("\n\n") {
        let suites = stanza
            .lines()
            .find_map(|line| line.strip_prefix("Suites:"))
            .unwrap_or_default();
        if !suites
            .split_whitespace()
            .any(|suite| serves(suite, codename))
        {
            continue;
        }
        for line in stanza.lines().filter(|line| !line.is_empty()) {
            derived.push_str(if line.starts_with("Types:") {
                "Types: deb deb-src"
            } else {
                line
            });
            derived.push('\n');
        }
        derived.push('\n');
    }
    derived
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codename_is_read() {
        assert_eq!(
            codename("ID=debian\nVERSION_CODENAME=bookworm\n"),
            Some("bookworm")
        );
        assert_eq!(codename("VERSION_CODENAME=\"noble\"\n"), Some("noble"));
        assert_eq!(codename("ID=other\n"), None);
    }

    #[test]
    fn only_entries_of_the_release_are_kept() {
        let text = "deb http://mirror/debian bookworm main\n\
                    # deb http://mirror/debian bookworm contrib\n\
                    deb [signed-by=/a/b c=d] http://mirror/debian bookworm-security main\n\
                    deb http://vendor/apt tool-bookworm main\n";
        assert_eq!(
            lines(text, "bookworm"),
            "deb http://mirror/debian bookworm main\ndeb-src http://mirror/debian bookworm main\n\
             deb [signed-by=/a/b c=d] http://mirror/debian bookworm-security main\n\
             deb-src [signed-by=/a/b c=d] http://mirror/debian bookworm-security main\n"
        );
    }

    #[test]
    fn versions_of_listed_releases_are_accepted() {
        let text = "[[source]]\nname = \"a\"\nkind = \"debian-source\"\npackage = \"a\"\nlicence = \"MIT\"\n\
                    releases = [{ version = \"2.4.68\", sha256 = \"DIGEST\" }]\n";
        let lock = crate::Lock::parse(&text.replace("DIGEST", &"0".repeat(64))).unwrap();
        let stanzas =
            "Package: a\nVersion: 2.4.71-1~deb12u1\n\nPackage: a\nVersion: 1:2.4.68-1~deb12u1\n";
        assert_eq!(accepted(stanzas, &lock.sources[0]), ["1:2.4.68-1~deb12u1"]);
        let text = text
            .replace("2.4.68", "2.4.71-1~deb12u1")
            .replace("debian-source", "debian-packaging");
        let lock = crate::Lock::parse(&text.replace("DIGEST", &"0".repeat(64))).unwrap();
        assert_eq!(accepted(stanzas, &lock.sources[0]), ["2.4.71-1~deb12u1"]);
    }

    #[test]
    fn stanzas_of_the_release_get_both_types() {
        let text = "Types: deb\n# a comment\nURIs: http://mirror/debian\nSuites: bookworm bookworm-updates\n\n\
                    Types: deb\nURIs: http://vendor/apt\nSuites: nodistro\n";
        assert_eq!(
            stanzas(text, "bookworm"),
            "Types: deb deb-src\nURIs: http://mirror/debian\nSuites: bookworm bookworm-updates\n\n"
        );
    }
}
