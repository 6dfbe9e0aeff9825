//! Endpoints that are sent to other OS processes: wherever their peers are, wherever they go, and whoever dies. This
//! program is the host and, run again, each of its domains; so it has a `main` of its own.

use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use mullion_hip::{Launch, Member, Notice, Output, Sharing, enter, launch, on_notice};
use mullion_sip::channel::{AnyEndpoint, Contract, TryRecvError};
use mullion_sip::process::names::NameError;
use mullion_sip::process::{Cause, Child, Options, Program, Rights, open, serve, spawn};
use mullion_sip::{ExBox, ExVec, Exchange, Start, contract, start};

contract! {
    /// Answers with its argument, and what it adds.
    mod ask {
        Ask: client { Question(u32) -> Answer, Bye -> end }
        Answer: server { Reply(u64) -> Ask }
    }
}

contract! {
    /// Three numbers in a row, and their digits.
    mod burst {
        One: client { First(u32) -> Two }
        Two: client { Second(u32) -> Three }
        Three: client { Third(ExVec<u32>) -> Four }
        Four: server { All(u64) -> end }
    }
}

contract! {
    /// The server begins.
    mod tell {
        Tell: server { Number(u32) -> Told }
        Told: client { More -> Tell, Stop -> end }
    }
}

contract! {
    /// What each domain does with endpoints.
    mod relay {
        Idle: client {
            /// Asks it, and adds up.
            Use(ask::Client<ask::Ask>) -> Busy,
            /// Hands it on to the next of these places, and so on.
            Pass(Route) -> Busy,
            /// Hands it back.
            Return(ask::Client<ask::Ask>) -> Busy,
            /// Keeps it.
            Keep(ask::Client<ask::Ask>) -> Busy,
            /// Asks all.
            Many(ExVec<Item>) -> Busy,
            /// Makes one, that adds so much.
            Make(u32) -> Busy,
            /// Goes on with the second.
            Burst(burst::Client<burst::Two>) -> Busy,
            /// Answers with 15.
            Reply(ask::Server<ask::Answer>) -> Busy,
            /// Says two numbers.
            Tell(tell::Server<tell::Tell>) -> Busy,
            Bye -> end
        }
        Busy: server { Sum(u64) -> Idle, Made(ask::Client<ask::Ask>) -> Idle, Failed -> Idle }
    }
}

#[derive(Exchange)]
struct Route {
    to: ExVec<u8>,
    end: ask::Client<ask::Ask>,
}

#[derive(Exchange)]
#[repr(u8)]
enum Item {
    Nothing,
    One(ask::Client<ask::Ask>),
    Pair(Option<ask::Client<ask::Ask>>, ExBox<Item>),
}

#[global_allocator]
static HEAPS: mullion_sip::heap::ProcessHeaps = mullion_sip::heap::ProcessHeaps;

/// How long anything may take that must not hang; a busy machine has time.
const PATIENCE: Duration = Duration::from_secs(20);

/// Serves `/place/N`.
fn place(number: u64) {
    let service = serve(&path(number as u8), relay::Contract::INFO).expect("a name");
    loop {
        let end = relay::Server::<relay::Idle>::from_any(service.accept()).expect("the contract");
        let _ = mullion_sip::thread::spawn(move || {
            let mut kept = Vec::new();
            let mut end = Some(end);
            while let Some(idle) = end.take() {
                let Ok(message) = idle.recv() else { return };
                end = act(message, &mut kept);
            }
        });
    }
}

fn path(place: u8) -> String {
    format!("/place/{place}")
}

fn act(
    message: relay::IdleMessage,
    kept: &mut Vec<ask::Client<ask::Ask>>,
) -> Option<relay::Server<relay::Idle>> {
    use relay::IdleMessage::*;
    let (result, busy) = match message {
        Use(end, busy) => (question(end).map(|(sum, _)| sum), busy),
        Pass(route, busy) => (pass(route), busy),
        Return(end, busy) => return busy.made(end).ok(),
        Keep(end, busy) => {
            kept.push(end);
            (Some(0), busy)
        }
        Many(items, busy) => (all_of(items), busy),
        Make(adds, busy) => return busy.made(make(adds)?).ok(),
        Burst(end, busy) => (go_on(end), busy),
        Reply(end, busy) => (end.reply(15).ok().map(|_| 15), busy),
        Tell(end, busy) => (say(end), busy),
        Bye => return None,
    };
    match result {
        Some(sum) => busy.sum(sum).ok(),
        None => busy.failed().ok(),
    }
}

fn all_of(mut items: ExVec<Item>) -> Option<u64> {
    let mut sum = 0;
    while let Some(item) = items.pop() {
        sum += all(item)?;
    }
    Some(sum)
}

fn all(item: Item) -> Option<u64> {
    let asked = |end| question(end).map(|(sum, _)| sum);
    match item {
        Item::Nothing => Some(0),
        Item::One(end) => asked(end),
        Item::Pair(end, rest) => Some(end.map_or(Some(0), asked)? + all(rest.into_inner())?),
    }
}

fn pass(Route { to, end }: Route) -> Option<u64> {
    let Some((next, rest)) = to.split_first() else {
        return question(end).map(|(sum, _)| sum);
    };
    let route = Route {
        to: ExVec::copy_of(rest),
        end,
    };
    let relay = place_end_now(*next)?;
    answer(relay.pass(route).ok()?).map(|(sum, _)| sum)
}

fn go_on(end: burst::Client<burst::Two>) -> Option<u64> {
    let end = end.second(2).ok()?.third(ExVec::copy_of(&[3; 1000])).ok()?;
    let burst::FourMessage::All(all) = end.recv().ok()?;
    Some(all)
}

fn say(mut end: tell::Server<tell::Tell>) -> Option<u64> {
    for number in 7.. {
        match end.number(number).ok()?.recv().ok()? {
            tell::ToldMessage::More(next) => end = next,
            tell::ToldMessage::Stop => return Some(number.into()),
        }
    }
    None
}

/// The answer to ten; none if the peer has gone.
fn question(end: ask::Client<ask::Ask>) -> Option<(u64, ask::Client<ask::Ask>)> {
    let mut asked = end.question(10).ok()?;
    let begin = Instant::now();
    loop {
        match asked.recv_timeout(Duration::from_millis(200)) {
            Ok(ask::AnswerMessage::Reply(reply, end)) => return Some((reply, end)),
            Err(TryRecvError::Empty(same)) => asked = same,
            Err(TryRecvError::Closed(_)) => return None,
        }
        assert!(begin.elapsed() < PATIENCE, "an answer, or an end");
    }
}

fn answer(mut asked: relay::Client<relay::Busy>) -> Option<(u64, relay::Client<relay::Idle>)> {
    let begin = Instant::now();
    loop {
        match asked.recv_timeout(Duration::from_millis(200)) {
            Ok(relay::BusyMessage::Sum(sum, idle)) => return Some((sum, idle)),
            Ok(_) | Err(TryRecvError::Closed(_)) => return None,
            Err(TryRecvError::Empty(same)) => asked = same,
        }
        assert!(begin.elapsed() < 2 * PATIENCE, "an answer, or an end");
    }
}

fn made(
    asked: relay::Client<relay::Busy>,
) -> Option<(ask::Client<ask::Ask>, relay::Client<relay::Idle>)> {
    match asked.recv().ok()? {
        relay::BusyMessage::Made(end, idle) => Some((end, idle)),
        _ => None,
    }
}

/// A channel whose server is in this OS process.
fn make(adds: u32) -> Option<ask::Client<ask::Ask>> {
    let (client, server) = ask::channel().ok()?;
    // SAFETY: it keeps nothing anywhere.
    let program = unsafe { Program::new("answers", answers) };
    let options = Options {
        rights: Rights::none(),
        ..Options::default()
    };
    let spawned = spawn(program, (adds, server.into_any()), &options);
    spawned.ok().map(|_| client)
}

fn answers((adds, end): (u32, AnyEndpoint)) {
    let mut end = ask::Server::<ask::Ask>::from_any(end).expect("the contract");
    while let Ok(ask::AskMessage::Question(number, asked)) = end.recv() {
        let Ok(next) = asked.reply(u64::from(number) + u64::from(adds)) else {
            return;
        };
        end = next;
    }
}

/// None if nobody is there.
fn place_end(place: u8) -> Option<relay::Client<relay::Idle>> {
    let begin = Instant::now();
    loop {
        let (client, server) = relay::channel().ok()?;
        match open(&path(place), server.into_any()) {
            Ok(()) => return Some(client),
            Err((NameError::Unbound | NameError::Busy, _)) if begin.elapsed() < PATIENCE => {
                mullion_sip::wait::park_until(Instant::now() + Duration::from_millis(2));
            }
            Err(_) => return None,
        }
    }
}

fn load(configuration: &str, _: Vec<OwnedFd>) -> Result<Vec<Member>, String> {
    let number: u64 = configuration.parse().map_err(|_| "no number".to_owned())?;
    Ok(vec![Member {
        name: configuration.into(),
        begin: Box::new(move || begin(number)),
    }])
}

fn begin(number: u64) -> Result<Child, mullion_sip::process::SpawnError> {
    // SAFETY: it keeps nothing anywhere.
    let program = unsafe { Program::new("place", place) };
    let options = Options {
        rights: Rights::all(),
        ..Options::default()
    };
    spawn(program, number, &options)
}

fn domain(number: u8, share: Option<Sharing>) -> Child {
    let launched = launch(&Launch {
        name: format!("place{number}"),
        configuration: number.to_string(),
        files: Vec::new(),
        workers: 1,
        processor: None,
        share,
        rights: Rights::none().bind(&path(number)).look_up("/place"),
        output: Output::Inherited,
        program: None,
    });
    launched.expect("a domain")
}

/// Places 1 to 3 in domains, and 0 in the host.
fn places(share: Option<Sharing>) -> Vec<Child> {
    let host = begin(0).expect("a process");
    let apart = (1..4).map(|number| domain(number, share));
    let all = [host].into_iter().chain(apart).collect();
    // From here on who is not bound has died.
    (0..4).for_each(|place| drop(place_end(place)));
    all
}

fn end(places: Vec<Child>) {
    places.iter().for_each(Child::kill);
    for place in places {
        place.wait();
    }
}

static NOTICES: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn faults() -> Vec<String> {
    std::mem::take(&mut *NOTICES.lock().expect("whole"))
}

/// What there is of the host's: descriptors, lines that are mapped, blocks.
fn held() -> (usize, usize, u64) {
    let files = std::fs::read_dir("/proc/self/fd").expect("proc").count();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("proc");
    (
        files,
        maps.matches("mullion-line").count(),
        mullion_sip::exchange::census().in_use,
    )
}

/// What there is when nothing happens any more.
fn quiet() -> (usize, usize, u64) {
    let begin = Instant::now();
    let mut last = held();
    loop {
        std::thread::sleep(Duration::from_millis(50));
        let now = held();
        if now == last && (now.1, now.2) == (0, 0) {
            return now;
        }
        assert!(begin.elapsed() < PATIENCE, "{now:?}");
        last = now;
    }
}

/// It comes back to what there was.
fn settled(before: (usize, usize, u64)) {
    let begin = Instant::now();
    let back =
        |now: (usize, usize, u64)| now.0 <= before.0 && (now.1, now.2) == (before.1, before.2);
    while !back(held()) {
        let late = begin.elapsed() > PATIENCE;
        assert!(!late, "{:?}, not {before:?}", held());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An endpoint whose peer is there.
fn end_of(place: u8, adds: u32) -> ask::Client<ask::Ask> {
    if place == 0 {
        return make(adds).expect("a channel");
    }
    let relay = place_end(place).expect("bound");
    made(relay.make(adds).expect("alive")).expect("made").0
}

fn from_everywhere_by_everyone_to_everywhere() {
    for share in [None, Some(Sharing::Open), Some(Sharing::Remapped)] {
        let all = places(share);
        for (peer, sender, receiver) in
            (0..64u8).map(|index| (index / 16, index / 4 % 4, index % 4))
        {
            let client = end_of(peer, 5);
            let route = Route {
                to: ExVec::copy_of(&[receiver]),
                end: client,
            };
            let relay = place_end(sender).expect("bound");
            let asked = relay.pass(route).expect("alive");
            let sum = answer(asked).map(|(sum, _)| sum);
            assert_eq!(sum, Some(15), "peer {peer}, from {sender} to {receiver}");
        }
        assert_eq!(faults(), Vec::<String>::new());
        end(all);
    }
}

fn round_the_ring_and_back() {
    let all = places(None);
    for peer in 0..4 {
        let rounds: Vec<u8> = (0..60).map(|hop| hop % 3 + 1).collect();
        let route = Route {
            to: ExVec::copy_of(&rounds),
            end: end_of(peer, 1),
        };
        let relay = place_end(3).expect("bound");
        assert_eq!(
            answer(relay.pass(route).expect("alive")).map(|(sum, _)| sum),
            Some(11)
        );
        // To and fro over one channel, used in between.
        let mut relay = place_end(2).expect("bound");
        let mut client = end_of(peer, 1);
        for _ in 0..20 {
            (client, relay) = made(relay.r#return(client).expect("alive")).expect("returned");
            let (sum, same) = question(client).expect("an answer");
            assert_eq!(sum, 11);
            client = same;
        }
    }
    assert_eq!(faults(), Vec::<String>::new());
    end(all);
}

fn several_in_one_message_at_any_depth() {
    let all = places(None);
    let mut relay = place_end(1).expect("bound");
    for count in [1u32, 3, 100] {
        let items = (0..count).map(|index| {
            let one = |place: u32| end_of((place % 4) as u8, index);
            match index % 3 {
                0 => Item::One(one(index)),
                1 => Item::Pair(None, ExBox::new(Item::One(one(index)))),
                _ => Item::Pair(Some(one(index)), ExBox::new(Item::Nothing)),
            }
        });
        let items: ExVec<Item> = items.collect();
        let (sum, idle) = answer(relay.many(items).expect("alive")).expect("asked");
        assert_eq!(
            sum,
            (0..u64::from(count)).map(|index| index + 10).sum::<u64>()
        );
        relay = idle;
    }
    end(all);
}

/// What an endpoint has sent before it is sent itself arrives first.
fn what_was_sent_before_arrives_before() {
    let all = places(None);
    for _ in 0..20 {
        let (client, server) = burst::channel().expect("memory");
        let relay = place_end(1).expect("bound");
        let asked = relay.burst(client.first(1).expect("alive")).expect("alive");
        let burst::OneMessage::First(first, server) = server.recv().expect("first");
        let burst::TwoMessage::Second(second, server) = server.recv().expect("second");
        let burst::ThreeMessage::Third(third, server) = server.recv().expect("third");
        assert_eq!((first, second, third.len(), third[999]), (1, 2, 1000, 3));
        server.all(123).expect("alive");
        assert_eq!(answer(asked).map(|(sum, _)| sum), Some(123));
    }
    // An endpoint of the other side.
    let (mut client, server) = tell::channel().expect("memory");
    let relay = place_end(2).expect("bound");
    let asked = relay.tell(server).expect("alive");
    let mut number = 7;
    loop {
        let tell::TellMessage::Number(said, told) = client.recv().expect("a number");
        assert_eq!(said, number);
        number += 1;
        if number == 10 {
            break told.stop().expect("alive");
        }
        client = told.more().expect("alive");
    }
    assert_eq!(answer(asked).map(|(sum, _)| sum), Some(9));
    end(all);
}

/// More than are offered at a time, to a receiver who keeps them, and to one who does not read.
fn many_at_a_time() {
    let all = places(None);
    // The bells of each domain stay as long as it does.
    (1..4).for_each(|place| drop(place_end(place)));
    let before = quiet();
    let mut relay = place_end(1).expect("bound");
    let mut ends = Vec::new();
    for _ in 0..300 {
        let (client, server) = ask::channel().expect("memory");
        let (_, idle) = answer(relay.keep(client).expect("alive")).expect("kept");
        (relay, _) = (idle, ends.push(server));
    }
    let items: ExVec<Item> = (0..500)
        .map(|_| {
            let (client, server) = ask::channel().expect("memory");
            ends.push(server);
            Item::One(client)
        })
        .collect();
    let asked = place_end(2).expect("bound").many(items).expect("alive");
    drop((relay, ends));
    // Nobody answers.
    assert!(matches!(asked.recv(), Ok(relay::BusyMessage::Failed(_))));
    settled(before);
    end(all);
}

/// OS processes of domains that run.
fn children() -> Vec<rustix::process::Pid> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("proc");
    let read = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).ok();
    let all: String = tasks.flatten().filter_map(read).collect();
    all.split_whitespace()
        .filter_map(|pid| rustix::process::Pid::from_raw(pid.parse().ok()?))
        .collect()
}

fn who_has_handed_it_on_may_die() {
    use rustix::process::{Signal, kill_process};
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

/// The number of a place's OS process.
fn process_of(place: u8) -> u32 {
    let name = format!("place{place}");
    let group = mullion_hip::groups();
    let found = group.domains.iter().find(|domain| domain.name() == name);
    found.and_then(|domain| domain.process()).expect("it runs")
}

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

fn who_has_no_room_for_a_line_says_so() {
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

/// Endpoints go to a domain that its operator has stopped, from the host and from another domain. Nobody else waits; and it
/// goes on where it was, or dies.
fn who_stands_still_holds_up_nobody_else() {
    use rustix::process::{Pid, Signal, kill_process};
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
fn whoever_dies_when() {
    use rustix::process::{Signal, kill_process};
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

/// As [`place_end`], but for places that may have died.
fn place_end_now(place: u8) -> Option<relay::Client<relay::Idle>> {
    let (client, server) = relay::channel().ok()?;
    open(&path(place), server.into_any()).ok().map(|()| client)
}

fn main() {
    enter(load);
    start(Start::default()).expect("workers");
    on_notice(|domain, notice| match notice {
        Notice::Fault(..) | Notice::Malformed(_) => NOTICES
            .lock()
            .expect("whole")
            .push(format!("{domain}: {notice:?}")),
        Notice::Ended(name, exit) if exit.cause == Cause::Panic => {
            println!("{domain}: {name}: {exit:?}");
        }
        _ => {}
    });
    let tests: &[(&str, fn())] = &[
        (
            "from_everywhere_by_everyone_to_everywhere",
            from_everywhere_by_everyone_to_everywhere,
        ),
        ("round_the_ring_and_back", round_the_ring_and_back),
        (
            "several_in_one_message_at_any_depth",
            several_in_one_message_at_any_depth,
        ),
        (
            "what_was_sent_before_arrives_before",
            what_was_sent_before_arrives_before,
        ),
        ("many_at_a_time", many_at_a_time),
        (
            "who_has_no_room_for_a_line_says_so",
            who_has_no_room_for_a_line_says_so,
        ),
        (
            "who_stands_still_holds_up_nobody_else",
            who_stands_still_holds_up_nobody_else,
        ),
        ("who_has_handed_it_on_may_die", who_has_handed_it_on_may_die),
        ("whoever_dies_when", whoever_dies_when),
    ];
    let wanted = std::env::args()
        .nth(1)
        .filter(|argument| !argument.starts_with('-'));
    let mut run = 0;
    for (name, test) in tests {
        if wanted.as_deref().is_none_or(|wanted| name.contains(wanted)) {
            println!("test {name}");
            test();
            run += 1;
        }
    }
    println!("test result: ok. {run} passed");
}
