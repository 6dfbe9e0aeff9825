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
        let mut filled = (self.length & 63) as usize;
        let mut index = 0;
        while index < bytes.len() {
            self.block[filled] = bytes[index];
            index += 1;
            filled += 1;
            if filled == 64 {
                self.state = compress(self.state, &self.block);
                filled = 0;
            }
        }
        self.length += index as u64;
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
///
/// The compiler interprets this for each constant, and a call costs it as much as twenty operators. So there are no
/// calls: words are added in 64 bits and cut, and a word that is kept twice in 64 bits is rotated by a shift.
const fn compress(state: [u32; 8], block: &[u8; 64]) -> [u32; 8] {
    let mut schedule = [0u64; 64];
    let mut t = 0;
    while t < 16 {
        let at = 4 * t;
        schedule[t] = (block[at] as u64) << 24
            | (block[at + 1] as u64) << 16
            | (block[at + 2] as u64) << 8
            | block[at + 3] as u64;
        t += 1;
    }
    while t < 64 {
        let (w15, w2) = (schedule[t - 15], schedule[t - 2]);
        let (twice15, twice2) = (w15 << 32 | w15, w2 << 32 | w2);
        let s0 = (twice15 >> 7 ^ twice15 >> 18 ^ w15 >> 3) & WORD;
        let s1 = (twice2 >> 17 ^ twice2 >> 19 ^ w2 >> 10) & WORD;
        schedule[t] = (schedule[t - 16] + s0 + schedule[t - 7] + s1) & WORD;
        t += 1;
    }
    let mut a = state[0] as u64;
    let mut b = state[1] as u64;
    let mut c = state[2] as u64;
    let mut d = state[3] as u64;
    let mut e = state[4] as u64;
    let mut f = state[5] as u64;
    let mut g = state[6] as u64;
    let mut h = state[7] as u64;
    let mut t = 0;
    while t < 64 {
        let twice = e << 32 | e;
        let s1 = (twice >> 6 ^ twice >> 11 ^ twice >> 25) & WORD;
        let choice = g ^ e & (f ^ g);
        let t1 = h + s1 + choice + ROUNDS[t] as u64 + schedule[t];
        let twice = a << 32 | a;
        let s0 = (twice >> 2 ^ twice >> 13 ^ twice >> 22) & WORD;
        let majority = a & b | c & (a | b);
        h = g;
        g = f;
        f = e;
        e = (d + t1) & WORD;
        d = c;
        c = b;
        b = a;
        a = (t1 + s0 + majority) & WORD;
        t += 1;
    }
    [
        (state[0] as u64 + a) as u32,
        (state[1] as u64 + b) as u32,
        (state[2] as u64 + c) as u32,
        (state[3] as u64 + d) as u32,
        (state[4] as u64 + e) as u32,
        (state[5] as u64 + f) as u32,
        (state[6] as u64 + g) as u32,
        (state[7] as u64 + h) as u32,
    ]
}

/// The bits of a word of 32.
const WORD: u64 = 0xffff_ffff;

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
