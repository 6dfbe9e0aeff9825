//! The files that hold the lock-free parts of `mullion-sip`, as they are; their tests are models for loom.

#[path = "../../src/exchange/credit.rs"]
mod credit;
#[path = "../../src/thread/inbox.rs"]
mod inbox;
#[path = "../../src/channel/line.rs"]
mod line;
