//! httpd's buffers that grow (`ap_varbuf`). Modules write into them themselves, so they are the module's memory, and what httpd does
//! with them is done here, with the module's rights.

use crate::apr;
use crate::call::mediate;
use crate::copied;
use crate::frame::Frame;
use crate::layout::read;
use crate::object::Kind;
use crate::patterns::substitute;
use crate::walled::Answer;

const BYTES: u64 = 40;
const UNKNOWN: u64 = u64::MAX;

struct Buffer {
    at: u64,
    pool: u64,
    text: u64,
    /// Room, without the zero at the end.
    room: u64,
    used: u64,
}

impl Buffer {
    fn read(frame: &Frame, at: u64) -> Answer<Buffer> {
        frame.walled.must_write(at, BYTES)?;
        // SAFETY: the module may write, and so read, there.
        let [text, room, used, pool] = [0, 8, 16, 24].map(|part| unsafe { read(at + part) });
        let mut buffer = Buffer {
            at,
            pool,
            text,
            room,
            used,
        };
        frame.walled.pool(frame, pool)?;
        if room > 0 {
            frame.walled.must_write(text, room.saturating_add(1))?;
        }
        if used == UNKNOWN {
            // SAFETY: the module may read so much there.
            buffer.used = unsafe { libc::strnlen(text as *const _, room as usize) } as u64;
        }
        match buffer.used <= room {
            true => Ok(buffer),
            false => Err("a buffer holds more than it has room for".to_owned()),
        }
    }

    fn write(&self) {
        let words = [
            (0, self.text),
            (8, self.room),
            (16, self.used),
            (24, self.pool),
        ];
        for (part, value) in words {
            // SAFETY: `read` has seen that the module may write there.
            unsafe { ((self.at + part) as *mut u64).write(value) };
        }
    }

    fn grow(&mut self, frame: &Frame, room: u64) -> Answer<()> {
        if room <= self.room {
            return Ok(());
        }
        let room = room.max(self.room.saturating_mul(2)).max(31);
        let to = frame
            .walled
            .take(frame, self.pool, room.saturating_add(1))?;
        // SAFETY: it was just taken, and the module may read its own text.
        unsafe {
            if self.used > 0 {
                let used = self.used as usize;
                (to as *mut u8).copy_from_nonoverlapping(self.text as *const u8, used);
            }
            (to as *mut u8).add(self.used as usize).write(0);
        }
        (self.text, self.room) = (to, room);
        Ok(())
    }

    fn append(&mut self, frame: &Frame, from: u64, bytes: u64) -> Answer<()> {
        let sum = self.used.checked_add(bytes).ok_or("a text is too long")?;
        self.grow(frame, sum)?;
        // SAFETY: there is room, and the module may read what it passes.
        unsafe {
            let end = (self.text as *mut u8).add(self.used as usize);
            end.copy_from(from as *const u8, bytes as usize);
            end.add(bytes as usize).write(0);
        }
        self.used = sum;
        Ok(())
    }
}

pub(crate) extern "C" fn ap_varbuf_init(pool: u64, at: u64, room: u64) -> u64 {
    mediate(|frame| {
        frame.walled.must_write(at, BYTES)?;
        frame.walled.pool(frame, pool)?;
        let mut buffer = Buffer {
            at,
            pool,
            text: 0,
            room: 0,
            used: 0,
        };
        // An empty one, too, has a zero.
        buffer.grow(frame, room.max(1))?;
        // SAFETY: the module may write there.
        unsafe { ((at + 32) as *mut u64).write(0) };
        buffer.write();
        Ok(0)
    })
}

pub(crate) extern "C" fn ap_varbuf_grow(at: u64, room: u64) -> u64 {
    mediate(|frame| {
        let mut buffer = Buffer::read(frame, at)?;
        buffer.grow(frame, room)?;
        buffer.write();
        Ok(0)
    })
}

/// Its memory goes with its pool.
pub(crate) extern "C" fn ap_varbuf_free(at: u64) -> u64 {
    mediate(|frame| {
        frame.walled.must_write(at, BYTES)?;
        for part in [0, 8, 16] {
            // SAFETY: the module may write there.
            unsafe { ((at + part) as *mut u64).write(0) };
        }
        Ok(0)
    })
}

pub(crate) extern "C" fn ap_varbuf_strmemcat(at: u64, from: u64, bytes: u64) -> u64 {
    mediate(|frame| {
        // It is an `int`.
        let bytes = i64::from(bytes as i32) as u64;
        if bytes != 0 {
            let mut buffer = Buffer::read(frame, at)?;
            let is_there = frame.walled.must_find(from, bytes);
            is_there.map_err(|what| format!("ap_varbuf_strmemcat: {what}"))?;
            buffer.append(frame, from, bytes)?;
            buffer.write();
        }
        Ok(0)
    })
}

/// A copy of it all, between two other texts.
pub(crate) extern "C" fn ap_varbuf_pdup(
    pool: u64,
    at: u64,
    before: u64,
    before_bytes: u64,
    behind: u64,
    behind_bytes: u64,
    bytes: u64,
) -> u64 {
    mediate(|frame| {
        let buffer = Buffer::read(frame, at)?;
        let pieces = [
            (before, before_bytes),
            (buffer.text, buffer.used),
            (behind, behind_bytes),
        ];
        let sum = pieces
            .iter()
            .try_fold(1u64, |sum, (_, more)| sum.checked_add(*more));
        let to = frame
            .walled
            .take(frame, pool, sum.ok_or("a text is too long")?)?;
        let mut used = 0u64;
        for (from, bytes) in pieces.iter().filter(|(_, bytes)| *bytes != 0) {
            // SAFETY: it was just taken, and has room for all pieces.
            let copied = unsafe {
                let to = (to as *mut u8).add(used as usize);
                copied::into(frame, *from, to, *bytes as usize)
            };
            copied.map_err(|what| format!("ap_varbuf_pdup: {what}"))?;
            used += bytes;
        }
        // SAFETY: `sum` began at 1, so the block has a byte behind the pieces.
        unsafe { (to as *mut u8).add(used as usize).write(0) };
        if bytes != 0 {
            frame.walled.must_write(bytes, 8)?;
            // SAFETY: the module may write there.
            unsafe { (bytes as *mut u64).write(used) };
        }
        Ok(to)
    })
}

/// What a pattern's match makes of a text, behind what there is.
pub(crate) extern "C" fn ap_varbuf_regsub(
    at: u64,
    input: u64,
    source: u64,
    count: u64,
    matches: u64,
    most: u64,
) -> u64 {
    mediate(|frame| {
        let mut buffer = Buffer::read(frame, at)?;
        let made = substitute(frame, buffer.pool, [input, source], (count, matches), most);
        let (status, made) = made.map_err(|what| format!("ap_varbuf_regsub: {what}"))?;
        if status == 0 && made != 0 {
            // SAFETY: httpd's strings end with a zero.
            let bytes = unsafe { apr::text(made) }.len() as u64;
            buffer.append(frame, made, bytes)?;
            buffer.write();
        }
        Ok(status as u32 as u64)
    })
}

/// A line of a file of configuration, in the place of what there is. httpd reads it into a buffer of ours first.
pub(crate) extern "C" fn ap_varbuf_cfg_getline(at: u64, file: u64, most: u64) -> u64 {
    mediate(|frame| {
        let mut buffer = Buffer::read(frame, at)?;
        if !frame.walled.knows(file, Kind::ConfigFile) {
            return Err(format!("{file:#x} is no file that the module has opened"));
        }
        let names = ["ap_varbuf_init", "ap_varbuf_cfg_getline", "ap_varbuf_free"];
        let [init, read_line, free] = names.map(apr::symbol);
        let missing = "the server does not have it";
        let (init, read_line, free) = (
            init.ok_or(missing)?,
            read_line.ok_or(missing)?,
            free.ok_or(missing)?,
        );
        let mut own = [0u64; BYTES as usize / 8];
        // SAFETY: they are httpd's functions, with a buffer of ours; the pool lives, and the file is one that the module has opened.
        unsafe {
            let init: extern "C" fn(u64, *mut u64, u64) = std::mem::transmute(init);
            let read_line: extern "C" fn(*mut u64, u64, u64) -> i32 =
                std::mem::transmute(read_line);
            let free: extern "C" fn(*mut u64) = std::mem::transmute(free);
            // With some room: httpd writes a zero before it looks.
            init(buffer.pool, own.as_mut_ptr(), 80);
            let status = read_line(own.as_mut_ptr(), file, most);
            buffer.used = 0;
            let done = match own[0] {
                0 => Ok(()),
                text => buffer.append(frame, text, apr::text(text).len() as u64),
            };
            free(own.as_mut_ptr());
            done?;
            buffer.write();
            Ok(status as u32 as u64)
        }
    })
}
