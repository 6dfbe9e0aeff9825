//! Dead Simple Signing Envelope, version 1.0.2: a payload, its type and
//! signatures over both.

use crate::key::PublicKey;
use crate::keynote::{Cost, Exhausted, Work};
use data_encoding::BASE64;
pub use mullion_wire::reason::EnvelopeError;
use serde::Deserialize;

/// Signatures of an envelope at most.
const SIGNATURES: usize = 16;

/// A payload, and the keys that signed it.
pub type Opened = (Vec<u8>, Vec<PublicKey>);

/// A signed payload, as it stands in a file. Nothing about it has been
/// verified.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Envelope {
    payload_type: String,
    payload: String,
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EnvelopeSignature {
    keyid: String,
    sig: String,
}

/// Pre-authentication encoding: the bytes that are signed.
#[must_use]
pub fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut out = format!(
        "DSSEv1 {} {payload_type} {} ",
        payload_type.len(),
        payload.len()
    );
    let mut bytes = std::mem::take(&mut out).into_bytes();
    bytes.extend(payload);
    bytes
}

/// Opens an envelope: the payload, and the keys that signed it.
///
/// Every signature must be good. What the format leaves open is refused:
/// unknown fields, a second spelling of a key or of base64.
///
/// # Errors
/// The budget does not suffice; within, why it proves nothing.
pub fn open(
    text: &str,
    payload_type: &'static str,
    work: &mut Work,
) -> Result<Result<Opened, EnvelopeError>, Exhausted> {
    work.pay(Cost::Parsed, text.len())?;
    let envelope: Envelope = match serde_json::from_str(text) {
        Ok(envelope) => envelope,
        Err(error) => return Ok(Err(EnvelopeError::Malformed(error.to_string()))),
    };
    let signatures = envelope.signatures.len().min(SIGNATURES);
    work.pay(Cost::Signature, signatures)?;
    work.pay(Cost::Copied, 2 * signatures * envelope.payload.len())?;
    Ok(verified(envelope, payload_type))
}

fn verified(envelope: Envelope, payload_type: &'static str) -> Result<Opened, EnvelopeError> {
    let malformed = |error: String| EnvelopeError::Malformed(error);
    if envelope.payload_type != payload_type {
        return Err(EnvelopeError::Type(envelope.payload_type, payload_type));
    }
    if envelope.signatures.is_empty() || envelope.signatures.len() > SIGNATURES {
        return Err(EnvelopeError::Count);
    }
    let decode = |text: &str| {
        let bytes = BASE64.decode(text.as_bytes());
        bytes.map_err(|error| malformed(format!("base64: {error}")))
    };
    let payload = decode(&envelope.payload)?;
    let message = pae(payload_type, &payload);
    let mut signers = Vec::new();
    for EnvelopeSignature { keyid, sig } in envelope.signatures {
        let key: PublicKey = keyid
            .parse()
            .map_err(|_| malformed(format!("`{keyid}` is no key")))?;
        if key.to_string() != keyid || !key.verifies(&message, &decode(&sig)?) {
            return Err(EnvelopeError::Wrong(keyid));
        }
        signers.push(key);
    }
    Ok((payload, signers))
}
