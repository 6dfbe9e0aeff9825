//! Behind the language alone: a module's machine code in the forwarder itself, as its compiler made it.
//!
//! Nothing holds it in, and nothing stops it. A policy, a record and the operator's configuration speak for it: a trusted
//! compiler has judged its source, and bounded its stack and its instructions.

use crate::module::{FORM, LoadError, Shared};
use crate::room::Contents;
use mullion_loader::Native;
use object::Endianness;
use object::elf::{FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::ffi::{CStr, CString, c_void};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;

type Place = extern "C" fn(u32) -> i32;
type Offer = extern "C" fn(*const Shared, extern "C" fn(*const Shared, *const u8, u32) -> i32);
type Steps = extern "C" fn(*mut Contents, u32);

/// A module's library, open.
pub(crate) struct Library {
    steps: Steps,
    _handle: Handle,
    /// Its file, which keeps its number: the system takes two libraries of one name for one.
    _file: File,
    /// What the library was told of; it goes after the library.
    _shared: Arc<Shared>,
}

/// What the system knows it by.
struct Handle(*mut c_void);

// SAFETY: it is for `dlsym` and `dlclose`, which any thread may call.
unsafe impl Send for Handle {}

/// Bytes of memory that a library takes when it is loaded: of all its segments that are. `None`: it is no library.
pub(crate) fn memory(bytes: &[u8]) -> Option<u64> {
    let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
    let order = header.endian().ok()?;
    let segments = header.program_headers(order, bytes).ok()?;
    let loaded = segments.iter().filter(|one| one.p_type(order) == PT_LOAD);
    loaded
        .map(|one| one.p_memsz(order))
        .try_fold(0, u64::checked_add)
}

impl Library {
    /// Opens what was admitted. Reports go to `shared`.
    ///
    /// # Errors
    /// The system's; it has not the functions of this form.
    pub(crate) fn open(native: &Native, shared: Arc<Shared>) -> Result<Library, LoadError> {
        let file = sealed(native.bytes())?;
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let path = path.map_err(io::Error::other)?;
        // SAFETY: a signed record says that a trusted compiler made these bytes, of source that it judged, for this very
        // use. They have no constructors. Each such file is another library to the system.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(LoadError::System(last_error()));
        }
        let handle = Handle(handle);
        let place = handle.function(c"packets_place")?;
        // SAFETY: the environment, which is trusted source and whose digest the type has, defines it so.
        let place = unsafe { std::mem::transmute::<*mut c_void, Place>(place) };
        if place(FORM) != 1 {
            return Err(LoadError::Form);
        }
        let offer = handle.function(c"packets_offer")?;
        // SAFETY: the environment defines it so, and calls what it is offered while the library is open alone.
        let offer = unsafe { std::mem::transmute::<*mut c_void, Offer>(offer) };
        offer(Arc::as_ptr(&shared), report);
        let steps = handle.function(c"packets_steps")?;
        Ok(Library {
            // SAFETY: the environment defines it so: it takes a room of the form that `place` has agreed to.
            steps: unsafe { std::mem::transmute::<*mut c_void, Steps>(steps) },
            _handle: handle,
            _file: file,
            _shared: shared,
        })
    }

    /// Has it answer so many frames in a room.
    pub(crate) fn call(&mut self, contents: &mut Contents, count: u32) {
        (self.steps)(contents, count);
    }
}

impl Handle {
    fn function(&self, name: &CStr) -> Result<*mut c_void, LoadError> {
        // SAFETY: the library is open, and the name a string.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        match found.is_null() {
            true => Err(LoadError::System(last_error())),
            false => Ok(found),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: it is open, nobody runs in it, and nobody uses it after this.
        unsafe { libc::dlclose(self.0) };
    }
}

/// Takes a report of a module's.
extern "C" fn report(shared: *const Shared, text: *const u8, length: u32) -> i32 {
    // SAFETY: it is what `open` offered, and the library keeps it alive. The environment gives it back as it was.
    let shared = unsafe { &*shared };
    // SAFETY: the environment calls this with a text of its own stack, which is there for the call.
    let text = unsafe { std::slice::from_raw_parts(text, length as usize) };
    shared.told(text)
}

/// The bytes in a file of memory that nobody can change any more.
fn sealed(bytes: &[u8]) -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(memfd_create(c"packets-module", flags)?);
    file.write_all(bytes)?;
    fcntl_add_seals(
        &file,
        SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL,
    )?;
    // Somebody with our rights could have written in between.
    let mut found = Vec::with_capacity(bytes.len());
    file.rewind()?;
    file.read_to_end(&mut found)?;
    match found == bytes {
        true => Ok(file),
        false => Err(io::Error::other("somebody else wrote into a module's file")),
    }
}

fn last_error() -> io::Error {
    // SAFETY: the text is the system's, and there until this thread's next call of that kind.
    let said = unsafe { libc::dlerror() };
    if said.is_null() {
        return io::Error::other("the system does not say why");
    }
    // SAFETY: it is a string with its end.
    let said = unsafe { CStr::from_ptr(said) };
    io::Error::other(said.to_string_lossy().into_owned())
}
