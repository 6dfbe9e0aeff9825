//! Calls on names.

use crate::call::Call;
use crate::descriptor::Open;
use crate::errno::{Answer, CallStop, Errno};
use crate::files;
use crate::path::{absolute, find};
use crate::program::Place;
use alloc::borrow::ToOwned as _;
use alloc::string::String;

const AT_FDCWD: i32 = -100;
const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_REMOVEDIR: u64 = 0x200;
const AT_EMPTY_PATH: u64 = 0x1000;

/// A name, made absolute, with the directory that it leads into.
struct Name {
    directory: usize,
    path: String,
    /// Where in `path` the part beneath the directory begins.
    rest: usize,
}

impl Name {
    fn place(&self) -> Place<'_> {
        Place {
            directory: self.directory,
            name: self.path.get(self.rest..).unwrap_or_default(),
        }
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
    Ok(call.state(|state| {
        let path = absolute(from.as_deref().unwrap_or(&state.working), text);
        let (directory, rest) = find(&state.directories, &path)?;
        Ok::<_, Errno>(Name {
            directory,
            path,
            rest,
        })
    })??)
}

fn mode(call: &Call<'_>, index: usize) -> Result<u32, Errno> {
    let umask = call.state(|state| state.umask)?;
    Ok(call.argument(index) as u32 & 0o777 & !umask)
}

fn open_name(call: &Call<'_>, name: Name, flags: u64, mode: u32) -> Answer {
    let (handle, is_directory) = call.program().open(name.place(), flags as u32, mode)?;
    let directory = is_directory.then(|| name.path.into());
    files::add(call, Open { handle, directory }, 0)
}

pub(crate) fn open(call: &Call<'_>) -> Answer {
    open_name(call, here(call, 0)?, call.argument(1), mode(call, 2)?)
}

pub(crate) fn openat(call: &Call<'_>) -> Answer {
    open_name(call, at(call, 0, 1)?, call.argument(2), mode(call, 3)?)
}

pub(crate) fn creat(call: &Call<'_>) -> Answer {
    /// To write, to make, to empty.
    const CREATE: u64 = 0o1 | 0o100 | 0o1000;
    open_name(call, here(call, 0)?, CREATE, mode(call, 1)?)
}

fn stat_name(call: &Call<'_>, name: &Name, follow: bool, to: u64) -> Answer {
    call.write(to, &call.program().stat(name.place(), follow)?)?;
    Ok(0)
}

pub(crate) fn stat(call: &Call<'_>) -> Answer {
    stat_name(call, &here(call, 0)?, true, call.argument(1))
}

pub(crate) fn lstat(call: &Call<'_>) -> Answer {
    stat_name(call, &here(call, 0)?, false, call.argument(1))
}

pub(crate) fn newfstatat(call: &Call<'_>) -> Answer {
    let (flags, text) = (call.argument(3), call.path(1)?);
    if flags & AT_EMPTY_PATH != 0 && text.is_empty() {
        let open = files::named(call, call.int(0))?;
        let stat = call.program().stat_open(&open.handle)?;
        call.write(call.argument(2), &stat)?;
        return Ok(0);
    }
    stat_name(
        call,
        &named(call, call.int(0), &text)?,
        flags & AT_SYMLINK_NOFOLLOW == 0,
        call.argument(2),
    )
}

pub(crate) fn access(call: &Call<'_>) -> Answer {
    let name = here(call, 0)?;
    call.program()
        .access(name.place(), call.argument(1) as u32)?;
    Ok(0)
}

pub(crate) fn faccessat(call: &Call<'_>) -> Answer {
    let name = at(call, 0, 1)?;
    call.program()
        .access(name.place(), call.argument(2) as u32)?;
    Ok(0)
}

fn make_directory(call: &Call<'_>, name: &Name, index: usize) -> Answer {
    let mode = mode(call, index)?;
    call.program().make_directory(name.place(), mode)?;
    Ok(0)
}

pub(crate) fn mkdir(call: &Call<'_>) -> Answer {
    make_directory(call, &here(call, 0)?, 1)
}

pub(crate) fn mkdirat(call: &Call<'_>) -> Answer {
    make_directory(call, &at(call, 0, 1)?, 2)
}

fn remove(call: &Call<'_>, name: &Name, directory: bool) -> Answer {
    call.program().remove(name.place(), directory)?;
    Ok(0)
}

pub(crate) fn unlink(call: &Call<'_>) -> Answer {
    remove(call, &here(call, 0)?, false)
}

pub(crate) fn rmdir(call: &Call<'_>) -> Answer {
    remove(call, &here(call, 0)?, true)
}

pub(crate) fn unlinkat(call: &Call<'_>) -> Answer {
    let directory = call.argument(2) & AT_REMOVEDIR != 0;
    remove(call, &at(call, 0, 1)?, directory)
}

fn move_name(call: &Call<'_>, from: &Name, to: &Name) -> Answer {
    call.program().rename(from.place(), to.place())?;
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

fn read_link(call: &Call<'_>, name: &Name, to: u64, room: u64) -> Answer {
    let target = call.program().read_link(name.place())?;
    let length = target.len().min(room as usize);
    call.write(to, target.get(..length).unwrap_or_default())?;
    Ok(length as u64)
}

pub(crate) fn readlink(call: &Call<'_>) -> Answer {
    read_link(call, &here(call, 0)?, call.argument(1), call.argument(2))
}

pub(crate) fn readlinkat(call: &Call<'_>) -> Answer {
    read_link(call, &at(call, 0, 1)?, call.argument(2), call.argument(3))
}

pub(crate) fn truncate(call: &Call<'_>) -> Answer {
    let length = u64::try_from(call.argument(1) as i64).map_err(|_| Errno::INVAL)?;
    call.program().set_length(here(call, 0)?.place(), length)?;
    Ok(0)
}

pub(crate) fn chmod(call: &Call<'_>) -> Answer {
    let name = here(call, 0)?;
    call.program()
        .set_mode(name.place(), call.argument(1) as u32)?;
    Ok(0)
}

pub(crate) fn fchmodat(call: &Call<'_>) -> Answer {
    let name = at(call, 0, 1)?;
    call.program()
        .set_mode(name.place(), call.argument(2) as u32)?;
    Ok(0)
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
        let open = files::named(call, call.int(0))?;
        call.program().set_open_times(&open.handle, times)?;
    } else {
        let name = at(call, 0, 1)?;
        call.program().set_times(name.place(), times)?;
    }
    Ok(0)
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
    call.program().is_directory(name.place())?;
    call.state(|state| state.working = name.path)?;
    Ok(0)
}

pub(crate) fn fchdir(call: &Call<'_>) -> Answer {
    let path = files::directory(call, call.int(0))?;
    call.state(|state| state.working = (*path).to_owned())?;
    Ok(0)
}
