//! Connections of a socket that listens ([`mullion_sip::grant::socket`]).

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use mullion_sip::ExVec;
use mullion_sip::channel::{ChannelClosed, Contract};
use mullion_sip::grant::socket::{
    self as contract, Idle, IdleMessage, Open, OpenMessage, Reading, Server,
};
use mullion_sip::grant::{LARGEST, LONGEST_WAIT, Peer, Wanted};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::ServiceError;

/// How long a process waits for a connection before it is asked whether it is still there.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long one write may take, however many bytes it has.
const WRITING: Duration = Duration::from_secs(10);
/// How long, and for how many bytes, a connection is read after it was closed: one that is shut with unread bytes
/// takes back what was written last.
const LINGER: (Duration, usize) = (Duration::from_millis(300), 256 << 10);

pub(super) fn offer(name: &str, address: SocketAddr) -> Result<(), ServiceError> {
    let refused = |error| ServiceError::Listen {
        name: name.to_owned(),
        address,
        error,
    };
    let listener = TcpListener::bind(address).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    let listening = Listening {
        listener,
        returned: Mutex::default(),
    };
    super::serve(name, contract::Contract::INFO, move |end| {
        Server::<Idle>::from_any(end).map_or(Ok(()), |end| answer(&listening, end))
    })?;
    tracing::info!(service = name, listen = %address, "serves");
    Ok(())
}

type Connection = (TcpStream, SocketAddr);

/// Where connections come from.
struct Listening {
    listener: TcpListener,
    /// Those whose process ended before it had them.
    returned: Mutex<Vec<Connection>>,
}

impl Listening {
    /// The next one, if it comes soon.
    fn next(&self) -> Option<Connection> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(connection) = self.returned().pop() {
                return Some(connection);
            }
            match self.listener.accept() {
                Ok(connection) => return Some(connection),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // No descriptors, or a connection that has gone: later there may be better ones.
                Err(_) => thread::sleep(Duration::from_millis(10)),
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            let wait = Timespec {
                tv_sec: left.as_secs().cast_signed(),
                tv_nsec: left.subsec_nanos().into(),
            };
            // Whatever it says, the socket is asked next.
            let _ = poll(
                &mut [PollFd::new(&self.listener, PollFlags::IN)],
                Some(&wait),
            );
        }
    }

    fn returned(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.returned
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Connections for one channel, one after another.
fn answer(listening: &Listening, mut idle: Server<Idle>) -> Result<(), ChannelClosed> {
    loop {
        let IdleMessage::Accept(waiting) = idle.recv()? else {
            return Ok(());
        };
        let Some(connection) = listening.next() else {
            idle = waiting.nobody()?;
            continue;
        };
        match waiting.accepted(peer(connection.1)) {
            Ok(open) => idle = talk(connection.0, open)?,
            Err(closed) => {
                listening.returned().push(connection);
                return Err(closed);
            }
        }
    }
}

fn peer(address: SocketAddr) -> Peer {
    let ip = match address.ip() {
        IpAddr::V4(ip) => Ipv4Addr::to_ipv6_mapped(&ip),
        IpAddr::V6(ip) => ip,
    };
    Peer {
        address: ip.octets(),
        port: address.port(),
    }
}

/// One connection. It is shut when its process has gone.
fn talk(mut stream: TcpStream, mut open: Server<Open>) -> Result<Server<Idle>, ChannelClosed> {
    // Without it answers come late, no more.
    let _ = stream.set_nodelay(true);
    loop {
        open = match open.recv()? {
            OpenMessage::Close(idle) => {
                linger(stream);
                return Ok(idle);
            }
            OpenMessage::Read(wanted, reading) => read(&mut stream, wanted, reading)?,
            OpenMessage::Write(bytes, writing) => match write(&mut stream, &bytes) {
                Ok(()) => writing.written()?,
                Err(_) => writing.lost()?,
            },
        }
    }
}

fn read(
    stream: &mut TcpStream,
    wanted: Wanted,
    reading: Server<Reading>,
) -> Result<Server<Open>, ChannelClosed> {
    let mut buffer = vec![0; wanted.bytes.clamp(1, LARGEST) as usize];
    let within = Duration::from_millis(wanted.within.clamp(1, LONGEST_WAIT).into());
    let found = stream
        .set_read_timeout(Some(within))
        .and_then(|()| stream.read(&mut buffer));
    match found {
        Ok(count) if count > 0 => match ExVec::try_with_capacity(count) {
            Ok(mut bytes) => {
                bytes.extend_from_slice(&buffer[..count]);
                reading.data(bytes)
            }
            Err(_) => reading.ended(),
        },
        Err(error) if is_late(&error) => reading.late(),
        _ => reading.ended(),
    }
}

fn is_late(error: &io::Error) -> bool {
    use ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// All of it, within the time: who takes one byte at a time does not get more of it.
fn write(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    let deadline = Instant::now() + WRITING;
    while !bytes.is_empty() {
        let left = deadline
            .checked_duration_since(Instant::now())
            .filter(|left| !left.is_zero())
            .ok_or(ErrorKind::TimedOut)?;
        stream.set_write_timeout(Some(left))?;
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Says that nothing more comes, and reads for a moment what the peer is still sending.
fn linger(mut stream: TcpStream) {
    let deadline = Instant::now() + LINGER.0;
    let (mut buffer, mut count) = ([0; 4096], 0);
    if stream.shutdown(Shutdown::Write).is_err() {
        return;
    }
    while count < LINGER.1 {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return;
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(read) => count += read,
        }
    }
}
