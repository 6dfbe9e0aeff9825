//! Signatures made by another program, and keys in files.

use mullion_trust::SecretKey;
use mullion_trust::dsse::pae;
use mullion_trust::keynote::{Algorithms, SignatureError, Store, parse};
use mullion_trust::keyring::{Keyring, KeyringError};
use std::os::unix::fs::PermissionsExt as _;

const SHA1: Algorithms = Algorithms {
    rsa_sha1: true,
    rsa_sha2: false,
};
const SHA2: Algorithms = Algorithms {
    rsa_sha1: false,
    rsa_sha2: true,
};

fn check(text: &str, algorithms: Algorithms) -> Result<(), SignatureError> {
    let mut store = Store::new(algorithms);
    let id = store.add_credential(parse(text.as_bytes()).expect("KeyNote"), "openssl");
    store.verify(id)
}

/// Made with `openssl dgst -sign`, and, with the bare OCTET STRING of the
/// reference implementation, with `openssl pkeyutl -sign`.
#[test]
fn rsa_signatures_count_only_where_they_are_asked_for() {
    let sha1 = include_str!("data/rsa-sha1.kn");
    let bare = include_str!("data/rsa-bare.kn");
    let sha256 = include_str!("data/rsa-sha256.kn");
    for (text, good, bad) in [(sha1, SHA1, SHA2), (bare, SHA1, SHA2), (sha256, SHA2, SHA1)] {
        assert_eq!(check(text, good), Ok(()));
        for refused in [bad, Algorithms::default()] {
            let error = check(text, refused).expect_err("not asked for");
            assert!(matches!(error, SignatureError::Algorithm { .. }), "{error}");
        }
        let changed = text.replace("\"r\"", "\"s\"");
        assert_eq!(check(&changed, good), Err(SignatureError::Wrong));
    }
}

#[test]
fn unsigned_and_opaque_authorizers_do_not_count() {
    let error = check("Authorizer: \"POLICY\"\nLicensees: \"r\"\n", SHA1);
    assert_eq!(error, Err(SignatureError::Missing));
    let text = "Authorizer: \"POLICY\"\nSignature: \"sig-x-mullion-ed25519-hex:00\"\n";
    assert!(matches!(check(text, SHA1), Err(SignatureError::NotAKey(_))));
}

/// The worked example of the DSSE specification.
#[test]
fn pre_authentication_encoding_is_that_of_the_specification() {
    assert_eq!(
        pae("http://example.com/HelloWorld", b"hello world"),
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    );
}

/// RFC 8032, section 7.1, test 2.
#[test]
fn ed25519_is_that_of_the_rfc() {
    let hex = |text: &str| {
        data_encoding::HEXLOWER
            .decode(text.as_bytes())
            .expect("digits")
    };
    let seed = hex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
    let key = SecretKey::from_seed(&seed.try_into().expect("32 bytes"));
    let public = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
    assert_eq!(
        key.public().to_string(),
        format!("x-mullion-ed25519-hex:{public}")
    );
    let signature = hex(
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
         085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    );
    assert_eq!(key.sign(&[0x72]).to_vec(), signature);
    assert!(key.public().verifies(&[0x72], &signature));
    assert!(!key.public().verifies(&[0x73], &signature));
}

#[test]
fn keys_are_kept_for_their_owner_only_and_never_overwritten() {
    let directory = tempfile::tempdir().expect("a directory");
    let keyring = Keyring::new(directory.path().join("keys"));
    let key = SecretKey::generate().expect("randomness");
    keyring.add("alice", &key, None).expect("kept");
    let path = keyring.directory().join("alice.key");
    let mode =
        |path: &std::path::Path| path.metadata().expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(
        keyring.secret("alice", None).expect("read").public(),
        key.public()
    );
    assert!(matches!(
        keyring.add("alice", &key, None),
        Err(KeyringError::Exists(_))
    ));
    assert!(matches!(
        keyring.add("../x", &key, None),
        Err(KeyringError::Name(_))
    ));
    assert!(matches!(
        keyring.secret("bob", None),
        Err(KeyringError::Missing { .. })
    ));

    let allow = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("changed");
    };
    allow(&path, 0o640);
    assert!(matches!(
        keyring.secret("alice", None),
        Err(KeyringError::Exposed { .. })
    ));
    allow(&path, 0o600);
    allow(keyring.directory(), 0o777);
    assert!(matches!(
        keyring.secret("alice", None),
        Err(KeyringError::Exposed { .. })
    ));
}

#[test]
fn a_passphrase_opens_and_nothing_else_does() {
    let directory = tempfile::tempdir().expect("a directory");
    let keyring = Keyring::new(directory.path().join("keys"));
    let key = SecretKey::from_seed(&[9; 32]);
    keyring
        .add("carol", &key, Some(b"correct horse"))
        .expect("kept");
    let path = keyring.directory().join("carol.key");
    let text = std::fs::read_to_string(&path).expect("a file");
    assert!(
        !text.contains(&"09".repeat(32)),
        "the secret stands in the file"
    );
    assert!(keyring.needs_passphrase("carol").expect("read"));
    let opened = keyring
        .secret("carol", Some(b"correct horse"))
        .expect("opened");
    assert_eq!(opened.public(), key.public());
    let wrong = keyring.secret("carol", Some(b"battery staple"));
    assert!(matches!(wrong, Err(KeyringError::Passphrase)));
    assert!(matches!(
        keyring.secret("carol", None),
        Err(KeyringError::PassphraseNeeded)
    ));
    let shown = format!("{opened:?}");
    assert!(!shown.contains(&"09".repeat(32)), "{shown}");
}
