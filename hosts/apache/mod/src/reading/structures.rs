//! Structures of the core that modules read whose loads are checked: how large they are, and what they lead to.

use super::{inside, within};
use crate::apr;
use crate::layout::{self, read};
use crate::object::Kind;

/// Bytes of structures, and where they have strings or what leads to strings. The test `numbers` holds the sizes against the
/// headers, and most places.
pub(super) const SERVER: u64 = 192;
pub(super) const SERVER_TEXTS: [u64; 6] = [16, 64, 80, 88, 96, 152];
pub(super) const SERVER_NAMES: [u64; 2] = [136, 144];
pub(super) const SERVER_ADDRESSES: u64 = 104;
pub(super) const SERVER_DEFAULTS: u64 = 56;
pub(super) const SERVER_ADDRESS: u64 = 32;
pub(super) const ADDRESS: u64 = 192;
pub(super) const PROCESS: u64 = 40;
pub(super) const FILTER_RECORD: u64 = 56;
pub(super) const DIRECTIVE: u64 = 72;
pub(super) const DIRECTIVE_TEXTS: [u64; 3] = [0, 8, 48];
pub(super) const COMMAND_STATE: u64 = 120;
pub(super) const COMMAND_PATH: u64 = 88;
pub(super) const CORE_DIRECTORY: u64 = 280;
pub(super) const CORE_SERVER: u64 = 136;
pub(super) const ARRAY: u64 = 32;
pub(super) const ENTRY: u64 = 24;

/// Strings of requests, which modules may set.
pub(super) const TEXTS: [u64; 32] = [
    48, 72, 80, 96, 112, 168, 272, 280, 288, 304, 312, 320, 328, 336, 344, 352, 360, 368, 408, 688,
    712, 472, 480, 488, 496, 504, 512, 520, 528, 536, 656, 664,
];
pub(super) const LANGUAGES: u64 = 296;
pub(super) const TABLES: [u64; 7] = [
    layout::R_HEADERS_IN,
    layout::R_HEADERS_OUT,
    layout::R_ERR_HEADERS_OUT,
    layout::R_SUBPROCESS_ENV,
    layout::R_NOTES,
    layout::R_TRAILERS_IN,
    layout::R_TRAILERS_OUT,
];

/// Bytes of an object that its header shows, if modules look into it.
pub(super) fn shown(kind: Kind) -> u64 {
    match kind {
        Kind::Address => ADDRESS,
        Kind::Regex => 24,
        Kind::Expression | Kind::Pattern => 32,
        _ => 0,
    }
}

/// A table's head, its elements, or one of its strings.
///
/// # Safety
/// It is a table of the core's that lives.
pub(super) unsafe fn in_table(table: u64, at: u64) -> Option<(u64, u64)> {
    if table == 0 {
        return None;
    }
    // SAFETY: the caller has said that the table lives, and APR's head of one has these words.
    let (count, elements) = unsafe { (u64::from(read(table + 12) as u32), read(table + 24)) };
    let texts = || {
        (0..2 * count).find_map(|n| {
            // SAFETY: the table has so many elements, each with two strings in front.
            within(
                unsafe { read(elements + ENTRY * (n / 2) + 8 * (n % 2)) },
                at,
            )
        })
    };
    let own = inside(table, ARRAY, at).or_else(|| inside(elements, ENTRY * count, at));
    own.or_else(texts)
}

/// The same of an array of strings.
///
/// # Safety
/// It is an array of the core's that lives.
pub(super) unsafe fn in_names(array: u64, at: u64) -> Option<(u64, u64)> {
    if array == 0 {
        return None;
    }
    // SAFETY: the caller has said that the array lives, and APR's head of one has these words.
    let (count, elements) = unsafe { (u64::from(read(array + 12) as u32), read(array + 24)) };
    let own = inside(array, ARRAY, at).or_else(|| inside(elements, 8 * count, at));
    // SAFETY: the array has so many elements.
    own.or_else(|| (0..count).find_map(|n| within(unsafe { read(elements + 8 * n) }, at)))
}

/// A string of a structure.
///
/// # Safety
/// The structure is the core's, and has pointers or null there.
pub(super) unsafe fn in_texts(start: u64, places: &[u64], at: u64) -> Option<(u64, u64)> {
    // SAFETY: the caller has said that the structure has a pointer or null at each of these places.
    let mut texts = places.iter().map(|place| unsafe { read(start + place) });
    texts.find_map(|text| within(text, at))
}

/// Part of a server.
///
/// # Safety
/// It is a server of the core's.
pub(super) unsafe fn in_server(s: u64, at: u64) -> Option<(u64, u64)> {
    // SAFETY: by the caller; what it leads to is the core's, and no module writes there.
    unsafe {
        let process = read(s + layout::S_PROCESS);
        let next = |one: &u64| Some(read(*one)).filter(|next| *next != 0);
        let first = Some(read(s + SERVER_ADDRESSES)).filter(|first| *first != 0);
        let mut addresses = std::iter::successors(first, next).take(1 << 16);
        let in_address = |one: u64| {
            inside(one, SERVER_ADDRESS, at)
                .or_else(|| inside(read(one + 8), ADDRESS, at))
                .or_else(|| in_texts(one, &[24], at))
        };
        inside(s, SERVER, at)
            .or_else(|| in_texts(s, &SERVER_TEXTS, at))
            .or_else(|| inside(process, PROCESS, at))
            .or_else(|| in_texts(process, &[16], at))
            .or_else(|| {
                SERVER_NAMES
                    .iter()
                    .find_map(|names| in_names(read(s + names), at))
            })
            .or_else(|| addresses.find_map(in_address))
    }
}

/// The pages of a mapping that nobody writes: constants and code of the server and of libraries.
pub(super) fn constant(at: u64) -> Option<(u64, u64)> {
    const PAGE: u64 = 4096;
    const LOAD: u32 = 1;
    const RELRO: u32 = 0x6474_e552;
    struct Search {
        at: u64,
        is_constant: bool,
        is_kept: bool,
    }
    extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, data: *mut libc::c_void) -> i32 {
        // SAFETY: the dynamic linker passes a description, and we our own search.
        let (info, search) = unsafe { (&*info, &mut *data.cast::<Search>()) };
        for n in 0..usize::from(info.dlpi_phnum) {
            // SAFETY: it has so many headers.
            let header = unsafe { &*info.dlpi_phdr.add(n) };
            let (start, bytes) = (info.dlpi_addr + header.p_vaddr, header.p_memsz);
            // Part of a page may have something else behind it.
            let first = start & !(PAGE - 1);
            let is_in = match header.p_type {
                LOAD if header.p_flags & libc::PF_W == 0 => {
                    (first..start + bytes).contains(&search.at)
                }
                RELRO => (first..(start + bytes) & !(PAGE - 1)).contains(&search.at),
                _ => false,
            };
            search.is_constant |= is_in;
            search.is_kept |= header.p_type == LOAD && (start..start + bytes).contains(&search.at);
        }
        i32::from(search.is_kept && search.is_constant)
    }
    let mut search = Search {
        at,
        is_constant: false,
        is_kept: false,
    };
    // SAFETY: the function takes what is passed.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut search).cast()) };
    let page = at & !(PAGE - 1);
    search.is_constant.then_some((page, PAGE))
}

/// Where a variable of the host is, and how large its file says that it is.
pub(super) fn variable(name: &str) -> Option<(u64, u64)> {
    unsafe extern "C" {
        fn dladdr1(
            at: *const libc::c_void,
            info: *mut libc::Dl_info,
            extra: *mut *mut libc::c_void,
            flags: i32,
        ) -> i32;
    }
    const SYMBOL: i32 = 1;
    let at = apr::symbol(name)?;
    // SAFETY: zeros are a description without names, which the call fills in. The symbol is the file's.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let mut symbol = std::ptr::null_mut();
        if dladdr1(at as *const _, &mut info, &mut symbol, SYMBOL) == 0 || symbol.is_null() {
            return None;
        }
        let symbol = &*symbol.cast::<libc::Elf64_Sym>();
        // A function is no variable.
        (symbol.st_info & 15 == 1 && info.dli_saddr as usize == at)
            .then_some((at as u64, symbol.st_size))
    }
}
