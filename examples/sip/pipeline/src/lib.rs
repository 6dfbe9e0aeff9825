//! Three processes of one library: numbers are made, the primes among them stay, and they are added up. A block of
//! numbers is made once; from stage to stage its pointer moves, and with it the right to use it.
#![forbid(unsafe_code)]

use std::time::Duration;

use mullion_sip::channel::{ChannelClosed, Contract};
use mullion_sip::process::names::NameError;
use mullion_sip::{ExVec, process, thread};
use sip_contracts::numbers::{self, BusyMessage, Client, Idle, IdleMessage, Server};

mullion_sip::sip_main! {
    name: "pipeline",
    main: main,
    contracts: [numbers],
    // Compute-bound stages let others run at each message only.
    limits: { memory: 4 << 20, threads: 1, children: 0 },
}

/// Numbers of a block.
const BATCH: u64 = 1000;

/// Arguments: `source LIMIT`, `filter` or `sink`.
fn main(arguments: Vec<String>) -> Result<(), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["source", limit] => source(limit.parse().map_err(|_| "no number".to_owned())?),
        ["filter"] => filter(),
        ["sink"] => sink(),
        _ => return Err("source LIMIT, filter or sink".into()),
    }
    .map_err(|error| error.to_string())
}

/// The numbers below a limit.
fn source(limit: u64) -> Result<(), Box<dyn std::error::Error>> {
    let mut next = 0;
    provide("/pipeline/numbers", || {
        let batch: ExVec<u64> = (next..limit.min(next + BATCH)).collect();
        next += BATCH;
        Ok((!batch.is_empty()).then_some(batch))
    })
}

/// The primes of what it gets.
fn filter() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = Some(find("/pipeline/numbers")?);
    provide("/pipeline/primes", || {
        let Some((mut batch, rest)) = next(numbers.take().ok_or(ChannelClosed)?)? else {
            return Ok(None);
        };
        numbers = Some(rest);
        keep(&mut batch, is_prime);
        Ok(Some(batch))
    })
}

/// The sum of what it gets.
fn sink() -> Result<(), Box<dyn std::error::Error>> {
    let mut primes = find("/pipeline/primes")?;
    let (mut count, mut sum) = (0, 0);
    while let Some((batch, rest)) = next(primes)? {
        count += batch.len();
        sum += batch.iter().sum::<u64>();
        primes = rest;
    }
    println!("{count} primes, which add up to {sum}");
    Ok(())
}

/// Serves one client with what `make` makes, until there is no more.
fn provide(
    path: &str,
    mut make: impl FnMut() -> Result<Option<ExVec<u64>>, ChannelClosed>,
) -> Result<(), Box<dyn std::error::Error>> {
    let service = process::serve(path, numbers::Contract::INFO)?;
    let mut client = Server::<Idle>::from_any(service.accept())?;
    while let IdleMessage::Next(busy) = client.recv()? {
        match make()? {
            Some(batch) => client = busy.batch(batch)?,
            None => return Ok(busy.last()?),
        }
    }
    Ok(())
}

/// The next stage may have begun before this one.
fn find(path: &str) -> Result<Client<Idle>, Box<dyn std::error::Error>> {
    for _ in 0..1000 {
        let (client, server) = numbers::channel()?;
        match process::open(path, server.into_any()) {
            Ok(()) => return Ok(client),
            Err((NameError::Unbound, _)) => thread::sleep(Duration::from_millis(2)),
            Err((error, _)) => return Err(error.into()),
        }
    }
    Err(format!("nobody serves {path}").into())
}

type Next = Option<(ExVec<u64>, Client<Idle>)>;

fn next(stage: Client<Idle>) -> Result<Next, ChannelClosed> {
    Ok(match stage.next()?.recv()? {
        BusyMessage::Batch(batch, rest) => Some((batch, rest)),
        BusyMessage::Last => None,
    })
}

/// Within the block that came, so that nothing is allocated.
fn keep(batch: &mut ExVec<u64>, wanted: fn(u64) -> bool) {
    let mut kept = 0;
    for index in 0..batch.len() {
        let number = batch[index];
        if wanted(number) {
            batch[kept] = number;
            kept += 1;
        }
    }
    batch.truncate(kept);
}

fn is_prime(number: u64) -> bool {
    number >= 2
        && (2..)
            .take_while(|factor| factor * factor <= number)
            .all(|factor| !number.is_multiple_of(factor))
}
