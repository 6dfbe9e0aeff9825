//! Any file: what reads debug information ends within its bounds, without a panic (which
//! it would catch, and which ends this program), and says nothing too long. The last four bytes are
//! the offset that is asked about, beside those of functions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mullion_symbols::Symbols;

/// Functions that are asked about.
const MOST: usize = 4;
/// Locations of one offset: `place::INLINED`, and the function itself.
const LOCATIONS: usize = 65;

fuzz_target!(|bytes: &[u8]| {
    let Some((file, offset)) = bytes.split_last_chunk() else {
        return;
    };
    let mut symbols = Symbols::new(file);
    let names: Vec<_> = symbols.functions().collect();
    let length: usize = names.iter().map(|function| function.name.len()).sum();
    assert!(length <= 8 * file.len() + 8192);
    let mut questions = 0;
    let offsets = names.iter().map(|function| function.offset).take(MOST);
    for offset in offsets.chain([u64::from(u32::from_le_bytes(*offset))]) {
        let found = symbols.find(offset);
        assert!(found.len() <= LOCATIONS);
        assert!(found.iter().all(|found| found.to_string().len() < 20_000));
        let _ = symbols.signature(offset).map(|signature| signature.to_string());
        questions += 2;
    }
    let bound = questions * (1 << 20) + (1 << 16) + 16 * file.len() as u64;
    assert!(symbols.steps() <= bound, "{} steps", symbols.steps());
    let mut without = Symbols::without_debug_information(file);
    let _ = without.find(u64::from(u32::from_le_bytes(*offset)));
    assert_eq!(without.steps(), 0);
});
