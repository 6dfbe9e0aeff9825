//! Runs separately built SIPs by a configuration.
//!
//! ```text
//!   configuration   TOML: processes by name, their libraries, limits, rights, restarts; domains
//!   image           a library's file judged: manifest, build, what would run when it is loaded; no code runs
//!   instance        a judged library mapped: its entry, and its statics put back before each life
//!   domain          where processes run: `same` here, `apart` in OS processes of their own
//!   services        what the host does for processes: sockets that listen, directories to read
//!   supervisor      starts, restarts and ends processes, and says so in the log
//!   view, status    what there is at a moment, for who asks over a socket;  graph paints it
//!   map             who may touch which memory, for `mullion map`
//! ```
//! What is trusted in a library that was judged is who compiled it: see SECURITY.md.

pub mod configuration;
pub mod domain;
pub mod graph;
pub mod image;
mod in_host;
mod instance;
pub mod map;
mod os_process;
#[cfg(test)]
#[path = "../../../language/sip/tests/host/mod.rs"]
mod power;
pub mod quantity;
pub mod services;
pub mod status;
pub mod supervisor;
pub mod view;

pub use configuration::Configuration;
pub use image::{ImageError, SipImage};
pub use mullion_sip_hosting::Host;
pub use os_process::enter;
pub use supervisor::SipSupervisor;
pub use view::RunView;
