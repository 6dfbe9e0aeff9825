//! Granted directories, and how a path of the program's leads into one.
//!
//! A path is made absolute and its `.` and `..` are taken out by their names;
//! the longest mount that is a prefix of it is chosen; the rest is left to the
//! kernel, which resolves it beneath the mount's descriptor and refuses whatever
//! would lead out: `..`, absolute links, links of /proc, and places where the host
//! has mounted something else (`RESOLVE_NO_XDEV`). So a race with somebody who
//! changes the tree at the same time cannot be lost, and a grant of `/` is one of
//! files, not of what the kernel shows in /proc, /sys and /dev. A directory in
//! which something else is mounted can be granted beside it.

use crate::stat;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
            guest: absolute("/", guest),
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

    /// Whether nothing may be changed in it.
    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Opens `rest`, a path beneath the mount.
    pub(crate) fn open(&self, rest: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let rest = if rest.is_empty() { "." } else { rest };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        rustix::fs::openat2(&self.root, rest, flags | OFlags::CLOEXEC, mode, resolve)
            // What would lead out is, to the program, not there.
            .map_err(|error| {
                if error == Errno::XDEV {
                    Errno::NOENT
                } else {
                    error
                }
            })
    }

    /// The part of `path` beneath this mount, if it is beneath it.
    fn beneath<'a>(&self, path: &'a str) -> Option<&'a str> {
        if self.guest == "/" {
            return path.strip_prefix('/');
        }
        let rest = path.strip_prefix(self.guest.as_str())?;
        match rest.strip_prefix('/') {
            Some(rest) => Some(rest),
            None => rest.is_empty().then_some(""),
        }
    }
}

/// `path`, seen from `directory`, without `.`, `..` and empty parts.
pub(crate) fn absolute(directory: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let start = if path.starts_with('/') { "" } else { directory };
    for part in start.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The mount that an absolute path leads into, and the path beneath it.
pub(crate) fn find<'a, 'b>(
    mounts: &'a [Arc<Mount>],
    path: &'b str,
) -> Result<(&'a Mount, &'b str), Errno> {
    mounts
        .iter()
        .filter_map(|mount| Some((&**mount, mount.beneath(path)?)))
        .max_by_key(|(mount, _)| mount.guest.len())
        .ok_or(Errno::NOENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_absolute_by_their_names() {
        assert_eq!(absolute("/a/b", "c/./d"), "/a/b/c/d");
        assert_eq!(absolute("/a/b", "../../../x"), "/x");
        assert_eq!(absolute("/a", "/b//c/"), "/b/c");
        assert_eq!(absolute("/", "."), "/");
    }

    #[test]
    fn the_longest_mount_is_chosen_and_neighbours_are_not_taken_for_it() {
        let here = std::env::temp_dir();
        let mount = |guest: &str| Arc::new(Mount::new(&here, guest, true).expect("a directory"));
        let mounts = [mount("/data"), mount("/data/deep")];
        let found = |path| find(&mounts, path).map(|(mount, rest)| (mount.guest.clone(), rest));
        assert_eq!(found("/data/x"), Ok(("/data".to_owned(), "x")));
        assert_eq!(
            found("/data/deep/x/y"),
            Ok(("/data/deep".to_owned(), "x/y"))
        );
        assert_eq!(found("/data"), Ok(("/data".to_owned(), "")));
        assert_eq!(found("/database"), Err(Errno::NOENT));
        assert_eq!(found("/"), Err(Errno::NOENT));
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
