//! A process that ends in the way that its argument says; for tests of what becomes of it.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::sync::Mutex;
use std::time::Duration;

use mullion_sip::exchange::HeapError;
use mullion_sip::process::names::NameError;
use mullion_sip::{ExBox, ExVec, process, thread};
use sip_contracts::echo;

mullion_sip::sip_main! {
    name: "odd",
    main: main,
    contracts: [echo],
    limits: { memory: 1 << 20, exchange: 1 << 20, threads: 4, slice: Duration::from_millis(100) },
}

static KEPT: Mutex<Vec<String>> = Mutex::new(Vec::new());
thread_local!(static ALSO_KEPT: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) });

fn main(arguments: Vec<String>) -> Result<(), String> {
    let mut words = arguments.iter().map(String::as_str);
    match words.next().unwrap_or("return") {
        "return" => Ok(()),
        "fail" => Err("as it was told".to_owned()),
        "exit" => process::exit(7),
        "panic" => panic!("on purpose, with {} arguments", arguments.len()),
        "shout" => panic!("\u{1b}[2Jone\ntwo"),
        "hook" => {
            std::panic::set_hook(Box::new(|_| {}));
            std::panic::panic_any(Loud)
        }
        "memory" => {
            let mut all = Vec::new();
            loop {
                all.push(vec![1u8; 4096]);
            }
        }
        "stack" => {
            println!("{}", deep(0));
            Ok(())
        }
        "loop" => loop {
            std::hint::spin_loop();
        },
        "abort" => std::process::abort(),
        "sleep" => {
            thread::sleep(Duration::from_secs(1000));
            Ok(())
        }
        "file" => std::fs::read("/etc/hostname")
            .map(|_| ())
            .map_err(|error| error.to_string()),
        "statics" => statics(),
        "names" => names(),
        "flood" => {
            let mut waiting = Vec::new();
            counted(1, || {
                let (client, server) = echo::channel()?;
                let mut text = ExVec::try_with_capacity(64 << 10)?;
                text.push(1);
                waiting.push((client.say(text), server));
                Ok(())
            })
        }
        "ends" => counted(100, || echo::channel().map(std::mem::forget)),
        "blocks" => counted(100, || ExBox::try_new([7u64; 16]).map(std::mem::forget)),
        other => Err(format!("no such way: {other}")),
    }
}

/// Nothing of a process runs after its end, so nobody reads this.
struct Loud;

impl Drop for Loud {
    fn drop(&mut self) {
        println!("a destructor ran after the end");
    }
}

fn deep(depth: u64) -> u64 {
    let room = [depth; 64];
    if std::hint::black_box(depth) == u64::MAX {
        return room[1];
    }
    deep(depth + 1) + room[depth as usize % 64]
}

/// Does it until it is refused, which has to be the case within its share of the exchange heap.
fn counted(least: u32, mut more: impl FnMut() -> Result<(), HeapError>) -> Result<(), String> {
    for count in 0..100_000 {
        match more() {
            Ok(()) => {}
            Err(HeapError::Limit { .. }) if count >= least => return Ok(()),
            Err(error) => return Err(format!("after {count}: {error}")),
        }
    }
    Err("there is no limit".to_owned())
}

/// Finds its statics as at the first time, leaves things of its heap there and a lock held, and fails.
fn statics() -> Result<(), String> {
    let mut kept = match KEPT.try_lock() {
        Ok(kept) => kept,
        Err(error) => return Err(format!("the lock: {error}")),
    };
    let also = ALSO_KEPT.with(|also| also.borrow().len());
    if !kept.is_empty() || also != 0 {
        return Err(format!("{} and {also} kept", kept.len()));
    }
    for number in 0..100 {
        kept.push(format!("of the heap {number}"));
        ALSO_KEPT.with(|also| also.borrow_mut().push(format!("also {number}")));
    }
    std::mem::forget(std::io::stdout().lock());
    std::panic::set_hook(Box::new(move |_| {}));
    process::exit(3)
}

/// Does with names what its rights do not allow.
fn names() -> Result<(), String> {
    let digest = [1; 32];
    let bound = process::names::bind("/odd", digest);
    let elsewhere = process::names::bind("/elsewhere", digest);
    let (_client, server) = echo::channel().map_err(|error| error.to_string())?;
    let looked_up = process::open("/echo", server.into_any()).map_err(|(error, _)| error);
    match (bound, elsewhere, looked_up) {
        (Ok(()), Err(NameError::NotPermitted), Err(NameError::NotPermitted)) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}
