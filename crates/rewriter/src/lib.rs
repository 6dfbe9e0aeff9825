//! Assembler text in, fault-isolated assembler text out.
#![forbid(unsafe_code)]
