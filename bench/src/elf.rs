//! Just enough of ELF to add up the machine code of an object or image.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// `SHF_EXECINSTR`: the section holds machine code.
const EXECUTABLE: u64 = 4;
/// `SHT_NOBITS`: the section has no bytes in the file.
const NO_BITS: u32 = 8;

/// Bytes in the executable sections of a 64-bit little-endian ELF file.
pub(crate) fn code_bytes(path: &Path) -> Result<u64> {
    let data = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    total(&data).with_context(|| format!("{} is no ELF file with sections", path.display()))
}

fn total(data: &[u8]) -> Option<u64> {
    if data.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let table = usize::try_from(u64::from_le_bytes(field(data, 0x28)?)).ok()?;
    let size = usize::from(u16::from_le_bytes(field(data, 0x3a)?));
    let count = usize::from(u16::from_le_bytes(field(data, 0x3c)?));
    let mut bytes = 0u64;
    for section in 0..count {
        let header = data.get(table.checked_add(section * size)?..)?;
        let kind = u32::from_le_bytes(field(header, 4)?);
        let flags = u64::from_le_bytes(field(header, 8)?);
        if flags & EXECUTABLE != 0 && kind != NO_BITS {
            bytes = bytes.checked_add(u64::from_le_bytes(field(header, 32)?))?;
        }
    }
    Some(bytes)
}

fn field<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_made_of_code() {
        let bytes = code_bytes(&std::env::current_exe().unwrap()).unwrap();
        assert!(bytes > 10_000);
    }

    #[test]
    fn what_is_cut_short_is_an_error_and_no_panic() {
        let data = fs::read(std::env::current_exe().unwrap()).unwrap();
        for length in [0, 5, 6, 0x3b, 0x40, data.len() / 2] {
            assert_eq!(total(&data[..length]), None, "{length}");
        }
    }
}
