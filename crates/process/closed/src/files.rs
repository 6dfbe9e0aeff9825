//! A process that may open some files and no others, and no socket: for compilers that read what somebody else has written.

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};
use std::io;
use std::path::Path;

const LATEST: ABI = ABI::V6;
/// Numbers of calls of the x32 ABI have this bit.
const X32: i64 = 1 << 30;

/// From here on the calling thread opens nothing but what is at these places and below, and so do threads and programs that it starts.
/// The first are to be read and run, the second to be written, too. A place that is not there is left out. False without Landlock:
/// then all is as it was.
///
/// # Errors
///
/// If Linux has Landlock, and refuses the rules.
pub fn keep_files<'a>(
    read: impl IntoIterator<Item = &'a Path>,
    write: impl IntoIterator<Item = &'a Path>,
) -> io::Result<bool> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LATEST))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(LATEST)))
        .and_then(|rules| rules.scope(Scope::from_all(LATEST)))
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    let read = read
        .into_iter()
        .map(|path| (path, AccessFs::from_read(LATEST)));
    let write = write
        .into_iter()
        .map(|path| (path, AccessFs::from_all(LATEST)));
    for (path, access) in read.chain(write) {
        let Ok(place) = PathFd::new(path) else {
            continue;
        };
        let access = match path.is_dir() {
            true => access,
            // Rights for what is in a directory have no meaning for a file.
            false => access & AccessFs::from_file(LATEST),
        };
        rules = rules
            .add_rule(PathBeneath::new(place, access))
            .map_err(io::Error::other)?;
    }
    let status = rules.restrict_self().map_err(io::Error::other)?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// From here on the calling thread, and those and the programs that it starts, make no socket, of whatever kind.
///
/// # Errors
///
/// If Linux takes no filter.
pub fn drop_sockets() -> io::Result<()> {
    // A ring makes sockets, too.
    let calls = [libc::SYS_socket, libc::SYS_io_uring_setup];
    let all = calls.into_iter().flat_map(|call| [call, call | X32]);
    let program: BpfProgram = SeccompFilter::new(
        all.map(|call| (call, Vec::new())).collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EACCES as u32),
        TargetArch::x86_64,
    )
    .and_then(TryInto::try_into)
    .map_err(io::Error::other)?;
    apply_filter(&program).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::ErrorKind::PermissionDenied;
    use std::net::{TcpListener, UdpSocket};
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};

    /// Each in a thread of its own: what it gives up is gone for good.
    fn alone<T: Send>(act: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| scope.spawn(act).join().expect("it ends"))
    }

    #[test]
    fn what_is_kept_is_opened_and_nothing_else() {
        let place = std::env::temp_dir().join(format!("closed-{}", std::process::id()));
        let names = ["read", "write", "other"];
        let [read, write, other] = names.map(|name| place.join(name));
        for each in [&read, &write, &other] {
            fs::create_dir_all(each).expect("a directory");
            fs::write(each.join("file"), "text").expect("a file");
        }
        let is_closed = alone(|| {
            let kept = [
                &read,
                Path::new("/usr"),
                Path::new("/lib64"),
                Path::new("/none"),
            ];
            if !keep_files(kept, [write.as_path()]).expect("rules") {
                println!("no Landlock here");
                return false;
            }
            let denied =
                |done: io::Result<()>| assert_eq!(done.unwrap_err().kind(), PermissionDenied);
            let get = |from: &Path| fs::read(from.join("file")).map(drop);
            let put = |to: &Path| fs::write(to.join("new"), "text");
            get(&read).expect("kept");
            get(&write).expect("kept");
            put(&write).expect("kept");
            denied(get(&other));
            denied(put(&read));
            denied(put(&other));
            denied(fs::read_dir(&other).map(drop));
            denied(fs::read("/etc/passwd").map(drop));
            // A link leads nowhere else, and neither does a program.
            std::os::unix::fs::symlink(other.join("file"), write.join("link")).expect("a link");
            denied(fs::read(write.join("link")).map(drop));
            let ran = Command::new("/usr/bin/cat")
                .arg(other.join("file"))
                .stdin(Stdio::inherit())
                .output();
            let ran = ran.expect("it is below /usr");
            assert!(!ran.status.success() && ran.stdout.is_empty());
            denied(TcpListener::bind("127.0.0.1:0").map(drop));
            true
        });
        fs::remove_dir_all(&place).expect("it is gone");
        if std::env::var_os("MULLION_REQUIRE_LANDLOCK").is_some() {
            assert!(is_closed, "this kernel has no Landlock");
        }
    }

    #[test]
    fn no_socket_is_made() {
        alone(|| {
            UdpSocket::bind("127.0.0.1:0").expect("a socket");
            drop_sockets().expect("a filter");
            let done = [
                UdpSocket::bind("127.0.0.1:0").map(drop),
                TcpListener::bind("127.0.0.1:0").map(drop),
                UnixStream::connect("/run/none").map(drop),
            ];
            for one in done {
                assert_eq!(one.unwrap_err().kind(), PermissionDenied);
            }
            // SAFETY: it makes nothing, with a pointer to nothing.
            let ring =
                unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, std::ptr::null_mut::<u8>()) };
            let why = io::Error::last_os_error();
            assert_eq!((ring, why.raw_os_error()), (-1, Some(libc::EACCES)));
        });
    }
}
