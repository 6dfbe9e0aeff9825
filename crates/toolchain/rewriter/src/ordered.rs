//! Makes ordinary stores of non-temporal ones. Those come to memory behind later stores, so one could come behind a revocation.

use crate::unit::Unit;

/// Each with the ordinary store of the same bytes, which asks for the same alignment.
const STORES: [(&str, &str); 9] = [
    ("movnti", "mov"),
    ("movntil", "movl"),
    ("movntiq", "movq"),
    ("movntps", "movaps"),
    ("movntpd", "movapd"),
    ("movntdq", "movdqa"),
    ("vmovntps", "vmovaps"),
    ("vmovntpd", "vmovapd"),
    ("vmovntdq", "vmovdqa"),
];

/// Changes the instructions.
pub(crate) fn order(unit: &mut Unit<'_>) {
    for instruction in &mut unit.instructions {
        let name = instruction.mnemonic;
        if let Some((_, ordinary)) = STORES.iter().find(|(weak, _)| *weak == name) {
            instruction.mnemonic = ordinary;
            instruction.narrowed = true;
        }
    }
}
