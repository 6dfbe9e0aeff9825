//! APR's arrays. Modules write an array's head and its elements themselves, so both are a module's memory. What APR
//! does with them is done here, with the module's rights.

use crate::apr;
use crate::call::{self, mediate};
use crate::copied;
use crate::frame::Frame;
use crate::layout::read;
use crate::object::Kind;
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
    fn read(frame: &Frame, at: u64) -> Answer<Head> {
        let head = copied::words(frame, at).map_err(|what| format!("an array: {what}"))?;
        let [pool, sizes, room, elements] = head;
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
        Head::read(frame, at)
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
        // SAFETY: it was just taken, and has room for what is used and for the rest.
        unsafe {
            copied::into(frame, self.elements, to as *mut u8, used as usize)?;
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
        // SAFETY: the module may write there.
        unsafe { copied::into(frame, other.elements, to as *mut u8, bytes as usize) }?;
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
        head.append(frame, &Head::read(frame, from)?)?;
        head.write();
        Ok(0)
    })
}

fn copy(frame: &Frame, pool: u64, from: u64) -> Answer<u64> {
    let old = Head::read(frame, from)?;
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
        let text = |at| copied::with_zero(at);
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
        let (first, second) = (Head::read(frame, first)?, Head::read(frame, second)?);
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
        let head = Head::read(frame, array)?;
        let count = if head.elements == 0 { 0 } else { head.used };
        let mut whole = Vec::new();
        for at in 0..count {
            if at != 0 && between as u8 != 0 {
                whole.push(between as u8);
            }
            match copied::words(frame, head.elements.wrapping_add(8 * at))? {
                [0] => {}
                [text] => whole.extend(copied::text(frame, text)?),
            }
        }
        frame.walled.copy(frame, pool, &whole)
    })
}

pub(crate) extern "C" fn apr_is_empty_array(array: u64) -> u64 {
    mediate(|frame| match array {
        0 => Ok(1),
        array => Ok(u64::from(Head::read(frame, array)?.used == 0)),
    })
}

/// Where an array has a string, from a place on.
fn position(frame: &Frame, array: u64, text: u64, from: u64) -> Answer<Option<u64>> {
    let (head, text) = (Head::read(frame, array)?, copied::text(frame, text)?);
    for at in from..head.used {
        let [element] = copied::words(frame, head.elements.wrapping_add(8 * at))?;
        if copied::text(frame, element)? == text {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

pub(crate) extern "C" fn ap_array_str_index(array: u64, text: u64, from: u64) -> u64 {
    mediate(|frame| match u64::try_from(from as i32) {
        Ok(from) => Ok(position(frame, array, text, from)?.unwrap_or(u64::MAX)),
        Err(_) => Ok(u64::MAX),
    })
}

pub(crate) extern "C" fn ap_array_str_contains(array: u64, text: u64) -> u64 {
    mediate(|frame| Ok(u64::from(position(frame, array, text, 0)?.is_some())))
}

/// A list of methods has a bit for each that httpd knows, and an array of the others.
pub(crate) extern "C" fn ap_method_in_list(list: u64, method: u64) -> u64 {
    const NAME: &str = "ap_method_number_of";
    const UNKNOWN: u32 = 26;
    mediate(|frame| {
        let [bits, others] = copied::words(frame, list)?;
        let mut name = copied::text(frame, method)?;
        name.push(0);
        let real = apr::symbol(NAME).ok_or("the server does not have it")?;
        // SAFETY: it is httpd's function, with a string of ours that ends with a zero.
        let real: extern "C" fn(*const u8) -> u32 = unsafe { std::mem::transmute(real) };
        match real(name.as_ptr()) {
            UNKNOWN if others == 0 => Ok(0),
            UNKNOWN => Ok(u64::from(position(frame, others, method, 0)?.is_some())),
            number => Ok(bits.checked_shr(number).unwrap_or(0) & 1),
        }
    })
}

/// An array of strings, from a line; it ends with a null pointer.
pub(crate) extern "C" fn apr_tokenize_to_argv(text: u64, to: u64, pool: u64) -> u64 {
    mediate(|frame| {
        frame.walled.must_write(to, 8)?;
        let real =
            crate::apr::symbol("apr_tokenize_to_argv").ok_or("the server does not have it")?;
        frame.walled.pool(frame, pool)?;
        let text = copied::name(frame, text)?;
        let mut made = 0u64;
        // SAFETY: it is APR's function, with a place of ours for its result.
        let real: extern "C" fn(u64, *mut u64, u64) -> u64 = unsafe { std::mem::transmute(real) };
        let status = real(text.as_ptr() as u64, &mut made, pool);
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

/// Names of a regular expression's parts. The core puts them into an array of ours, from which the module's gets copies.
pub(crate) extern "C" fn ap_regname(regex: u64, names: u64, prefix: u64, upper: u64) -> u64 {
    const NAME: &str = "ap_regname";
    mediate(|frame| {
        let walled = frame.walled;
        let real_regex = walled.pattern(regex).unwrap_or(regex);
        if !call::has(frame, Kind::Regex, real_regex) {
            return Err(format!("{NAME}: {regex:#x} is no regular expression"));
        }
        let mut head = Head::own(frame, names)?;
        walled.pool(frame, head.pool)?;
        if head.size != 8 {
            return Err(format!("{NAME}: an array of {} bytes each", head.size));
        }
        let prefix = match prefix {
            0 => None,
            at => Some([copied::text(frame, at)?, vec![0]].concat()),
        };
        let prefix = prefix.as_ref().map_or(0, |text| text.as_ptr() as u64);
        let find = |name| apr::symbol(name).ok_or("the server does not have it");
        let (make, real) = (find("apr_array_make")?, find(NAME)?);
        // SAFETY: they are APR's and httpd's functions, with a pool that lives, an array that nobody else knows, an expression of
        // the core's, and a string of ours.
        let (ours, most) = unsafe {
            let make: extern "C" fn(u64, u64, u64) -> u64 = std::mem::transmute(make);
            let real: extern "C" fn(u64, u64, u64, u64) -> i32 = std::mem::transmute(real);
            let ours = make(head.pool, 4, 8);
            (ours, real(real_regex, ours, prefix, upper))
        };
        let found = Head::read(frame, ours)?;
        head.grow(frame, found.used.saturating_sub(head.used))?;
        for at in 0..found.used {
            // SAFETY: the core has made the array.
            let name = match unsafe { read(found.elements + 8 * at) } {
                0 if at < head.used => continue,
                0 => 0,
                // SAFETY: its strings end with zeros.
                name => walled.copy(frame, head.pool, unsafe { apr::text(name) })?,
            };
            let to = head.elements.wrapping_add(8 * at);
            walled.must_write(to, 8)?;
            // SAFETY: the module may write there.
            unsafe { (to as *mut u64).write(name) };
        }
        head.used = head.used.max(found.used);
        head.write();
        Ok(most as u32 as u64)
    })
}
