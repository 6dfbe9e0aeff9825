use super::*;
use proptest::prelude::*;

crate::contract! {
    /// For the test.
    pub mod ask { Ask: client { Question(u32) -> Answer } Answer: server { Reply(u32) -> end } }
}
use channel::Contract;

const DECLARED: Declared = Declared {
    name: "asker",
    limits: Limits {
        memory: 1 << 20,
        exchange: 2 << 20,
        threads: 3,
        children: 4,
        slice: Duration::from_millis(5),
    },
    contracts: &[ask::Contract::INFO],
};
const LENGTH: usize = DECLARED.length();
const BYTES: [u8; LENGTH] = DECLARED.encode();

#[test]
fn what_is_written_is_read() {
    let manifest = read(&BYTES).expect("a manifest");
    assert_eq!(manifest.build, BUILD);
    assert_eq!((manifest.name, manifest.limits), ("asker", DECLARED.limits));
    let digest = ask::Contract::INFO.digest;
    assert_eq!(
        manifest.contracts,
        [Spoken {
            name: "ask",
            digest
        }]
    );
    let mut padded = BYTES.to_vec();
    padded.extend([0; 7]);
    assert_eq!(read(&padded), Ok(manifest), "sections may be padded");
}

#[test]
fn the_build_is_named() {
    assert!(BUILD.compiler.starts_with("rustc 1."), "{}", BUILD.compiler);
    assert!(BUILD.target.contains("linux"), "{}", BUILD.target);
    assert_ne!(BUILD.sources, BUILD.layout);
}

#[test]
fn every_shorter_one_is_damaged() {
    for length in 0..LENGTH {
        let error = read(&BYTES[..length]).expect_err("cut");
        match length {
            0..12 => assert_eq!(error, Unreadable::NoManifest, "{length}"),
            _ => assert!(matches!(error, Unreadable::Damaged(_)), "{length}: {error}"),
        }
    }
}

#[test]
fn another_format_is_not_looked_into() {
    let mut bytes = BYTES;
    bytes[12] = 2;
    bytes[20..].fill(0xff);
    assert_eq!(read(&bytes), Err(Unreadable::Format(2)));
}

#[test]
fn lengths_and_texts_are_not_believed() {
    let mut bytes = BYTES;
    bytes[20..24].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(read(&bytes), Err(Unreadable::Damaged("a text is too long")));
    bytes = BYTES;
    bytes[24] = 0xff;
    assert_eq!(
        read(&bytes),
        Err(Unreadable::Damaged("a text is not UTF-8"))
    );
    bytes[24] = 0x1b;
    assert_eq!(
        read(&bytes),
        Err(Unreadable::Damaged("a text has control characters"))
    );
    let mut longer = BYTES.to_vec();
    longer.push(1);
    assert_eq!(
        read(&longer),
        Err(Unreadable::Damaged("something follows its end"))
    );
}

proptest! {
    #[test]
    fn a_changed_byte_is_an_error_or_another_manifest(at in 0..LENGTH, to: u8) {
        let mut bytes = BYTES;
        bytes[at] = to;
        let same = bytes == BYTES;
        match read(&bytes) {
            Ok(manifest) => prop_assert_eq!(manifest == read(&BYTES).expect("a manifest"), same),
            Err(_) => prop_assert!(!same),
        }
    }

    #[test]
    fn no_bytes_upset_the_reader(bytes: Vec<u8>) {
        let mut whole = MAGIC.to_vec();
        whole.extend(FORMAT.to_le_bytes());
        whole.extend(bytes);
        let _ = read(&whole);
    }
}
