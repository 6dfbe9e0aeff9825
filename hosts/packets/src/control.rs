//! What a running forwarder is asked over its socket: one line of JSON each way, a connection for each question.

use crate::config::{Description, Wall};
use crate::forward::Forwarder;
use crate::module::Module;
use crate::port::Way;
use crate::share::{self, Reader};
use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Longest question, in bytes, and how long it may take.
const QUESTION: u64 = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(2);
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// What is said of a module behind the language alone.
const ALONE: &str = "behind the language alone: a hole in rustc is a hole in the forwarder, and nothing stops the module";

/// A question.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Question {
    /// What runs, and what it has done.
    Status,
    /// Load a module.
    Load {
        /// Which.
        module: Description,
        /// In the place of one of its name.
        replace: bool,
    },
    /// Take a module out.
    Unload {
        /// Which.
        name: String,
    },
    /// Memory by which a module's reports come from now on. It comes with the answer.
    Memory {
        /// Which.
        name: String,
    },
    /// What a module has reported since the last time.
    Reports {
        /// Which.
        name: String,
    },
}

/// An answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It is done.
    Done,
    /// It is not done.
    Refused(String),
    /// What runs.
    Status(Status),
    /// Reports, as text: what is no text in them is replaced.
    Reports(Vec<String>),
}

/// What runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Status {
    /// By port.
    pub ports: Vec<PortStatus>,
    /// In the order in which frames meet them.
    pub modules: Vec<ModuleStatus>,
}

/// What went through a port.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PortStatus {
    /// Frames, and their bytes.
    pub received: u64,
    /// See there.
    pub received_bytes: u64,
    /// Frames that went out at the other port.
    pub sent: u64,
    /// Frames that a module dropped.
    pub dropped: u64,
    /// Frames that the system did not take.
    pub unsent: u64,
    /// Frames that came faster than we were.
    pub lost: u64,
    /// Frames that are longer than the interface, which their sender leaves to its card to cut.
    pub uncut: u64,
    /// By which way frames come in.
    #[serde(default)]
    pub by: Way,
}

/// A module.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ModuleStatus {
    /// As it was described.
    pub module: Description,
    /// The key of the user who loaded it, as KeyNote writes it; `None`: the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Why it was taken out, if it was.
    pub stopped: Option<String>,
    /// What its operator should know of its wall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Frames that it got, changed, dropped and added.
    pub frames: u64,
    /// See there.
    pub changed: u64,
    /// See there.
    pub dropped: u64,
    /// See there.
    pub added: u64,
    /// What was not taken from it.
    pub refused: u64,
    /// Nanoseconds for each frame, in the mean.
    pub nanoseconds: u64,
}

/// What runs, and what it has done.
#[must_use]
pub fn status(forwarder: &Forwarder) -> Status {
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let ports = forwarder.traffic.iter().map(|traffic| PortStatus {
        received: get(&traffic.received),
        received_bytes: get(&traffic.received_bytes),
        sent: get(&traffic.sent),
        dropped: get(&traffic.dropped),
        unsent: get(&traffic.unsent),
        lost: get(&traffic.lost),
        uncut: get(&traffic.uncut),
        by: match traffic.is_xdp.load(Ordering::Relaxed) {
            true => Way::Xdp,
            false => Way::Packet,
        },
    });
    let modules = forwarder.modules();
    let modules = modules.iter().map(|module| module_status(module));
    Status {
        ports: ports.collect(),
        modules: modules.collect(),
    }
}

/// What a module is, and what it has done.
pub(crate) fn module_status(module: &Module) -> ModuleStatus {
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    ModuleStatus {
        module: module.description().clone(),
        owner: module.owner.as_ref().map(ToString::to_string),
        stopped: module.stopped(),
        warning: (module.description().wall == Wall::Language).then(|| ALONE.to_owned()),
        frames: get(&module.counters.frames),
        changed: get(&module.counters.changed),
        dropped: get(&module.counters.dropped),
        added: get(&module.counters.added),
        refused: module.refused(),
        nanoseconds: module
            .nanoseconds()
            .checked_div(get(&module.counters.frames))
            .unwrap_or(0),
    }
}

/// Answers a question.
#[must_use]
pub fn answer(forwarder: &Forwarder, question: &Question) -> Answer {
    let done = |result: Result<(), crate::forward::ChangeError>| match result {
        Ok(()) => Answer::Done,
        Err(error) => Answer::Refused(error.to_string()),
    };
    match question {
        Question::Status => Answer::Status(status(forwarder)),
        Question::Load { module, replace } => done(forwarder.load(module, *replace)),
        Question::Unload { name } => done(forwarder.unload(name)),
        // A descriptor comes with this one: `serve_one`.
        Question::Memory { name } => match forwarder.named(name) {
            Some(_) => Answer::Done,
            None => Answer::Refused(format!("there is no module `{name}`")),
        },
        Question::Reports { name } => match forwarder.named(name) {
            Some(module) => {
                let reports = module.take_reports();
                let texts = reports
                    .iter()
                    .map(|text| String::from_utf8_lossy(text).into_owned());
                Answer::Reports(texts.collect())
            }
            None => Answer::Refused(format!("there is no module `{name}`")),
        },
    }
}

/// Listens at a path that those may reach whom the mode lets (0600: its owner). It takes the place of a socket that
/// nobody listens at any more.
///
/// # Errors
/// The system's; somebody listens there; something else is there.
pub fn listen(path: &Path, mode: u32) -> io::Result<UnixListener> {
    if let Ok(found) = std::fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(io::Error::other("there is a file that is no socket"));
        }
        if UnixStream::connect(path).is_ok() {
            return Err(io::Error::other("another forwarder listens there"));
        }
        std::fs::remove_file(path)?;
    }
    let listener = bound(path, mode)?;
    // What the mask of this process has taken away.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// A socket at a path, which nobody has reached before it has its mode: Linux gives the file the socket's own.
fn bound(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    fchmod(&socket, Mode::from_raw_mode(mode))?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Answers questions until it is told to stop.
pub fn serve(listener: &UnixListener, forwarder: &Forwarder, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => {
                if let Err(error) = serve_one(stream, forwarder) {
                    tracing::debug!(%error, "a question was not answered");
                }
            }
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn serve_one(stream: UnixStream, forwarder: &Forwarder) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new((&stream).take(QUESTION)).read_line(&mut line)?;
    let question = serde_json::from_str(&line);
    let answer = match &question {
        Ok(question) => answer(forwarder, question),
        Err(error) => Answer::Refused(format!("this is no question: {error}")),
    };
    let mut text = serde_json::to_string(&answer)?;
    text.push('\n');
    if let Ok(Question::Memory { name }) = question
        && let Some(module) = forwarder.named(&name)
    {
        let file = module.share_reports()?;
        return share::hand_over(&stream, text.as_bytes(), file.as_fd());
    }
    (&stream).write_all(text.as_bytes())
}

/// Asks the forwarder that listens at `path` for memory by which a module's reports come.
///
/// # Errors
/// The system's; nobody listens; it refuses.
pub fn ask_for_memory(path: &Path, name: &str) -> io::Result<Reader> {
    let stream = UnixStream::connect(path)?;
    let name = name.to_owned();
    let mut text = serde_json::to_string(&Question::Memory { name })?;
    text.push('\n');
    (&stream).write_all(text.as_bytes())?;
    let (line, file) = share::take_over(&stream)?;
    match (serde_json::from_str(&line)?, file) {
        (Answer::Done, Some(file)) => Reader::of(&file),
        (Answer::Refused(why), _) => Err(io::Error::other(why)),
        _ => Err(io::Error::other("the forwarder answers something else")),
    }
}

/// Asks the forwarder that listens at `path`.
///
/// # Errors
/// The system's; nobody listens; an answer that is none.
pub fn ask(path: &Path, question: &Question) -> io::Result<Answer> {
    let stream = UnixStream::connect(path)?;
    let mut text = serde_json::to_string(question)?;
    text.push('\n');
    (&stream).write_all(text.as_bytes())?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever connects in between is answered afterwards.
    #[test]
    fn a_socket_has_its_mode_when_it_comes_to_be() {
        let place = tempfile::tempdir().expect("a directory");
        let before = rustix::process::umask(Mode::empty());
        let sockets = [0o600, 0o660].map(|mode| {
            let path = place.path().join(format!("{mode:o}"));
            (bound(&path, mode).expect("it is bound"), path, mode)
        });
        rustix::process::umask(before);
        for (_listener, path, mode) in sockets {
            let found = std::fs::symlink_metadata(&path).expect("it is there");
            assert_eq!(found.permissions().mode() & 0o777, mode);
            UnixStream::connect(&path).expect("somebody listens");
        }
        let path = place.path().join("wide");
        let _listener = listen(&path, 0o666).expect("it listens");
        let found = std::fs::symlink_metadata(&path).expect("it is there");
        assert_eq!(found.permissions().mode() & 0o777, 0o666);
    }
}
