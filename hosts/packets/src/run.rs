//! Runs a forwarder: on two interfaces until it is told to stop, or through a file.

use crate::batch::Batch;
use crate::forward::{Chain, Forwarder};
use crate::pcap;
use crate::port::{Port, Sender, Way};
use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How long a thread waits at a silent port before it looks whether it is to stop.
const SILENCE: Duration = Duration::from_millis(100);
/// Frames that are taken through the modules together, at most.
const TOGETHER: usize = 32;

/// Forwards frames both ways between two ports, a thread each, until `stop` is set.
///
/// # Errors
/// A port has gone.
pub fn live(forwarder: &Forwarder, ports: [Port; 2], stop: &AtomicBool) -> io::Result<()> {
    let [mut left, mut right] = ports;
    // What is received needs a port for itself; what is sent goes by the socket, which both may use.
    let (left_out, right_out) = (left.sender()?, right.sender()?);
    for (traffic, port) in forwarder.traffic.iter().zip([&left, &right]) {
        traffic
            .is_xdp
            .store(port.way() == Way::Xdp, Ordering::Relaxed);
    }
    std::thread::scope(|scope| {
        let there = scope.spawn(move || one_way(forwarder, 0, left, right_out, stop));
        let back = one_way(forwarder, 1, right, left_out, stop);
        let there = there
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
        there.and(back)
    })
}

fn one_way(
    forwarder: &Forwarder,
    port: u32,
    mut from: Port,
    mut to: Sender,
    stop: &AtomicBool,
) -> io::Result<()> {
    let traffic = &forwarder.traffic[port as usize];
    let count = |counter: &AtomicU64, by: u64| counter.fetch_add(by, Ordering::Relaxed);
    let mut memory = Batch::default();
    let mut chain = Chain::default();
    let result = loop {
        if stop.load(Ordering::Relaxed) {
            break Ok(());
        }
        let taken = from.take(TOGETHER);
        if taken.is_empty() {
            drop(taken);
            let [lost, uncut] = from.lost();
            count(&traffic.lost, lost);
            count(&traffic.uncut, uncut);
            chain = Chain::default();
            if let Err(error) = from.wait(SILENCE) {
                break Err(error);
            }
            continue;
        }
        let mut batch = memory.again();
        for frame in taken.frames() {
            match frame.is_uncut {
                true => {
                    count(&traffic.uncut, 1);
                }
                false => batch.push(frame.time, frame.bytes),
            }
        }
        forwarder.handle(forwarder.refresh(&mut chain), port, &mut batch);
        let all = batch.out().count();
        let sent = to.send(batch.out());
        count(&traffic.sent, sent);
        count(&traffic.unsent, all as u64 - sent);
        memory = batch.again();
    };
    // One that cannot go on ends the other: half a forwarder is none.
    stop.store(true, Ordering::Relaxed);
    result
}

/// Takes the frames of a capture through the modules, as if they came in at port 0.
///
/// # Errors
/// The capture cannot be read, or the other not be written.
pub fn file(forwarder: &Forwarder, from: impl BufRead, to: impl Write) -> io::Result<()> {
    let mut writer = pcap::Writer::new(to)?;
    let reader = pcap::Reader::new(from).map_err(io::Error::other)?;
    let chain = forwarder.modules();
    for captured in reader {
        let captured = captured.map_err(io::Error::other)?;
        let mut batch = Batch::default();
        batch.push(captured.time, &captured.bytes);
        forwarder.handle(&chain, 0, &mut batch);
        for frame in batch.out() {
            writer.write(captured.time, frame)?;
            forwarder.traffic[0].sent.fetch_add(1, Ordering::Relaxed);
        }
    }
    writer.finish().map(|_| ())
}
