//! The files that hold the lock-free parts of `mullion-runtime`, as they are; their tests are models for loom.
// The tests look into loom's cells, which takes `unsafe`. Nothing else does.
#![cfg_attr(not(test), forbid(unsafe_code))]

#[path = "../../src/life.rs"]
mod life;
