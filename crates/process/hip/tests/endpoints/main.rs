//! Endpoints that are sent to other OS processes: wherever their peers are, wherever they go, and whoever dies. This
//! program is the host and, run again, each of its domains; so it has a `main` of its own.

#[path = "../../../../language/sip/tests/host/mod.rs"]
mod host;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use host::host;
use mullion_hip::{Launch, Member, Notice, Output, Sharing, enter, launch, on_notice};
use mullion_sip::channel::{AnyEndpoint, Contract, TryRecvError};
use mullion_sip::process::names::NameError;
use mullion_sip::process::{Cause, Child, Options, Program, Rights, open, serve, spawn};
use mullion_sip::{ExBox, ExVec, Exchange, contract};
use mullion_sip_hosting::Start;

#[path = "../listed/mod.rs"]
mod listed;

mod deaths;
mod room;
mod ways;

use listed::{listed, run};

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

/// The number of a place's OS process.
fn process_of(place: u8) -> u32 {
    let name = format!("place{place}");
    let group = mullion_hip::groups();
    let found = group.domains.iter().find(|domain| domain.name() == name);
    found.and_then(|domain| domain.process()).expect("it runs")
}

/// As [`place_end`], but for places that may have died.
fn place_end_now(place: u8) -> Option<relay::Client<relay::Idle>> {
    let (client, server) = relay::channel().ok()?;
    open(&path(place), server.into_any()).ok().map(|()| client)
}

fn main() {
    enter(load);
    host().start(Start::default()).expect("workers");
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
    run(listed![
        ways::from_everywhere_by_everyone_to_everywhere,
        ways::round_the_ring_and_back,
        ways::several_in_one_message_at_any_depth,
        ways::what_was_sent_before_arrives_before,
        ways::many_at_a_time,
        room::who_has_no_room_for_a_line_says_so,
        deaths::who_stands_still_holds_up_nobody_else,
        deaths::who_has_handed_it_on_may_die,
        deaths::whoever_dies_when,
    ]);
}
