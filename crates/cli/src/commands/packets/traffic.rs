//! `mullion packets send` and `receive`: numbered frames, to measure a forwarder between two namespaces.

use crate::output::outln;
use crate::units;
use anyhow::Context;
use mullion_packets::port::{Port, Way};
use mullion_packets::ring;
use mullion_packets::traffic;
use std::time::Duration;

/// Send numbered frames out at an interface, at a steady rate.
#[derive(clap::Args)]
#[command(
    after_help = "Prints what was sent as JSON. Needs the right to raw sockets (CAP_NET_RAW).
Exit status: 0 when all were handed to the system; 1 otherwise; 2 for bad usage."
)]
pub(super) struct Send {
    /// The interface.
    interface: String,
    /// How many frames.
    #[arg(long, default_value_t = 100_000)]
    count: u64,
    /// How many in a second.
    #[arg(long, default_value_t = 100_000)]
    rate: u64,
    /// Bytes that UDP carries; 16 at least.
    #[arg(long, default_value_t = 64)]
    payload: usize,
}

/// Receive numbered frames at an interface: how many came, and in which order.
#[derive(clap::Args)]
#[command(
    after_help = "Prints what arrived as JSON. Needs the right to raw sockets (CAP_NET_RAW).
Exit status: 0; 1 when the interface is not to be had; 2 for bad usage."
)]
pub(super) struct Receive {
    /// The interface.
    interface: String,
    /// How many frames are to come.
    #[arg(long, default_value_t = 100_000)]
    count: u64,
    /// How long to wait for the next one.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = units::time)]
    patience: Duration,
}

fn open(interface: &str, ring: usize) -> anyhow::Result<Port> {
    Port::open(interface, Way::Packet, ring).with_context(|| {
        format!("interface {interface} (raw sockets need root, or setcap cap_net_raw+ep)")
    })
}

impl Send {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut port = open(&self.interface, 0)?;
        let sent = traffic::send(&mut port.sender()?, self.count, self.rate, self.payload);
        outln!("{}", serde_json::to_string(&sent)?)?;
        match sent.unsent {
            0 => Ok(()),
            unsent => anyhow::bail!("{unsent} frames were not taken"),
        }
    }
}

impl Receive {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let port = open(&self.interface, 4 * ring::RING)?;
        let arrived = traffic::receive(port, self.count, self.patience)?;
        outln!("{}", serde_json::to_string(&arrived)?)?;
        Ok(())
    }
}
