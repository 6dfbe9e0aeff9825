//! A process that is fed by a socket: each frame there and back is a datagram.

use crate::native::InPlace;
use crate::walls::Wall;
use mullion_packets::filter::Filter;
use mullion_packets::frame;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command};

pub(crate) struct Process {
    child: Child,
    socket: UnixDatagram,
    filter: Filter,
    buffer: Vec<u8>,
}

impl Process {
    pub(crate) fn start(library: &Path, filter: &str) -> Result<Box<dyn Wall>, String> {
        let (own, other) = UnixDatagram::pair().map_err(|error| error.to_string())?;
        let own_program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut child = Command::new(own_program);
        child
            .arg("--child")
            .arg(library)
            .stdin(OwnedFd::from(other));
        Ok(Box::new(Process {
            child: child.spawn().map_err(|error| error.to_string())?,
            socket: own,
            filter: filter.parse().map_err(|_| "no filter")?,
            buffer: vec![0; 16384],
        }))
    }
}

impl Wall for Process {
    fn pass(&mut self, frames: &[Vec<u8>]) -> u64 {
        let mut bytes = 0;
        for batch in frames.chunks(8) {
            for frame in batch {
                assert!(self.filter.holds(&frame::layout(frame)));
                self.socket.send(frame).expect("the child is there");
            }
            for _ in batch {
                let length = self
                    .socket
                    .recv(&mut self.buffer)
                    .expect("the child is there");
                bytes += length as u64;
            }
        }
        bytes
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The other side: it makes lengths and checksums right, as it knows what was changed.
pub(crate) fn child(library: &Path) {
    let socket = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .expect("a socket");
    let socket = UnixDatagram::from(socket);
    let mut module = InPlace::library(library, "any").expect("the module");
    let mut frame = vec![0; 16384];
    while let Ok(length) = socket.recv(&mut frame) {
        if length == 0 {
            break;
        }
        module.pass(&[frame[..length].to_vec()]);
        if socket.send(module.first()).is_err() {
            break;
        }
    }
}
