//! Windows, stacks, gates, faults and limits: the only crate with assembly.
