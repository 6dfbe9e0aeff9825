//! Talks to another guest, whom it knows by way of the `broker` only.
#![forbid(unsafe_code)]

use std::time::Duration;

use mullion_sip::process::names::NameError;
use mullion_sip::{ExVec, process, thread};
use sip_contracts::{echo, meet};

mullion_sip::sip_main! {
    name: "guest",
    main: main,
    contracts: [meet, echo],
}

/// Arguments: `serve` or `ask`, how many guests it meets, one after the other, and how often it asks each of them.
fn main(arguments: Vec<String>) -> Result<(), String> {
    let number = |index: usize| {
        let argument = arguments.get(index);
        argument
            .and_then(|text| text.parse::<u64>().ok())
            .unwrap_or(1)
    };
    for _ in 0..number(1) {
        match arguments.first().map(String::as_str) {
            Some("serve") => serve()?,
            _ => ask(number(2))?,
        }
    }
    Ok(())
}

/// Offers an end of a new channel, and serves whoever gets it.
fn serve() -> Result<(), String> {
    let (given, mut server) = echo::channel().map_err(|error| error.to_string())?;
    let offered = broker()?.offer(given).map_err(|error| error.to_string())?;
    offered.recv().map_err(|error| error.to_string())?;
    loop {
        let next = match server.recv().map_err(|error| error.to_string())? {
            echo::IdleMessage::Say(text, server) => server.said(text),
            echo::IdleMessage::Close => return Ok(()),
        };
        server = next.map_err(|error| error.to_string())?;
    }
}

/// Takes an end, and asks whoever has the other one.
fn ask(times: u64) -> Result<(), String> {
    let wanted = broker()?.want().map_err(|error| error.to_string())?;
    let Ok(meet::WantedMessage::Here(mut client)) = wanted.recv() else {
        return Err("nobody was introduced".into());
    };
    for asked in 0..times {
        let text = format!("message {asked}");
        let busy = client.say(ExVec::copy_of(text.as_bytes()));
        let said = busy.and_then(|busy| busy.recv());
        let Ok(echo::BusyMessage::Said(said, idle)) = said else {
            return Err(format!("gone at {text:?}"));
        };
        if *said != *text.as_bytes() {
            return Err(format!("{text:?} came back as {:?}", &*said));
        }
        client = idle;
    }
    client.close().map_err(|error| error.to_string())
}

fn broker() -> Result<meet::Client<meet::Idle>, String> {
    for _ in 0..2000 {
        let (client, server) = meet::channel().map_err(|error| error.to_string())?;
        match process::open("/broker", server.into_any()) {
            Ok(()) => return Ok(client),
            Err((NameError::Unbound | NameError::Busy, _)) => {
                thread::sleep(Duration::from_millis(5));
            }
            Err((error, _)) => return Err(error.to_string()),
        }
    }
    Err("there is no broker".into())
}
