//! The files that hold the lock-free parts of `mullion-sip`, as they are; their tests are models for loom.
// The tests look into loom's cells, which takes `unsafe`. Nothing else does.
#![cfg_attr(not(test), forbid(unsafe_code))]

/// What the files call the fence of `mullion-sip-core`: loom's, which a locked operation stands for on x86-64.
#[cfg(loom)]
pub(crate) fn fence() {
    loom::sync::atomic::fence(loom::sync::atomic::Ordering::SeqCst);
}

#[path = "../../src/remote/bell.rs"]
mod bell;
#[path = "../../../sip-exchange/src/exchange/claim.rs"]
mod claim;
#[path = "../../../sip-exchange/src/exchange/credit.rs"]
mod credit;
#[path = "../../src/remote/head.rs"]
mod head;
#[path = "../../../sip-core/src/thread/inbox.rs"]
mod inbox;
#[path = "../../../sip-exchange/src/channel/line.rs"]
mod line;
#[path = "../../src/remote/turn.rs"]
mod turn;
