//! Attacks that are refused, and that the process outlives.

use std::backtrace::Backtrace;
use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant};
use std::{env, fs, panic, ptr};

use mullion_sip::channel::{AnyEndpoint, Contract};
use mullion_sip::exchange::{HeapError, wire};
use mullion_sip::kernel::{Refusal, kernel};
use mullion_sip::owner::Owner;
use mullion_sip::process::names::{self, NAMES, NameError};
use mullion_sip::process::{BACKLOG, open, serve};
use mullion_sip::thread::{self, ThreadError};
use mullion_sip::wait::{self, Waiter};
use mullion_sip::{ExBox, ExString, ExVec, Exchange, manifest};
use sip_contracts::{bell, echo};

/// An attack, which is true if it was refused.
type Attack = (&'static str, fn() -> bool);

pub(crate) fn all() -> Result<(), String> {
    let groups = [
        FILES.as_slice(),
        &POWERS,
        &NAMED,
        &NUMBERS,
        &MEMORY,
        &WAITING,
    ];
    let through: Vec<&str> = groups
        .into_iter()
        .flatten()
        .filter_map(|(name, is_refused)| {
            thread::yield_now();
            (!is_refused()).then_some(*name)
        })
        .collect();
    println!(
        "{} attacks",
        groups.iter().map(|group| group.len()).sum::<usize>()
    );
    if through.is_empty() {
        Ok(())
    } else {
        Err(through.join(" "))
    }
}

/// The standard library's way to the system.
const FILES: [Attack; 18] = [
    ("read a file", || denied(fs::read("/etc/hostname"))),
    ("read the memory of the host", || {
        denied(fs::read("/proc/self/mem"))
    }),
    ("list the memory of the host", || {
        denied(fs::read_to_string("/proc/self/maps"))
    }),
    ("write a file", || denied(fs::write("/tmp/attacker", "1"))),
    ("append to a file", || {
        denied(fs::OpenOptions::new().append(true).open("/tmp/attacker"))
    }),
    ("make a file", || {
        denied(fs::File::create_new("/tmp/attacker"))
    }),
    ("write the memory of the host", || {
        denied(fs::OpenOptions::new().write(true).open("/proc/self/mem"))
    }),
    ("look at a file", || fs::metadata("/etc/hostname").is_err()),
    ("find a file", || {
        !fs::exists("/etc/hostname").unwrap_or(false)
    }),
    ("resolve a path", || fs::canonicalize("/proc/self").is_err()),
    ("read a link", || fs::read_link("/proc/self/exe").is_err()),
    ("find the directory", || env::current_dir().is_err()),
    ("read a variable", || {
        env::var_os("PATH").is_none() && env::var_os("HOME").is_none()
    }),
    ("read the host's arguments", || {
        env::args_os().next().is_none()
    }),
    ("read the input", || {
        matches!(std::io::stdin().read(&mut [0; 8]), Ok(0) | Err(_))
    }),
    ("reopen the input", || denied(fs::File::open("/dev/stdin"))),
    ("name the program", || env::current_exe().is_err()),
    ("print a backtrace", || {
        !Backtrace::force_capture().to_string().is_empty()
    }),
];

fn denied<T>(result: std::io::Result<T>) -> bool {
    result.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// What the host alone may do.
const POWERS: [Attack; 8] = [
    ("be the host", || {
        (kernel().process)() != Owner::HOST.to_bits()
    }),
    ("kill anybody", || {
        let me = (kernel().process)();
        let all = (0..2_000).flat_map(|place| (0..4).map(move |life| life << 32 | place));
        all.filter(|number| *number != me)
            .all(|number| (kernel().kill)(number) != 0)
    }),
    ("kill the host", || (kernel().kill)(0) != 0),
    ("be one's own child", || {
        (kernel().kill)((kernel().process)()) != 0
    }),
    ("close the ends of others", || {
        (0..2_000).all(|number| (kernel().close)(1 << 32 | number) != 0)
    }),
    ("find an end by any number", || {
        [0, 1, u64::MAX, 1 << 32, u64::MAX << 32]
            .into_iter()
            .all(|number| (kernel().close)(number) != 0)
    }),
    ("have a version of one's own", || {
        kernel().version == mullion_sip::kernel::VERSION
    }),
    ("give the pages of others back", || {
        let heap = Box::new([7u64; 64]);
        let near = ptr::from_ref(&*heap).addr();
        let places = (0..256)
            .map(|unit| (near & !0x3fff).wrapping_add(unit << 14))
            .chain([0, 1, usize::MAX, 1 << 47]);
        places.for_each(|place| (kernel().release_pages)(ptr::without_provenance_mut(place)));
        heap.iter().all(|number| *number == 7)
    }),
];

/// Names. The process may bind and look up `/attacker`.
const NAMED: [Attack; 16] = [
    ("bind anything", || {
        bound("/victim") == Err(NameError::NotPermitted)
    }),
    ("bind what the host has", || {
        bound("/host/web") == Err(NameError::NotPermitted)
    }),
    ("bind by a longer beginning", || {
        bound("/attackers") == Err(NameError::NotPermitted)
    }),
    ("bind by going up", || {
        bound("/attacker/../victim") == Err(NameError::Malformed)
    }),
    ("bind without a name", || {
        bound("") == Err(NameError::Malformed) && bound("/") == Err(NameError::Malformed)
    }),
    ("bind a long name", || {
        bound(&format!("/attacker/{}", "x".repeat(1 << 20))) == Err(NameError::Malformed)
    }),
    ("bind with a zero", || {
        bound("/victim\0/attacker") == Err(NameError::NotPermitted)
    }),
    ("unbind what the host has", || {
        names::unbind("/host/web") != Ok(())
    }),
    ("unbind what another has", || {
        names::unbind("/victim") != Ok(())
    }),
    ("open anything", || {
        opened("/victim") == Some(NameError::NotPermitted)
    }),
    ("open what the host has", || {
        opened("/host/web") == Some(NameError::NotPermitted)
    }),
    ("bind twice", || {
        let first = serve("/attacker/twice", echo::Contract::INFO);
        first.is_ok() && bound("/attacker/twice") == Err(NameError::Taken)
    }),
    ("unbind under a service", || {
        let service = serve("/attacker/served", echo::Contract::INFO);
        service.is_ok() && names::unbind("/attacker/served") == Err(NameError::Served)
    }),
    ("speak another contract", || {
        let _service = serve("/attacker/other", bell::Contract::INFO);
        opened("/attacker/other") == Some(NameError::ContractDiffers)
    }),
    ("queue without end", || {
        let Ok(service) = serve("/attacker/queue", echo::Contract::INFO) else {
            return false;
        };
        let mut clients = Vec::new();
        let busy = (0..=BACKLOG).find(|_| match end() {
            Some((client, server)) => {
                clients.push(client);
                matches!(open("/attacker/queue", server), Err((NameError::Busy, _)))
            }
            None => true,
        });
        let taken = std::iter::from_fn(|| service.try_accept()).count();
        busy == Some(BACKLOG) && taken == BACKLOG
    }),
    ("bind without end", || {
        let most = (0..=NAMES).find(|number| bound(&format!("/attacker/many/{number}")).is_err());
        (0..NAMES).for_each(|number| {
            let _ = names::unbind(&format!("/attacker/many/{number}"));
        });
        most == Some(NAMES)
    }),
];

fn bound(path: &str) -> Result<(), NameError> {
    names::bind(path, [7; 32])
}

fn end() -> Option<(echo::Client<echo::Idle>, AnyEndpoint)> {
    let (client, server) = echo::channel().ok()?;
    Some((client, server.into_any()))
}

fn opened(path: &str) -> Option<NameError> {
    let (_client, server) = end()?;
    open(path, server).err().map(|(error, _)| error)
}

/// Bytes that somebody else made up.
const NUMBERS: [Attack; 6] = [
    ("take any bytes for a manifest", || {
        noise().all(|bytes| manifest::read(&bytes).is_err())
    }),
    ("take any bytes for a list", || {
        noise()
            .all(|bytes| wire::from_bytes::<ExVec<ExString>>(&bytes).is_err() || bytes.len() < 64)
    }),
    ("take any bytes for a truth", || {
        wire::from_bytes::<bool>(&[2]).is_err()
    }),
    ("take any bytes for a letter", || {
        wire::from_bytes::<char>(&0xd800u32.to_le_bytes()).is_err()
    }),
    ("take any bytes for text", || {
        ExString::try_from(ExVec::copy_of(&[0xff, 0xfe])).is_err()
    }),
    ("take an end for another", || {
        let Some((_client, server)) = end() else {
            return false;
        };
        bell::Server::<bell::Ring>::from_any(server).is_err()
    }),
];

fn noise() -> impl Iterator<Item = Vec<u8>> {
    (0..200u32).map(|seed| {
        let mut state = seed.wrapping_mul(2_654_435_761) | 1;
        (0..seed as usize)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                state as u8
            })
            .collect()
    })
}

#[derive(Exchange)]
struct Chain {
    next: Option<ExBox<Chain>>,
}

/// More than its share.
const MEMORY: [Attack; 10] = [
    ("take pages without end", || {
        let pages: Vec<_> = std::iter::repeat_with(|| (kernel().allocate_pages)(64 << 10))
            .take_while(|page| !page.is_null())
            .take(1000)
            .collect();
        let count = pages.len();
        pages
            .into_iter()
            .for_each(|page| (kernel().release_pages)(page));
        count < 1000
    }),
    ("take all pages at once", || {
        [usize::MAX, usize::MAX / 2, 1 << 40]
            .into_iter()
            .all(|bytes| (kernel().allocate_pages)(bytes).is_null())
    }),
    ("give pages back twice", || {
        let page = (kernel().allocate_pages)(1 << 14);
        (kernel().release_pages)(page);
        let kept = Box::new([9u8; 16 << 10]);
        (kernel().release_pages)(page);
        kept.iter().all(|byte| *byte == 9)
    }),
    ("have the largest block", || {
        matches!(
            ExVec::<u8>::try_with_capacity(usize::MAX),
            Err(HeapError::TooLarge(_))
        )
    }),
    ("hold more than one's share", || {
        let mut all = Vec::new();
        let refused = loop {
            match ExVec::<u8>::try_with_capacity(64 << 10) {
                Ok(block) => all.push(block),
                Err(error) => break error,
            }
        };
        matches!(refused, HeapError::Limit { .. }) && all.len() < 32
    }),
    ("hide one's share in a queue", || {
        let mut waiting = Vec::new();
        loop {
            let sent = echo::channel().and_then(|(client, server)| {
                let mut text = ExVec::try_with_capacity(64 << 10)?;
                text.push(1);
                Ok((client.say(text), server))
            });
            match sent {
                Ok(pair) => waiting.push(pair),
                Err(error) => break matches!(error, HeapError::Limit { .. }) && waiting.len() < 32,
            }
        }
    }),
    ("leak one's share", || {
        // Forgotten blocks are the process's to its end: so many that others notice are not to be had.
        let leaked = (0..100_000)
            .take_while(|_| ExBox::try_new([1u64; 8]).map(std::mem::forget).is_ok())
            .take(100)
            .count();
        leaked == 100
    }),
    ("make a chain that is dropped deep", || {
        let mut chain = Chain { next: None };
        for _ in 0..3_000 {
            match ExBox::try_new(chain) {
                Ok(next) => chain = Chain { next: Some(next) },
                Err(_) => return false,
            }
        }
        drop(chain.next.take());
        true
    }),
    ("have more threads", || {
        let pause = || thread::sleep(Duration::from_millis(5));
        no_more_than_fifteen(|| thread::spawn(pause).err() == Some(ThreadError::TooMany))
    }),
    ("have more threads by the table", || {
        extern "C" fn pause(_: usize) {
            thread::sleep(Duration::from_millis(5));
        }
        no_more_than_fifteen(|| (kernel().create_thread)(pause, 0) == Refusal::TooMany as u32)
    }),
];

/// Whether the sixteenth thread is the first that is refused, as there are sixteen with this one. The attempt makes a thread that
/// ends soon, and says whether it was refused because there are too many. On a busy machine threads of the round before may not
/// have ended yet. So a round that makes fewer says nothing, and another one follows.
fn no_more_than_fifteen(is_refused: impl Fn() -> bool) -> bool {
    for _round in 0..500 {
        let made = (0..100).take_while(|_| !is_refused()).count();
        thread::sleep(Duration::from_millis(20));
        if made >= 15 {
            return made == 15;
        }
    }
    false
}

/// Waking, waiting and unwinding.
const WAITING: [Attack; 7] = [
    ("wake anybody", || {
        (0..20_000u64).for_each(|number| {
            wait::unpark(Waiter::from_bits(
                number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            ))
        });
        true
    }),
    ("wake by the table", || {
        [0, 1, u64::MAX, 1 << 63]
            .into_iter()
            .for_each(|number| (kernel().unpark)(number));
        true
    }),
    ("wake oneself for ever", || {
        (0..1000).for_each(|_| wait::unpark(wait::current()));
        thread::sleep(Duration::from_millis(1));
        true
    }),
    ("wait for the past", || {
        (kernel().park)(0);
        thread::sleep_until(Instant::now());
        true
    }),
    ("use a closed channel", || {
        let Ok((client, server)) = echo::channel() else {
            return false;
        };
        drop(server);
        client.say(ExVec::new()).is_err()
    }),
    ("unwind without a panic", || {
        panic::catch_unwind(|| panic::resume_unwind(Box::new(5u8))).is_err()
    }),
    ("unwind in a thread", || {
        let spawned =
            thread::spawn(|| drop(panic::catch_unwind(|| panic::resume_unwind(Box::new(())))));
        thread::sleep(Duration::from_millis(1));
        spawned.is_ok()
    }),
];
