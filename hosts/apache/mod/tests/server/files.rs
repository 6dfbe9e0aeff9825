//! A server of files on loopback, as FTP has it: `file.txt`, and a folder that lists it. A process that gets the sockets of clients.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

const FILE: &str = "A file of the other side\n";
const LIST: &str = "-rw-r--r-- 1 user user 25 Jan  1  2026 file.txt\r\ndrwxr-xr-x 1 user user 0 Jan  1  2026 folder\r\n";

/// Commands, one after the other. `wrong` is no password.
pub(crate) fn serve(mut stream: TcpStream) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let data = TcpListener::bind("127.0.0.1:0").ok()?;
    let port = data.local_addr().ok()?.port();
    let send = |text: &str| -> Option<()> {
        let (mut to, _) = data.accept().ok()?;
        to.write_all(text.as_bytes()).ok()
    };
    stream.write_all(b"220 ready\r\n").ok()?;
    loop {
        let line = lines.next()?.ok()?;
        let (command, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let mut say = |text: &str| stream.write_all(format!("{text}\r\n").as_bytes()).ok();
        match (command, rest) {
            ("USER", _) => say("331 a password")?,
            ("PASS", "wrong") => say("530 no")?,
            ("PASS", _) => say("230 in")?,
            ("EPSV", _) => say(&format!("229 at (|||{port}|)"))?,
            ("TYPE", _) => say("200 so")?,
            ("SIZE", "file.txt") => say(&format!("213 {}", FILE.len()))?,
            ("MDTM", "file.txt") => say("213 20260101120000")?,
            ("CWD", "folder") => say("250 there")?,
            ("PWD", _) => say("257 \"/folder\" is here")?,
            ("RETR", "file.txt") => {
                say("150 it comes")?;
                send(FILE)?;
                stream.write_all(b"226 sent\r\n").ok()?;
            }
            ("LIST", _) => {
                say("150 it comes")?;
                send(LIST)?;
                stream.write_all(b"226 sent\r\n").ok()?;
            }
            ("QUIT", _) => return say("221 out"),
            ("SIZE" | "MDTM" | "RETR" | "CWD", _) => say("550 no such thing")?,
            _ => say("502 unknown")?,
        }
    }
}

/// The descriptor that comes beside a byte.
fn descriptor(stream: &UnixStream) -> Option<RawFd> {
    use std::os::fd::AsRawFd;
    let (mut byte, mut beside) = (0u8, [0u64; 8]);
    let mut piece = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    // SAFETY: a message is plain words, and zeros are one without anything.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = beside.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&beside);
    // SAFETY: the message's places are those above, of these sizes.
    let count = unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut message, 0) };
    (count == 1 && message.msg_controllen >= 20).then(|| beside[2] as u32 as RawFd)
}

/// Answers clients whose sockets it gets at this place.
pub(crate) fn passed(root: &Path, port: u16) {
    let folder = root.join("sockets");
    std::fs::create_dir_all(&folder).expect("made");
    let place = folder.join(port.to_string());
    let listener = UnixListener::bind(&place).expect("a socket");
    // The server's children are another user.
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&place, all).expect("ours");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let Some(client) = descriptor(&stream) else {
                continue;
            };
            // SAFETY: the kernel has just made it for this process.
            let mut client = unsafe { TcpStream::from_raw_fd(client) };
            let answer = "HTTP/1.1 203 Passed\r\nContent-Length: 17\r\n\r\nfrom elsewhere...";
            let _gone = client.write_all(answer.as_bytes());
            let _gone = client.shutdown(std::net::Shutdown::Both);
        }
    });
}
