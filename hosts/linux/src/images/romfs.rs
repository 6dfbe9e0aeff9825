//! The file system of boot images in memory.

use super::{big, files, pad};

/// Headers of 32 bytes, each with where the next one is, and the file behind it.
#[must_use]
pub fn romfs() -> Vec<u8> {
    let header = |next: usize, special: usize, size: usize, name: &str| {
        let mut header = [big(next), big(special), big(size), big(0)].concat();
        header.extend_from_slice(name.as_bytes());
        header.resize(32, 0);
        header
    };
    let mut image = b"-rom1fs-\0\0\0\0\0\0\0\0walls".to_vec();
    pad(&mut image, 32);
    // A folder, which may be searched, and its first file behind it.
    let first = image.len() + 32;
    image.extend(header(1 | 8, first, 0, "."));
    let files = files();
    for (number, (name, content)) in files.iter().enumerate() {
        let next = image.len() + 32 + content.len().next_multiple_of(16);
        let next = if number + 1 == files.len() { 0 } else { next };
        image.extend(header(next | 2, 0, content.len(), name));
        image.extend_from_slice(content);
        pad(&mut image, 16);
    }
    let size = big(image.len());
    image[8..12].copy_from_slice(&size);
    pad(&mut image, 1024);
    // The words of the first 512 bytes come to 0.
    let words = image[..512].chunks_exact(4);
    let word = |word: &[u8]| u32::from_be_bytes([word[0], word[1], word[2], word[3]]);
    let sum = words.map(word).fold(0, u32::wrapping_add);
    image[12..16].copy_from_slice(&sum.wrapping_neg().to_be_bytes());
    image
}
