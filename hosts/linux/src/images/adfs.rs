//! The file system of RISC OS.

use super::{block, files, little, pad};

const BLOCK: usize = 1024;
/// A block has a bit of the map, behind the map's head and the record of the disc.
const HEAD: usize = 4;
const FIRST_BIT: usize = (HEAD + 60) * 8;
/// Bits of a fragment's number, and how many blocks a fragment has at least.
const NUMBER: usize = 13;
const LEAST: usize = NUMBER + 1;
/// The fragment that has the map, and in its third block the root.
const ROOT: usize = 2;
const ROOT_BLOCK: usize = 2;
const FOLDER: usize = 2048;

/// A disc with one zone: all of it is in fragments, and none of it is free.
#[must_use]
pub fn adfs() -> Vec<u8> {
    let files = files();
    let mut folder = block(FOLDER, &[(1, b"Hugo")]);
    let mut data = Vec::new();
    let mut fragments = vec![(ROOT, LEAST)];
    for (at, (name, content)) in files.iter().enumerate() {
        let number = ROOT + 1 + at;
        let words = [0xfff0_003f, 0xec22_c000, content.len(), number << 8];
        let entry: [(usize, &[u8]); 3] = [
            (0, name.as_bytes()),
            (10, &words.map(little).concat()[..15]),
            // Anybody may read it.
            (25, &[0x13]),
        ];
        let place = 5 + at * 26;
        folder[place..place + 26].copy_from_slice(&block(26, &entry));
        let blocks = content.len().div_ceil(BLOCK).max(LEAST);
        fragments.push((number, blocks));
        data.extend_from_slice(content);
        pad(&mut data, BLOCK);
        data.resize(
            (fragments.iter().map(|(_, blocks)| blocks).sum::<usize>() - LEAST) * BLOCK,
            0,
        );
    }
    let root = ROOT << 8 | (ROOT_BLOCK + 1);
    let tail: [(usize, &[u8]); 3] = [(3, &little(root)[..3]), (6, b"walls"), (36, b"Hugo")];
    folder[2007..].copy_from_slice(&block(41, &tail));
    folder[2047] = folder_sum(&folder, files.len());
    let total = LEAST + data.len() / BLOCK;
    let disc: [(usize, &[u8]); 4] = [
        // Powers of two: a block's bytes, and a bit's.
        (0, &[10, 32, 1, 0, NUMBER as u8, 10]),
        (9, &[1, 32]),
        (12, &[root, total * BLOCK].map(little).concat()),
        (22, b"walls"),
    ];
    let mut map = block(BLOCK, &[(2, &[0x80, 0xff]), (HEAD, &block(60, &disc))]);
    let mut bit = FIRST_BIT;
    for (number, blocks) in fragments {
        // A number, zeros, and a one at the end.
        for at in (0..NUMBER).filter(|at| number >> at & 1 == 1) {
            map[(bit + at) / 8] |= 1 << ((bit + at) % 8);
        }
        bit += blocks;
        map[(bit - 1) / 8] |= 1 << ((bit - 1) % 8);
    }
    map[0] = zone_sum(&map);
    let parts: [(usize, &[u8]); 3] = [
        (0, &map),
        (ROOT_BLOCK * BLOCK, &folder),
        (LEAST * BLOCK, &data),
    ];
    block(total * BLOCK, &parts)
}

/// Four sums of each fourth byte, from the end, each with what the one before it carries.
fn zone_sum(map: &[u8]) -> u8 {
    let mut sums = [0_u32; 4];
    for word in map.chunks_exact(4).rev() {
        for at in 0..4 {
            let carry = sums[(at + 3) % 4] >> 8;
            sums[(at + 3) % 4] &= 0xff;
            // The sum's own byte does not count.
            let is_own = std::ptr::eq(word, &raw const map[..4]) && at == 0;
            sums[at] += carry + if is_own { 0 } else { u32::from(word[at]) };
        }
    }
    sums.iter().fold(0, |all, sum| all ^ (*sum as u8))
}

/// Of all words up to the end of the last entry, the bytes that are left, and the words of the tail.
fn folder_sum(folder: &[u8], entries: usize) -> u8 {
    let end = 5 + entries * 26;
    let word = |word: &[u8]| u32::from_le_bytes(word.try_into().expect("four bytes"));
    let words = folder[..end & !3].chunks_exact(4).map(word);
    let bytes = folder[end & !3..end].iter().copied().map(u32::from);
    let tail = folder[2008..2044].chunks_exact(4).map(word);
    let all = words.chain(bytes).chain(tail);
    let sum = all.fold(0_u32, |sum, one| one ^ sum.rotate_right(13));
    sum.to_le_bytes()
        .into_iter()
        .fold(0, |all, byte| all ^ byte)
}
