//! Calls on names: they lead into granted directories or nowhere.

use crate::answer::{Answer, Stop};
use crate::call::Call;
use crate::descriptor::Handle;
use crate::mount::{self, Mount};
use crate::{files, stat};
use mullion_runtime::Claimed;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;

const AT_FDCWD: i32 = -100;
const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_REMOVEDIR: u64 = 0x200;
const AT_EMPTY_PATH: u64 = 0x1000;
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

/// A name, made absolute, with the mount that it leads into.
struct Name<'a> {
    mount: &'a Mount,
    path: String,
    rest: String,
}

impl<'a> Name<'a> {
    fn of(call: &'a Call<'_, '_>, from: String, text: &str) -> Result<Self, Stop> {
        if text.is_empty() {
            return Err(Errno::NOENT.into());
        }
        let path = mount::absolute(&from, text);
        let (mount, rest) = mount::find(&call.grants().mounts, &path)?;
        let rest = rest.to_owned();
        Ok(Self { mount, path, rest })
    }

    /// Refuses what would change a mount that is for reading only.
    fn writable(self) -> Result<Self, Stop> {
        match self.mount.is_read_only() {
            true => Err(Errno::ROFS.into()),
            false => Ok(self),
        }
    }

    fn open(&self, flags: OFlags) -> Result<OwnedFd, Stop> {
        Ok(self.mount.open(&self.rest, flags, Mode::empty())?)
    }

    /// Opens what a program may open. A look at it by its name goes first, since opening a pipe
    /// or a device can have effects; who puts one in its place meanwhile is not the program.
    fn open_content(&self, flags: OFlags, mode: Mode) -> Result<OwnedFd, Stop> {
        let follow = flags.intersection(OFlags::NOFOLLOW);
        match self
            .mount
            .open(&self.rest, OFlags::PATH | follow, Mode::empty())
        {
            Ok(found) if !is_link(&found)? => drop(stat::permitted(&found)?),
            // Not there, or a link that is not to be followed: for the kernel to say.
            Ok(_) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        // Not to wait for the other end of what turns out to be a pipe after all.
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
        Ok(self.mount.open(&self.rest, flags, mode)?)
    }

    /// The directory that holds the name, and the last part of it. The mount
    /// itself has none.
    fn parent(&self) -> Result<(OwnedFd, &str), Stop> {
        let (directory, last) = self.rest.rsplit_once('/').unwrap_or(("", &self.rest));
        if last.is_empty() {
            return Err(Errno::BUSY.into());
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let parent = self.mount.open(directory, flags, Mode::empty())?;
        Ok((parent, last))
    }
}

/// The name in argument `path`, seen from the working directory.
fn here<'a>(call: &'a Call<'_, '_>, path: usize) -> Result<Name<'a>, Stop> {
    named(call, AT_FDCWD, &call.path(path)?)
}

/// The name in argument `path`, seen from the directory in argument `directory`.
fn at<'a>(call: &'a Call<'_, '_>, directory: usize, path: usize) -> Result<Name<'a>, Stop> {
    named(call, call.int(directory), &call.path(path)?)
}

/// The name that a call has read, seen from a directory.
fn named<'a>(call: &'a Call<'_, '_>, directory: i32, text: &str) -> Result<Name<'a>, Stop> {
    let from = if directory == AT_FDCWD || text.starts_with('/') {
        call.state().directory.clone()
    } else {
        match call.state().descriptors.get(directory)? {
            Handle::Directory(directory) => directory.path.clone(),
            _ => return Err(Errno::NOTDIR.into()),
        }
    };
    Name::of(call, from, text)
}

fn mode(call: &Call<'_, '_>, index: usize) -> Mode {
    Mode::from_raw_mode(call.argument(index) as u32 & 0o777 & !call.state().umask)
}

fn open_name(call: &Call<'_, '_>, name: Name<'_>, flags: u64, mode: Mode) -> Answer {
    const TEMPORARY: u32 = 0o20_000_000;
    let raw = flags as u32;
    if raw & TEMPORARY != 0 {
        return Err(Errno::OPNOTSUPP.into());
    }
    let flags = OFlags::from_bits_retain(raw).intersection(OPEN_FLAGS);
    let changes = !flags.intersection(OFlags::ACCMODE).is_empty()
        || flags.intersects(OFlags::CREATE | OFlags::TRUNC);
    let name = if changes { name.writable()? } else { name };
    let mode = if flags.contains(OFlags::CREATE) {
        mode
    } else {
        Mode::empty()
    };
    let descriptor = name.open_content(flags, mode)?;
    let handle = files::opened(descriptor, name.path, name.mount.is_read_only())?;
    Ok(call.state().descriptors.add(handle, 0)?)
}

pub(crate) fn open(call: &Call<'_, '_>) -> Answer {
    open_name(call, here(call, 0)?, call.argument(1), mode(call, 2))
}

pub(crate) fn openat(call: &Call<'_, '_>) -> Answer {
    open_name(call, at(call, 0, 1)?, call.argument(2), mode(call, 3))
}

pub(crate) fn creat(call: &Call<'_, '_>) -> Answer {
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC;
    open_name(call, here(call, 0)?, u64::from(flags.bits()), mode(call, 1))
}

fn stat_name(call: &Call<'_, '_>, name: &Name<'_>, follow: bool, to: Claimed) -> Answer {
    let link = if follow {
        OFlags::empty()
    } else {
        OFlags::NOFOLLOW
    };
    let found = name.open(OFlags::PATH | link)?;
    call.write(to, &stat::bytes(&rustix::fs::fstat(found)?))?;
    Ok(0)
}

pub(crate) fn stat(call: &Call<'_, '_>) -> Answer {
    stat_name(call, &here(call, 0)?, true, call.pointer(1))
}

pub(crate) fn lstat(call: &Call<'_, '_>) -> Answer {
    stat_name(call, &here(call, 0)?, false, call.pointer(1))
}

pub(crate) fn newfstatat(call: &Call<'_, '_>) -> Answer {
    let (flags, text) = (call.argument(3), call.path(1)?);
    if flags & AT_EMPTY_PATH != 0 && text.is_empty() {
        let handle = call.state().descriptors.get(call.int(0))?;
        let stat = rustix::fs::fstat(handle.host())?;
        call.write(call.pointer(2), &stat::bytes(&stat))?;
        return Ok(0);
    }
    stat_name(
        call,
        &named(call, call.int(0), &text)?,
        flags & AT_SYMLINK_NOFOLLOW == 0,
        call.pointer(2),
    )
}

fn access_name(name: Name<'_>, wanted: i32) -> Answer {
    const WRITE: i32 = 2;
    let name = if wanted & WRITE != 0 {
        name.writable()?
    } else {
        name
    };
    let wanted = Access::from_bits(wanted as u32).ok_or(Errno::INVAL)?;
    let found = name.open(OFlags::PATH)?;
    rustix::fs::access(link_of(&found), wanted)?;
    Ok(0)
}

/// A path of our own descriptor: what was resolved is what is asked about.
fn link_of(found: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", found.as_raw_fd())
}

fn is_link(found: &OwnedFd) -> Result<bool, Errno> {
    let mode = rustix::fs::fstat(found)?.st_mode;
    Ok(FileType::from_raw_mode(mode) == FileType::Symlink)
}

pub(crate) fn access(call: &Call<'_, '_>) -> Answer {
    access_name(here(call, 0)?, call.int(1))
}

pub(crate) fn faccessat(call: &Call<'_, '_>) -> Answer {
    access_name(at(call, 0, 1)?, call.int(2))
}

fn make_directory(call: &Call<'_, '_>, name: Name<'_>, index: usize) -> Answer {
    let name = name.writable()?;
    if name.rest.is_empty() {
        return Err(Errno::EXIST.into());
    }
    let (parent, last) = name.parent()?;
    rustix::fs::mkdirat(parent, last, mode(call, index))?;
    Ok(0)
}

pub(crate) fn mkdir(call: &Call<'_, '_>) -> Answer {
    make_directory(call, here(call, 0)?, 1)
}

pub(crate) fn mkdirat(call: &Call<'_, '_>) -> Answer {
    make_directory(call, at(call, 0, 1)?, 2)
}

fn remove(name: Name<'_>, flags: AtFlags) -> Answer {
    let name = name.writable()?;
    let (parent, last) = name.parent()?;
    rustix::fs::unlinkat(parent, last, flags)?;
    Ok(0)
}

pub(crate) fn unlink(call: &Call<'_, '_>) -> Answer {
    remove(here(call, 0)?, AtFlags::empty())
}

pub(crate) fn rmdir(call: &Call<'_, '_>) -> Answer {
    remove(here(call, 0)?, AtFlags::REMOVEDIR)
}

pub(crate) fn unlinkat(call: &Call<'_, '_>) -> Answer {
    let flags = match call.argument(2) & AT_REMOVEDIR {
        0 => AtFlags::empty(),
        _ => AtFlags::REMOVEDIR,
    };
    remove(at(call, 0, 1)?, flags)
}

fn move_name(from: Name<'_>, to: Name<'_>) -> Answer {
    let (from, to) = (from.writable()?, to.writable()?);
    let (from_parent, from_last) = from.parent()?;
    let (to_parent, to_last) = to.parent()?;
    rustix::fs::renameat(from_parent, from_last, to_parent, to_last)?;
    Ok(0)
}

pub(crate) fn rename(call: &Call<'_, '_>) -> Answer {
    move_name(here(call, 0)?, here(call, 1)?)
}

/// Also renameat2, without its flags.
pub(crate) fn renameat(call: &Call<'_, '_>) -> Answer {
    const RENAMEAT2: u64 = 316;
    if call.number() == RENAMEAT2 && call.argument(4) != 0 {
        return Err(Errno::INVAL.into());
    }
    move_name(at(call, 0, 1)?, at(call, 2, 3)?)
}

fn read_link(call: &Call<'_, '_>, name: &Name<'_>, to: Claimed, room: u64) -> Answer {
    let (parent, last) = name.parent().map_err(|_| Errno::INVAL)?;
    let target = rustix::fs::readlinkat(parent, last, Vec::new())?.into_bytes();
    let length = target.len().min(room as usize);
    call.write(to, target.get(..length).unwrap_or_default())?;
    Ok(length as u64)
}

pub(crate) fn readlink(call: &Call<'_, '_>) -> Answer {
    read_link(call, &here(call, 0)?, call.pointer(1), call.argument(2))
}

pub(crate) fn readlinkat(call: &Call<'_, '_>) -> Answer {
    read_link(call, &at(call, 0, 1)?, call.pointer(2), call.argument(3))
}

pub(crate) fn truncate(call: &Call<'_, '_>) -> Answer {
    let length = u64::try_from(call.argument(1) as i64).map_err(|_| Errno::INVAL)?;
    let file = here(call, 0)?
        .writable()?
        .open_content(OFlags::WRONLY, Mode::empty())?;
    files::set_length(&file, length)?;
    Ok(0)
}

fn change_mode(name: Name<'_>, mode: u64) -> Answer {
    let found = name.writable()?.open(OFlags::PATH)?;
    stat::permitted(&found)?;
    rustix::fs::chmod(link_of(&found), Mode::from_raw_mode(mode as u32 & 0o777))?;
    Ok(0)
}

pub(crate) fn chmod(call: &Call<'_, '_>) -> Answer {
    change_mode(here(call, 0)?, call.argument(1))
}

pub(crate) fn fchmodat(call: &Call<'_, '_>) -> Answer {
    change_mode(at(call, 0, 1)?, call.argument(2))
}

pub(crate) fn utimensat(call: &Call<'_, '_>) -> Answer {
    const NOW: u64 = 0x3fff_ffff;
    let given = match call.argument(2) {
        0 => [0, NOW, 0, NOW],
        _ => call.record(2)?,
    };
    let [access, access_part, change, change_part] = given.map(|word| word as i64);
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    let times = Timestamps {
        last_access: time(access, access_part),
        last_modification: time(change, change_part),
    };
    if call.argument(1) == 0 {
        let handle = call.state().descriptors.get(call.int(0))?;
        return match handle {
            Handle::File(file) if file.read_only => Err(Errno::ROFS.into()),
            Handle::File(file) => {
                rustix::fs::futimens(&file.descriptor, &times)?;
                Ok(0)
            }
            _ => Err(Errno::ACCESS.into()),
        };
    }
    let name = at(call, 0, 1)?.writable()?;
    let (parent, last) = name.parent()?;
    rustix::fs::utimensat(parent, last, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(0)
}

pub(crate) fn umask(call: &Call<'_, '_>) -> Answer {
    let mut state = call.state();
    let old = state.umask;
    state.umask = call.argument(0) as u32 & 0o777;
    Ok(u64::from(old))
}

pub(crate) fn getcwd(call: &Call<'_, '_>) -> Answer {
    let mut path = call.state().directory.clone().into_bytes();
    path.push(0);
    if (path.len() as u64) > call.argument(1) {
        return Err(Errno::RANGE.into());
    }
    call.write(call.pointer(0), &path)?;
    Ok(path.len() as u64)
}

pub(crate) fn chdir(call: &Call<'_, '_>) -> Answer {
    let name = here(call, 0)?;
    name.open(OFlags::PATH | OFlags::DIRECTORY)?;
    let path = name.path.clone();
    call.state().directory = path;
    Ok(0)
}

pub(crate) fn fchdir(call: &Call<'_, '_>) -> Answer {
    let handle = call.state().descriptors.get(call.int(0))?;
    let Handle::Directory(directory) = handle else {
        return Err(Errno::NOTDIR.into());
    };
    call.state().directory = directory.path.clone();
    Ok(0)
}
