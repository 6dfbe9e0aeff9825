//! A client of the loader.

use crate::address::{Address, Stream};
use crate::settings::Settings;
use mullion_decide::challenge::{Challenge, ChallengeMessage, ProtocolError, VERSION};
use mullion_modules::wire::{self, Answer, List, Operation, Status, WireError};
use mullion_trust::SecretKey;
use mullion_trust::challenge::sign_request;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, Read as _, Write as _};
use std::time::Duration;

/// Bytes that are sent between two reports of progress.
const PIECE: usize = 64 << 10;

/// Is told how many bytes of how many have been sent.
pub type Progress<'a> = &'a mut dyn FnMut(usize, usize);

/// A connection to a loader, on which a key is proven.
pub struct Client {
    stream: Stream,
    key: SecretKey,
    challenge: Challenge,
    counter: u64,
    input: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody is there.
    #[error("{0}: {1}; is a loader running there (mullion loader serve)?")]
    Connect(Address, io::Error),
    /// The connection broke, or the loader is too slow.
    #[error("the connection to the loader: {0}")]
    Io(#[from] io::Error),
    /// What came is not of the protocol.
    #[error("the loader's answer: {0}")]
    Protocol(#[from] ProtocolError),
    /// What came is not of the protocol.
    #[error("the loader's answer: {0}")]
    Content(#[from] WireError),
    /// A frame that was not due.
    #[error("the loader answered something else than was asked")]
    Unexpected,
    /// The loader ended the connection, and says why.
    #[error("the loader ended the connection: {0}")]
    Ended(String),
}

impl Client {
    /// Connects and says hello with `key`. Nothing is waited for longer than
    /// `patience`.
    ///
    /// # Errors
    /// Why there is no connection.
    pub fn connect(
        address: &Address,
        key: SecretKey,
        patience: Duration,
    ) -> Result<Self, ClientError> {
        let stream = Stream::connect(address, patience)
            .map_err(|error| ClientError::Connect(address.clone(), error))?;
        let mut client = Client {
            stream,
            challenge: Challenge {
                nonce: [0; 32],
                lifetime_ms: 0,
            },
            counter: 0,
            input: Vec::new(),
            key,
        };
        let hello = ChallengeMessage::Hello {
            version: VERSION,
            key: *client.key.public().as_bytes(),
        };
        client.send(&hello.encode(), &mut |_, _| {})?;
        match client.receive()? {
            ChallengeMessage::Challenge(challenge) => client.challenge = challenge,
            other => return Err(ended(&other)),
        }
        Ok(client)
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// Why there is none; a refusal is an answer.
    pub fn ask(
        &mut self,
        operation: Operation,
        object: &impl Serialize,
        bytes: &[u8],
        progress: Progress<'_>,
    ) -> Result<Answer, ClientError> {
        if self.counter == 0 && bytes.len() > Settings::SMALL / 2 {
            // A small request proves the key: a busy loader then takes a large one before those
            // of strangers.
            self.ask_now(Operation::List, &List {}, &[], &mut |_, _| {})?;
        }
        self.ask_now(operation, object, bytes, progress)
    }

    fn ask_now(
        &mut self,
        operation: Operation,
        object: &impl Serialize,
        bytes: &[u8],
        progress: Progress<'_>,
    ) -> Result<Answer, ClientError> {
        self.counter += 1;
        let body = wire::encode(object, bytes);
        let request = sign_request(
            &self.challenge,
            self.counter,
            operation as u8,
            body,
            &self.key,
        );
        let sent = self.send(&ChallengeMessage::Request(request).encode(), progress);
        // Who was turned away while sending may find the reason in what came.
        let frame = match (sent, self.receive()) {
            (_, Ok(frame)) => frame,
            (Err(error), Err(_)) | (Ok(()), Err(error)) => return Err(error),
        };
        match frame {
            ChallengeMessage::Answer {
                counter,
                status,
                body,
            } if counter == self.counter => {
                let status = Status::from_number(status).ok_or(ClientError::Unexpected)?;
                let (object, bytes) = wire::decode(&body)?;
                Ok(Answer {
                    status,
                    object,
                    bytes: bytes.to_vec(),
                })
            }
            other => Err(ended(&other)),
        }
    }

    fn send(&mut self, bytes: &[u8], progress: Progress<'_>) -> Result<(), ClientError> {
        let mut sent = 0;
        for piece in bytes.chunks(PIECE) {
            self.stream.write_all(piece)?;
            sent += piece.len();
            progress(sent, bytes.len());
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<ChallengeMessage, ClientError> {
        let mut piece = [0; 4096];
        loop {
            if let Some((frame, length)) = ChallengeMessage::decode(&self.input)? {
                self.input.drain(..length);
                return Ok(frame);
            }
            match self.stream.read(&mut piece) {
                Ok(0) if self.input.is_empty() => {
                    let text = "it closed it without a word";
                    return Err(ClientError::Ended(text.to_owned()));
                }
                Ok(0) => return Err(ProtocolError::Truncated.into()),
                Ok(count) => self.input.extend(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let text = "the loader does not answer in time";
                    return Err(io::Error::new(io::ErrorKind::TimedOut, text).into());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// What a frame that was not due says: the reason, if it is a farewell.
fn ended(frame: &ChallengeMessage) -> ClientError {
    let ChallengeMessage::Answer {
        counter: 0, body, ..
    } = frame
    else {
        return ClientError::Unexpected;
    };
    let object: Option<(Value, _)> = wire::decode(body).ok();
    let text = object.and_then(|(object, _)| Some(object["error"].as_str()?.to_owned()));
    text.map_or(ClientError::Unexpected, ClientError::Ended)
}
