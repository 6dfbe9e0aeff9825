//! The two programs as processes with channels: in one address space, or in a domain each.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use mullion_hip::{Launch, Member, Output, Sharing, launch};
use mullion_sip::channel::{AnyEndpoint, ChannelClosed, Contract};
use mullion_sip::process::names::NameError;
use mullion_sip::process::{
    self, Child, Home, Limits, Options, Program, Rights, Service, serve, spawn,
};
use mullion_sip::{ExVec, Exchange, contract, wait};

use crate::mix::{Mix, sizes};
use crate::work::{Device, Kind, MOST, Table, Watch, Work, numbers, sort, sum, weigh};
use crate::{Processors, Took};

/// What is to be read: two numbers.
#[derive(Exchange, Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The first block, or the file.
    what: u64,
    /// How many of them, or from which byte on.
    amount: u64,
}

/// A result: nanoseconds of each batch, and the sum.
#[derive(Exchange, Debug)]
pub(crate) struct Outcome {
    batches: ExVec<u64>,
    sum: u64,
}

contract! {
    #[endless]
    mod bytes {
        Idle: client { Read(super::Part) -> Busy }
        Busy: server { Data(ExVec<u8>) -> Idle }
    }
}

contract! {
    mod blocks {
        Idle: client { Next -> Busy }
        Busy: server { Block(ExVec<u64>) -> Idle, Last -> end }
    }
}

contract! {
    mod result {
        Say: client { Took(super::Outcome) -> end }
    }
}

/// The processes of a program in the order in which they are started. The last one measures.
fn roles(kind: Kind) -> [&'static str; 3] {
    match kind {
        Kind::Files => ["device", "files", "client"],
        Kind::Compute => ["source", "sort", "sink"],
    }
}

fn main_of(role: &str, checked: bool) -> Option<fn(u64)> {
    Some(match (role, checked) {
        ("device", true) => device::<true>,
        ("device", false) => device::<false>,
        ("files", true) => files::<true>,
        ("files", false) => files::<false>,
        ("client", true) => client::<true>,
        ("client", false) => client::<false>,
        ("source", _) => source,
        ("sort", true) => sorter::<true>,
        ("sort", false) => sorter::<false>,
        ("sink", true) => sink::<true>,
        ("sink", false) => sink::<false>,
        _ => return None,
    })
}

fn begin(role: &str, checked: bool, count: u64, home: Home) -> Option<Child> {
    let main = main_of(role, checked)?;
    let options = Options {
        home,
        rights: Rights::all(),
        limits: Limits {
            memory: 128 << 20,
            slice: Duration::from_secs(60),
            ..Limits::DEFAULT
        },
    };
    // SAFETY: the programs below keep nothing anywhere.
    spawn(unsafe { Program::new("bench", main) }, count, &options).ok()
}

/// All three in this address space.
pub(crate) fn same(work: Work, processors: Processors) -> Took {
    let results = results();
    let second = usize::from(processors == Processors::Two);
    let children: Vec<Child> = roles(work.kind)
        .into_iter()
        .zip([0, second, 0])
        .map(|(role, worker)| {
            begin(role, work.checked, work.count, Home::Worker(worker)).expect("a process")
        })
        .collect();
    finish(&results, &children)
}

/// Each in an OS process of its own, with an exchange heap of its own.
pub(crate) fn apart(work: Work, processors: Processors) -> Took {
    domains(work, processors, None)
}

/// Each in an OS process of its own, with one exchange heap for all.
pub(crate) fn sharing(work: Work, processors: Processors) -> Took {
    domains(work, processors, Some(Sharing::Open))
}

fn domains(work: Work, processors: Processors, share: Option<Sharing>) -> Took {
    let results = results();
    let second = u32::from(processors == Processors::Two);
    let start = |role: &str, processor: u32| {
        launch(&Launch {
            name: role.to_owned(),
            configuration: format!("{role} {} {}", work.checked, work.count),
            files: Vec::new(),
            share,
            workers: 1,
            processor: Some(processor),
            rights: Rights::all(),
            output: Output::Inherited,
            program: None,
        })
        .expect("a domain")
    };
    let children: Vec<Child> = roles(work.kind)
        .into_iter()
        .zip([0, second, 0])
        .map(|(role, processor)| start(role, processor))
        .collect();
    finish(&results, &children)
}

/// What a domain runs.
pub(crate) fn load(configuration: &str, _: Vec<OwnedFd>) -> Result<Vec<Member>, String> {
    let words: Vec<&str> = configuration.split(' ').collect();
    let [role, checked, count] = words[..] else {
        return Err(configuration.into());
    };
    let count: u64 = count.parse().map_err(|_| "no number".to_owned())?;
    let (role, checked) = (role.to_owned(), checked == "true");
    Ok(vec![Member {
        name: role.clone(),
        begin: Box::new(move || {
            begin(&role, checked, count, Home::Next).ok_or(process::SpawnError::NoStack)
        }),
    }])
}

fn results() -> Service {
    serve("/result", result::Contract::INFO).expect("free")
}

/// Waits for the result, and ends everybody.
fn finish(results: &Service, children: &[Child]) -> Took {
    let end = loop {
        if let Some(end) = results.try_accept() {
            break end;
        }
        if let Some(exit) = children.iter().find_map(Child::try_wait) {
            // The client may have said its result just before it ended.
            assert!(exit.cause.is_success(), "{exit:?}");
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let end = result::Server::<result::Say>::from_any(end).expect("a result");
    let result::SayMessage::Took(took) = end.recv().expect("a result");
    children.iter().for_each(Child::kill);
    for child in children {
        child.wait();
    }
    Took {
        batches: took.batches.to_vec(),
        sum: took.sum,
    }
}

fn say(watch: &Watch, sum: u64) {
    let batches = ExVec::copy_of(&watch.batches);
    let client = find("/result", || {
        let (client, server) = result::channel().expect("memory");
        (client, server.into_any())
    });
    client
        .took(Outcome { batches, sum })
        .expect("the host listens");
    // Until it is ended, so that nobody sees an end before the result.
    wait::park_until(Instant::now() + Duration::from_secs(10));
}

/// Opens a name, and waits for it to be bound.
fn find<C>(path: &str, channel: impl Fn() -> (C, AnyEndpoint)) -> C {
    loop {
        let (client, server) = channel();
        match process::open(path, server) {
            Ok(()) => return client,
            Err((NameError::Unbound, _)) => {
                wait::park_until(Instant::now() + Duration::from_millis(1));
            }
            Err((error, _)) => panic!("{path}: {error}"),
        }
    }
}

fn find_bytes(path: &str) -> bytes::Client<bytes::Idle> {
    find(path, || {
        let (client, server) = bytes::channel().expect("memory");
        (client, server.into_any())
    })
}

fn find_blocks(path: &str) -> blocks::Client<blocks::Idle> {
    find(path, || {
        let (client, server) = blocks::channel().expect("memory");
        (client, server.into_any())
    })
}

/// Answers one client until it goes.
fn answer(path: &str, mut read: impl FnMut(Part) -> Result<ExVec<u8>, ChannelClosed>) {
    let service = serve(path, bytes::Contract::INFO).expect("free");
    let end = bytes::Server::<bytes::Idle>::from_any(service.accept());
    let mut end = end.expect("a client's");
    while let Ok(bytes::IdleMessage::Read(part, busy)) = end.recv() {
        let Ok(again) = read(part).and_then(|data| busy.data(data)) else {
            return;
        };
        end = again;
    }
}

fn device<const CHECKED: bool>(_: u64) {
    let device = Device::new();
    answer("/device", |part| {
        Ok(ExVec::copy_of(
            device.read::<CHECKED>(part.what, part.amount),
        ))
    });
}

fn files<const CHECKED: bool>(_: u64) {
    let table = Table::new();
    let mut device = Some(find_bytes("/device"));
    answer("/files", |part| {
        let (what, amount, bytes) = table.plan::<CHECKED>(part.what, part.amount);
        let (mut data, again) = read(device.take().ok_or(ChannelClosed)?, Part { what, amount })?;
        device = Some(again);
        data.truncate(bytes);
        Ok(data)
    });
}

type Read = (ExVec<u8>, bytes::Client<bytes::Idle>);

fn read(from: bytes::Client<bytes::Idle>, part: Part) -> Result<Read, ChannelClosed> {
    let bytes::BusyMessage::Data(data, again) = from.read(part)?.recv()?;
    Ok((data, again))
}

fn client<const CHECKED: bool>(count: u64) {
    let mut files = find_bytes("/files");
    let (sizes, mut mix, mut total) = (sizes(), Mix::new(), 0);
    // The device is there when it has answered once.
    let first = Part { what: 0, amount: 0 };
    (_, files) = read(files, first).expect("alive");
    let mut watch = Watch::start(count);
    for _ in 0..count {
        let file = mix.next();
        for offset in (0..sizes[file]).step_by(MOST) {
            let part = Part {
                what: file as u64,
                amount: offset,
            };
            let (data, again) = read(files, part).expect("alive");
            files = again;
            total = sum::<CHECKED>(total, &data);
        }
        watch.tick();
    }
    say(&watch, total);
}

/// Serves one client with blocks until there is none.
fn provide(path: &str, mut next: impl FnMut() -> Result<Option<ExVec<u64>>, ChannelClosed>) {
    let service = serve(path, blocks::Contract::INFO).expect("free");
    let end = blocks::Server::<blocks::Idle>::from_any(service.accept());
    let mut end = end.expect("a client's");
    while let Ok(blocks::IdleMessage::Next(busy)) = end.recv() {
        match next() {
            Ok(Some(block)) => match busy.block(block) {
                Ok(again) => end = again,
                Err(_) => return,
            },
            _ => {
                let _ = busy.last();
                return;
            }
        }
    }
}

fn source(count: u64) {
    let mut all = 0..count;
    provide("/source", || {
        Ok(all.next().map(|block| {
            let mut values = ExVec::with_capacity(crate::work::NUMBERS);
            values.extend(numbers(block));
            values
        }))
    });
}

type Block = Option<(ExVec<u64>, blocks::Client<blocks::Idle>)>;

fn next(from: blocks::Client<blocks::Idle>) -> Result<Block, ChannelClosed> {
    Ok(match from.next()?.recv()? {
        blocks::BusyMessage::Block(block, again) => Some((block, again)),
        blocks::BusyMessage::Last => None,
    })
}

fn sorter<const CHECKED: bool>(_: u64) {
    let mut blocks = Some(find_blocks("/source"));
    provide("/sorted", || {
        let Some((mut block, again)) = next(blocks.take().ok_or(ChannelClosed)?)? else {
            return Ok(None);
        };
        blocks = Some(again);
        sort::<CHECKED>(&mut block);
        Ok(Some(block))
    });
}

fn sink<const CHECKED: bool>(count: u64) {
    let mut blocks = find_blocks("/sorted");
    let mut total = 0;
    let mut watch = Watch::start(count);
    while let Some((block, again)) = next(blocks).expect("alive") {
        total = weigh::<CHECKED>(total, &block);
        blocks = again;
        watch.tick();
    }
    say(&watch, total);
}
