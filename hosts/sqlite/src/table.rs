//! What a module's table has, and which function a policy's name stands for.

use crate::api::{NAMES, at, public_name};
use crate::{format, functions, memory, statements, strings, tables, values};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::OnceLock;

/// Functions of SQLite's that take and give numbers alone: modules call them as they are.
const PLAIN: &[&str] = &[
    "keyword_count",
    "libversion_number",
    "memory_highwater",
    "memory_used",
    "sleep",
    "xthreadsafe",
];

macro_rules! mediators {
    ($($module:ident: $($name:ident),*;)*) => {
        [$($((stringify!($name), $module::$name as *const () as usize)),*),*]
    };
}

/// Functions that stand for SQLite's, by their names in its structure.
fn mediators() -> HashMap<&'static str, usize> {
    mediators! {
        values: value_int, value_int64, value_double, value_type, value_numeric_type, value_bytes, value_bytes16,
            value_subtype, value_nochange, value_frombind, value_encoding, value_text, value_blob, value_text16,
            value_text16le, value_text16be, value_dup, value_free, value_pointer, result_int, result_int64,
            result_double, result_null, result_error_nomem, result_error_toobig, result_error_code, result_subtype,
            result_zeroblob, result_zeroblob64, result_value, result_text, result_text16, result_text16le,
            result_text16be, result_blob, result_blob64, result_text64, result_error, result_pointer,
            context_db_handle, vtab_nochange, set_auxdata, get_auxdata;
        memory: malloc, malloc64, free, msize, realloc, realloc64, randomness, stricmp, strnicmp, strglob, strlike,
            aggregate_context;
        format: mprintf, vmprintf, xsnprintf, xvsnprintf, str_appendf, str_vappendf;
        strings: str_new, str_finish, str_append, str_appendall, str_appendchar, str_reset, str_errcode, str_length,
            str_value;
        functions: create_function, create_function_v2, create_window_function, user_data, create_collation,
            create_collation_v2, overload_function;
        tables: create_module, create_module_v2, declare_vtab, vtab_config, vtab_on_conflict, vtab_collation,
            vtab_distinct, vtab_in, vtab_in_first, vtab_in_next, vtab_rhs_value, keyword_name;
        statements: prepare_v2, prepare_v3, step, reset, finalize, column_count, data_count, column_type, column_int,
            column_int64, column_double, column_bytes, column_bytes16, column_text, column_blob, column_text16,
            column_name, column_decltype, column_table_name, column_value, bind_null, bind_int, bind_int64,
            bind_double, bind_zeroblob, bind_text, bind_blob, bind_value, bind_parameter_count, bind_parameter_name,
            bind_parameter_index, clear_bindings, stmt_readonly, stmt_busy, stmt_isexplain, sql, exec, db_handle,
            changes, total_changes, errcode, extended_errcode, get_autocommit, last_insert_rowid, limit,
            set_last_insert_rowid, errmsg, errstr, libversion, complete;
    }
    .into()
}

/// The table that modules read, and the functions that it leads to.
pub(crate) struct Offered {
    table: usize,
    by_name: HashMap<String, usize>,
    by_address: HashMap<usize, String>,
}

impl Offered {
    /// One for the process, made behind `api::open`.
    pub(crate) fn get() -> std::io::Result<&'static Offered> {
        static OFFERED: OnceLock<Offered> = OnceLock::new();
        if let Some(offered) = OFFERED.get() {
            return Ok(offered);
        }
        let made = Offered::new()?;
        Ok(OFFERED.get_or_init(|| made))
    }

    fn new() -> std::io::Result<Offered> {
        let mut mediators = mediators();
        // The older form of a function whose newer one is better in each way.
        mediators.extend(mediators.get("prepare_v2").map(|at| ("prepare", *at)));
        let mut offered = Offered {
            table: map(Self::bytes())?,
            by_name: HashMap::new(),
            by_address: HashMap::new(),
        };
        let table = offered.table as *mut *const c_void;
        for (place, name) in NAMES.iter().enumerate() {
            let known = mediators.get(name).copied();
            let plain = PLAIN.contains(name).then(|| at(place) as usize);
            // What is not offered has SQLite's own address there: a call is refused, and told by name.
            let address = known.or(plain).unwrap_or(at(place) as usize);
            // SAFETY: the table was mapped with room for all names.
            unsafe { table.add(place).write(address as *const c_void) };
            let name = public_name(name);
            if known.or(plain).is_some() {
                offered.by_name.insert(name.clone(), address);
            }
            offered.by_address.insert(address, name);
        }
        // SAFETY: it is the mapping that was made above.
        match unsafe { libc::mprotect(table.cast(), Self::bytes(), libc::PROT_READ) } {
            0 => Ok(offered),
            _ => Err(std::io::Error::last_os_error()),
        }
    }

    /// How large the table is.
    pub(crate) fn bytes() -> usize {
        NAMES.len() * size_of::<*const c_void>()
    }

    /// Where it is.
    pub(crate) fn table(&self) -> usize {
        self.table
    }

    /// A function by its public name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The name of a function in the table.
    pub(crate) fn name(&self, address: usize) -> Option<&str> {
        self.by_address.get(&address).map(String::as_str)
    }
}

fn map(bytes: usize) -> std::io::Result<usize> {
    // SAFETY: fresh addresses, of which nothing is known.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    match at == libc::MAP_FAILED {
        true => Err(std::io::Error::last_os_error()),
        false => Ok(at as usize),
    }
}
