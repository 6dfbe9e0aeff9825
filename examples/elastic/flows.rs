//! An environment that lends, in Rust; flows.c says the same to keepers in C.
//!
//! A keeper defines on_flow and on_tick. The reference that it gets ends with the call, by its lifetime. What its type
//! lets it keep is a `FlowRef`: a handle, which gives the flow in a later call, or nothing if the host has revoked it.
#![no_std]

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

const SLOTS: usize = 4;

/// A flow of the host's. A call into a domain runs on one thread.
pub struct Flow {
    slot: u32,
    /// Odd: it is lent.
    life: AtomicU32,
    late: AtomicU32,
    id: AtomicU32,
    bytes: AtomicU32,
}

impl Flow {
    const fn new(slot: u32) -> Self {
        const NONE: AtomicU32 = AtomicU32::new(0);
        Flow { slot, life: NONE, late: NONE, id: NONE, bytes: NONE }
    }

    pub fn id(&self) -> u32 {
        self.id.load(Relaxed)
    }

    pub fn bytes(&self) -> u32 {
        self.bytes.load(Relaxed)
    }

    /// A handle, to be kept.
    pub fn kept(&self) -> FlowRef {
        FlowRef { slot: self.slot, life: self.life.load(Relaxed) }
    }
}

/// A handle. It is locked: nobody but this file makes one or looks into it.
#[derive(Clone, Copy)]
pub struct FlowRef {
    slot: u32,
    life: u32,
}

/// What a call has: references out of it end with it.
pub struct Call(());

impl Call {
    pub fn flow(&self, handle: FlowRef) -> Option<&Flow> {
        let flow = FLOWS.get(handle.slot as usize)?;
        (handle.life % 2 == 1 && flow.life.load(Relaxed) == handle.life).then_some(flow)
    }
}

/// Where a handle stays from call to call.
pub struct Shelf(AtomicU64);

impl Shelf {
    pub const fn new() -> Self {
        Shelf(AtomicU64::new(0))
    }

    pub fn put(&self, handle: FlowRef) {
        self.0.store((handle.life as u64) << 32 | handle.slot as u64, Relaxed);
    }

    pub fn get(&self) -> FlowRef {
        let both = self.0.load(Relaxed);
        FlowRef { slot: both as u32, life: (both >> 32) as u32 }
    }
}

/// The host may revoke here, in the middle of a call.
pub fn ask_host() {
    host_asked();
}

// A place and a name for it, as MULLION_IMPORT of mullion/ext.h makes them.
core::arch::global_asm!(
    ".pushsection .mullion.gates,\"axG\",@nobits,host_asked,comdat",
    ".globl host_asked",
    ".type host_asked, @function",
    "host_asked:",
    ".skip 32",
    ".popsection",
    ".pushsection .mullion.imports,\"aG\",@progbits,host_asked,comdat",
    ".Lhost_asked_record:",
    ".asciz \"host_asked\"",
    ".skip .Lhost_asked_record + 64 - .",
    ".popsection",
);

unsafe extern "C" {
    safe fn on_flow(call: &Call, flow: &Flow);
    safe fn on_tick(call: &Call) -> u32;
    safe fn host_asked();
}

static FLOWS: [Flow; SLOTS] = [Flow::new(0), Flow::new(1), Flow::new(2), Flow::new(3)];
static RUNNING: AtomicU32 = AtomicU32::new(0);

/// Around each entry point. What was revoked in a call may be in its hands until it ends.
pub fn begin() {
    RUNNING.store(RUNNING.load(Relaxed).wrapping_add(1), Relaxed);
}

pub fn end() {
    RUNNING.store(RUNNING.load(Relaxed).wrapping_sub(1), Relaxed);
    if RUNNING.load(Relaxed) == 0 {
        for flow in &FLOWS {
            flow.late.store(0, Relaxed);
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn lend(id: u32, bytes: u32) -> i32 {
    for flow in &FLOWS {
        let life = flow.life.load(Relaxed);
        if life % 2 == 0 && flow.late.load(Relaxed) == 0 {
            flow.life.store(life.wrapping_add(1), Relaxed);
            flow.id.store(id, Relaxed);
            flow.bytes.store(bytes, Relaxed);
            on_flow(&Call(()), flow);
            return flow.slot as i32;
        }
    }
    -1
}

/// From here on each handle of it gives nothing.
#[unsafe(no_mangle)]
pub extern "C" fn revoke(slot: u32) {
    if let Some(flow) = FLOWS.get(slot as usize) {
        let life = flow.life.load(Relaxed);
        if life % 2 == 1 {
            flow.life.store(life.wrapping_add(1), Relaxed);
            flow.late.store(u32::from(RUNNING.load(Relaxed) > 0), Relaxed);
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn tick() -> u32 {
    on_tick(&Call(()))
}
