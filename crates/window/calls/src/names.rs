//! Calls on names.

use crate::above::{self, Above};
use crate::call::Call;
use crate::descriptor::{O_CLOEXEC, Object, Open};
use crate::device::Special;
use crate::errno::{Answer, CallStop, Errno};
use crate::files;
use crate::handle::STAT;
use crate::path::{absolute, find, ways};
use crate::program::Place;
use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

const AT_FDCWD: i32 = -100;
const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_REMOVEDIR: u64 = 0x200;
const AT_EMPTY_PATH: u64 = 0x1000;

/// How many links one name may lead through, as Linux has it.
const MOST_LINKS: usize = 40;

/// A name, made absolute.
struct Name {
    path: String,
    /// The granted directory that it leads into, and where in `path` the part beneath it begins.
    within: Option<(usize, usize)>,
    /// Names in it, if it is a directory above granted ones.
    ways: Vec<String>,
}

impl Name {
    /// Its place in a granted directory.
    fn place(&self) -> Result<Place<'_>, Errno> {
        match self.within {
            Some((directory, rest)) => Ok(Place {
                directory,
                name: self.path.get(rest..).unwrap_or_default(),
            }),
            None if self.ways.is_empty() => Err(Errno::NOENT),
            // It is in use, as a directory is in which something is mounted.
            None => Err(Errno::BUSY),
        }
    }

    /// The name of this absolute path.
    fn of(call: &Call<'_>, path: String) -> Result<Self, CallStop> {
        Ok(call.state(|state| Name {
            within: find(&state.directories, &path),
            ways: ways(&state.directories, &path),
            path,
        })?)
    }

    /// What `granted` says of its place, and the name that it led to. Where nothing is there, `above` says what a directory
    /// above granted ones does. The kernel follows links beneath a granted directory. A link that leads out of it is
    /// followed here, and may lead into a granted one.
    fn look<T>(
        mut self,
        call: &Call<'_>,
        granted: impl Fn(Place<'_>) -> Result<T, CallStop>,
        above: impl Fn(&Name) -> Result<T, CallStop>,
    ) -> Result<(T, Name), CallStop> {
        for _ in 0..MOST_LINKS {
            let found = match self.within {
                Some(_) => granted(self.place()?),
                None => Err(Errno::NOENT.into()),
            };
            let answer = match found {
                Err(CallStop::Error(Errno::REMOTE)) => {
                    self = self.through_link(call)?;
                    continue;
                }
                Err(CallStop::Error(Errno::NOENT)) if !self.ways.is_empty() => above(&self)?,
                found => found?,
            };
            return Ok((answer, self));
        }
        Err(Errno::LOOP.into())
    }

    /// [`look`](Self::look) for what cannot be done to a directory above granted ones. That is in use, as a directory is in
    /// which something is mounted.
    fn change(
        self,
        call: &Call<'_>,
        granted: impl Fn(Place<'_>) -> Result<(), CallStop>,
    ) -> Answer {
        self.look(call, granted, |_| Err(Errno::BUSY.into()))?;
        Ok(0)
    }

    /// Where the first link on the way leads, and the rest of the way from there.
    fn through_link(&self, call: &Call<'_>) -> Result<Self, CallStop> {
        let (directory, rest) = self.within.ok_or(Errno::NOENT)?;
        let ends = self.path.match_indices('/').map(|(end, _)| end);
        for end in ends.chain([self.path.len()]).filter(|end| *end > rest) {
            let (way, behind) = self.path.split_at(end);
            let name = way.get(rest..).unwrap_or_default();
            let Ok(target) = call.program().read_link(Place { directory, name }) else {
                continue;
            };
            let target = String::from_utf8(target).map_err(|_| Errno::NOENT)?;
            let from = way.rsplit_once('/').map_or("", |(from, _)| from);
            return Self::of(call, absolute(from, &format!("{target}{behind}")));
        }
        Err(Errno::NOENT.into())
    }
}

/// The name in argument `path`, seen from the working directory.
fn here(call: &Call<'_>, path: usize) -> Result<Name, CallStop> {
    named(call, AT_FDCWD, &call.path(path)?)
}

/// The name in argument `path`, seen from the directory in argument `directory`.
fn at(call: &Call<'_>, directory: usize, path: usize) -> Result<Name, CallStop> {
    named(call, call.int(directory), &call.path(path)?)
}

/// The name that a call has read, seen from a directory.
fn named(call: &Call<'_>, directory: i32, text: &str) -> Result<Name, CallStop> {
    let from = match directory == AT_FDCWD || text.starts_with('/') {
        true => None,
        false => Some(files::directory(call, directory)?),
    };
    if text.is_empty() {
        return Err(Errno::NOENT.into());
    }
    let path = match from {
        Some(from) => absolute(&from, text),
        None => call.state(|state| absolute(&state.working, text))?,
    };
    Name::of(call, path)
}

fn mode(call: &Call<'_>, index: usize) -> Result<u32, Errno> {
    let umask = call.state(|state| state.umask)?;
    Ok(call.argument(index) as u32 & 0o777 & !umask)
}

fn closes(flags: u64) -> bool {
    flags & u64::from(O_CLOEXEC) != 0
}

fn open_name(call: &Call<'_>, name: Name, flags: u64, mode: u32) -> Answer {
    const CREATE_NEW: u64 = 0o100 | 0o200;
    const ACCESS: u64 = 0o3;
    let ((object, is_directory), name) = name.look(
        call,
        |place| {
            let (handle, is_directory) = call.program().open(place, flags as u32, mode)?;
            Ok((Object::Host(handle), is_directory))
        },
        |name| match flags & CREATE_NEW == CREATE_NEW {
            true => Err(Errno::EXIST.into()),
            false if flags & (ACCESS | CREATE_NEW) != 0 => Err(Errno::ISDIR.into()),
            false => {
                let above = Above::new(&name.path, name.ways.clone());
                Ok((Object::Above(Arc::new(above)), true))
            }
        },
    )?;
    let directory = is_directory.then(|| name.path.into());
    files::add(call, Open { object, directory }, 0, closes(flags))
}

/// What a name in `/dev` stands for, whatever was granted. Any other name needs a directory.
fn special(call: &Call<'_>, text: &str) -> Result<Option<Open>, CallStop> {
    match Special::of(text) {
        Some(Special::Descriptor(number)) => Ok(Some(files::named(call, number)?)),
        Some(Special::Device(device)) => Ok(Some(Open {
            object: Object::Device(device),
            directory: None,
        })),
        None if !call.program().has_directories() => Err(Errno::PERM.into()),
        None => Ok(None),
    }
}

fn open_text(call: &Call<'_>, (directory, text): (i32, &str), flags: u64, mode: u32) -> Answer {
    const O_DIRECTORY: u64 = 0o200_000;
    match special(call, text)? {
        Some(_) if flags & O_DIRECTORY != 0 => Err(Errno::NOTDIR.into()),
        Some(open) => files::add(call, open, 0, closes(flags)),
        None => open_name(call, named(call, directory, text)?, flags, mode),
    }
}

pub(crate) fn open(call: &Call<'_>) -> Answer {
    let (text, mode) = (call.path(0)?, mode(call, 2)?);
    open_text(call, (AT_FDCWD, &text), call.argument(1), mode)
}

pub(crate) fn openat(call: &Call<'_>) -> Answer {
    let (text, mode) = (call.path(1)?, mode(call, 3)?);
    open_text(call, (call.int(0), &text), call.argument(2), mode)
}

pub(crate) fn creat(call: &Call<'_>) -> Answer {
    /// To write, to make, to empty.
    const CREATE: u64 = 0o1 | 0o100 | 0o1000;
    open_text(call, (AT_FDCWD, &call.path(0)?), CREATE, mode(call, 1)?)
}

/// `struct stat` of what is there under a name.
fn stat_of(
    call: &Call<'_>,
    (directory, text): (i32, &str),
    follow: bool,
) -> Result<[u8; STAT], CallStop> {
    if let Some(open) = special(call, text)? {
        return files::stat_of(call, &open);
    }
    let name = named(call, directory, text)?;
    let look = name.look(
        call,
        |place| call.program().stat(place, follow),
        |name| Ok(above::stat(&name.path)),
    );
    Ok(look?.0)
}

fn stat_text(call: &Call<'_>, name: (i32, &str), follow: bool, to: u64) -> Answer {
    let stat = stat_of(call, name, follow)?;
    call.write(to, &stat)?;
    Ok(0)
}

pub(crate) fn stat(call: &Call<'_>) -> Answer {
    stat_text(call, (AT_FDCWD, &call.path(0)?), true, call.argument(1))
}

pub(crate) fn lstat(call: &Call<'_>) -> Answer {
    stat_text(call, (AT_FDCWD, &call.path(0)?), false, call.argument(1))
}

pub(crate) fn newfstatat(call: &Call<'_>) -> Answer {
    let (flags, text) = (call.argument(3), call.path(1)?);
    if flags & AT_EMPTY_PATH != 0 && text.is_empty() {
        let open = files::named(call, call.int(0))?;
        call.write(call.argument(2), &files::stat_of(call, &open)?)?;
        return Ok(0);
    }
    stat_text(
        call,
        (call.int(0), &text),
        flags & AT_SYMLINK_NOFOLLOW == 0,
        call.argument(2),
    )
}

fn access_text(call: &Call<'_>, (directory, text): (i32, &str), wanted: u32) -> Answer {
    const EXECUTE: u32 = 1;
    const WRITE: u32 = 2;
    match special(call, text)? {
        Some(_) if wanted & EXECUTE != 0 => return Err(Errno::ACCESS.into()),
        Some(_) => {}
        None => {
            let name = named(call, directory, text)?;
            name.look(
                call,
                |place| call.program().access(place, wanted),
                |_| match wanted & WRITE {
                    0 => Ok(()),
                    _ => Err(Errno::ROFS.into()),
                },
            )?;
        }
    }
    Ok(0)
}

pub(crate) fn access(call: &Call<'_>) -> Answer {
    let text = call.path(0)?;
    access_text(call, (AT_FDCWD, &text), call.argument(1) as u32)
}

pub(crate) fn faccessat(call: &Call<'_>) -> Answer {
    let text = call.path(1)?;
    access_text(call, (call.int(0), &text), call.argument(2) as u32)
}

fn make_directory(call: &Call<'_>, name: Name, index: usize) -> Answer {
    let mode = mode(call, index)?;
    name.look(
        call,
        |place| call.program().make_directory(place, mode),
        |_| Err(Errno::EXIST.into()),
    )?;
    Ok(0)
}

pub(crate) fn mkdir(call: &Call<'_>) -> Answer {
    make_directory(call, here(call, 0)?, 1)
}

pub(crate) fn mkdirat(call: &Call<'_>) -> Answer {
    make_directory(call, at(call, 0, 1)?, 2)
}

fn remove(call: &Call<'_>, name: Name, directory: bool) -> Answer {
    name.change(call, |place| call.program().remove(place, directory))
}

pub(crate) fn unlink(call: &Call<'_>) -> Answer {
    remove(call, here(call, 0)?, false)
}

pub(crate) fn rmdir(call: &Call<'_>) -> Answer {
    remove(call, here(call, 0)?, true)
}

pub(crate) fn unlinkat(call: &Call<'_>) -> Answer {
    let directory = call.argument(2) & AT_REMOVEDIR != 0;
    remove(call, at(call, 0, 1)?, directory)
}

fn move_name(call: &Call<'_>, from: &Name, to: &Name) -> Answer {
    call.program().rename(from.place()?, to.place()?)?;
    Ok(0)
}

pub(crate) fn rename(call: &Call<'_>) -> Answer {
    move_name(call, &here(call, 0)?, &here(call, 1)?)
}

/// Also renameat2, without its flags.
pub(crate) fn renameat(call: &Call<'_>) -> Answer {
    const RENAMEAT2: u64 = 316;
    if call.number() == RENAMEAT2 && call.argument(4) != 0 {
        return Err(Errno::INVAL.into());
    }
    move_name(call, &at(call, 0, 1)?, &at(call, 2, 3)?)
}

fn link_name(call: &Call<'_>, from: &Name, to: &Name) -> Answer {
    call.program().link(from.place()?, to.place()?)?;
    Ok(0)
}

pub(crate) fn link(call: &Call<'_>) -> Answer {
    link_name(call, &here(call, 0)?, &here(call, 1)?)
}

/// Without its flags: a link in the place of the file is linked itself.
pub(crate) fn linkat(call: &Call<'_>) -> Answer {
    if call.argument(4) != 0 {
        return Err(Errno::INVAL.into());
    }
    link_name(call, &at(call, 0, 1)?, &at(call, 2, 3)?)
}

/// A link that the host's programs might follow leads nowhere but beneath its directory.
fn make_link(call: &Call<'_>, target: &str, name: Name) -> Answer {
    name.change(call, |place| {
        call.program().make_link(target.as_bytes(), place)
    })
}

pub(crate) fn symlink(call: &Call<'_>) -> Answer {
    make_link(call, &call.path(0)?, here(call, 1)?)
}

pub(crate) fn symlinkat(call: &Call<'_>) -> Answer {
    make_link(call, &call.path(0)?, at(call, 1, 2)?)
}

fn read_link(call: &Call<'_>, name: Name, to: u64, room: u64) -> Answer {
    let (target, _) = name.look(
        call,
        |place| call.program().read_link(place),
        |_| Err(Errno::INVAL.into()),
    )?;
    let length = target.len().min(room as usize);
    call.write(to, target.get(..length).unwrap_or_default())?;
    Ok(length as u64)
}

pub(crate) fn readlink(call: &Call<'_>) -> Answer {
    read_link(call, here(call, 0)?, call.argument(1), call.argument(2))
}

pub(crate) fn readlinkat(call: &Call<'_>) -> Answer {
    read_link(call, at(call, 0, 1)?, call.argument(2), call.argument(3))
}

pub(crate) fn truncate(call: &Call<'_>) -> Answer {
    let length = u64::try_from(call.argument(1) as i64).map_err(|_| Errno::INVAL)?;
    here(call, 0)?.change(call, |place| call.program().set_length(place, length))
}

pub(crate) fn chmod(call: &Call<'_>) -> Answer {
    let mode = call.argument(1) as u32;
    here(call, 0)?.change(call, |place| call.program().set_mode(place, mode))
}

pub(crate) fn fchmodat(call: &Call<'_>) -> Answer {
    let mode = call.argument(2) as u32;
    at(call, 0, 1)?.change(call, |place| call.program().set_mode(place, mode))
}

pub(crate) fn chown(call: &Call<'_>) -> Answer {
    let stat = stat_of(call, (AT_FDCWD, &call.path(0)?), true)?;
    files::kept_owner(call, 1, &stat)
}

pub(crate) fn lchown(call: &Call<'_>) -> Answer {
    let stat = stat_of(call, (AT_FDCWD, &call.path(0)?), false)?;
    files::kept_owner(call, 1, &stat)
}

pub(crate) fn fchownat(call: &Call<'_>) -> Answer {
    let (flags, text) = (call.argument(4), call.path(1)?);
    let stat = if flags & AT_EMPTY_PATH != 0 && text.is_empty() {
        files::stat_of(call, &files::named(call, call.int(0))?)?
    } else {
        let follow = flags & AT_SYMLINK_NOFOLLOW == 0;
        stat_of(call, (call.int(0), &text), follow)?
    };
    files::kept_owner(call, 2, &stat)
}

pub(crate) fn utimensat(call: &Call<'_>) -> Answer {
    const NOW: u64 = 0x3fff_ffff;
    let given = match call.argument(2) {
        0 => [0, NOW, 0, NOW],
        _ => call.record(2)?,
    };
    let [access, access_part, change, change_part] = given.map(|word| word as i64);
    let times = [(access, access_part), (change, change_part)];
    if call.argument(1) == 0 {
        let Object::Host(handle) = files::named(call, call.int(0))?.object else {
            return Err(Errno::ACCESS.into());
        };
        call.program().set_open_times(&handle, times)?;
        return Ok(0);
    }
    at(call, 0, 1)?.change(call, |place| call.program().set_times(place, times))
}

pub(crate) fn umask(call: &Call<'_>) -> Answer {
    let new = call.argument(0) as u32 & 0o777;
    let old = call.state(|state| core::mem::replace(&mut state.umask, new))?;
    Ok(u64::from(old))
}

pub(crate) fn getcwd(call: &Call<'_>) -> Answer {
    let mut path = call.state(|state| state.working.clone())?.into_bytes();
    path.push(0);
    if (path.len() as u64) > call.argument(1) {
        return Err(Errno::RANGE.into());
    }
    call.write(call.argument(0), &path)?;
    Ok(path.len() as u64)
}

pub(crate) fn chdir(call: &Call<'_>) -> Answer {
    let name = here(call, 0)?;
    let ((), name) = name.look(call, |place| call.program().is_directory(place), |_| Ok(()))?;
    call.state(|state| state.working = name.path)?;
    Ok(0)
}

pub(crate) fn fchdir(call: &Call<'_>) -> Answer {
    let path = files::directory(call, call.int(0))?;
    call.state(|state| state.working = (*path).to_owned())?;
    Ok(0)
}
