//! Images of file systems that no program of the host makes.

mod adfs;
mod efs;
mod fat;
mod hfs;
mod hpfs;
mod iso;
mod qnx4;
mod romfs;
mod udf;
mod vxfs;

pub use adfs::adfs;
pub use efs::efs;
pub use fat::{fat, fat_is_wrong};
pub use hfs::hfs;
pub use hpfs::hpfs;
pub use iso::iso;
pub use qnx4::qnx4;
pub use romfs::romfs;
pub use udf::udf;
pub use vxfs::freevxfs;

/// So many files, as the first program's `again` looks for them.
pub const COUNT: usize = 40;

/// What a file has, as the first program makes it (`init.c`).
#[must_use]
pub fn content(number: usize) -> Vec<u8> {
    const WORDS: &[u8] = b"of the wall that is in a pane and no other word to be had \0";
    let mut seed = number as u32 + 1;
    let mut bytes = Vec::new();
    while bytes.len() < 61440 {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let at = (seed >> 16) as usize % (WORDS.len() - 9);
        bytes.extend_from_slice(&WORDS[at..at + 8]);
    }
    bytes.truncate(37 + number * 2711 % 61000);
    bytes
}

/// The files of an image: names, and what is in each. Every eighth is missing.
#[must_use]
pub fn files() -> Vec<(String, Vec<u8>)> {
    let numbers = (0..COUNT).filter(|number| number % 8 != 7);
    let name = |number| match number % 4 {
        0 | 1 => format!("f{number}"),
        _ => format!("g{number}"),
    };
    numbers
        .map(|number| (name(number), content(number)))
        .collect()
}

/// Zeros up to the next multiple of `to` bytes.
pub fn pad(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}

/// A number's four bytes, the highest first.
#[must_use]
pub fn big(word: usize) -> [u8; 4] {
    (word as u32).to_be_bytes()
}

/// Fields at their places, in a block of so many bytes.
fn block(bytes: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut block = vec![0; bytes];
    for (at, field) in fields {
        block[*at..*at + field.len()].copy_from_slice(field);
    }
    block
}

fn little(word: usize) -> [u8; 4] {
    (word as u32).to_le_bytes()
}

/// A folder is a tree of names with one node. Inodes have a block each, and say where it is.
#[must_use]
pub fn befs() -> Vec<u8> {
    const BLOCK: usize = 2048;
    const ROOT: usize = 1;
    const NONE: [u8; 8] = [0xff; 8];
    let run = |start: usize, blocks: usize| {
        let words = [0, 0, start as u16, blocks as u16];
        words.map(u16::to_le_bytes).concat()
    };
    let long = |word: usize| (word as u64).to_le_bytes();
    let inode = |own: usize, mode: usize, start: usize, bytes: usize| {
        let blocks = bytes.div_ceil(BLOCK);
        let fields: [(usize, &[u8]); 9] = [
            (0, &little(0x3bbe_0ad9)),
            (4, &run(own, 1)),
            (20, &little(mode)),
            (24, &little(1)),
            (44, &run(ROOT, 1)),
            (64, &little(BLOCK)),
            // The only run of blocks, how far such runs go, and the length.
            (72, &run(start, blocks)),
            (168, &long(blocks * BLOCK)),
            (208, &long(bytes)),
        ];
        block(BLOCK, &fields)
    };
    let mut files = files();
    files.sort();
    let first = ROOT + 2;
    let mut image = Vec::new();
    let (mut names, mut ends, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for (name, content) in &files {
        let own = first + image.len() / BLOCK;
        image.extend(inode(own, 0o100_644, own + 1, content.len()));
        image.extend_from_slice(content);
        pad(&mut image, BLOCK);
        names.extend_from_slice(name.as_bytes());
        ends.extend((names.len() as u16).to_le_bytes());
        places.extend(long(own));
    }
    let counts = [files.len() as u16, names.len() as u16].map(u16::to_le_bytes);
    let mut node = [&NONE[..], &NONE, &NONE, &counts.concat(), &names].concat();
    pad(&mut node, 8);
    node.extend([ends, places].concat());
    let tree = [0x69f6_c2e8, 1024, 1].map(little).concat();
    let folder: [(usize, &[u8]); 3] = [(0, &tree), (16, &long(1024)), (1024, &node)];
    let total = first + image.len() / BLOCK;
    let geometry = [0x4246_5331, 0x4249_4745, BLOCK, 11].map(little).concat();
    let groups = [BLOCK, 0xdd12_1031, 8192, 13, 1, 0x434c_454e].map(little);
    let superblock: [(usize, &[u8]); 6] = [
        (512, b"walls"),
        (512 + 32, &geometry),
        (512 + 48, &[long(total), long(total)].concat()),
        (512 + 64, &groups.concat()),
        (512 + 112, &little(0x15b6_830e)),
        (512 + 116, &run(ROOT, 1)),
    ];
    let mut parts = block(BLOCK, &superblock);
    parts.extend(inode(ROOT, 0o040_755, ROOT + 1, BLOCK));
    parts.extend(block(BLOCK, &folder));
    parts.extend(image);
    parts
}

/// The sum that QNX 6 has of its first block.
fn sum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum, byte| {
        let mut sum = sum ^ (u32::from(*byte) << 24);
        for _ in 0..8 {
            let carry = if sum >> 31 == 1 { 0x04c1_1db7 } else { 0 };
            sum = (sum << 1) ^ carry;
        }
        sum
    })
}

/// Inodes are a file, which the first block leads to. There are two first blocks, before and behind the others.
#[must_use]
pub fn qnx6() -> Vec<u8> {
    const BLOCK: usize = 4096;
    let files = files();
    // A file has at most sixteen blocks; unused pointers are -1.
    let pointers = |start: usize, bytes: usize| {
        let count = bytes.div_ceil(BLOCK);
        let one = |at| little(if at < count { start + at } else { usize::MAX });
        (0..16).map(one).collect::<Vec<_>>().concat()
    };
    let inode = |start: usize, bytes: usize, mode: u16| {
        let fields: [(usize, &[u8]); 3] = [
            (0, &(bytes as u64).to_le_bytes()),
            (32, &mode.to_le_bytes()),
            (36, &pointers(start, bytes)),
        ];
        block(128, &fields)
    };
    let entry = |inode: usize, name: &str| {
        let fields: [(usize, &[u8]); 3] = [
            (0, &little(inode)),
            (4, &[name.len() as u8]),
            (5, name.as_bytes()),
        ];
        block(32, &fields)
    };
    let count = files.len() + 1;
    let first = (count * 128).div_ceil(BLOCK);
    let mut folder = [entry(1, "."), entry(1, "..")].concat();
    for (number, (name, _)) in files.iter().enumerate() {
        folder.extend(entry(2 + number, name));
    }
    let mut inodes = inode(first, folder.len(), 0o040_755);
    let mut data = folder;
    pad(&mut data, BLOCK);
    for (_, content) in &files {
        inodes.extend(inode(first + data.len() / BLOCK, content.len(), 0o100_644));
        data.extend_from_slice(content);
        pad(&mut data, BLOCK);
    }
    let bytes = inodes.len();
    pad(&mut inodes, BLOCK);
    let blocks = [inodes, data].concat();
    let total = blocks.len() / BLOCK;
    let numbers = [BLOCK, count, 0, total, 0, 0].map(little).concat();
    let mut head = block(
        512,
        &[
            (0, &little(0x6819_1122)),
            (8, &1_u64.to_le_bytes()),
            (48, &numbers),
            (72, &(bytes as u64).to_le_bytes()),
            (80, &pointers(0, bytes)),
        ],
    );
    let own = sum(&head[8..]).to_le_bytes();
    head[4..8].copy_from_slice(&own);
    let mut image = vec![0; 0x2000];
    for part in [&head, &blocks, &head] {
        image.extend_from_slice(part);
        pad(&mut image, BLOCK);
    }
    image
}

/// One group of a file system of BSD: fragments of 1 KiB, eight of which are a block, and all inodes in a row.
#[must_use]
pub fn ufs() -> Vec<u8> {
    const FRAGMENT: usize = 1024;
    const BLOCK: usize = 8 * FRAGMENT;
    // Where inodes and files begin, in fragments.
    const INODES: usize = 24;
    const FILES: usize = INODES + 8;
    let files = files();
    let inode = |start: usize, bytes: usize, mode: u16| {
        let blocks = bytes.div_ceil(BLOCK);
        let direct = (0..blocks).flat_map(|at| little(start + at * 8));
        let direct: Vec<u8> = direct.collect();
        let fields: [(usize, &[u8]); 5] = [
            (0, &mode.to_le_bytes()),
            (2, &[1]),
            (8, &little(bytes)),
            (40, &direct),
            (104, &little(blocks * BLOCK / 512)),
        ];
        block(128, &fields)
    };
    // Names do not go from one piece of 512 bytes into the next. The last one of a piece has the rest of it.
    let mut folder: Vec<u8> = Vec::new();
    let mut last = 0;
    let names = [(2, "."), (2, "..")].into_iter();
    let names = names.chain(
        files
            .iter()
            .enumerate()
            .map(|(at, (name, _))| (3 + at, &**name)),
    );
    for (inode, name) in names {
        let length = 8 + (name.len() + 1).next_multiple_of(4);
        let rest = folder.len().next_multiple_of(512) - folder.len();
        if rest != 0 && rest < length {
            let own = ((folder.len() - last + rest) as u16).to_le_bytes();
            folder[last + 4..last + 6].copy_from_slice(&own);
            pad(&mut folder, 512);
        }
        last = folder.len();
        let numbers = [length as u16, name.len() as u16].map(u16::to_le_bytes);
        folder.extend([&little(inode)[..], &numbers.concat(), name.as_bytes()].concat());
        folder.resize(last + length, 0);
    }
    let rest = folder.len().next_multiple_of(512) - last;
    folder[last + 4..last + 6].copy_from_slice(&(rest as u16).to_le_bytes());
    pad(&mut folder, 512);
    let mut inodes = vec![0; 2 * 128];
    inodes.extend(inode(FILES, folder.len(), 0o040_755));
    let mut data = folder;
    pad(&mut data, BLOCK);
    for (_, content) in &files {
        let start = FILES + data.len() / FRAGMENT;
        inodes.extend(inode(start, content.len(), 0o100_644));
        data.extend_from_slice(content);
        pad(&mut data, BLOCK);
    }
    inodes.resize(BLOCK, 0);
    let total = FILES + data.len() / FRAGMENT;
    let words = |words: &[usize]| -> Vec<u8> { words.iter().copied().flat_map(little).collect() };
    let superblock = block(
        2048,
        &[
            // Places of the four parts of a group.
            (8, &words(&[16, 20, INODES, FILES, 0, usize::MAX])),
            // The size, the groups, and what blocks and fragments have.
            (36, &words(&[total, total - FILES, 1, BLOCK, FRAGMENT, 8])),
            (72, &words(&[!(BLOCK - 1), !(FRAGMENT - 1), 13, 10])),
            (96, &words(&[3, 1, 2048])),
            (116, &words(&[BLOCK / 4, BLOCK / 128, 2])),
            (152, &words(&[FILES, 16, 2048])),
            (176, &words(&[1, 1, 64, total])),
            (1372, &words(&[0x0001_1954])),
        ],
    );
    let mut image = vec![0; BLOCK];
    image.extend(superblock);
    image.resize(INODES * FRAGMENT, 0);
    image.extend([inodes, data].concat());
    image
}

/// An empty file system of System V Release 4: blocks of 1 KiB, and chains of free ones, fifty at a time.
#[must_use]
pub fn sysv() -> Vec<u8> {
    const BLOCK: usize = 1024;
    const TOTAL: usize = 4096;
    const INODES: usize = 8;
    const FIRST: usize = 2 + INODES;
    const NOW: usize = 1_000_000_000;
    let mut image = vec![0; TOTAL * BLOCK];
    let put = |image: &mut Vec<u8>, at: usize, bytes: &[u8]| {
        image[at..at + bytes.len()].copy_from_slice(bytes);
    };
    // A block of a chain has the places of others. The first one of a chain is 0.
    let mut free = vec![0];
    for number in (FIRST + 1..TOTAL).rev() {
        if free.len() == 50 {
            let chain = [vec![free.len()], std::mem::take(&mut free)].concat();
            let chain: Vec<u8> = chain.into_iter().flat_map(little).collect();
            put(&mut image, number * BLOCK, &chain);
        }
        free.push(number);
    }
    let chain: Vec<u8> = [vec![free.len()], free]
        .concat()
        .into_iter()
        .flat_map(little)
        .collect();
    let at = 512;
    put(&mut image, at, &[little(FIRST), little(TOTAL)].concat());
    put(&mut image, at + 8, &chain);
    // When it was made, free blocks and inodes, and that it is whole.
    put(&mut image, at + 420, &little(NOW));
    put(&mut image, at + 432, &little(TOTAL - FIRST - 1));
    put(&mut image, at + 436, &little(INODES * 16 - 2));
    let last = [0x7c26_9d38 - NOW, 0xfd18_7e20, 2].map(little).concat();
    put(&mut image, at + 500, &last);
    // The root, with its block.
    let root = 2 * BLOCK + 64;
    put(&mut image, root, &[0xed, 0x41, 2, 0, 0, 0, 0, 0]);
    put(&mut image, root + 8, &little(32));
    put(&mut image, root + 12, &little(FIRST)[..3]);
    put(&mut image, FIRST * BLOCK, b"\x02\0.");
    put(&mut image, FIRST * BLOCK + 16, b"\x02\0..");
    // Inode 1 has the bad blocks.
    put(&mut image, 2 * BLOCK, &[0, 0x80, 1, 0]);
    image
}

/// An empty file system of a recorder: blocks of 2 KiB, of which one is a map, and inodes twice.
#[must_use]
pub fn omfs() -> Vec<u8> {
    const BLOCK: usize = 2048;
    const TOTAL: usize = 4096;
    let long = |word: usize| (word as u64).to_be_bytes();
    let head: [(usize, &[u8]); 4] = [
        (256, &long(1)),
        (264, &long(TOTAL)),
        (272, &big(0xc299_3d87)),
        (276, &[big(BLOCK), big(2), big(BLOCK)].concat()),
    ];
    // How many blocks there are, and where the folder and the map are.
    let root: [(usize, &[u8]); 4] = [
        (0, &long(1)),
        (32, &[long(TOTAL), long(3), long(5)].concat()),
        (56, &[big(BLOCK), big(1)].concat()),
        (64, &long(2)),
    ];
    let mut folder = block(
        BLOCK,
        &[(0, &long(3)), (16, b"\x01e\xd2"), (24, &[0xff; 16])],
    );
    folder[83] = b'D';
    folder[0x1b8..].fill(0xff);
    // The first six blocks are in use.
    let map = block(BLOCK, &[(0, &[0x3f])]);
    let mut image = block(BLOCK, &head);
    for part in [
        block(BLOCK, &root),
        vec![0; BLOCK],
        folder.clone(),
        folder,
        map,
    ] {
        image.extend(part);
    }
    image.resize(TOTAL * BLOCK, 0);
    image
}

/// An empty file system of large cards: clusters of 4 KiB, a table, a map of clusters, and a table of capital letters.
#[must_use]
pub fn exfat() -> Vec<u8> {
    const SECTOR: usize = 512;
    const CLUSTERS: usize = 4096;
    const TABLE: usize = 24;
    const HEAP: usize = 64;
    let place = [TABLE, CLUSTERS * 4 / SECTOR + 1, HEAP, CLUSTERS, 3, 7].map(little);
    let long = ((HEAP + CLUSTERS * 8) as u64).to_le_bytes();
    let mut boot = block(
        12 * SECTOR,
        &[
            (0, b"\xeb\x76\x90EXFAT   "),
            (72, &long),
            (80, &place.concat()),
            (104, &[0, 1, 0, 0, 9, 3, 1, 0x80]),
            (510, &[0x55, 0xaa]),
        ],
    );
    for sector in 1..9 {
        boot[sector * SECTOR + 508..][..4].copy_from_slice(&little(0xaa55_0000));
    }
    let summed = boot[..11 * SECTOR].iter().enumerate();
    let summed = summed.filter(|(at, _)| !matches!(at, 106 | 107 | 112));
    let summed: Vec<u8> = summed.map(|(_, byte)| *byte).collect();
    let sum = turned_sum(&summed);
    for place in boot[11 * SECTOR..].chunks_exact_mut(4) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
    let mut image = [boot.clone(), boot].concat();
    // The map is cluster 2, the folder is cluster 3, and the capital letters are cluster 4.
    let ends = [0xffff_fff8, usize::MAX, usize::MAX, usize::MAX, usize::MAX];
    image.extend(ends.map(little).concat());
    image.resize(HEAP * SECTOR, 0);
    image.extend(block(4096, &[(0, &[7])]));
    // All others are their own.
    let letters = (0..128_u16).map(|c| u16::from((c as u8).to_ascii_uppercase()));
    let letters = letters.chain([0xffff, 0xff80]).flat_map(u16::to_le_bytes);
    let letters: Vec<u8> = letters.collect();
    let entries: [(usize, &[u8]); 7] = [
        (0, &[0x81]),
        (20, &little(2)),
        (24, &little(CLUSTERS / 8)),
        (32, &[0x82]),
        (36, &turned_sum(&letters).to_le_bytes()),
        (52, &little(4)),
        (56, &little(letters.len())),
    ];
    image.extend(block(4096, &entries));
    image.extend(letters);
    image.resize((HEAP + CLUSTERS * 8) * SECTOR, 0);
    image
}

/// The sum that exFAT has of its first sectors, and of its letters.
fn turned_sum(bytes: &[u8]) -> u32 {
    let add = |sum: u32, byte: &u8| sum.rotate_right(1).wrapping_add(u32::from(*byte));
    bytes.iter().fold(0, add)
}

/// An empty file system of an Amiga: blocks of 512 bytes, the first folder in the middle, and maps behind it. The words of each of these come
/// to 0.
#[must_use]
pub fn affs() -> Vec<u8> {
    const BLOCK: usize = 512;
    const TOTAL: usize = 8192;
    const ROOT: usize = (2 + TOTAL - 1) / 2;
    // The first two blocks are in no map.
    const OF_MAP: usize = (BLOCK - 4) * 8;
    let maps = (TOTAL - 2).div_ceil(OF_MAP);
    let summed = |mut block: Vec<u8>, at: usize| {
        let words = block.chunks_exact(4);
        let word = |word: &[u8]| {
            word.iter()
                .fold(0, |all, byte| (all << 8) | u32::from(*byte))
        };
        let sum = words.map(word).fold(0, u32::wrapping_add);
        block[at..at + 4].copy_from_slice(&sum.wrapping_neg().to_be_bytes());
        block
    };
    let places: Vec<u8> = (0..maps).flat_map(|map| big(ROOT + 1 + map)).collect();
    let root: [(usize, &[u8]); 6] = [
        (0, &big(2)),
        (12, &big(72)),
        (312, &big(usize::MAX)),
        (316, &places),
        (432, b"\x05walls"),
        (508, &big(1)),
    ];
    let mut image = vec![0; TOTAL * BLOCK];
    image[..4].copy_from_slice(b"DOS\x01");
    let mut put = |number: usize, block: Vec<u8>| {
        image[number * BLOCK..][..BLOCK].copy_from_slice(&block);
    };
    put(ROOT, summed(block(BLOCK, &root), 20));
    for map in 0..maps {
        let mut bits = vec![0; BLOCK];
        for bit in 0..OF_MAP {
            let number = 2 + map * OF_MAP + bit;
            let is_free = number < TOTAL && !(ROOT..=ROOT + maps).contains(&number);
            // The highest byte of a word comes first.
            bits[4 + ((bit / 8) ^ 3)] |= u8::from(is_free) << (bit % 8);
        }
        put(ROOT + 1 + map, summed(bits, 0));
    }
    image
}

/// Whether a file system of [`sysv`] is whole. Each name leads to an inode, which counts its names. No block belongs to two files, or to a
/// file and to the chain of free ones. There is no program for that.
#[must_use]
pub fn sysv_is_sound(disk: &[u8]) -> bool {
    const BLOCK: usize = 1024;
    let number = |at: usize, bytes: usize| {
        let bytes = disk.get(at..at + bytes)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |all, byte| (all << 8) | usize::from(*byte)),
        )
    };
    let word = |at: usize| number(at, 4);
    let check = || -> Option<bool> {
        let (first, total) = (number(512, 2)?, word(516)?);
        let (mut taken, mut names) = (Vec::new(), std::collections::BTreeMap::new());
        for inode in 2..=(first - 2) * 16 {
            let at = 2 * BLOCK + (inode - 1) * 64;
            let (mode, size) = (number(at, 2)?, word(at + 8)?);
            // Those of devices have numbers there, and no blocks.
            if !matches!(mode >> 12, 4 | 8 | 10) {
                continue;
            }
            let mut blocks = Vec::new();
            for place in 0..10 {
                blocks.push(number(at + 12 + place * 3, 3)?);
            }
            // The eleventh has the numbers of more.
            let more = number(at + 42, 3)?;
            if more != 0 {
                for place in 0..BLOCK / 4 {
                    blocks.push(word(more * BLOCK + place * 4)?);
                }
                taken.push(more);
            }
            if mode >> 12 == 4 {
                for entry in 0..size / 16 {
                    let block = *blocks.get(entry * 16 / BLOCK)?;
                    let name = block * BLOCK + entry * 16 % BLOCK;
                    *names.entry(number(name, 2)?).or_insert(0) += 1;
                }
            }
            taken.extend(blocks.into_iter().filter(|block| *block != 0));
        }
        let mut chain = 520;
        loop {
            let count = number(chain, 2)?;
            for place in (1..count).rev() {
                taken.push(word(chain + 4 + place * 4)?);
            }
            let next = word(chain + 4)?;
            if next == 0 {
                break;
            }
            taken.push(next);
            if taken.len() > total {
                return Some(false);
            }
            chain = next * BLOCK;
        }
        names.remove(&0);
        for (inode, count) in &names {
            let at = 2 * BLOCK + inode.checked_sub(1)? * 64;
            let counts = number(at, 2)? != 0 && number(at + 2, 2)? == *count;
            if !counts {
                return Some(false);
            }
        }
        taken.sort_unstable();
        let is_within = taken.iter().all(|block| (first..total).contains(block));
        Some(is_within && taken.windows(2).all(|two| two[0] < two[1]))
    };
    check().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_two_files_is_found() {
        let disk = sysv();
        assert!(sysv_is_sound(&disk));
        // A file with the folder's block, and one without a name in the chain of free ones.
        let mut other = disk.clone();
        let inode = 2 * 1024 + 2 * 64;
        other[inode..inode + 4].copy_from_slice(&[0xa4, 0x81, 1, 0]);
        other[inode + 8] = 1;
        other[inode + 12] = 10;
        assert!(!sysv_is_sound(&other));
        let mut other = disk.clone();
        other[520] = 0xff;
        assert!(!sysv_is_sound(&other));
        // A name without an inode.
        let mut other = disk;
        other[10 * 1024 + 32] = 9;
        other[2 * 1024 + 64 + 8] = 48;
        assert!(!sysv_is_sound(&other));
    }
}
