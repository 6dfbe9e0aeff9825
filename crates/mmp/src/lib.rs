//! A model of Mondriaan memory protection hardware: permission tables, lookaside buffers, caches, cycles.
#![forbid(unsafe_code)]
