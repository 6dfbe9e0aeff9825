//! Principals: keys and opaque names, in a normal form (RFC 2704, sections 4.5
//! and 5.2; RFC 2792, sections 2 and 3).

use data_encoding::{BASE64, HEXLOWER, HEXLOWER_PERMISSIVE};
use std::fmt;
use std::sync::Arc;

/// Which signature algorithms count.
///
/// Ed25519 always does. RSA is for credentials of other implementations, and off unless asked for.
/// SHA-1 can be collided, so a signature with it proves little about a text that an enemy had a
/// hand in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Algorithms {
    /// `sig-rsa-sha1-*`, RFC 2792.
    pub rsa_sha1: bool,
    /// `sig-rsa-sha256-*` and `sig-rsa-sha512-*`, the same with a later digest.
    pub rsa_sha2: bool,
}

/// A principal in normal form: two are the same if and only if they are equal.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Principal {
    canonical: Arc<[u8]>,
    key: Option<Key>,
}

/// What is known of a principal that is a key.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Key {
    Ed25519([u8; 32]),
    /// Public exponent and modulus, big endian, without leading zeros.
    Rsa(Arc<[u8]>, Arc<[u8]>),
}

impl Principal {
    /// Normalises an identifier.
    ///
    /// Encodings of one key become the same principal. An identifier whose algorithm is not known,
    /// or whose bits are not of it, is opaque. Its bits are compared as they stand, the name of the
    /// algorithm without regard to case (RFC 2704, section 9.2 and the examples of section 6).
    #[must_use]
    pub fn new(identifier: &[u8]) -> Principal {
        let opaque = |canonical: Vec<u8>| Principal {
            canonical: canonical.into(),
            key: None,
        };
        let Some((algorithm, bits)) = split(identifier) else {
            return opaque(identifier.to_vec());
        };
        known(&algorithm, bits).unwrap_or_else(|| {
            let mut canonical = algorithm.into_bytes();
            canonical.push(b':');
            canonical.extend(bits);
            opaque(canonical)
        })
    }

    /// The principal that is an Ed25519 key.
    #[must_use]
    pub fn ed25519(key: &[u8; 32]) -> Principal {
        let text = format!("x-mullion-ed25519-hex:{}", HEXLOWER.encode(key));
        Principal {
            canonical: text.into_bytes().into(),
            key: Some(Key::Ed25519(*key)),
        }
    }

    /// The principal at the root of every chain.
    #[must_use]
    pub fn policy() -> Principal {
        Principal::new(b"POLICY")
    }

    /// The Ed25519 key, if it is one.
    #[must_use]
    pub fn as_ed25519(&self) -> Option<&[u8; 32]> {
        match &self.key {
            Some(Key::Ed25519(key)) => Some(key),
            _ => None,
        }
    }

    /// Whether signatures of this principal could be verified.
    #[must_use]
    pub fn is_key(&self) -> bool {
        self.key.is_some()
    }

    pub(super) fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// The normal form.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.canonical
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.canonical))
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Principal({self})")
    }
}

/// `ALGORITHM` in lower case, and what stands behind its colon.
pub(super) fn split(identifier: &[u8]) -> Option<(String, &[u8])> {
    let colon = identifier.iter().position(|byte| *byte == b':')?;
    let (name, bits) = (&identifier[..colon], &identifier[colon + 1..]);
    let legal = name.first().is_some_and(u8::is_ascii_alphabetic)
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    legal.then(|| (String::from_utf8_lossy(name).to_ascii_lowercase(), bits))
}

/// Decodes the bits of an identifier whose algorithm ends in an encoding.
pub(super) fn decode<'a>(algorithm: &'a str, bits: &[u8]) -> Option<(&'a str, Vec<u8>)> {
    if let Some(name) = algorithm.strip_suffix("-hex") {
        return Some((name, HEXLOWER_PERMISSIVE.decode(bits).ok()?));
    }
    let name = algorithm.strip_suffix("-base64")?;
    Some((name, BASE64.decode(bits).ok()?))
}

fn known(algorithm: &str, bits: &[u8]) -> Option<Principal> {
    let (name, bytes) = decode(algorithm, bits)?;
    match name {
        "x-mullion-ed25519" => Some(Principal::ed25519(&bytes.try_into().ok()?)),
        "rsa" => {
            let [exponent, modulus] = integers::<2>(&bytes)?;
            Some(normal(
                "rsa-hex",
                &[exponent, modulus],
                Some(Key::Rsa(exponent.into(), modulus.into())),
            ))
        }
        "dsa" => Some(normal("dsa-hex", &integers::<4>(&bytes)?, None)),
        "binary" => Some(Principal {
            canonical: format!("binary-hex:{}", HEXLOWER.encode(&bytes))
                .into_bytes()
                .into(),
            key: None,
        }),
        _ => None,
    }
}

/// Writes integers as the minimal SEQUENCE of them.
fn normal(algorithm: &str, integers: &[&[u8]], key: Option<Key>) -> Principal {
    let mut body = Vec::new();
    for integer in integers {
        let padded = integer.first().is_none_or(|byte| *byte >= 0x80);
        body.push(0x02);
        push_length(&mut body, integer.len() + usize::from(padded));
        if padded {
            body.push(0);
        }
        body.extend(*integer);
    }
    let mut der = vec![0x30];
    push_length(&mut der, body.len());
    der.extend(body);
    Principal {
        canonical: format!("{algorithm}:{}", HEXLOWER.encode(&der))
            .into_bytes()
            .into(),
        key,
    }
}

fn push_length(out: &mut Vec<u8>, length: usize) {
    if length < 0x80 {
        out.push(length as u8);
        return;
    }
    let bytes = length.to_be_bytes();
    let used = &bytes[length.leading_zeros() as usize / 8..];
    out.push(0x80 | used.len() as u8);
    out.extend(used);
}

/// The contents of a SEQUENCE of exactly `N` integers that are not negative.
fn integers<const N: usize>(der: &[u8]) -> Option<[&[u8]; N]> {
    let (mut body, rest) = element(0x30, der)?;
    if !rest.is_empty() {
        return None;
    }
    let mut found = [&der[..0]; N];
    for slot in &mut found {
        let (integer, rest) = element(0x02, body)?;
        if integer.first().is_none_or(|byte| *byte >= 0x80) {
            return None;
        }
        let zeros = integer.iter().take_while(|byte| **byte == 0).count();
        *slot = &integer[zeros..];
        body = rest;
    }
    body.is_empty().then_some(found)
}

/// One DER element with the given tag: its contents, and what follows.
pub(super) fn element(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[found, first], mut rest) = der.split_first_chunk::<2>()?;
    if found != tag {
        return None;
    }
    let mut length = usize::from(first);
    if first >= 0x80 {
        let count = usize::from(first & 0x7f);
        if count == 0 || count > 3 {
            return None;
        }
        let (bytes, after) = rest.split_at_checked(count)?;
        length = bytes
            .iter()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        rest = after;
    }
    rest.split_at_checked(length)
}
