//! The gate area: one set of physical pages, mapped read + execute into every window.

use crate::error::Error;
use crate::sealed;
use mullion_abi::{CONTROL_REGION, GATE_AREA_SIZE, GATE_SLOT_SIZE, GATE_SLOTS, LABEL};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

static AREA: OnceLock<OwnedFd> = OnceLock::new();

/// The file with the gate area.
pub(crate) fn area() -> Result<BorrowedFd<'static>, Error> {
    if AREA.get().is_none() {
        let file = sealed::file(c"mullion-gates", &[(0, &contents())], GATE_AREA_SIZE)?;
        // Another thread may have been first; one of the two files is dropped.
        let _ = AREA.set(file);
    }
    Ok(AREA.get().ok_or(Error::NoFsgsbase)?.as_fd())
}

/// The code of every slot. It holds no address: `%r10` is found from `%rsp`.
fn contents() -> Vec<u8> {
    let mut area = vec![0xcc; GATE_AREA_SIZE as usize];
    for (number, slot) in area.chunks_exact_mut(GATE_SLOT_SIZE as usize).enumerate() {
        let mut code = Vec::with_capacity(GATE_SLOT_SIZE as usize);
        code.extend([0x41, 0xbb]); // movl $number, %r11d
        code.extend((number as u32).to_le_bytes());
        code.extend([0x49, 0x89, 0xe2]); // movq %rsp, %r10
        code.extend([0x49, 0x81, 0xe2]); // andq $-CONTROL_REGION, %r10
        code.extend((-(CONTROL_REGION as i32)).to_le_bytes());
        code.extend([0x41, 0xff, 0x22]); // jmp *(%r10), the first field of the control block
        slot[..code.len()].copy_from_slice(&code);
        // The label of the next slot; behind the last one the image begins,
        // which has no labels but its own.
        if number as u64 + 1 < GATE_SLOTS {
            slot[28..].copy_from_slice(&LABEL.to_le_bytes());
        }
    }
    area
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_labelled_and_numbered() {
        let area = contents();
        for number in 1..GATE_SLOTS as usize {
            let slot = number * GATE_SLOT_SIZE as usize;
            assert_eq!(area[slot - 4..slot], LABEL.to_le_bytes());
            assert_eq!(area[slot + 2..slot + 6], (number as u32).to_le_bytes());
        }
        assert_eq!(
            area[area.len() - 4..],
            [0xcc; 4],
            "no label on the image's first byte"
        );
    }
}
