use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use mullion_sip::grant::{Found, LARGEST, Piece, Refused, Wanted, socket};
use mullion_sip::{ExString, ExVec};

use super::*;

fn piece(path: &str, offset: u64, bytes: u32) -> Piece {
    Piece {
        path: ExString::from(path),
        offset,
        bytes,
    }
}

#[test]
fn only_files_below_the_directory_are_read() {
    let outside = tempfile::tempdir().expect("a directory");
    let inside = outside.path().join("inside");
    fs::create_dir_all(inside.join("sub")).expect("made");
    fs::write(outside.path().join("secret"), b"secret").expect("written");
    fs::write(inside.join("sub/file"), b"0123456789").expect("written");
    for (target, link) in [
        ("../secret", "out"),
        ("/etc/passwd", "absolute"),
        ("..", "up"),
        ("sub/file", "within"),
        ("circle", "circle"),
        ("/proc/self/root", "magic"),
    ] {
        std::os::unix::fs::symlink(target, inside.join(link)).expect("made");
    }
    rustix::fs::mkfifoat(rustix::fs::CWD, inside.join("pipe"), rustix::fs::Mode::RWXU)
        .expect("made");
    let _socket =
        std::os::unix::net::UnixListener::bind(inside.join("socket")).expect("it listens");
    let handle = fs::File::open(&inside).expect("there");
    let read = |path: &str, offset, bytes| {
        directory::read(handle.as_fd(), &piece(path, offset, bytes))
            .map(|Found { size, bytes }| (size, bytes.to_vec()))
    };
    assert_eq!(read("sub/file", 0, 4), Ok((10, b"0123".to_vec())));
    assert_eq!(read("sub/file", 8, 4), Ok((10, b"89".to_vec())));
    assert_eq!(read("within", 9, u32::MAX), Ok((10, b"9".to_vec())));
    for beyond in [10, 11, i64::MAX as u64, u64::MAX] {
        assert_eq!(read("sub/file", beyond, 4), Ok((10, vec![])));
    }
    for outside in [
        "../secret",
        "sub/../../secret",
        "/etc/passwd",
        "out",
        "absolute",
        "up/secret",
        "magic/etc/passwd",
        "circle",
        "",
        "none",
        "sub/file/below",
        "sub\0file",
    ] {
        assert_eq!(read(outside, 0, 4), Err(Refused::NotFound), "{outside:?}");
    }
    for other in ["sub", ".", "pipe", "socket"] {
        assert_eq!(read(other, 0, 4), Err(Refused::NotAFile), "{other:?}");
    }
}

/// The name of a service that listens, and its address.
fn listening(name: &str) -> SocketAddr {
    let _power = crate::power::host();
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("bound");
    drop(free);
    offer(name, &ServiceConfig::Listen(address)).expect("it listens");
    address
}

fn channel_to(name: &str) -> socket::Client<socket::Idle> {
    let _power = crate::power::host();
    let (client, server) = socket::channel().expect("memory");
    let mut end = server.into_any();
    loop {
        match process::open(&format!("{PREFIX}{name}"), end) {
            Ok(()) => return client,
            Err((NameError::Busy, back)) => end = back,
            Err((error, _)) => panic!("{error}"),
        }
    }
}

fn accept(mut idle: socket::Client<socket::Idle>) -> socket::Client<socket::Open> {
    loop {
        match idle.accept().expect("alive").recv().expect("alive") {
            socket::WaitingMessage::Accepted(_, open) => return open,
            socket::WaitingMessage::Nobody(again) => idle = again,
        }
    }
}

fn wanted(bytes: u32, within: u32) -> Wanted {
    Wanted { bytes, within }
}

#[test]
fn a_connection_is_read_written_and_closed() {
    let address = listening("test-connection");
    let idle = channel_to("test-connection");
    let mut peer = TcpStream::connect(address).expect("connected");
    let open = accept(idle);
    let begin = Instant::now();
    let socket::ReadingMessage::Late(open) = open
        .read(wanted(10, 20))
        .expect("alive")
        .recv()
        .expect("alive")
    else {
        panic!("nothing was sent")
    };
    assert!(begin.elapsed() >= Duration::from_millis(20));
    peer.write_all(b"hello").expect("connected");
    let socket::ReadingMessage::Data(bytes, open) = open
        .read(wanted(4, 10_000))
        .expect("alive")
        .recv()
        .expect("alive")
    else {
        panic!("something was sent")
    };
    assert_eq!(&*bytes, b"hell");
    let socket::WritingMessage::Written(open) = open
        .write(ExVec::copy_of(b"answer"))
        .expect("alive")
        .recv()
        .expect("alive")
    else {
        panic!("it can be written")
    };
    // What was not read does not take back what was written.
    let idle = open.close().expect("alive");
    let mut answer = String::new();
    peer.read_to_string(&mut answer).expect("no reset");
    assert_eq!(answer, "answer");
    drop(peer);
    // The channel is good for another; an end is told.
    let peer = TcpStream::connect(address).expect("connected");
    let open = accept(idle);
    drop(peer);
    let ended = open.read(wanted(LARGEST, 10_000)).expect("alive").recv();
    assert!(matches!(ended, Ok(socket::ReadingMessage::Ended(_))));
}

#[test]
fn who_has_gone_leaves_its_connection_to_the_next() {
    let address = listening("test-gone");
    let gone = channel_to("test-gone").accept().expect("alive");
    drop(gone);
    let idle = channel_to("test-gone");
    let mut peer = TcpStream::connect(address).expect("connected");
    let open = accept(idle);
    peer.write_all(b"!").expect("connected");
    let data = open.read(wanted(1, 10_000)).expect("alive").recv();
    assert!(matches!(data, Ok(socket::ReadingMessage::Data(..))));
}

#[test]
fn channels_too_many_are_closed() {
    listening("test-many");
    let open = || channel_to("test-many").accept();
    let all: Vec<_> = (0..CHANNELS + 1).map(|_| open()).collect();
    let refused = |waiting: Result<socket::Client<socket::Waiting>, _>| {
        waiting.and_then(|waiting| waiting.recv()).is_err()
    };
    assert_eq!(
        all.into_iter()
            .map(refused)
            .filter(|refused| *refused)
            .count(),
        1
    );
}

#[test]
fn what_cannot_be_offered_is_said() {
    let _power = crate::power::host();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound");
    let error = offer("test-taken", &ServiceConfig::Listen(address)).expect_err("taken");
    assert!(matches!(error, ServiceError::Listen { .. }), "{error}");
    let nowhere = ServiceConfig::Directory("/nowhere".into());
    let error = offer("test-nowhere", &nowhere).expect_err("not there");
    assert!(
        error.to_string().contains("services.test-nowhere"),
        "{error}"
    );
    let error = offer("test//name", &ServiceConfig::Directory("/".into())).expect_err("malformed");
    assert!(matches!(error, ServiceError::Name { .. }), "{error}");
}
