//! What is said of functions by their groups and names.

/// Groups whose functions compute, and write lines of the log. While one works, other threads wait for their turn with what it
/// works with. For a function of another group they do not wait, as that one may wait for them.
pub(super) const COMPUTE: [&str; 9] = [
    "memory",
    "text",
    "tables",
    "arrays",
    "hashes",
    "log",
    "config",
    "expressions",
    "identifiers",
];

/// More functions that write lists of the process, for which there is no lock. Modules call them while the configuration is read.
pub(super) const BEFORE_SERVING: [&str; 1] = ["xmlAddEncodingAlias"];
