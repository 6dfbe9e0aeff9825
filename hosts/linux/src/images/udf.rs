//! The file system of discs that are written (ECMA-167).

use super::{block, little};

const BLOCK: usize = 512;
const BLOCKS: usize = 8192;
/// Where the first description lies, that of the volume, and of how it was left; and where the partition begins.
const ANCHOR: usize = 256;
const VOLUME: usize = 272;
const LEFT: usize = 288;
const PARTITION: usize = 512;
/// In the partition: which blocks are free, the set of files, and the root.
const FREE: usize = 0;
const FILES: usize = 2;
const ROOT: usize = 3;
/// The standard's name, the version 1.02, and a time.
const DOMAIN: &[u8; 26] = b"\0*OSTA UDF Compliant\0\0\0\0\x02\x01";
const TIME: [u8; 12] = [0, 0x10, 0xea, 7, 11, 28, 0, 0, 0, 0, 0, 0];

/// A description: what it is, where it lies, and a sum of what follows.
fn tagged(what: u16, place: usize, bytes: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut made = block(bytes, fields);
    let sum = made[16..].iter().fold(0_u16, |sum, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| {
            sum << 1 ^ if sum >> 15 == 1 { 0x1021 } else { 0 }
        })
    });
    let words = [what, 2, 0, 0, sum, bytes as u16 - 16].map(u16::to_le_bytes);
    made[..12].copy_from_slice(&words.concat());
    made[12..16].copy_from_slice(&little(place));
    made[4] = made[..16]
        .iter()
        .fold(0, |sum, byte| sum.wrapping_add(*byte));
    made
}

/// An empty file system of 4 MiB.
#[must_use]
pub fn udf() -> Vec<u8> {
    let length = BLOCKS - PARTITION;
    let at = |place: usize| [BLOCK, place].map(little).concat();
    let name = b"\x08walls";
    let mut short_name = block(32, &[(0, name)]);
    short_name[31] = name.len() as u8;
    let extents = [16 * BLOCK, VOLUME, 16 * BLOCK, VOLUME]
        .map(little)
        .concat();
    let anchor = tagged(2, ANCHOR, BLOCK, &[(16, &extents)]);
    let primary: [(usize, &[u8]); 2] = [(24, &short_name), (376, &TIME)];
    let partition: [(usize, &[u8]); 4] = [
        (24, b"\0+NSR02"),
        (64, &[2 * BLOCK, FREE].map(little).concat()),
        // Written as often as one likes, from here to there.
        (184, &[4, PARTITION, length].map(little).concat()),
        (20, &[1]),
    ];
    let logical: [(usize, &[u8]); 6] = [
        (212, &little(BLOCK)),
        (216, DOMAIN),
        (248, &at(FILES)),
        (264, &[6, 1].map(little).concat()),
        (432, &at(LEFT)),
        (440, &[1, 6, 1, 0, 0, 0]),
    ];
    let left: [(usize, &[u8]); 6] = [
        (16, &TIME),
        (28, &little(1)),
        // The next file's number.
        (40, &little(16)),
        (72, &[1, 46, length - ROOT - 1, length].map(little).concat()),
        (124, &little(1)),
        (128, &[2, 1, 2, 1, 2, 1]),
    ];
    let files: [(usize, &[u8]); 4] = [
        (16, &TIME),
        (28, &[3, 0, 3, 0]),
        (400, &at(ROOT)),
        (416, DOMAIN),
    ];
    // The folder that a folder is in has no name.
    let parent: [(usize, &[u8]); 3] = [(16, &[1, 0, 0x0a]), (20, &at(ROOT)), (39, &[0])];
    let parent = tagged(257, ROOT, 40, &parent);
    let root: [(usize, &[u8]); 9] = [
        // How it is found, what it is, and that its content lies in here.
        (20, &[4, 0, 0, 0, 1, 0, 0, 4]),
        (34, &[3, 0]),
        (44, &little(0x7fff)),
        (48, &[1, 0]),
        (56, &little(parent.len())),
        (72, &[TIME, TIME, TIME].concat()),
        (108, &little(1)),
        (172, &little(parent.len())),
        (176, &parent),
    ];
    // A bit is set for what is free.
    let bit = |block| usize::from((ROOT + 1..length).contains(&block));
    let byte = |at: usize| (0..8).fold(0, |byte, one| byte | (bit(at * 8 + one) << one) as u8);
    let bits: Vec<u8> = (0..length / 8).map(byte).collect();
    let numbers = [length, bits.len()].map(little).concat();
    let free = tagged(264, FREE, 24 + bits.len(), &[(16, &numbers), (24, &bits)]);
    let standard = |name: &[u8]| [&[0], name, &[1]].concat();
    let parts: [(usize, &[u8]); 12] = [
        (32768, &standard(b"BEA01")),
        (32768 + 2048, &standard(b"NSR02")),
        (32768 + 4096, &standard(b"TEA01")),
        (ANCHOR * BLOCK, &anchor),
        (VOLUME * BLOCK, &tagged(1, VOLUME, BLOCK, &primary)),
        (
            (VOLUME + 1) * BLOCK,
            &tagged(6, VOLUME + 1, BLOCK, &logical),
        ),
        (
            (VOLUME + 2) * BLOCK,
            &tagged(5, VOLUME + 2, BLOCK, &partition),
        ),
        ((VOLUME + 3) * BLOCK, &tagged(8, VOLUME + 3, BLOCK, &[])),
        (LEFT * BLOCK, &tagged(9, LEFT, 134, &left)),
        ((PARTITION + FREE) * BLOCK, &free),
        (
            (PARTITION + FILES) * BLOCK,
            &tagged(256, FILES, BLOCK, &files),
        ),
        ((PARTITION + ROOT) * BLOCK, &tagged(261, ROOT, 216, &root)),
    ];
    block(BLOCKS * BLOCK, &parts)
}
