//! `RedisModule_Alloc` and its kin: each module has a heap of its own.

use crate::api::mediators;
use crate::frame::mediate;
use std::ffi::c_int;

mediators! { ALL;
    Alloc = alloc;
    TryAlloc = alloc;
    Calloc = calloc;
    Realloc = realloc;
    Free = free;
    Strdup = strdup;
    PoolAlloc = pool_alloc;
    MallocSize = size;
    MallocUsableSize = size;
    GetRandomBytes = random_bytes;
    GetRandomHexChars = random_hex;
}

pub(crate) extern "C" fn alloc(bytes: u64) -> u64 {
    mediate(|frame| Ok(frame.walled.module.take(bytes.max(1)).unwrap_or(0)))
}

extern "C" fn calloc(count: u64, bytes: u64) -> u64 {
    mediate(|frame| {
        let all = count.saturating_mul(bytes);
        let Some(at) = frame.walled.module.take(all.max(1)) else {
            return Ok(0);
        };
        frame.walled.module.write(at, &vec![0; all as usize])?;
        Ok(at)
    })
}

extern "C" fn realloc(at: u64, bytes: u64) -> u64 {
    mediate(|frame| frame.walled.module.resize(at, bytes))
}

pub(crate) extern "C" fn free(at: u64) {
    mediate(|frame| frame.walled.module.free(at));
}

extern "C" fn strdup(text: u64) -> u64 {
    mediate(|frame| {
        let text = frame.walled.module.text(text)?;
        Ok(frame.walled.module.give(text).unwrap_or(0))
    })
}

extern "C" fn pool_alloc(context: u64, bytes: u64) -> u64 {
    mediate(|frame| {
        frame.context(context)?;
        Ok(frame.until_return(frame.walled.module.take(bytes.max(1))))
    })
}

extern "C" fn size(at: u64) -> u64 {
    mediate(|frame| Ok(frame.walled.module.heap().size(at).unwrap_or(0)))
}

fn random(to: u64, bytes: u64, hex: bool) {
    mediate(|frame| {
        let mut made = vec![0u8; usize::try_from(bytes.min(1 << 20)).unwrap_or(0)];
        type Fill = extern "C" fn(*mut u8, usize);
        let fill: Fill = match hex {
            true => crate::api::host!(GetRandomHexChars: fn(*mut u8, usize)),
            false => crate::api::host!(GetRandomBytes: fn(*mut u8, usize)),
        };
        fill(made.as_mut_ptr(), made.len());
        frame.walled.module.write(to, &made)
    });
}

extern "C" fn random_bytes(to: u64, bytes: u64) {
    random(to, bytes, false);
}

extern "C" fn random_hex(to: u64, bytes: u64) {
    random(to, bytes, true);
}

/// Redis makes a copy of the process to save: what must be granted is granted before, because the table is the parent's.
pub(crate) fn survive_forks() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: the functions stay, as this library does.
        unsafe { libc::pthread_atfork(Some(before_fork), None, Some(in_child)) };
    });
}

static CHILD: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Whether this is a copy of the server.
pub(crate) fn is_child() -> bool {
    CHILD.load(std::sync::atomic::Ordering::Relaxed)
}

/// What a module may need while it writes one value.
const RESERVE: u64 = 4 << 20;

extern "C" fn before_fork() {
    for walled in crate::load::all() {
        let module = walled.module;
        module.heap().reserve(&module.host, &module.domain, RESERVE);
    }
}

extern "C" fn in_child() {
    CHILD.store(true, std::sync::atomic::Ordering::Relaxed);
    for walled in crate::load::all() {
        walled.module.heap().close();
    }
}

/// `REDISMODULE_OK`.
pub(crate) const OK: c_int = 0;
/// `REDISMODULE_ERR`.
pub(crate) const ERR: c_int = 1;
