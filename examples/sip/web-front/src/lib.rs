//! The web server's front: takes connections from the host, has the parser read what comes on them, and the cache
//! (or the disk) find what is asked for. It believes neither: what the parser says is checked where it matters, and
//! either may end at any time.
#![forbid(unsafe_code)]

mod answer;
mod peers;

use std::time::{Duration, Instant};

use answer::{head, status};
use mullion_sip::channel::ChannelClosed;
use mullion_sip::grant::socket::{
    self, Client, Idle, Open, ReadingMessage, WaitingMessage, WritingMessage,
};
use mullion_sip::grant::{Found, LARGEST, Refused, Wanted, directory};
use mullion_sip::{ExVec, process, thread};
use peers::{Files, Gone, Parser, Said};
use sip_contracts::{Request, parse};

mullion_sip::sip_main! {
    name: "web-front",
    main: main,
    contracts: [socket, directory, parse],
    limits: { memory: 8 << 20, threads: 64, children: 0 },
}

/// For the whole head of a request, from its first byte on.
const HEAD: Duration = Duration::from_secs(5);
/// For the first byte of the next request.
const IDLE: Duration = Duration::from_secs(10);

/// Arguments: where files are (`/web/cache`), and how many connections there may be at a time (16).
fn main(arguments: Vec<String>) -> Result<(), Box<dyn std::error::Error>> {
    let files = arguments.first().map_or("/web/cache", String::as_str);
    let connections: u32 = arguments.get(1).map_or(Ok(16), |text| text.parse())?;
    for _ in 1..connections {
        let files = files.to_owned();
        // Fewer serve as well, if there is no memory for a stack.
        let _ = thread::spawn(move || {
            let _ = serve(&files);
        });
    }
    Ok(serve(files)?)
}

/// Connections, one after another, for ever.
fn serve(files: &str) -> Result<(), ChannelClosed> {
    let mut peers = Peers {
        parser: Parser::default(),
        files: Files::at(files),
    };
    let (mut idle, server) = socket::channel().map_err(|_| ChannelClosed)?;
    if let Err((error, _)) = process::open("/host/web", server.into_any()) {
        panic!("/host/web: {error}");
    }
    loop {
        idle = match idle.accept()?.recv()? {
            WaitingMessage::Nobody(idle) => idle,
            WaitingMessage::Accepted(_, open) => peers.connection(open)?,
        };
    }
}

struct Peers {
    parser: Parser,
    files: Files,
}

impl Peers {
    /// Requests, one after another, until the connection is to be closed.
    fn connection(&mut self, mut open: Client<Open>) -> Result<Client<Idle>, ChannelClosed> {
        let mut bytes = Vec::new();
        let mut begun = None;
        loop {
            let said = match bytes.is_empty() {
                true => Ok(Said::More),
                false => self.parser.ask(&bytes),
            };
            match said {
                Ok(Said::Request(request)) => {
                    // The parser may say anything.
                    let used = (request.used as usize).clamp(1, bytes.len());
                    bytes.drain(..used);
                    begun = None;
                    let (after, keep) = self.respond(open, &request)?;
                    open = after;
                    if !keep {
                        return open.close();
                    }
                }
                Ok(Said::Bad(status)) => return refuse(open, status)?.close(),
                // It did not survive this request, twice.
                Err(Gone) => return refuse(open, 500)?.close(),
                Ok(Said::More) => {
                    let since = *begun.get_or_insert_with(Instant::now);
                    let limit = if bytes.is_empty() { IDLE } else { HEAD };
                    let left = limit.saturating_sub(since.elapsed());
                    let wanted = Wanted {
                        bytes: LARGEST / 8,
                        within: left.as_millis() as u32,
                    };
                    open = match open.read(wanted)?.recv()? {
                        ReadingMessage::Data(data, open) => {
                            if bytes.is_empty() {
                                begun = Some(Instant::now());
                            }
                            bytes.extend_from_slice(&data);
                            open
                        }
                        ReadingMessage::Late(open) if bytes.is_empty() => return open.close(),
                        ReadingMessage::Late(open) => return refuse(open, 408)?.close(),
                        ReadingMessage::Ended(open) => return open.close(),
                    };
                }
            }
        }
    }

    /// Gives the connection back, and whether it is good for another request.
    fn respond(
        &mut self,
        open: Client<Open>,
        request: &Request,
    ) -> Result<(Client<Open>, bool), ChannelClosed> {
        let Found { size, bytes } = match self.files.read(&request.path, 0) {
            Ok(Ok(found)) => found,
            Ok(Err(refused)) => return say(open, refusal(refused), request),
            Err(Gone) => return say(open, 503, request),
        };
        let head = head(200, &request.path, size, request.keep);
        let (mut open, mut well) = write(open, ExVec::copy_of(head.as_bytes()))?;
        if request.head_only {
            return Ok((open, well && request.keep));
        }
        let (mut bytes, mut sent) = (bytes, 0);
        while well {
            // The file may have grown.
            bytes.truncate(usize::try_from(size - sent).unwrap_or(usize::MAX));
            sent += bytes.len() as u64;
            (open, well) = write(open, bytes)?;
            if sent == size {
                return Ok((open, well && request.keep));
            }
            bytes = match self.files.read(&request.path, sent) {
                Ok(Ok(found)) if found.size == size && !found.bytes.is_empty() => found.bytes,
                // Too late for a status: the client sees that bytes are missing.
                _ => return Ok((open, false)),
            };
        }
        Ok((open, false))
    }
}

fn refusal(refused: Refused) -> u16 {
    match refused {
        Refused::NotFound | Refused::NotAFile => 404,
        Refused::NotPermitted => 403,
        Refused::Failed => 503,
    }
}

/// A status instead of a file. The connection is good for another request.
fn say(
    open: Client<Open>,
    number: u16,
    request: &Request,
) -> Result<(Client<Open>, bool), ChannelClosed> {
    let text = status(number, request.keep, request.head_only);
    let (open, well) = write(open, ExVec::copy_of(text.as_bytes()))?;
    Ok((open, well && request.keep))
}

/// A status, before the connection is closed.
fn refuse(open: Client<Open>, number: u16) -> Result<Client<Open>, ChannelClosed> {
    let text = status(number, false, false);
    Ok(write(open, ExVec::copy_of(text.as_bytes()))?.0)
}

/// Gives the connection back, and whether everything was written.
fn write(open: Client<Open>, bytes: ExVec<u8>) -> Result<(Client<Open>, bool), ChannelClosed> {
    Ok(match open.write(bytes)?.recv()? {
        WritingMessage::Written(open) => (open, true),
        WritingMessage::Lost(open) => (open, false),
    })
}
