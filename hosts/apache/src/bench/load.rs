//! Requests on connections that are kept: one to each, then all answers.

use mullion_apache::Setup;
use std::io::{self, Read, Write};
use std::net::TcpStream;

/// # Errors
/// The server closes a connection or answers without a length.
pub(crate) fn run(port: u16, path: &str, requests: usize, connections: usize) -> Result<(), Setup> {
    ask(port, path, requests, connections).map_err(|cause| Setup::Io(path.into(), cause))
}

/// One connection, which is kept.
pub(crate) struct Client {
    stream: TcpStream,
    request: String,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) fn new(port: u16, path: &str) -> io::Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        Ok(Client {
            stream,
            request: request(path),
            buffer: vec![0; ROOM],
        })
    }

    /// Sends the request, and reads the answer.
    pub(crate) fn ask(&mut self) -> io::Result<()> {
        self.stream.write_all(self.request.as_bytes())?;
        answer(&mut self.stream, &mut self.buffer)
    }
}

/// More than an answer has.
const ROOM: usize = 1 << 18;

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n")
}

fn ask(port: u16, path: &str, requests: usize, connections: usize) -> io::Result<()> {
    let mut streams = Vec::new();
    for _ in 0..connections.min(requests) {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        streams.push(stream);
    }
    let request = request(path);
    let mut buffer = vec![0u8; ROOM];
    let mut left = requests;
    while left > 0 {
        let now = streams.len().min(left);
        for stream in &mut streams[..now] {
            stream.write_all(request.as_bytes())?;
        }
        for stream in &mut streams[..now] {
            answer(stream, &mut buffer)?;
        }
        left -= now;
    }
    Ok(())
}

/// Reads an answer and drops it.
fn answer(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    let wrong = || io::Error::other("no answer of a known length");
    let (mut have, mut want) = (0, None);
    while want.is_none_or(|want| have < want) {
        let got = stream.read(&mut buffer[have..])?;
        if got == 0 {
            return Err(wrong());
        }
        have += got;
        if want.is_none() {
            want = length(&buffer[..have]);
            // The length of a body in chunks is known at its end.
            if want.is_none() && buffer[..have].ends_with(b"\r\n0\r\n\r\n") {
                want = Some(have);
            }
        }
        if have == buffer.len() && want.is_none_or(|want| have < want) {
            return Err(wrong());
        }
    }
    Ok(())
}

fn length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let body: usize = head
        .split("content-length: ")
        .nth(1)?
        .lines()
        .next()?
        .parse()
        .ok()?;
    Some(end + 4 + body)
}
