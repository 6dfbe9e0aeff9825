//! The functions of the system that a SIP may refer to.
//!
//! A library that refers to a function gets it when it is loaded, and safe code reaches it through the standard
//! library. So the list is short: memory, text, mathematics, unwinding, output, time, and what `mullion-sip` itself needs.
//! No function on it opens, makes or ends anything, and none holds a lock while it runs. A process can end at any
//! instruction, and nobody would give the lock back. For the few others to which every Rust library refers,
//! `mullion-sip` has definitions of its own that refuse (`crates/language/sip/src/separate/world.rs`).

use std::collections::BTreeMap;
use std::fmt;

/// Sorted by class; the order does not matter.
#[rustfmt::skip]
const ALLOWED: &[&str] = &[
    // Memory of the C library, which the kernel's own allocations are, and of the system. `mullion-sip` alone knows the
    // allocator by these names. It holds locks, and is called within critical pieces.
    "__libc_malloc", "__libc_calloc", "__libc_realloc", "__libc_free", "__libc_memalign",
    "mmap", "munmap", "mprotect", "madvise",
    // Bytes and texts.
    "bcmp", "memchr", "memcmp", "memcpy", "memmem", "memmove", "memrchr", "memset", "strlen", "strnlen",
    "__errno_location",
    // Unwinding. It finds tables by `_dl_find_object`, which takes no lock. Thread-locals are the library's own.
    "abort",
    "_Unwind_Backtrace", "_Unwind_DeleteException", "_Unwind_FindEnclosingFunction", "_Unwind_GetCFA",
    "_Unwind_GetDataRelBase", "_Unwind_GetIP", "_Unwind_GetIPInfo", "_Unwind_GetLanguageSpecificData",
    "_Unwind_GetRegionStart", "_Unwind_GetTextRelBase", "_Unwind_RaiseException", "_Unwind_Resume", "_Unwind_SetGR",
    "_Unwind_SetIP",
    // The compiler's start-up file; none of these is there when a SIP is loaded but the first.
    "__cxa_finalize", "__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable",
    // Output to the standard descriptors: a SIP has no way to another one.
    "write", "writev", "close", "isatty",
    // Time (the watch ends who sleeps for too long), random numbers (the keys of hash tables), numbers of threads.
    "clock_gettime", "clock_nanosleep", "getrandom", "poll", "getpid", "gettid", "sched_yield",
    // Waiting and waking, in `mullion-sip` and in the standard library's locks.
    "syscall",
    // Mathematics.
    "acos", "acosf", "acosh", "acoshf", "asin", "asinf", "asinh", "asinhf", "atan", "atan2", "atan2f", "atanf",
    "atanh", "atanhf", "cbrt", "cbrtf", "ceil", "ceilf", "cos", "cosf", "cosh", "coshf", "erf", "erfc", "erfcf",
    "erff", "exp", "exp2", "exp2f", "expf", "expm1", "expm1f", "fdim", "fdimf", "floor", "floorf", "fma", "fmaf",
    "fmod", "fmodf", "hypot", "hypotf", "ldexp", "ldexpf", "lgamma_r", "lgammaf_r", "log", "log10", "log10f",
    "log1p", "log1pf", "log2", "log2f", "logf", "pow", "powf", "rint", "rintf", "round", "roundeven", "roundevenf",
    "roundf", "sin", "sincos", "sincosf", "sinf", "sinh", "sinhf", "sqrt", "sqrtf", "tan", "tanf", "tanh", "tanhf",
    "tgamma", "tgammaf", "trunc", "truncf",
];

/// Functions of the system to which a library refers, and which no SIP gets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LibraryImports {
    /// By what to use instead.
    refused: BTreeMap<&'static str, Vec<String>>,
}

impl LibraryImports {
    /// Notes a name that a library refers to, if it is none that a SIP gets.
    pub(super) fn add(&mut self, name: &str) {
        if !ALLOWED.contains(&name) {
            let same = self.refused.entry(instead(name)).or_default();
            same.push(name.to_owned());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.refused.is_empty()
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.refused.values().flatten().map(String::as_str)
    }
}

impl fmt::Display for LibraryImports {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (instead, names)) in self.refused.iter().enumerate() {
            let between = if place == 0 { "" } else { "; " };
            write!(formatter, "{between}{} ({instead})", names.join(", "))?;
        }
        Ok(())
    }
}

/// The way out.
fn instead(name: &str) -> &'static str {
    let one_of = |names: &[&str]| names.iter().any(|part| name.contains(part));
    if one_of(&["pthread_", "clone"]) {
        "OS threads outlive a process: use `mullion_sip::thread::spawn`"
    } else if one_of(&["sleep"]) {
        "it stops all processes of the worker: use `mullion_sip::thread::sleep`"
    } else if matches!(name, "exit" | "_exit" | "quick_exit" | "atexit") {
        "it ends the host: use `mullion_sip::process::exit`"
    } else if one_of(&["env"]) {
        "the environment is the host's: give the process arguments"
    } else {
        "a SIP has no files, sockets or OS processes: look up a service of the host"
    }
}
