//! One bit for each byte of a segment.

/// A bitmap; positions beyond its length read as clear and cannot be set.
pub(crate) struct Bitmap {
    words: Vec<u64>,
}

impl Bitmap {
    pub(crate) fn new(length: usize) -> Self {
        Self {
            words: vec![0; length.div_ceil(64)],
        }
    }

    #[inline]
    pub(crate) fn get(&self, at: usize) -> bool {
        self.words
            .get(at / 64)
            .is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    #[inline]
    pub(crate) fn set(&mut self, at: usize) {
        if let Some(word) = self.words.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    /// Sets `from` to `to - 1`.
    #[inline]
    pub(crate) fn set_range(&mut self, from: usize, to: usize) {
        let mut at = from;
        while at < to {
            let end = ((at / 64 + 1) * 64).min(to);
            if let Some(word) = self.words.get_mut(at / 64) {
                *word |= (u64::MAX >> (64 - (end - at))) << (at % 64);
            }
            at = end;
        }
    }

    /// The first set position at or after `from`.
    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        let mut mask = u64::MAX << (from % 64);
        for (number, word) in self.words.iter().enumerate().skip(from / 64) {
            let word = word & mask;
            if word != 0 {
                return Some(number * 64 + word.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }

    /// The 64-bit words, lowest position first.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }
}
