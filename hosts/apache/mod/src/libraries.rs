//! Libraries that modules use besides httpd and APR. Their state holds addresses that they follow, so it is never in a
//! module's memory. A stream of zlib's is a copy of ours, of which the module sees how far it has come.

use crate::apr;
use crate::call::mediate;
use crate::copied;
use crate::frame::Frame;
use crate::layout::read;
use crate::object::Kind;
use crate::walled::{Answer, Walled, lock};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// `z_stream`, of which these words are counters and buffers: the module's to set and to see.
const STREAM: u64 = 112;
const SHOWN: [usize; 6] = [0, 1, 2, 3, 4, 5];
const NEXT_IN: usize = 0;
const TOTAL_IN: usize = 2;
const NEXT_OUT: usize = 3;
const AVAILABLE_OUT: usize = 4;
const TOTAL_OUT: usize = 5;
const MESSAGE: usize = 6;
const CHECKSUM: usize = 12;
/// A module that never ends its streams gets no more.
const STREAMS: usize = 4096;

pub(crate) struct Stream {
    words: Box<[u64; 14]>,
    end: &'static str,
}

/// The libraries, by the beginnings of their functions' names.
const LIBRARIES: [(&str, &std::ffi::CStr); 9] = [
    ("xml", c"libxml2.so.2"),
    ("html", c"libxml2.so.2"),
    ("ldap_", c"libldap-2.5.so.0"),
    ("ber_", c"liblber-2.5.so.0"),
    ("deflate", c"libz.so.1"),
    ("inflate", c"libz.so.1"),
    ("crc32", c"libz.so.1"),
    ("adler32", c"libz.so.1"),
    ("BrotliEncoder", c"libbrotlienc.so.1"),
];

/// A function of one of these libraries.
pub(crate) fn symbol(name: &str) -> Option<usize> {
    let (_, file) = LIBRARIES
        .iter()
        .find(|(start, _)| name.starts_with(start))?;
    let name = std::ffi::CString::new(name).ok()?;
    // SAFETY: Debian's libraries, whose constructors do nothing else; they stay loaded.
    let found = unsafe {
        let library = libc::dlopen(file.as_ptr(), libc::RTLD_NOW);
        if library.is_null() {
            return None;
        }
        libc::dlsym(library, name.as_ptr())
    };
    (!found.is_null()).then_some(found as usize)
}

fn function(name: &'static str) -> Answer<usize> {
    type Known = std::sync::Mutex<std::collections::HashMap<&'static str, usize>>;
    static KNOWN: OnceLock<Known> = OnceLock::new();
    let mut known = lock(KNOWN.get_or_init(Default::default));
    if let Some(at) = known.get(name) {
        return Ok(*at);
    }
    let at = symbol(name).ok_or_else(|| format!("{name} is not in this system"))?;
    known.insert(name, at);
    Ok(at)
}

impl Stream {
    /// Takes over what the module has set.
    fn take(&mut self, frame: &Frame, at: u64) -> Answer<()> {
        frame.walled.must_write(at, STREAM)?;
        for place in SHOWN {
            // SAFETY: the module may write, and so read, there.
            self.words[place] = unsafe { read(at + 8 * place as u64) };
        }
        // Both counts are 32 bits.
        for place in [NEXT_IN + 1, AVAILABLE_OUT] {
            self.words[place] &= 0xffff_ffff;
        }
        let (from, bytes) = (self.words[NEXT_IN], self.words[NEXT_IN + 1]);
        frame.walled.must_find(from, bytes)?;
        let room = self.words[AVAILABLE_OUT];
        frame.walled.must_write(self.words[NEXT_OUT], room)
    }

    fn show(&self, at: u64) {
        for place in SHOWN.into_iter().chain([MESSAGE, CHECKSUM]) {
            // SAFETY: the module may write there, as `take` has seen.
            unsafe { ((at + 8 * place as u64) as *mut u64).write(self.words[place]) };
        }
    }
}

fn begin(
    frame: &Frame,
    at: u64,
    end: &'static str,
    init: impl FnOnce(*mut u64) -> c_int,
) -> Answer<u64> {
    frame.walled.must_write(at, STREAM)?;
    let mut stream = Stream {
        words: Box::new([0; 14]),
        end,
    };
    let status = init(stream.words.as_mut_ptr());
    if status == 0 {
        for place in [TOTAL_IN, TOTAL_OUT, MESSAGE, CHECKSUM] {
            // SAFETY: the module may write there.
            unsafe { ((at + 8 * place as u64) as *mut u64).write(stream.words[place]) };
        }
        let mut streams = lock(&frame.walled.streams);
        if streams.len() >= STREAMS {
            drop(streams);
            finish(stream)?;
            return Err("the module has too many streams".to_owned());
        }
        if let Some(old) = streams.insert(at, stream) {
            drop(streams);
            finish(old)?;
        }
    }
    Ok(status as u32 as u64)
}

fn finish(mut stream: Stream) -> Answer<u64> {
    // SAFETY: it is zlib's function, and it has made the stream.
    unsafe {
        let end: extern "C" fn(*mut u64) -> c_int = std::mem::transmute(function(stream.end)?);
        Ok(end(stream.words.as_mut_ptr()) as u32 as u64)
    }
}

fn step(at: u64, flush: u64, name: &'static str, end: &'static str) -> u64 {
    mediate(|frame| {
        // The stream is taken out meanwhile: another thread that passes the same one is refused.
        let stream = lock(&frame.walled.streams).remove(&at);
        let mut stream = stream
            .filter(|stream| stream.end == end)
            .ok_or_else(|| format!("{name}: {at:#x} is no stream that the module has begun"))?;
        if let Err(what) = stream.take(frame, at) {
            finish(stream)?;
            return Err(format!("{name}: {what}"));
        }
        // SAFETY: it is zlib's function; it reads what the module may read, and writes where the module may write.
        let status = unsafe {
            let step: extern "C" fn(*mut u64, c_int) -> c_int =
                std::mem::transmute(function(name)?);
            step(stream.words.as_mut_ptr(), flush as c_int)
        };
        stream.show(at);
        lock(&frame.walled.streams).insert(at, stream);
        Ok(status as u32 as u64)
    })
}

fn end(at: u64, name: &'static str) -> u64 {
    mediate(|frame| {
        let stream = lock(&frame.walled.streams).remove(&at);
        match stream.filter(|stream| stream.end == name) {
            Some(stream) => finish(stream),
            // As zlib itself does with a stream that is none.
            None => Ok(-2i32 as u32 as u64),
        }
    })
}

#[expect(non_snake_case, reason = "zlib's function")]
pub(crate) extern "C" fn deflateInit2_(
    at: u64,
    level: u64,
    method: u64,
    window: u64,
    memory: u64,
    strategy: u64,
    version: u64,
    bytes: u64,
) -> u64 {
    mediate(|frame| {
        let version = copied::name(frame, version)?;
        let version = version.as_ptr() as u64;
        let real = function("deflateInit2_")?;
        begin(frame, at, "deflateEnd", |stream| {
            // SAFETY: it is zlib's function, with a stream of ours, which is zeros.
            unsafe {
                let init: extern "C" fn(
                    *mut u64,
                    c_int,
                    c_int,
                    c_int,
                    c_int,
                    c_int,
                    u64,
                    c_int,
                ) -> c_int = std::mem::transmute(real);
                let [level, method, window, memory, strategy, bytes] =
                    [level, method, window, memory, strategy, bytes].map(|n| n as c_int);
                init(
                    stream, level, method, window, memory, strategy, version, bytes,
                )
            }
        })
    })
}

#[expect(non_snake_case, reason = "zlib's function")]
pub(crate) extern "C" fn inflateInit2_(at: u64, window: u64, version: u64, bytes: u64) -> u64 {
    mediate(|frame| {
        let version = copied::name(frame, version)?;
        let version = version.as_ptr() as u64;
        let real = function("inflateInit2_")?;
        begin(frame, at, "inflateEnd", |stream| {
            // SAFETY: `must_write` has seen that the module may write these words.
            unsafe {
                let init: extern "C" fn(*mut u64, c_int, u64, c_int) -> c_int =
                    std::mem::transmute(real);
                init(stream, window as c_int, version, bytes as c_int)
            }
        })
    })
}

pub(crate) extern "C" fn deflate(at: u64, flush: u64) -> u64 {
    step(at, flush, "deflate", "deflateEnd")
}

pub(crate) extern "C" fn inflate(at: u64, flush: u64) -> u64 {
    step(at, flush, "inflate", "inflateEnd")
}

#[expect(non_snake_case, reason = "zlib's function")]
pub(crate) extern "C" fn deflateEnd(at: u64) -> u64 {
    end(at, "deflateEnd")
}

#[expect(non_snake_case, reason = "zlib's function")]
pub(crate) extern "C" fn inflateEnd(at: u64) -> u64 {
    end(at, "inflateEnd")
}

/// With the library's own allocator: a module's would be called without a gate.
#[expect(non_snake_case, reason = "brotli's function")]
pub(crate) extern "C" fn BrotliEncoderCreateInstance(_: u64, _: u64, _: u64) -> u64 {
    mediate(|frame| {
        // SAFETY: it is brotli's function.
        let made = unsafe {
            let make: extern "C" fn(u64, u64, u64) -> u64 =
                std::mem::transmute(function("BrotliEncoderCreateInstance")?);
            make(0, 0, 0)
        };
        let walled = frame.walled;
        walled.know(frame, frame.home(), made, Kind::Encoder)?;
        Ok(made)
    })
}

#[expect(non_snake_case, reason = "brotli's function")]
pub(crate) extern "C" fn BrotliEncoderDestroyInstance(at: u64) -> u64 {
    mediate(|frame| {
        if !frame.walled.unknow(at, Kind::Encoder) {
            return Err(format!("{at:#x} is no encoder of the module"));
        }
        // SAFETY: it is brotli's function, and it has made it.
        unsafe {
            let end: extern "C" fn(u64) =
                std::mem::transmute(function("BrotliEncoderDestroyInstance")?);
            end(at);
        }
        Ok(0)
    })
}

/// Without a buffer for what comes out: that is taken by `BrotliEncoderTakeOutput`.
#[expect(non_snake_case, reason = "brotli's function")]
pub(crate) extern "C" fn BrotliEncoderCompressStream(
    at: u64,
    operation: u64,
    available_in: u64,
    next_in: u64,
    available_out: u64,
    next_out: u64,
    total: u64,
) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        if !walled.knows(at, Kind::Encoder) {
            return Err(format!("{at:#x} is no encoder of the module"));
        }
        for word in [available_in, next_in, available_out] {
            walled.must_write(word, 8)?;
        }
        // SAFETY: the module may write, and so read, these.
        let (mut count, mut from, room) =
            unsafe { (read(available_in), read(next_in), read(available_out)) };
        let is_there = walled.must_find(from, count);
        is_there.map_err(|what| format!("BrotliEncoderCompressStream: {what}"))?;
        // Without room nothing is written there.
        let _unused = next_out;
        if room != 0 || total != 0 {
            return Err("BrotliEncoderCompressStream: a buffer is not passed on".to_owned());
        }
        let mut none = 0u64;
        // SAFETY: it is brotli's function, with words of ours; it reads what the module may read.
        let done = unsafe {
            let compress: extern "C" fn(
                u64,
                c_int,
                *mut u64,
                *mut u64,
                *mut u64,
                *mut c_void,
                *mut c_void,
            ) -> c_int = std::mem::transmute(function("BrotliEncoderCompressStream")?);
            let null = std::ptr::null_mut();
            compress(
                at,
                operation as c_int,
                &mut count,
                &mut from,
                &mut none,
                null,
                null,
            )
        };
        // SAFETY: `must_write` has seen that the module may write these words.
        unsafe {
            (available_in as *mut u64).write(count);
            (next_in as *mut u64).write(from);
        }
        Ok(done as u32 as u64)
    })
}

/// Numbers of floating point come back in a register of their own.
pub(crate) extern "C" fn strtod(text: u64, end: u64) -> f64 {
    let mut value = 0.0;
    mediate(|frame| {
        let copy = copied::name(frame, text)?;
        if end != 0 {
            frame.walled.must_write(end, 8)?;
        }
        let mut behind = std::ptr::null_mut();
        // SAFETY: the string ends with a zero.
        value = unsafe { libc::strtod(copy.as_ptr().cast(), &mut behind) };
        if end != 0 {
            let read = (behind as u64).wrapping_sub(copy.as_ptr() as u64);
            // SAFETY: the module may write there.
            unsafe { (end as *mut u64).write(text.wrapping_add(read)) };
        }
        Ok(0)
    });
    value
}

/// What each conversion of a format of `scanf` writes, in the order of its arguments.
pub(crate) fn scanned(format: &[u8], text: &[u8]) -> Answer<Vec<u64>> {
    // A conversion without a width writes no more than the text has, and a zero.
    let all = text.len() as u64;
    let mut sizes = Vec::new();
    let mut rest = format.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            continue;
        }
        if rest.next_if_eq(&b'%').is_some() {
            continue;
        }
        let is_kept = rest.next_if_eq(&b'*').is_none();
        let mut width = None;
        while let Some(digit) = rest.next_if(u8::is_ascii_digit) {
            let value = width.unwrap_or(0u64) * 10 + u64::from(digit - b'0');
            width = Some(value.min(u64::from(u32::MAX)));
        }
        // For the C library a width of 0 is none. No conversion takes more than the text has.
        let width = width.filter(|width| *width != 0);
        let most = width.unwrap_or(all).min(all);
        let (mut longs, mut halves, mut is_quad) = (0, 0, false);
        while let Some(size) =
            rest.next_if(|c| matches!(c, b'l' | b'h' | b'q' | b'j' | b'z' | b't'))
        {
            is_quad |= size == b'q';
            match size {
                b'h' => halves += 1,
                _ => longs += 1,
            }
        }
        let size = match rest.next() {
            Some(b'd' | b'i' | b'u' | b'x' | b'X' | b'o' | b'n') => match (longs, halves) {
                (0, 0) => 4,
                (0, 1) => 2,
                (0, _) => 1,
                _ => 8,
            },
            // With two of them it would be a number of 16 bytes.
            Some(b'e' | b'f' | b'g' | b'a') if longs < 2 && !is_quad => {
                [4, 8][usize::from(longs > 0)]
            }
            Some(b'c') if longs == 0 => width.unwrap_or(1).min(all.max(1)),
            Some(b's') if longs == 0 => most + 1,
            Some(b'[') if longs == 0 => {
                let _not = rest.next_if_eq(&b'^');
                let _first = rest.next_if_eq(&b']');
                while rest.next().ok_or("a format ends in the middle")? != b']' {}
                most + 1
            }
            _ => return Err("a conversion of a format is not for modules".to_owned()),
        };
        if is_kept {
            sizes.push(size);
        }
    }
    Ok(sizes)
}

impl Walled {
    /// The module has a library's object no more; whether it had it.
    fn unknow(&self, object: u64, kind: Kind) -> bool {
        self.knows(object, kind) && self.forget_object(object)
    }
}

/// Hexadecimal digits and a zero.
pub(crate) extern "C" fn ap_bin2hex(from: u64, bytes: u64, to: u64) -> u64 {
    mediate(|frame| {
        let room = bytes.saturating_mul(2).saturating_add(1);
        frame.walled.must_write(to, room)?;
        let is_there = frame.walled.must_find(from, bytes);
        is_there.map_err(|what| format!("ap_bin2hex: {what}"))?;
        let real = apr::symbol("ap_bin2hex").ok_or("the server does not have it")?;
        // SAFETY: it is httpd's function, with room for what it writes.
        let real: extern "C" fn(u64, u64, u64) = unsafe { std::mem::transmute(real) };
        real(from, bytes, to);
        Ok(0)
    })
}

/// The output's room is behind the last argument.
pub(crate) extern "C" fn apr_xlate_conv_buffer(
    at: u64,
    from: u64,
    from_bytes: u64,
    to: u64,
    to_bytes: u64,
) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        if !walled.knows(at, Kind::Translation) {
            return Err(format!("{at:#x} is no translation of the module"));
        }
        walled.must_write(from_bytes, 8)?;
        walled.must_write(to_bytes, 8)?;
        // SAFETY: the module may write, and so read, there.
        let (mut count, mut room) = unsafe { (read(from_bytes), read(to_bytes)) };
        walled.must_write(to, room)?;
        let is_there = walled.must_find(from, count);
        is_there.map_err(|what| format!("apr_xlate_conv_buffer: {what}"))?;
        let real = apr::symbol("apr_xlate_conv_buffer").ok_or("the server does not have it")?;
        // SAFETY: it is APR's function, with room for what it writes, and counts of ours.
        let real: extern "C" fn(u64, u64, *mut u64, u64, *mut u64) -> c_int =
            unsafe { std::mem::transmute(real) };
        let status = real(at, from, &mut count, to, &mut room);
        // SAFETY: `must_write` has seen that the module may write these words.
        unsafe {
            (from_bytes as *mut u64).write(count);
            (to_bytes as *mut u64).write(room);
        }
        Ok(status as u32 as u64)
    })
}

/// A failed assertion ends the process. Here it ends the module's call.
pub(crate) extern "C" fn ap_log_assert(what: u64, _: u64, _: u64) -> u64 {
    mediate(|frame| {
        Err(format!(
            "an assertion has failed: {}",
            String::from_utf8_lossy(&copied::text(frame, what)?)
        ))
    })
}

/// The tree of an expression has functions that the core calls, so it cannot be in a module's memory.
pub(crate) extern "C" fn ap_expr_parse(pool: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
    mediate(|frame| {
        let what = b"the wall does not pass this module's expressions on";
        frame.walled.copy(frame, pool, what)
    })
}

/// The one socket must be a connection's that the module has asked for.
pub(crate) extern "C" fn apr_poll(at: u64, count: u64, found: u64, time: u64) -> u64 {
    const ENTRY: u64 = 32;
    const SOCKET: u32 = 1;
    mediate(|frame| {
        let walled = frame.walled;
        walled.must_write(at, ENTRY)?;
        walled.must_write(found, 4)?;
        // SAFETY: the module may write, and so read, there. What is looked at is a copy.
        let mut entry = unsafe { (at as *const [u64; 4]).read() };
        let is_socket = entry[1] as u32 == SOCKET && walled.knows_or_shares(entry[2], Kind::Socket);
        if count as u32 != 1 || !is_socket {
            return Err("apr_poll: it is not one socket of a connection".to_owned());
        }
        // APR does without one here.
        if entry[0] != 0 {
            walled.pool(frame, entry[0])?;
        }
        let real = apr::symbol("apr_poll").ok_or("the server does not have it")?;
        let mut ready = 0i32;
        // SAFETY: it is APR's function, with an entry and a count of ours.
        let real: extern "C" fn(*mut u64, u64, *mut i32, u64) -> c_int =
            unsafe { std::mem::transmute(real) };
        let status = real(entry.as_mut_ptr(), 1, &mut ready, time);
        // SAFETY: `must_write` has seen that the module may write these words.
        unsafe {
            (at as *mut [u64; 4]).write(entry);
            (found as *mut i32).write(ready);
        }
        Ok(status as u32 as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::scanned;

    #[test]
    fn what_a_conversion_writes_at_most() {
        let text = vec![b'a'; 1 << 21];
        let all = text.len() as u64;
        for (format, bytes) in [
            ("%s", all + 1),
            ("%0s", all + 1),
            ("%00s", all + 1),
            ("%9s", 10),
            ("%2000000s", 2_000_001),
            ("%9999999s", all + 1),
            ("%0[a]", all + 1),
            ("%0c", 1),
            ("%7c", 7),
            ("%lf", 8),
            ("%f", 4),
            ("%qd", 8),
        ] {
            let sizes = scanned(format.as_bytes(), &text);
            assert_eq!(sizes, Ok(vec![bytes]), "{format}");
        }
        // Numbers of 16 bytes.
        for format in ["%llf", "%qf", "%Lf"] {
            assert!(scanned(format.as_bytes(), &text).is_err(), "{format}");
        }
    }
}
