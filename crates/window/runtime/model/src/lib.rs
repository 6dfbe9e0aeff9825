//! The files that hold the lock-free parts of `mullion-runtime`, as they are; their tests are models for loom.

#[path = "../../src/life.rs"]
mod life;
