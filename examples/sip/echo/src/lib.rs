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

/// Arguments: the name to serve at (`/echo`), how many clients to serve before it returns (0: no end), and at which
/// message to panic (none).
fn main(arguments: Vec<String>) -> Result<(), NameError> {
    let path = arguments.first().map_or("/echo", String::as_str);
    let number = |index: usize| {
        arguments
            .get(index)
            .and_then(|text| text.parse::<u64>().ok())
    };
    let (clients, fails_at) = (number(1), number(2));
    let service = process::serve(path, echo::Contract::INFO)?;
    let served = Rc::new(Cell::new(0));
    for accepted in 1.. {
        let Ok(client) = echo::Server::<echo::Idle>::from_any(service.accept()) else {
            continue;
        };
        let served = Rc::clone(&served);
        // A client too many is turned away: its endpoint is dropped.
        let _ = thread::spawn(move || {
            let _ = answer(client, fails_at);
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

fn answer(
    mut client: echo::Server<echo::Idle>,
    fails_at: Option<u64>,
) -> Result<(), ChannelClosed> {
    for number in 1.. {
        match client.recv()? {
            echo::IdleMessage::Say(..) if Some(number) == fails_at => {
                panic!("at message {number}, as it was told")
            }
            echo::IdleMessage::Say(text, server) => client = server.said(text)?,
            echo::IdleMessage::Close => break,
        }
    }
    Ok(())
}
