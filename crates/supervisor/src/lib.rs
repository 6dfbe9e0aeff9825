//! Domains, ownership, permissions, exports and groups: who may touch which words of memory.
#![no_std]
#![forbid(unsafe_code)]
