//! `mullion packets run`.

use super::show;
use crate::output::{print, sayln};
use anyhow::{Context, bail};
use mullion_host::Host;
use mullion_packets::config::Config;
use mullion_packets::forward::Forwarder;
use mullion_packets::port::{Port, Way};
use mullion_packets::ring;
use mullion_packets::users::{self, Users};
use mullion_packets::{control, page, run};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

#[derive(clap::Args)]
pub(super) struct RunArgs {
    /// Two ports, and modules (docs/packets.md).
    config: PathBuf,
    /// Where to listen for the operator's questions.
    #[arg(long, value_name = "SOCKET", env = "MULLION_PACKETS")]
    control: Option<PathBuf>,
    /// Where to listen for users, who prove a key and bring credentials; the configuration names a policy and roles.
    #[arg(long, value_name = "SOCKET")]
    users: Option<PathBuf>,
    /// Serve a page of what runs at this address of loopback, like 127.0.0.1:8080.
    #[arg(long, value_name = "ADDRESS")]
    page: Option<SocketAddr>,
}

/// A socket at a path, which goes with it.
struct Socket<'a> {
    path: &'a Path,
    listener: UnixListener,
}

impl<'a> Socket<'a> {
    fn listen(path: &'a Path, mode: u32) -> anyhow::Result<Self> {
        let listener = control::listen(path, mode).with_context(|| path.display().to_string())?;
        Ok(Socket { path, listener })
    }
}

impl Drop for Socket<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.path);
    }
}

impl RunArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let (config, forwarder) = forwarder(&self.config)?;
        let file = self.config.display();
        let [left, right] = config.ports.as_slice() else {
            bail!("{file}: `ports` names two interfaces, as ports = [\"veth0\", \"veth1\"]");
        };
        let users = Users::read(&config)?;
        let ring = config.ring.map_or(ring::RING, |bytes| bytes as usize);
        let ports = [open(left, config.by, ring)?, open(right, config.by, ring)?];
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, stop.clone())?;
        }
        let control = self.control.as_deref();
        let control = control
            .map(|path| Socket::listen(path, 0o600))
            .transpose()?;
        // Who may connect may only prove a key: what that is good for, the policy says.
        let user_socket = self.users.as_deref();
        let user_socket = user_socket
            .map(|path| Socket::listen(path, 0o666))
            .transpose()?;
        if user_socket.is_some() && users.is_none() {
            bail!("{file}: users need a `policy`, and a [[role]] for each type of theirs");
        }
        let page = self.page.map(page_at).transpose()?;
        sayln!(
            "mullion packets: forwarding between {left} and {right}, {} modules",
            config.modules.len()
        );
        let (forwarder, stop) = (&forwarder, &*stop);
        let result = std::thread::scope(|scope| {
            if let Some(socket) = &control {
                scope.spawn(|| control::serve(&socket.listener, forwarder, stop));
            }
            if let (Some(socket), Some(users)) = (&user_socket, &users) {
                scope.spawn(|| users::serve(&socket.listener, users, forwarder, stop));
            }
            if let Some(listener) = &page {
                scope.spawn(|| page::serve(listener, forwarder, stop));
            }
            run::live(forwarder, ports, stop)
        });
        let status = control::status(forwarder);
        print(&show::table(&status, None))?;
        for hint in show::hints(&status) {
            sayln!("mullion packets: {hint}");
        }
        Ok(result?)
    }
}

/// Opens a port. One that AF_XDP is not to be had for is opened by a packet socket, and that is said.
fn open(name: &str, way: Way, ring: usize) -> anyhow::Result<Port> {
    let port = match Port::open(name, way, ring) {
        Err(why) if way == Way::Xdp => {
            sayln!("mullion packets: interface {name} without AF_XDP, by a packet socket: {why}");
            Port::open(name, Way::Packet, ring)
        }
        port => port,
    };
    port.with_context(|| {
        format!("interface {name} (raw sockets need root, or setcap cap_net_raw+ep)")
    })
}

fn page_at(address: SocketAddr) -> anyhow::Result<TcpListener> {
    if !address.ip().is_loopback() {
        bail!("{address} is no address of loopback: the page shows everything to everybody");
    }
    let listener = TcpListener::bind(address).with_context(|| address.to_string())?;
    listener.set_nonblocking(true)?;
    sayln!(
        "mullion packets: a page at http://{}/",
        listener.local_addr()?
    );
    Ok(listener)
}

/// What a file says, with its modules loaded.
pub(super) fn forwarder(config: &Path) -> anyhow::Result<(Config, Forwarder)> {
    let config = Config::read(config)?;
    let forwarder = Forwarder::new(Host::new(), &config.modules)?;
    Ok((config, forwarder))
}
