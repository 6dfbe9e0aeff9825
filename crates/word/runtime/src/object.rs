//! What is at an address, for people and for those who write policies.

use crate::core::Core;
use crate::memory::lock;
use crate::world::world;
use mullion_supervisor::DomainId;
use std::fmt;
use std::mem::MaybeUninit;

/// Whose memory it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The host's.
    Host,
    /// The module's own.
    Own,
    /// Another module's, by its name.
    Module(String),
    /// No memory can be there.
    Nobody,
}

/// A block that an allocator has given to a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first address.
    pub address: u64,
    /// Its size.
    pub bytes: u64,
    /// Which module has it.
    pub module: String,
    /// Which allocator gave it; none for the C library's ([`FunctionPolicy::allocator`](crate::FunctionPolicy::allocator)).
    pub allocator: Option<&'static str>,
}

/// What is at an address. Its text is for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Whose words.
    pub owner: Owner,
    /// The blocks that it lies in.
    pub blocks: Vec<Block>,
    /// The host's symbol at or before it, and the symbol's address, by the dynamic linker.
    pub symbol: Option<(String, u64)>,
}

/// What is at `address`, told by `core`. Takes locks of the host.
pub(crate) fn object(core: &Core, address: u64) -> Object {
    let owner = world().supervisor().owner(address / 4);
    let domains = lock(&world().domains);
    let owner = match owner {
        Some(DomainId::SUPERVISOR) => Owner::Host,
        Some(owner) if owner == core.id => Owner::Own,
        Some(owner) => {
            let name = domains
                .get(owner)
                .map_or("an ended module", |core| core.module.name());
            Owner::Module(name.to_owned())
        }
        None => Owner::Nobody,
    };
    let holders = domains
        .all()
        .flat_map(|other| other.holders().map(move |one| (other, one)));
    let blocks = holders.filter_map(|(other, holder)| {
        let (at, held) = holder.block_at(address)?;
        Some(Block {
            address: at,
            bytes: held.bytes,
            module: other.module.name().to_owned(),
            allocator: Some(held.allocator).filter(|name| !name.is_empty()),
        })
    });
    Object {
        owner,
        blocks: blocks.collect(),
        symbol: symbol_at(address),
    }
}

/// How large the host's variable at an address is, by the symbol table of its file.
pub(crate) fn size_of_symbol(address: u64) -> Option<u64> {
    /// `Elf64_Sym`.
    #[repr(C)]
    struct Entry {
        name: u32,
        info: u8,
        other: u8,
        section: u16,
        value: u64,
        bytes: u64,
    }
    unsafe extern "C" {
        fn dladdr1(
            address: *const libc::c_void,
            info: *mut libc::Dl_info,
            extra: *mut *const Entry,
            flags: i32,
        ) -> i32;
    }
    const RTLD_DL_SYMENT: i32 = 1;
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    let mut entry: *const Entry = std::ptr::null();
    // SAFETY: it looks an address up, and fills both in.
    let found = unsafe {
        dladdr1(
            address as *const _,
            info.as_mut_ptr(),
            &raw mut entry,
            RTLD_DL_SYMENT,
        )
    };
    // SAFETY: all zeros are a description without names.
    let info = unsafe { info.assume_init() };
    // SAFETY: an entry of a file's symbol table, which stays as long as the file is loaded; or null.
    let entry = unsafe { entry.as_ref() }?;
    let is_it = found != 0 && info.dli_saddr as u64 == address;
    (is_it && entry.bytes != 0).then_some(entry.bytes)
}

/// The host's symbol at an address, by its dynamic linker.
pub(crate) fn symbol_at(address: u64) -> Option<(String, u64)> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: it looks an address up, and fills the structure in.
    let found = unsafe { libc::dladdr(address as *const _, info.as_mut_ptr()) };
    // SAFETY: all zeros are a description without names.
    let info = unsafe { info.assume_init() };
    if found == 0 || info.dli_sname.is_null() {
        return None;
    }
    // SAFETY: the dynamic linker's names end with a zero, and stay.
    let name = unsafe { std::ffi::CStr::from_ptr(info.dli_sname) };
    Some((name.to_string_lossy().into_owned(), info.dli_saddr as u64))
}

impl Object {
    /// The host's variable that `address` is in, and how many bytes into it.
    pub(crate) fn variable(&self, address: u64) -> Option<(&str, u64)> {
        let (name, start) = self.symbol.as_ref()?;
        let distance = address.checked_sub(*start)?;
        let is_in = size_of_symbol(*start).is_some_and(|bytes| distance < bytes);
        is_in.then_some((name, distance))
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.owner {
            Owner::Host => f.write_str("memory of the host")?,
            Owner::Own => f.write_str("the module's own")?,
            Owner::Module(name) => write!(f, "memory of {name}")?,
            Owner::Nobody => f.write_str("no address that memory can have")?,
        }
        for Block {
            address,
            bytes,
            module,
            allocator,
        } in &self.blocks
        {
            write!(f, ", a block of {bytes} bytes at {address:#x} that ")?;
            match allocator {
                Some(allocator) => write!(f, "{allocator} has given to {module}")?,
                None => write!(f, "was given to {module}")?,
            }
        }
        match &self.symbol {
            Some((name, _)) => write!(f, ", {name}"),
            None => Ok(()),
        }
    }
}
