//! Large messages between two OS processes: written whole, sent, and read whole; in each arrangement of the exchange
//! heap, and through a pipe. *Anew*: each in a vector of its own, which its receiver drops. *There and back*: one vector,
//! which both sides write and read.
//!
//! Both sides are domains, since this program could be in the memory of one arrangement only. Rounds alternate.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use mullion_hip::{Launch, Member, Output, Sharing, launch};
use mullion_sip::channel::Contract;
use mullion_sip::process::names::NameError;
use mullion_sip::process::{Child, Limits, Options, Program, Rights, Service, open, serve, spawn};
use mullion_sip::{ExVec, Exchange, contract, wait};

use crate::cores::Place;
use crate::row::{cycles, record};

/// Bytes of messages.
const SIZES: [usize; 5] = [128 << 10, 512 << 10, 1 << 20, 8 << 20, 32 << 20];
const ROUNDS: usize = 3;
/// Messages of one size in a round: the first two are to warm.
const TIMES: usize = 25;
const WARM: usize = 2;

const ANEW: &str = "large message, written and read";
const BACK: &str = "large message there and back, written and read twice";

/// A name, and how two domains share memory.
const ARRANGEMENTS: [(&str, Option<Sharing>); 3] = [
    ("SIPs in OS processes", None),
    ("SIPs in OS processes, remapped", Some(Sharing::Remapped)),
    ("SIPs in OS processes, shared heap", Some(Sharing::Open)),
];

/// Cycles of each message of one size.
#[derive(Exchange, Debug)]
struct Took {
    back: bool,
    bytes: u64,
    cycles: ExVec<u64>,
}

contract! {
    #[endless]
    mod large {
        Ask: client { Sum(ExVec<u64>) -> Answer, Back(ExVec<u64>) -> Answer }
        Answer: server { Total(u64) -> Ask, Here(ExVec<u64>) -> Ask }
    }
}

contract! {
    mod report {
        Say: client { Took(super::Took) -> Heard, End -> end }
        Heard: server { Next -> Say }
    }
}

fn write(numbers: &mut [u64], value: u64) {
    numbers.iter_mut().for_each(|number| *number = value);
}

fn read(numbers: &[u64]) -> u64 {
    numbers.iter().copied().fold(0, u64::wrapping_add)
}

fn server(_: u64) {
    let service = serve("/large", large::Contract::INFO).expect("free");
    let end = large::Server::<large::Ask>::from_any(service.accept());
    let mut end = end.expect("a client's");
    let mut value = 0;
    while let Ok(message) = end.recv() {
        let next = match message {
            large::AskMessage::Sum(numbers, end) => {
                let total = read(&numbers);
                drop(numbers);
                end.total(total)
            }
            large::AskMessage::Back(mut numbers, end) => {
                value += read(&numbers);
                write(&mut numbers, value);
                end.here(numbers)
            }
        };
        let Ok(next) = next else { return };
        end = next;
    }
}

type Client = large::Client<large::Ask>;

/// Empty, with room, and then with values: what is not counted is counted for nobody.
fn vector(bytes: usize, value: u64) -> ExVec<u64> {
    let mut numbers = ExVec::with_capacity(bytes / 8);
    numbers.extend_from_slice(&[value; 512]);
    while numbers.len() < bytes / 8 {
        numbers.extend_from_slice(&[value; 512]);
    }
    numbers
}

fn anew(client: Client, bytes: usize, value: u64) -> Client {
    let asked = client.sum(vector(bytes, value)).expect("alive");
    match asked.recv() {
        Ok(large::AnswerMessage::Total(total, client)) => {
            assert_eq!(total, value * (bytes / 8) as u64);
            client
        }
        _ => panic!("no answer"),
    }
}

fn back(client: Client, numbers: &mut Option<ExVec<u64>>, value: u64) -> Client {
    let mut sent = numbers.take().expect("it came back");
    write(&mut sent, value);
    match client.back(sent).expect("alive").recv() {
        Ok(large::AnswerMessage::Here(came, client)) => {
            std::hint::black_box(read(&came));
            *numbers = Some(came);
            client
        }
        _ => panic!("no answer"),
    }
}

fn client(_: u64) {
    let mut client: Client = find("/large", || {
        let (client, server) = large::channel().expect("memory");
        (client, server.into_any())
    });
    let mut says = find("/report", || {
        let (client, server) = report::channel().expect("memory");
        (client, server.into_any())
    });
    for bytes in SIZES {
        for there_and_back in [false, true] {
            let mut numbers = there_and_back.then(|| vector(bytes, 1));
            let mut taken = ExVec::with_capacity(TIMES);
            for value in 0..TIMES as u64 {
                let begin = cycles();
                client = match there_and_back {
                    false => anew(client, bytes, value),
                    true => back(client, &mut numbers, value),
                };
                taken.push(cycles() - begin);
            }
            let took = Took {
                back: there_and_back,
                bytes: bytes as u64,
                cycles: taken,
            };
            let heard = says.took(took).expect("the host listens").recv();
            let Ok(report::HeardMessage::Next(next)) = heard else {
                return;
            };
            says = next;
        }
    }
    let _ = says.end();
    // Until it is ended, so that nobody sees an end before the report.
    wait::park_until(Instant::now() + Duration::from_secs(10));
}

/// Opens a name, and waits for it to be bound.
fn find<C>(path: &str, channel: impl Fn() -> (C, mullion_sip::channel::AnyEndpoint)) -> C {
    loop {
        let (client, server) = channel();
        match open(path, server) {
            Ok(()) => return client,
            Err((NameError::Unbound, _)) => {
                wait::park_until(Instant::now() + Duration::from_millis(1));
            }
            Err((error, _)) => panic!("{path}: {error}"),
        }
    }
}

/// What a domain of this part runs, if it is one.
pub(crate) fn load(configuration: &str) -> Option<Vec<Member>> {
    let main = match configuration {
        "large server" => server,
        "large client" => client,
        _ => return None,
    };
    let options = Options {
        rights: Rights::all(),
        limits: Limits {
            exchange: u64::MAX,
            slice: Duration::from_secs(60),
            ..Limits::DEFAULT
        },
        ..Options::default()
    };
    Some(vec![Member {
        name: configuration.into(),
        // SAFETY: the programs keep nothing anywhere.
        begin: Box::new(move || spawn(unsafe { Program::new("large", main) }, 0, &options)),
    }])
}

fn domain(configuration: &str, core: usize, share: Option<Sharing>) -> Child {
    let launched = launch(&Launch {
        name: configuration.into(),
        configuration: configuration.into(),
        files: Vec::new(),
        workers: 1,
        processor: Some(core as u32),
        share,
        rights: Rights::all(),
        output: Output::Inherited,
        program: None,
    });
    launched.expect("a domain")
}

/// Cycles, by operation and size.
type Samples = std::collections::BTreeMap<(bool, usize), Vec<f64>>;

fn add(samples: &mut Samples, back: bool, bytes: usize, cycles: impl Iterator<Item = u64>) {
    let all = samples.entry((back, bytes)).or_default();
    all.extend(cycles.skip(WARM).map(|cycles| cycles as f64));
}

fn measure_domains(reports: &Service, place: Place, share: Option<Sharing>, all: &mut Samples) {
    let children = [
        domain("large server", place.core, share),
        domain("large client", 0, share),
    ];
    let mut end = report::Server::<report::Say>::from_any(reports.accept()).expect("a client's");
    while let Ok(report::SayMessage::Took(took, heard)) = end.recv() {
        let cycles = took.cycles.iter().copied();
        add(all, took.back, took.bytes as usize, cycles);
        let Ok(next) = heard.next() else { break };
        end = next;
    }
    for child in children {
        child.kill();
        child.wait();
    }
}

/// A pipe's other side: reads messages, and answers with their sums or, there and back, with as much.
pub(crate) fn pipe_peer(mut from: File, mut to: File, bytes: usize) {
    let mut numbers = vec![0u64; bytes / 8];
    let mut back = [0u8];
    while from.read_exact(&mut back).is_ok() {
        if from.read_exact(as_bytes(&mut numbers)).is_err() {
            return;
        }
        let total = read(&numbers);
        let answered = match back[0] {
            0 => to.write_all(&total.to_ne_bytes()),
            _ => {
                write(&mut numbers, total);
                to.write_all(as_bytes(&mut numbers))
            }
        };
        if answered.is_err() {
            return;
        }
    }
}

fn as_bytes(numbers: &mut [u64]) -> &mut [u8] {
    let bytes = size_of_val(numbers);
    // SAFETY: numbers are bytes, and any bytes are numbers.
    unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), bytes) }
}

fn measure_pipe(place: Place, all: &mut Samples) {
    for bytes in SIZES {
        let mut peer = crate::linux::start("large", place, bytes, Stdio::piped());
        let (to, from) = (peer.stdin.take(), peer.stdout.take());
        let (mut to, mut from) = (to.expect("a pipe"), from.expect("a pipe"));
        let mut numbers = vec![0u64; bytes / 8];
        for back in [false, true] {
            let times = (0..TIMES as u64).map(|value| {
                let begin = cycles();
                write(&mut numbers, value);
                to.write_all(&[back.into()]).expect("alive");
                to.write_all(as_bytes(&mut numbers)).expect("alive");
                let room = if back { numbers.len() } else { 1 };
                from.read_exact(as_bytes(&mut numbers[..room]))
                    .expect("alive");
                std::hint::black_box(read(&numbers[..room]));
                cycles() - begin
            });
            add(all, back, bytes, times.collect::<Vec<_>>().into_iter());
        }
        drop(to);
        peer.wait().expect("it ends");
    }
}

/// What the two sides do besides, in one thread.
fn measure_alone(all: &mut Samples) {
    for bytes in SIZES {
        let mut numbers = vec![0u64; bytes / 8];
        for back in [false, true] {
            let times = (0..TIMES as u64).map(|value| {
                let begin = cycles();
                for _ in 0..=u8::from(back) {
                    write(std::hint::black_box(&mut numbers), value);
                    std::hint::black_box(read(std::hint::black_box(&numbers)));
                }
                cycles() - begin
            });
            add(all, back, bytes, times.collect::<Vec<_>>().into_iter());
        }
    }
}

/// The host's thread must not stay on a core: it waits meanwhile.
pub(crate) fn measure_all(place: Place) {
    let reports = serve("/report", report::Contract::INFO).expect("free");
    let mut all: [Samples; 5] = Default::default();
    for _ in 0..ROUNDS {
        for ((_, share), samples) in ARRANGEMENTS.iter().zip(&mut all) {
            measure_domains(&reports, place, *share, samples);
        }
        let [.., pipe, alone] = &mut all;
        let linux = || {
            crate::cores::pin(0);
            measure_pipe(place, pipe);
            measure_alone(alone);
        };
        std::thread::scope(|scope| scope.spawn(linux).join().expect("no panic"));
    }
    let names = ARRANGEMENTS.map(|(name, _)| name);
    let names = names
        .into_iter()
        .chain(["Linux, pipe", "written and read, not sent"]);
    for (who, samples) in names.zip(all) {
        for ((back, bytes), samples) in samples {
            let operation = if back { BACK } else { ANEW };
            record(operation, who, place, bytes, samples);
        }
    }
}
