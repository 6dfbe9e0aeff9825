//! How a client proves its key: challenge, request, answer
//! (`docs/loader-protocol.md`).
//!
//! A pure state machine. It neither reads nor writes nor looks at a clock; the
//! service gives it frames and the time, and it says what they mean. Frames are
//! length-prefixed and bounded, so that a reader knows what to wait for before
//! it waits.

use crate::key::{KeyError, PublicKey};
use crate::record::Sha256Digest;
pub use mullion_wire::frame::{
    Challenge, ChallengeMessage, FRAME, ProtocolError, REQUESTS, SignedRequest, VERSION,
    body_length,
};
use std::time::Duration;
use subtle::ConstantTimeEq as _;

/// What a signature of this protocol begins with, so that it is of no other.
const CONTEXT: &[u8] = b"mullion-loader-request-1\0";
/// What a signature within one process begins with.
const HELD: &[u8] = b"mullion-held-key-1\0";
/// A key whose possession has been proven: by a request signed over a fresh challenge, or by
/// another fresh signature. Nothing else makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proven(PublicKey);

impl Proven {
    /// The key, if `sign` gives its signature of a text that nobody could have signed before.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn by_signing(
        key: PublicKey,
        sign: impl FnOnce(&[u8]) -> [u8; 64],
    ) -> Result<Option<Self>, KeyError> {
        let nonce = fresh(Duration::ZERO).map_err(KeyError::Randomness)?;
        let message = [HELD, &nonce.nonce, key.as_bytes()].concat();
        let signature = sign(&message);
        Ok(key.verifies(&message, &signature).then_some(Proven(key)))
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> PublicKey {
        self.0
    }
}

/// A fresh challenge.
///
/// # Errors
/// If the system has no randomness.
pub fn fresh(lifetime: Duration) -> Result<Challenge, getrandom::Error> {
    let mut nonce = [0; 32];
    getrandom::fill(&mut nonce)?;
    Ok(Challenge {
        nonce,
        lifetime_ms: u32::try_from(lifetime.as_millis()).unwrap_or(u32::MAX),
    })
}

/// What is signed of a request: connection, place in it, and content, and by whom.
#[must_use]
pub fn signed(
    challenge: &Challenge,
    counter: u64,
    operation: u8,
    body: &[u8],
    key: &PublicKey,
) -> Vec<u8> {
    [
        CONTEXT,
        &challenge.nonce,
        key.as_bytes(),
        &counter.to_be_bytes(),
        &[operation],
        Sha256Digest::of(body).as_bytes(),
    ]
    .concat()
}

/// The loader's side of one connection.
#[derive(Debug)]
pub struct Session {
    challenge: Challenge,
    /// When the challenge was made, by the service's own clock.
    made: Duration,
    state: State,
}

#[derive(Debug)]
enum State {
    Hello,
    Requests { key: PublicKey, due: u64 },
    Closed,
}

/// What the loader must do with a frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// Send this.
    Send(ChallengeMessage),
    /// The owner of `key` asks this, provably, on this connection, now.
    Asked {
        /// Whose possession has been proven.
        key: Proven,
        /// What is asked.
        request: SignedRequest,
    },
}

impl Session {
    /// A connection that has just been made. `challenge` must be fresh; `now`
    /// is a clock that never goes back.
    #[must_use]
    pub fn new(challenge: Challenge, now: Duration) -> Self {
        Session {
            challenge,
            made: now,
            state: State::Hello,
        }
    }

    /// What a frame means. After an error the session is closed, and every
    /// further frame is an error.
    ///
    /// # Errors
    /// Why the exchange ends.
    pub fn receive(
        &mut self,
        frame: ChallengeMessage,
        now: Duration,
    ) -> Result<Event, ProtocolError> {
        let state = std::mem::replace(&mut self.state, State::Closed);
        let lifetime = Duration::from_millis(self.challenge.lifetime_ms.into());
        if now.saturating_sub(self.made) >= lifetime {
            return Err(ProtocolError::Expired);
        }
        match (state, frame) {
            (State::Hello, ChallengeMessage::Hello { version, key }) => {
                if version != VERSION {
                    return Err(ProtocolError::Version(version));
                }
                let key = PublicKey::from_bytes(key);
                self.state = State::Requests { key, due: 1 };
                Ok(Event::Send(ChallengeMessage::Challenge(self.challenge)))
            }
            (State::Requests { key, due }, ChallengeMessage::Request(request)) => {
                self.check(&key, due, &request)?;
                self.state = State::Requests { key, due: due + 1 };
                Ok(Event::Asked {
                    key: Proven(key),
                    request,
                })
            }
            _ => Err(ProtocolError::Order),
        }
    }

    /// The key that the client says it has.
    #[must_use]
    pub fn announced(&self) -> Option<&PublicKey> {
        match &self.state {
            State::Requests { key, .. } => Some(key),
            _ => None,
        }
    }

    /// The key, if the client has proven it on this connection.
    #[must_use]
    pub fn proven(&self) -> Option<&PublicKey> {
        match &self.state {
            State::Requests { key, due } if *due > 1 => Some(key),
            _ => None,
        }
    }

    fn check(
        &self,
        key: &PublicKey,
        due: u64,
        request: &SignedRequest,
    ) -> Result<(), ProtocolError> {
        let same = request.counter.to_be_bytes().ct_eq(&due.to_be_bytes());
        if !bool::from(same) || due > REQUESTS {
            return Err(ProtocolError::Counter {
                got: request.counter,
                due,
            });
        }
        let message = signed(&self.challenge, due, request.operation, &request.body, key);
        match key.verifies(&message, &request.signature) {
            true => Ok(()),
            false => Err(ProtocolError::Signature),
        }
    }

    /// Whether the connection may end here; `unread` bytes have come since the
    /// last whole frame.
    ///
    /// # Errors
    /// If it ends within a frame.
    pub fn end(&self, unread: usize) -> Result<(), ProtocolError> {
        match unread {
            0 => Ok(()),
            _ => Err(ProtocolError::Truncated),
        }
    }
}
