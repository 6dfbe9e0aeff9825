//! One client, seen from the thread that waits for all of them: what has come,
//! what must go, and until when.

use crate::address::Stream;
use crate::settings::Settings;
use crate::wire::{self, Status};
use mullion_decide::challenge::{Frame, ProtocolError, Session, body_length};
use std::io::{self, Read as _, Write as _};
use std::time::Instant;

/// Bytes that are read at a time, and how often in a row: then others have
/// their turn. A hundred who send as fast as they can take milliseconds of a turn.
const PIECE: usize = 64 << 10;
const PIECES: usize = 2;

pub(crate) struct Connection {
    stream: Stream,
    /// With a worker, while one has it.
    session: Option<Session>,
    /// Whether the client has said hello: before, nothing else is listened to.
    greeted: bool,
    input: Vec<u8>,
    output: Vec<u8>,
    sent: usize,
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
    pub(crate) fn new(stream: Stream, session: Session, now: Instant) -> Self {
        Connection {
            stream,
            session: Some(session),
            greeted: false,
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            working_on: 0,
            known: false,
            since: now,
            closing: false,
        }
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.session.is_none()
    }

    pub(crate) fn wants_to_send(&self) -> bool {
        self.sent < self.output.len()
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

    /// Reads what has come: a whole frame and its session for a worker, or
    /// nothing yet. `room` bytes more of large frames may be held.
    pub(crate) fn receive(
        &mut self,
        settings: &Settings,
        room: usize,
        now: Instant,
    ) -> Result<Option<(Session, Vec<u8>)>, Close> {
        let mut piece = [0; PIECE];
        let before = self.held();
        for _ in 0..PIECES {
            let frame = self.next(now)?;
            if frame.is_some() {
                return Ok(frame);
            }
            let count = match self.stream.read(&mut piece) {
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
    pub(crate) fn next(&mut self, now: Instant) -> Result<Option<(Session, Vec<u8>)>, Close> {
        let Some(length) = Frame::length(&self.input).map_err(Close::Protocol)? else {
            return Ok(None);
        };
        let Some(session) = self.session.take() else {
            return Ok(None);
        };
        let rest = self.input.split_off(length);
        let frame = std::mem::replace(&mut self.input, rest);
        self.working_on = length;
        self.greeted = true;
        self.since = now;
        Ok(Some((session, frame)))
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
        match &self.session {
            Some(session) => match session.end(self.input.len()) {
                Ok(()) => Close::Gone,
                Err(error) => Close::Protocol(error),
            },
            None => Close::Gone,
        }
    }

    /// Takes the session back, and the answer to send.
    pub(crate) fn answer(&mut self, session: Session, frame: &Frame, now: Instant) {
        self.session = Some(session);
        self.working_on = 0;
        self.queue(frame, now);
    }

    fn queue(&mut self, frame: &Frame, now: Instant) {
        self.output = frame.encode();
        self.sent = 0;
        self.since = now;
    }

    /// Tells the client why it is left, and leaves when that has been sent or
    /// its time is up.
    pub(crate) fn close(&mut self, why: &Close, now: Instant) {
        let (status, text) = match why {
            Close::Gone => return,
            Close::Protocol(error) => (Status::NotUnderstood, error.to_string()),
            Close::Busy(text) => (Status::Busy, (*text).to_owned()),
        };
        let body = wire::encode(&serde_json::json!({ "error": text }), &[]);
        self.input = Vec::new();
        self.closing = true;
        let farewell = Frame::Answer {
            counter: 0,
            status: status as u8,
            body,
        };
        self.queue(&farewell, now);
    }

    /// Sends what can be sent; whether the connection goes on.
    pub(crate) fn send(&mut self, now: Instant) -> bool {
        while self.wants_to_send() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(0) => return false,
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        self.output = Vec::new();
        self.sent = 0;
        self.since = now;
        !self.closing
    }
}
