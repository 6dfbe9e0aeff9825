//! FAT with numbers of 16 bits: an empty file system, and a look at a disk.

use std::collections::BTreeSet;

/// An empty file system of 16 MiB with clusters of 2 KiB: numbers of 16 bits.
#[must_use]
pub fn fat() -> Vec<u8> {
    const SECTORS: u32 = 32 << 10;
    const TABLE: u16 = (SECTORS / 4 * 2 / 512) as u16;
    let mut image = vec![0; SECTORS as usize * 512];
    image[..11].copy_from_slice(b"\xeb\x3c\x90MULLION ");
    let short = |to: &mut [u8], at: usize, word: u16| {
        to[at..at + 2].copy_from_slice(&word.to_le_bytes());
    };
    // Bytes of a sector, sectors of a cluster, the table's place and number, names in the first folder, and lengths.
    short(&mut image, 11, 512);
    image[13] = 4;
    short(&mut image, 14, 1);
    image[16] = 2;
    short(&mut image, 17, 512);
    short(&mut image, 19, SECTORS as u16);
    image[21] = 0xf8;
    short(&mut image, 22, TABLE);
    short(&mut image, 510, 0xaa55);
    for table in 0..2 {
        let at = (1 + table * usize::from(TABLE)) * 512;
        image[at..at + 4].copy_from_slice(b"\xf8\xff\xff\xff");
    }
    image
}

/// The faults of a disk that [`fat`] has made. Both tables are alike, and each cluster belongs to one file or folder. None is lost, and
/// files are as long as their chains. There may be no program for that here.
#[must_use]
pub fn fat_is_wrong(disk: &[u8]) -> Option<String> {
    const TABLE: usize = 512;
    const CLUSTER: usize = 2048;
    let short = |at: usize| usize::from(u16::from_le_bytes([disk[at], disk[at + 1]]));
    // Where all is, and how much of it.
    const GEOMETRY: std::ops::Range<usize> = 11..36;
    let made = fat();
    if disk.len() != made.len() || disk[GEOMETRY] != made[GEOMETRY] {
        return Some("the first sector is another one".to_owned());
    }
    let bytes = short(22) * 512;
    if disk[TABLE..TABLE + bytes] != disk[TABLE + bytes..TABLE + 2 * bytes] {
        return Some("the tables differ".to_owned());
    }
    let root = TABLE + 2 * bytes;
    let data = root + short(17) * 32;
    let entry = |cluster: usize| short(TABLE + cluster * 2);
    let place = |cluster: usize| data + (cluster - 2) * CLUSTER;
    let count = (disk.len() - data) / CLUSTER + 2;
    let mut taken = BTreeSet::new();
    let mut folders = vec![vec![(root, data - root)]];
    while let Some(folder) = folders.pop() {
        let pieces = folder
            .iter()
            .flat_map(|(at, bytes)| disk[*at..at + bytes].chunks_exact(32));
        for name in pieces.take_while(|name| name[0] != 0) {
            let attributes = name[11];
            // What is gone, names of a volume, parts of long names, and the folder and its parent.
            if name[0] == 0xe5 || attributes & 8 != 0 || name[0] == b'.' {
                continue;
            }
            let told = String::from_utf8_lossy(&name[..11]).into_owned();
            let length = u32::from_le_bytes([name[28], name[29], name[30], name[31]]) as usize;
            let mut next = usize::from(u16::from_le_bytes([name[26], name[27]]));
            let mut chain = Vec::new();
            while next != 0 && next < 0xfff8 {
                if next < 2 || next >= count || !taken.insert(next) {
                    return Some(format!("{told}: cluster {next} is not its own"));
                }
                chain.push((place(next), CLUSTER));
                next = entry(next);
            }
            match attributes & 16 != 0 {
                true => folders.push(chain),
                false if chain.len() != length.div_ceil(CLUSTER) => {
                    return Some(format!(
                        "{told}: {length} bytes in {} clusters",
                        chain.len()
                    ));
                }
                false => {}
            }
        }
    }
    let lost = (2..count).find(|cluster| entry(*cluster) != 0 && !taken.contains(cluster));
    lost.map(|cluster| format!("cluster {cluster} is lost"))
}
