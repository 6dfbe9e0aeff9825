//! A client of `store`, and many at once: each of its channels puts, gets and removes keys of its own.
#![forbid(unsafe_code)]

use std::time::Duration;

use mullion_sip::channel::ChannelClosed;
use mullion_sip::process::names::NameError;
use mullion_sip::{ExString, ExVec, process, thread};
use sip_contracts::Pair;
use sip_contracts::store::{self, BusyMessage, Client, Idle};

mullion_sip::sip_main! {
    name: "customer",
    main: main,
    contracts: [store],
    limits: { memory: 4 << 20, threads: 1, children: 0 },
}

/// Arguments: its name, how many channels it opens, and how many rounds it goes.
fn main(arguments: Vec<String>) -> Result<(), Box<dyn std::error::Error>> {
    let [name, channels, rounds] = &arguments[..] else {
        return Err("NAME CHANNELS ROUNDS".into());
    };
    let (channels, rounds): (usize, u32) = (channels.parse()?, rounds.parse()?);
    let mut all: Vec<Client<Idle>> = Vec::new();
    for _ in 0..channels {
        all.push(find()?);
    }
    for round in 0..rounds {
        let mut next = Vec::with_capacity(all.len());
        for (index, client) in all.into_iter().enumerate() {
            next.push(one(
                client,
                &format!("{name}/{index}"),
                &round.to_le_bytes(),
            )?);
        }
        all = next;
    }
    println!("{name}: {rounds} rounds on {channels} channels");
    Ok(())
}

/// A value is put, found, and removed; then it is not there.
fn one(
    client: Client<Idle>,
    key: &str,
    value: &[u8],
) -> Result<Client<Idle>, Box<dyn std::error::Error>> {
    let pair = Pair {
        key: ExString::from(key),
        value: ExVec::copy_of(value),
    };
    let (before, client) = answer(client.put(pair)?)?;
    let (found, client) = answer(client.get(ExString::from(key))?)?;
    let (removed, client) = answer(client.remove(ExString::from(key))?)?;
    let (after, client) = answer(client.get(ExString::from(key))?)?;
    let wanted = [None, Some(value), Some(value), None];
    if [&before, &found, &removed, &after].map(|one| one.as_deref()) != wanted {
        return Err(format!("{key}: {before:?}, {found:?}, {removed:?}, {after:?}").into());
    }
    Ok(client)
}

type Answer = (Option<ExVec<u8>>, Client<Idle>);

fn answer(busy: Client<store::Busy>) -> Result<Answer, ChannelClosed> {
    Ok(match busy.recv()? {
        BusyMessage::Value(value, client) => (Some(value), client),
        BusyMessage::Nothing(client) | BusyMessage::Full(client) => (None, client),
    })
}

fn find() -> Result<Client<Idle>, Box<dyn std::error::Error>> {
    for _ in 0..1000 {
        let (client, server) = store::channel()?;
        match process::open("/store", server.into_any()) {
            Ok(()) => return Ok(client),
            // Not there yet, or many are before us.
            Err((NameError::Unbound | NameError::Busy, _)) => {
                thread::sleep(Duration::from_millis(2));
            }
            Err((error, _)) => return Err(error.into()),
        }
    }
    Err("nobody serves /store".into())
}
