//! The columns of the table: what the same source is built for.

use serde::{Deserialize, Serialize};

/// One way to build and run a workload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Column {
    /// `gcc -O2` and the system's C library: the 1.0 of every ratio.
    Native,
    /// `gcc -O2` without the three registers that walls reserve: what their absence, and
    /// the other choices that gcc then makes, cost alone.
    Reserved,
    /// `gcc -O2` and musl, without walls: what the choice of C library alone costs.
    Musl,
    /// `mullion cc`, writes and control flow walled.
    WriteCall,
    /// `mullion cc`, reads, writes and control flow walled.
    ReadWriteCall,
    /// The same without accesses through `%gs` (`--mullion-base=register`).
    Register,
    /// As `read-write-call`, with steps counted (`--mullion-count`).
    Counted,
    /// `mullion cc`, faulting where the others would wrap.
    Trap,
    /// `mullion cc --wall=word`, stores checked by the word.
    WordWrite,
    /// The same, and loads.
    WordReadWrite,
    /// `gcc -O2 -fsanitize=address`: what the same source costs with checks that find errors, and are no wall.
    Asan,
    /// WebAssembly by clang with 128-bit vectors, compiled and run by wasmtime.
    Wasmtime,
    /// WebAssembly by clang, translated to C by wasm2c and compiled by `gcc -O2`.
    Wasm2c,
}

impl Column {
    pub(crate) const ALL: [Column; 13] = [
        Column::Native,
        Column::Reserved,
        Column::Musl,
        Column::WriteCall,
        Column::ReadWriteCall,
        Column::Register,
        Column::Counted,
        Column::Trap,
        Column::WordWrite,
        Column::WordReadWrite,
        Column::Asan,
        Column::Wasmtime,
        Column::Wasm2c,
    ];

    /// The name on the command line, in the table and in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Column::Native => "native",
            Column::Reserved => "reserved",
            Column::Musl => "musl",
            Column::WriteCall => "write-call",
            Column::ReadWriteCall => "read-write-call",
            Column::Register => "register",
            Column::Counted => "counted",
            Column::Trap => "trap",
            Column::WordWrite => "word-write",
            Column::WordReadWrite => "word-read-write",
            Column::Asan => "asan",
            Column::Wasmtime => "wasmtime",
            Column::Wasm2c => "wasm2c",
        }
    }

    /// At most eight letters, for the head of a narrow column.
    pub(crate) fn short(self) -> &'static str {
        match self {
            Column::WriteCall => "write",
            Column::ReadWriteCall => "rd-write",
            Column::WordWrite => "word-wr",
            Column::WordReadWrite => "word-rw",
            other => other.name(),
        }
    }

    /// Whether this is one of Mullion's own walls.
    pub(crate) fn is_wall(self) -> bool {
        matches!(
            self,
            Column::WriteCall
                | Column::ReadWriteCall
                | Column::Register
                | Column::Counted
                | Column::Trap
        )
    }

    /// Whether it is behind the word wall.
    pub(crate) fn is_word(self) -> bool {
        matches!(self, Column::WordWrite | Column::WordReadWrite)
    }

    /// Whether this is native code built otherwise: evidence, measured when asked for.
    pub(crate) fn is_control(self) -> bool {
        matches!(self, Column::Reserved | Column::Musl)
    }

    /// Whether it is measured when asked for by name only.
    pub(crate) fn is_by_name(self) -> bool {
        matches!(self, Column::Register | Column::Counted)
    }

    pub(crate) fn by_name(name: &str) -> Option<Column> {
        Column::ALL.into_iter().find(|c| c.name() == name)
    }
}
