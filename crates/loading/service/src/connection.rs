//! One client, seen from the thread that waits for all of them: what has come,
//! what must go, and until when.

use crate::address::Stream;
use crate::settings::Settings;
use mullion_decide::challenge::{ChallengeMessage, ProtocolError, body_length};
use mullion_modules::wire::Status;
use mullion_modules::{ClientExchange, Line, Sealed};
use std::io::{self, Read as _};
use std::time::Instant;

/// Bytes that are read at a time, and how often in a row: then others have
/// their turn. A hundred who send as fast as they can take milliseconds of a turn.
const PIECE: usize = 64 << 10;
const PIECES: usize = 2;

pub(crate) struct Connection {
    line: Line<Stream>,
    /// With a worker, while one has it.
    exchange: Option<ClientExchange>,
    /// Whether the client has said hello: before, nothing else is listened to.
    greeted: bool,
    input: Vec<u8>,
    /// Bytes of the frame that a worker has.
    working_on: usize,
    /// Whether a key has been proven here that is no stranger's.
    pub(crate) known: bool,
    /// When what is waited for began: the connection, a frame, an answer, idleness.
    since: Instant,
    /// Whether it ends when the output has gone.
    closing: bool,
}

/// Why a connection ends before its client ends it.
#[derive(Debug)]
pub(crate) enum Close {
    /// The client has gone, or the socket failed.
    Gone,
    /// The exchange is wrong; the client is told.
    Protocol(ProtocolError),
    /// The loader has no room; the client is told.
    Busy(&'static str),
}

impl Connection {
    pub(crate) fn new(line: Line<Stream>, exchange: ClientExchange, now: Instant) -> Self {
        Connection {
            line,
            exchange: Some(exchange),
            greeted: false,
            input: Vec::new(),
            working_on: 0,
            known: false,
            since: now,
            closing: false,
        }
    }

    pub(crate) fn stream(&self) -> &Stream {
        self.line.socket()
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.exchange.is_none()
    }

    pub(crate) fn wants_to_send(&self) -> bool {
        self.line.wants_to_send()
    }

    pub(crate) fn wants_to_receive(&self) -> bool {
        !self.is_busy() && !self.wants_to_send() && !self.closing
    }

    /// Bytes held of a large frame.
    pub(crate) fn held(&self) -> usize {
        let held = self.input.len() + self.working_on;
        if held > Settings::SMALL { held } else { 0 }
    }

    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// Until when it may go on like this; `None` while the loader has the word.
    pub(crate) fn deadline(&self, settings: &Settings) -> Option<Instant> {
        let patience = if self.is_busy() && !self.wants_to_send() {
            return None;
        } else if !self.greeted {
            settings.hello
        } else if self.wants_to_send() || !self.input.is_empty() {
            settings.transfer
        } else {
            settings.idle
        };
        Some(self.since + patience)
    }

    /// Reads what has come: a whole frame and its exchange for a worker, or
    /// nothing yet. `room` bytes more of large frames may be held.
    pub(crate) fn receive(
        &mut self,
        settings: &Settings,
        room: usize,
        now: Instant,
    ) -> Result<Option<(ClientExchange, Vec<u8>)>, Close> {
        let mut piece = [0; PIECE];
        let before = self.held();
        for _ in 0..PIECES {
            let frame = self.next(now)?;
            if frame.is_some() {
                return Ok(frame);
            }
            let count = match self.line.socket_mut().read(&mut piece) {
                Ok(0) => return Err(self.ended()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Err(Close::Gone),
            };
            if self.input.is_empty() && self.greeted {
                self.since = now;
            }
            self.input.extend(&piece[..count]);
            self.check(settings)?;
            if self.held().saturating_sub(before) > room {
                return Err(Close::Busy("too many large requests at once; try again"));
            }
        }
        self.next(now)
    }

    /// The bytes of the next whole frame, if it is there; a worker makes sense of them.
    pub(crate) fn next(
        &mut self,
        now: Instant,
    ) -> Result<Option<(ClientExchange, Vec<u8>)>, Close> {
        let Some(length) = ChallengeMessage::length(&self.input).map_err(Close::Protocol)? else {
            return Ok(None);
        };
        let Some(exchange) = self.exchange.take() else {
            return Ok(None);
        };
        let rest = self.input.split_off(length);
        let frame = std::mem::replace(&mut self.input, rest);
        self.working_on = length;
        self.greeted = true;
        self.since = now;
        Ok(Some((exchange, frame)))
    }

    /// What can be said of a frame by its head, before its body is waited for.
    fn check(&mut self, settings: &Settings) -> Result<(), Close> {
        if !self.greeted && self.input.first().is_some_and(|kind| *kind != 1) {
            return Err(Close::Protocol(ProtocolError::Order));
        }
        if let Some(length) = body_length(&self.input) {
            if length > settings.frame {
                return Err(Close::Protocol(ProtocolError::TooLong {
                    bytes: length,
                    most: settings.frame,
                }));
            }
            // Pages that nothing has come for cost nothing.
            let missing = (length + 5).saturating_sub(self.input.len());
            self.input.reserve_exact(missing);
        }
        Ok(())
    }

    fn ended(&self) -> Close {
        match &self.exchange {
            Some(exchange) => match exchange.end(self.input.len()) {
                Ok(()) => Close::Gone,
                Err(error) => Close::Protocol(error),
            },
            None => Close::Gone,
        }
    }

    /// Takes the exchange back, and the answer to send; whether both are this client's.
    pub(crate) fn answer(
        &mut self,
        exchange: ClientExchange,
        sealed: Sealed,
        now: Instant,
    ) -> bool {
        self.exchange = Some(exchange);
        self.working_on = 0;
        self.since = now;
        self.line.take(sealed).is_ok()
    }

    /// Tells the client why it is left, and leaves when that has been sent or
    /// its time is up.
    pub(crate) fn close(&mut self, why: &Close, now: Instant) {
        match why {
            Close::Gone => return,
            Close::Protocol(error) => {
                self.line
                    .farewell(Status::NotUnderstood, &error.to_string());
            }
            Close::Busy(text) => self.line.farewell(Status::Busy, text),
        }
        self.input = Vec::new();
        self.closing = true;
        self.since = now;
    }

    /// Sends what can be sent; whether the connection goes on.
    pub(crate) fn send(&mut self, now: Instant) -> bool {
        if self.line.send().is_err() {
            return false;
        }
        if self.wants_to_send() {
            return true;
        }
        self.since = now;
        !self.closing
    }
}
