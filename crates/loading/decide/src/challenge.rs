//! How a client proves its key: challenge, request, answer
//! (`docs/loader-protocol.md`).
//!
//! A pure state machine. It neither reads nor writes nor looks at a clock; the
//! service gives it frames and the time, and it says what they mean. Frames are
//! length-prefixed and bounded, so that a reader knows what to wait for before
//! it waits.

use crate::key::{KeyError, PublicKey};
use crate::record::Sha256Digest;
use std::time::Duration;
use subtle::ConstantTimeEq as _;

/// The version of the protocol.
pub const VERSION: u16 = 1;
/// Bytes of a frame's body at most.
pub const FRAME: usize = 64 << 20;
/// Requests on one connection at most.
pub const REQUESTS: u64 = 1 << 32;
/// What a signature of this protocol begins with, so that it is of no other.
const CONTEXT: &[u8] = b"mullion-loader-request-1\0";
/// What a signature within one process begins with.
const HELD: &[u8] = b"mullion-held-key-1\0";
/// Bytes of kind and length in front of a body.
const HEAD: usize = 5;

/// A message between client and loader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChallengeMessage {
    /// Client, first: the version and the key that it will prove.
    Hello {
        /// [`VERSION`].
        version: u16,
        /// The client's key.
        key: PublicKey,
    },
    /// Loader: what the client's signatures must be over.
    Challenge(Challenge),
    /// Client: a request, signed.
    Request(SignedRequest),
    /// Loader: what became of the request of that counter.
    Answer {
        /// The request's counter.
        counter: u64,
        /// 0 done, 1 refused, 2 not understood.
        status: u8,
        /// What there is to say, for [`SignedRequest::operation`] to define.
        body: Vec<u8>,
    },
}

/// Names one connection, freshly: nothing signed over it is of use elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// 32 bytes of randomness, never used before.
    pub nonce: [u8; 32],
    /// How long it lasts, in milliseconds.
    pub lifetime_ms: u32,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedRequest {
    /// 1 for the first on a connection, then one more each time.
    pub counter: u64,
    /// What is asked.
    pub operation: u8,
    /// The operation's arguments.
    pub body: Vec<u8>,
    /// Ed25519 over what [`SignedRequest::signed`] gives.
    pub signature: [u8; 64],
}

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
        let nonce = Challenge::fresh(Duration::ZERO).map_err(KeyError::Randomness)?;
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

/// Why an exchange ends. The connection is closed after any of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A length that no frame of that kind has.
    #[error("a frame has a length that its kind cannot have")]
    Length,
    /// More than is taken.
    #[error("a frame of {bytes} bytes, which is longer than the {most} that are taken here")]
    TooLong {
        /// What the frame's head says.
        bytes: usize,
        /// [`FRAME`], or the loader's own limit.
        most: usize,
    },
    /// An unknown kind.
    #[error("a frame of the unknown kind {0}")]
    Kind(u8),
    /// A frame that is not due.
    #[error("a frame came that was not due: the exchange was reordered or repeated")]
    Order,
    /// Another version.
    #[error("the client speaks version {0}, this loader version {VERSION}")]
    Version(u16),
    /// The challenge is over.
    #[error("the challenge has expired; connect again")]
    Expired,
    /// A counter that is not the next.
    #[error("request {got} came where {due} was due: it was repeated, reordered or left out")]
    Counter {
        /// The request's.
        got: u64,
        /// The next.
        due: u64,
    },
    /// A signature of something else.
    #[error(
        "the request's signature is not that of the key that was announced, over this request on this connection"
    )]
    Signature,
    /// The connection ended within a frame.
    #[error("the connection ended within a frame")]
    Truncated,
}

impl Challenge {
    /// A fresh one.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn fresh(lifetime: Duration) -> Result<Self, getrandom::Error> {
        let mut nonce = [0; 32];
        getrandom::fill(&mut nonce)?;
        Ok(Challenge {
            nonce,
            lifetime_ms: u32::try_from(lifetime.as_millis()).unwrap_or(u32::MAX),
        })
    }
}

/// The length that the frame at the beginning of `input` says its body has, as
/// soon as that can be seen.
#[must_use]
pub fn body_length(input: &[u8]) -> Option<usize> {
    let [_, a, b, c, d] = *input.first_chunk::<HEAD>()?;
    Some(u32::from_be_bytes([a, b, c, d]) as usize)
}

impl SignedRequest {
    /// What is signed: connection, place in it, and content, and by whom.
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
}

impl ChallengeMessage {
    /// The frame's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (kind, body) = match self {
            ChallengeMessage::Hello { version, key } => {
                (1, [&version.to_be_bytes()[..], key.as_bytes()].concat())
            }
            ChallengeMessage::Challenge(challenge) => {
                let lifetime = challenge.lifetime_ms.to_be_bytes();
                (2, [&challenge.nonce[..], &lifetime].concat())
            }
            ChallengeMessage::Request(request) => {
                let counter = request.counter.to_be_bytes();
                let parts = [
                    &counter[..],
                    &[request.operation],
                    &request.signature,
                    &request.body,
                ];
                (3, parts.concat())
            }
            ChallengeMessage::Answer {
                counter,
                status,
                body,
            } => (4, [&counter.to_be_bytes()[..], &[*status], body].concat()),
        };
        let mut out = vec![kind];
        out.extend((body.len() as u32).to_be_bytes());
        out.extend(body);
        out
    }

    /// The length of the first frame of `input`, its head included, or `None` if more must come.
    /// A length that cannot be is an error at once, before anything is waited for.
    ///
    /// # Errors
    /// What no frame begins with.
    pub fn length(input: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let Some((head, rest)) = input.split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let legal = match head[0] {
            1 => length == 34,
            2 => length == 36,
            3 => length >= 73,
            4 => length >= 9,
            kind => return Err(ProtocolError::Kind(kind)),
        };
        if !legal {
            return Err(ProtocolError::Length);
        }
        if length > FRAME {
            return Err(ProtocolError::TooLong {
                bytes: length,
                most: FRAME,
            });
        }
        Ok((rest.len() >= length).then_some(HEAD + length))
    }

    /// Takes the first frame off `input`: the frame and the bytes it took, or
    /// `None` if more must come.
    ///
    /// # Errors
    /// As [`ChallengeMessage::length`].
    pub fn decode(input: &[u8]) -> Result<Option<(ChallengeMessage, usize)>, ProtocolError> {
        let Some(length) = Self::length(input)? else {
            return Ok(None);
        };
        let frame = Self::from_body(input[0], &input[HEAD..length]).ok_or(ProtocolError::Length)?;
        Ok(Some((frame, length)))
    }

    /// The frame of exactly these bytes. A request's arguments stay where they are: a large one is
    /// not in memory twice.
    ///
    /// # Errors
    /// As [`ChallengeMessage::length`].
    pub fn of(mut bytes: Vec<u8>) -> Result<ChallengeMessage, ProtocolError> {
        if Self::length(&bytes)? != Some(bytes.len()) {
            return Err(ProtocolError::Length);
        }
        if bytes[0] != 3 {
            return Self::from_body(bytes[0], &bytes[HEAD..]).ok_or(ProtocolError::Length);
        }
        let before = HEAD + 8 + 1 + 64;
        let frame = Self::from_body(3, &bytes[HEAD..before]).ok_or(ProtocolError::Length)?;
        let ChallengeMessage::Request(mut request) = frame else {
            return Err(ProtocolError::Length);
        };
        bytes.drain(..before);
        request.body = bytes;
        Ok(ChallengeMessage::Request(request))
    }

    fn from_body(kind: u8, body: &[u8]) -> Option<ChallengeMessage> {
        if kind == 1 {
            let (version, key) = body.split_first_chunk()?;
            return Some(ChallengeMessage::Hello {
                version: u16::from_be_bytes(*version),
                key: PublicKey::from_bytes(key.try_into().ok()?),
            });
        }
        if kind == 2 {
            let (nonce, lifetime) = body.split_first_chunk()?;
            return Some(ChallengeMessage::Challenge(Challenge {
                nonce: *nonce,
                lifetime_ms: u32::from_be_bytes(lifetime.try_into().ok()?),
            }));
        }
        let (counter, rest) = body.split_first_chunk()?;
        let counter = u64::from_be_bytes(*counter);
        let (&code, rest) = rest.split_first()?;
        if kind == 4 {
            return Some(ChallengeMessage::Answer {
                counter,
                status: code,
                body: rest.to_vec(),
            });
        }
        let (signature, rest) = rest.split_first_chunk()?;
        Some(ChallengeMessage::Request(SignedRequest {
            counter,
            operation: code,
            body: rest.to_vec(),
            signature: *signature,
        }))
    }
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
        let message =
            SignedRequest::signed(&self.challenge, due, request.operation, &request.body, key);
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
