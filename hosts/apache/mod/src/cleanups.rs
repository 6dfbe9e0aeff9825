//! Functions that modules have pools run when they go. APR calls ours with a node that names the pool, so the module's function may
//! use that pool while it ends.

use crate::apr;
use crate::back;
use crate::call::mediate;
use crate::frame::Frame;
use crate::interface::back as kind;
use crate::object::Kind;
use crate::pools;
use crate::slots::Function;
use crate::walled::Answer;

/// What APR has of a function. It lies in the pool, where no module writes.
#[repr(C)]
struct Node {
    /// What stands for the module's functions: when the pool goes, and before another program runs. Null is none.
    plain: u64,
    child: u64,
    data: u64,
    pool: u64,
}

fn call(function: u64, data: u64, pool: u64) -> u64 {
    if function == 0 {
        return 0;
    }
    // SAFETY: it stands for a function of the module's, or is one of APR's that does nothing. Both take six integers.
    let function = unsafe { std::mem::transmute::<u64, Function>(function) };
    function(data, pool, 0, 0, 0, 0)
}

extern "C" fn plain(node: u64) -> i32 {
    // SAFETY: `node` has put it into the pool's memory, which goes behind this.
    let node = unsafe { &*(node as *const Node) };
    call(node.plain, node.data, node.pool) as i32
}

extern "C" fn child(node: u64) -> i32 {
    // SAFETY: `node` has put it into the memory of the pool, which lives in the child.
    let node = unsafe { &*(node as *const Node) };
    call(node.child, node.data, node.pool) as i32
}

fn node(frame: &Frame, pool: u64, data: u64, [plain, child]: [u64; 2]) -> Answer<u64> {
    let walled = frame.walled;
    frame.only_computes();
    walled.pool(frame, pool)?;
    let node = Node {
        plain: back::stand_in(frame, kind("cleanup_of"), plain)?,
        child: back::stand_in(frame, kind("cleanup_of"), child)?,
        data,
        pool,
    };
    // SAFETY: the pool lives, and gives that much.
    let at = unsafe {
        let at = apr::apr_palloc(pool, size_of::<Node>() as u64);
        (at as *mut Node).write(node);
        at
    };
    walled.note_cleanup(frame, pool, (data, plain, at))?;
    Ok(at)
}

pub(crate) extern "C" fn apr_pool_cleanup_register(
    pool: u64,
    data: u64,
    act: u64,
    in_child: u64,
) -> u64 {
    mediate(|frame| {
        let node = node(frame, pool, data, [act, in_child])?;
        let (plain, child) = (plain as *const () as usize, child as *const () as usize);
        // SAFETY: the pool lives, and runs these with the node.
        unsafe { apr::apr_pool_cleanup_register(pool, node, plain, child) };
        Ok(0)
    })
}

pub(crate) extern "C" fn apr_pool_pre_cleanup_register(pool: u64, data: u64, act: u64) -> u64 {
    mediate(|frame| {
        let node = node(frame, pool, data, [act, 0])?;
        // SAFETY: the pool lives, and runs this with the node.
        unsafe { apr::apr_pool_pre_cleanup_register(pool, node, plain as *const () as usize) };
        if frame.walled.knows(pool, Kind::Pool) {
            // SAFETY: the module has made it, and it is not about to go.
            unsafe { pools::watch(pool) };
        }
        Ok(0)
    })
}

fn kill(frame: &Frame, pool: u64, data: u64, act: u64) -> Answer<()> {
    frame.only_computes();
    frame.walled.pool(frame, pool)?;
    if let Some(node) = frame.walled.take_cleanup(pool, data, act) {
        // SAFETY: the pool lives.
        unsafe { apr::apr_pool_cleanup_kill(pool, node, plain as *const () as usize) };
    }
    Ok(())
}

pub(crate) extern "C" fn apr_pool_cleanup_kill(pool: u64, data: u64, act: u64) -> u64 {
    mediate(|frame| {
        kill(frame, pool, data, act)?;
        Ok(0)
    })
}

pub(crate) extern "C" fn apr_pool_cleanup_run(pool: u64, data: u64, act: u64) -> u64 {
    mediate(|frame| {
        let stand_in = back::stand_in(frame, kind("cleanup_of"), act)?;
        kill(frame, pool, data, act)?;
        frame.end_turns();
        Ok(call(stand_in, data, pool) as u32 as u64)
    })
}
