//! Descriptors of sockets. A module may send one to another process, over a socket: both must be sockets that it has.

use crate::apr;
use crate::call::mediate;
use crate::copied;
use crate::frame::Frame;
use crate::object::Kind;
use crate::walled::Answer;
use std::ffi::c_int;

/// So many pieces of a message, and bytes beside them.
const PIECES: u64 = 8;
const BESIDE: usize = 64;
/// Length, level and kind; then descriptors.
const HEAD: usize = 16;

/// Whether a descriptor is that of a socket that the module has.
fn is_own(frame: &Frame, descriptor: c_int) -> Answer<bool> {
    let real = apr::symbol("apr_os_sock_get").ok_or("the server does not have it")?;
    // SAFETY: it is APR's function.
    let real: extern "C" fn(*mut c_int, u64) -> c_int = unsafe { std::mem::transmute(real) };
    let of = |socket: u64| {
        let mut descriptor = -1;
        match real(&mut descriptor, socket) {
            0 => descriptor,
            _ => -1,
        }
    };
    let walled = frame.walled;
    let backends = walled.backends().into_iter().map(|backend| backend.socket);
    let mut sockets = walled.made(Kind::Socket).into_iter().chain(backends);
    Ok(descriptor >= 0 && sockets.any(|socket| socket != 0 && of(socket) == descriptor))
}

/// What is sent beside a message: descriptors of the module's, and nothing else. The copy is what is passed on.
fn beside(frame: &Frame, at: u64, bytes: u64) -> Answer<[u64; BESIDE / 8]> {
    let mut copy = [0u64; BESIDE / 8];
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    if !(HEAD..=BESIDE).contains(&bytes) {
        return Err(format!("{bytes} bytes beside a message"));
    }
    // SAFETY: the copy has room.
    unsafe { copied::into(frame, at, copy.as_mut_ptr().cast(), bytes) }?;
    let kind = (libc::SCM_RIGHTS as u64) << 32 | libc::SOL_SOCKET as u64;
    let length = copy[0];
    if length != bytes as u64 || copy[1] != kind || !(bytes - HEAD).is_multiple_of(4) {
        return Err("beside a message are other things than descriptors".to_owned());
    }
    for place in (HEAD..bytes).step_by(4) {
        let descriptor = (copy[place / 8] >> (8 * (place % 8))) as u32 as c_int;
        if !is_own(frame, descriptor)? {
            return Err(format!("{descriptor} is no socket of the module"));
        }
    }
    Ok(copy)
}

/// A socket of the module's is connected to one in the file system: the address is a copy.
pub(crate) extern "C" fn connect(socket: u64, address: u64, bytes: u64) -> u64 {
    mediate(|frame| {
        const ROOM: usize = size_of::<libc::sockaddr_un>();
        let bytes = bytes as u32 as usize;
        if bytes > ROOM || !is_own(frame, socket as c_int)? {
            return Err(format!(
                "connect: {socket} is no socket of the module, or no address of one"
            ));
        }
        let mut copy = [0u64; ROOM.div_ceil(8)];
        // SAFETY: the copy has room.
        unsafe { copied::into(frame, address, copy.as_mut_ptr().cast(), bytes) }?;
        if copy[0] as u16 != libc::AF_UNIX as u16 {
            return Err("connect: it is no address in the file system".to_owned());
        }
        // SAFETY: the kernel reads a copy of ours, and the socket is the module's.
        Ok(unsafe { libc::connect(socket as c_int, copy.as_ptr().cast(), bytes as u32) } as u64)
    })
}

pub(crate) extern "C" fn sendmsg(socket: u64, message: u64, flags: u64) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        // The wall looks at a copy.
        let words: [u64; size_of::<libc::msghdr>() / 8] = copied::words(frame, message)?;
        // SAFETY: the structure has numbers and addresses alone, for which all words stand, and is as large as these words.
        let mut copy = unsafe { words.as_ptr().cast::<libc::msghdr>().read() };
        if !is_own(frame, socket as c_int)? {
            return Err(format!("sendmsg: {socket} is no socket of the module"));
        }
        if !copy.msg_name.is_null() || copy.msg_iovlen as u64 > PIECES {
            return Err("sendmsg: a message with an address or many pieces".to_owned());
        }
        let pieces = copy.msg_iov as u64;
        let mut all = Vec::new();
        for at in 0..copy.msg_iovlen as u64 {
            let [from, bytes] = copied::words(frame, pieces.wrapping_add(16 * at))?;
            walled.must_read(from, bytes)?;
            all.push(libc::iovec {
                iov_base: from as *mut _,
                iov_len: bytes as usize,
            });
        }
        copy.msg_iov = all.as_mut_ptr();
        let mut more = match copy.msg_controllen as u64 {
            0 => [0; BESIDE / 8],
            bytes => beside(frame, copy.msg_control as u64, bytes)
                .map_err(|what| format!("sendmsg: {what}"))?,
        };
        copy.msg_control = match copy.msg_controllen {
            0 => std::ptr::null_mut(),
            _ => more.as_mut_ptr().cast(),
        };
        // SAFETY: message, list and descriptors are copies of ours; the kernel reads what the module may read.
        Ok(unsafe { libc::sendmsg(socket as c_int, &raw const copy, flags as c_int) } as u64)
    })
}
