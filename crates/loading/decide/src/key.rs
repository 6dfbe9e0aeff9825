//! Public keys: Ed25519.

use crate::keynote::Principal;
use ed25519_dalek::{Signature, VerifyingKey};
use std::fmt;
use std::str::FromStr;

/// What is wrong with a key.
pub type KeyError = mullion_wire::reason::KeyErrorOf<getrandom::Error>;

/// A key that verifies. Its text is the KeyNote identifier
/// `x-mullion-ed25519-hex:` and 64 digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// The key of these bytes (RFC 8032).
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        PublicKey(bytes)
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The KeyNote principal.
    #[must_use]
    pub fn principal(&self) -> Principal {
        Principal::ed25519(&self.0)
    }

    /// Whether `signature` is this key's over `message`. Strictly: no weak
    /// keys, no second encoding of a signature.
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let key = VerifyingKey::from_bytes(&self.0);
        match (key, Signature::from_slice(signature)) {
            (Ok(key), Ok(signature)) => key.verify_strict(message, &signature).is_ok(),
            _ => false,
        }
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.principal().fmt(f)
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let principal = Principal::new(text.trim().as_bytes());
        let key = principal.as_ed25519().copied();
        key.map(PublicKey)
            .ok_or_else(|| KeyError::NotAKey(text.trim().to_owned()))
    }
}
