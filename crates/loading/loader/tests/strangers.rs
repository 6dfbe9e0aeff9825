//! Whoever makes a key has it refused, and again with another key: the log has room for those who may load all the same.
#![cfg(feature = "trust")]

use mullion_loader::{Asked, Authoriser, NotAdmitted};
use mullion_trust::SecretKey;
use mullion_trust::log::Log;

#[test]
fn refusals_of_strangers_leave_the_log_to_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("policy.toml");
    let root = SecretKey::from_seed(&[1; 32]);
    let text = format!(
        "version = 1\nlog = \"log\"\n[keys]\nroot = \"{0}\"\n[allow]\nload = [\"root\"]\ncompile = [\"root\"]\n",
        root.public()
    );
    std::fs::write(&path, text).expect("a policy");
    let authoriser = Authoriser::read(&path, |_| {}).expect("a policy");
    let refused = |key: &SecretKey| {
        let requesters = [key.proven().expect("randomness")];
        let asked = Asked {
            requesters: &requesters,
            ..Asked::default()
        };
        let answer = authoriser.admit(&b"no image"[..], &asked);
        assert!(matches!(answer, Err(NotAdmitted::NoRecord)));
    };
    for number in 0..1000u16 {
        let mut seed = [2; 32];
        seed[..2].copy_from_slice(&number.to_le_bytes());
        refused(&SecretKey::from_seed(&seed));
        if number % 5 == 0 {
            refused(&root);
        }
    }
    let (mut known, mut strangers, mut left_out) = (0, 0, 0);
    let log = Log::new(directory.path().join("log"));
    let own = root.public().to_string();
    log.verify(|entry| match entry.event["left_out"].as_u64() {
        Some(count) => left_out += count,
        None if entry.event["requesters"][0] == own => known += 1,
        None => strangers += 1,
    })
    .expect("a sound log");
    assert_eq!(known, 200, "each of a key that the policy names");
    assert!((100..110).contains(&strangers), "{strangers} lines");
    assert!(strangers + left_out >= 990, "{left_out} were counted");
}
