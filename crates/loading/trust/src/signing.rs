//! The half of keys, envelopes, records and requests that signs. The loader has no secret.

use data_encoding::BASE64;
use ed25519_dalek::{Signer as _, SigningKey};
use mullion_decide::challenge::{Challenge, Proven, SignedRequest, signed};
use mullion_decide::key::{KeyError, PublicKey};
use mullion_decide::record::{
    Compilation, PAYLOAD_TYPE, PREDICATE_TYPE, STATEMENT_TYPE, Sha256Digest,
};
use serde::Serialize;
use std::fmt;

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
        PublicKey::from_bytes(self.0.verifying_key().to_bytes())
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

impl SecretKey {
    /// The key as one whose possession has been proven, by a fresh signature.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn proven(&self) -> Result<Proven, KeyError> {
        let proven = Proven::by_signing(self.public(), |message| self.sign(message))?;
        proven.ok_or_else(|| KeyError::NotAKey(self.public().to_string()))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    payload_type: &'a str,
    payload: String,
    signatures: [Signature; 1],
}

#[derive(Serialize)]
struct Signature {
    keyid: String,
    sig: String,
}

/// Signs a payload; the envelope is one line of JSON.
#[must_use]
pub fn seal(payload_type: &str, payload: &[u8], key: &SecretKey) -> String {
    let signed = mullion_decide::dsse::pae(payload_type, payload);
    let envelope = Envelope {
        payload_type,
        payload: BASE64.encode(payload),
        signatures: [Signature {
            keyid: key.public().to_string(),
            sig: BASE64.encode(&key.sign(&signed)),
        }],
    };
    let mut text = serde_json::to_string(&envelope).unwrap_or_default();
    text.push('\n');
    text
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Statement<'a> {
    #[serde(rename = "_type")]
    type_: &'a str,
    subject: [Subject<'a>; 1],
    predicate_type: &'a str,
    predicate: &'a Compilation,
}

#[derive(Serialize)]
struct Subject<'a> {
    name: &'a str,
    digest: SubjectDigest,
}

#[derive(Serialize)]
struct SubjectDigest {
    sha256: String,
}

/// Writes and signs a record. `name` is the image's file name, for people.
#[must_use]
pub fn sign(
    name: &str,
    image: &Sha256Digest,
    compilation: &Compilation,
    key: &SecretKey,
) -> String {
    let digest = SubjectDigest {
        sha256: image.to_string(),
    };
    let statement = Statement {
        type_: STATEMENT_TYPE,
        subject: [Subject { name, digest }],
        predicate_type: PREDICATE_TYPE,
        predicate: compilation,
    };
    let payload = serde_json::to_vec(&statement).unwrap_or_default();
    seal(PAYLOAD_TYPE, &payload, key)
}

/// Makes and signs a request to a loader.
#[must_use]
pub fn sign_request(
    challenge: &Challenge,
    counter: u64,
    operation: u8,
    body: Vec<u8>,
    key: &SecretKey,
) -> SignedRequest {
    let message = signed(challenge, counter, operation, &body, &key.public());
    SignedRequest {
        counter,
        operation,
        body,
        signature: key.sign(&message),
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
