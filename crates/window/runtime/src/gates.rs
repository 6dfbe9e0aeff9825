//! The gate area: the same code in every window. It lies in each image's file in
//! front of the code, so that both are one mapping.

use mullion_abi::{CONTROL_REGION, GATE_AREA_SIZE, GATE_SLOT_SIZE, GATE_SLOTS, LABEL};

/// The code of every slot. It holds no address: `%r10` is found from `%rsp`.
pub(crate) fn contents() -> Vec<u8> {
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
