//! What of the C library a module of checked code brings along: functions that only compute, and touch no memory but
//! what they are given. To call the host for them would cost more than they do, and the host would have to check
//! their arguments. Everything else stays the host's, which has one heap, one locale and one set of files.

use std::path::Path;

/// The archive of what is written for modules of checked code alone: it stands in the place of what reads whole
/// blocks, beyond what it was given, or uses repeated string instructions.
pub(super) const PRODUCT: &str = "libword.a";

/// The archive of the heap of a module (`sysroot/word/heap`), which a module may do without.
pub(crate) const HEAP: &str = "libheap.a";

/// Parts of which everything counts, but for what follows.
const PARTS: &[&str] = &["string", "ctype", "math", "complex"];
/// What allocates, what asks for the locale or the thread, and what keeps something between calls.
const LEFT_OUT: &[&str] = &[
    "ctype-__ctype_get_mb_cur_max",
    "string-strdup",
    "string-strndup",
    "string-strsignal",
    "string-strtok",
    "string-strerror_r",
    "string-wcsdup",
    "math-signgam",
    "math-lgamma",
    "math-lgammaf",
    "math-lgammal",
    "math-lgamma_r",
    "math-lgammaf_r",
];
/// Of other parts.
const SINGLE: &[&str] = &[
    "stdlib-abs",
    "stdlib-atoi",
    "stdlib-atol",
    "stdlib-atoll",
    "stdlib-bsearch",
    "stdlib-div",
    "stdlib-imaxabs",
    "stdlib-imaxdiv",
    "stdlib-labs",
    "stdlib-ldiv",
    "stdlib-llabs",
    "stdlib-lldiv",
    "stdlib-qsort",
    "stdlib-qsort_nr",
];

/// Whether the assembler text of a product is part of a module.
pub(super) fn is(product: &str, text: &Path) -> bool {
    let name = text.file_stem().unwrap_or_default().to_string_lossy();
    let part = name.split('-').next().unwrap_or_default();
    let computes = PARTS.contains(&part) && !LEFT_OUT.contains(&name.as_ref());
    match product {
        "libgcc.a" | PRODUCT | HEAP => true,
        "libc.a" => {
            let own = text
                .with_file_name("..")
                .join(PRODUCT)
                .join(format!("{name}.s"));
            !own.exists() && (computes || SINGLE.contains(&name.as_ref()))
        }
        _ => false,
    }
}
