//! A heap for each process, on pages of its own, that go back whole when it ends.
//!
//! ```text
//!   region    256 GiB of address space, in units of 16 KiB; a side table says whose each unit is
//!   pool      a worker's free runs of 1, 2, 4 ... units: last in, first out, so mostly warm in the cache
//!   heap      a process's runs: blocks of one size class each, or one large block
//!   global    the allocator of the program: the heap of the process that runs, or the system's
//! ```
//! A process lives on one worker, so nothing here needs an atomic operation but the region's frontier.

mod block;
mod global;
mod pages;
mod pool;
pub(crate) mod region;
mod runs;
mod size;

pub(crate) use block::Heap;
pub use global::ProcessHeaps;
pub(crate) use pages::{allocate_pages, release_pages};
pub(crate) use pool::Pool;
pub use region::UNIT;
pub(crate) use region::{State, in_use, reserve, runs};
