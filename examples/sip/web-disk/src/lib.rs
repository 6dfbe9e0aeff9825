//! The web server's disk: which files there are for strangers. It reads them by the host, below the one directory
//! that the configuration grants.
#![forbid(unsafe_code)]

use std::time::Duration;

use mullion_sip::channel::{ChannelClosed, Contract};
use mullion_sip::grant::directory::{self, BusyMessage, Client, Idle, IdleMessage, Server};
use mullion_sip::grant::{Found, Piece, Refused};
use mullion_sip::process::names::NameError;
use mullion_sip::{ExString, process, thread};

mullion_sip::sip_main! {
    name: "web-disk",
    main: main,
    contracts: [directory],
    limits: { memory: 4 << 20, threads: 50, children: 0 },
}

/// Arguments: the name of the host's directory (`/host/site`).
fn main(arguments: Vec<String>) -> Result<(), NameError> {
    let host = arguments.into_iter().next().unwrap_or("/host/site".into());
    let service = process::serve("/web/disk", directory::Contract::INFO)?;
    loop {
        if let Ok(client) = Server::<Idle>::from_any(service.accept()) {
            let host = host.clone();
            let _ = thread::spawn(move || {
                let _ = answer(client, &host);
            });
        }
    }
}

fn answer(mut client: Server<Idle>, host: &str) -> Result<(), ChannelClosed> {
    let mut files = open(host);
    while let IdleMessage::Read(piece, busy) = client.recv()? {
        let found = match (page(&piece.path), files.take()) {
            (None, before) => {
                files = before;
                Err(Refused::NotFound)
            }
            (Some(path), before) => {
                // The host may have had no room for another channel the last time.
                let (found, after) = read(before.or_else(|| open(host)), Piece { path, ..piece });
                files = after;
                found
            }
        };
        client = match found {
            Ok(found) => busy.piece(found)?,
            Err(refused) => busy.refused(refused)?,
        };
    }
    Ok(())
}

/// The file of a path: none that begins with a dot anywhere, and a directory's index.
fn page(path: &str) -> Option<ExString> {
    if path.split('/').any(|part| part.starts_with('.')) {
        return None;
    }
    let mut page = ExString::from(path);
    if path.is_empty() || path.ends_with('/') {
        page.push_str("index.html");
    }
    Some(page)
}

type Files = Option<Client<Idle>>;

/// A piece, and the channel for the next.
fn read(files: Files, piece: Piece) -> (Result<Found, Refused>, Files) {
    let answered = files
        .ok_or(ChannelClosed)
        .and_then(|files| files.read(piece)?.recv());
    match answered {
        Ok(BusyMessage::Piece(found, files)) => (Ok(found), Some(files)),
        Ok(BusyMessage::Refused(refused, files)) => (Err(refused), Some(files)),
        Err(ChannelClosed) => (Err(Refused::Failed), None),
    }
}

fn open(host: &str) -> Files {
    for _ in 0..10 {
        let (client, server) = directory::channel().ok()?;
        match process::open(host, server.into_any()) {
            Ok(()) => return Some(client),
            Err((NameError::Busy, _)) => thread::sleep(Duration::from_millis(2)),
            Err(_) => return None,
        }
    }
    None
}
