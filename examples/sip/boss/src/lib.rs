//! Hands out work, and knows what has become of each piece, whatever becomes of who did it. What must outlive a crash
//! lives in another process than what crashes.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use mullion_sip::channel::{ChannelClosed, Contract};
use mullion_sip::{process, thread};
use sip_contracts::jobs;

mullion_sip::sip_main! {
    name: "boss",
    main: main,
    contracts: [jobs],
    limits: { memory: 4 << 20, threads: 64, children: 0 },
}

/// A piece that ended so many workers is not given to another.
const PATIENCE: u32 = 2;

struct Books {
    /// Pieces to be given out, with the workers that they have ended.
    open: Vec<(u32, u32)>,
    under_way: usize,
    done: usize,
    sum: u64,
    given_up: Vec<u32>,
}

/// Arguments: how many pieces there are.
fn main(arguments: Vec<String>) -> Result<(), Box<dyn std::error::Error>> {
    let count = arguments.first().map_or(Ok(20), |text| text.parse())?;
    let books = Rc::new(RefCell::new(Books {
        open: (1..=count).rev().map(|number| (number, 0)).collect(),
        under_way: 0,
        done: 0,
        sum: 0,
        given_up: Vec::new(),
    }));
    let service = process::serve("/jobs", jobs::Contract::INFO)?;
    while !books.borrow().is_closed() {
        let Some(end) = service.try_accept() else {
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        let worker = jobs::Server::<jobs::Idle>::from_any(end)?;
        let books = Rc::clone(&books);
        thread::spawn(move || employ(worker, &books))?;
    }
    let books = books.borrow();
    println!(
        "{} of {count} done, the sum is {}; given up: {:?}",
        books.done, books.sum, books.given_up
    );
    Ok(())
}

impl Books {
    fn is_closed(&self) -> bool {
        self.open.is_empty() && self.under_way == 0
    }

    fn finish(&mut self, result: u64) {
        self.under_way -= 1;
        self.done += 1;
        self.sum += result;
    }

    /// Its worker has ended over it.
    fn survive(&mut self, number: u32, ended: u32) {
        self.under_way -= 1;
        if ended + 1 < PATIENCE {
            self.open.push((number, ended + 1));
        } else {
            self.given_up.push(number);
        }
    }
}

/// One worker, until it or the work ends.
fn employ(mut worker: jobs::Server<jobs::Idle>, books: &RefCell<Books>) {
    while let Ok(jobs::IdleMessage::Fetch(waiting)) = worker.recv() {
        let Some((number, ended)) = next(books) else {
            // It may have ended just now.
            let _ = waiting.no_more();
            return;
        };
        let done = waiting.job(number).and_then(|working| working.recv());
        match done {
            Ok(jobs::WorkingMessage::Done(result, idle)) => {
                books.borrow_mut().finish(result);
                worker = idle;
            }
            Err(ChannelClosed) => return books.borrow_mut().survive(number, ended),
        }
    }
}

/// The next piece. While others are under way there may be one again.
fn next(books: &RefCell<Books>) -> Option<(u32, u32)> {
    loop {
        let mut open = books.borrow_mut();
        if let Some(piece) = open.open.pop() {
            open.under_way += 1;
            return Some(piece);
        }
        if open.is_closed() {
            return None;
        }
        drop(open);
        thread::sleep(Duration::from_millis(1));
    }
}
