//! What can go wrong while building an image.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Why `mullion cc` could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// An option that has no meaning in a domain.
    #[error("{option}: {reason}", option = option.to_string_lossy())]
    Refused {
        /// The option as given.
        option: OsString,
        /// Why, and the way out.
        reason: &'static str,
    },
    /// One of our own options has a value that it does not know.
    #[error("{option}: {value:?} is not one of {known}")]
    Value {
        /// The option or environment variable.
        option: &'static str,
        /// What was given.
        value: String,
        /// What is known.
        known: &'static str,
    },
    /// An option of ours that does not exist.
    #[error("{0}: unknown option; see mullion cc --mullion-help")]
    Unknown(String),
    /// A response file cannot be read.
    #[error("@{path}: {cause}")]
    Response {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A program that is needed is not there.
    #[error("{program} could not be started ({cause}); install {package}")]
    Start {
        /// Its name.
        program: String,
        /// Debian's package of it.
        package: &'static str,
        /// What the system said.
        cause: io::Error,
    },
    /// There is no Rust that can compile for a domain.
    #[error(
        "{what} is not there; install it: rustup toolchain install {release} --profile minimal -c rust-src \
         (or name the directory of such a toolchain in MULLION_RUST)"
    )]
    NoRust {
        /// What is missing.
        what: String,
        /// The release that is known to do.
        release: &'static str,
    },
    /// There is a Rust that can compile for a domain, without the libraries that its judge is made of.
    #[error(
        "the libraries of rustc {release} (rustc-dev) are not there, and without them nothing judges elastic Rust; \
         install them: rustup component add rustc-dev --toolchain {release}"
    )]
    NoRustDev {
        /// The release that is known to do.
        release: &'static str,
    },
    /// The whole C++ library fits the headers of one release of g++ alone.
    #[error(
        "the C++ library's streams, locales and more are built for g++ 12 alone, and this is g++ {found}; \
         install g++-12, or name it in MULLION_CXX (and gcc-12 in MULLION_CC)"
    )]
    OtherCxx {
        /// What the compiler says of itself.
        found: String,
    },
    /// Code that was not rewritten is in an image, which does not verify.
    #[error(
        "{objects}: code that mullion cc did not make, and the image does not verify with it ({violation}); build it \
         by mullion cc, or leave NASM's files out for the library's C (-DWITH_SIMD=0, --disable-asm and their like)"
    )]
    Foreign {
        /// The objects.
        objects: String,
        /// The first rule that is broken.
        violation: String,
    },
    /// A file that is named for `dlopen` is no library of ours.
    #[error(
        "{0}: no library that mullion cc -shared made, so no image can have it opened by dlopen"
    )]
    NoLibrary(PathBuf),
    /// Parts of gcc's own libraries fit one release of gcc alone.
    #[error(
        "{what} built for gcc 12 alone, and this is gcc {found}; install gcc-12, or name it in MULLION_CC"
    )]
    OtherGcc {
        /// The library's name, and a verb.
        what: &'static str,
        /// What the compiler says of itself.
        found: String,
    },
    /// There is no back end that keeps registers free for clang's programs.
    #[error(
        "the back end of LLVM 23 (llc) is not there, which keeps the rewriter's registers free; \
         install it: rustup component add llvm-tools --toolchain {release}"
    )]
    NoLlc {
        /// The release that is known to do.
        release: &'static str,
    },
    /// A program failed while the sysroot was built.
    #[error("{command} failed\n{said}")]
    Step {
        /// The command line.
        command: String,
        /// What it wrote to standard error.
        said: String,
    },
    /// The rewriter refused an instruction.
    #[error("{0}")]
    Rewrite(String),
    /// Reading or writing a file.
    #[error("{path}: {cause}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A third-party source could not be had.
    #[error(transparent)]
    Fetch(#[from] mullion_fetch::FetchError),
}

impl DriverError {
    pub(crate) fn io(path: &Path, cause: io::Error) -> Self {
        Self::Io {
            path: path.to_path_buf(),
            cause,
        }
    }
}
