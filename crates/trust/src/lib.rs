//! Keys, KeyNote assertions and queries, compilation records.
#![forbid(unsafe_code)]
