//! Ed25519 keys, in memory.

use crate::keynote::Principal;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use std::fmt;
use std::str::FromStr;

/// What is wrong with a key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text is no public key.
    #[error(
        "`{0}` is no public key; one looks like x-mullion-ed25519-hex: and 64 hexadecimal digits"
    )]
    NotAKey(String),
    /// The system has no randomness.
    #[error("the system gives no randomness for a new key: {0}")]
    Randomness(getrandom::Error),
}

/// A key that signs. It is wiped from memory when it is dropped, and never
/// printed.
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// A new key, of the system's randomness.
    ///
    /// # Errors
    /// If the system has none.
    pub fn generate() -> Result<Self, KeyError> {
        let mut seed = zeroize::Zeroizing::new([0; 32]);
        getrandom::fill(seed.as_mut()).map_err(KeyError::Randomness)?;
        Ok(Self::from_seed(&seed))
    }

    /// The key of a 32-byte seed (RFC 8032, section 5.1.5).
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        SecretKey(SigningKey::from_bytes(seed))
    }

    /// The seed, for whoever keeps the key.
    #[must_use]
    pub fn seed(&self) -> zeroize::Zeroizing<[u8; 32]> {
        zeroize::Zeroizing::new(self.0.to_bytes())
    }

    /// The key that verifies what this one signs.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    /// Signs.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(of {})", self.public())
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// The only copies of a secret: that they are wiped is said by their types.
    #[test]
    fn secrets_are_wiped_and_not_printed() {
        fn wiped<T: zeroize::ZeroizeOnDrop>() {}
        wiped::<SigningKey>();
        wiped::<zeroize::Zeroizing<[u8; 32]>>();
        let key = SecretKey::from_seed(&[0x5a; 32]);
        assert!(!format!("{key:?}").contains("5a5a"), "{key:?}");
        assert!(format!("{key:?}").contains(&key.public().to_string()));
    }
}
