//! Where the loader listens: a Unix socket, or TCP on the loopback interface.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A loader's address. As text: `127.0.0.1:7000`, or the path of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// TCP.
    Tcp(SocketAddr),
}

impl From<&str> for Address {
    fn from(text: &str) -> Self {
        match text.parse() {
            Ok(address) => Address::Tcp(address),
            Err(_) => Address::Unix(text.into()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => path.display().fmt(f),
            Address::Tcp(address) => address.fmt(f),
        }
    }
}

/// Why nothing listens.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// An address that others can reach: the protocol neither encrypts nor
    /// proves who the loader is.
    #[error(
        "{0} is not a loopback address; listen on 127.0.0.1 and let clients of other machines come through a tunnel (ssh -L)"
    )]
    NotLoopback(SocketAddr),
    /// Somebody listens there already.
    #[error("{0}: a loader listens there already")]
    Taken(Address),
    /// A file that is no socket.
    #[error("{}: there is a file that is no socket", .0.display())]
    Occupied(PathBuf),
    /// The system says no.
    #[error("{0}: {1}")]
    Io(Address, io::Error),
}

/// A socket that clients come to. The file of a Unix socket goes with it.
#[derive(Debug)]
pub struct ServiceListener {
    socket: Socket,
    address: Address,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl ServiceListener {
    /// Listens. Everybody may connect to a Unix socket (mode 0666): what they
    /// may do is decided by the keys that they prove. A socket that nobody
    /// listens to any more is replaced.
    ///
    /// # Errors
    /// Why not.
    pub fn bind(address: &Address) -> Result<Self, ListenError> {
        let io = |error| ListenError::Io(address.clone(), error);
        let socket = match address {
            Address::Tcp(tcp) if !tcp.ip().is_loopback() => {
                return Err(ListenError::NotLoopback(*tcp));
            }
            Address::Tcp(tcp) => Socket::Tcp(TcpListener::bind(tcp).map_err(io)?),
            Address::Unix(path) => {
                clear(address, path)?;
                let listener = UnixListener::bind(path).map_err(io)?;
                let everybody = std::fs::Permissions::from_mode(0o666);
                std::fs::set_permissions(path, everybody).map_err(io)?;
                Socket::Unix(listener)
            }
        };
        let address = match &socket {
            // With the port that the system chose, if it was asked to.
            Socket::Tcp(listener) => Address::Tcp(listener.local_addr().map_err(io)?),
            Socket::Unix(_) => address.clone(),
        };
        match &socket {
            Socket::Unix(listener) => listener.set_nonblocking(true),
            Socket::Tcp(listener) => listener.set_nonblocking(true),
        }
        .map_err(io)?;
        Ok(ServiceListener { socket, address })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The next client, if one waits.
    pub(crate) fn accept(&self) -> io::Result<Stream> {
        let stream = match &self.socket {
            Socket::Unix(listener) => Stream::Unix(listener.accept()?.0),
            Socket::Tcp(listener) => Stream::Tcp(listener.accept()?.0),
        };
        match &stream {
            Stream::Unix(stream) => stream.set_nonblocking(true)?,
            Stream::Tcp(stream) => stream.set_nonblocking(true)?,
        }
        Ok(stream)
    }
}

impl AsFd for ServiceListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Unix(listener) => listener.as_fd(),
            Socket::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl Drop for ServiceListener {
    fn drop(&mut self) {
        if let Address::Unix(path) = &self.address {
            let _gone_already = std::fs::remove_file(path);
        }
    }
}

/// Removes the socket of a loader that is no more.
fn clear(address: &Address, path: &Path) -> Result<(), ListenError> {
    let Ok(data) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !data.file_type().is_socket() {
        return Err(ListenError::Occupied(path.to_owned()));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|error| ListenError::Io(address.clone(), error))
        }
        _ => Err(ListenError::Taken(address.clone())),
    }
}

/// A connection of either kind.
#[derive(Debug)]
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    /// Connects, as a client that waits no longer than `patience` for anything.
    pub(crate) fn connect(address: &Address, patience: Duration) -> io::Result<Self> {
        let wait = Some(patience);
        Ok(match address {
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(wait)?;
                stream.set_write_timeout(wait)?;
                Stream::Unix(stream)
            }
            Address::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, patience)?;
                stream.set_read_timeout(wait)?;
                stream.set_write_timeout(wait)?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
        })
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(buffer),
            Stream::Tcp(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
        }
    }
}
