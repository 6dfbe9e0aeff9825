//! Addresses of sockets. A module may have one in its own memory, where the pool that it names is the module's to write.

use crate::apr;
use crate::call::mediate;
use crate::copied;
use crate::frame::Frame;
use crate::interface::Answer as Result_;
use crate::layout::read;
use crate::object::Kind;
use crate::pools;
use crate::states::by_row;
use crate::walled::Answer;
use std::ffi::c_int;

/// `apr_sockaddr_t`: its pool is its first word.
const ADDRESS: u64 = 192;
const WORDS: usize = 24;
/// Where it has the place of the number of the machine, which is within it.
const PLACE: usize = 6;
/// The word whose upper half is the family, the one with two lengths, and the distance of the kernel's own address.
const FAMILY: usize = 3;
const LENGTHS: usize = 4;
const SOCKET: u64 = 64;
/// So long is a number of a machine as text, at most.
const TEXT: usize = 64;

/// A copy of an address that is only read. Nothing of it leads elsewhere.
pub(crate) fn copy(frame: &Frame, address: u64) -> Answer<Box<[u64]>> {
    const UNIX: u32 = 1;
    /// Behind the family comes a path.
    const PATH: u64 = SOCKET + 2;
    /// Its room, and that of the family with it.
    const ROOM: u64 = 108;
    let mut copy: Box<[u64; WORDS]> = Box::new(copied::words(frame, address)?);
    let at = copy.as_ptr() as u64;
    let own = match (copy[FAMILY] >> 32) as u32 {
        UNIX => {
            let mut words = *copy;
            (words[0], words[1], words[2]) = (0, 0, 0);
            words[LENGTHS] = ROOM << 32 | (ROOM + 2);
            words[LENGTHS + 1] = ROOM;
            (words[PLACE], words[PLACE + 1]) = (at + PATH, 0);
            // The path's last byte is the end, whatever is before it.
            let last = PATH + ROOM - 1;
            words[(last / 8) as usize] &= !(0xff << (8 * (last % 8)));
            words
        }
        _ => own(*copy, 0, at)?,
    };
    *copy = own;
    Ok(copy)
}

/// The C library would write the text to memory of all threads.
pub(crate) extern "C" fn inet_ntoa(address: u64) -> u64 {
    mediate(|frame| {
        let [a, b, c, d, ..] = address.to_le_bytes();
        let pool = match frame.any_home() {
            Some(pool) => pool,
            None => crate::heap::lasting(frame)?,
        };
        let text = format!("{a}.{b}.{c}.{d}");
        frame.walled.copy(frame, pool, text.as_bytes())
    })
}

/// The text is made in our memory. The core would take the address's own pool.
pub(crate) extern "C" fn apr_sockaddr_ip_get(to: u64, given: u64) -> u64 {
    mediate(|frame| {
        frame.walled.must_write(to, 8)?;
        let copy = copy(frame, given).map_err(|what| format!("apr_sockaddr_ip_get: {what}"))?;
        let address = copy.as_ptr() as u64;
        let real = apr::symbol("apr_sockaddr_ip_getbuf").ok_or("the server does not have it")?;
        let mut text = [0u8; TEXT];
        // SAFETY: it is APR's function, with room of ours. It only reads the address.
        let real: extern "C" fn(*mut u8, usize, u64) -> c_int =
            unsafe { std::mem::transmute(real) };
        let status = real(text.as_mut_ptr(), TEXT, address);
        if status == 0 {
            let length = text.iter().position(|byte| *byte == 0).unwrap_or(0);
            let copy = frame
                .walled
                .copy(frame, pool(frame, given)?, &text[..length])?;
            // SAFETY: the module may write there.
            unsafe { (to as *mut u64).write(copy) };
        }
        Ok(status as u32 as u64)
    })
}

/// The address's pool if the module may use it, or else that of the call.
fn pool(frame: &Frame, address: u64) -> Answer<u64> {
    let [own] = copied::words(frame, address)?;
    match frame.walled.pool(frame, own) {
        Ok(()) => Ok(own),
        Err(why) => frame.any_home().ok_or(why),
    }
}

/// An address in the module's memory is passed on as a copy of ours, which lives as long as the request: APR keeps it.
pub(crate) extern "C" fn apr_socket_connect(socket: u64, address: u64) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        if !walled.knows_or_shares(socket, Kind::Socket) {
            return Err(format!("{socket:#x} is no socket of the module"));
        }
        let mut passed = address;
        // The socket leads to the address from then on.
        let lasts = walled.home_of(socket);
        let home = walled.home_of(address);
        let is_kept = walled.knows_or_shares(address, Kind::Address)
            && home.is_none_or(|home| lasts.is_none_or(|lasts| pools::outlives(home, lasts)));
        if !is_kept {
            let copy = copied::words(frame, address);
            let copy = copy.map_err(|what| format!("apr_socket_connect: {what}"))?;
            let pool = lasts
                .filter(|lasts| *lasts != 0)
                .or_else(|| frame.any_home());
            let pool = pool.ok_or("an address without a request")?;
            // SAFETY: the pool gives that much.
            unsafe {
                passed = apr::apr_palloc(pool, ADDRESS);
                (passed as *mut [u64; WORDS]).write(own(copy, pool, passed)?);
            }
        }
        let real = apr::symbol("apr_socket_connect").ok_or("the server does not have it")?;
        // SAFETY: it is APR's function, with an address of APR's or ours.
        let real: extern "C" fn(u64, u64) -> c_int = unsafe { std::mem::transmute(real) };
        Ok(real(socket, passed) as u32 as u64)
    })
}

/// The words of an address with what APR follows replaced: pool, names, the place of the machine's number, the next address.
fn own(mut words: [u64; WORDS], pool: u64, at: u64) -> Answer<[u64; WORDS]> {
    const INET: u32 = 2;
    const INET6: u32 = 10;
    let family = (words[FAMILY] >> 32) as u32;
    let (place, bytes, length, text) = match family {
        INET => (SOCKET + 4, 4, 16, 16),
        INET6 => (SOCKET + 8, 16, 28, 46),
        _ => return Err(format!("{family} is no family of addresses")),
    };
    words[0] = pool;
    (words[1], words[2]) = (0, 0);
    words[LENGTHS] = bytes << 32 | length;
    words[LENGTHS + 1] = text;
    words[PLACE] = at + place;
    words[PLACE + 1] = 0;
    Ok(words)
}

/// APR looks for an interface if there is a source, and does not look whether one is named.
pub(crate) extern "C" fn apr_mcast_join(
    socket: u64,
    join: u64,
    interface: u64,
    source: u64,
) -> u64 {
    const NAME: &str = "apr_mcast_join";
    mediate(|frame| match source != 0 && interface == 0 {
        true => Err(format!("{NAME}: a source without an interface")),
        false => {
            let arguments = [socket, join, interface, source];
            by_row(frame, NAME, "S a a? a?", Result_::Plain, &arguments)
        }
    })
}

/// Who has sent it is written into an address of the module's: a copy of ours.
pub(crate) extern "C" fn apr_socket_recvfrom(
    from: u64,
    socket: u64,
    flags: u64,
    to: u64,
    bytes: u64,
) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        if !walled.knows_or_shares(socket, Kind::Socket) {
            return Err(format!("{socket:#x} is no socket of the module"));
        }
        walled.must_write(from, ADDRESS)?;
        walled.must_write(bytes, 8)?;
        // SAFETY: the module may write, and so read, there. What is read is what is passed on.
        let mut count = unsafe { read(bytes) };
        walled.must_write(to, count)?;
        let real = apr::symbol("apr_socket_recvfrom").ok_or("the server does not have it")?;
        // SAFETY: as before; APR does not look at what was in the address.
        let mut address = unsafe { (from as *const [u64; WORDS]).read() };
        let own = address.as_mut_ptr() as u64;
        // SAFETY: it is APR's function, with room for what it writes.
        let real: extern "C" fn(u64, u64, u64, u64, *mut u64) -> c_int =
            unsafe { std::mem::transmute(real) };
        let status = real(own, socket, flags, to, &mut count);
        let inside = address[PLACE].wrapping_sub(own);
        if inside < ADDRESS {
            address[PLACE] = from + inside;
        }
        // SAFETY: `must_write` has seen that the module may write there.
        unsafe {
            (from as *mut [u64; WORDS]).write(address);
            (bytes as *mut u64).write(count);
        }
        Ok(status as u32 as u64)
    })
}
