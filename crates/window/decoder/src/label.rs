//! Finding the label's bytes, at every alignment.

/// The positions at which the label's four bytes stand, in ascending order.
#[inline]
pub fn occurrences(bytes: &[u8], label: [u8; 4]) -> impl Iterator<Item = usize> {
    // The last byte first: it is as rare as any, and the loop over equal-sized
    // blocks without one becomes a vector comparison.
    let [.., last] = label;
    bytes
        .chunks(BLOCK)
        .enumerate()
        .filter(move |(_, block)| contains(block, last))
        .flat_map(move |(number, block)| {
            let start = number * BLOCK;
            let ends = block
                .iter()
                .enumerate()
                .filter(move |(_, byte)| **byte == last);
            ends.filter_map(move |(at, _)| {
                let first = (start + at).checked_sub(label.len() - 1)?;
                (bytes.get(first..=start + at)? == label).then_some(first)
            })
        })
}

const BLOCK: usize = 64;

#[inline]
fn contains(block: &[u8], wanted: u8) -> bool {
    block
        .iter()
        .fold(false, |found, byte| found | (*byte == wanted))
}
