//! Files that modules open by their names. What was opened counts, and not its name: a file in which the kernel shows itself, or a
//! device, is no file for a module. `/proc/self/mem` would be the server's memory.

use crate::apr;
use crate::call::mediate;
use crate::copied;
use crate::frame::Frame;
use crate::interface::Answer as Result_;
use crate::object::Kind;
use crate::states::by_row;
use crate::walled::{Answer, lock};
use std::ffi::c_int;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Mutex;

/// The right to open files to write them, which is part of `@stores` and `@logs`.
pub(crate) const WRITES: &str = "apr_file_open.written";

/// `APR_FOPEN_WRITE`, `CREATE`, `APPEND` and `TRUNCATE`.
const WRITTEN: u64 = 0x2 | 0x4 | 0x8 | 0x10;
/// `APR_DBM_READONLY`.
const READ_ONLY: u64 = 1;
/// Devices that lead nowhere: `null`, `zero`, `full`, `random`, `urandom`, of the first number 1.
const MEMORY: u32 = 1;
const HARMLESS: [u32; 5] = [3, 5, 7, 8, 9];

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
fn is_fit(descriptor: c_int, is_written: bool) -> bool {
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
        libc::S_IFIFO | libc::S_IFSOCK => true,
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

/// Looks at a file that a function is about to open by its name. One that is not there yet may be made.
///
/// # Errors
/// The policy does not let the module write files.
fn may_open(frame: &Frame, name: &[u8], is_written: bool) -> Answer<bool> {
    if is_written && !frame.walled.writes_files {
        let name = String::from_utf8_lossy(&name[..name.len() - 1]);
        return Err(format!(
            "{name} would be opened to be written: the policy has neither @stores nor @logs"
        ));
    }
    // SAFETY: the name is ours, with a zero behind it. Nothing happens to what is there.
    let descriptor = unsafe { libc::open(name.as_ptr().cast(), libc::O_PATH | libc::O_CLOEXEC) };
    if descriptor < 0 {
        return Ok(true);
    }
    // SAFETY: it was just opened, and is nobody else's.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    Ok(is_fit(descriptor.as_raw_fd(), is_written))
}

/// The answer for a file that is none for modules.
fn refused(frame: &Frame, name: &[u8]) -> u64 {
    let name = String::from_utf8_lossy(&name[..name.len() - 1]);
    let why = "is no file for modules: a device, a part of the kernel's or the server's own";
    apr::log(0, &format!("{}: {name} {why}", frame.walled.name));
    libc::EACCES as u64
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
        let is_written = flags & WRITTEN != 0;
        if !may_open(frame, &name, is_written).map_err(named)? {
            return Ok(refused(frame, &name));
        }
        let function = |name| apr::symbol(name).ok_or("the server does not have it");
        let (open, descriptor_of, close) = (
            function(NAME)?,
            function("apr_os_file_get")?,
            function("apr_file_close")?,
        );
        let mut file = 0_u64;
        // SAFETY: they are APR's functions, with a name and a place of ours, a pool that lives, and the file that was just opened.
        let status = unsafe {
            let open: extern "C" fn(*mut u64, *const u8, u32, u32, u64) -> c_int =
                std::mem::transmute(open);
            let status = open(
                &raw mut file,
                name.as_ptr(),
                flags as u32,
                permissions as u32,
                pool,
            );
            if status != 0 {
                return Ok(status as u32 as u64);
            }
            let get: extern "C" fn(*mut c_int, u64) -> c_int = std::mem::transmute(descriptor_of);
            let mut descriptor = -1;
            get(&raw mut descriptor, file);
            // The name may lead elsewhere by now.
            if !is_fit(descriptor, is_written) {
                let close: extern "C" fn(u64) -> c_int = std::mem::transmute(close);
                close(file);
                return Ok(refused(frame, &name));
            }
            status
        };
        walled.know(frame, Some(pool), file, Kind::File)?;
        walled.must_write(to, 8)?;
        // SAFETY: the module may write there.
        unsafe { (to as *mut u64).write_unaligned(file) };
        Ok(status as u32 as u64)
    })
}

pub(crate) extern "C" fn fopen64(name: u64, how: u64) -> u64 {
    mediate(|frame| {
        let [name, how] = [copied::name(frame, name)?, copied::name(frame, how)?];
        let is_written = how.iter().any(|letter| b"wa+".contains(letter));
        if !may_open(frame, &name, is_written).map_err(|what| format!("fopen64: {what}"))? {
            refused(frame, &name);
            return Ok(0);
        }
        // SAFETY: both strings are ours, with zeros behind them.
        let file = unsafe { libc::fopen(name.as_ptr().cast(), how.as_ptr().cast()) };
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

/// A file of keys and values. APR opens files by the name and by its own endings (`NAME.pag`).
fn keys(frame: &Frame, name: u64, mode: u64) -> Answer<Result<Vec<u8>, u64>> {
    let name = copied::name(frame, name)?;
    let is_written = mode as u32 as u64 != READ_ONLY;
    for end in ["", ".pag", ".dir"] {
        let mut whole = name[..name.len() - 1].to_vec();
        whole.extend_from_slice(end.as_bytes());
        whole.push(0);
        if !may_open(frame, &whole, is_written)? {
            return Ok(Err(refused(frame, &whole)));
        }
    }
    Ok(Ok(name))
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
        Ok(name) => {
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
        Ok(name) => {
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
