//! The web server's parser: the one process that reads what strangers write. It has no right but to be asked, and
//! whatever a stranger makes of it, it has nothing to lose.
#![forbid(unsafe_code)]

mod request;

use mullion_sip::channel::{ChannelClosed, Contract};
use mullion_sip::process::names::NameError;
use mullion_sip::{ExString, process, thread};
use request::Parsed;
use sip_contracts::Request;
use sip_contracts::parse::{self, Idle, IdleMessage, Server};

mullion_sip::sip_main! {
    name: "web-parser",
    main: main,
    contracts: [parse],
    limits: { memory: 4 << 20, threads: 100, children: 0 },
}

/// Arguments: the path at whose sight it panics, to see what becomes of the others (none).
fn main(arguments: Vec<String>) -> Result<(), NameError> {
    let fatal = arguments.into_iter().next();
    let service = process::serve("/web/parser", parse::Contract::INFO)?;
    loop {
        if let Ok(client) = Server::<Idle>::from_any(service.accept()) {
            let fatal = fatal.clone();
            // A client too many is turned away: its endpoint is dropped.
            let _ = thread::spawn(move || {
                let _ = answer(client, fatal.as_deref());
            });
        }
    }
}

fn answer(mut client: Server<Idle>, fatal: Option<&str>) -> Result<(), ChannelClosed> {
    while let IdleMessage::Bytes(bytes, busy) = client.recv()? {
        client = match request::parse(&bytes) {
            Parsed::More => busy.more()?,
            Parsed::Bad(status) => busy.bad(status)?,
            Parsed::Request(request) => {
                assert!(fatal != Some(&*request.path), "a bug in the parser");
                busy.request(Request {
                    head_only: request.head_only,
                    keep: request.keep,
                    path: ExString::from(&*request.path),
                    used: request.used as u32,
                })?
            }
        };
    }
    Ok(())
}
