//! The web server's cache: pieces of files that were read lately. It speaks the disk's contract on both sides, so the
//! server works without it, and with two of them.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use mullion_sip::channel::{ChannelClosed, Contract};
use mullion_sip::grant::directory::{self, BusyMessage, Client, Idle, IdleMessage, Server};
use mullion_sip::grant::{Found, LARGEST, Piece, Refused};
use mullion_sip::process::names::NameError;
use mullion_sip::{ExString, ExVec, process, thread};

mullion_sip::sip_main! {
    name: "web-cache",
    main: main,
    contracts: [directory],
    limits: { memory: 32 << 20, threads: 50, children: 0 },
}

/// How long a piece is as good as the file.
const FRESH: Duration = Duration::from_secs(1);

/// Arguments: bytes of all pieces (16777216).
fn main(arguments: Vec<String>) -> Result<(), Box<dyn std::error::Error>> {
    let capacity = arguments
        .first()
        .map_or(Ok(16 << 20), |text| text.parse())?;
    let service = process::serve("/web/cache", directory::Contract::INFO)?;
    let cache = Rc::new(RefCell::new(Cache {
        capacity,
        ..Cache::default()
    }));
    loop {
        if let Ok(client) = Server::<Idle>::from_any(service.accept()) {
            let cache = Rc::clone(&cache);
            let _ = thread::spawn(move || {
                let _ = answer(client, &cache);
            });
        }
    }
}

fn answer(mut client: Server<Idle>, cache: &RefCell<Cache>) -> Result<(), ChannelClosed> {
    let mut disk = None;
    while let IdleMessage::Read(piece, busy) = client.recv()? {
        let key = (piece.path.to_string(), piece.offset);
        let wanted = piece.bytes.min(LARGEST) as usize;
        let known = cache.borrow_mut().find(&key, wanted);
        let found = match known {
            Some(found) => Ok(found),
            None => {
                let (found, after) = read(disk, &piece);
                disk = after;
                if let Ok(found) = &found {
                    cache.borrow_mut().keep(key, wanted, found);
                }
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

/// A path, and where the piece begins.
type Key = (String, u64);

#[derive(Default)]
struct Cache {
    capacity: usize,
    bytes: usize,
    pieces: HashMap<Key, Kept>,
    /// By age.
    order: VecDeque<Key>,
}

struct Kept {
    read: Instant,
    /// As long as was asked for: another length is another piece.
    wanted: usize,
    size: u64,
    bytes: Vec<u8>,
}

impl Cache {
    fn find(&mut self, key: &Key, wanted: usize) -> Option<Found> {
        let kept = self.pieces.get(key)?;
        if kept.read.elapsed() > FRESH || kept.wanted != wanted {
            self.forget(key);
            return None;
        }
        Some(Found {
            size: kept.size,
            bytes: ExVec::copy_of(&kept.bytes),
        })
    }

    fn keep(&mut self, key: Key, wanted: usize, found: &Found) {
        self.forget(&key);
        if found.bytes.len() > self.capacity {
            return;
        }
        while self.bytes + found.bytes.len() > self.capacity {
            let Some(oldest) = self.order.front().cloned() else {
                return;
            };
            self.forget(&oldest);
        }
        self.bytes += found.bytes.len();
        let kept = Kept {
            read: Instant::now(),
            wanted,
            size: found.size,
            bytes: found.bytes.to_vec(),
        };
        self.order.push_back(key.clone());
        self.pieces.insert(key, kept);
    }

    fn forget(&mut self, key: &Key) {
        if let Some(kept) = self.pieces.remove(key) {
            self.bytes -= kept.bytes.len();
            self.order.retain(|other| other != key);
        }
    }
}

type Disk = Option<Client<Idle>>;

/// Asks the disk, and for a while again if it has ended: to read twice does no harm.
fn read(mut disk: Disk, piece: &Piece) -> (Result<Found, Refused>, Disk) {
    for _ in 0..20 {
        let Some(open) = disk.take().or_else(open) else {
            break;
        };
        let piece = Piece {
            path: ExString::from(&*piece.path),
            ..*piece
        };
        match open.read(piece).and_then(Client::<directory::Busy>::recv) {
            Ok(BusyMessage::Piece(found, open)) => return (Ok(found), Some(open)),
            Ok(BusyMessage::Refused(refused, open)) => return (Err(refused), Some(open)),
            Err(ChannelClosed) => thread::sleep(Duration::from_millis(20)),
        }
    }
    (Err(Refused::Failed), None)
}

/// Waits a while for the disk to be there.
fn open() -> Disk {
    for _ in 0..1000 {
        let (client, server) = directory::channel().ok()?;
        match process::open("/web/disk", server.into_any()) {
            Ok(()) => return Some(client),
            Err((NameError::Unbound | NameError::Busy, _)) => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(_) => return None,
        }
    }
    None
}
