//! What bridges of the word wall have in common. A *bridge* is a plug-in that a stock host loads as any other, and that
//! loads other plug-ins, each behind the wall (hosts/sqlite, hosts/redis, hosts/ladspa).
//!
//! ```text
//!   load.rs    a module's file and its policy ──► a domain      learn.rs   or a domain that learns
//!   module.rs  the module: what it points to, read and written with its own rights; why it was stopped
//!   library.rs the C library for modules: malloc, printf   print.rs   formats
//!   trace.rs   what modules were granted and lost, as a file for the hardware model
//!   heap.rs    memory that is the module's, from an allocator that it cannot reach
//! ```

mod heap;
mod learn;
mod library;
mod load;
mod module;
mod print;
mod trace;

pub use heap::{Heap, HeapError};
pub use library::{C_LIBRARY, c_library};
pub use load::{LoadError, Request, Walled, load, wall};
pub use module::{Answer, Module, Reach, Refused, reached, refused};
pub use print::{Arguments, print};
