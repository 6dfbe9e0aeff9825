//! The list in which each module has a word of its own for a request (`request_rec.request_config`). The core makes one in the request's
//! pool. A request gets one of ours in its place. It serves one request after another, and a module's word in it is granted once.
//!
//! ```text
//!   create_request ──► a list of ours, with what is in the core's ──► the request goes ──► the list waits for the next one
//!        a module's first write of its word in a list ──► granted until the configuration is read again
//! ```
//!
//! A grant for each request would give no less. Such a word is its module's in each request, and nobody else reads or follows it: httpd has
//! each module look up its own. A module may write the word of a request that it was not called for, or of one that has gone. It
//! changes what it finds itself, and nothing besides. All words are written anew before a request gets the list.
//!
//! Lists are never freed, so a word that a module may write never becomes something else. Modules get other numbers when the
//! configuration is read again. So all grants end then, and no list from before serves again.

use crate::apr;
use crate::layout::{self, read};
use crate::quick::Map;
use crate::reading;
use crate::walled::{Answer, Walled, lock};
use mullion_word_runtime::Granted;
use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A list, which is never freed.
struct List {
    at: u64,
    words: usize,
    /// The reading of the configuration that it is of.
    edition: u64,
}

/// The lists of one reading of the configuration.
#[derive(Default)]
struct Lists {
    edition: u64,
    /// No request has these.
    free: Vec<&'static List>,
    /// All of them, by where their words begin.
    known: Map<()>,
    granted: Vec<Granted>,
}

static LISTS: Mutex<Option<Lists>> = Mutex::new(None);

/// So many words a list has, or 0 while the server does not serve.
static WORDS: AtomicUsize = AtomicUsize::new(0);

/// No server has so many modules.
const MOST: usize = 4096;

/// There are no more lists than these. Requests beyond them keep the core's.
const LISTS_MOST: usize = 4096;

/// Modules are about to be loaded, and get numbers.
pub(crate) fn forget() {
    WORDS.store(0, Ordering::Release);
    if let Some(lists) = lock(&LISTS).as_mut() {
        lists.edition += 1;
        lists.free.clear();
        lists.known.clear();
        Granted::end_all(std::mem::take(&mut lists.granted));
    }
}

/// The server is about to serve, with the modules that it has now. A module whose loads are checked reads the core's own list, which
/// is of the request's pool.
pub(crate) fn serve() {
    let words = match reading::any() {
        true => 0,
        false => words().unwrap_or(0),
    };
    WORDS.store(words, Ordering::Release);
}

/// One word for each number that a module has.
fn words() -> Option<usize> {
    let first = apr::symbol("ap_top_module")? as u64;
    // SAFETY: it is httpd's variable. It has a module's structure, and each of these has the next one or null.
    let next = |at: &u64| Some(unsafe { read(*at) }).filter(|next| *next != 0);
    let links = std::iter::successors(next(&first), |module| next(&(module + layout::M_NEXT)));
    // SAFETY: it is a module's structure.
    let index = |module: u64| unsafe { ((module + layout::M_INDEX) as *const i32).read() };
    let all: Option<Vec<usize>> = links
        .take(MOST)
        .map(|module| usize::try_from(index(module)).ok())
        .collect();
    all?.into_iter().max().map(|last| last + 1)
}

/// One that no request has, of so many words.
fn take(words: usize) -> Option<&'static List> {
    let mut lists = lock(&LISTS);
    let lists = lists.get_or_insert_default();
    if let Some(list) = lists.free.pop() {
        return Some(list);
    }
    if lists.known.len() >= LISTS_MOST {
        return None;
    }
    let at = Box::leak(vec![0u64; words].into_boxed_slice()).as_mut_ptr() as u64;
    lists.known.insert(at, ());
    Some(Box::leak(Box::new(List {
        at,
        words,
        edition: lists.edition,
    })))
}

/// A request begins, and has a list of the core's.
///
/// # Safety
/// The core passes the request in its hook `create_request`.
pub(crate) unsafe fn begin(r: u64) {
    let words = WORDS.load(Ordering::Acquire);
    if words == 0 {
        return;
    }
    let Some(list) = take(words).filter(|list| list.words == words) else {
        return;
    };
    let place = (r + layout::R_REQUEST_CONFIG) as *mut u64;
    let (act, none) = (end as *const () as usize, nothing as *const () as usize);
    // SAFETY: by the caller. The core's list has a word for each module. Ours is as long, and no other request has it; threads of
    // modules may write their own words meanwhile. The pool gives the list back when the request goes.
    unsafe {
        (list.at as *mut u64).copy_from_nonoverlapping(place.read() as *const u64, words);
        place.write(list.at);
        let data = std::ptr::from_ref(list) as u64;
        apr::apr_pool_cleanup_register(read(r + layout::R_POOL), data, act, none);
    }
}

extern "C" fn end(data: u64) -> c_int {
    // SAFETY: `begin` has it of a list, which is never freed.
    let list = unsafe { &*(data as *const List) };
    if let Some(lists) = lock(&LISTS).as_mut()
        && lists.edition == list.edition
    {
        lists.free.push(list);
    }
    0
}

extern "C" fn nothing(_: u64) -> c_int {
    0
}

/// Whether a list is one of ours, in which words are granted for long.
pub(crate) fn is_ours(list: u64) -> bool {
    let lists = lock(&LISTS);
    lists
        .as_ref()
        .is_some_and(|lists| lists.known.contains_key(&list))
}

/// Lets a module write its word in a list of ours.
pub(crate) fn grant(walled: &Walled, list: u64) -> Answer<()> {
    let mut lists = lock(&LISTS);
    let lists = lists.get_or_insert_default();
    if lists.known.contains_key(&list) {
        let granted = walled.grant(list + 8 * walled.index(), 8)?;
        lists.granted.push(granted);
    }
    Ok(())
}
