//! The parser and the files, as one thread of the front has them: a channel that is opened when it is needed, and
//! again when the peer has ended.

use std::time::Duration;

use mullion_sip::channel::{AnyEndpoint, ChannelClosed};
use mullion_sip::grant::directory;
use mullion_sip::grant::{Found, LARGEST, Piece, Refused};
use mullion_sip::process::names::NameError;
use mullion_sip::{ExString, ExVec, process, thread};
use sip_contracts::{Request, parse};

/// The peer is not there, or ended twice over the same thing.
pub(crate) struct Gone;

/// What the parser says.
pub(crate) enum Said {
    More,
    Request(Request),
    Bad(u16),
}

#[derive(Default)]
pub(crate) struct Parser(Option<parse::Client<parse::Idle>>);

impl Parser {
    /// What ends two parsers is not given to a third.
    pub(crate) fn ask(&mut self, bytes: &[u8]) -> Result<Said, Gone> {
        for _ in 0..2 {
            let parser = match self.0.take() {
                Some(parser) => parser,
                None => find()?,
            };
            if let Ok((said, parser)) = one(parser, bytes) {
                self.0 = Some(parser);
                return Ok(said);
            }
        }
        Err(Gone)
    }
}

type Open = parse::Client<parse::Idle>;

fn one(parser: Open, bytes: &[u8]) -> Result<(Said, Open), ChannelClosed> {
    Ok(match parser.bytes(ExVec::copy_of(bytes))?.recv()? {
        parse::BusyMessage::More(parser) => (Said::More, parser),
        parse::BusyMessage::Request(request, parser) => (Said::Request(request), parser),
        parse::BusyMessage::Bad(status, parser) => (Said::Bad(status), parser),
    })
}

/// A parser that answers. One that has ended may leave its name for a moment, so it is asked something harmless first.
fn find() -> Result<Open, Gone> {
    for _ in 0..100 {
        let parser = open("/web/parser", || {
            let (client, server) = parse::channel().ok()?;
            Some((client, server.into_any()))
        })?;
        if let Ok((Said::More, parser)) = one(parser, &[]) {
            return Ok(parser);
        }
        thread::sleep(Duration::from_millis(20));
    }
    Err(Gone)
}

pub(crate) struct Files {
    path: String,
    files: Option<directory::Client<directory::Idle>>,
}

impl Files {
    pub(crate) fn at(path: &str) -> Files {
        Files {
            path: path.to_owned(),
            files: None,
        }
    }

    /// To read twice does no harm, so it is tried again for a while.
    pub(crate) fn read(&mut self, path: &str, offset: u64) -> Result<Result<Found, Refused>, Gone> {
        for _ in 0..20 {
            let files = match self.files.take() {
                Some(files) => files,
                None => open(&self.path, || {
                    let (client, server) = directory::channel().ok()?;
                    Some((client, server.into_any()))
                })?,
            };
            let piece = Piece {
                path: ExString::from(path),
                offset,
                bytes: LARGEST,
            };
            let (found, files) = match files.read(piece).and_then(|busy| busy.recv()) {
                Ok(directory::BusyMessage::Piece(found, files)) => (Ok(found), files),
                Ok(directory::BusyMessage::Refused(refused, files)) => (Err(refused), files),
                Err(ChannelClosed) => {
                    thread::sleep(Duration::from_millis(20));
                    continue;
                }
            };
            self.files = Some(files);
            return Ok(found);
        }
        Err(Gone)
    }
}

/// Waits a while for the peer to be there, or there again.
fn open<C>(path: &str, channel: impl Fn() -> Option<(C, AnyEndpoint)>) -> Result<C, Gone> {
    for _ in 0..1000 {
        let (client, server) = channel().ok_or(Gone)?;
        match process::open(path, server) {
            Ok(()) => return Ok(client),
            Err((NameError::Unbound | NameError::Busy, _)) => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(_) => return Err(Gone),
        }
    }
    Err(Gone)
}
