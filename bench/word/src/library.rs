//! What a program may call of the C library. What only computes is part of its module already.

use mullion_word_runtime::Effect::{Callback, Frees, Gives, In, Into, Moves, Out};
use mullion_word_runtime::Size::{Argument, Bytes, Product, Text};
use mullion_word_runtime::{Effect, FunctionPolicy, Policy};
use std::ffi::{CStr, CString, c_int};

/// Variables that a program may read: pointers to streams.
pub(crate) const VARIABLES: [&str; 3] = ["stdin", "stdout", "stderr"];

/// Words of stack arguments that functions with a variable number of them get.
const VARIABLE: u8 = 12;

/// Functions, what they do with their arguments, and how many words of these may be on the stack. What a format makes
/// of further arguments is not checked: this host trusts its programs with that.
const FUNCTIONS: &[(&str, &[Effect], u8)] = &[
    ("malloc", &[Gives(Argument(0))], 0),
    ("calloc", &[Gives(Product(0, 1))], 0),
    ("aligned_alloc", &[Gives(Argument(1))], 0),
    ("free", &[Frees(0)], 0),
    ("realloc", &[Moves(0, Argument(1))], 0),
    ("exit", &[], 0),
    ("printf", &[In(0, Text)], VARIABLE),
    ("__printf_chk", &[In(1, Text)], VARIABLE),
    ("fprintf", &[In(1, Text)], VARIABLE),
    ("sprintf", &[In(1, Text)], VARIABLE),
    ("snprintf", &[In(2, Text), Out(0, Argument(1))], VARIABLE),
    ("sscanf", &[In(0, Text), In(1, Text)], VARIABLE),
    ("__isoc99_sscanf", &[In(0, Text), In(1, Text)], VARIABLE),
    ("vprintf", &[In(0, Text)], 0),
    ("vfprintf", &[In(1, Text)], 0),
    ("vsprintf", &[In(1, Text)], 0),
    ("vsnprintf", &[In(2, Text), Out(0, Argument(1))], 0),
    ("puts", &[In(0, Text)], 0),
    ("putchar", &[], 0),
    ("putc", &[], 0),
    ("fputc", &[], 0),
    ("fputs", &[In(0, Text)], 0),
    ("fputs_unlocked", &[In(0, Text)], 0),
    ("fread", &[Out(0, Product(1, 2))], 0),
    ("fwrite", &[In(0, Product(1, 2))], 0),
    ("fflush", &[], 0),
    ("fclose", &[], 0),
    ("feof", &[], 0),
    ("ferror", &[], 0),
    ("getc", &[], 0),
    ("fgetc", &[], 0),
    ("ungetc", &[], 0),
    ("clock_gettime", &[Out(1, Bytes(16))], 0),
    ("clock", &[], 0),
    ("time", &[Out(0, Bytes(8))], 0),
    ("rand", &[], 0),
    ("srand", &[], 0),
    ("strtol", &[In(0, Text), Into(1, Bytes(8), 0)], 0),
    ("strtoul", &[In(0, Text), Into(1, Bytes(8), 0)], 0),
    ("strtoll", &[In(0, Text), Into(1, Bytes(8), 0)], 0),
    ("strtoull", &[In(0, Text), Into(1, Bytes(8), 0)], 0),
    ("__isoc23_strtol", &[In(0, Text), Into(1, Bytes(8), 0)], 0),
    ("__isoc23_strtoul", &[In(0, Text), Into(1, Bytes(8), 0)], 0),
    ("__isoc23_strtoll", &[In(0, Text), Into(1, Bytes(8), 0)], 0),
    ("__isoc23_strtoull", &[In(0, Text), Into(1, Bytes(8), 0)], 0),
    ("strtod", &[In(0, Text), Into(1, Bytes(8), 0)], 0),
    ("strcoll", &[In(0, Text), In(1, Text)], 0),
    ("localtime_r", &[In(0, Bytes(8)), Out(1, Bytes(56))], 0),
    ("__errno_location", &[], 0),
    ("__cxa_atexit", &[Callback(0)], 0),
];

/// What a program that calls these functions, or has their addresses, may do.
pub(crate) fn policy(imports: &[String]) -> Policy {
    let mut policy = Policy::new();
    for (name, effects, stacked) in FUNCTIONS {
        if !imports.iter().any(|import| import == name) {
            continue;
        }
        // Its address would be that of no function of this C library.
        if resolve(name).is_none() {
            continue;
        }
        policy = match (effects.is_empty(), stacked) {
            (true, 0) => policy.allow(name),
            _ => {
                let function = FunctionPolicy::of(effects);
                policy.allow_with(name, function.stacked(*stacked))
            }
        };
    }
    let wanted = |name: &str| imports.iter().any(|import| import == name);
    if wanted("abort") {
        // SAFETY: it takes no arguments, and is there as long as the process.
        policy = unsafe { policy.offer("abort", abort as *const () as usize, None) };
    }
    if wanted("atexit") {
        let function = FunctionPolicy::of(&[Callback(0)]);
        // SAFETY: it takes a function, which its policy has checked.
        policy = unsafe { policy.offer("atexit", at_exit as *const () as usize, Some(function)) };
    }
    policy
}

/// Where the C library has a symbol.
pub(crate) fn resolve(name: &str) -> Option<usize> {
    let name: CString = CString::new(name).ok()?;
    let name: &CStr = &name;
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found as usize)
}

/// `atexit`, which the C library has for each program and no symbol.
extern "C" fn at_exit(function: extern "C" fn()) -> c_int {
    // SAFETY: any function may be called when the process ends, and this one stays callable.
    unsafe { libc::atexit(function) }
}

/// `abort` of a program: a fault of its own, not of this host.
extern "C" fn abort() -> ! {
    eprintln!("word-host: the program called abort");
    // SAFETY: it ends the process, and runs nothing first.
    unsafe { libc::_exit(125) }
}
