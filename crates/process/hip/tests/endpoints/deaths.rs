//! Who stands still, and who dies.

use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// OS processes of domains that run.
fn children() -> Vec<Pid> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("proc");
    let read = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).ok();
    let all: String = tasks.flatten().filter_map(read).collect();
    all.split_whitespace()
        .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        .collect()
}

pub(crate) fn who_has_handed_it_on_may_die() {
    for peer in [0, 1, 3] {
        let mut all = places(None);
        // By way of place 2, which dies then: its end is between the peer and place 1.
        let relay = place_end(2).expect("bound");
        let (client, relay) = made(relay.r#return(end_of(peer, 4)).expect("alive")).expect("back");
        let keeper = place_end(1).expect("bound");
        let (client, keeper) = made(keeper.r#return(client).expect("alive")).expect("back");
        // Once it has been used, nobody is between.
        let (sum, client) = question(client).expect("an answer");
        assert_eq!(sum, 14);
        let between = all.remove(2);
        between.kill();
        between.wait();
        drop(relay);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(
            question(client).map(|(sum, _)| sum),
            Some(14),
            "peer {peer}"
        );
        drop(keeper);
        for process in children() {
            // It may have ended.
            let _ = kill_process(process, Signal::KILL);
        }
        end(all);
    }
}

/// Endpoints go to a domain that its operator has stopped, from the host and from another domain. Nobody else waits; and it
/// goes on where it was, or dies.
pub(crate) fn who_stands_still_holds_up_nobody_else() {
    let all = places(None);
    // More than are offered at a time.
    const ENDS: usize = 100;
    let route = |to: &[u8]| Route {
        to: ExVec::copy_of(to),
        end: make(5).expect("a channel"),
    };
    for goes_on in [true, false] {
        let [still, busy] = [2, 1].map(|place| place_end(place).expect("bound"));
        let (_, still) = answer(still.many(ExVec::new()).expect("alive")).expect("alive");
        let process = Pid::from_raw(process_of(2).cast_signed()).expect("a number");
        kill_process(process, Signal::STOP).expect("it runs");
        let mut servers = Vec::new();
        let mut end = || match goes_on {
            true => make(1).expect("a channel"),
            false => {
                let (client, server) = ask::channel().expect("memory");
                servers.push(server);
                client
            }
        };
        let items: ExVec<Item> = (0..ENDS).map(|_| Item::One(end())).collect();
        let asked = still.many(items).expect("alive");
        let passed = busy.pass(route(&[2])).expect("alive");
        for _ in 0..20 {
            let others = place_end(1).expect("bound").pass(route(&[3, 0, 1]));
            let sum = answer(others.expect("alive")).map(|(sum, _)| sum);
            assert_eq!(sum, Some(15));
        }
        match goes_on {
            true => {
                kill_process(process, Signal::CONT).expect("it is there");
                let sum = answer(asked).map(|(sum, _)| sum);
                assert_eq!(sum, Some(11 * ENDS as u64));
                assert_eq!(answer(passed).map(|(sum, _)| sum), Some(15));
            }
            false => {
                kill_process(process, Signal::KILL).expect("it is there");
                assert!(asked.recv().is_err() && answer(passed).is_none());
                for server in servers {
                    assert!(server.recv().is_err());
                }
            }
        }
    }
    assert_eq!(faults(), Vec::<String>::new());
    end(all);
}

/// Any domain dies at any moment while endpoints go round: whoever waits hears of it, and everything comes back.
pub(crate) fn whoever_dies_when() {
    // What is made once and stays: memory in common, and the host's bells for ends that come home.
    end(places(Some(Sharing::Remapped)));
    let all = places(Some(Sharing::Open));
    let route = Route {
        to: ExVec::copy_of(&[0]),
        end: make(1).expect("a channel"),
    };
    let relay = place_end(1).expect("bound");
    assert!(answer(relay.pass(route).expect("alive")).is_some());
    end(all);
    faults();
    let before = quiet();
    let mut seed = 7u32;
    let (mut done, mut failed) = (0, 0);
    for round in 0..rounds() {
        let kinds = [None, Some(Sharing::Open), Some(Sharing::Remapped)];
        let all = places(kinds[round as usize % 3]);
        seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
        let (pause, which) = (u64::from(seed >> 16) / 4, (seed >> 8) as usize);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(pause));
            let all = children();
            if let Some(process) = all.get(which % all.len().max(1)) {
                // It may have ended.
                let _ = kill_process(*process, Signal::KILL);
            }
        });
        let begin = Instant::now();
        let mut hop = 0u8;
        while begin.elapsed() < Duration::from_millis(30) || !killer.is_finished() {
            hop = (hop + 1) % 12;
            let went = || {
                let relay = place_end_now(hop % 3 + 1)?;
                let client = match hop % 4 {
                    0 => make(1)?,
                    place => made(place_end_now(place)?.make(1).ok()?)?.0,
                };
                let route = Route {
                    to: ExVec::copy_of(&[hop % 3 + 1, (hop + 1) % 3 + 1, hop % 4]),
                    end: client,
                };
                answer(relay.pass(route).ok()?)
            };
            match went() {
                Some((11, _)) => done += 1,
                Some((other, _)) => panic!("{other}"),
                None => failed += 1,
            }
        }
        killer.join().expect("no panic");
        end(all);
    }
    println!("{done} went round, {failed} did not");
    assert!(done > 0);
    settled(before);
}

/// How often domains are killed: more by hand.
fn rounds() -> u32 {
    let wanted = std::env::var("ENDPOINT_ROUNDS").ok();
    wanted.and_then(|rounds| rounds.parse().ok()).unwrap_or(20)
}
