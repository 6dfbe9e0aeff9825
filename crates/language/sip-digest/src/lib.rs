//! SHA-256 at compile time, so that contracts and layouts have digests that are constants.
//!
//! No maintained crate computes it in a `const fn`; this one is held against `sha2` by its tests.
#![forbid(unsafe_code)]

use std::fmt;

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Begins a digest of several parts, in which no part can be mistaken for its neighbours.
    #[expect(clippy::new_ret_no_self, reason = "a digest is made by its hasher")]
    pub const fn new() -> Hasher {
        Hasher {
            state: START,
            block: [0; 64],
            length: 0,
        }
    }

    /// The SHA-256 of some bytes.
    pub const fn of(bytes: &[u8]) -> Digest {
        Digest::new().bytes(bytes).finish()
    }

    /// The digest that 64 hexadecimal digits say, at compile time.
    ///
    /// # Panics
    /// They are not 64, or not such digits.
    pub const fn from_hexadecimal(text: &str) -> Digest {
        const fn digit(letter: u8) -> u8 {
            match letter {
                b'0'..=b'9' => letter - b'0',
                b'a'..=b'f' => letter - b'a' + 10,
                _ => panic!("a hexadecimal digit, in lower case"),
            }
        }
        let text = text.as_bytes();
        assert!(text.len() == 64, "64 hexadecimal digits");
        let mut digest = [0; 32];
        let mut index = 0;
        while index < 32 {
            digest[index] = digit(text[2 * index]) << 4 | digit(text[2 * index + 1]);
            index += 1;
        }
        Digest(digest)
    }

    /// [`PartialEq`] at compile time.
    pub const fn is(&self, other: &Digest) -> bool {
        let mut index = 0;
        while index < 32 {
            if self.0[index] != other.0[index] {
                return false;
            }
            index += 1;
        }
        true
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Digest({self})")
    }
}

/// A digest in the making.
#[derive(Clone, Debug)]
pub struct Hasher {
    state: [u32; 8],
    block: [u8; 64],
    length: u64,
}

impl Hasher {
    /// Adds a text, with its length in front.
    #[must_use]
    pub const fn text(self, text: &str) -> Hasher {
        self.number(text.len() as u64).bytes(text.as_bytes())
    }

    /// Adds a number.
    #[must_use]
    pub const fn number(self, number: u64) -> Hasher {
        self.bytes(&number.to_le_bytes())
    }

    /// Adds the digest of a part.
    #[must_use]
    pub const fn digest(self, digest: Digest) -> Hasher {
        self.bytes(&digest.0)
    }

    /// Adds bytes as they are.
    #[must_use]
    pub const fn bytes(mut self, bytes: &[u8]) -> Hasher {
        let mut index = 0;
        while index < bytes.len() {
            self.block[(self.length % 64) as usize] = bytes[index];
            self.length += 1;
            if self.length.is_multiple_of(64) {
                self.state = compress(self.state, &self.block);
            }
            index += 1;
        }
        self
    }

    /// The digest of all that was added.
    pub const fn finish(self) -> Digest {
        let bits = self.length * 8;
        let mut padded = self.bytes(&[0x80]);
        while padded.length % 64 != 56 {
            padded = padded.bytes(&[0]);
        }
        let state = padded.bytes(&bits.to_be_bytes()).state;
        let mut digest = [0; 32];
        let mut index = 0;
        while index < 32 {
            digest[index] = state[index / 4].to_be_bytes()[index % 4];
            index += 1;
        }
        Digest(digest)
    }
}

/// One block of FIPS 180-4, section 6.2.2.
const fn compress(state: [u32; 8], block: &[u8; 64]) -> [u32; 8] {
    let mut schedule = [0u32; 64];
    let mut t = 0;
    while t < 64 {
        schedule[t] = if t < 16 {
            let at = 4 * t;
            u32::from_be_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
        } else {
            let (w15, w2) = (schedule[t - 15], schedule[t - 2]);
            let s0 = w15.rotate_right(7) ^ w15.rotate_right(18) ^ (w15 >> 3);
            let s1 = w2.rotate_right(17) ^ w2.rotate_right(19) ^ (w2 >> 10);
            schedule[t - 16]
                .wrapping_add(s0)
                .wrapping_add(schedule[t - 7])
                .wrapping_add(s1)
        };
        t += 1;
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
    let mut t = 0;
    while t < 64 {
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let t1 = h
            .wrapping_add(s1)
            .wrapping_add(choice)
            .wrapping_add(ROUNDS[t])
            .wrapping_add(schedule[t]);
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        (h, g, f, e) = (g, f, e, d.wrapping_add(t1));
        (d, c, b, a) = (c, b, a, t1.wrapping_add(s0).wrapping_add(majority));
        t += 1;
    }
    [
        state[0].wrapping_add(a),
        state[1].wrapping_add(b),
        state[2].wrapping_add(c),
        state[3].wrapping_add(d),
        state[4].wrapping_add(e),
        state[5].wrapping_add(f),
        state[6].wrapping_add(g),
        state[7].wrapping_add(h),
    ]
}

const START: [u32; 8] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

#[rustfmt::skip]
const ROUNDS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::Digest as _;

    #[test]
    fn it_is_sha_256() {
        for length in (0..200).step_by(if cfg!(miri) { 67 } else { 1 }) {
            let bytes: Vec<u8> = (0..length).map(|byte| byte as u8 ^ 0x5a).collect();
            let theirs: [u8; 32] = sha2::Sha256::digest(&bytes).into();
            assert_eq!(Digest::of(&bytes).0, theirs, "{length} bytes");
        }
    }

    #[test]
    fn digits_and_back() {
        let digest = Digest::of(b"any");
        assert_eq!(Digest::from_hexadecimal(&digest.to_string()), digest);
    }

    #[test]
    fn parts_are_kept_apart() {
        let ab_c = Digest::new().text("ab").text("c").finish();
        let a_bc = Digest::new().text("a").text("bc").finish();
        assert!(!ab_c.is(&a_bc));
        assert!(ab_c.is(&ab_c.clone()));
    }
}
