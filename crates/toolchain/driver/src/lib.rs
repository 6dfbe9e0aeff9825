//! `mullion cc` and `mullion c++`: what stands in for gcc and g++ in unmodified
//! builds.
//!
//! The host's own gcc does the work that it knows best (options, languages, dependency files, temporary files, the
//! order of libraries). Options and a specs file tell it to reserve three registers, and to use the sysroot's
//! headers, libraries and linker script. They also tell it to call *our* assembler:
//!
//! ```text
//! mullion cc a.c -o a.mx
//!    gcc -specs=... -B BIN ... a.c -o a.mx          compiler.rs, arguments.rs
//!       cc1   a.c  -> a.s
//!       BIN/as a.s -> a.o                            assembler.rs
//!          rewrite, then the real as
//!       collect2, BIN/ld -T mullion.ld crt.o a.o -lc specs.rs, linker.rs, sysroot/
//! ```
//!
//! `mullion rustc` and `mullion cargo` do the same with crates ([`rust`]), `mullion clang` with clang.
//!
//! Nothing here is trusted: what comes out is believed by nobody until the
//! verifier has read it.
#![forbid(unsafe_code)]

mod arguments;
mod assembler;
mod checked;
mod clang;
mod compiler;
mod error;
mod foreign;
mod growth;
mod linker;
mod opened;
mod origin;
mod response;
pub mod rust;
mod shared;
mod specs;
pub mod sysroot;
mod tools;
mod word;

pub use arguments::{Arguments, Kind, OPTIONS_HELP, Task};
pub use assembler::assemble;
pub use checked::Heap;
pub use clang::clang;
pub use compiler::{Compiled, Language, compile};
pub use error::DriverError;
pub use linker::link;
pub use origin::Origin;
