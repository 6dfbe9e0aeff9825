//! The box that a passphrase opens: Argon2id, then XChaCha20-Poly1305. Without the feature
//! `passphrases` there is none, and a key under a passphrase cannot be used.

use super::KeyringError;

/// What a box is made with.
pub(super) struct Box<'a> {
    /// Memory in KiB, passes and lanes of Argon2id.
    pub(super) kdf: (u32, u32, u32),
    pub(super) salt: &'a [u8],
    /// 24 bytes.
    pub(super) nonce: &'a [u8],
    /// What is authenticated with the contents.
    pub(super) head: &'a [u8],
}

#[cfg(feature = "passphrases")]
mod enabled {
    use super::{Box, KeyringError};
    use argon2::{Algorithm, Argon2, Params, Version};
    use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
    use chacha20poly1305::{XChaCha20Poly1305, XNonce};
    use zeroize::Zeroizing;

    impl Box<'_> {
        pub(in super::super) fn seal(
            &self,
            passphrase: &[u8],
            contents: &[u8],
        ) -> Result<Vec<u8>, KeyringError> {
            let cipher = self.cipher(passphrase).ok_or(KeyringError::Passphrase)?;
            let payload = Payload {
                msg: contents,
                aad: self.head,
            };
            let sealed = cipher.encrypt(XNonce::from_slice(self.nonce), payload);
            sealed.map_err(|_| KeyringError::Passphrase)
        }

        pub(in super::super) fn open(
            &self,
            passphrase: &[u8],
            sealed: &[u8],
        ) -> Result<Zeroizing<Vec<u8>>, KeyringError> {
            let cipher = self.cipher(passphrase).ok_or(KeyringError::Passphrase)?;
            let payload = Payload {
                msg: sealed,
                aad: self.head,
            };
            let opened = cipher.decrypt(XNonce::from_slice(self.nonce), payload);
            Ok(Zeroizing::new(
                opened.map_err(|_| KeyringError::Passphrase)?,
            ))
        }

        fn cipher(&self, passphrase: &[u8]) -> Option<XChaCha20Poly1305> {
            let (memory, passes, lanes) = self.kdf;
            let params = Params::new(memory, passes, lanes, Some(32)).ok()?;
            let mut key = Zeroizing::new([0; 32]);
            Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
                .hash_password_into(passphrase, self.salt, key.as_mut())
                .ok()?;
            Some(XChaCha20Poly1305::new(key.as_ref().into()))
        }
    }
}

#[cfg(not(feature = "passphrases"))]
impl Box<'_> {
    pub(super) fn seal(&self, _: &[u8], _: &[u8]) -> Result<Vec<u8>, KeyringError> {
        let _unused = (self.kdf, self.salt, self.nonce, self.head);
        Err(KeyringError::NoPassphrases)
    }

    pub(super) fn open(
        &self,
        _: &[u8],
        _: &[u8],
    ) -> Result<zeroize::Zeroizing<Vec<u8>>, KeyringError> {
        Err(KeyringError::NoPassphrases)
    }
}
