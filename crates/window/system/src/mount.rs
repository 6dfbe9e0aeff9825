//! Granted directories, and what may be done with names in one.
//!
//! A name is a path beneath the directory. The kernel resolves it beneath the mount's descriptor and refuses whatever
//! would lead out. These are `..`, absolute paths and links, links of /proc, and places where the host has mounted something
//! else (`RESOLVE_NO_XDEV`). So a race with somebody who changes the tree at the same time cannot be lost. A grant of
//! `/` is one of files, not of what the kernel shows in /proc, /sys and /dev. A directory in which something else is
//! mounted can be granted beside it.

use crate::open::Open;
use crate::stat::{self, quiet_length, timestamps};
use crate::stop::told;
use mullion_calls::{CallStop, Moment, STAT};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// What a program may ask of `open`; the rest is ignored (O_LARGEFILE, O_CLOEXEC) or refused (O_TMPFILE).
const OPEN_FLAGS: OFlags = OFlags::ACCMODE
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::TRUNC)
    .union(OFlags::APPEND)
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::SYNC)
    .union(OFlags::DSYNC);
/// Bits that a program may set of a file's mode.
pub(crate) const MODE: u32 = 0o777;

/// A directory of the host under a path of the program's.
#[derive(Debug)]
pub struct Mount {
    root: OwnedFd,
    /// Where `root` is on the host, without links.
    host: PathBuf,
    guest: String,
    read_only: bool,
}

/// Why a directory cannot be granted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// What the kernel shows there is not files, but the host itself.
    #[error("{path} cannot be granted: it shows processes, the host among them, and no files")]
    Processes {
        /// The directory.
        path: PathBuf,
    },
    /// Not HOST::GUEST or HOST::GUEST:ro.
    #[error("{0:?} is not of the form HOST::GUEST or HOST::GUEST:ro, with GUEST an absolute path")]
    Form(String),
    /// The host's directory cannot be opened.
    #[error("{path}: {cause}")]
    Open {
        /// The directory.
        path: PathBuf,
        /// What the kernel answered.
        cause: std::io::Error,
    },
    /// A program is to begin in what it was not granted.
    #[error(
        "{0:?} cannot be where the program begins: it is no absolute path in a granted directory or above one"
    )]
    Working(String),
    /// Reading only, and writing by another way.
    #[error(
        "{inner} is granted for reading only, but lies in {outer}, which is granted for writing; \
         grant {outer} for reading only, or a directory beside {inner}"
    )]
    Writable {
        /// The directory to be protected.
        inner: PathBuf,
        /// The one it lies in.
        outer: PathBuf,
    },
}

impl Mount {
    /// Opens the host's directory `host`, to be seen as `guest`.
    ///
    /// # Errors
    /// `guest` is not absolute; `host` is no directory or cannot be opened.
    pub fn new(host: &Path, guest: &str, read_only: bool) -> Result<Self, MountError> {
        if !guest.starts_with('/') {
            return Err(MountError::Form(guest.to_owned()));
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root =
            rustix::fs::open(host, flags, Mode::empty()).map_err(|cause| MountError::Open {
                path: host.to_owned(),
                cause: cause.into(),
            })?;
        if stat::is_of_processes(&root).map_err(|cause| MountError::Open {
            path: host.to_owned(),
            cause: cause.into(),
        })? {
            return Err(MountError::Processes {
                path: host.to_owned(),
            });
        }
        let canonical = host.canonicalize().map_err(|cause| MountError::Open {
            path: host.to_owned(),
            cause,
        })?;
        Ok(Self {
            root,
            host: canonical,
            guest: guest.to_owned(),
            read_only,
        })
    }

    /// Reads `HOST::GUEST` or `HOST::GUEST:ro`.
    ///
    /// # Errors
    /// Another form, or as [`Mount::new`].
    pub fn parse(text: &str) -> Result<Self, MountError> {
        let form = || MountError::Form(text.to_owned());
        let (host, guest) = text.split_once("::").ok_or_else(form)?;
        let (guest, read_only) = match guest.strip_suffix(":ro") {
            Some(guest) => (guest, true),
            None => (guest, false),
        };
        if host.is_empty() || !guest.starts_with('/') {
            return Err(form());
        }
        Self::new(Path::new(host), guest, read_only)
    }

    /// That this mount, for reading only, does not lie in `outer`, which may be written: by a
    /// renamed directory or a link within `outer` it could be changed, whatever its own name says.
    pub(crate) fn check_apart_from(&self, outer: &Mount) -> Result<(), MountError> {
        match self.host.starts_with(&outer.host) {
            false => Ok(()),
            true => Err(MountError::Writable {
                inner: self.host.clone(),
                outer: outer.host.clone(),
            }),
        }
    }

    /// The program's path of it, as it was granted.
    pub(crate) fn guest(&self) -> &str {
        &self.guest
    }

    /// Whether nothing may be changed in it.
    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Refuses what would change it, if it is for reading only.
    fn writable(&self) -> Result<(), Errno> {
        match self.read_only {
            true => Err(Errno::ROFS),
            false => Ok(()),
        }
    }

    /// Opens what is beneath: no other function here follows a name.
    fn beneath(&self, name: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let name = if name.is_empty() { "." } else { name };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        rustix::fs::openat2(&self.root, name, flags | OFlags::CLOEXEC, mode, resolve)
            // A name that would lead out is not there, unless the other half finds it beneath another directory.
            .map_err(|error| match error {
                Errno::XDEV => Errno::REMOTE,
                error => error,
            })
    }

    /// The directory that holds a name, and its last part, which leads nowhere else. The mount
    /// itself has none.
    fn parent<'a>(&self, name: &'a str) -> Result<(OwnedFd, &'a str), Errno> {
        let (directory, last) = name.rsplit_once('/').unwrap_or(("", name));
        if matches!(last, "" | "." | "..") {
            return Err(Errno::BUSY);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        Ok((self.beneath(directory, flags, Mode::empty())?, last))
    }

    /// Opens what a program may open. A look at it by its name goes first, since opening a pipe
    /// or a device can have effects; who puts one in its place meanwhile is not the program.
    fn open_content(&self, name: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let follow = flags.intersection(OFlags::NOFOLLOW);
        match self.beneath(name, OFlags::PATH | follow, Mode::empty()) {
            Ok(found) if !is_link(&found)? => drop(stat::permitted(&found)?),
            // Not there, or a link that is not to be followed: for the kernel to say.
            Ok(_) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
        // Not to wait for the other end of what turns out to be a pipe after all.
        self.beneath(name, flags | OFlags::NONBLOCK | OFlags::NOCTTY, mode)
    }

    /// open, with Linux' flags.
    pub(crate) fn open(&self, name: &str, flags: u32, mode: u32) -> Result<Open, Errno> {
        const TEMPORARY: u32 = 0o20_000_000;
        if flags & TEMPORARY != 0 {
            return Err(Errno::OPNOTSUPP);
        }
        let flags = OFlags::from_bits_retain(flags).intersection(OPEN_FLAGS);
        let creates = flags.contains(OFlags::CREATE);
        let writes = !flags.intersection(OFlags::ACCMODE).is_empty();
        if writes || creates || flags.contains(OFlags::TRUNC) {
            self.writable()?;
        }
        let mode = if creates { mode & MODE } else { 0 };
        let descriptor = self.open_content(name, flags, Mode::from_raw_mode(mode))?;
        Open::of(descriptor, self.read_only)
    }

    /// Whether a directory has this name.
    pub(crate) fn is_directory(&self, name: &str) -> Result<(), Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        self.beneath(name, flags, Mode::empty()).map(drop)
    }

    /// stat, or lstat.
    pub(crate) fn stat(&self, name: &str, follow: bool) -> Result<[u8; STAT], Errno> {
        let link = if follow {
            OFlags::empty()
        } else {
            OFlags::NOFOLLOW
        };
        let found = self.beneath(name, OFlags::PATH | link, Mode::empty())?;
        Ok(stat::bytes(&rustix::fs::fstat(found)?))
    }

    /// access, with Linux' bits.
    pub(crate) fn access(&self, name: &str, wanted: u32) -> Result<(), Errno> {
        let bits = Access::from_bits(wanted);
        if wanted & Access::WRITE_OK.bits() != 0 {
            self.writable()?;
        }
        let wanted = bits.ok_or(Errno::INVAL)?;
        let found = self.beneath(name, OFlags::PATH, Mode::empty())?;
        rustix::fs::access(link_of(&found), wanted)
    }

    /// mkdir.
    pub(crate) fn make_directory(&self, name: &str, mode: u32) -> Result<(), Errno> {
        self.writable()?;
        if name.is_empty() {
            return Err(Errno::EXIST);
        }
        let (parent, last) = self.parent(name)?;
        rustix::fs::mkdirat(parent, last, Mode::from_raw_mode(mode & MODE))
    }

    /// unlink, or rmdir.
    pub(crate) fn remove(&self, name: &str, directory: bool) -> Result<(), Errno> {
        self.writable()?;
        let (parent, last) = self.parent(name)?;
        let flags = match directory {
            true => AtFlags::REMOVEDIR,
            false => AtFlags::empty(),
        };
        rustix::fs::unlinkat(parent, last, flags)
    }

    /// rename, to a name in another mount or in this one.
    pub(crate) fn rename(&self, from: &str, other: &Mount, to: &str) -> Result<(), Errno> {
        self.writable()?;
        other.writable()?;
        let (from, from_last) = self.parent(from)?;
        let (to, to_last) = other.parent(to)?;
        rustix::fs::renameat(from, from_last, to, to_last)
    }

    /// link: a file only, and none that is for reading only, since it could be changed by its other name.
    pub(crate) fn link(&self, from: &str, other: &Mount, to: &str) -> Result<(), Errno> {
        self.writable()?;
        other.writable()?;
        let found = self.beneath(from, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?;
        if is_link(&found)? || stat::permitted(&found)? != FileType::RegularFile {
            return Err(Errno::PERM);
        }
        let (from, from_last) = self.parent(from)?;
        let (to, to_last) = other.parent(to)?;
        rustix::fs::linkat(from, from_last, to, to_last, AtFlags::empty())
    }

    /// symlink. The host's own programs may follow it, and the program may move it: so its target leads downwards alone.
    pub(crate) fn make_link(&self, target: &[u8], name: &str) -> Result<(), Errno> {
        self.writable()?;
        let upwards = target.split(|byte| *byte == b'/').any(|part| part == b"..");
        if target.starts_with(b"/") || upwards || target.contains(&0) {
            return Err(Errno::PERM);
        }
        let (parent, last) = self.parent(name)?;
        rustix::fs::symlinkat(target, parent, last)
    }

    /// readlink.
    pub(crate) fn read_link(&self, name: &str) -> Result<Vec<u8>, Errno> {
        let (parent, last) = self.parent(name).map_err(|_| Errno::INVAL)?;
        Ok(rustix::fs::readlinkat(parent, last, Vec::new())?.into_bytes())
    }

    /// truncate.
    pub(crate) fn set_length(&self, name: &str, length: u64) -> Result<(), CallStop> {
        self.writable().map_err(told)?;
        let file = self.open_content(name, OFlags::WRONLY, Mode::empty());
        quiet_length(&file.map_err(told)?, length)
    }

    /// chmod.
    pub(crate) fn set_mode(&self, name: &str, mode: u32) -> Result<(), Errno> {
        self.writable()?;
        let found = self.beneath(name, OFlags::PATH, Mode::empty())?;
        stat::permitted(&found)?;
        rustix::fs::chmod(link_of(&found), Mode::from_raw_mode(mode & MODE))
    }

    /// utimensat, without following a link.
    pub(crate) fn set_times(&self, name: &str, times: [Moment; 2]) -> Result<(), Errno> {
        self.writable()?;
        let (parent, last) = self.parent(name)?;
        rustix::fs::utimensat(parent, last, &timestamps(times), AtFlags::SYMLINK_NOFOLLOW)
    }
}

/// A path of our own descriptor: what was resolved is what is asked about.
fn link_of(found: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", found.as_raw_fd())
}

fn is_link(found: &OwnedFd) -> Result<bool, Errno> {
    let mode = rustix::fs::fstat(found)?.st_mode;
    Ok(FileType::from_raw_mode(mode) == FileType::Symlink)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A granted directory in one that was not, with a file in each.
    fn granted(read_only: bool) -> (tempfile::TempDir, Mount) {
        let outer = tempfile::tempdir().expect("a directory");
        fs::create_dir(outer.path().join("in")).expect("made");
        fs::write(outer.path().join("secret"), "s").expect("written");
        fs::write(outer.path().join("in/file"), "f").expect("written");
        std::os::unix::fs::symlink("../secret", outer.path().join("in/link")).expect("made");
        let mount = Mount::new(&outer.path().join("in"), "/", read_only).expect("granted");
        (outer, mount)
    }

    /// The caller is not trusted: whatever it says, no name leads out.
    #[test]
    fn no_name_leads_out_whoever_says_it() {
        let (outer, mount) = granted(false);
        let secret = outer.path().join("secret");
        let absolute = secret.to_str().expect("text");
        for name in [
            "..",
            "../secret",
            "x/../../secret",
            absolute,
            "link",
            "/../secret",
            ".",
        ] {
            for flags in [0, 1, 2, 0o1101, 0o100] {
                let opened = mount.open(name, flags, 0o666);
                let is_itself = name == "." && flags == 0;
                assert!(opened.is_err() || is_itself, "{name} {flags:o}");
            }
            let times = [(1, 0), (1, 0)];
            assert!(mount.set_length(name, 0).is_err(), "{name}");
            assert!(mount.make_directory(name, 0o777).is_err(), "{name}");
            assert!(mount.remove(name, true).is_err(), "{name}");
            if name != "link" {
                assert!(mount.remove(name, false).is_err(), "{name}");
                assert!(mount.set_times(name, times).is_err(), "{name}");
                assert!(mount.rename(name, &mount, "taken").is_err(), "{name}");
                assert!(mount.rename("file", &mount, name).is_err(), "{name}");
                assert!(mount.read_link(name).is_err(), "{name}");
                assert!(mount.link(name, &mount, "taken").is_err(), "{name}");
                assert!(mount.link("file", &mount, name).is_err(), "{name}");
                assert!(mount.make_link(b"file", name).is_err(), "{name}");
            }
            if name != "." {
                assert!(mount.stat(name, true).is_err(), "{name}");
                assert!(mount.access(name, 0).is_err(), "{name}");
                assert!(mount.set_mode(name, 0o600).is_err(), "{name}");
                assert!(mount.is_directory(name).is_err(), "{name}");
            }
        }
        assert_eq!(fs::read(&secret).expect("there"), b"s");
        let outside = fs::metadata(outer.path()).expect("there");
        assert!(
            outside
                .modified()
                .expect("a time")
                .elapsed()
                .expect("past")
                .as_secs()
                < 3600
        );
        assert_eq!(mount.link("link", &mount, "taken"), Err(Errno::PERM));
        for target in ["..", "../secret", "x/../../secret", absolute, "a\0b"] {
            let made = mount.make_link(target.as_bytes(), "made");
            assert_eq!(made, Err(Errno::PERM), "{target}");
        }
        mount.make_link(b"./file", "made").expect("downwards");
        mount.link("file", &mount, "other").expect("a file");
        mount.open("made", 2, 0).expect("what is granted is");
        mount.open("other", 2, 0).expect("what is granted is");
        mount.open("file", 2, 0).expect("what is granted is");
    }

    #[test]
    fn what_is_for_reading_only_is_not_changed() {
        let (outer, mount) = granted(true);
        for flags in [1, 2, 0o100, 0o1000] {
            assert_eq!(mount.open("file", flags, 0o666).err(), Some(Errno::ROFS));
        }
        let times = [(1, 0), (1, 0)];
        assert!(mount.set_length("file", 0).is_err());
        assert_eq!(mount.make_directory("new", 0o777), Err(Errno::ROFS));
        assert_eq!(mount.remove("file", false), Err(Errno::ROFS));
        assert_eq!(mount.set_mode("file", 0), Err(Errno::ROFS));
        assert_eq!(mount.set_times("file", times), Err(Errno::ROFS));
        assert_eq!(mount.access("file", 2), Err(Errno::ROFS));
        let (_other, writable) = granted(false);
        assert_eq!(mount.rename("file", &writable, "new"), Err(Errno::ROFS));
        assert_eq!(writable.rename("file", &mount, "new"), Err(Errno::ROFS));
        assert_eq!(mount.link("file", &writable, "new"), Err(Errno::ROFS));
        assert_eq!(writable.link("file", &mount, "new"), Err(Errno::ROFS));
        assert_eq!(mount.make_link(b"file", "new"), Err(Errno::ROFS));
        let file = mount.open("file", 0, 0).expect("to be read");
        assert!(matches!(
            file,
            Open::File {
                read_only: true,
                ..
            }
        ));
        assert_eq!(fs::read(outer.path().join("in/file")).expect("there"), b"f");
    }

    #[test]
    fn what_is_not_of_the_form_is_refused() {
        for text in ["", "x", "x:/y", "::/y", "/tmp::y", "/tmp::"] {
            assert!(
                matches!(Mount::parse(text), Err(MountError::Form(_))),
                "{text}"
            );
        }
        let missing = Mount::parse("/nonexistent/directory::/y");
        assert!(matches!(missing, Err(MountError::Open { .. })));
    }
}
