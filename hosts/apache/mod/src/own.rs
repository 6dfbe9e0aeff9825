//! Functions of ours that stand for httpd's and APR's. They are for memory, strings that are changed in place, slots of
//! directives, and what has a callback or a filter as an argument. Variadic ones are in `format.rs`, arrays in `arrays.rs`.

use crate::apr;
use crate::arrays;
use crate::call::{self, mediate};
use crate::copied;
use crate::filters;
use crate::format;
use crate::frame::Frame;
use crate::interface::Answer as Result_;
use crate::layout::{self, read};
use crate::object::Kind;
use crate::rings::Passing;
use crate::states::by_row;
use crate::walled::Answer;
use std::collections::HashMap;
use std::sync::OnceLock;

macro_rules! functions {
    ($($module:ident: $($name:ident),*;)*) => {
        [$($((stringify!($name), $module::$name as *const () as usize)),*),*]
    };
}

/// Functions by the names that they stand for.
fn functions() -> &'static HashMap<&'static str, usize> {
    use crate::{
        addresses, cleanups, dav, descriptors, errors, filters, hashes, heap, kinds, ldap,
        libraries, locks, matching, names, opened, own, pages, partners, patterns, pieces, pooled,
        pools, processes, relocatable, sections, segments, shadows, sources, statements, states,
        streams, tables, timed, uris, varbuf, vectors, written, xml,
    };
    static FUNCTIONS: OnceLock<HashMap<&'static str, usize>> = OnceLock::new();
    FUNCTIONS.get_or_init(|| {
        functions! {
            own: apr_palloc, apr_pstrdup, apr_pstrndup, apr_pstrmemdup, apr_pmemdup,
                ap_str_tolower, ap_str_toupper, ap_content_type_tolower, ap_unescape_url, ap_unescape_url_keep2f,
                ap_unescape_urlencoded, ap_no2slash, ap_getparents, ap_normalize_path, ap_make_dirstr_prefix, ap_get_list_item, apr_strtok,
                ap_set_flag_slot, ap_set_flag_slot_char, ap_set_string_slot,
                ap_set_string_slot_lower, ap_set_file_slot, ap_set_int_slot, ap_pass_brigade, ap_get_brigade,
                apr_base64_encode, apr_base64_encode_binary, apr_file_read,
                apr_strmatch_precompile, ap_save_brigade, apr_brigade_flatten, apr_brigade_pflatten, apr_bucket_heap_create,
                apr_bucket_file_enable_mmap, ap_get_basic_auth_pw;
            filters: ap_add_output_filter_handle, ap_get_output_filter_handle;
            names: apr_pool_userdata_get, apr_pool_userdata_set, apr_pool_userdata_setn, ap_retained_data_create, ap_retained_data_get,
                ap_mutex_register, ap_method_register;
            arrays: apr_array_make, apr_array_push, apr_array_push_noclear, apr_array_pop, apr_array_cat,
                apr_array_copy, apr_array_copy_hdr, apr_array_append, apr_array_clear, apr_array_pstrcat, apr_tokenize_to_argv,
                ap_list_provider_groups, ap_list_provider_names, apr_is_empty_array, ap_array_str_index, ap_array_str_contains,
                ap_method_in_list, ap_regname;
            format: apr_pstrcat, apr_psprintf, apr_pvsprintf, apr_snprintf, ap_log_error_, ap_log_rerror_,
                ap_log_cerror_, ap_log_perror_, ap_rvputs, ap_rprintf, ap_allow_methods, ap_allow_standard_methods,
                apr_table_do, ap_expr_parse_cmd_mi, ap_pass_brigade_fchk,
                apr_brigade_printf, apr_brigade_vprintf, apr_brigade_putstrs, ap_cookie_write, ap_cookie_write2, ap_cookie_remove,
                ap_cookie_remove2, apr_dbd_pvselect, apr_dbd_pvquery, apr_dbd_pvbselect, apr_dbd_pvbquery, apr_dbd_pquery, apr_dbd_pselect, ap_log_rdata_, __isoc99_sscanf, apr_file_printf,
                snprintf, ap_fprintf, ap_fputstrs;
            libraries: deflateInit2_, inflateInit2_, deflate, inflate, deflateEnd, inflateEnd, BrotliEncoderCreateInstance,
                BrotliEncoderDestroyInstance, BrotliEncoderCompressStream, strtod, ap_bin2hex, apr_xlate_conv_buffer,
                ap_log_assert, ap_expr_parse, apr_poll;
            heap: apr_bucket_alloc, apr_bucket_free, ap_malloc, ap_escape_urlencoded_buffer, ap_parse_form_data,
                apr_file_read_full, apr_global_mutex_child_init,
                apr_vsnprintf, apr_crypto_block_encrypt, apr_crypto_block_decrypt,
                apr_base64_decode, apr_base64_decode_binary;
            addresses: inet_ntoa, apr_sockaddr_ip_get, apr_socket_connect, apr_socket_recvfrom, apr_mcast_join;
            uris: apr_uri_parse, apr_uri_parse_hostinfo, apr_uri_unparse;
            states: apr_md5_update, apr_md5_final, apr_sha1_update, apr_sha1_update_binary, apr_sha1_final, ap_sub_req_lookup_dirent,
                strftime, ap_fcgi_encode_env, ap_fcgi_encoded_env_len, ap_copy_scoreboard_worker, apr_crypto_block_encrypt_init,
                apr_dbm_nextkey, apr_dbm_freedatum, ap_uname2id, ap_gname2id;
            statements: apr_dbd_prepare;
            segments: apr_shm_create, apr_shm_attach, apr_shm_destroy, apr_shm_remove;
            descriptors: sendmsg, connect;
            errors: __errno_location;
            vectors: apr_brigade_writev, apr_socket_sendv, apr_file_writev_full, apr_pstrcatv;
            locks: apr_thread_mutex_lock, apr_thread_mutex_trylock, apr_thread_mutex_unlock, apr_thread_mutex_destroy,
                apr_global_mutex_lock, apr_global_mutex_trylock, apr_global_mutex_unlock, apr_global_mutex_destroy;
            shadows: ap_create_request_config, ap_getline, ap_rgetline_core;
            patterns: ap_regcomp, ap_regerror, ap_expr_exec_re, ap_expr_str_exec_re, ap_pregsub_ex, ap_rxplus_exec, ap_rxplus_pmatch;
            pieces: malloc, calloc, aligned_alloc, realloc, free;
            pooled: apr_reslist_acquire, apr_reslist_release, apr_reslist_invalidate;
            streams: fclose, fread, fwrite;
            opened: ap_pcfg_openfile, apr_file_open, apr_file_mktemp, fopen64, apr_dbm_open, apr_dbm_open_ex, ap_open_piped_log;
            written: apr_dir_make, apr_dir_make_recursive, apr_dir_remove, apr_file_remove, apr_file_rename, apr_file_perms_set,
                apr_file_mtime_set, apr_file_copy;
            sections: ap_walk_config, ap_merge_per_dir_configs, ap_get_remote_host, ap_set_deprecated, ap_set_config_vectors,
                ap_ssl_bind_outgoing;
            sources: ap_pcfg_open_custom;
            pages: htmlCreatePushParserCtxt, htmlFreeParserCtxt, htmlParseChunk, xmlCtxtUseOptions;
            ldap: apr_ldap_init, apr_ldap_set_option, ldap_bind_s, ldap_compare_s, ldap_count_entries, ldap_first_entry, ldap_get_dn,
                ldap_get_option, ldap_get_values, ldap_memfree, ldap_msgfree, ldap_parse_result, ldap_result, ldap_search_ext_s,
                ldap_set_option, ldap_set_rebind_proc, ldap_simple_bind, ldap_unbind_s, ldap_value_free;
            cleanups: apr_pool_cleanup_register, apr_pool_cleanup_kill, apr_pool_cleanup_run, apr_pool_pre_cleanup_register;
            hashes: apr_hash_set, apr_hash_first, apr_hash_next, apr_hash_this, apr_hash_this_key, apr_hash_this_val, apr_hash_merge;
            pools: apr_pool_create_ex, apr_pool_clear, apr_pool_destroy, ap_run_sub_req,
                ap_destroy_sub_req, ap_internal_fast_redirect, apr_allocator_create, apr_allocator_destroy,
                apr_allocator_max_free_set, apr_allocator_mutex_set, apr_allocator_owner_set;
            tables: apr_table_copy, apr_table_overlay, apr_table_overlap;
            matching: ap_strcmp_match, ap_strcasecmp_match;
            timed: ap_mpm_register_timed_callback, ap_process_request_after_handler;
            timed: apr_thread_pool_create, apr_thread_pool_destroy, apr_thread_pool_push;
            kinds: apr_bucket_heap_make, apr_bucket_immortal_make;
            processes: apr_proc_create, ap_os_create_privileged_process, apr_pool_note_subprocess, apr_procattr_child_errfn_set, apr_pollset_add,
                apr_pollset_remove;
            relocatable: apr_rmm_init, apr_rmm_attach, apr_rmm_destroy, apr_rmm_malloc, apr_rmm_calloc, apr_rmm_free,
                apr_rmm_addr_get, apr_rmm_offset_get;
            partners: ap_register_auth_provider, ap_register_provider, ap_lookup_provider, apr_dynamic_fn_retrieve,
                apr_dynamic_fn_register, apr_hook_sort_register, apr_optional_hook_add, apr_optional_hook_get;
            dav: ap_make_etag_ex;
            xml: ap_xml_parse_input;
            varbuf: ap_varbuf_init, ap_varbuf_grow, ap_varbuf_free, ap_varbuf_strmemcat, ap_varbuf_pdup, ap_varbuf_regsub, ap_varbuf_cfg_getline;
        }
        .into()
    })
}

/// Where a function is.
pub(crate) fn find(name: &str) -> Option<usize> {
    functions().get(name).copied()
}

/// Whether a function is one of those that directives' rows name: most of them set a field of a configuration.
pub(crate) fn is_slot(at: u64) -> bool {
    let names = [
        "ap_set_flag_slot",
        "ap_set_flag_slot_char",
        "ap_set_string_slot",
        "ap_set_string_slot_lower",
        "ap_set_file_slot",
        "ap_set_int_slot",
        "ap_set_deprecated",
    ];
    names.iter().any(|name| find(name) == Some(at as usize))
}

/// Whether a file has a buffer that APR does not lock.
pub(crate) fn is_buffered(file: u64) -> bool {
    const BUFFERED: i32 = 0x80;
    const LOCKED: i32 = 0x200;
    // SAFETY: the file was opened for the module, and has not been closed.
    let flags = unsafe { apr::apr_file_flags_get(file) };
    flags & BUFFERED != 0 && flags & LOCKED == 0
}

pub(crate) extern "C" fn apr_palloc(pool: u64, bytes: u64) -> u64 {
    mediate(|frame| frame.walled.take(frame, pool, bytes))
}

/// So many bytes as a string of the module's.
fn duplicate(frame: &Frame, pool: u64, text: u64, length: usize) -> Answer<u64> {
    let to = frame.walled.take(frame, pool, length as u64 + 1)?;
    // SAFETY: it was just taken, and has room for a zero.
    unsafe {
        copied::into(frame, text, to as *mut u8, length)?;
        (to as *mut u8).add(length).write(0);
    }
    Ok(to)
}

pub(crate) extern "C" fn apr_pstrdup(pool: u64, text: u64) -> u64 {
    mediate(|frame| match text {
        0 => Ok(0),
        text => {
            let length = frame.walled.length(text, u64::MAX)?;
            duplicate(frame, pool, text, length)
        }
    })
}

pub(crate) extern "C" fn apr_pstrndup(pool: u64, text: u64, most: u64) -> u64 {
    mediate(|frame| {
        if text == 0 {
            return Ok(0);
        }
        let length = frame.walled.length(text, most)?;
        duplicate(frame, pool, text, length)
    })
}

fn memory(frame: &Frame, pool: u64, from: u64, bytes: u64, end: bool) -> Answer<u64> {
    if from == 0 {
        return Ok(0);
    }
    frame.walled.must_read(from, bytes)?;
    if !copied::is_there(from, bytes) {
        return Err(format!("{bytes} bytes at {from:#x} are not there"));
    }
    let to = frame
        .walled
        .take(frame, pool, bytes.saturating_add(u64::from(end)))?;
    // SAFETY: it was just taken.
    unsafe {
        copied::into(frame, from, to as *mut u8, bytes as usize)?;
        if end {
            (to as *mut u8).add(bytes as usize).write(0);
        }
    }
    Ok(to)
}

pub(crate) extern "C" fn apr_pstrmemdup(pool: u64, from: u64, bytes: u64) -> u64 {
    mediate(|frame| memory(frame, pool, from, bytes, true))
}

pub(crate) extern "C" fn apr_pmemdup(pool: u64, from: u64, bytes: u64) -> u64 {
    mediate(|frame| memory(frame, pool, from, bytes, false))
}

/// Changes a string of the module's in its place, which it does not outgrow. The function gets a copy: another thread of the module
/// may take the string's end away meanwhile.
fn change(frame: &Frame, text: u64, name: &str, act: impl FnOnce(u64) -> u64) -> Answer<u64> {
    let mut copy = copied::with_zero(text)?;
    let length = copy.len();
    let may = frame.walled.must_write(text, length as u64);
    may.map_err(|what| format!("{name}: {what}"))?;
    let answer = act(copy.as_mut_ptr() as u64);
    // SAFETY: the module may write so many bytes there.
    unsafe { (text as *mut u8).copy_from_nonoverlapping(copy.as_ptr(), length) };
    Ok(answer)
}

/// Functions that do so, and what some answer if there is no string, as a header field that was not sent.
macro_rules! in_place {
    ($($name:ident($($more:ident),*) $(or $none:literal)?;)*) => { $(
        pub(crate) extern "C" fn $name(text: u64 $(, $more: u64)*) -> u64 {
            mediate(|frame| {
                $(if text == 0 {
                    return Ok($none);
                })?
                static REAL: OnceLock<Option<usize>> = OnceLock::new();
                let real = REAL.get_or_init(|| apr::symbol(stringify!($name)));
                let real = real.ok_or("the server does not have it")?;
                change(frame, text, stringify!($name), |text| {
                    // SAFETY: it is httpd's function, for a string of ours that ends with a zero.
                    let real: extern "C" fn(u64 $(, in_place!(@ $more))*) -> u64 = unsafe { std::mem::transmute(real) };
                    real(text $(, $more)*)
                })
            })
        }
    )* };
    (@ $more:ident) => { u64 };
}

in_place! {
    ap_str_tolower();
    ap_str_toupper();
    ap_content_type_tolower();
    ap_unescape_url() or 400;
    ap_unescape_urlencoded() or 400;
    ap_unescape_url_keep2f(flags) or 400;
    ap_no2slash();
    ap_getparents();
    ap_normalize_path(flags);
}

/// Writes the first `n` folders of a path, and a zero: at most the path and two more bytes. The path is a copy.
pub(crate) extern "C" fn ap_make_dirstr_prefix(to: u64, path: u64, count: u64) -> u64 {
    mediate(|frame| {
        let path = copied::with_zero(path)?;
        let mut made = vec![0u8; path.len() + 1];
        let real = apr::symbol("ap_make_dirstr_prefix").ok_or("the server does not have it")?;
        // SAFETY: it is httpd's function, with room for what it writes.
        let real: extern "C" fn(*mut u8, *const u8, u64) -> u64 =
            unsafe { std::mem::transmute(real) };
        let end = real(made.as_mut_ptr(), path.as_ptr(), count);
        let length = made.iter().position(|byte| *byte == 0).unwrap_or(0) + 1;
        frame.walled.must_write(to, length as u64)?;
        // SAFETY: the module may write so many bytes there.
        unsafe { (to as *mut u8).copy_from_nonoverlapping(made.as_ptr(), length) };
        Ok(to.wrapping_add(end.wrapping_sub(made.as_ptr() as u64)))
    })
}

/// Changes the string that it takes apart: the bytes between `at` and its end, which are looked at before they are written.
pub(crate) extern "C" fn apr_strtok(text: u64, separators: u64, last: u64) -> u64 {
    mediate(|frame| {
        frame.walled.must_write(last, 8)?;
        let at = match text {
            // SAFETY: the module may write, and so read, there.
            0 => unsafe { read(last) },
            text => text,
        };
        if at == 0 {
            return Ok(0);
        }
        let text = copied::text(frame, at)?;
        let separators = copied::text(frame, separators)?;
        let is_separator = |byte: &u8| separators.contains(byte);
        let skipped = text.iter().take_while(|byte| is_separator(byte)).count();
        let token = text[skipped..].iter().position(is_separator);
        let end = token.map_or(text.len(), |bytes| skipped + bytes);
        let (first, end, is_last) = (at + skipped as u64, at + end as u64, token.is_none());
        if skipped == text.len() {
            return Ok(0);
        }
        if !is_last {
            frame.walled.must_write(end, 1)?;
        }
        // SAFETY: the module may write both, as was looked at.
        unsafe {
            if !is_last {
                (end as *mut u8).write(0);
            }
            (last as *mut u64).write(if is_last { end } else { end + 1 });
        }
        Ok(first)
    })
}

/// The next item of a list, whose place is moved behind it. httpd reads the item twice, so it gets a copy of the list.
pub(crate) extern "C" fn ap_get_list_item(pool: u64, place: u64) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        walled.pool(frame, pool)?;
        walled.must_write(place, 8)?;
        // SAFETY: the module may write, and so read, there.
        let from = unsafe { read(place) };
        let list = copied::with_zero(from)?;
        let (begin, mut next) = (list.as_ptr() as u64, list.as_ptr() as u64);
        let real = apr::symbol("ap_get_list_item").ok_or("the server does not have it")?;
        // SAFETY: it is httpd's function, with a word and a string of ours. The pool lives.
        let real: extern "C" fn(u64, *mut u64) -> u64 = unsafe { std::mem::transmute(real) };
        let item = real(pool, &mut next);
        // SAFETY: the module may write there. httpd's strings end with a zero.
        unsafe {
            (place as *mut u64).write(from.wrapping_add(next.wrapping_sub(begin)));
            match item {
                0 => Ok(0),
                item => walled.copy(frame, pool, apr::text(item)),
            }
        }
    })
}

fn encode(to: u64, from: u64, bytes: u64, name: &str) -> u64 {
    mediate(|frame| {
        let bytes = bytes as u32 as u64;
        frame.walled.must_write(to, bytes.div_ceil(3) * 4 + 1)?;
        let is_there = frame.walled.must_find(from, bytes);
        is_there.map_err(|what| format!("{name}: {what}"))?;
        let real = apr::symbol(name).ok_or("the server does not have it")?;
        // SAFETY: it is APR's function, with room for what it writes.
        let real: extern "C" fn(u64, u64, u64) -> u64 = unsafe { std::mem::transmute(real) };
        Ok(real(to, from, bytes))
    })
}

pub(crate) extern "C" fn apr_base64_encode(to: u64, from: u64, bytes: u64) -> u64 {
    encode(to, from, bytes, "apr_base64_encode")
}

pub(crate) extern "C" fn apr_base64_encode_binary(to: u64, from: u64, bytes: u64) -> u64 {
    encode(to, from, bytes, "apr_base64_encode_binary")
}

/// The buffer is as long as the word behind the third argument says.
pub(crate) extern "C" fn apr_file_read(file: u64, to: u64, bytes: u64) -> u64 {
    mediate(|frame| {
        if !frame.walled.knows(file, Kind::File) {
            return Err(format!(
                "apr_file_read: {file:#x} is no file that the module has opened"
            ));
        }
        frame.walled.must_write(bytes, 8)?;
        // SAFETY: the module may write, and so read, there. What is read is what is passed on.
        let mut count = unsafe { read(bytes) };
        frame.walled.must_write(to, count)?;
        let real = apr::symbol("apr_file_read").ok_or("the server does not have it")?;
        // SAFETY: it is APR's function, with room for what it reads.
        let real: extern "C" fn(u64, u64, *mut u64) -> u64 = unsafe { std::mem::transmute(real) };
        let status = real(file, to, &mut count);
        // SAFETY: `must_write` has found that the module may write these eight bytes.
        unsafe { (bytes as *mut u64).write(count) };
        Ok(status)
    })
}

/// Words of the state of a directive, `cmd_parms`.
const STATE: usize = layout::STATE as usize / 8;

/// Sets a field of a configuration: at the distance that the directive's row has, which is the module's.
fn slot(cmd: u64, configuration: u64, argument: u64, bytes: u64, name: &str) -> u64 {
    mediate(|frame| {
        // Those of flags get a number, and one keeps the string's address. All others read it twice, or make a string of it that
        // they change.
        let copy = match name {
            _ if name.starts_with("ap_set_flag") || argument == 0 => None,
            "ap_set_string_slot" => copied::length(argument).map(|_| None)?,
            _ => Some(copied::with_zero(argument)?),
        };
        let argument = copy.as_ref().map_or(argument, |copy| copy.as_ptr() as u64);
        let is_given = frame.roots.contains(&crate::frame::Root::Command(cmd));
        if !is_given {
            return Err(format!("{name}: {cmd:#x} is no state of this directive"));
        }
        // The module may be allowed to change the state, and another thread of it may do so at any time. So the state that httpd gets
        // is a copy, whose distance leads to a word of ours.
        // SAFETY: the core has passed it, and it is as long.
        let mut state = unsafe { (cmd as *const [u64; STATE]).read() };
        let distance = std::mem::take(&mut state[layout::CMD_INFO as usize / 8]) as i32;
        let to = configuration.wrapping_add_signed(distance.into());
        frame
            .walled
            .must_write(to, bytes)
            .map_err(|what| format!("{name}: {what}"))?;
        let real = apr::symbol(name).ok_or("the server does not have it")?;
        // SAFETY: it is httpd's function for three arguments, the first two of which are ours.
        let real: extern "C" fn(*mut u64, *mut u64, u64) -> u64 =
            unsafe { std::mem::transmute(real) };
        let mut word = 0u64;
        let answer = real(state.as_mut_ptr(), &mut word, argument);
        if answer != 0 {
            return Ok(answer);
        }
        if bytes == 8 && word != 0 && frame.walled.reads {
            // The string may be one that httpd has made, or one of the core's.
            let pool = state[layout::CMD_POOL as usize / 8];
            // SAFETY: httpd has put a string there.
            word = frame.walled.copy(frame, pool, unsafe { apr::text(word) })?;
        }
        // SAFETY: the module may write so many bytes there, which are the first ones of the word.
        unsafe {
            let from = (&raw const word).cast::<u8>();
            (to as *mut u8).copy_from_nonoverlapping(from, bytes as usize);
        }
        Ok(answer)
    })
}

macro_rules! slots {
    ($($name:ident: $bytes:literal;)*) => { $(
        pub(crate) extern "C" fn $name(cmd: u64, configuration: u64, argument: u64) -> u64 {
            slot(cmd, configuration, argument, $bytes, stringify!($name))
        }
    )* };
}

slots! {
    ap_set_flag_slot: 4;
    ap_set_flag_slot_char: 1;
    ap_set_int_slot: 4;
    ap_set_string_slot: 8;
    ap_set_string_slot_lower: 8;
    ap_set_file_slot: 8;
}

/// The next filter must be one that follows, and the brigade one that the module was given or has made.
pub(crate) fn pass(frame: &Frame, next: u64, brigade: u64) -> Answer<u64> {
    if !filters::leads_out(frame, next) {
        return Err(format!(
            "ap_pass_brigade: {next:#x} is no filter of this request"
        ));
    }
    let mut passing = Passing::new(frame);
    let real = passing
        .brigade(brigade)
        .map_err(|what| format!("ap_pass_brigade: {what}"))?;
    // SAFETY: both are the core's.
    let status = unsafe { apr::ap_pass_brigade(next, real) } as u64;
    passing.end()?;
    Ok(status)
}

pub(crate) extern "C" fn ap_pass_brigade(next: u64, brigade: u64) -> u64 {
    mediate(|frame| pass(frame, next, brigade))
}

pub(crate) extern "C" fn ap_get_brigade(
    next: u64,
    brigade: u64,
    mode: u64,
    block: u64,
    bytes: u64,
) -> u64 {
    mediate(|frame| {
        if !filters::leads_in(frame, next) {
            return Err(format!(
                "ap_get_brigade: {next:#x} is no filter of this request"
            ));
        }
        let mut passing = Passing::new(frame);
        let real = passing
            .brigade(brigade)
            .map_err(|what| format!("ap_get_brigade: {what}"))?;
        // SAFETY: both are the core's.
        let status = unsafe { apr::ap_get_brigade(next, real, mode, block, bytes) } as u64;
        passing.end()?;
        Ok(status)
    })
}

/// Moves a brigade's buckets to another one, which is made if there is none, and sets them aside.
pub(crate) extern "C" fn ap_save_brigade(filter: u64, to: u64, from: u64, pool: u64) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        walled.pool(frame, pool)?;
        walled.must_write(to, 8)?;
        walled.must_write(from, 8)?;
        let mut passing = Passing::new(frame);
        // SAFETY: the module may write, and so read, these words.
        let (first, second) = unsafe { (read(to), read(from)) };
        // The core needs the filter where it makes a brigade.
        let needs_none = filter == 0 && first != 0;
        if !needs_none && !call::has(frame, Kind::Filter, filter) {
            return Err("ap_save_brigade: no filter of the module".to_owned());
        }
        let mut saved = match first {
            0 => 0,
            copy => passing.brigade(copy)?,
        };
        let mut given = passing.brigade(second)?;
        let real = apr::symbol("ap_save_brigade").ok_or("the server does not have it")?;
        // SAFETY: it is httpd's function, with words of ours.
        let real: extern "C" fn(u64, *mut u64, *mut u64, u64) -> u64 =
            unsafe { std::mem::transmute(real) };
        let status = real(filter, &mut saved, &mut given, pool);
        let copy = passing.made_brigade(saved)?;
        passing.end()?;
        // SAFETY: the module may write there, as was looked at before anything was read.
        unsafe { (to as *mut u64).write(copy) };
        Ok(status as u32 as u64)
    })
}

/// The buffer is as long as the word behind the third argument says.
pub(crate) extern "C" fn apr_brigade_flatten(brigade: u64, to: u64, bytes: u64) -> u64 {
    mediate(|frame| {
        frame.walled.must_write(bytes, 8)?;
        // SAFETY: the module may write, and so read, there. What is read is what is passed on.
        let mut count = unsafe { read(bytes) };
        frame.walled.must_write(to, count)?;
        let mut passing = Passing::within_apr(frame);
        let brigade = passing.brigade(brigade)?;
        let real = apr::symbol("apr_brigade_flatten").ok_or("the server does not have it")?;
        // SAFETY: it is APR's function, with room for what it writes.
        let real: extern "C" fn(u64, u64, *mut u64) -> u64 = unsafe { std::mem::transmute(real) };
        let status = real(brigade, to, &mut count);
        passing.end()?;
        // SAFETY: the module may write the eight bytes there (`must_write`).
        unsafe { (bytes as *mut u64).write(count) };
        Ok(status as u32 as u64)
    })
}

/// Modules change what they get, in its place: it is their memory.
pub(crate) extern "C" fn apr_brigade_pflatten(brigade: u64, to: u64, bytes: u64, pool: u64) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        walled.must_write(to, 8)?;
        walled.must_write(bytes, 8)?;
        walled.pool(frame, pool)?;
        let mut passing = Passing::within_apr(frame);
        let brigade = passing.brigade(brigade)?;
        let real = apr::symbol("apr_brigade_pflatten").ok_or("the server does not have it")?;
        let (mut text, mut count) = (0u64, 0u64);
        // SAFETY: it is APR's function, with words of ours, and the pool lives.
        let real: extern "C" fn(u64, *mut u64, *mut u64, u64) -> u64 =
            unsafe { std::mem::transmute(real) };
        let status = real(brigade, &mut text, &mut count, pool) as u32 as u64;
        passing.end()?;
        if status == 0 {
            let copy = walled.take(frame, pool, count)?;
            // SAFETY: APR has made so many bytes, and the copy was just taken; the module may write the two words.
            unsafe {
                (copy as *mut u8).copy_from_nonoverlapping(text as *const u8, count as usize);
                (to as *mut u64).write(copy);
                (bytes as *mut u64).write(count);
            }
        }
        Ok(status)
    })
}

/// The bytes are copied: a function of the module's that frees them runs at once, if it is one of the C library's or
/// APR's that do nothing here.
pub(crate) extern "C" fn apr_bucket_heap_create(
    from: u64,
    bytes: u64,
    free: u64,
    allocator: u64,
) -> u64 {
    mediate(|frame| {
        if !call::has(frame, Kind::Allocator, allocator) {
            return Err("apr_bucket_heap_create: no allocator of a connection".to_owned());
        }
        let is_there = frame.walled.must_find(from, bytes);
        is_there.map_err(|what| format!("apr_bucket_heap_create: {what}"))?;
        let real = apr::symbol("apr_bucket_heap_create").ok_or("the server does not have it")?;
        // SAFETY: it is APR's function, which copies what the module may read.
        let real: extern "C" fn(u64, u64, u64, u64) -> u64 = unsafe { std::mem::transmute(real) };
        // Blocks of these allocators go with the request (`heap.rs`). A function of the module's is not called.
        let frees = ["apr_bucket_free", "free"].map(apr::symbol);
        let ours = ["apr_bucket_free", "free"].map(find);
        let is_known =
            [frees, ours].concat().contains(&Some(free as usize)) || frame.walled.is_gate(free);
        if free != 0 && !is_known {
            return Err(
                "apr_bucket_heap_create: a function that frees is not passed on".to_owned(),
            );
        }
        Passing::new(frame).made(real(from, bytes, 0, allocator))
    })
}

/// Files of buckets are read, and not mapped (`rings/ends.rs`). APR's function does not look whether the bucket is a file's, and writes
/// where its data leads.
pub(crate) extern "C" fn apr_bucket_file_enable_mmap(_: u64, enabled: u64) -> u64 {
    mediate(|_| match enabled as u32 {
        0 => Ok(0),
        _ => Err("apr_bucket_file_enable_mmap: files are not mapped for modules".to_owned()),
    })
}

/// httpd says who the request's user is, by a header which any module writes. For one whose policy does not let it do that the user
/// stays.
pub(crate) extern "C" fn ap_get_basic_auth_pw(r: u64, to: u64) -> u64 {
    const NAME: &str = "ap_get_basic_auth_pw";
    const FIELDS: [u64; 2] = [layout::R_USER, layout::R_AUTH_TYPE];
    mediate(|frame| {
        if !call::is_request(frame, r) {
            return Err(format!(
                "{NAME}: argument 0, {r:#x}, is no request that the module was given or has made"
            ));
        }
        // SAFETY: it was seen to be a request.
        let before = FIELDS.map(|at| unsafe { read(r + at) });
        let status = by_row(frame, NAME, "r w8", Result_::Plain, &[r, to])?;
        if frame.walled.may_set(layout::R_USER, 8) {
            return Ok(status);
        }
        for (at, before) in FIELDS.into_iter().zip(before) {
            // SAFETY: as before; this thread works on the request.
            unsafe { ((r + at) as *mut u64).write(before) };
        }
        Ok(status)
    })
}

/// The pattern's function, which modules find in it, becomes callable.
pub(crate) extern "C" fn apr_strmatch_precompile(pool: u64, text: u64, case: u64) -> u64 {
    mediate(|frame| {
        frame.walled.pool(frame, pool)?;
        let text = copied::text(frame, text)?;
        let real = apr::symbol("apr_strmatch_precompile").ok_or("the server does not have it")?;
        // SAFETY: it is APR's function, and the pool lives.
        let real: extern "C" fn(u64, u64, u64) -> u64 = unsafe { std::mem::transmute(real) };
        // APR keeps the text's address, and has measured the text.
        // SAFETY: the pool lives, and this thread works with it.
        let kept = unsafe { copied::keep(pool, &text) };
        let made = real(pool, kept, case);
        frame.walled.know(frame, Some(pool), made, Kind::Pattern)?;
        if made != 0 {
            // SAFETY: APR has made it; its first word is the function.
            let compare = unsafe { read(made) } as usize;
            crate::out::offer(
                frame.walled,
                &[(compare, "apr_strmatch".to_owned(), "T '*2 .")],
            )?;
        }
        Ok(made)
    })
}
