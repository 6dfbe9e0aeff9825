//! A forwarder of packets between two ports, which runs users' modules on live traffic.
//!
//! ```text
//!   port ── port.rs ──► forward.rs ── which modules? filter.rs ──► module.rs: a domain behind its wall
//!   (ring.rs, xdp.rs, or  frame.rs: where headers are,              sees what view.rs shows,
//!    a file: pcap.rs)     checksums                                 answers: as it was, changed, dropped, more
//!   port ◄──────────────────┘
//!   control.rs: load, unload and status while packets flow;  config.rs: what runs at first
//! ```
//!
//! From *Safe Kernel Programming in the OKE*, section IV: monitors (OMA) and transcoders (OTA). A module that faults,
//! runs too long or takes too much is stopped and taken out, and its packets go on as they came.

mod alone;
pub mod batch;
pub mod config;
pub mod control;
pub mod filter;
pub mod forward;
pub mod frame;
mod memory;
mod message;
pub mod module;
pub mod page;
pub mod pcap;
pub mod port;
pub mod process;
pub mod ring;
mod room;
pub mod run;
pub mod share;
mod ticks;
pub mod traffic;
pub mod users;
pub mod view;
pub mod xdp;
