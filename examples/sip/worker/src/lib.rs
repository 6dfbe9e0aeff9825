//! Does what it is given, and some of it is more than it can bear. It is started again as its configuration says
//! (`restart = "on-failure"`), with nothing of the life before.
#![forbid(unsafe_code)]

use std::time::Duration;

use mullion_sip::process::names::NameError;
use mullion_sip::{process, thread};
use sip_contracts::jobs::{self, WaitingMessage};

mullion_sip::sip_main! {
    name: "worker",
    main: main,
    contracts: [jobs],
    limits: { memory: 1 << 20, threads: 1, children: 0, slice: Duration::from_millis(50) },
}

fn main(_: Vec<String>) -> Result<(), Box<dyn std::error::Error>> {
    let Some(mut idle) = find()? else {
        return Ok(());
    };
    loop {
        idle = match idle.fetch()?.recv()? {
            WaitingMessage::Job(number, working) => working.done(work(number))?,
            WaitingMessage::NoMore => return Ok(()),
        };
    }
}

/// Squares; every seventh piece fails in a way of its own.
fn work(number: u32) -> u64 {
    match number {
        7 => panic!("the seventh was too much"),
        14 => loop {
            std::hint::spin_loop();
        },
        21 => {
            let mut all = Vec::new();
            loop {
                all.push(vec![1u8; 4096]);
            }
        }
        _ => u64::from(number) * u64::from(number),
    }
}

/// Nothing, if for a while nobody has work.
fn find() -> Result<Option<jobs::Client<jobs::Idle>>, Box<dyn std::error::Error>> {
    for _ in 0..100 {
        let (client, server) = jobs::channel()?;
        match process::open("/jobs", server.into_any()) {
            Ok(()) => return Ok(Some(client)),
            Err((NameError::Unbound, _)) => thread::sleep(Duration::from_millis(5)),
            Err((error, _)) => return Err(error.into()),
        }
    }
    Ok(None)
}
