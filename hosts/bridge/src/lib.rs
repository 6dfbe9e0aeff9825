//! What bridges of the word wall have in common. A *bridge* is a plug-in that a stock host loads as any other, and that
//! loads other plug-ins, each behind the wall (hosts/sqlite, hosts/redis, hosts/ladspa).
//!
//! ```text
//!   load.rs    a module's file and its policy ──► a domain      learn.rs   or a domain that learns
//!   module.rs  the module: what it points to, read and written with its own rights; why it was stopped
//!   heap.rs    memory that is the module's, from an allocator that it cannot reach
//! ```

mod heap;
mod learn;
mod load;
mod module;

pub use heap::{Heap, HeapError};
pub use load::{LoadError, Request, load};
pub use module::{Answer, Module, Refused, refused};
