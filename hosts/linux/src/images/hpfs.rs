//! The file system of OS/2.

use super::{block, little};

const SECTOR: usize = 512;
/// One band: 8 MiB at most.
const SECTORS: usize = 8192;
/// Four sectors: which sectors are free.
const FREE: usize = 20;
/// Where those four are, of each band.
const BANDS: usize = 24;
/// Four sectors: which folders' blocks are free.
const FREE_FOLDERS: usize = 28;
const ROOT: usize = 32;
/// The first block of the root, which four sectors have; and of all folders' blocks.
const FOLDERS: usize = 64;
const COUNT: usize = 64;

/// An empty file system of 4 MiB.
#[must_use]
pub fn hpfs() -> Vec<u8> {
    let end = FOLDERS + 4 * COUNT;
    let superblock: [(usize, &[u8]); 6] = [
        // Two marks, and the versions.
        (0, &[0xf995_e849, 0xfa53_e9c5, 0x202].map(little).concat()),
        (12, &[ROOT, SECTORS, 0, BANDS].map(little).concat()),
        (36, &little(0)),
        // How long the band of folders is, from where to where, and what is free of it.
        (48, &[4 * COUNT, FOLDERS, end - 1].map(little).concat()),
        (60, &little(FREE_FOLDERS)),
        (64, b"walls"),
    ];
    let spare = [0xf991_1849, 0xfa52_29c5].map(little).concat();
    let root: [(usize, &[u8]); 6] = [
        (0, &little(0xf7e4_0aae)),
        (28, &little(ROOT)),
        // A folder: the only extent is its block.
        (54, &256_u16.to_le_bytes()),
        (60, &[7, 1, 20, 0]),
        (64, &[usize::MAX, 0, FOLDERS].map(little).concat()),
        (184, &[0xc4]),
    ];
    let entry = |length: usize, flags: [u8; 2], name: &[u8]| {
        let fields: [(usize, &[u8]); 5] = [
            (0, &[length as u8]),
            (2, &flags),
            (4, &little(ROOT)),
            (30, &[name.len() as u8]),
            (31, name),
        ];
        block(length, &fields)
    };
    // The folder itself, and an end behind all names.
    let entries = [entry(36, [1, 0x10], &[1, 1]), entry(32, [8, 0], &[0xff])].concat();
    let folder: [(usize, &[u8]); 4] = [
        (0, &[0x77e4_0aae, 20 + entries.len()].map(little).concat()),
        (8, &[1]),
        (12, &[ROOT, FOLDERS].map(little).concat()),
        (20, &entries),
    ];
    // A bit is set for what is free.
    let free = |is_free: &dyn Fn(usize) -> bool| {
        let byte = |at| (0..8).fold(0, |byte, bit| byte | u8::from(is_free(at * 8 + bit)) << bit);
        (0..4 * SECTOR).map(byte).collect::<Vec<u8>>()
    };
    let sectors =
        free(&|sector| (ROOT + 1..FOLDERS).contains(&sector) || (end..SECTORS).contains(&sector));
    let folders = free(&|one| (1..COUNT).contains(&one));
    let parts: [(usize, &[u8]); 7] = [
        (16 * SECTOR, &block(SECTOR, &superblock)),
        (17 * SECTOR, &spare),
        (FREE * SECTOR, &sectors),
        (BANDS * SECTOR, &little(FREE)),
        (FREE_FOLDERS * SECTOR, &folders),
        (ROOT * SECTOR, &block(SECTOR, &root)),
        (FOLDERS * SECTOR, &block(4 * SECTOR, &folder)),
    ];
    block(SECTORS * SECTOR, &parts)
}
