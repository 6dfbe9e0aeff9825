//! Numbers that gcc's own libraries compute with, from their sources: decimal floating point, of its helper library, and
//! functions of `__float128`, of libquadmath. Each is built when a program is first linked that misses the one, or
//! names the other.
//!
//! Unlike the other parts of gcc that are built here, libquadmath is under the LGPL 2.1 or later, without an exception.

use super::unit::{Unit, entries};
use super::{Sysroot, gcc};
use crate::DriverError;
use mullion_rewriter::Options;
use std::path::{Path, PathBuf};

const DECIMALS: gcc::Library = gcc::Library {
    name: "decimal",
    product: BID,
    what: "decimal floating point is",
    parts: &["*/libgcc/config/libbid/*"],
    recipe: include_str!("numbers.rs"),
    units: decimals,
};

const QUADMATH: gcc::Library = gcc::Library {
    name: "quadmath",
    product: LIBQUADMATH,
    what: "libquadmath is",
    parts: &["*/libquadmath/*", "*/include/longlong.h"],
    recipe: include_str!("numbers.rs"),
    units: quads,
};

/// The archives.
const BID: &str = "libbid.a";
const LIBQUADMATH: &str = "libquadmath.a";

/// How the names of decimal functions begin.
pub(crate) const DECIMAL: &str = "__bid_";

/// A file of libquadmath's that another one includes.
const INCLUDED: &str = "strtod_l";

/// The files that all decimal functions have in common, as libgcc's makefile has it.
const COMMON: &[&str] = &[
    "_isinfd128",
    "_isinfd32",
    "_isinfd64",
    "bid128",
    "bid128_add",
    "bid128_compare",
    "bid128_div",
    "bid128_fma",
    "bid128_mul",
    "bid128_noncomp",
    "bid128_to_int32",
    "bid128_to_int64",
    "bid128_to_uint32",
    "bid128_to_uint64",
    "bid32_to_bid128",
    "bid32_to_bid64",
    "bid64_add",
    "bid64_compare",
    "bid64_div",
    "bid64_mul",
    "bid64_noncomp",
    "bid64_to_bid128",
    "bid64_to_int32",
    "bid64_to_int64",
    "bid64_to_uint32",
    "bid64_to_uint64",
    "bid_binarydecimal",
    "bid_convert_data",
    "bid_decimal_data",
    "bid_decimal_globals",
    "bid_from_int",
    "bid_round",
];

/// The functions of one width each: of `sd`, `dd` and `td`, which are 32, 64 and 128 bits wide.
const OF_WIDTHS: &[&str] = &[
    "addsub_D", "div_D", "mul_D", "eq_D", "ne_D", "lt_D", "gt_D", "le_D", "ge_D", "unord_D",
    "D_to_si", "D_to_di", "D_to_usi", "D_to_udi", "si_to_D", "di_to_D", "usi_to_D", "udi_to_D",
    "D_to_sf", "D_to_df", "D_to_xf", "D_to_tf", "sf_to_D", "df_to_D", "xf_to_D", "tf_to_D",
];
/// From one width to another.
const BETWEEN: &[&str] = &[
    "sd_to_dd", "sd_to_td", "dd_to_sd", "dd_to_td", "td_to_sd", "td_to_dd",
];

/// The archive of decimal floating point for these options, built if the cache does not have it.
///
/// # Errors
/// Another release of gcc, no sources, a step that failed, a full disk.
pub(crate) fn decimal(options: &Options) -> Result<PathBuf, DriverError> {
    DECIMALS.prepare(options)
}

/// The same of libquadmath.
///
/// # Errors
/// Another release of gcc, no sources, a step that failed, a full disk.
pub(crate) fn quadmath(options: &Options) -> Result<PathBuf, DriverError> {
    QUADMATH.prepare(options)
}

fn decimals(sysroot: &Sysroot, scratch: &Path) -> Result<Vec<Unit>, DriverError> {
    let directories = ["libgcc/config/libbid", "libgcc"];
    let mut shared = gcc::options(sysroot, scratch, "gcov", &directories);
    for flag in [
        "-fbuilding-libgcc",
        "-DIN_LIBGCC2",
        "-DENABLE_DECIMAL_BID_FORMAT",
        "-DHAVE_CC_TLS",
        "-DUSE_TLS",
        "-DFINE_GRAINED_LIBRARIES",
    ] {
        shared.push(flag.into());
    }
    let of_widths = ["sd", "dd", "td"]
        .iter()
        .flat_map(|width| OF_WIDTHS.iter().map(|name| name.replace('D', width)));
    let between = BETWEEN.iter().map(|name| (*name).to_owned());
    let functions = of_widths.chain(between);
    let mut names: Vec<String> = functions.map(|name| format!("_{name}")).collect();
    names.extend(COMMON.iter().map(|name| (*name).to_owned()));
    let unit = |name: String| {
        let mut options = shared.clone();
        options.push(format!("-DL{name}").into());
        Unit {
            product: BID,
            source: scratch.join(format!("libgcc/config/libbid/{name}.c")),
            name,
            options,
        }
    };
    Ok(names.into_iter().map(unit).collect())
}

fn quads(sysroot: &Sysroot, scratch: &Path) -> Result<Vec<Unit>, DriverError> {
    let options = gcc::options(sysroot, scratch, "quadmath", &["libquadmath", "include"]);
    let mut units = Vec::new();
    for directory in ["math", "printf", "strtod"] {
        for source in entries(&scratch.join("libquadmath").join(directory))? {
            let stem = source.file_stem().unwrap_or_default().to_string_lossy();
            if source.extension().is_some_and(|name| name == "c") && stem != INCLUDED {
                units.push(Unit {
                    product: LIBQUADMATH,
                    name: format!("{directory}-{stem}"),
                    options: options.clone(),
                    source: source.clone(),
                });
            }
        }
    }
    Ok(units)
}
