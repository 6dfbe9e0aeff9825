//! Files that modules open by their names. What was opened counts, and not its name: a file in which the kernel shows itself, or a
//! device, is no file for a module. `/proc/self/mem` would be the server's memory.

use crate::apr;
use crate::call::mediate;
use crate::copied;
use crate::frame::Frame;
use crate::interface::Answer as Result_;
use crate::layout::read;
use crate::object::Kind;
use crate::states::by_row;
use crate::walled::{Answer, lock};
use crate::written::{self, How, Spot};
use std::ffi::c_int;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Mutex;

/// What APR reads a file by, and nothing else: `APR_FOPEN_READ`, `BINARY`, `BUFFERED`, `XTHREAD`, `SHARELOCK`, `NOCLEANUP`,
/// `SENDFILE_ENABLED`, `LARGEFILE`, `SPARSE` and `NONBLOCK`. Whoever asks for more has to be allowed to write the file.
const READ: u64 = 0x1 | 0x20 | 0x80 | 0x200 | 0x400 | 0x800 | 0x1000 | 0x4000 | 0x8000 | 0x4_0000;
const MAKES: u64 = 0x4;
const IS_NEW: u64 = 0x40;
/// `APR_FOPEN_DELONCLOSE`: APR removes it by its name.
const REMOVED: u64 = 0x100;
/// `APR_DBM_READONLY`.
const READ_ONLY: u64 = 1;
/// Devices that lead nowhere: `null`, `zero`, `full`, `random`, `urandom`, of the first number 1.
const MEMORY: u32 = 1;
const HARMLESS: [u32; 5] = [3, 5, 7, 8, 9];

/// The file system of pipes that have no name.
const PIPES: i64 = 0x5049_5045;

/// Policies and modules of the wall, by file system and number: no module writes them.
static OWN: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// A file that decides what modules may do.
pub(crate) fn guard(path: &std::path::Path) {
    use std::os::unix::fs::MetadataExt;
    if let Ok(data) = std::fs::metadata(path) {
        let mut own = lock(&OWN);
        let file = (data.dev(), data.ino());
        if !own.contains(&file) {
            own.push(file);
        }
    }
}

/// Whether a module may have an open file. File systems that show what the kernel is have no blocks; those of disks, of memory and
/// of the network have.
pub(crate) fn is_fit(descriptor: c_int, is_written: bool) -> bool {
    // SAFETY: both are filled in by the kernel, and zeros are good values.
    let (mut system, mut data): (libc::statfs, libc::stat) = unsafe { std::mem::zeroed() };
    // SAFETY: the two are ours.
    let done = unsafe {
        libc::fstatfs(descriptor, &mut system) == 0 && libc::fstat(descriptor, &mut data) == 0
    };
    match data.st_mode & libc::S_IFMT {
        _ if !done => false,
        libc::S_IFCHR => {
            libc::major(data.st_rdev) == MEMORY && HARMLESS.contains(&libc::minor(data.st_rdev))
        }
        // A pipe without a name is somebody else's, by `/proc/self/fd`.
        libc::S_IFIFO => system.f_type != PIPES,
        libc::S_IFSOCK => true,
        libc::S_IFREG | libc::S_IFDIR if system.f_blocks == 0 => false,
        libc::S_IFREG if is_written => {
            let file = (data.st_dev, data.st_ino);
            !lock(&OWN).contains(&file) && !is_mapped(file)
        }
        libc::S_IFREG | libc::S_IFDIR => true,
        _ => false,
    }
}

/// Whether the process has a file mapped: its program, a library, a module.
fn is_mapped(file: (u64, u64)) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    // Addresses, rights, offset, file system as `fd:01`, number.
    maps.lines().any(|line| {
        let mut words = line.split_ascii_whitespace().skip(3);
        let (Some(system), Some(number)) = (words.next(), words.next()) else {
            return false;
        };
        let numbers = system.split_once(':').and_then(|(major, minor)| {
            let number = |text| u32::from_str_radix(text, 16).ok();
            Some(libc::makedev(number(major)?, number(minor)?))
        });
        number.parse() == Ok(file.1) && numbers == Some(file.0) && file.1 != 0
    })
}

/// Looks at a file that a function is about to open by its name, to read it.
fn may_open(name: &[u8]) -> bool {
    // SAFETY: the name is ours, with a zero behind it. Nothing happens to what is there.
    let descriptor = unsafe { libc::open(name.as_ptr().cast(), libc::O_PATH | libc::O_CLOEXEC) };
    if descriptor < 0 {
        return true;
    }
    // SAFETY: it was just opened, and is nobody else's.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    is_fit(descriptor.as_raw_fd(), false)
}

/// A regular file that a function is about to read for a module, if the module may have it. Whatever its name leads to by then, this one
/// is it.
pub(crate) fn to_be_read(name: &[u8]) -> Option<OwnedFd> {
    let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: the name is ours, with a zero behind it.
    let descriptor = unsafe { libc::open(name.as_ptr().cast(), flags) };
    if descriptor < 0 {
        return None;
    }
    // SAFETY: it was just opened, and is nobody else's.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    is_fit(descriptor.as_raw_fd(), false).then_some(descriptor)
}

/// The answer for a file that is none for modules.
fn refused(frame: &Frame, name: &[u8]) -> u64 {
    let name = String::from_utf8_lossy(&name[..name.len() - 1]);
    let why = "is no file for modules: a device, a part of the kernel's or the server's own";
    apr::log(0, &format!("{}: {name} {why}", frame.walled.name));
    libc::EACCES as u64
}

/// APR's file of a name of ours.
fn apr_open(name: &[u8], flags: u64, permissions: u64, pool: u64) -> Answer<Result<u64, u64>> {
    let open = apr::symbol("apr_file_open").ok_or("the server does not have it")?;
    // SAFETY: it is APR's function, with a name and a place of ours, and a pool that the caller has looked at.
    unsafe {
        let open: extern "C" fn(*mut u64, *const u8, u32, u32, u64) -> c_int =
            std::mem::transmute(open);
        let mut file = 0_u64;
        match open(
            &raw mut file,
            name.as_ptr(),
            flags as u32,
            permissions as u32,
            pool,
        ) {
            0 => Ok(Ok(file)),
            status => Ok(Err(status as u32 as u64)),
        }
    }
}

/// APR opens what we have opened to be written, by its descriptor. It keeps the name that the module gave.
fn apr_open_written(name: &[u8], file: &File, flags: u64, pool: u64) -> Answer<Result<u64, u64>> {
    let name_of = apr::symbol("apr_file_name_get").ok_or("the server does not have it")?;
    let whole = std::fs::read_link(written::descriptor(file)).unwrap_or_default();
    let shown = match flags & REMOVED {
        0 => name,
        _ => whole.as_os_str().as_bytes(),
    };
    let shown = shown.strip_suffix(b"\0").unwrap_or(shown);
    let own = written::descriptor(file).into_os_string().into_vec();
    // As long as the other one, which is written over it.
    let mut long = vec![b'/'; shown.len().saturating_sub(own.len())];
    long.extend(own);
    long.push(0);
    let opened = apr_open(&long, flags & !(MAKES | IS_NEW), 0, pool)?;
    if let Ok(file) = opened {
        // SAFETY: APR has just made the file, with a copy of the name, which has room for the other one and its zero.
        unsafe {
            let get: extern "C" fn(*mut u64, u64) -> c_int = std::mem::transmute(name_of);
            let mut kept = 0_u64;
            get(&raw mut kept, file);
            if kept != 0 && apr::text(kept) == &long[..long.len() - 1] {
                let kept = kept as *mut u8;
                kept.copy_from_nonoverlapping(shown.as_ptr(), shown.len());
                kept.add(shown.len()).write(0);
            }
        }
    }
    Ok(opened)
}

pub(crate) extern "C" fn apr_file_open(
    to: u64,
    name: u64,
    flags: u64,
    permissions: u64,
    pool: u64,
) -> u64 {
    const NAME: &str = "apr_file_open";
    mediate(|frame| {
        let walled = frame.walled;
        let named = |what: String| format!("{NAME}: {what}");
        walled.pool(frame, pool).map_err(named)?;
        walled.must_write(to, 8).map_err(named)?;
        let name = copied::name(frame, name).map_err(named)?;
        let flags = flags & 0xffff_ffff;
        let opened = match flags & !READ {
            0 if !may_open(&name) => return Ok(refused(frame, &name)),
            0 => apr_open(&name, flags, permissions, pool)?,
            // As APR has it.
            _ if flags & (MAKES | IS_NEW) == IS_NEW => return Ok(libc::EACCES as u64),
            _ => {
                let how = How {
                    makes: flags & MAKES != 0,
                    is_new: flags & IS_NEW != 0,
                    mode: written::mode(permissions),
                };
                match walled.to_write(&name, how) {
                    Ok(file) => apr_open_written(&name, &file, flags, pool)?,
                    Err(status) => return Ok(status as u32 as u64),
                }
            }
        };
        let file = match opened {
            Ok(file) => file,
            Err(status) => return Ok(status),
        };
        let function = |name| apr::symbol(name).ok_or("the server does not have it");
        let (descriptor_of, close) = (function("apr_os_file_get")?, function("apr_file_close")?);
        // SAFETY: they are APR's functions, for the file that was just opened.
        unsafe {
            let get: extern "C" fn(*mut c_int, u64) -> c_int = std::mem::transmute(descriptor_of);
            let mut descriptor = -1;
            get(&raw mut descriptor, file);
            // The name may lead elsewhere by now.
            if !is_fit(descriptor, flags & !READ != 0) {
                let close: extern "C" fn(u64) -> c_int = std::mem::transmute(close);
                close(file);
                return Ok(refused(frame, &name));
            }
        }
        walled.know(frame, Some(pool), file, Kind::File)?;
        walled.must_write(to, 8)?;
        // SAFETY: the module may write there.
        unsafe { (to as *mut u64).write_unaligned(file) };
        Ok(0)
    })
}

/// Makes a file of a fresh name, whose last six letters are ours.
pub(crate) extern "C" fn apr_file_mktemp(to: u64, name: u64, flags: u64, pool: u64) -> u64 {
    const NAME: &str = "apr_file_mktemp";
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    /// As APR has it: read, written, made, new, removed when it is closed.
    const DEFAULT: u64 = 0x1 | 0x2 | MAKES | IS_NEW | REMOVED;
    mediate(|frame| {
        let walled = frame.walled;
        let named = |what: String| format!("{NAME}: {what}");
        walled.pool(frame, pool).map_err(named)?;
        walled.must_write(to, 8).map_err(named)?;
        let mut text = copied::name(frame, name).map_err(named)?;
        walled.must_write(name, text.len() as u64).map_err(named)?;
        let end = text.len() - 1;
        if end < 6 || &text[end - 6..end] != b"XXXXXX" {
            return Ok(libc::EINVAL as u64);
        }
        let how = How {
            makes: true,
            is_new: true,
            mode: 0o600,
        };
        for _ in 0..1000 {
            let mut random = [0_u8; 6];
            // SAFETY: there is room for so many bytes.
            unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) };
            for (letter, random) in text[end - 6..end].iter_mut().zip(random) {
                *letter = LETTERS[usize::from(random % 32)];
            }
            let made = match walled.to_write(&text, how) {
                Ok(made) => made,
                Err(libc::EEXIST) => continue,
                Err(status) => return Ok(status as u32 as u64),
            };
            let flags = if flags == 0 {
                DEFAULT
            } else {
                flags | 0x1 | 0x2
            };
            let file = match apr_open_written(&text, &made, flags, pool)? {
                Ok(file) => file,
                Err(status) => return Ok(status),
            };
            walled.know(frame, Some(pool), file, Kind::File)?;
            walled.must_write(to, 8)?;
            walled.must_write(name, text.len() as u64)?;
            // SAFETY: the module may write both.
            unsafe {
                (name as *mut u8).copy_from_nonoverlapping(text.as_ptr(), text.len());
                (to as *mut u64).write_unaligned(file);
            }
            return Ok(0);
        }
        Ok(libc::EEXIST as u64)
    })
}

/// Closes a file of configuration that the module may not have.
fn close_lines(lines: u64) {
    if let Some(close) = apr::symbol("ap_cfg_closefile") {
        // SAFETY: it is httpd's function, for what was just opened, and nobody else has it.
        let close: extern "C" fn(u64) -> c_int = unsafe { std::mem::transmute(close) };
        close(lines);
    }
}

/// A file of configuration is read as any other one. httpd takes regular files alone.
pub(crate) extern "C" fn ap_pcfg_openfile(to: u64, pool: u64, name: u64) -> u64 {
    const NAME: &str = "ap_pcfg_openfile";
    /// Where httpd has APR's file in its own.
    const FILE: u64 = 24;
    mediate(|frame| {
        let walled = frame.walled;
        let named = |what: String| format!("{NAME}: {what}");
        walled.pool(frame, pool).map_err(named)?;
        walled.must_write(to, 8).map_err(named)?;
        let Some(name) = copied::name_or_null(frame, name).map_err(named)? else {
            return Ok(libc::EBADF as u64);
        };
        if !may_open(&name) {
            return Ok(refused(frame, &name));
        }
        let function = |name| apr::symbol(name).ok_or("the server does not have it");
        let (open, descriptor_of) = (function(NAME)?, function("apr_os_file_get")?);
        let mut lines = 0_u64;
        let mut descriptor = -1;
        // SAFETY: they are httpd's and APR's functions, with a pool that the module may use, a name of ours, which is copied, and
        // places of ours. What is opened has APR's file.
        let status = unsafe {
            let open: extern "C" fn(*mut u64, u64, *const u8) -> c_int = std::mem::transmute(open);
            let status = open(&raw mut lines, pool, name.as_ptr());
            if status == 0 {
                let get: extern "C" fn(*mut c_int, u64) -> c_int =
                    std::mem::transmute(descriptor_of);
                get(&raw mut descriptor, read(lines + FILE));
            }
            status
        };
        if status != 0 {
            return Ok(status as u32 as u64);
        }
        // The name may lead elsewhere by now.
        if !is_fit(descriptor, false) {
            close_lines(lines);
            return Ok(refused(frame, &name));
        }
        walled.know(frame, Some(pool), lines, Kind::ConfigFile)?;
        walled.must_write(to, 8)?;
        // SAFETY: the module may write there.
        unsafe { (to as *mut u64).write_unaligned(lines) };
        Ok(0)
    })
}

pub(crate) extern "C" fn fopen64(name: u64, how: u64) -> u64 {
    mediate(|frame| {
        let [name, mut how] = [copied::name(frame, name)?, copied::name(frame, how)?];
        let is_written = how.iter().any(|letter| b"wa+".contains(letter));
        let is_new = how.contains(&b'x');
        how.retain(|letter| *letter != b'x');
        if !is_written && !may_open(&name) {
            refused(frame, &name);
            return Ok(0);
        }
        // It is open until the library has opened it, too.
        let mut kept = None;
        let mut path = name.clone();
        if is_written {
            let as_asked = How {
                makes: how.first() != Some(&b'r'),
                is_new,
                mode: 0o666,
            };
            let Ok(file) = frame.walled.to_write(&name, as_asked) else {
                return Ok(0);
            };
            path = written::descriptor(&file).into_os_string().into_vec();
            path.push(0);
            kept = Some(file);
        }
        // SAFETY: both strings are ours, with zeros behind them.
        let file = unsafe { libc::fopen(path.as_ptr().cast(), how.as_ptr().cast()) };
        drop(kept);
        if file.is_null() {
            return Ok(0);
        }
        // SAFETY: it was just opened.
        if !unsafe { is_fit(libc::fileno(file), is_written) } {
            // SAFETY: it was just opened, and nobody else has it.
            unsafe { libc::fclose(file) };
            refused(frame, &name);
            return Ok(0);
        }
        frame.walled.know(frame, None, file as u64, Kind::Stream)?;
        Ok(file as u64)
    })
}

/// Starts a program that takes lines: one that the configuration names by a directive which the policy has.
pub(crate) extern "C" fn ap_open_piped_log(pool: u64, program: u64) -> u64 {
    mediate(|frame| {
        let program = copied::name(frame, program)?;
        if !frame
            .walled
            .folders
            .names_program(&program[..program.len() - 1])
        {
            let program = String::from_utf8_lossy(&program[..program.len() - 1]);
            return Err(format!(
                "ap_open_piped_log: {program:?} is no program of a directive that the policy names"
            ));
        }
        let arguments = [pool, program.as_ptr() as u64];
        let made = Result_::Object(Kind::PipedLog);
        by_row(frame, "ap_open_piped_log", "p .", made, &arguments)
    })
}

/// The name for APR, and the folder that it leads through.
type Keys = (Vec<u8>, Option<Spot>);

/// A name for a file of keys and values. APR opens files by the name and by its own endings (`NAME.pag`). The name of one that is
/// written goes by the descriptor of its folder, which is open until the call returns.
fn keys(frame: &Frame, name: u64, mode: u64) -> Answer<Result<Keys, u64>> {
    let name = copied::name(frame, name)?;
    let is_written = mode as u32 as u64 != READ_ONLY;
    for end in ["", ".pag", ".dir"] {
        let mut whole = name[..name.len() - 1].to_vec();
        whole.extend_from_slice(end.as_bytes());
        whole.push(0);
        if !is_written {
            if !may_open(&whole) {
                return Ok(Err(refused(frame, &whole)));
            }
            continue;
        }
        match frame.walled.to_change(&whole) {
            Ok(_) | Err(libc::ENOENT) => {}
            Err(status) => return Ok(Err(status as u32 as u64)),
        }
    }
    if !is_written {
        return Ok(Ok((name, None)));
    }
    Ok(match frame.walled.spot(&name) {
        Ok(spot) => {
            let mut path = spot.path().into_os_string().into_vec();
            path.push(0);
            Ok((path, Some(spot)))
        }
        Err(status) => Err(status as u32 as u64),
    })
}

pub(crate) extern "C" fn apr_dbm_open(
    to: u64,
    name: u64,
    mode: u64,
    permissions: u64,
    pool: u64,
) -> u64 {
    const NAME: &str = "apr_dbm_open";
    mediate(|frame| match keys(frame, name, mode)? {
        Err(status) => Ok(status),
        Ok((name, _folder)) => {
            let arguments = [to, name.as_ptr() as u64, mode, permissions, pool];
            by_row(frame, NAME, ">J . . . p", Result_::Plain, &arguments)
        }
    })
}

pub(crate) extern "C" fn apr_dbm_open_ex(
    to: u64,
    kind: u64,
    name: u64,
    mode: u64,
    permissions: u64,
    pool: u64,
) -> u64 {
    const NAME: &str = "apr_dbm_open_ex";
    mediate(|frame| match keys(frame, name, mode)? {
        Err(status) => Ok(status),
        Ok((name, _folder)) => {
            let kind = copied::name(frame, kind)?;
            let [kind, name] = [&kind, &name].map(|text| text.as_ptr() as u64);
            let arguments = [to, kind, name, mode, permissions, pool];
            by_row(frame, NAME, ">J . . . . p", Result_::Plain, &arguments)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{guard, is_fit};
    use std::fs::File;
    use std::os::fd::AsRawFd;

    fn may(path: &str, is_written: bool) -> bool {
        let file = File::open(path).expect("it is there");
        is_fit(file.as_raw_fd(), is_written)
    }

    #[test]
    fn what_the_kernel_shows_of_itself_is_no_file() {
        for path in ["/proc/self/mem", "/proc/self/maps", "/proc/version"] {
            assert!(!may(path, false), "{path}");
        }
        for path in ["/etc/passwd", "/dev/null", "/dev/urandom", "/tmp"] {
            assert!(may(path, false), "{path}");
        }
    }

    #[test]
    fn a_pipe_without_a_name_is_somebody_elses() {
        let (from, _to) = std::io::pipe().expect("made");
        let file = File::open(format!("/proc/self/fd/{}", from.as_raw_fd())).expect("it is there");
        assert!(!is_fit(file.as_raw_fd(), false));
        let folder = tempfile::tempdir().expect("made");
        let path = folder.path().join("pipe");
        let name = std::ffi::CString::new(path.to_str().expect("text")).expect("no zero");
        // SAFETY: the name is ours.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let mut both = File::options();
        let file = both
            .read(true)
            .write(true)
            .open(&path)
            .expect("it is there");
        assert!(is_fit(file.as_raw_fd(), false));
    }

    #[test]
    fn what_decides_and_what_runs_is_not_written() {
        let file = tempfile::NamedTempFile::new().expect("made");
        let path = file.path().to_str().expect("text");
        assert!(may(path, true));
        guard(file.path());
        assert!(!may(path, true));
        assert!(may(path, false));
        let program = std::env::current_exe().expect("it runs");
        assert!(!may(program.to_str().expect("text"), true));
    }
}
