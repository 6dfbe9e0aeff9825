//! Who has no memory for a line.

use super::*;

/// How much more memory a place may map; without a number as much as it likes.
fn give_room(place: u8, more: Option<u64>) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let number = process_of(place);
    let current = more.map(|more| {
        let status = std::fs::read_to_string(format!("/proc/{number}/status")).expect("proc");
        let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
        let size = size.and_then(|size| size.trim().strip_suffix(" kB"));
        (size
            .expect("a size")
            .trim()
            .parse::<u64>()
            .expect("a number")
            << 10)
            + more
    });
    let limit = Rlimit {
        current,
        maximum: None,
    };
    let process = Pid::from_raw(number.cast_signed());
    prlimit(process, Resource::As, limit).expect("it runs");
}

/// Who waits is in one place, and the end that is to answer goes to another one; one of the two cannot map the line.
/// Whoever it is, both are told. Gives what who waits has heard.
fn answered_elsewhere(waiting: u8, replying: u8, full: Option<u8>) -> Option<u64> {
    // Channels that are there already: a service accepts a client when it comes to that.
    let [waits, replies] = [waiting, replying].map(|place| {
        let relay = place_end(place).expect("bound");
        let asked = answer(relay.many(ExVec::new()).expect("alive"));
        asked.expect("alive").1
    });
    let (client, server) = ask::channel().expect("memory");
    let waits = waits.r#use(client).expect("alive");
    let Ok(ask::AskMessage::Question(10, server)) = server.recv() else {
        panic!("no question")
    };
    full.inspect(|place| give_room(*place, Some(ROOM)));
    let replies = replies.reply(server).expect("alive");
    let waited = answer(waits).map(|(sum, _)| sum);
    // An answer may have been sent before.
    assert!(matches!(
        replies.recv(),
        Ok(relay::BusyMessage::Sum(15, _) | relay::BusyMessage::Failed(_))
    ));
    full.inspect(|place| give_room(*place, None));
    waited
}

/// More memory than a domain needs for anything but a line.
const ROOM: u64 = 64 << 20;

pub(crate) fn who_has_no_room_for_a_line_says_so() {
    let all = places(None);
    let ways = [(0, 1), (1, 2), (1, 1)];
    for (waiting, replying) in ways {
        assert_eq!(answered_elsewhere(waiting, replying, None), Some(15));
    }
    // The bells of each two stay as long as they do.
    let before = quiet();
    for (waiting, replying) in ways {
        for full in [waiting, replying].into_iter().filter(|full| *full != 0) {
            let heard = answered_elsewhere(waiting, replying, Some(full));
            assert_eq!(heard, None, "{waiting}, {replying}, {full}");
        }
    }
    // The end of a channel to a name: of who opens it, and of who has bound it.
    let relay = place_end(1).expect("bound");
    let (_, relay) = answer(relay.many(ExVec::new()).expect("alive")).expect("alive");
    give_room(1, Some(ROOM));
    assert!(place_end_now(1).is_none_or(|relay| answer_to_make(relay).is_none()));
    let route = Route {
        to: ExVec::copy_of(&[0]),
        end: make(5).expect("a channel"),
    };
    assert!(answer(relay.pass(route).expect("alive")).is_none());
    give_room(1, None);
    let sum = question(end_of(1, 5)).map(|(sum, _)| sum);
    assert_eq!(sum, Some(15), "it goes on");
    settled(before);
    assert_eq!(faults(), Vec::<String>::new());
    end(all);
}

fn answer_to_make(relay: relay::Client<relay::Idle>) -> Option<ask::Client<ask::Ask>> {
    made(relay.make(1).ok()?).map(|(end, _)| end)
}
