//! Any bytes as code: what the verifier accepts, iced-x86 reads as the same
//! number of instructions, none of them privileged or using the stack but by call and return.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/window/verifier/tests/support/build.rs"]
mod build;

use iced_x86::{Decoder, DecoderOptions, FlowControl};
use libfuzzer_sys::fuzz_target;
use mullion_abi::Protection;
use mullion_verifier::verify;

fuzz_target!(|code: &[u8]| {
    if code.is_empty() {
        return;
    }
    let Ok(image) = verify(build::build(code, Protection::ReadWriteCall).bytes) else {
        return;
    };
    // The label in front of the code is one more.
    let mut count = 1;
    for instruction in &mut Decoder::with_ip(64, code, build::ENTRY, DecoderOptions::NONE) {
        assert!(!instruction.is_invalid() && !instruction.is_privileged());
        let stack = matches!(
            instruction.flow_control(),
            FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return
        );
        assert!(
            stack || !instruction.is_stack_instruction(),
            "{instruction}"
        );
        count += 1;
    }
    assert_eq!(count, image.stats().instructions);
});
