//! Names and disassembly for places in an image: for people to read, nothing relies on it.

use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter};
use mullion_symbols::Plain;
use object::{Object, ObjectSymbol};

/// The symbols of an image, if it has a readable symbol table.
pub(crate) struct Symbols {
    /// Address and name, ascending.
    names: Vec<(u64, Plain)>,
}

impl Symbols {
    /// Reads the symbol table of an ELF file; empty if there is none.
    pub(crate) fn read(file: &[u8]) -> Self {
        let mut names = Vec::new();
        if let Ok(elf) = object::File::parse(file) {
            for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
                if let Ok(name) = symbol.name()
                    && symbol.is_definition()
                    && !name.is_empty()
                {
                    names.push((symbol.address(), name.into()));
                }
            }
        }
        names.sort();
        names.dedup();
        Self { names }
    }

    /// The nearest symbol at or below `address`, as `name+0x1c`.
    pub(crate) fn nearest(&self, address: u64) -> Option<String> {
        let below = self.names.partition_point(|(at, _)| *at <= address);
        let (at, name) = self.names.get(below.checked_sub(1)?)?;
        Some(match address - at {
            0 => name.to_string(),
            distance => format!("{name}+{distance:#x}"),
        })
    }
}

/// `bytes`, found at `address`, as one AT&T instruction; `(bad)` if they are none.
pub(crate) fn disassemble(bytes: &[u8], address: u64) -> String {
    let mut text = String::new();
    let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
    GasFormatter::new().format(&instruction, &mut text);
    text
}

/// `0f 05`.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .join(" ")
}
