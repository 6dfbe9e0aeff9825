//! Directories, by libldap. A module passes objects that it has from the library, and options that hold numbers. Controls have
//! addresses that the library follows, so a module passes none.

use crate::apr;
use crate::back;
use crate::call::mediate;
use crate::copied;
use crate::frame::Frame;
use crate::held::{self, Kind};
use crate::interface::back as kind;
use crate::slots::{self, WIDE};
use crate::walled::Answer;

/// Calls a function of libldap's or APR's of up to twelve integers.
fn library(name: &str, arguments: &[u64]) -> Answer<u64> {
    let real = apr::symbol(name).ok_or_else(|| format!("{name} is not in this system"))?;
    let mut all = [0; WIDE];
    for (to, from) in all.iter_mut().zip(arguments) {
        *to = *from;
    }
    // SAFETY: it is the library's function of this name. Each caller below has looked at the objects and at the places that are
    // written; the library only reads the rest.
    Ok(unsafe { slots::call_wide(real as u64, &all) })
}

/// Copies of what the library reads, until its function returns.
#[derive(Default)]
struct Copies {
    texts: Vec<Vec<u8>>,
    words: Vec<Box<[u64]>>,
}

impl Copies {
    /// A string, or null.
    fn text(&mut self, frame: &Frame, at: u64) -> Answer<u64> {
        if at == 0 {
            return Ok(0);
        }
        let mut text = copied::text(frame, at)?;
        text.push(0);
        let to = text.as_ptr() as u64;
        self.texts.push(text);
        Ok(to)
    }

    /// Strings, with a null pointer behind the last one; or null.
    fn list(&mut self, frame: &Frame, at: u64) -> Answer<u64> {
        const MOST: u64 = 4096;
        let mut all = Vec::new();
        for place in (0..MOST).map(|n| at.wrapping_add(8 * n)) {
            if at == 0 {
                return Ok(0);
            }
            let [text] = copied::words(frame, place)?;
            all.push(self.text(frame, text)?);
            if text == 0 {
                return Ok(self.keep(all.into()));
            }
        }
        Err(format!("{at:#x} is no list of attributes"))
    }

    /// Seconds and their parts, or null.
    fn time(&mut self, frame: &Frame, at: u64) -> Answer<u64> {
        match at {
            0 => Ok(0),
            at => Ok(self.keep(Box::new(copied::words::<2>(frame, at)?))),
        }
    }

    fn keep(&mut self, words: Box<[u64]>) -> u64 {
        let to = words.as_ptr() as u64;
        self.words.push(words);
        to
    }
}

/// The library puts an object into a word of ours, which the module gets with it.
fn made(frame: &Frame, to: u64, kind: Kind, act: impl FnOnce(u64) -> Answer<u64>) -> Answer<u64> {
    frame.walled.must_write(to, 8)?;
    let mut object = 0u64;
    let status = act(&raw mut object as u64)?;
    held::keep(frame.walled, object, kind, 0);
    // SAFETY: the module may write there.
    unsafe { (to as *mut u64).write(object) };
    Ok(status)
}

pub(crate) extern "C" fn apr_ldap_init(
    pool: u64,
    to: u64,
    host: u64,
    port: u64,
    secure: u64,
    error: u64,
) -> u64 {
    mediate(|frame| {
        frame.walled.pool(frame, pool)?;
        frame.walled.must_write(error, 8)?;
        let mut copies = Copies::default();
        let host = copies.text(frame, host)?;
        made(frame, to, Kind::Directory, |word| {
            library("apr_ldap_init", &[pool, word, host, port, secure, error])
        })
    })
}

/// What an option's value is.
enum Value {
    /// So many bytes, which the library copies.
    Bytes(u64),
    /// One of two addresses, which are compared.
    Switch,
    /// An array of names of files.
    Names,
}

/// Others have functions, or structures that the library follows.
const OPTIONS: [(u32, Value); 13] = [
    (0x02, Value::Bytes(4)),
    (0x03, Value::Bytes(4)),
    (0x04, Value::Bytes(4)),
    (0x08, Value::Switch),
    (0x11, Value::Bytes(4)),
    (0x5001, Value::Bytes(4)),
    (0x5002, Value::Bytes(16)),
    (0x5005, Value::Bytes(16)),
    (0x6006, Value::Bytes(4)),
    // APR's own: a limit of referrals, referrals, whether certificates are looked at, certificates.
    (0x6ffb, Value::Bytes(4)),
    (0x6ffc, Value::Switch),
    (0x6ffd, Value::Bytes(4)),
    (0x6ffe, Value::Names),
];
/// APR's: TLS is to be used, as a number says.
const TLS: u32 = 0x6fff;
/// What a module may set for all of the process, and only while the server starts: how much the library tells.
const OF_PROCESS: u32 = 0x5001;

/// An option of a connection, or of all of them if there is none. A value of so many bytes is a copy of ours.
fn option(
    frame: &Frame,
    ld: u64,
    option: u64,
    value: u64,
    set: impl FnOnce(u64) -> Answer<u64>,
) -> Answer<u64> {
    let _held = match ld {
        0 => None,
        ld => Some(held::hold(frame.walled, ld, Kind::Directory, true)?),
    };
    let number = option as u32;
    if ld == 0 {
        let is_list = matches!(
            OPTIONS.iter().find(|(known, _)| *known == number),
            Some((_, Value::Names))
        );
        if !(number == OF_PROCESS || is_list && names(frame, value)?.is_empty()) {
            return Err(format!(
                "the option {number:#x} of the whole process is not for modules"
            ));
        }
        crate::pools::before_serving("an option of the whole process")?;
    }
    let known = OPTIONS.iter().find(|(known, _)| *known == number);
    match known.map(|(_, value)| value) {
        Some(Value::Bytes(bytes)) => value_of(frame, value, *bytes, set),
        None if number == TLS => value_of(frame, value, 4, set),
        Some(Value::Switch) => set(value),
        Some(Value::Names) => {
            let mut copies = Copies::default();
            let mut elements = Vec::new();
            for [kind, path, password] in names(frame, value)? {
                let [path, password] = [copies.text(frame, path)?, copies.text(frame, password)?];
                elements.extend([kind, path, password]);
            }
            let count = elements.len() as u64 / CERTIFICATE;
            let elements = copies.keep(elements.into());
            // The head of an array: its pool, sizes and counts, and where the elements are.
            let head = [0, (count << 32) | (8 * CERTIFICATE), count, elements];
            set(copies.keep(Box::new(head)))
        }
        None => Err(format!("the option {number:#x} is not for modules")),
    }
}

/// A certificate's words: its kind, a file and a password.
const CERTIFICATE: u64 = 3;

/// The certificates of an array, or of none.
fn names(frame: &Frame, array: u64) -> Answer<Vec<[u64; CERTIFICATE as usize]>> {
    if array == 0 {
        return Ok(Vec::new());
    }
    let [_, sizes, _, elements]: [u64; 4] = copied::words(frame, array)?;
    let count = sizes >> 32;
    if sizes as u32 as u64 != 8 * CERTIFICATE || count > 64 {
        return Err(format!("{array:#x} is no array of certificates"));
    }
    let places = (0..count).map(|at| elements.wrapping_add(8 * CERTIFICATE * at));
    places.map(|at| copied::words(frame, at)).collect()
}

fn value_of(
    frame: &Frame,
    value: u64,
    bytes: u64,
    set: impl FnOnce(u64) -> Answer<u64>,
) -> Answer<u64> {
    if value < 4096 {
        return Err(format!("{value:#x} is no value of an option"));
    }
    frame.walled.must_read(value, bytes)?;
    let mut copy = [0u8; 16];
    let room = copy.get_mut(..bytes as usize);
    copied::bytes(value, room.ok_or("a large value of an option")?)?;
    set(copy.as_mut_ptr() as u64)
}

pub(crate) extern "C" fn ldap_set_option(ld: u64, number: u64, value: u64) -> u64 {
    mediate(|frame| {
        option(frame, ld, number, value, |value| {
            library("ldap_set_option", &[ld, number, value])
        })
    })
}

pub(crate) extern "C" fn apr_ldap_set_option(
    pool: u64,
    ld: u64,
    number: u64,
    value: u64,
    error: u64,
) -> u64 {
    mediate(|frame| {
        frame.walled.pool(frame, pool)?;
        frame.walled.must_write(error, 8)?;
        option(frame, ld, number, value, |value| {
            library("apr_ldap_set_option", &[pool, ld, number, value, error])
        })
    })
}

/// The number of the last error, and no other option.
pub(crate) extern "C" fn ldap_get_option(ld: u64, number: u64, to: u64) -> u64 {
    const RESULT: u32 = 0x31;
    mediate(|frame| {
        if number as u32 != RESULT {
            return Err(format!("the option {number:#x} is not for modules"));
        }
        frame.walled.must_write(to, 4)?;
        let _held = held::hold(frame.walled, ld, Kind::Directory, true)?;
        library("ldap_get_option", &[ld, number, to])
    })
}

/// The module's function is called in a search, when another directory is asked.
pub(crate) extern "C" fn ldap_set_rebind_proc(ld: u64, function: u64, data: u64) -> u64 {
    mediate(|frame| {
        let _held = held::hold(frame.walled, ld, Kind::Directory, true)?;
        let function = back::stand_in(frame, kind("ldap_rebind"), function)?;
        library("ldap_set_rebind_proc", &[ld, function, data])
    })
}

/// Functions of a connection that get strings, and numbers behind these.
macro_rules! of_directory {
    ($($name:ident($($text:ident),*; $($number:ident),*);)*) => { $(
        pub(crate) extern "C" fn $name(ld: u64 $(, $text: u64)* $(, $number: u64)*) -> u64 {
            mediate(|frame| {
                let mut copies = Copies::default();
                let all = [ld $(, copies.text(frame, $text)?)* $(, $number)*];
                let _held = held::hold(frame.walled, ld, Kind::Directory, true)?;
                library(stringify!($name), &all)
            })
        }
    )* };
}

of_directory! {
    ldap_simple_bind(name, password;);
    ldap_bind_s(name, password; how);
    ldap_compare_s(name, attribute, value;);
}

pub(crate) extern "C" fn ldap_unbind_s(ld: u64) -> u64 {
    mediate(|frame| {
        held::take(frame.walled, ld, Kind::Directory)?;
        library("ldap_unbind_s", &[ld])
    })
}

pub(crate) extern "C" fn ldap_search_ext_s(
    ld: u64,
    base: u64,
    scope: u64,
    filter: u64,
    attributes: u64,
    names: u64,
    server: u64,
    client: u64,
    time: u64,
    most: u64,
    to: u64,
) -> u64 {
    mediate(|frame| {
        if server != 0 || client != 0 {
            return Err("ldap_search_ext_s: controls are not passed on".to_owned());
        }
        let mut copies = Copies::default();
        let (base, filter) = (copies.text(frame, base)?, copies.text(frame, filter)?);
        let attributes = copies.list(frame, attributes)?;
        let time = copies.time(frame, time)?;
        let _held = held::hold(frame.walled, ld, Kind::Directory, true)?;
        made(frame, to, Kind::Found, |word| {
            let arguments = [
                ld, base, scope, filter, attributes, names, 0, 0, time, most, word,
            ];
            library("ldap_search_ext_s", &arguments)
        })
    })
}

pub(crate) extern "C" fn ldap_result(ld: u64, number: u64, all: u64, time: u64, to: u64) -> u64 {
    mediate(|frame| {
        let mut copies = Copies::default();
        let time = copies.time(frame, time)?;
        let _held = held::hold(frame.walled, ld, Kind::Directory, true)?;
        made(frame, to, Kind::Found, |word| {
            library("ldap_result", &[ld, number, all, time, word])
        })
    })
}

/// The number of the error alone. Names, texts and controls would be the library's to free.
pub(crate) extern "C" fn ldap_parse_result(
    ld: u64,
    found: u64,
    to: u64,
    name: u64,
    text: u64,
    referrals: u64,
    controls: u64,
    frees: u64,
) -> u64 {
    mediate(|frame| {
        if [name, text, referrals, controls] != [0; 4] {
            return Err("ldap_parse_result: only the error's number is given".to_owned());
        }
        frame.walled.must_write(to, 4)?;
        let _held = held::hold(frame.walled, ld, Kind::Directory, true)?;
        let arguments = [ld, found, to, 0, 0, 0, 0, frees];
        match frees as u32 {
            0 => {
                let _held = held::hold(frame.walled, found, Kind::Found, true)?;
                library("ldap_parse_result", &arguments)
            }
            _ => {
                held::take(frame.walled, found, Kind::Found)?;
                library("ldap_parse_result", &arguments)
            }
        }
    })
}

pub(crate) extern "C" fn ldap_count_entries(ld: u64, found: u64) -> u64 {
    mediate(|frame| {
        let _first = held::hold(frame.walled, ld, Kind::Directory, true)?;
        let _second = held::hold(frame.walled, found, Kind::Found, true)?;
        library("ldap_count_entries", &[ld, found])
    })
}

/// The library may answer with the very object: then it is that one, and no entry besides.
pub(crate) extern "C" fn ldap_first_entry(ld: u64, found: u64) -> u64 {
    mediate(|frame| {
        let _first = held::hold(frame.walled, ld, Kind::Directory, true)?;
        let _second = held::hold(frame.walled, found, Kind::Found, true)?;
        let entry = library("ldap_first_entry", &[ld, found])?;
        if entry != found {
            held::keep(frame.walled, entry, Kind::Entry, found);
        }
        Ok(entry)
    })
}

/// What an entry is held as.
fn entry_kind(frame: &Frame, at: u64) -> Kind {
    match held::hold(frame.walled, at, Kind::Entry, true) {
        Ok(_) => Kind::Entry,
        Err(_) => Kind::Found,
    }
}

fn of_entry(name: &'static str, ld: u64, entry: u64, more: u64, gives: Kind) -> u64 {
    mediate(|frame| {
        let _first = held::hold(frame.walled, ld, Kind::Directory, true)?;
        let _second = held::hold(frame.walled, entry, entry_kind(frame, entry), true)?;
        let mut copies = Copies::default();
        let more = copies.text(frame, more)?;
        let result = library(name, &[ld, entry, more])?;
        held::keep(frame.walled, result, gives, 0);
        Ok(result)
    })
}

pub(crate) extern "C" fn ldap_get_dn(ld: u64, entry: u64) -> u64 {
    of_entry("ldap_get_dn", ld, entry, 0, Kind::Name)
}

pub(crate) extern "C" fn ldap_get_values(ld: u64, entry: u64, attribute: u64) -> u64 {
    of_entry("ldap_get_values", ld, entry, attribute, Kind::Values)
}

fn free(name: &'static str, at: u64, kind: Kind) -> u64 {
    mediate(|frame| match at {
        0 => Ok(0),
        at => {
            held::take(frame.walled, at, kind)?;
            library(name, &[at])
        }
    })
}

pub(crate) extern "C" fn ldap_msgfree(at: u64) -> u64 {
    free("ldap_msgfree", at, Kind::Found)
}

pub(crate) extern "C" fn ldap_memfree(at: u64) -> u64 {
    free("ldap_memfree", at, Kind::Name)
}

pub(crate) extern "C" fn ldap_value_free(at: u64) -> u64 {
    free("ldap_value_free", at, Kind::Values)
}
