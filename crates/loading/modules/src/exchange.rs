//! One client's exchange: what it asks is signed over its own challenge, and what it is answered goes to its own
//! socket.

use crate::wire::{self, Answer, Status};
use mullion_decide::PublicKey;
use mullion_decide::challenge::{ChallengeMessage, Event, ProtocolError, Proven, Session, fresh};
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The last exchange's number. None is given twice.
static LAST: AtomicU64 = AtomicU64::new(0);

/// The loader's side of one client's protocol.
pub struct ClientExchange {
    number: u64,
    session: Session,
}

/// A client's socket. It takes answers of its own exchange, and farewells.
pub struct Line<S> {
    number: u64,
    socket: S,
    output: Vec<u8>,
    sent: usize,
}

/// An answer on its way: for one exchange, and nobody looks into it.
pub struct Sealed {
    number: u64,
    frame: Vec<u8>,
}

/// An answer came to another client's line.
#[derive(Debug)]
pub struct Misdelivered;

/// The way back of an answer.
type Back = Box<dyn FnOnce(Answered) + Send>;

/// An exchange that goes on, and what to send first; an error ends it.
pub type Answered = Result<(ClientExchange, Sealed), ProtocolError>;

/// What a frame was.
pub enum Heard {
    /// A greeting, and the challenge in answer.
    Greeting(ClientExchange, Sealed),
    /// Something that the owner of a key asks, provably.
    Asked(Asked),
}

/// What the owner of a key asks, and the way back to it.
pub struct Asked {
    pub(crate) key: Proven,
    pub(crate) operation: u8,
    pub(crate) body: Vec<u8>,
    pub(crate) reply: Reply,
}

/// Answers one request, from any thread. Dropped without an answer, it says that the loader failed: nobody waits
/// for ever.
pub(crate) struct Reply {
    counter: u64,
    rest: Option<(ClientExchange, Back)>,
}

impl ClientExchange {
    /// Begins one over `socket`, `now` by a clock that never goes back.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn begin<S>(socket: S, lifetime: Duration, now: Duration) -> io::Result<(Line<S>, Self)> {
        let challenge = fresh(lifetime).map_err(|error| io::Error::other(error.to_string()))?;
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let session = Session::new(challenge, now);
        let line = Line {
            number,
            socket,
            output: Vec::new(),
            sent: 0,
        };
        Ok((line, ClientExchange { number, session }))
    }

    /// Takes the bytes of a whole frame. What is asked in it is answered by `back`, from any thread.
    ///
    /// # Errors
    /// Why the exchange ends.
    pub fn receive(
        mut self,
        frame: Vec<u8>,
        now: Duration,
        back: impl FnOnce(Answered) + Send + 'static,
    ) -> Result<Heard, ProtocolError> {
        match self.session.receive(ChallengeMessage::of(frame)?, now)? {
            Event::Send(frame) => {
                let sealed = self.seal(&frame);
                Ok(Heard::Greeting(self, sealed))
            }
            Event::Asked { key, request } => Ok(Heard::Asked(Asked {
                key,
                operation: request.operation,
                body: request.body,
                reply: Reply {
                    counter: request.counter,
                    rest: Some((self, Box::new(back))),
                },
            })),
        }
    }

    /// The key that the client says it has.
    #[must_use]
    pub fn announced(&self) -> Option<&PublicKey> {
        self.session.announced()
    }

    /// The key, if the client has proven it.
    #[must_use]
    pub fn proven(&self) -> Option<&PublicKey> {
        self.session.proven()
    }

    /// Whether the client may go now; `unread` bytes have come since the last whole frame.
    ///
    /// # Errors
    /// If it goes within a frame.
    pub fn end(&self, unread: usize) -> Result<(), ProtocolError> {
        self.session.end(unread)
    }

    fn seal(&self, frame: &ChallengeMessage) -> Sealed {
        Sealed {
            number: self.number,
            frame: frame.encode(),
        }
    }
}

impl Reply {
    pub(crate) fn send(mut self, answer: &Answer) {
        self.give(answer);
    }

    fn give(&mut self, answer: &Answer) {
        let Some((exchange, back)) = self.rest.take() else {
            return;
        };
        let sealed = exchange.seal(&frame(self.counter, answer));
        back(Ok((exchange, sealed)));
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        let text = "the loader failed, or stops";
        self.give(&Answer::not(Status::Refused, text));
    }
}

impl<S> Line<S> {
    /// The socket, to read from and to wait for.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// The socket, to read from.
    pub fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Whether there is something left to send.
    pub fn wants_to_send(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Has an answer sent next.
    ///
    /// # Errors
    /// It is another exchange's: it is gone, and nobody has seen it.
    pub fn take(&mut self, sealed: Sealed) -> Result<(), Misdelivered> {
        if sealed.number != self.number {
            return Err(Misdelivered);
        }
        self.put(sealed.frame);
        Ok(())
    }

    /// Has the client told why it is left, next and last.
    pub fn farewell(&mut self, status: Status, text: &str) {
        self.put(frame(0, &Answer::not(status, text)).encode());
    }

    fn put(&mut self, frame: Vec<u8>) {
        self.output = frame;
        self.sent = 0;
    }
}

impl<S: Write> Line<S> {
    /// Sends what can be sent without waiting.
    ///
    /// # Errors
    /// If the client has gone.
    pub fn send(&mut self) -> io::Result<()> {
        while let Some(rest) = self.output.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.socket.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.put(Vec::new());
        Ok(())
    }
}

fn frame(counter: u64, answer: &Answer) -> ChallengeMessage {
    ChallengeMessage::Answer {
        counter,
        status: answer.status as u8,
        body: wire::encode(&answer.object, &answer.bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mullion_decide::challenge::{Challenge, VERSION};
    use mullion_trust::SecretKey;
    use mullion_trust::challenge::sign_request;
    use std::sync::mpsc::channel;

    const LIFETIME: Duration = Duration::from_secs(60);

    fn key() -> SecretKey {
        SecretKey::from_seed(&[7; 32])
    }

    /// An exchange that has been greeted, with its line, and the challenge that the client saw.
    fn greeted() -> (Line<Vec<u8>>, ClientExchange, Challenge) {
        let (mut line, exchange) =
            ClientExchange::begin(Vec::new(), LIFETIME, Duration::ZERO).expect("randomness");
        let hello = ChallengeMessage::Hello {
            version: VERSION,
            key: *key().public().as_bytes(),
        };
        let heard = exchange.receive(hello.encode(), Duration::ZERO, |_| {});
        let Ok(Heard::Greeting(exchange, sealed)) = heard else {
            panic!("a hello is a greeting");
        };
        line.take(sealed).expect("its own");
        line.send().expect("sent");
        match ChallengeMessage::decode(line.socket()) {
            Ok(Some((ChallengeMessage::Challenge(challenge), _))) => (line, exchange, challenge),
            other => panic!("{other:?}"),
        }
    }

    fn request(challenge: &Challenge) -> Vec<u8> {
        ChallengeMessage::Request(sign_request(challenge, 1, 3, Vec::new(), &key())).encode()
    }

    #[test]
    fn an_answer_goes_to_the_line_of_its_own_exchange_only() {
        let (mut line, exchange, challenge) = greeted();
        let (mut other, ..) = greeted();
        let (back, answers) = channel();
        let heard = exchange.receive(request(&challenge), Duration::ZERO, move |answered| {
            back.send(answered).expect("somebody waits");
        });
        let Ok(Heard::Asked(asked)) = heard else {
            panic!("it is signed");
        };
        asked.reply.send(&Answer::not(Status::Refused, "secret"));
        let (_, sealed) = answers.recv().expect("an answer").expect("no error");
        let before = other.socket().len();
        let copy = Sealed {
            number: sealed.number,
            frame: sealed.frame.clone(),
        };
        assert!(other.take(copy).is_err());
        other.send().expect("nothing to send");
        assert_eq!(other.socket().len(), before);
        line.take(sealed).expect("its own");
    }

    #[test]
    fn a_request_brought_to_another_exchange_is_none() {
        let (_, _, challenge) = greeted();
        let (_, other, _) = greeted();
        let heard = other.receive(request(&challenge), Duration::ZERO, |_| {});
        assert!(matches!(heard, Err(ProtocolError::Signature)));
    }

    #[test]
    fn a_reply_that_is_dropped_is_an_answer() {
        let (_, exchange, challenge) = greeted();
        let (back, answers) = channel();
        let heard = exchange.receive(request(&challenge), Duration::ZERO, move |answered| {
            back.send(answered.is_ok()).expect("somebody waits");
        });
        drop(heard);
        assert_eq!(answers.recv(), Ok(true));
    }
}
