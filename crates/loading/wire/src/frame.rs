//! Frames, as bytes (`docs/loader-protocol.md`).
//!
//! Frames are length-prefixed and bounded, so that a reader knows what to wait for before it waits.

/// The version of the protocol.
pub const VERSION: u16 = 1;
/// Bytes of a frame's body at most.
pub const FRAME: usize = 64 << 20;
/// Requests on one connection at most.
pub const REQUESTS: u64 = 1 << 32;
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
        key: [u8; 32],
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
    /// Ed25519 over what the session says is signed.
    pub signature: [u8; 64],
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

/// The length that the frame at the beginning of `input` says its body has, as
/// soon as that can be seen.
#[must_use]
pub fn body_length(input: &[u8]) -> Option<usize> {
    let [_, a, b, c, d] = *input.first_chunk::<HEAD>()?;
    Some(u32::from_be_bytes([a, b, c, d]) as usize)
}

impl ChallengeMessage {
    /// The frame's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (kind, body) = match self {
            ChallengeMessage::Hello { version, key } => {
                (1, [&version.to_be_bytes()[..], key].concat())
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
                key: key.try_into().ok()?,
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
