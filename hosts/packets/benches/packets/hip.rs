//! A hardware isolated process: the module in an OS process without powers, a batch of frames there and back by a
//! channel. Vectors of that size lie in memory that both have, and go by pointer.

use crate::native::InPlace;
use crate::time;
use crate::walls::Wall;
use mullion_hip::{Launch, Member, Output, Sharing, launch};
use mullion_packets::filter::Filter;
use mullion_packets::frame;
use mullion_sip::channel::Contract;
use mullion_sip::process::names::NameError;
use mullion_sip::process::{Child, Options, Program, Rights, SpawnError, open, serve, spawn};
use mullion_sip::{ExVec, contract};
use mullion_sip_hosting::{Host, Start};
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

contract! {
    #[endless]
    mod frames {
        Ask: client { Batch(ExVec<u8>) -> Answer }
        Answer: server { Back(ExVec<u8>) -> Ask }
    }
}

thread_local! {
    /// The host's power over its processes, with a worker: of the thread that measures.
    static HOST: Host = {
        let host = Host::begin().expect("the first");
        let workers = NonZeroUsize::new(1);
        host.start(Start { workers }).expect("a worker");
        host
    };
}

/// The module, in its OS process.
static MODULE: Mutex<Option<Module>> = Mutex::new(None);
/// What is to be measured next, and what was found.
static JOB: Mutex<Option<Job>> = Mutex::new(None);

struct Module(InPlace);

// SAFETY: it is a room of this process and an entry of a library; the mutex's holder alone uses them.
unsafe impl Send for Module {}

struct Job {
    frames: Vec<Vec<u8>>,
    filter: Filter,
    at_least: Duration,
    bytes: u64,
    found: f64,
}

/// Frames one behind the other, each behind its length.
fn pack<'f>(frames: impl Iterator<Item = &'f [u8]>, capacity: usize) -> ExVec<u8> {
    let mut packed = ExVec::with_capacity(capacity);
    for frame in frames {
        packed.extend_from_slice(&(frame.len() as u32).to_le_bytes());
        packed.extend_from_slice(frame);
    }
    packed
}

fn unpack(mut packed: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = packed.split_first_chunk()?;
        let (frame, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        packed = rest;
        Some(frame)
    })
}

fn serve_frames(_: u64) {
    let Ok(service) = serve("/frames", frames::Contract::INFO) else {
        return;
    };
    let mut module = MODULE.lock().expect("nobody panicked");
    let module = &mut module.as_mut().expect("it was loaded").0;
    loop {
        let Ok(mut end) = frames::Server::<frames::Ask>::from_any(service.accept()) else {
            return;
        };
        while let Ok(frames::AskMessage::Batch(packed, next)) = end.recv() {
            let batch: Vec<&[u8]> = unpack(&packed).collect();
            module.pass(&batch);
            let length = module.results(batch.len()).map(|frame| 4 + frame.len());
            let answer = pack(module.results(batch.len()), length.sum());
            match next.back(answer) {
                Ok(next) => end = next,
                Err(_) => break,
            }
        }
    }
}

fn client() -> frames::Client<frames::Ask> {
    loop {
        let (client, server) = frames::channel().expect("memory");
        match open("/frames", server.into_any()) {
            Ok(()) => return client,
            Err((NameError::Unbound, _)) => {
                mullion_sip::wait::park_until(Instant::now() + Duration::from_millis(2));
            }
            Err((error, _)) => panic!("{error}"),
        }
    }
}

/// Does the job.
fn measure(_: u64) {
    let mut job = JOB.lock().expect("nobody panicked");
    let job = job.as_mut().expect("there is one");
    let (mut end, frames) = (Some(client()), &job.frames);
    let length: usize = frames.iter().map(|frame| 4 + frame.len()).sum();
    let mut bytes = 0;
    job.found = time(frames.len(), job.at_least, &mut || {
        for frame in frames {
            assert!(job.filter.holds(&frame::layout(frame)));
        }
        let packed = pack(frames.iter().map(Vec::as_slice), length);
        let asked = end.take().expect("it came back").batch(packed);
        match asked.expect("alive").recv() {
            Ok(frames::AnswerMessage::Back(packed, client)) => {
                bytes = unpack(&packed).map(|frame| frame.len() as u64).sum();
                end = Some(client);
            }
            Err(_) => panic!("no answer"),
        }
    });
    job.bytes = bytes;
}

fn process(main: fn(u64)) -> Result<Child, SpawnError> {
    // SAFETY: the programs keep nothing of their heaps anywhere.
    let program = unsafe { Program::new("member", main) };
    let options = Options {
        rights: Rights::all(),
        ..Options::default()
    };
    spawn(program, 0, &options)
}

/// What a domain runs: the module of the library that its configuration names.
pub(crate) fn load(library: &str, _: Vec<OwnedFd>) -> Result<Vec<Member>, String> {
    let module = InPlace::library(Path::new(library), "any").ok_or("no such module")?;
    *MODULE.lock().expect("nobody panicked") = Some(Module(module));
    Ok(vec![Member {
        name: "module".into(),
        begin: Box::new(|| process(serve_frames)),
    }])
}

pub(crate) struct Hip {
    domain: Child,
    filter: &'static str,
}

impl Hip {
    pub(crate) fn start(library: &Path, filter: &'static str) -> Result<Box<dyn Wall>, String> {
        HOST.with(|_| ());
        let domain = launch(&Launch {
            name: "module".into(),
            configuration: library.display().to_string(),
            files: Vec::new(),
            workers: 1,
            processor: Some(1),
            share: Some(Sharing::Open),
            rights: Rights::all(),
            output: Output::Inherited,
            program: None,
        });
        let domain = domain.map_err(|error| error.to_string())?;
        Ok(Box::new(Hip { domain, filter }))
    }

    fn job(&self, frames: &[Vec<u8>], at_least: Duration) -> Job {
        *JOB.lock().expect("nobody panicked") = Some(Job {
            frames: frames.to_vec(),
            filter: self.filter.parse().expect("it was parsed before"),
            at_least,
            bytes: 0,
            found: f64::INFINITY,
        });
        let exit = process(measure).expect("a process").wait();
        assert!(exit.cause.is_success(), "{exit:?}");
        let mut job = JOB.lock().expect("nobody panicked");
        job.take().expect("it was there")
    }
}

impl Wall for Hip {
    fn pass(&mut self, frames: &[Vec<u8>]) -> u64 {
        self.job(frames, Duration::ZERO).bytes
    }

    /// Within a process, as only processes have channels.
    fn time(&mut self, frames: &[Vec<u8>], at_least: Duration) -> f64 {
        self.job(frames, at_least).found
    }
}

impl Drop for Hip {
    fn drop(&mut self) {
        self.domain.kill();
        self.domain.wait();
    }
}
