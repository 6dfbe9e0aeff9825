//! Where a module writes files: below what its policy names, and nowhere else. A name leads to a folder that is opened. Where that folder
//! is by then decides. All that follows goes by its descriptor, so no link and no renaming between leads elsewhere.
//!
//! ```text
//!   /a/../b/name ──open──► folder (descriptor) ──► is it below what the policy names? ──► descriptor/name, without following a link
//! ```

use crate::folders::{Root, named, split};
use crate::layout::read;
use crate::walled::{Answer, Walled};
use mullion_word_policy::File as Policy;
use std::ffi::{CString, OsStr};
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// The list of a policy that names folders and files.
const LIST: &str = "writes";
/// How an element begins that is the name of a directive: what this one names in the server's configuration.
const DIRECTIVE: &str = "directive ";
/// A directive of the core, which is read before there is a tree of directives.
const RUNTIME: &str = "DefaultRuntimeDir";

/// What a policy lets its module write.
#[derive(Default)]
pub(crate) struct Folders {
    paths: Vec<String>,
    directives: Vec<String>,
}

/// What APR answers: 0, or an error's number.
pub(crate) type Status = i32;

impl Folders {
    /// # Errors
    /// An element is all of the file system, or there is a list of which nothing is known.
    pub(crate) fn of(policy: &Policy) -> Answer<Folders> {
        let mut folders = Folders::default();
        if let Some(other) = policy.lists.keys().find(|name| *name != LIST) {
            return Err(format!("{other:?} is no list for modules of httpd"));
        }
        for element in policy.lists.get(LIST).into_iter().flatten() {
            match element.strip_prefix(DIRECTIVE) {
                Some(name) => folders.directives.push(name.to_owned()),
                None if Path::new(element).file_name().is_none() => {
                    return Err(format!("{LIST}: {element:?} is no folder of its own"));
                }
                None => folders.paths.push(element.clone()),
            }
        }
        Ok(folders)
    }

    /// Where they are now.
    fn now(&self) -> Vec<Root> {
        let mut all: Vec<PathBuf> = self.paths.iter().map(of_server).collect();
        for name in &self.directives {
            match name.as_str() {
                RUNTIME => all.extend(runtime()),
                // Modules take such a name as below the one folder or the other.
                name => {
                    for path in words(name).iter().filter_map(|word| named(word)) {
                        all.push(of_server(path));
                        all.extend(runtime().map(|folder| folder.join(path)));
                    }
                }
            }
        }
        all.iter().filter_map(|path| Root::of(path)).collect()
    }

    /// Whether a program is what a directive of the list names behind a `|`.
    pub(crate) fn names_program(&self, program: &[u8]) -> bool {
        let mut all = self.directives.iter().flat_map(|name| words(name));
        all.any(|word| {
            let piped = word.strip_prefix(b"|");
            piped.is_some_and(|piped| {
                of_server(OsStr::from_bytes(piped)).as_os_str().as_bytes() == program
            })
        })
    }
}

/// A path below the server's folder, or an absolute one.
fn of_server(path: impl AsRef<Path>) -> PathBuf {
    text_of("ap_server_root").unwrap_or_default().join(path)
}

/// A path that is a variable of the server's.
fn text_of(variable: &str) -> Option<PathBuf> {
    let at = crate::apr::symbol(variable)?;
    // SAFETY: it is a variable of httpd's, which leads to a string or is null.
    let text = unsafe { read(at as u64) };
    (text != 0).then(|| {
        // SAFETY: the server's strings end with zeros.
        let text = unsafe { crate::apr::text(text) };
        PathBuf::from(OsStr::from_bytes(text))
    })
}

fn runtime() -> Option<PathBuf> {
    text_of("ap_runtime_dir").map(of_server)
}

/// So deep sections nest, and so many directives there are at most.
const DEEP: usize = 64;
const MANY: usize = 1 << 20;

/// Words of all directives of a name in the server's configuration. Those of `.htaccess` are not in the tree.
fn words(directive: &str) -> Vec<Vec<u8>> {
    const ARGUMENTS: u64 = 8;
    const NEXT: u64 = 16;
    const CHILD: u64 = 24;
    let mut found = Vec::new();
    let mut seen = 0;
    let mut open = Vec::new();
    let tree = crate::apr::symbol("ap_conftree");
    // SAFETY: it is httpd's variable, which leads to its tree or is null.
    open.extend(tree.map(|at| unsafe { read(at as u64) }));
    while let Some(mut at) = open.pop() {
        while at != 0 && seen < MANY {
            seen += 1;
            // SAFETY: the tree is the core's, and lives as long as the configuration. Its strings end with zeros.
            unsafe {
                let name = crate::apr::text(read(at));
                if name.eq_ignore_ascii_case(directive.as_bytes()) && read(at + ARGUMENTS) != 0 {
                    found.extend(split(crate::apr::text(read(at + ARGUMENTS))));
                }
                let child = read(at + CHILD);
                if child != 0 && open.len() < DEEP {
                    open.push(child);
                }
                at = read(at + NEXT);
            }
        }
    }
    found
}

/// The path of what was opened, as the kernel has it now.
fn path_of(file: &File) -> std::io::Result<PathBuf> {
    fs::read_link(descriptor(file))
}

/// A name that leads to what was opened, whatever becomes of its path.
pub(crate) fn descriptor(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn number(error: &std::io::Error) -> Status {
    error.raw_os_error().unwrap_or(libc::EACCES)
}

/// Opens something only to name it: nothing happens to it.
fn reach(path: &Path, more: i32) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_CLOEXEC | more);
    options.open(path)
}

/// A folder that was opened, and a name in it.
pub(crate) struct Spot {
    folder: File,
    name: std::ffi::OsString,
    roots: Vec<Root>,
}

impl Spot {
    /// Where it is, by the folder's descriptor.
    pub(crate) fn path(&self) -> PathBuf {
        descriptor(&self.folder).join(&self.name)
    }

    fn has(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| root.has(path))
    }

    /// What is there: a file or a folder that has no other name. A link must lead to such a one.
    fn object(&self) -> Result<File, Status> {
        let mut file = reach(&self.path(), libc::O_NOFOLLOW).map_err(|error| number(&error))?;
        let mut data = file.metadata().map_err(|error| number(&error))?;
        if data.file_type().is_symlink() {
            file = reach(&self.path(), 0).map_err(|error| number(&error))?;
            data = file.metadata().map_err(|error| number(&error))?;
            let path = path_of(&file).map_err(|error| number(&error))?;
            if !self.has(&path) {
                return Err(libc::EACCES);
            }
        }
        let is_alone = data.is_dir() || data.file_type().is_fifo() || data.nlink() == 1;
        match is_alone && crate::opened::is_fit(file.as_raw_fd(), true) {
            true => Ok(file),
            false => Err(libc::EACCES),
        }
    }
}

impl Spot {
    /// A file that decides or runs stays under its name.
    fn may_go(&self) -> Result<(), Status> {
        let is_kept = reach(&self.path(), libc::O_NOFOLLOW).is_ok_and(|file| {
            let is_plain = file.metadata().is_ok_and(|data| data.is_file());
            is_plain && !crate::opened::is_fit(file.as_raw_fd(), true)
        });
        if is_kept { Err(libc::EACCES) } else { Ok(()) }
    }
}

fn with_zero(path: PathBuf) -> Vec<u8> {
    let mut path = path.into_os_string().into_vec();
    path.push(0);
    path
}

/// A name that a module passes, with a zero behind it.
fn as_path(name: &[u8]) -> PathBuf {
    let name = name.strip_suffix(b"\0").unwrap_or(name);
    let here = std::env::current_dir().unwrap_or_default();
    here.join(OsStr::from_bytes(name))
}

impl Walled {
    fn not_named(&self, name: &[u8]) -> Status {
        let name = String::from_utf8_lossy(name.strip_suffix(b"\0").unwrap_or(name));
        let why = "would be written, and is below nothing that the policy names (`writes`), or has another name";
        crate::apr::log(0, &format!("{}: {name} {why}", self.name));
        libc::EACCES
    }

    /// The place that a name leads to, if the module may write there.
    pub(crate) fn spot(&self, name: &[u8]) -> Result<Spot, Status> {
        let path = as_path(name);
        let (Some(folder), Some(last)) = (path.parent(), path.file_name()) else {
            return Err(self.not_named(name));
        };
        let folder = reach(folder, libc::O_DIRECTORY).map_err(|error| number(&error))?;
        let spot = Spot {
            name: last.to_owned(),
            folder,
            roots: self.folders.now(),
        };
        let at = path_of(&spot.folder).map_err(|error| number(&error))?;
        match spot.has(&at.join(&spot.name)) {
            true => Ok(spot),
            false => Err(self.not_named(name)),
        }
    }

    /// Opens a file to be written, or makes it: its descriptor is only good to be opened again by [`descriptor`].
    pub(crate) fn to_write(&self, name: &[u8], how: How) -> Result<File, Status> {
        // Nothing is kept in a device that leads nowhere.
        if let Ok(file) = reach(&as_path(name), 0)
            && file
                .metadata()
                .is_ok_and(|data| data.file_type().is_char_device())
        {
            return match crate::opened::is_fit(file.as_raw_fd(), true) {
                true => Ok(file),
                false => Err(self.not_named(name)),
            };
        }
        let spot = self.spot(name)?;
        for _ in 0..8 {
            match spot.object() {
                Ok(_) if how.is_new => return Err(libc::EEXIST),
                Err(libc::ENOENT) if how.makes => {}
                other => return other.inspect_err(|error| self.tell_of(name, *error)),
            }
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(how.mode);
            let made = options.custom_flags(libc::O_NOFOLLOW).open(spot.path());
            match made {
                Ok(file) => return Ok(file),
                // Somebody else was first.
                Err(error) if number(&error) == libc::EEXIST => {}
                Err(error) => return Err(number(&error)),
            }
        }
        Err(libc::EEXIST)
    }

    /// Something is there, and is not for the module.
    fn tell_of(&self, name: &[u8], error: Status) {
        if error == libc::EACCES {
            self.not_named(name);
        }
    }

    /// What a name leads to, if the module may change it.
    pub(crate) fn to_change(&self, name: &[u8]) -> Result<File, Status> {
        let spot = self.spot(name)?;
        spot.object()
            .inspect_err(|error| self.tell_of(name, *error))
    }
}

/// How a file is opened to be written.
#[derive(Clone, Copy)]
pub(crate) struct How {
    pub(crate) makes: bool,
    pub(crate) is_new: bool,
    pub(crate) mode: u32,
}

/// Rights to a file as Linux has them, from APR's. None lets a program run as another user.
pub(crate) fn mode(permissions: u64) -> u32 {
    const DEFAULT: u64 = 0xfff;
    match permissions & 0xffff {
        DEFAULT => 0o666,
        own => ((own >> 8 & 7) << 6 | (own >> 4 & 7) << 3 | own & 7) as u32,
    }
}

/// What a function of the kernel comes to.
fn done(result: std::io::Result<()>) -> Result<u64, Status> {
    result.map(|()| 0).map_err(|error| number(&error))
}

/// A function of APR's that changes what its first arguments, which are names, lead to.
fn change(
    names: &[u64],
    pool: Option<u64>,
    act: impl FnOnce(&'static Walled, &[Vec<u8>]) -> Result<u64, Status>,
) -> u64 {
    crate::call::mediate(|frame| {
        pool.map_or(Ok(()), |pool| frame.walled.pool(frame, pool))?;
        let names: Vec<Vec<u8>> = names
            .iter()
            .map(|name| crate::copied::name(frame, *name))
            .collect::<Answer<_>>()?;
        let status = act(frame.walled, &names);
        Ok(status.unwrap_or_else(|error| error as u32 as u64))
    })
}

fn make(path: &Path, mode: u32) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(mode).create(path)
}

/// A folder's rights, by default.
fn folder_mode(permissions: u64) -> u32 {
    match permissions & 0xffff {
        0xfff => 0o777,
        own => mode(own),
    }
}

pub(crate) extern "C" fn apr_dir_make(name: u64, permissions: u64, pool: u64) -> u64 {
    change(&[name], Some(pool), |walled, names| {
        done(make(
            &walled.spot(&names[0])?.path(),
            folder_mode(permissions),
        ))
    })
}

/// Makes what is not there of a path, from above.
pub(crate) extern "C" fn apr_dir_make_recursive(name: u64, permissions: u64, pool: u64) -> u64 {
    change(&[name], Some(pool), |walled, names| {
        let path = as_path(&names[0]);
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(walled.not_named(&names[0]));
        }
        let above: Vec<&Path> = path.ancestors().collect();
        for path in above.into_iter().rev().filter(|path| !path.is_dir()) {
            let spot = walled.spot(path.as_os_str().as_bytes())?;
            match done(make(&spot.path(), folder_mode(permissions))) {
                Ok(_) | Err(libc::EEXIST) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(0)
    })
}

pub(crate) extern "C" fn apr_dir_remove(name: u64, pool: u64) -> u64 {
    change(&[name], Some(pool), |walled, names| {
        done(fs::remove_dir(walled.spot(&names[0])?.path()))
    })
}

pub(crate) extern "C" fn apr_file_remove(name: u64, pool: u64) -> u64 {
    change(&[name], Some(pool), |walled, names| {
        let spot = walled.spot(&names[0])?;
        spot.may_go()?;
        done(fs::remove_file(spot.path()))
    })
}

pub(crate) extern "C" fn apr_file_rename(from: u64, to: u64, pool: u64) -> u64 {
    change(&[from, to], Some(pool), |walled, names| {
        let (from, to) = (walled.spot(&names[0])?, walled.spot(&names[1])?);
        from.may_go()?;
        to.may_go()?;
        done(fs::rename(from.path(), to.path()))
    })
}

pub(crate) extern "C" fn apr_file_perms_set(name: u64, permissions: u64) -> u64 {
    use std::os::unix::fs::PermissionsExt;
    change(&[name], None, |walled, names| {
        let file = walled.to_change(&names[0])?;
        let rights = fs::Permissions::from_mode(mode(permissions));
        done(fs::set_permissions(descriptor(&file), rights))
    })
}

pub(crate) extern "C" fn apr_file_mtime_set(name: u64, time: u64, pool: u64) -> u64 {
    change(&[name], Some(pool), |walled, names| {
        let file = walled.to_change(&names[0])?;
        let path = CString::new(
            with_zero(descriptor(&file))
                .split_last()
                .map_or(&[][..], |(_, path)| path),
        );
        let path = path.map_err(|_| libc::EINVAL)?;
        let time = time as i64;
        let changed = libc::timespec {
            tv_sec: time.div_euclid(1_000_000),
            tv_nsec: time.rem_euclid(1_000_000) * 1000,
        };
        let times = [changed; 2];
        // SAFETY: the path and the times are ours.
        match unsafe { libc::utimensat(libc::AT_FDCWD, path.as_ptr(), times.as_ptr(), 0) } {
            0 => Ok(0),
            _ => Err(number(&std::io::Error::last_os_error())),
        }
    })
}

/// Both are opened again by their descriptors.
pub(crate) extern "C" fn apr_file_copy(from: u64, to: u64, permissions: u64, pool: u64) -> u64 {
    const NAME: &str = "apr_file_copy";
    /// `APR_FPROT_FILE_SOURCE_PERMS`.
    const AS_SOURCE: u64 = 0x1000;
    let Some(real) = crate::apr::symbol(NAME) else {
        return libc::ENOSYS as u64;
    };
    change(&[from, to], Some(pool), |walled, names| {
        let source = reach(&as_path(&names[0]), 0).map_err(|error| number(&error))?;
        if !crate::opened::is_fit(source.as_raw_fd(), false) {
            return Err(walled.not_named(&names[0]));
        }
        let own = source.metadata().map_err(|error| number(&error))?.mode() & 0o777;
        let how = How {
            makes: true,
            is_new: false,
            mode: if permissions & AS_SOURCE != 0 {
                own
            } else {
                mode(permissions)
            },
        };
        let target = walled.to_write(&names[1], how)?;
        let [source, target] = [&source, &target].map(|file| with_zero(descriptor(file)));
        // SAFETY: it is APR's function, with names of ours and a pool that the module may use.
        let real: extern "C" fn(*const u8, *const u8, u64, u64) -> Status =
            unsafe { std::mem::transmute(real) };
        Ok(real(source.as_ptr(), target.as_ptr(), permissions, pool) as u32 as u64)
    })
}
