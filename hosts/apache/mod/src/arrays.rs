//! APR's arrays. Modules write an array's head and its elements themselves, so both are a module's memory. What APR
//! does with them is done here, with the module's rights.

use crate::apr;
use crate::call::mediate;
use crate::frame::Frame;
use crate::layout::read;
use crate::own::string;
use crate::walled::Answer;

/// An array's head, as it was when it was read.
struct Head {
    at: u64,
    pool: u64,
    size: u64,
    used: u64,
    room: u64,
    elements: u64,
}

const HEAD: u64 = 32;

impl Head {
    /// Of any array: only to be read from.
    fn read(at: u64) -> Answer<Head> {
        if at < 4096 {
            return Err(format!("{at:#x} is no array"));
        }
        // SAFETY: modules pass arrays, which they may read.
        let (pool, sizes, room, elements) =
            unsafe { (read(at), read(at + 8), read(at + 16), read(at + 24)) };
        let positive = |number: u64| u64::try_from(number as u32 as i32).unwrap_or(0);
        Ok(Head {
            at,
            pool,
            size: positive(sizes),
            used: positive(sizes >> 32),
            room: positive(room),
            elements,
        })
    }

    /// Of an array that the module may change.
    fn own(frame: &Frame, at: u64) -> Answer<Head> {
        frame
            .walled
            .must_write(at, HEAD)
            .map_err(|what| format!("an array: {what}"))?;
        Head::read(at)
    }

    fn write(&self) {
        // SAFETY: `own` has seen that the module may write it, or it was just taken for the module.
        unsafe {
            (self.at as *mut u64).write(self.pool);
            ((self.at + 8) as *mut u64).write(self.size & 0xffff_ffff | self.used << 32);
            ((self.at + 16) as *mut u64).write(self.room & 0xffff_ffff);
            ((self.at + 24) as *mut u64).write(self.elements);
        }
    }

    fn make(frame: &Frame, pool: u64, count: u64, size: u64) -> Answer<Head> {
        let room = count.max(1);
        let at = frame.walled.take(frame, pool, HEAD)?;
        let bytes = room
            .checked_mul(size)
            .filter(|_| room <= 1 << 30)
            .ok_or("an array is too large")?;
        let elements = frame.walled.take(frame, pool, bytes)?;
        // SAFETY: it was just taken.
        unsafe { (elements as *mut u8).write_bytes(0, bytes as usize) };
        Ok(Head {
            at,
            pool,
            size,
            used: 0,
            room,
            elements,
        })
    }

    /// Room for so many more.
    fn grow(&mut self, frame: &Frame, more: u64) -> Answer<()> {
        let wanted = self.used + more;
        if wanted <= self.room {
            return Ok(());
        }
        let room = wanted.max(self.room * 2).max(1);
        let bytes = room
            .checked_mul(self.size)
            .filter(|_| room <= 1 << 30)
            .ok_or("an array is too large")?;
        let to = frame.walled.take(frame, self.pool, bytes)?;
        let used = self.used * self.size;
        // SAFETY: it was just taken; the module may read its own elements.
        unsafe {
            (to as *mut u8).copy_from_nonoverlapping(self.elements as *const u8, used as usize);
            (to as *mut u8)
                .add(used as usize)
                .write_bytes(0, (bytes - used) as usize);
        }
        (self.room, self.elements) = (room, to);
        Ok(())
    }

    /// Puts the elements of another one behind.
    fn append(&mut self, frame: &Frame, other: &Head) -> Answer<()> {
        self.grow(frame, other.used)?;
        let to = self.elements.wrapping_add(self.used * self.size);
        let bytes = other.used.saturating_mul(self.size);
        frame.walled.must_write(to, bytes)?;
        // SAFETY: the module may write there, and read what it passes.
        unsafe { (to as *mut u8).copy_from(other.elements as *const u8, bytes as usize) };
        self.used += other.used;
        Ok(())
    }
}

pub(crate) extern "C" fn apr_array_make(pool: u64, count: u64, size: u64) -> u64 {
    mediate(|frame| {
        let positive = |number: u64| u64::try_from(number as u32 as i32).unwrap_or(0);
        let head = Head::make(frame, pool, positive(count), positive(size))?;
        head.write();
        Ok(head.at)
    })
}

pub(crate) extern "C" fn apr_array_push(array: u64) -> u64 {
    mediate(|frame| {
        let mut head = Head::own(frame, array)?;
        head.grow(frame, 1)?;
        let at = head.elements.wrapping_add(head.used * head.size);
        frame.walled.must_write(at, head.size)?;
        // SAFETY: the module may write there.
        unsafe { (at as *mut u8).write_bytes(0, head.size as usize) };
        head.used += 1;
        head.write();
        Ok(at)
    })
}

pub(crate) extern "C" fn apr_array_push_noclear(array: u64) -> u64 {
    apr_array_push(array)
}

pub(crate) extern "C" fn apr_array_pop(array: u64) -> u64 {
    mediate(|frame| {
        let mut head = Head::own(frame, array)?;
        if head.used == 0 {
            return Ok(0);
        }
        head.used -= 1;
        head.write();
        Ok(head.elements.wrapping_add(head.used * head.size))
    })
}

pub(crate) extern "C" fn apr_array_clear(array: u64) -> u64 {
    mediate(|frame| {
        let mut head = Head::own(frame, array)?;
        head.used = 0;
        head.write();
        Ok(0)
    })
}

pub(crate) extern "C" fn apr_array_cat(to: u64, from: u64) -> u64 {
    mediate(|frame| {
        let mut head = Head::own(frame, to)?;
        head.append(frame, &Head::read(from)?)?;
        head.write();
        Ok(0)
    })
}

fn copy(frame: &Frame, pool: u64, from: u64) -> Answer<u64> {
    let old = Head::read(from)?;
    let mut head = Head::make(frame, pool, old.room.max(old.used), old.size)?;
    head.append(frame, &old)?;
    head.write();
    Ok(head.at)
}

pub(crate) extern "C" fn apr_array_copy(pool: u64, from: u64) -> u64 {
    mediate(|frame| match from {
        0 => Ok(0),
        from => copy(frame, pool, from),
    })
}

/// A list of the core's, which modules sort: the module gets a copy.
fn listed(name: &'static str, pool: u64, list: impl FnOnce(usize) -> Answer<u64>) -> u64 {
    mediate(|frame| {
        frame.walled.pool(frame, pool)?;
        let real = apr::symbol(name).ok_or("the server does not have it")?;
        match list(real)? {
            0 => Ok(0),
            from => copy(frame, pool, from),
        }
    })
}

pub(crate) extern "C" fn ap_list_provider_groups(pool: u64) -> u64 {
    listed("ap_list_provider_groups", pool, |real| {
        // SAFETY: it is httpd's function, with a pool that lives.
        let real: extern "C" fn(u64) -> u64 = unsafe { std::mem::transmute(real) };
        Ok(real(pool))
    })
}

pub(crate) extern "C" fn ap_list_provider_names(pool: u64, group: u64, version: u64) -> u64 {
    listed("ap_list_provider_names", pool, |real| {
        // The function may read the strings twice.
        let text = |at| Ok::<_, String>([string(at)?, &[0]].concat());
        let (group, version) = (text(group)?, text(version)?);
        // SAFETY: it is httpd's function, with a pool that lives, and strings of ours that end with a zero.
        let real: extern "C" fn(u64, u64, u64) -> u64 = unsafe { std::mem::transmute(real) };
        Ok(real(pool, group.as_ptr() as u64, version.as_ptr() as u64))
    })
}

/// APR copies when somebody adds; here it is done at once.
pub(crate) extern "C" fn apr_array_copy_hdr(pool: u64, from: u64) -> u64 {
    apr_array_copy(pool, from)
}

pub(crate) extern "C" fn apr_array_append(pool: u64, first: u64, second: u64) -> u64 {
    mediate(|frame| {
        let (first, second) = (Head::read(first)?, Head::read(second)?);
        let mut head = Head::make(frame, pool, first.used + second.used, first.size)?;
        head.append(frame, &first)?;
        head.append(frame, &second)?;
        head.write();
        Ok(head.at)
    })
}

/// The strings of an array, with a character between two of them. Each is read once.
pub(crate) extern "C" fn apr_array_pstrcat(pool: u64, array: u64, between: u64) -> u64 {
    mediate(|frame| {
        let head = Head::read(array)?;
        let count = if head.elements == 0 { 0 } else { head.used };
        let mut whole = Vec::new();
        for at in 0..count {
            if at != 0 && between as u8 != 0 {
                whole.push(between as u8);
            }
            // SAFETY: the module may read what it passes.
            match unsafe { read(head.elements.wrapping_add(8 * at)) } {
                0 => {}
                text => whole.extend_from_slice(string(text)?),
            }
        }
        frame.walled.copy(frame, pool, &whole)
    })
}

/// An array of strings, from a line; it ends with a null pointer.
pub(crate) extern "C" fn apr_tokenize_to_argv(text: u64, to: u64, pool: u64) -> u64 {
    mediate(|frame| {
        frame.walled.must_write(to, 8)?;
        let real =
            crate::apr::symbol("apr_tokenize_to_argv").ok_or("the server does not have it")?;
        frame.walled.pool(frame, pool)?;
        string(text)?;
        let mut made = 0u64;
        // SAFETY: it is APR's function, with a place of ours for its result.
        let real: extern "C" fn(u64, *mut u64, u64) -> u64 = unsafe { std::mem::transmute(real) };
        let status = real(text, &mut made, pool);
        if status != 0 {
            return Ok(status);
        }
        let mut words = Vec::new();
        // SAFETY: APR has made it, and it ends with a null pointer.
        while let word @ 1.. = unsafe { read(made + 8 * words.len() as u64) } {
            words.push(word);
        }
        let copy = frame
            .walled
            .take(frame, pool, 8 * (words.len() as u64 + 1))?;
        for (at, word) in words.iter().enumerate() {
            // SAFETY: strings of APR's end with a zero; the copy has room.
            unsafe {
                let word = frame.walled.copy(frame, pool, crate::apr::text(*word))?;
                (copy as *mut u64).add(at).write(word);
            }
        }
        // SAFETY: the copy has a word more than strings were counted; `to` was checked to be the module's.
        unsafe {
            (copy as *mut u64).add(words.len()).write(0);
            (to as *mut u64).write(copy);
        }
        Ok(0)
    })
}
