//! A message there and back between two OS processes by iceoryx2, as rows for `make bench-sip`:
//! `mullion-bench-iceoryx2 --json FILE`.
//!
//! This program is one of the two and, run again, the other. *Awake*: both look for the next sample all the time, as
//! iceoryx2's own benchmark does. *Asleep*: both wait for an event of iceoryx2 beside the sample, and a millisecond
//! passes before each message. Samples go by pointer in memory that both have mapped.
//!
//! *iceoryx2*: nobody writes or reads them beyond their first byte, as with vectors in memory that domains of ours have
//! in common. *iceoryx2, copied*: whoever sends copies them in from memory of its own, whoever receives copies them
//! out, as between domains with heaps of their own.

use std::error::Error;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error>>;

const SIZES: [usize; 4] = [1, 32, 1 << 10, 32 << 10];
const LONGEST: usize = 32 << 10;
const PAUSE: Duration = Duration::from_millis(1);

/// What the two do with the bytes of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Payload {
    /// Leave them where they are.
    ByPointer,
    /// Have them in memory of their own.
    Copied,
}

impl Payload {
    fn who(self) -> &'static str {
        match self {
            Payload::ByPointer => "iceoryx2",
            Payload::Copied => "iceoryx2, copied",
        }
    }
}

/// The ports of one of the two.
struct Ports {
    publisher: Publisher<ipc::Service, [u8], ()>,
    subscriber: Subscriber<ipc::Service, [u8], ()>,
    notifier: Notifier<ipc::Service>,
    listener: Listener<ipc::Service>,
    /// Memory of its own, for messages that are copied.
    own: Vec<u8>,
    _node: Node<ipc::Service>,
}

impl Ports {
    /// Samples go out by the first name, and come by the second.
    fn open(run: &str, out: &str, from: &str) -> Outcome<Ports> {
        let node = NodeBuilder::new().create::<ipc::Service>()?;
        let samples = |name: &str| {
            let name = format!("mullion-bench/{run}/{name}");
            let service = node.service_builder(&name.as_str().try_into()?);
            let service = service.publish_subscribe::<[u8]>();
            let service = service.max_publishers(1).max_subscribers(1);
            Outcome::Ok(service.open_or_create()?)
        };
        let events = |name: &str| {
            let name = format!("mullion-bench/{run}/{name}-event");
            let service = node.service_builder(&name.as_str().try_into()?);
            Outcome::Ok(service.event().open_or_create()?)
        };
        Ok(Ports {
            publisher: samples(out)?
                .publisher_builder()
                .initial_max_slice_len(LONGEST)
                .create()?,
            subscriber: samples(from)?.subscriber_builder().create()?,
            notifier: events(out)?.notifier_builder().create()?,
            listener: events(from)?.listener_builder().create()?,
            own: vec![1; LONGEST],
            _node: node,
        })
    }

    /// Sends a message with a first byte; if it is copied, with what is in memory of its own behind that.
    fn send(&mut self, bytes: usize, mark: u8, payload: Payload, asleep: bool) -> Outcome<()> {
        let mut sample = self.publisher.loan_slice_uninit(bytes)?;
        match payload {
            Payload::ByPointer => {
                sample.payload_mut()[0].write(mark);
                // SAFETY: bytes of memory that has been mapped are bytes, whatever they are, and nobody reads more than
                // the first.
                unsafe { sample.assume_init() }.send()?;
            }
            Payload::Copied => {
                self.own[0] = mark;
                sample.write_from_slice(&self.own[..bytes]).send()?;
            }
        }
        if asleep {
            self.notifier.notify()?;
        }
        Ok(())
    }

    /// The length and the first byte of the next sample.
    fn receive(&mut self, payload: Payload, asleep: bool) -> Outcome<(usize, u8)> {
        loop {
            if let Some(sample) = self.subscriber.receive()? {
                let bytes = sample.payload();
                if payload == Payload::Copied {
                    self.own[..bytes.len()].copy_from_slice(bytes);
                }
                return Ok((bytes.len(), bytes[0]));
            }
            if asleep {
                // Events of samples that have been received already come too.
                self.listener.blocking_wait(|_| ())?;
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

/// The last message.
const END: u8 = 255;

/// From this message on all are copied.
const CHANGE: u8 = 254;

fn peer(run: &str, core: usize, asleep: bool) -> Outcome<()> {
    let mut ports = Ports::open(run, "back", "there")?;
    let mut payload = Payload::ByPointer;
    pin(core);
    // The other one has opened its ports before it started this process: it learns that these are open, too.
    ports.send(1, 0, payload, true)?;
    loop {
        let (bytes, mark) = ports.receive(payload, asleep)?;
        match mark {
            END => return Ok(()),
            CHANGE => payload = Payload::Copied,
            _ => ports.send(bytes, mark, payload, asleep)?,
        }
    }
}

fn measure(
    (first, core): (usize, usize),
    place: &str,
    asleep: bool,
    rows: &mut Vec<Value>,
) -> Outcome<()> {
    let run = format!("{}-{}", std::process::id(), rows.len());
    let mut ports = Ports::open(&run, "there", "back")?;
    pin(first);
    let mut other = start(&run, core, asleep)?;
    ports.receive(Payload::ByPointer, true)?;
    for payload in [Payload::ByPointer, Payload::Copied] {
        if payload == Payload::Copied {
            ports.send(1, CHANGE, payload, true)?;
        }
        for bytes in SIZES {
            let samples = samples(&mut ports, bytes, payload, asleep)?;
            rows.push(row(payload.who(), bytes, place, samples));
        }
    }
    ports.send(1, END, Payload::ByPointer, true)?;
    other.wait()?;
    Ok(())
}

/// Cycles of a message there and back, of each batch.
fn samples(ports: &mut Ports, bytes: usize, payload: Payload, asleep: bool) -> Outcome<Vec<f64>> {
    let (batches, times) = match (asleep, bytes) {
        (true, _) => (101, 1),
        (false, LONGEST..) => (101, 5),
        (false, _) => (51, 100),
    };
    let mut samples = Vec::new();
    let since = Instant::now();
    // The first is to warm.
    while samples.len() <= batches && (samples.len() < 10 || since.elapsed().as_secs() < 4) {
        if asleep {
            std::thread::sleep(PAUSE);
        }
        let begin = cycles();
        for _ in 0..times {
            ports.send(bytes, 1, payload, asleep)?;
            ports.receive(payload, asleep)?;
        }
        samples.push((cycles() - begin) as f64 / f64::from(times));
    }
    samples.remove(0);
    Ok(samples)
}

fn start(run: &str, core: usize, asleep: bool) -> Outcome<Child> {
    let state = if asleep { "asleep" } else { "awake" };
    let core = core.to_string();
    let mut command = Command::new(std::env::current_exe()?);
    Ok(command.args(["--peer", run, &core, state]).spawn()?)
}

/// In the form of `mullion-sip`'s benchmark.
fn row(who: &str, bytes: usize, place: &str, mut samples: Vec<f64>) -> Value {
    samples.sort_by(f64::total_cmp);
    let at = |quarter: usize| samples[(samples.len() - 1) * quarter / 4];
    eprintln!("{who}, {place}, {bytes} bytes: {:.0}", at(2));
    json!({
        "operation": "message there and back", "who": who, "where": place, "bytes": bytes,
        "least": at(0), "first_quartile": at(1), "median": at(2), "third_quartile": at(3),
        "batches": samples.len(), "paper": null, "aim": null,
    })
}

fn cycles() -> u64 {
    // SAFETY: every x86-64 has the counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The cores that the program may use. To be asked for before it stays on one.
fn cores() -> Vec<usize> {
    // SAFETY: a set of processors is plain data, and so is what is asked about it.
    unsafe {
        let mut all: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&all), &mut all);
        let cores = 0..libc::CPU_SETSIZE as usize;
        cores.filter(|core| libc::CPU_ISSET(*core, &all)).collect()
    }
}

/// Stays on one of them.
fn pin(core: usize) {
    // SAFETY: a set of processors is plain data, for which zero is valid; the call reads it.
    unsafe {
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut one);
        libc::sched_setaffinity(0, size_of_val(&one), &one);
    }
}

fn main() -> Outcome<()> {
    set_log_level(LogLevel::Error);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["--peer", run, core, state] => peer(run, core.parse()?, state == "asleep"),
        ["--json", file, ref places @ ..] => {
            let all = cores();
            let core = |place: usize| all[place % all.len()];
            let places: Vec<usize> = places.iter().flat_map(|place| place.parse()).collect();
            let mut rows = Vec::new();
            measure(
                (core(0), core(0)),
                "OS processes, one core, asleep",
                true,
                &mut rows,
            )?;
            let names = ["two cores", "two far cores"];
            for (place, name) in places.into_iter().zip(names) {
                let (cores, name) = ((core(0), core(place)), format!("OS processes, {name}"));
                measure(cores, &name, false, &mut rows)?;
                measure(cores, &format!("{name}, asleep"), true, &mut rows)?;
            }
            std::fs::write(file, serde_json::to_string(&json!({ "rows": rows }))?)?;
            Ok(())
        }
        _ => Err("usage: --json FILE [NEAR [FAR]]: places of cores, beside the first".into()),
    }
}
