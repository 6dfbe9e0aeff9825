//! Runs a forwarder: on two interfaces until it is told to stop, or through a file.

use crate::forward::Forwarder;
use crate::frame;
use crate::pcap;
use crate::ring::Port;
use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a thread waits at a silent port before it looks whether it is to stop.
const SILENCE: Duration = Duration::from_millis(100);
/// Frames between two looks at the list of modules.
const BATCH: usize = 64;

/// Forwards frames both ways between two ports, a thread each, until `stop` is set.
///
/// # Errors
/// A port has gone.
pub fn live(forwarder: &Forwarder, ports: [Port; 2], stop: &AtomicBool) -> io::Result<()> {
    let [left, right] = ports;
    // What is received needs a port for itself; what is sent goes by the socket, which both may use.
    let (left_out, right_out) = (left.sender()?, right.sender()?);
    std::thread::scope(|scope| {
        let there = scope.spawn(move || one_way(forwarder, 0, left, &right_out, stop));
        let back = one_way(forwarder, 1, right, &left_out, stop);
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
    to: &crate::ring::Sender,
    stop: &AtomicBool,
) -> io::Result<()> {
    let traffic = &forwarder.traffic[port as usize];
    let result = loop {
        if stop.load(Ordering::Relaxed) {
            break Ok(());
        }
        let chain = forwarder.modules();
        let mut handled = 0;
        while handled < BATCH
            && let Some(mut received) = from.receive()
        {
            handled += 1;
            if received.wants_checksum {
                let packet = frame::layout(&received.bytes).packet;
                let end = packet.map_or(received.bytes.len(), |packet| packet.bytes.end);
                frame::repair(&mut received.bytes, end);
            }
            forwarder.handle(&chain, port, received.time, received.bytes, &mut |frame| {
                match to.send(frame) {
                    Ok(()) => traffic.sent.fetch_add(1, Ordering::Relaxed),
                    Err(_) => traffic.unsent.fetch_add(1, Ordering::Relaxed),
                };
            });
        }
        if handled == 0 {
            traffic.lost.fetch_add(from.lost(), Ordering::Relaxed);
            if let Err(error) = from.wait(SILENCE) {
                break Err(error);
            }
        }
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
        let mut result = Ok(());
        forwarder.handle(&chain, 0, captured.time, captured.bytes, &mut |frame| {
            if result.is_ok() {
                result = writer.write(captured.time, frame);
                forwarder.traffic[0].sent.fetch_add(1, Ordering::Relaxed);
            }
        });
        result?;
    }
    writer.finish().map(|_| ())
}
