//! Signatures of assertions (RFC 2704, section 4.6.7; RFC 2792, section 4).
//!
//! What is signed is the text from its first line up to the line of the `Signature` field. Behind
//! it is the name of the signature's algorithm with its colon. So has the reference implementation.

use super::principal::{Algorithms, Key, Principal, decode, split};
use ed25519_dalek::{Signature, VerifyingKey};

/// Why a credential does not count.
pub type SignatureError = mullion_wire::keynote::SignatureErrorOf<Principal>;

/// The name of the private algorithm of Mullion's own signatures.
pub const ED25519_ALGORITHM: &str = "sig-x-mullion-ed25519-hex:";

/// What the signature covers: the text up to the `Signature` field, and the
/// algorithm with its colon.
#[must_use]
pub fn signed_text(text: &[u8], algorithm: &str) -> Vec<u8> {
    [text, algorithm.as_bytes()].concat()
}

/// Verifies `signature` (an identifier string) of `key` over `text`, whose
/// `Signature` field is `field`, as it stands.
pub(super) fn verify(
    key: &Principal,
    signature: &[u8],
    text: &[u8],
    field: &[u8],
    algorithms: Algorithms,
) -> Result<(), SignatureError> {
    let (algorithm, bits) = split(signature).ok_or(SignatureError::Malformed)?;
    let written = &signature[..=algorithm.len()];
    let message = [text, written].concat();
    let (name, bytes) = decode(&algorithm, bits).ok_or(SignatureError::Malformed)?;
    match (name, key.key()) {
        ("sig-x-mullion-ed25519", Some(Key::Ed25519(key))) => {
            // The field itself is not signed. It must be spelled in one way
            // only, so that no bit of a credential can change unnoticed.
            if algorithm.ends_with("-hex") && field != spelled(bits).as_slice() {
                return Err(SignatureError::Malformed);
            }
            ed25519(key, &bytes, &message)
        }
        #[cfg(feature = "rsa")]
        ("sig-rsa-sha1", Some(Key::Rsa(exponent, modulus))) if algorithms.rsa_sha1 => {
            rfc2792::rsa::<sha1::Sha1>(exponent, modulus, &bytes, &message)
        }
        #[cfg(feature = "rsa")]
        ("sig-rsa-sha256", Some(Key::Rsa(exponent, modulus))) if algorithms.rsa_sha2 => {
            rfc2792::rsa::<sha2::Sha256>(exponent, modulus, &bytes, &message)
        }
        #[cfg(feature = "rsa")]
        ("sig-rsa-sha512", Some(Key::Rsa(exponent, modulus))) if algorithms.rsa_sha2 => {
            rfc2792::rsa::<sha2::Sha512>(exponent, modulus, &bytes, &message)
        }
        (_, None) => Err(SignatureError::NotAKey(key.clone())),
        ("sig-rsa-sha1" | "sig-rsa-sha256" | "sig-rsa-sha512", Some(Key::Rsa(..))) => {
            Err(SignatureError::Algorithm {
                algorithm,
                hint: if algorithms.rsa_sha1 || algorithms.rsa_sha2 {
                    "the policy's `algorithms` do not name it, or this program is built without the feature `rsa`"
                } else {
                    "the policy can allow it with `algorithms`"
                },
            })
        }
        (_, Some(_)) => Err(SignatureError::Algorithm {
            algorithm,
            hint: "it does not fit the authorizer's key",
        }),
    }
}

/// The one spelling of a field that holds an Ed25519 signature in hexadecimal.
fn spelled(bits: &[u8]) -> Vec<u8> {
    let mut field = b"Signature: \"".to_vec();
    field.extend(ED25519_ALGORITHM.as_bytes());
    field.extend(bits.to_ascii_lowercase());
    field.push(b'"');
    field
}

fn ed25519(key: &[u8; 32], signature: &[u8], message: &[u8]) -> Result<(), SignatureError> {
    let key = VerifyingKey::from_bytes(key).map_err(|_| SignatureError::Wrong)?;
    let signature = Signature::from_slice(signature).map_err(|_| SignatureError::Malformed)?;
    key.verify_strict(message, &signature)
        .map_err(|_| SignatureError::Wrong)
}

/// Signatures of other implementations.
#[cfg(feature = "rsa")]
mod rfc2792 {
    use super::SignatureError;
    use crate::keynote::principal::element;
    use rsa::{BigUint, Pkcs1v15Sign, RsaPublicKey};

    /// PKCS #1 version 1.5, around a `DigestInfo` as in the standard, or around a
    /// bare OCTET STRING with the digest, as the reference implementation has it.
    pub(super) fn rsa<D: sha1::Digest + rsa::pkcs8::AssociatedOid>(
        exponent: &[u8],
        modulus: &[u8],
        signature: &[u8],
        message: &[u8],
    ) -> Result<(), SignatureError> {
        let key = RsaPublicKey::new(
            BigUint::from_bytes_be(modulus),
            BigUint::from_bytes_be(exponent),
        )
        .map_err(|_| SignatureError::Wrong)?;
        // RFC 2792 has the signature in an OCTET STRING, the reference
        // implementation has it bare.
        let signature = match element(0x04, signature) {
            Some((inner, [])) if inner.len() == modulus.len() => inner,
            _ => signature,
        };
        let digest = D::digest(message);
        let bare = Pkcs1v15Sign {
            hash_len: Some(digest.len()),
            prefix: vec![0x04, digest.len() as u8].into(),
        };
        key.verify(Pkcs1v15Sign::new::<D>(), &digest, signature)
            .or_else(|_| key.verify(bare, &digest, signature))
            .map_err(|_| SignatureError::Wrong)
    }
}
