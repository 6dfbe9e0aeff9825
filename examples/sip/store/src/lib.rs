//! A store of values by key, for many clients, in one thread: it waits for all of them at once.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use mullion_sip::channel::{ChannelClosed, Contract, Incoming, select};
use mullion_sip::process::Service;
use mullion_sip::{ExVec, process, thread};
use sip_contracts::bell::{self, Heard, Ring};
use sip_contracts::store::{self, Idle, IdleMessage, Server};

mullion_sip::sip_main! {
    name: "store",
    main: main,
    contracts: [store],
    limits: { memory: 16 << 20, threads: 2, children: 0 },
}

/// Clients at a time; the next ones wait at the name.
const CLIENTS: usize = 1000;
/// Bytes of all values and keys.
const CAPACITY: usize = 8 << 20;

/// Those who have come, and are not served yet.
type Hall = Rc<RefCell<Vec<Server<Idle>>>>;

fn main(_: Vec<String>) -> Result<(), Box<dyn std::error::Error>> {
    let service = process::serve("/store", store::Contract::INFO)?;
    let hall = Hall::default();
    let (knocker, mut door) = bell::channel()?;
    let porter = Rc::clone(&hall);
    // The bell is in this process, and ends with it.
    thread::spawn(move || {
        let _ = receive(&service, &porter, knocker);
    })?;
    let (mut clients, mut values) = (Vec::new(), Values::default());
    loop {
        // The first that is ready goes first, so who was served goes to the end.
        let mut all: Vec<&dyn Incoming> = Vec::with_capacity(clients.len() + 1);
        if clients.len() < CLIENTS {
            all.push(&door);
        }
        let first_client = all.len();
        all.extend(clients.iter().map(|client| client as &dyn Incoming));
        let ready = select(&all);
        match ready.checked_sub(first_client) {
            None => {
                let bell::RingMessage::Knock(heard) = door.recv()?;
                door = heard.come()?;
                clients.append(&mut hall.borrow_mut());
            }
            Some(index) => {
                let served = values.serve(clients.remove(index));
                // Who has gone is forgotten.
                clients.extend(served.ok().flatten());
            }
        }
    }
}

/// Lets clients in, one at a time.
fn receive(
    service: &Service,
    hall: &Hall,
    mut bell: bell::Client<Ring>,
) -> Result<(), ChannelClosed> {
    loop {
        let Ok(client) = Server::<Idle>::from_any(service.accept()) else {
            continue;
        };
        hall.borrow_mut().push(client);
        let heard: bell::Client<Heard> = bell.knock()?;
        let bell::HeardMessage::Come(again) = heard.recv()?;
        bell = again;
    }
}

#[derive(Default)]
struct Values {
    all: HashMap<String, Vec<u8>>,
    bytes: usize,
}

impl Values {
    /// One request. Gives the client back, unless it closes.
    fn serve(&mut self, client: Server<Idle>) -> Result<Option<Server<Idle>>, ChannelClosed> {
        let answered = match client.recv()? {
            IdleMessage::Get(key, busy) => match self.all.get(&*key) {
                Some(value) => busy.value(ExVec::copy_of(value)),
                None => busy.nothing(),
            },
            IdleMessage::Put(pair, busy) => {
                let before = self.remove(&pair.key);
                if self.bytes + pair.key.len() + pair.value.len() > CAPACITY {
                    busy.full()
                } else {
                    self.put(pair.key.to_string(), pair.value.to_vec());
                    match before {
                        Some(before) => busy.value(ExVec::copy_of(&before)),
                        None => busy.nothing(),
                    }
                }
            }
            IdleMessage::Remove(key, busy) => match self.remove(&key) {
                Some(before) => busy.value(ExVec::copy_of(&before)),
                None => busy.nothing(),
            },
            IdleMessage::Close => return Ok(None),
        };
        answered.map(Some)
    }

    fn put(&mut self, key: String, value: Vec<u8>) {
        self.bytes += key.len() + value.len();
        self.all.insert(key, value);
    }

    fn remove(&mut self, key: &str) -> Option<Vec<u8>> {
        let value = self.all.remove(key)?;
        self.bytes -= key.len() + value.len();
        Some(value)
    }
}
