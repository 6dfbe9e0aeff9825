//! The functions of httpd and APR that this crate calls itself. All pointers are numbers here.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int};
use std::sync::{PoisonError, RwLock};

// SAFETY: they are httpd's and APR's, with integers and pointers as numbers; the server that loads this module has them.
unsafe extern "C" {
    pub(crate) fn apr_palloc(pool: u64, bytes: u64) -> u64;
    pub(crate) fn apr_pool_create_ex(
        to: *mut u64,
        parent: u64,
        abort: u64,
        allocator: u64,
    ) -> c_int;
    pub(crate) fn apr_dbd_init(pool: u64) -> c_int;
    pub(crate) fn apr_crypto_init(pool: u64) -> c_int;
    pub(crate) fn apr_bucket_file_enable_mmap(bucket: u64, may: c_int) -> c_int;
    pub(crate) fn apr_pool_clear(pool: u64);
    pub(crate) fn apr_pool_destroy(pool: u64);
    pub(crate) fn apr_pool_parent_get(pool: u64) -> u64;
    pub(crate) fn apr_file_flags_get(file: u64) -> i32;
    pub(crate) fn apr_pool_pre_cleanup_register(pool: u64, data: u64, act: usize);
    pub(crate) fn apr_pool_cleanup_kill(pool: u64, data: u64, act: usize);
    pub(crate) fn ap_exists_config_define(name: *const c_char) -> c_int;
    pub(crate) fn ap_get_scoreboard_process(at: c_int) -> u64;
    pub(crate) fn apr_thread_mutex_trylock(mutex: u64) -> c_int;
    pub(crate) fn apr_thread_mutex_unlock(mutex: u64) -> c_int;
    pub(crate) fn apr_pool_cleanup_register(pool: u64, data: u64, plain: usize, child: usize);
    pub(crate) fn apr_pool_cleanup_null(data: u64) -> c_int;
    pub(crate) fn apr_psprintf(pool: u64, format: u64, ...) -> u64;
    pub(crate) fn apr_pvsprintf(pool: u64, format: u64, list: u64) -> u64;
    pub(crate) fn apr_snprintf(to: u64, bytes: u64, format: u64, ...) -> c_int;
    pub(crate) fn apr_hash_make(pool: u64) -> u64;
    pub(crate) fn apr_hash_first(pool: u64, hash: u64) -> u64;
    pub(crate) fn apr_hash_next(at: u64) -> u64;
    pub(crate) fn apr_table_setn(table: u64, name: *const c_char, value: *const c_char);
    pub(crate) fn apr_table_do(each: u64, data: u64, table: u64, ...) -> c_int;
    pub(crate) fn ap_rwrite(from: u64, bytes: c_int, r: u64) -> c_int;
    pub(crate) fn ap_rprintf(r: u64, format: u64, ...) -> c_int;
    pub(crate) fn ap_pass_brigade(next: u64, brigade: u64) -> c_int;
    pub(crate) fn ap_get_brigade(
        next: u64,
        brigade: u64,
        mode: u64,
        block: u64,
        bytes: u64,
    ) -> c_int;
    pub(crate) fn apr_file_printf(file: u64, format: u64, ...) -> c_int;
    pub(crate) fn ap_fprintf(filter: u64, brigade: u64, format: u64, ...) -> c_int;
    pub(crate) fn apr_brigade_printf(
        brigade: u64,
        flush: u64,
        filter: u64,
        format: u64,
        ...
    ) -> c_int;
    pub(crate) fn apr_brigade_vprintf(
        brigade: u64,
        flush: u64,
        filter: u64,
        format: u64,
        list: u64,
    ) -> c_int;
    pub(crate) fn apr_brigade_write(
        brigade: u64,
        flush: u64,
        filter: u64,
        from: u64,
        bytes: u64,
    ) -> c_int;
    pub(crate) fn ap_allow_methods(r: u64, reset: u64, ...);
    pub(crate) fn ap_allow_standard_methods(r: u64, reset: u64, ...);
    pub(crate) fn ap_log_error_(
        file: u64,
        line: u64,
        index: u64,
        level: u64,
        status: u64,
        s: u64,
        ...
    );
    pub(crate) fn ap_log_rerror_(
        file: u64,
        line: u64,
        index: u64,
        level: u64,
        status: u64,
        r: u64,
        ...
    );
    pub(crate) fn ap_log_cerror_(
        file: u64,
        line: u64,
        index: u64,
        level: u64,
        status: u64,
        c: u64,
        ...
    );
    pub(crate) fn ap_log_perror_(
        file: u64,
        line: u64,
        index: u64,
        level: u64,
        status: u64,
        p: u64,
        ...
    );
    pub(crate) fn ap_expr_parse_cmd_mi(
        cmd: u64,
        text: u64,
        flags: u64,
        error: u64,
        lookup: u64,
        index: u64,
    ) -> u64;
    pub(crate) fn ap_add_loaded_module(module: u64, pool: u64, name: u64) -> *const c_char;
    pub(crate) fn ap_remove_loaded_module(module: u64);
    pub(crate) fn ap_find_linked_module(name: *const c_char) -> u64;
    pub(crate) fn apr_array_push(array: u64) -> u64;
    pub(crate) fn ap_single_module_configure(pool: u64, server: u64, module: u64);
    pub(crate) fn ap_server_root_relative(pool: u64, name: u64) -> u64;
    pub(crate) fn apr_brigade_create(pool: u64, allocator: u64) -> u64;
    pub(crate) fn apr_brigade_cleanup(brigade: u64) -> c_int;
    pub(crate) fn apr_bucket_alloc(bytes: u64, list: u64) -> u64;
    pub(crate) fn apr_bucket_eos_create(allocator: u64) -> u64;
    pub(crate) fn ap_bucket_eoc_create(allocator: u64) -> u64;
    pub(crate) fn ap_bucket_error_create(
        status: c_int,
        text: u64,
        pool: u64,
        allocator: u64,
    ) -> u64;
    pub(crate) fn ap_remove_output_filter(filter: u64);
    pub(crate) fn ap_add_output_filter_handle(record: u64, ctx: u64, r: u64, c: u64) -> u64;
    pub(crate) fn ap_register_output_filter(
        name: *const c_char,
        filter: usize,
        begin: usize,
        kind: c_int,
    ) -> u64;
    pub(crate) fn ap_set_content_type(r: u64, kind: u64);
    pub(crate) fn ap_hook_create_request(f: usize, before: usize, after: usize, order: c_int);
    pub(crate) fn ap_hook_handler(f: usize, before: usize, after: usize, order: c_int);
    pub(crate) fn ap_hook_child_init(f: usize, before: usize, after: usize, order: c_int);
    pub(crate) fn ap_hook_check_config(f: usize, before: usize, after: usize, order: c_int);
    pub(crate) fn ap_hook_post_config(f: usize, before: usize, after: usize, order: c_int);
}

/// Where the server's dynamic linker finds a symbol. It is asked until it has the name.
pub(crate) fn symbol(name: &str) -> Option<usize> {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.get(name) {
        return Some(*found);
    }
    drop(known);
    // A function that is not there may come with a module that is loaded later.
    let found = look_up(name)?;
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    known.insert(name.to_owned(), found);
    Some(found)
}

static KNOWN: RwLock<BTreeMap<String, usize>> = RwLock::new(BTreeMap::new());

/// httpd has unloaded modules, and reads its configuration again: their functions may come to lie elsewhere.
pub(crate) fn forget() {
    KNOWN
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();
    crate::filters::forget();
}

fn look_up(name: &str) -> Option<usize> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    let found = (!found.is_null()).then_some(found as usize);
    found.or_else(|| crate::libraries::symbol(name.to_str().ok()?))
}

/// A line in the error log.
pub(crate) fn log(server: u64, what: &str) {
    const CRITICAL: u64 = 2;
    let what = CString::new(what.replace('\0', " ")).unwrap_or_default();
    // SAFETY: the strings end with zeros, and there is one argument for one `%s`.
    unsafe {
        let file = c"mod_mullion".as_ptr() as u64;
        ap_log_error_(
            file,
            0,
            0,
            CRITICAL,
            0,
            server,
            c"mullion: %s".as_ptr(),
            what.as_ptr(),
        );
    }
}

/// A string that the pool has.
pub(crate) fn string(pool: u64, text: &str) -> *const c_char {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    let bytes = text.as_bytes_with_nul();
    // SAFETY: the pool gives that much.
    unsafe {
        let to = apr_palloc(pool, bytes.len() as u64) as *mut u8;
        to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        to.cast_const().cast()
    }
}

/// A string of the server's.
///
/// # Safety
/// It ends with a zero.
pub(crate) unsafe fn text<'a>(at: u64) -> &'a [u8] {
    // SAFETY: the caller's string ends with a zero.
    unsafe { std::ffi::CStr::from_ptr(at as *const c_char) }.to_bytes()
}
