//! One changed bit anywhere in image, record or credential is refused, with the reason: by the
//! function that every load goes through.

use crate::World;
use mullion_loader::{Asked, Authoriser, NotAdmitted};
use mullion_trust::challenge::Proven;
use mullion_trust::keyring::Keyring;
use proptest::test_runner::{Config, TestRunner};

struct Case {
    image: Vec<u8>,
    record: Vec<u8>,
    credential: Vec<u8>,
}

fn admit(authoriser: &Authoriser, alice: Proven, case: &Case) -> Result<(), NotAdmitted> {
    // What is no text is no record and no credential, before anybody is asked.
    let (Ok(record), Ok(credential)) = (
        std::str::from_utf8(&case.record),
        String::from_utf8(case.credential.clone()),
    ) else {
        return Err(NotAdmitted::NoRecord);
    };
    let asked = Asked {
        requesters: &[alice],
        record: Some(record),
        credentials: &[credential],
        ..Asked::default()
    };
    authoriser.admit(&case.image[..], &asked).map(drop)
}

#[test]
fn no_bit_can_change() {
    let world = World::new();
    world.grant(&["--limit", "heap=1M"]);
    // Without its log, which is written to the disk each time.
    let policy = world.read("policy.toml").replace("log = \"log\"\n", "");
    world.write("policy.toml", &policy);
    let authoriser = Authoriser::read(&world.path("policy.toml"), |_| {}).expect("a policy");
    let alice = Keyring::new(world.path("keys"))
        .secret("alice", None)
        .expect("a key");
    let alice = alice.proven().expect("randomness");
    let read = |name: &str| std::fs::read(world.path(name)).expect("a file");
    let good = || Case {
        image: read("uses.mx"),
        record: read("uses.mx.record"),
        credential: read("alice.kn"),
    };
    admit(&authoriser, alice, &good()).expect("nothing is changed");
    let refused = |case: &Case, what: &str| match admit(&authoriser, alice, case) {
        Ok(()) => panic!("{what} changed, and admitted"),
        Err(reason) => assert!(!reason.to_string().is_empty(), "{what}: no reason"),
    };
    let mut case = good();
    for bit in 0..case.record.len() * 8 {
        case.record[bit / 8] ^= 1 << (bit % 8);
        refused(&case, &format!("bit {bit} of the record"));
        case.record[bit / 8] ^= 1 << (bit % 8);
    }
    for bit in 0..case.credential.len() * 8 {
        case.credential[bit / 8] ^= 1 << (bit % 8);
        refused(&case, &format!("bit {bit} of the credential"));
        case.credential[bit / 8] ^= 1 << (bit % 8);
    }
    // Of the image a sample: it is one digest.
    let bits = 0..case.image.len() * 8;
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(2000)
    });
    let result = runner.run(&bits, |bit| {
        let mut case = good();
        case.image[bit / 8] ^= 1 << (bit % 8);
        refused(&case, &format!("bit {bit} of the image"));
        Ok(())
    });
    result.expect("every bit counts");
}
