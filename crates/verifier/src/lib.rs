//! Machine code in, evidence of confinement or the first violations out.
#![forbid(unsafe_code)]
