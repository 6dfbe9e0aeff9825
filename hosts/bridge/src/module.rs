//! A module behind its wall, as its bridge sees it.

use crate::heap::Heap;
use mullion_symbols::Symbols;
use mullion_word_runtime::{Domain, FaultKind, Host, Report};
use mullion_word_table::Access;
use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Why something that a module asks for is refused. It ends the module's call.
#[derive(Debug)]
pub struct Refused(pub String);

/// What a module asks for, or why not.
pub type Answer<T> = Result<T, Refused>;

/// Refuses.
///
/// # Errors
/// Always.
pub fn refused<T>(what: impl Into<String>) -> Answer<T> {
    Err(Refused(what.into()))
}

/// What a domain's code may read and write, for a bridge that does so in its name.
pub struct Reach<'a>(pub &'a Domain);

impl<'a> Reach<'a> {
    fn allows(&self, at: u64, bytes: u64, access: Access) -> bool {
        bytes == 0 || self.0.view().allows(at, bytes, access)
    }

    /// The bytes that a module points to, which it must be able to read itself. They must not be kept over a call of the
    /// module, which may write them.
    ///
    /// # Errors
    /// It may not read them.
    pub fn bytes(&self, at: u64, bytes: u64) -> Answer<&'a [u8]> {
        if bytes == 0 {
            return Ok(&[]);
        }
        match self.allows(at, bytes, Access::READ) {
            // SAFETY: the module may read it, so there is memory. On this thread nothing of the module runs meanwhile. On
            // another one it may change bytes, as any process may change what it shares: nobody here reads twice what it
            // decides by.
            true => Ok(unsafe { std::slice::from_raw_parts(at as *const u8, bytes as usize) }),
            false => refused(format!(
                "{bytes} bytes at {at:#x} are not the module's to read"
            )),
        }
    }

    /// A string of the module's, without its end.
    ///
    /// # Errors
    /// It may not read it.
    pub fn text(&self, at: u64) -> Answer<&'a [u8]> {
        self.text_up_to(at, u64::MAX)
    }

    /// A string of the module's, or `most` bytes of it, whatever is shorter.
    ///
    /// # Errors
    /// It may not read it.
    pub fn text_up_to(&self, at: u64, most: u64) -> Answer<&'a [u8]> {
        let mut length = 0;
        while length < most {
            // To the end of the piece of 64 bytes, if that may be read; otherwise to the end of the word.
            let here = at.wrapping_add(length);
            let whole = (64 - here % 64).min(most - length);
            let piece = match self.bytes(here, whole) {
                Ok(piece) => piece,
                Err(_) => self.bytes(here, (4 - here % 4).min(most - length))?,
            };
            match piece.iter().position(|byte| *byte == 0) {
                Some(end) => return self.bytes(at, length + end as u64),
                None => length += piece.len() as u64,
            }
        }
        self.bytes(at, length)
    }

    /// A copy of a string of the module's.
    ///
    /// # Errors
    /// It may not read it.
    pub fn c_string(&self, at: u64) -> Answer<CString> {
        Ok(CString::new(self.text(at)?).unwrap_or_default())
    }

    /// Writes where the module might have written itself.
    ///
    /// # Errors
    /// It may not.
    pub fn write(&self, at: u64, bytes: &[u8]) -> Answer<()> {
        let count = bytes.len() as u64;
        if !self.allows(at, count, Access::WRITE) {
            return refused(format!(
                "{count} bytes at {at:#x} are not the module's to write"
            ));
        }
        // SAFETY: the module may write it, so there is memory, and nothing of the host's is there.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
        Ok(())
    }
}

/// A module. It stays for the life of the process, because hosts keep pointers to what is theirs of it.
pub struct Module {
    /// Its name in reports.
    pub name: String,
    /// Its domain.
    pub domain: Domain,
    /// The run time.
    pub host: Host,
    heap: Mutex<Heap>,
    /// Counts restarts.
    life: AtomicU64,
    fault: Mutex<Option<String>>,
    symbols: Mutex<Symbols>,
    name_of: fn(u64) -> Option<&'static str>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Module {
    pub(crate) fn new(
        name: &str,
        domain: Domain,
        host: Host,
        heap: Heap,
        symbols: Symbols,
        name_of: fn(u64) -> Option<&'static str>,
    ) -> &'static Module {
        Box::leak(Box::new(Module {
            name: name.to_owned(),
            domain,
            host,
            heap: Mutex::new(heap),
            life: AtomicU64::new(0),
            fault: Mutex::default(),
            symbols: Mutex::new(symbols),
            name_of,
        }))
    }

    /// How often it was restarted.
    #[must_use]
    pub fn life(&self) -> u64 {
        self.life.load(Ordering::Relaxed)
    }

    /// The module's heap.
    pub fn heap(&self) -> MutexGuard<'_, Heap> {
        lock(&self.heap)
    }

    /// Fresh data and an empty heap; reports of the life before are gone. No call of the module may be running.
    ///
    /// # Errors
    /// Calls in it have not returned.
    pub fn restart(&self) -> Result<(), String> {
        // The new life's constructors may allocate, so the heap is empty before.
        self.heap().clear();
        self.life.fetch_add(1, Ordering::Relaxed);
        let _older = self.domain.take_reports();
        *lock(&self.fault) = None;
        self.domain.restart().map_err(|error| error.to_string())
    }

    /// Whether it takes calls.
    #[must_use]
    pub fn runs(&self) -> bool {
        !self.domain.is_ended()
    }

    /// Why it takes no calls.
    #[must_use]
    pub fn fault(&self) -> String {
        for report in self.domain.take_reports() {
            let text = self.describe(&report);
            lock(&self.fault).get_or_insert(text);
        }
        let fault = lock(&self.fault);
        let why = fault.as_deref().unwrap_or("it was ended");
        format!("the wall stopped {}: {why}", self.name)
    }

    /// A report with the line of the module's source.
    fn describe(&self, report: &Report) -> String {
        let function = report.address.filter(|_| report.kind == FaultKind::Call);
        let mut text = match (function.and_then(self.name_of), report.kind) {
            // The module calls it by an address that it was given.
            (Some(name), _) => {
                format!("a call of {name}, which `allow = [\"{name}\"]` in its policy would allow")
            }
            (_, FaultKind::Time) => "its time is over (`time` in [limits])".to_owned(),
            (_, FaultKind::DataStack) => "its stack is full (`stack` in [limits])".to_owned(),
            (_, FaultKind::Policy) => report.object.to_string(),
            (_, kind) => {
                let address = report.address.map(|at| format!(" of {at:#x}"));
                let object = match report.object.as_str() {
                    "" => String::new(),
                    object => format!(", {object}"),
                };
                format!("{kind:?}{}{object}", address.unwrap_or_default())
            }
        };
        let place = match report.instruction {
            0 => None,
            at => lock(&self.symbols).find(at).into_iter().next(),
        };
        if let Some(place) = place.filter(|place| place.line.is_some()) {
            text.push_str(&format!("; at {place}"));
        }
        text.push_str(&reached(report, function.and_then(self.name_of)));
        text
    }

    /// What the module may read and write.
    #[must_use]
    pub fn reach(&self) -> Reach<'_> {
        Reach(&self.domain)
    }

    /// As [`Reach::bytes`].
    ///
    /// # Errors
    /// It may not read them.
    pub fn bytes(&self, at: u64, bytes: u64) -> Answer<&[u8]> {
        let inside = self.heap().contains(at, bytes);
        match inside {
            // SAFETY: the heap is mapped, and the module's; as in `Reach::bytes`.
            true => Ok(unsafe { std::slice::from_raw_parts(at as *const u8, bytes as usize) }),
            false => Reach(&self.domain).bytes(at, bytes),
        }
    }

    /// As [`Reach::text`].
    ///
    /// # Errors
    /// It may not read it.
    pub fn text(&self, at: u64) -> Answer<&[u8]> {
        self.reach().text_up_to(at, u64::MAX)
    }

    /// As [`Reach::c_string`].
    ///
    /// # Errors
    /// It may not read it.
    pub fn c_string(&self, at: u64) -> Answer<CString> {
        self.reach().c_string(at)
    }

    /// A number that the module has written.
    ///
    /// # Errors
    /// It may not read it.
    pub fn read(&self, at: u64) -> Answer<u64> {
        let bytes = self.bytes(at, 8)?;
        Ok(u64::from_ne_bytes(bytes.try_into().unwrap_or_default()))
    }

    /// As [`Reach::write`].
    ///
    /// # Errors
    /// It may not.
    pub fn write(&self, at: u64, bytes: &[u8]) -> Answer<()> {
        self.reach().write(at, bytes)
    }

    /// A block of the module's heap.
    #[must_use]
    pub fn take(&self, bytes: u64) -> Option<u64> {
        self.heap().take(&self.host, &self.domain, bytes)
    }

    /// A copy of these bytes on the module's heap, with a zero behind it. The module frees it.
    #[must_use]
    pub fn give(&self, bytes: &[u8]) -> Option<u64> {
        let at = self.take(bytes.len() as u64 + 1)?;
        // SAFETY: the block has room for both, and it is nobody's else.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len());
            ((at as usize + bytes.len()) as *mut u8).write(0);
        }
        Some(at)
    }

    /// Gives a block of the module's heap back.
    ///
    /// # Errors
    /// It is none.
    pub fn free(&self, at: u64) -> Answer<()> {
        match at == 0 || self.heap().give(at) {
            true => Ok(()),
            false => refused(format!("{at:#x} is no block of the module's heap")),
        }
    }

    /// Another size for a block; null if there is no room.
    ///
    /// # Errors
    /// It is none.
    pub fn resize(&self, at: u64, bytes: u64) -> Answer<u64> {
        if at == 0 {
            return Ok(self.take(bytes.max(1)).unwrap_or(0));
        }
        let old = self.heap().size(at);
        match old {
            Some(old) if bytes <= old && 2 * bytes > old => Ok(at),
            Some(old) => {
                let Some(to) = self.take(bytes.max(1)) else {
                    return Ok(0);
                };
                let kept = self.bytes(at, old.min(bytes))?;
                self.write(to, kept)?;
                self.free(at)?;
                Ok(to)
            }
            None => self.free(at).map(|()| 0),
        }
    }

    /// A function of the module: its address, which must be that of a gate it has itself; or null.
    ///
    /// # Errors
    /// It is none.
    pub fn function(&self, at: u64) -> Answer<u64> {
        let may = at.is_multiple_of(16) && self.domain.view().allows(at, 1, Access::ENTER);
        match may || at == 0 {
            true => Ok(at),
            false => refused(format!("{at:#x} is no function of the module")),
        }
    }
}

/// What the address of a report is to the module's code, and the line of policy that would allow it. `named` is told already.
#[must_use]
pub fn reached(report: &Report, named: Option<&str>) -> String {
    let field = report.field.as_ref();
    let mut text = field.map_or_else(String::new, |field| format!("; it is {field}"));
    if let Some(allow) = report.allow.as_ref().filter(|_| named.is_none()) {
        text.push_str(&format!("; allowed by {allow}"));
    }
    text
}

/// A function of a module, by its gate, with a type: `gate!(at, fn(u64) -> c_int)(data)`. A gate takes any arguments:
/// they are numbers to the module, which can do with them what it may.
#[macro_export]
macro_rules! gate {
    ($at:expr, fn($($parameter:ty),* $(,)?) $(-> $result:ty)?) => {{
        let at: u64 = $at;
        // SAFETY: `Module::function` has seen that a switch gate is there, and its text stays mapped.
        unsafe { std::mem::transmute::<u64, extern "C" fn($($parameter),*) $(-> $result)?>(at) }
    }};
}
