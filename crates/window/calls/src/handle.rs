//! What a program has open.

use alloc::sync::Arc;
use core::any::Any;

/// What a program has open: made by the trusted half, and looked into there alone.
pub type Handle = Arc<dyn Any + Send + Sync>;

/// Bytes of `struct stat`, by which Linux describes it.
pub const STAT: usize = 144;
