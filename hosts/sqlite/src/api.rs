//! SQLite's table of functions, as the shell hands it to an extension, and the tables that modules get.
//!
//! An extension finds SQLite by `sqlite3_api_routines`, a structure of pointers that only ever grows. A module gets a
//! table of its own, in memory that it may read. Where a function of SQLite's needs a mediator, that one stands there.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The host's table.
static HOST: AtomicPtr<*const c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The oldest SQLite whose table has all of [`NAMES`].
pub(crate) const OLDEST: i32 = 3_040_000;

/// Remembers the host's table.
pub(crate) fn open(table: *const c_void) {
    HOST.store(table.cast_mut().cast(), Ordering::Release);
}

/// The host's function at a place of its table.
pub(crate) fn at(place: usize) -> *const c_void {
    let table = HOST.load(Ordering::Acquire);
    // SAFETY: SQLite's table stays as long as SQLite does, and has all these places in the versions that `open`'s
    // caller admits.
    unsafe { *table.add(place) }
}

/// The place of a function, by its name in the structure.
pub(crate) const fn place(name: &str) -> usize {
    let mut at = 0;
    while at < NAMES.len() {
        if same(NAMES[at].as_bytes(), name.as_bytes()) {
            return at;
        }
        at += 1;
    }
    panic!("SQLite has no such function")
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// A function of SQLite's by its name in the structure, with its type: `host!(value_int: fn(Value) -> c_int)(value)`.
macro_rules! host {
    ($name:ident: fn($($parameter:ty),* $(,)?) $(-> $result:ty)?) => {{
        const PLACE: usize = $crate::api::place(stringify!($name));
        let function = $crate::api::at(PLACE);
        // SAFETY: this is the type that SQLite documents for this function. What is passed is SQLite's own, made here, or a
        // module's that was looked at: `Frame` and `Walled` give handles, texts and bytes in no other way.
        unsafe {
            std::mem::transmute::<
                *const std::ffi::c_void,
                extern "C" fn($($parameter),*) $(-> $result)?,
            >(function)
        }
    }};
}
pub(crate) use host;

/// A function's name as programs call it.
pub(crate) fn public_name(name: &str) -> String {
    let name = match name {
        "xsnprintf" => "snprintf",
        "xvsnprintf" => "vsnprintf",
        "xthreadsafe" => "threadsafe",
        "interruptx" => "interrupt",
        name => name,
    };
    format!("sqlite3_{name}")
}

/// The structure's members, in their order. SQLite adds new ones at the end.
pub(crate) const NAMES: [&str; 266] = [
    "aggregate_context",
    "aggregate_count",
    "bind_blob",
    "bind_double",
    "bind_int",
    "bind_int64",
    "bind_null",
    "bind_parameter_count",
    "bind_parameter_index",
    "bind_parameter_name",
    "bind_text",
    "bind_text16",
    "bind_value",
    "busy_handler",
    "busy_timeout",
    "changes",
    "close",
    "collation_needed",
    "collation_needed16",
    "column_blob",
    "column_bytes",
    "column_bytes16",
    "column_count",
    "column_database_name",
    "column_database_name16",
    "column_decltype",
    "column_decltype16",
    "column_double",
    "column_int",
    "column_int64",
    "column_name",
    "column_name16",
    "column_origin_name",
    "column_origin_name16",
    "column_table_name",
    "column_table_name16",
    "column_text",
    "column_text16",
    "column_type",
    "column_value",
    "commit_hook",
    "complete",
    "complete16",
    "create_collation",
    "create_collation16",
    "create_function",
    "create_function16",
    "create_module",
    "data_count",
    "db_handle",
    "declare_vtab",
    "enable_shared_cache",
    "errcode",
    "errmsg",
    "errmsg16",
    "exec",
    "expired",
    "finalize",
    "free",
    "free_table",
    "get_autocommit",
    "get_auxdata",
    "get_table",
    "global_recover",
    "interruptx",
    "last_insert_rowid",
    "libversion",
    "libversion_number",
    "malloc",
    "mprintf",
    "open",
    "open16",
    "prepare",
    "prepare16",
    "profile",
    "progress_handler",
    "realloc",
    "reset",
    "result_blob",
    "result_double",
    "result_error",
    "result_error16",
    "result_int",
    "result_int64",
    "result_null",
    "result_text",
    "result_text16",
    "result_text16be",
    "result_text16le",
    "result_value",
    "rollback_hook",
    "set_authorizer",
    "set_auxdata",
    "xsnprintf",
    "step",
    "table_column_metadata",
    "thread_cleanup",
    "total_changes",
    "trace",
    "transfer_bindings",
    "update_hook",
    "user_data",
    "value_blob",
    "value_bytes",
    "value_bytes16",
    "value_double",
    "value_int",
    "value_int64",
    "value_numeric_type",
    "value_text",
    "value_text16",
    "value_text16be",
    "value_text16le",
    "value_type",
    "vmprintf",
    "overload_function",
    "prepare_v2",
    "prepare16_v2",
    "clear_bindings",
    "create_module_v2",
    "bind_zeroblob",
    "blob_bytes",
    "blob_close",
    "blob_open",
    "blob_read",
    "blob_write",
    "create_collation_v2",
    "file_control",
    "memory_highwater",
    "memory_used",
    "mutex_alloc",
    "mutex_enter",
    "mutex_free",
    "mutex_leave",
    "mutex_try",
    "open_v2",
    "release_memory",
    "result_error_nomem",
    "result_error_toobig",
    "sleep",
    "soft_heap_limit",
    "vfs_find",
    "vfs_register",
    "vfs_unregister",
    "xthreadsafe",
    "result_zeroblob",
    "result_error_code",
    "test_control",
    "randomness",
    "context_db_handle",
    "extended_result_codes",
    "limit",
    "next_stmt",
    "sql",
    "status",
    "backup_finish",
    "backup_init",
    "backup_pagecount",
    "backup_remaining",
    "backup_step",
    "compileoption_get",
    "compileoption_used",
    "create_function_v2",
    "db_config",
    "db_mutex",
    "db_status",
    "extended_errcode",
    "log",
    "soft_heap_limit64",
    "sourceid",
    "stmt_status",
    "strnicmp",
    "unlock_notify",
    "wal_autocheckpoint",
    "wal_checkpoint",
    "wal_hook",
    "blob_reopen",
    "vtab_config",
    "vtab_on_conflict",
    "close_v2",
    "db_filename",
    "db_readonly",
    "db_release_memory",
    "errstr",
    "stmt_busy",
    "stmt_readonly",
    "stricmp",
    "uri_boolean",
    "uri_int64",
    "uri_parameter",
    "xvsnprintf",
    "wal_checkpoint_v2",
    "auto_extension",
    "bind_blob64",
    "bind_text64",
    "cancel_auto_extension",
    "load_extension",
    "malloc64",
    "msize",
    "realloc64",
    "reset_auto_extension",
    "result_blob64",
    "result_text64",
    "strglob",
    "value_dup",
    "value_free",
    "result_zeroblob64",
    "bind_zeroblob64",
    "value_subtype",
    "result_subtype",
    "status64",
    "strlike",
    "db_cacheflush",
    "system_errno",
    "trace_v2",
    "expanded_sql",
    "set_last_insert_rowid",
    "prepare_v3",
    "prepare16_v3",
    "bind_pointer",
    "result_pointer",
    "value_pointer",
    "vtab_nochange",
    "value_nochange",
    "vtab_collation",
    "keyword_count",
    "keyword_name",
    "keyword_check",
    "str_new",
    "str_finish",
    "str_appendf",
    "str_vappendf",
    "str_append",
    "str_appendall",
    "str_appendchar",
    "str_reset",
    "str_errcode",
    "str_length",
    "str_value",
    "create_window_function",
    "normalized_sql",
    "stmt_isexplain",
    "value_frombind",
    "drop_modules",
    "hard_heap_limit64",
    "uri_key",
    "filename_database",
    "filename_journal",
    "filename_wal",
    "create_filename",
    "free_filename",
    "database_file_object",
    "txn_state",
    "changes64",
    "total_changes64",
    "autovacuum_pages",
    "error_offset",
    "vtab_rhs_value",
    "vtab_distinct",
    "vtab_in",
    "vtab_in_first",
    "vtab_in_next",
    "deserialize",
    "serialize",
    "db_name",
    "value_encoding",
];
