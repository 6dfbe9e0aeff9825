//! Many processes and channels at once: made, each used, half of the processes killed, everything accounted for.
//!
//! ```text
//!   host --order--> asker  ==20 channels==  answerer <--order-- host        5,000 pairs
//! ```

use std::num::NonZeroUsize;
use std::time::Instant;
use std::{fmt, fs};

use mullion_sip::channel::ChannelClosed;
use mullion_sip::contract;
use mullion_sip::exchange::{Handles, census};
use mullion_sip::owner::Owner;
use mullion_sip::process::{Cause, Child, Home, Options, Program, spawn};
use mullion_sip_hosting::Start;
use mullion_sip_hosting::in_use;
use mullion_sip_hosting::share;

/// Channels between the two of a pair.
pub(crate) const EACH: usize = 20;

contract! {
    /// What pairs talk by.
    #[endless]
    pub(crate) mod duty {
        Ask: client { Question(u32) -> Answer }
        Answer: server { Reply(u32) -> Ask }
    }
}

contract! {
    /// What the host tells a process.
    pub(crate) mod order {
        Order: client { Work -> Busy, Watch -> Busy, Stop -> end }
        Busy: server { Done(u32) -> Order }
    }
}

type Asking = duty::Client<duty::Ask>;
type Answering = duty::Server<duty::Ask>;
type Orders = order::Server<order::Order>;

/// What it took.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Crowd {
    /// Processes, and channels between them, that were alive at once.
    pub(crate) alive: [usize; 2],
    /// Bytes for each process that has worked and waits: resident memory, and of the kernel's pages for its heap.
    pub(crate) process: [usize; 2],
    /// Bytes for each channel: resident memory, and what its owners are charged.
    pub(crate) channel: [usize; 2],
    /// Nanoseconds to make a process, to make a channel, to use one there and back, and to end a process.
    pub(crate) times: [u64; 4],
    /// The system's mappings before, while all lived, and after.
    pub(crate) mappings: Vec<usize>,
    /// Descriptors, likewise.
    pub(crate) descriptors: Vec<usize>,
}

impl fmt::Display for Crowd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [processes, channels] = self.alive;
        let [resident, heap] = self.process;
        let [in_memory, charged] = self.channel;
        let [process, channel, used, ended] = self.times;
        writeln!(
            f,
            "{processes} processes and {channels} channels alive: each process takes {resident} bytes of memory ({heap} of \
             its heap), each channel {in_memory} ({charged} are charged to its owners);"
        )?;
        writeln!(
            f,
            "{process} ns to make a process, {channel} a channel, {used} to use a channel there and back, {ended} to end a \
             process, half of them by kill;"
        )?;
        write!(
            f,
            "mappings before, meanwhile and after: {:?}; descriptors: {:?}.",
            self.mappings, self.descriptors
        )
    }
}

/// Uses each of the ends, or counts those whose peers have gone, as the host says; until it says stop.
fn obey<E, const N: usize>(
    mut orders: Orders,
    mut ends: [E; N],
    use_one: fn(E) -> Result<E, ChannelClosed>,
) {
    loop {
        orders = match orders.recv() {
            Ok(order::OrderMessage::Work(orders)) => {
                ends = ends.map(|end| use_one(end).expect("everybody lives"));
                orders.done(N as u32).expect("the host")
            }
            Ok(order::OrderMessage::Watch(orders)) => {
                let lost = ends
                    .into_iter()
                    .filter_map(|end| use_one(end).err())
                    .count();
                let orders = orders.done(lost as u32).expect("the host");
                // Until the host says stop.
                let _ = orders.recv();
                return;
            }
            Ok(order::OrderMessage::Stop) | Err(ChannelClosed) => return,
        };
    }
}

fn asker((orders, ends): (Orders, [Asking; EACH])) {
    obey(orders, ends, |end| {
        let duty::AnswerMessage::Reply(8, end) = end.question(7)?.recv()? else {
            panic!("another answer")
        };
        Ok(end)
    });
}

fn answerer((orders, ends): (Orders, [Answering; EACH])) {
    obey(orders, ends, |end| {
        let duty::AskMessage::Question(number, end) = end.recv()?;
        end.reply(number + 1)
    });
}

fn start<T: Handles>(main: fn(T), argument: T, worker: usize) -> Child {
    // SAFETY: it keeps nothing.
    let program = unsafe { Program::new("crowd", main) };
    let home = Home::Worker(worker);
    let options = Options {
        home,
        ..Options::default()
    };
    spawn(program, argument, &options).expect("a process")
}

type Host = order::Client<order::Order>;
type Told = order::Client<order::Busy>;

fn hear(told: Told) -> (Host, u32) {
    let order::BusyMessage::Done(count, host) = told.recv().expect("alive");
    (host, count)
}

/// Has so many pairs live, work and die.
pub(crate) fn run(pairs: usize) -> Crowd {
    let workers = NonZeroUsize::new(2);
    crate::host::host()
        .start(Start { workers })
        .expect("workers");
    let before = (census().in_use, in_use(), crate::host::host().names().len());
    let mut system = vec![System::now()];

    let (held, had, began) = (share(Owner::HOST).held, resident(), Instant::now());
    let channels: Vec<_> = (0..pairs * EACH)
        .map(|_| duty::channel().expect("memory"))
        .collect();
    let all = channels.len();
    let channel_made = each(began, all);
    let channel = [
        resident().saturating_sub(had) / all,
        (share(Owner::HOST).held - held) as usize / all,
    ];

    let orders: Vec<_> = (0..2 * pairs)
        .map(|_| order::channel().expect("memory"))
        .collect();
    let (mut hosts, orders): (Vec<_>, Vec<_>) = orders.into_iter().unzip();
    let (mut channels, mut orders) = (channels.into_iter(), orders.into_iter());
    let mut children = Vec::with_capacity(2 * pairs);
    let (had, heaps, began) = (resident(), in_use(), Instant::now());
    for pair in 0..pairs {
        let mut ends = channels.by_ref().take(EACH);
        let ends = [(); EACH].map(|()| ends.next().expect("as many"));
        let mut asking = ends.map(|(client, server)| (Some(client), Some(server)));
        let answering = std::array::from_fn(|end| asking[end].1.take().expect("once"));
        let asking = asking.map(|(client, _)| client.expect("once"));
        let mut order = || orders.next().expect("as many");
        // Of four pairs two are on one worker.
        children.push(start(asker, (order(), asking), pair));
        children.push(start(answerer, (order(), answering), pair / 2));
    }
    let process_made = each(began, children.len());

    let began = Instant::now();
    let told: Vec<Told> = hosts
        .drain(..)
        .map(|host| host.work().expect("alive"))
        .collect();
    for (host, count) in told.into_iter().map(hear) {
        assert_eq!(count as usize, EACH, "each channel works");
        hosts.push(host);
    }
    let used = each(began, all);
    let process = [
        resident().saturating_sub(had) / children.len(),
        (in_use() - heaps) / children.len(),
    ];
    assert_eq!(crate::host::host().statistics().len(), children.len());
    system.push(System::now());

    // One of each pair is killed while the other works or waits.
    let began = Instant::now();
    let (mut watching, mut left) = (Vec::new(), Vec::new());
    for (number, host) in hosts.into_iter().enumerate() {
        match survives(number) {
            true => watching.push(host.watch().expect("alive")),
            false => left.push(host),
        }
    }
    let doomed = || {
        children
            .iter()
            .enumerate()
            .filter(|(number, _)| !survives(*number))
    };
    doomed().for_each(|(_, child)| child.kill());
    doomed().for_each(|(_, child)| assert_eq!(child.wait().cause, Cause::Killed));
    for (host, lost) in watching.into_iter().map(hear) {
        assert_eq!(
            lost as usize, EACH,
            "each end is told that its peer has gone"
        );
        host.stop().expect("alive");
    }
    for host in left {
        let heard = host.work().and_then(|told| told.recv());
        assert!(heard.is_err(), "its host is told, too");
    }
    for (number, child) in children.iter().enumerate() {
        let cause = if survives(number) {
            Cause::Returned
        } else {
            Cause::Killed
        };
        assert_eq!(child.wait().cause, cause);
    }
    let ended = each(began, children.len());
    drop(children);
    let after = (census().in_use, in_use(), crate::host::host().names().len());
    assert_eq!(after, before, "blocks, bytes of heaps, names");
    assert!(crate::host::host().statistics().is_empty());
    system.push(System::now());
    Crowd {
        alive: [2 * pairs, all],
        process,
        channel,
        times: [process_made, channel_made, used, ended],
        mappings: system.iter().map(|system| system.mappings).collect(),
        descriptors: system.iter().map(|system| system.descriptors).collect(),
    }
}

/// The asker of one pair, the answerer of the next.
fn survives(number: usize) -> bool {
    (number / 2 + number).is_multiple_of(2)
}

struct System {
    mappings: usize,
    descriptors: usize,
}

impl System {
    fn now() -> System {
        let maps = fs::read_to_string("/proc/self/maps").expect("Linux");
        System {
            mappings: maps.lines().count(),
            descriptors: fs::read_dir("/proc/self/fd").expect("Linux").count(),
        }
    }
}

/// Bytes of memory that the program has.
fn resident() -> usize {
    let statistics = fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statistics.split(' ').nth(1).map(str::parse::<usize>);
    pages.expect("a second number").expect("a number") * 4096
}

fn each(began: Instant, count: usize) -> u64 {
    (began.elapsed().as_nanos() / count as u128) as u64
}
