//! Holds what the documents say of the tree against the tree: its tests are all that it has.
#![forbid(unsafe_code)]
