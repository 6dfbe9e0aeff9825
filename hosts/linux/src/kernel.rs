//! Makes the kernel: Debian's source, our patch, our configuration, one build in the cache.
//!
//! ```text
//!   CACHE/linux-KEY/tree     the source, patched; without what User-Mode Linux cannot build
//!   CACHE/linux-KEY/build    kbuild's output: ./linux, modules
//!   CACHE/linux-KEY/made     is there when all of that is
//! ```
//!
//! The key is of the source, the patch, the configuration and the compiler.

use mullion_fetch::{FetchError, Lock, cache_directory, digest, fetch};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use thiserror::Error;

/// What `hosts/linux/patch` has.
const PATCH: &str = include_str!("../patch/mullion.patch");
/// What is set beside `x86_64_defconfig`.
const CONFIG: &str = include_str!("../kernel.config");
/// Which sources are accepted.
const SOURCES: &str = include_str!("../../../sysroot/sources.toml");

/// Programs and headers that the build needs, and Debian's packages with them.
const NEEDED: [(&str, &str); 9] = [
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("make", "make"),
    ("gcc", "gcc"),
    ("patch", "patch"),
    ("xz", "xz-utils"),
    ("cpp", "cpp"),
    ("/usr/lib/x86_64-linux-gnu/libc.a", "libc6-dev"),
];

/// Parts of the source that are large and that nothing here reads.
const WITHOUT: [&str; 4] = [
    "*/Documentation/*",
    "*/drivers/gpu/*.[ch]",
    "*/sound/*.[ch]",
    "*/tools/testing/*",
];

/// Why there is no kernel, or no module.
#[derive(Debug, Error)]
pub enum Setup {
    /// Programs are missing.
    #[error("Debian's packages are needed: apt-get install {0}")]
    Packages(String),
    /// The source cannot be had.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// A file or a program fails.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    /// A step fails.
    #[error("{what} failed; see {log}")]
    Step {
        /// Which.
        what: String,
        /// What it said.
        log: PathBuf,
    },
    /// A file of the build is not as it should be.
    #[error("{0}")]
    Build(String),
}

pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Setup {
    let path = path.to_path_buf();
    move |cause| Setup::Io(path, cause)
}

/// Debian's packages that the build needs and that are not here.
#[must_use]
pub fn missing() -> Vec<&'static str> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = std::env::split_paths(&paths).collect();
    let is_here = |name: &str| match name.starts_with('/') {
        true => Path::new(name).exists(),
        false => places.iter().any(|place| place.join(name).is_file()),
    };
    let lacks = NEEDED.iter().filter(|(name, _)| !is_here(name));
    lacks.map(|(_, package)| *package).collect()
}

/// A kernel that was built.
#[derive(Clone, Debug)]
pub struct Built {
    place: PathBuf,
}

impl Built {
    /// The one in the cache, if it is there already.
    ///
    /// # Errors
    /// There is no cache, or the lock file names no source.
    pub fn cached() -> Result<Option<Built>, Setup> {
        let built = Built { place: place()? };
        Ok(built.place.join("made").is_file().then_some(built))
    }

    /// The one in the cache, made if it is not there. `say` is told each step.
    ///
    /// # Errors
    /// Packages are missing, the source cannot be had, a step fails.
    pub fn make(say: &mut dyn FnMut(&str)) -> Result<Built, Setup> {
        if let Some(built) = Built::cached()? {
            return Ok(built);
        }
        let lacks = missing();
        if !lacks.is_empty() {
            return Err(Setup::Packages(lacks.join(" ")));
        }
        let built = Built { place: place()? };
        fs::create_dir_all(&built.place).map_err(at(&built.place))?;
        let lock = built.place.join("lock");
        let lock = File::create(&lock).map_err(at(&lock))?;
        lock.lock().map_err(at(&built.place))?;
        if Built::cached()?.is_none() {
            let begun = Instant::now();
            built.unpack(say)?;
            built.configure(say)?;
            built.build(say)?;
            let took = format!("{}\n", begun.elapsed().as_secs());
            let made = built.place.join("made");
            fs::write(&made, took).map_err(at(&made))?;
        }
        Ok(built)
    }

    /// The patched source.
    #[must_use]
    pub fn tree(&self) -> PathBuf {
        self.place.join("tree")
    }

    /// kbuild's output.
    #[must_use]
    pub fn build_folder(&self) -> PathBuf {
        self.place.join("build")
    }

    /// The kernel itself.
    #[must_use]
    pub fn kernel(&self) -> PathBuf {
        self.build_folder().join("linux")
    }

    /// How long it took to make.
    #[must_use]
    pub fn took(&self) -> Option<Duration> {
        let seconds = fs::read_to_string(self.place.join("made")).ok()?;
        seconds.trim().parse().ok().map(Duration::from_secs)
    }

    /// `make` for this kernel, in its output.
    #[must_use]
    pub fn kbuild(&self) -> Command {
        let mut make = Command::new("make");
        make.arg("-s").arg("-C").arg(self.build_folder());
        make.arg("ARCH=um");
        // What the caller has set for its own compilers means nothing here, and a `make` above this one nothing either.
        for variable in [
            "CC",
            "CFLAGS",
            "LDFLAGS",
            "MAKEFLAGS",
            "MFLAGS",
            "MAKELEVEL",
        ] {
            make.env_remove(variable);
        }
        make
    }

    fn unpack(&self, say: &mut dyn FnMut(&str)) -> Result<(), Setup> {
        let tree = self.tree();
        if tree.is_dir() {
            return Ok(());
        }
        say("fetching the source");
        let lock = Lock::parse(SOURCES)?;
        let package = fetch(lock.source("linux")?)?;
        let archive = package.join("usr/src/linux-source-6.1.tar.xz");
        say("unpacking the source");
        let fresh = self.place.join("tree.new");
        let _absent = fs::remove_dir_all(&fresh);
        fs::create_dir_all(&fresh).map_err(at(&fresh))?;
        let mut tar = Command::new("tar");
        tar.arg("-xf").arg(&archive).arg("-C").arg(&fresh);
        tar.args(["--strip-components=1", "--no-same-owner"]);
        tar.args(WITHOUT.map(|part| format!("--exclude={part}")));
        self.step("unpacking", &mut tar)?;
        // Read by the configuration, and only text for people.
        let manual = fresh.join("Documentation");
        fs::create_dir_all(&manual).map_err(at(&manual))?;
        let kconfig = manual.join("Kconfig");
        fs::write(&kconfig, "").map_err(at(&kconfig))?;
        let patch = self.place.join("mullion.patch");
        fs::write(&patch, PATCH).map_err(at(&patch))?;
        let mut command = Command::new("patch");
        command.arg("-s").arg("-p1").arg("-d").arg(&fresh);
        command.arg("-i").arg(&patch);
        self.step("patching", &mut command)?;
        fs::rename(&fresh, &tree).map_err(at(&tree))
    }

    fn configure(&self, say: &mut dyn FnMut(&str)) -> Result<(), Setup> {
        say("configuring");
        let output = self.build_folder();
        fs::create_dir_all(&output).map_err(at(&output))?;
        let mut first = Command::new("make");
        first.arg("-s").arg("-C").arg(self.tree());
        first.arg(format!("O={}", output.display()));
        first.args(["ARCH=um", "x86_64_defconfig"]);
        self.step("configuring", &mut first)?;
        let file = output.join(".config");
        let mut config = fs::read_to_string(&file).map_err(at(&file))?;
        config.push_str(CONFIG);
        fs::write(&file, config).map_err(at(&file))?;
        self.step("configuring", self.kbuild().arg("olddefconfig"))?;
        let config = fs::read_to_string(&file).map_err(at(&file))?;
        for line in refused(&config) {
            say(&format!("the kernel does not take {line}"));
        }
        Ok(())
    }

    fn build(&self, say: &mut dyn FnMut(&str)) -> Result<(), Setup> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        say(&format!(
            "building the kernel on {processors} processors, for some minutes; {} grows",
            self.log().display()
        ));
        let mut make = self.kbuild();
        make.arg(format!("-j{processors}"))
            .args(["linux", "modules"]);
        self.step("building", &mut make)
    }

    fn log(&self) -> PathBuf {
        self.place.join("log")
    }

    /// Runs a program; the log has what it says.
    fn step(&self, what: &str, command: &mut Command) -> Result<(), Setup> {
        let place = self.log();
        let log = File::options().create(true).append(true).open(&place);
        let log = log.map_err(at(&place))?;
        let other = log.try_clone().map_err(at(&place))?;
        let program = PathBuf::from(command.get_program());
        command.stdin(Stdio::null()).stdout(log).stderr(other);
        let status = command.status().map_err(at(&program))?;
        match status.success() {
            true => Ok(()),
            false => Err(Setup::Step {
                what: what.to_owned(),
                log: place,
            }),
        }
    }
}

/// Lines of our configuration that the kernel's own has not taken.
fn refused(config: &str) -> Vec<&'static str> {
    let settings = CONFIG.lines().filter(|line| line.starts_with("CONFIG_"));
    let is_taken = |line: &&str| match line.strip_suffix("=n") {
        Some(name) => !config.lines().any(|found| {
            found
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('='))
        }),
        None => config.lines().any(|found| found == *line),
    };
    settings.filter(|line| !is_taken(line)).collect()
}

/// Where the kernel of this source, patch, configuration and compiler is.
fn place() -> Result<PathBuf, Setup> {
    let lock = Lock::parse(SOURCES)?;
    let source = lock.source("linux")?;
    let compiler = Command::new("gcc").arg("-dumpfullversion").output();
    let compiler = compiler.map(|said| said.stdout).unwrap_or_default();
    let mut key = tempfile::NamedTempFile::new().map_err(at(&std::env::temp_dir()))?;
    let releases = source.releases.iter().map(|release| &*release.sha256);
    let parts: Vec<&str> = releases.chain([PATCH, CONFIG]).collect();
    io::Write::write_all(&mut key, parts.join("\n").as_bytes()).map_err(at(key.path()))?;
    io::Write::write_all(&mut key, &compiler).map_err(at(key.path()))?;
    let key = digest(key.path())?;
    Ok(cache_directory()?.join(format!("linux-{}", &key[..12])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_not_taken_are_named() {
        let taken: String = CONFIG
            .lines()
            .filter(|line| line.starts_with("CONFIG_") && !line.ends_with("=n"))
            .flat_map(|line| [line, "\n"])
            .collect();
        assert!(refused(&taken).is_empty());
        let without = taken.replace("CONFIG_LZ4_COMPRESS=m\n", "") + "CONFIG_SOUND=y\n";
        assert!(refused(&without).contains(&"CONFIG_SOUND=n"));
        assert!(refused("").contains(&"CONFIG_ROMFS_FS=m"));
    }
}
