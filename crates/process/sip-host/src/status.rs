//! The status socket. Who connects says what it wants to see (`view` or `map`), and shuts its side; it is sent one, as
//! JSON, and the connection is closed.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::supervisor::Watch;
use crate::view::RunView;

/// Views are no longer than this.
const LARGEST: u64 = 64 << 20;
/// How long a silent reader or supervisor is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long who connects may take to say what it wants.
const SHORT: Duration = Duration::from_millis(500);
/// Bytes of what is said at most. What is left unread would take back the answer.
const LONGEST: u64 = 16;
/// Wants the state of the memory.
const MAP: &[u8] = b"map";

/// The default path: of this user alone.
///
/// # Errors
/// Its directory belongs to somebody else, or cannot be made.
pub fn default_path() -> io::Result<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let directory = match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(directory) if !directory.is_empty() => PathBuf::from(directory),
        _ => std::env::temp_dir().join(format!("mullion-{user}")),
    };
    match std::fs::DirBuilder::new().mode(0o700).create(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = std::fs::symlink_metadata(&directory)?;
    if !found.is_dir() || found.uid() != user {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{} belongs to somebody else; name a socket with --status",
                directory.display()
            ),
        ));
    }
    Ok(directory.join("mullion-sip.sock"))
}

/// A socket that is served, and removed when this is dropped.
#[derive(Debug)]
#[must_use]
pub struct RunStatus {
    path: PathBuf,
}

impl RunStatus {
    /// Serves views on a socket, by a thread of its own.
    ///
    /// # Errors
    /// Another supervisor serves it, or the system refuses it.
    pub fn serve(path: &Path, watch: Watch) -> io::Result<RunStatus> {
        if UnixStream::connect(path).is_ok() {
            let text = format!(
                "{} is served by another `mullion sip run`; name one with --status",
                path.display()
            );
            return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        std::thread::Builder::new()
            .name("sip-status".into())
            .spawn(move || {
                for connection in listener.incoming() {
                    // Who does not read is not waited for, and who has gone is no loss.
                    let _ = connection.and_then(|connection| answer(connection, &watch));
                }
            })?;
        Ok(RunStatus {
            path: path.to_owned(),
        })
    }
}

impl Drop for RunStatus {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn answer(mut connection: UnixStream, watch: &Watch) -> io::Result<()> {
    connection.set_write_timeout(Some(PATIENCE))?;
    connection.set_read_timeout(Some(SHORT))?;
    let mut wanted = Vec::new();
    (&connection).take(LONGEST).read_to_end(&mut wanted)?;
    let answer = match &wanted[..] {
        MAP => watch.map().map_err(io::Error::other)?.to_json().into(),
        _ => serde_json::to_vec(&watch.view())?,
    };
    connection.write_all(&answer)
}

/// Asks a supervisor for a view.
///
/// # Errors
/// Nobody serves the socket, or what comes is no view.
pub fn ask(path: &Path) -> io::Result<RunView> {
    Ok(serde_json::from_slice(&answer_to(path, b"view")?)?)
}

/// Asks a supervisor for the state of its memory, as JSON for `mullion map`.
///
/// # Errors
/// Nobody serves the socket, or a process was made or ended meanwhile, and nothing comes.
pub fn ask_map(path: &Path) -> io::Result<Vec<u8>> {
    let state = answer_to(path, MAP)?;
    if state.is_empty() {
        let text = "processes began or ended while their memory was looked at: try again";
        return Err(io::Error::new(io::ErrorKind::WouldBlock, text));
    }
    Ok(state)
}

fn answer_to(path: &Path, wanted: &[u8]) -> io::Result<Vec<u8>> {
    let mut connection = UnixStream::connect(path)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.write_all(wanted)?;
    connection.shutdown(Shutdown::Write)?;
    let mut bytes = Vec::new();
    connection.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}
