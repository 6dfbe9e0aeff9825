//! A client of `echo`: says something so many times, and checks what comes back.
#![forbid(unsafe_code)]

use std::time::Duration;

use mullion_sip::process::names::NameError;
use mullion_sip::{ExVec, process, thread};
use sip_contracts::echo;

mullion_sip::sip_main! {
    name: "asker",
    main: main,
    contracts: [echo],
}

/// Arguments: how often (0: for ever), the pause between in microseconds, whom (`/echo`), and how long what it says is
/// at least.
fn main(arguments: Vec<String>) -> Result<(), String> {
    let number = |index: usize| {
        arguments
            .get(index)
            .and_then(|text| text.parse::<u64>().ok())
    };
    let times = number(0).unwrap_or(1);
    let pause = number(1).unwrap_or(0);
    let length = number(3).unwrap_or(0) as usize;
    let path = arguments.get(2).map_or("/echo", String::as_str);
    let mut asked = 0;
    // A service that goes away comes back, or the configuration has no such service at all.
    let mut left = 200;
    while asked < times || times == 0 {
        let Some(mut client) = connect(path)? else {
            left -= 1;
            if left == 0 {
                return Err(format!("nobody serves {path}"));
            }
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        while asked < times || times == 0 {
            let mut text = format!("message {asked}").into_bytes();
            text.resize(text.len().max(length), b'.');
            let Ok(busy) = client.say(ExVec::copy_of(&text)) else {
                break;
            };
            let Ok(echo::BusyMessage::Said(said, idle)) = busy.recv() else {
                break;
            };
            if *said != *text {
                return Err(format!("message {asked} came back as {:?}", &*said));
            }
            client = idle;
            asked += 1;
            if pause > 0 {
                thread::sleep(Duration::from_micros(pause));
            }
        }
    }
    Ok(())
}

fn connect(path: &str) -> Result<Option<echo::Client<echo::Idle>>, String> {
    let (client, server) = echo::channel().map_err(|error| error.to_string())?;
    match process::open(path, server.into_any()) {
        Ok(()) => Ok(Some(client)),
        Err((NameError::Unbound | NameError::Busy, _)) => Ok(None),
        Err((error, _)) => Err(error.to_string()),
    }
}
