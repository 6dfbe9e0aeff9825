//! A service that says back what it is told: one thread for each client.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use mullion_sip::channel::{ChannelClosed, Contract};
use mullion_sip::process::names::NameError;
use mullion_sip::{process, thread};
use sip_contracts::echo;

mullion_sip::sip_main! {
    name: "echo",
    main: main,
    contracts: [echo],
    limits: { memory: 4 << 20, threads: 64, children: 0 },
}

/// Arguments: the name to serve at (`/echo`), and how many clients to serve before it returns (0: no end).
fn main(arguments: Vec<String>) -> Result<(), NameError> {
    let path = arguments.first().map_or("/echo", String::as_str);
    let clients = arguments.get(1).and_then(|text| text.parse::<u64>().ok());
    let service = process::serve(path, echo::Contract::INFO)?;
    let served = Rc::new(Cell::new(0));
    for accepted in 1.. {
        let Ok(client) = echo::Server::<echo::Idle>::from_any(service.accept()) else {
            continue;
        };
        let served = Rc::clone(&served);
        // A client too many is turned away: its endpoint is dropped.
        let _ = thread::spawn(move || {
            let _ = answer(client);
            served.set(served.get() + 1);
        });
        if Some(accepted) == clients {
            break;
        }
    }
    while Some(served.get()) != clients {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn answer(mut client: echo::Server<echo::Idle>) -> Result<(), ChannelClosed> {
    loop {
        match client.recv()? {
            echo::IdleMessage::Say(text, server) => client = server.said(reply(text))?,
            echo::IdleMessage::Close => return Ok(()),
        }
    }
}

#[cfg(not(feature = "other-echo"))]
fn reply(text: mullion_sip::ExVec<u8>) -> mullion_sip::ExVec<u8> {
    text
}

#[cfg(feature = "other-echo")]
fn reply(text: mullion_sip::ExVec<u8>) -> (mullion_sip::ExVec<u8>, u32) {
    (text, 0)
}
