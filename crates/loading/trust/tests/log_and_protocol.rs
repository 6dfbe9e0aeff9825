//! The log finds what was done to it; the protocol ends what was not asked in
//! order, freshly, by the key.

use mullion_trust::SecretKey;
use mullion_trust::challenge::{
    Challenge, ChallengeMessage, Event, FRAME, ProtocolError, Proven, Session, sign_request,
};
use mullion_trust::log::{Log, LogError, checkpoint};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

fn log(lines: usize) -> (tempfile::TempDir, PathBuf, Log) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    let log = Log::new(&path);
    for number in 0..lines {
        log.append(json!({ "kind": "test", "number": number }))
            .expect("appended");
    }
    (directory, path, log)
}

#[test]
fn a_whole_log_is_good() {
    let (_directory, _, log) = log(5);
    let mut seen = 0;
    let report = log.verify(|_| seen += 1).expect("good");
    assert_eq!((report.head.lines, seen, report.torn), (5, 5, 0));
}

#[test]
fn every_changed_bit_is_found() {
    let (_directory, path, log) = log(3);
    let text = std::fs::read(&path).expect("a log");
    for bit in 0..text.len() * 8 {
        let mut changed = text.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, changed).expect("written");
        assert!(log.verify(|_| {}).is_err(), "bit {bit}");
    }
}

#[test]
fn missing_and_moved_lines_are_found() {
    let (_directory, path, log) = log(4);
    let text = std::fs::read_to_string(&path).expect("a log");
    let lines: Vec<_> = text.lines().collect();
    let write = |order: &[usize]| {
        let text: String = order
            .iter()
            .map(|line| format!("{}\n", lines[*line]))
            .collect();
        std::fs::write(&path, text).expect("written");
        log.verify(|_| {})
    };
    assert!(matches!(
        write(&[0, 2, 3]),
        Err(LogError::Broken { line: 2 })
    ));
    assert!(matches!(
        write(&[0, 2, 1, 3]),
        Err(LogError::Broken { line: 2 })
    ));
    assert!(matches!(
        write(&[1, 2, 3]),
        Err(LogError::Broken { line: 1 })
    ));
    assert!(matches!(
        write(&[0, 1]),
        Err(LogError::Truncated {
            found: 2,
            expected: 4,
            ..
        })
    ));
    assert!(write(&[0, 1, 2, 3]).is_ok());
}

#[test]
fn a_cut_of_log_and_head_is_found_with_a_checkpoint() {
    let (_directory, path, log) = log(4);
    let key = SecretKey::from_seed(&[7; 32]);
    let kept = checkpoint(&log.verify(|_| {}).expect("good").head, &key);
    log.append(json!("later")).expect("appended");
    log.verify_since(&kept, &key.public(), |_| {})
        .expect("it goes on");

    std::fs::remove_file(&path).expect("removed");
    std::fs::remove_file(path.with_extension("head")).expect("removed");
    log.append(json!("forged")).expect("appended");
    log.verify(|_| {}).expect("alone it looks good");
    let error = log.verify_since(&kept, &key.public(), |_| {});
    assert!(matches!(
        error,
        Err(LogError::Truncated {
            found: 1,
            expected: 4,
            ..
        })
    ));
}

#[test]
fn a_half_line_is_removed_and_noted() {
    let (_directory, path, log) = log(2);
    let mut text = std::fs::read(&path).expect("a log");
    text.extend(b"{\"seq\":2,\"pr");
    std::fs::write(&path, text).expect("written");
    assert_eq!(log.verify(|_| {}).expect("good so far").torn, 12);
    log.append(json!("next")).expect("appended");
    let mut events = Vec::new();
    log.verify(|entry| events.push(entry.event.clone()))
        .expect("good");
    assert_eq!(events[2]["removed_bytes"], 12);
    assert_eq!(events[3], "next");
}

#[test]
fn what_no_writer_began_is_no_interrupted_line() {
    for tail in [
        &b"garbage"[..],
        b"\0\0\0\0",
        b"{\"seq\":3,",
        b"{\"seq\":2,\"prev\":\"00",
        &[b'{'; 1 << 20],
    ] {
        let (_directory, path, log) = log(2);
        let mut text = std::fs::read(&path).expect("a log");
        text.extend(tail);
        std::fs::write(&path, text).expect("written");
        let verdict = log.verify(|_| {});
        assert!(
            matches!(verdict, Err(LogError::Tail { line: 3, bytes }) if bytes == tail.len()),
            "{verdict:?}"
        );
        // A writer goes on all the same: what it removes is noted.
        log.append(json!("next")).expect("appended");
        assert_eq!(log.verify(|_| {}).expect("good").head.lines, 4);
    }
}

/// A log as a version without a bound left it: its last line is longer than one may be.
fn with_a_long_line(log: &Log, path: &std::path::Path) {
    let head = log.verify(|_| {}).expect("good").head;
    let event = json!({ "kind": "refused", "obstacles": vec!["x".repeat(100); 20_000] });
    let line = format!(
        "{{\"seq\":{},\"prev\":\"{}\",\"time\":7,\"event\":{event}}}",
        head.lines, head.last
    );
    assert!(line.len() > 1 << 20);
    let mut text = std::fs::read(path).expect("a log");
    text.extend(line.as_bytes());
    text.push(b'\n');
    std::fs::write(path, text).expect("written");
    let digest = mullion_trust::Sha256Digest::of(line.as_bytes()).to_string();
    let head = json!({ "lines": head.lines + 1, "last": digest });
    std::fs::write(path.with_extension("head"), head.to_string()).expect("written");
}

#[test]
fn no_event_is_too_long_for_the_log() {
    let (_directory, path, log) = log(1);
    let event = json!({ "kind": "refused", "obstacles": vec!["\u{1}".repeat(500); 20_000] });
    log.append(event).expect("appended");
    log.append(json!("next")).expect("appended after it");
    let mut longest = 0;
    for line in std::fs::read(&path)
        .expect("a log")
        .split_inclusive(|byte| *byte == b'\n')
    {
        longest = longest.max(line.len());
    }
    assert!(longest <= mullion_trust::log::LINE, "{longest}");
    assert_eq!(log.verify(|_| {}).expect("good").head.lines, 3);
}

#[test]
fn a_long_line_from_before_the_bound_is_kept_and_noted() {
    let (_directory, path, log) = log(2);
    with_a_long_line(&log, &path);
    assert_eq!(log.verify(|_| {}).expect("it can be read").head.lines, 3);
    log.append(json!("next")).expect("appended");
    log.append(json!("more")).expect("appended");
    let mut events = Vec::new();
    log.verify(|entry| events.push(entry.event.clone()))
        .expect("good");
    assert_eq!(events.len(), 6);
    assert_eq!(events[3]["kind"], "recovered");
    assert_eq!(events[3]["long_line"]["line"], 3);
    assert_eq!((&events[4], &events[5]), (&json!("next"), &json!("more")));
}

#[test]
fn a_torn_line_of_any_length_is_removed_and_noted() {
    // Longer than what is read at a time, and longer than the lines of versions without a bound.
    for length in [1, 100, 70_000, (1 << 20) - 1, 1 << 20, 3 << 20] {
        let (_directory, path, log) = log(2);
        let head = log.verify(|_| {}).expect("good").head;
        let due = format!("{{\"seq\":2,\"prev\":\"{}\",\"time\":", head.last);
        let mut torn = due.into_bytes();
        torn.resize(length, b'7');
        let mut text = std::fs::read(&path).expect("a log");
        text.extend(&torn);
        std::fs::write(&path, text).expect("written");
        assert_eq!(log.verify(|_| {}).expect("good so far").torn, length);
        log.append(json!("next")).expect("appended");
        let mut events = Vec::new();
        log.verify(|entry| events.push(entry.event.clone()))
            .expect("good");
        assert_eq!(events[2]["removed_bytes"], length, "{}", events[2]);
        let digest = mullion_trust::Sha256Digest::of(&torn).to_string();
        assert_eq!(events[2]["removed_sha256"], digest);
        assert_eq!(events[3..], ["next"]);
    }
}

#[test]
fn a_crash_while_it_mends_loses_neither_the_part_nor_its_note() {
    // The note lies over a part that is longer than it, and the rest was not yet cut off.
    let (_directory, path, log) = log(2);
    let good = std::fs::read(&path).expect("a log");
    let torn = [&good[..], &[b'x'; 5000]].concat();
    std::fs::write(&path, &torn).expect("written");
    log.append(json!("next")).expect("appended");
    let mended = std::fs::read(&path).expect("a log");
    let note = mended[good.len()..]
        .iter()
        .position(|byte| *byte == b'\n')
        .expect("a line")
        + 1;
    let noted = &mended[..good.len() + note];
    let interrupted = [noted, &torn[noted.len()..]].concat();
    std::fs::write(&path, interrupted).expect("written");
    let before = json!({ "lines": 2, "last": last_digest(&good) });
    std::fs::write(path.with_extension("head"), before.to_string()).expect("written");
    log.append(json!("again")).expect("appended");
    let mut events = Vec::new();
    log.verify(|entry| events.push(entry.event.clone()))
        .expect("good");
    assert_eq!(events[2]["removed_bytes"], 5000);
    assert_eq!(events[3]["removed_bytes"], 5000 - note);
    assert_eq!(events[4], "again");
}

/// The digest of a log's last line.
fn last_digest(text: &[u8]) -> String {
    let lines = text.strip_suffix(b"\n").expect("whole lines");
    let start = lines
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |index| index + 1);
    mullion_trust::Sha256Digest::of(&lines[start..]).to_string()
}

#[test]
fn writers_do_not_disturb_each_other() {
    let (_directory, path, log) = log(0);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let path = path.clone();
            scope.spawn(move || {
                for number in 0..25 {
                    let event = json!({ "writer": writer, "number": number });
                    Log::new(&path).append(event).expect("appended");
                }
            });
        }
    });
    assert_eq!(log.verify(|_| {}).expect("good").head.lines, 100);
}

const NOW: Duration = Duration::from_secs(1000);

fn challenge(number: u8) -> Challenge {
    Challenge {
        nonce: [number; 32],
        lifetime_ms: 5000,
    }
}

fn session(number: u8, key: &SecretKey) -> Session {
    let mut session = Session::new(challenge(number), NOW);
    let hello = ChallengeMessage::Hello {
        version: 1,
        key: *key.public().as_bytes(),
    };
    let event = session.receive(hello, NOW).expect("hello");
    assert_eq!(
        event,
        Event::Send(ChallengeMessage::Challenge(challenge(number)))
    );
    session
}

fn ask(number: u8, counter: u64, key: &SecretKey) -> ChallengeMessage {
    ChallengeMessage::Request(sign_request(
        &challenge(number),
        counter,
        1,
        b"load".to_vec(),
        key,
    ))
}

#[test]
fn requests_in_order_are_heard() {
    let key = SecretKey::from_seed(&[1; 32]);
    let mut session = session(1, &key);
    for counter in 1..4 {
        let event = session.receive(ask(1, counter, &key), NOW).expect("heard");
        assert!(matches!(event, Event::Asked { request, .. } if request.counter == counter));
    }
}

#[test]
fn replay_reorder_and_omission_end_it() {
    let key = SecretKey::from_seed(&[1; 32]);
    for second in [1, 3, 0] {
        let mut session = session(1, &key);
        session.receive(ask(1, 1, &key), NOW).expect("heard");
        let error = session
            .receive(ask(1, second, &key), NOW)
            .expect_err("not the next");
        assert_eq!(
            error,
            ProtocolError::Counter {
                got: second,
                due: 2
            }
        );
        assert_eq!(
            session.receive(ask(1, 2, &key), NOW),
            Err(ProtocolError::Order)
        );
    }
    let mut first = Session::new(challenge(1), NOW);
    assert_eq!(
        first.receive(ask(1, 1, &key), NOW),
        Err(ProtocolError::Order)
    );
}

#[test]
fn another_connection_key_or_body_ends_it() {
    let (key, other) = (
        SecretKey::from_seed(&[1; 32]),
        SecretKey::from_seed(&[2; 32]),
    );
    assert_eq!(
        session(1, &key).receive(ask(2, 1, &key), NOW),
        Err(ProtocolError::Signature)
    );
    assert_eq!(
        session(1, &key).receive(ask(1, 1, &other), NOW),
        Err(ProtocolError::Signature)
    );
    let ChallengeMessage::Request(mut request) = ask(1, 1, &key) else {
        unreachable!("a request")
    };
    request.body.push(0);
    assert_eq!(
        session(1, &key).receive(ChallengeMessage::Request(request), NOW),
        Err(ProtocolError::Signature)
    );
}

#[test]
fn a_challenge_expires() {
    let key = SecretKey::from_seed(&[1; 32]);
    let late = NOW + Duration::from_millis(5000);
    assert_eq!(
        session(1, &key).receive(ask(1, 1, &key), late),
        Err(ProtocolError::Expired)
    );
}

#[test]
fn frames_are_whole_or_awaited_and_never_too_long() {
    let key = SecretKey::from_seed(&[1; 32]);
    let frames = [
        ChallengeMessage::Hello {
            version: 1,
            key: *key.public().as_bytes(),
        },
        ChallengeMessage::Challenge(challenge(9)),
        ask(1, 1, &key),
        ChallengeMessage::Answer {
            counter: 1,
            status: 0,
            body: b"done".to_vec(),
        },
    ];
    for frame in frames {
        let bytes = frame.encode();
        for cut in 0..bytes.len() {
            assert_eq!(
                ChallengeMessage::decode(&bytes[..cut]),
                Ok(None),
                "{cut} bytes"
            );
        }
        assert_eq!(
            ChallengeMessage::decode(&bytes),
            Ok(Some((frame, bytes.len())))
        );
    }
    assert_eq!(
        ChallengeMessage::decode(&[3, 0xff, 0xff, 0xff, 0xff]),
        Err(ProtocolError::TooLong {
            bytes: u32::MAX as usize,
            most: FRAME
        })
    );
    assert_eq!(
        ChallengeMessage::decode(&[3, 0, 0, 0, 72]),
        Err(ProtocolError::Length)
    );
    assert_eq!(
        ChallengeMessage::decode(&[9, 0, 0, 0, 0]),
        Err(ProtocolError::Kind(9))
    );
    assert_eq!(session(1, &key).end(3), Err(ProtocolError::Truncated));
}

#[test]
fn a_key_at_hand_is_proven_by_a_fresh_signature_of_its_own() {
    let [own, other] = [1, 2].map(|seed| SecretKey::from_seed(&[seed; 32]));
    assert_eq!(own.proven().expect("randomness").key(), own.public());
    let by = |sign: &mut dyn FnMut(&[u8]) -> [u8; 64]| {
        Proven::by_signing(own.public(), sign).expect("randomness")
    };
    assert!(by(&mut |message| other.sign(message)).is_none());
    let mut seen = [0; 64];
    let proven = by(&mut |message| {
        seen = own.sign(message);
        seen
    });
    assert!(proven.is_some());
    assert!(by(&mut |_| seen).is_none(), "it was of another text");
}
