//! `mullion rustc` and `mullion cargo`: crates become images.
//!
//! rustc does its own work. It keeps three registers free, since LLVM 23 can, and writes each crate's
//! code as assembler text, too. What is in its object files is thrown away:
//!
//! ```text
//! mullion cargo build
//!    cargo                       target, wrapper, C compiler                    cargo.rs
//!       mullion-rustc rustc ...  per crate of the target                        wrapper.rs
//!          rustc --emit ...,asm  a crate as one codegen unit: crate.s, libcrate.rlib
//!             mullion-rustc-ld   for a program or a cdylib                      link.rs, shim.rs
//!                mullion cc      the image
//!          rewrite, then as      crate.s -> crate.o, into libcrate.rlib         object.rs
//! ```
//!
//! `core`, `alloc` and `std` are compiled the same way, once, from the toolchain's own sources
//! (`library.rs`). Nothing here is trusted: the verifier reads the image.

mod arguments;
mod cargo;
mod depth;
pub mod elastic;
mod impossible;
mod library;
mod link;
mod object;
mod probes;
mod shim;
mod toolchain;
mod warnings;
mod wrapper;

pub use cargo::cargo;
pub use link::link;
pub(crate) use object::assemble;
pub use toolchain::Toolchain;
pub use wrapper::{rustc, wrapped};

/// The release whose LLVM keeps registers free, and that this was tried with.
pub const RELEASE: &str = "1.99.1";

/// The target of what runs in a domain: its C library is musl.
pub const TARGET: &str = "x86_64-unknown-linux-musl";

/// The text of `mullion rustc --mullion-help`.
pub const RUST_HELP: &str = "\
mullion rustc takes the options of rustc, and:

  --mullion-protection=LEVEL  as of mullion cc
  --mullion-base=BASE         as of mullion cc
  --mullion-count             as of mullion cc
  --mullion-keep=DIRECTORY    keeps the assembler text, before and after rewriting
  --mullion-help              this text

A program becomes an image that is run; a cdylib becomes an extension, whose exports are
its `#[unsafe(no_mangle)] extern \"C\"` functions.

Environment:

  MULLION_RUST                the directory of a toolchain, instead of rustup's 1.99.1
  MULLION_PROTECTION, MULLION_BASE, MULLION_COUNT
                              as of mullion cc; mullion cargo has these alone
  XDG_CACHE_HOME              where core, alloc and std are built, once (~/.cache)

Fixed for a domain, whatever the command line says: the target, one codegen unit to a
crate, position-independent code, panic=abort, no link-time optimisation between crates,
no AVX-512.
";

/// Options of every crate of a domain, behind the user's own, so that they win.
///
/// The three registers belong to the rewriter. Thread-locals of a position-independent executable
/// are at fixed distances from the thread pointer. Without `relro` calls go to symbols, not through
/// memory. The C library is linked by `mullion cc`, so rustc must not link it statically.
const CODE: &[&str] = &[
    "-Crelocation-model=pie",
    "-Crelro-level=off",
    "-Ccodegen-units=1",
    "-Cpanic=abort",
    "-Ctarget-feature=+reserve-r11,+reserve-r14,+reserve-r15,-crt-static",
    "-Cllvm-args=-x86-asm-syntax=att",
    "-Cembed-bitcode=no",
    "-Cdwarf-version=5",
];

/// The same of a crate behind no wall but its language: it keeps no register free, and becomes part of a library.
const ALONE: &[&str] = &[
    "-Crelocation-model=pic",
    "-Crelro-level=off",
    "-Ccodegen-units=1",
    "-Cpanic=abort",
    "-Ctarget-feature=-crt-static",
    "-Cllvm-args=-x86-asm-syntax=att",
    "-Cembed-bitcode=no",
    "-Cdwarf-version=5",
];

/// What no image may hold, and a named processor asks for.
const NARROWED: &str = "-Ctarget-feature=-avx512f,-avxvnni,-fma4,-xop,-tbm";

/// Hands the crate's assembler text from the wrapper to the linker.
const TEXT: &str = "MULLION_RUST_TEXT";

/// Names an elastic program's exports to the linker.
const EXPORTS: &str = "MULLION_RUST_EXPORTS";
