//! What the pass has learnt about each byte of a segment, as bits.

/// About 64 bytes. Bit n stands for byte n.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Word {
    starts: u64,
    targets: u64,
    closed: u64,
}

/// The marks of one segment; positions beyond its length cannot be marked.
#[derive(Debug, Default, PartialEq)]
pub struct Marks {
    words: Vec<Word>,
}

impl Marks {
    /// Of a segment of so many bytes.
    #[must_use]
    pub fn new(length: usize) -> Self {
        Self {
            words: vec![Word::default(); length.div_ceil(64)],
        }
    }

    #[inline]
    fn at(&self, position: usize) -> (Word, u64) {
        let word = self.words.get(position / 64).copied();
        (word.unwrap_or_default(), 1 << (position % 64))
    }

    /// An instruction starts here. True if a branch that was passed comes here.
    #[inline]
    pub fn start(&mut self, position: usize) -> bool {
        let bit = 1 << (position % 64);
        self.words.get_mut(position / 64).is_some_and(|word| {
            word.starts |= bit;
            word.targets & bit != 0
        })
    }

    /// A direct branch comes here.
    #[inline]
    pub fn target(&mut self, position: usize) {
        if let Some(word) = self.words.get_mut(position / 64) {
            word.targets |= 1 << (position % 64);
        }
    }

    /// No branch may enter at `from` to `to - 1`.
    #[inline]
    pub fn close(&mut self, from: usize, to: usize) {
        let mut at = from;
        while at < to {
            let end = (at | 63).min(to - 1);
            if let Some(word) = self.words.get_mut(at / 64) {
                word.closed |= (u64::MAX >> (63 - (end - at))) << (at % 64);
            }
            at = end + 1;
        }
    }

    /// Whether an instruction starts here.
    #[must_use]
    #[inline]
    pub fn is_start(&self, position: usize) -> bool {
        let (word, bit) = self.at(position);
        word.starts & bit != 0
    }

    /// Whether a branch comes here.
    #[must_use]
    #[inline]
    pub fn is_target(&self, position: usize) -> bool {
        let (word, bit) = self.at(position);
        word.targets & bit != 0
    }

    /// Whether no branch may come here.
    #[must_use]
    #[inline]
    pub fn is_closed(&self, position: usize) -> bool {
        let (word, bit) = self.at(position);
        word.closed & bit != 0
    }

    /// Whether a branch comes here that must not.
    #[must_use]
    #[inline]
    pub fn is_conflict(&self, position: usize) -> bool {
        let (word, bit) = self.at(position);
        word.conflicts() & bit != 0
    }

    /// Whether any branch comes where it must not.
    #[must_use]
    #[inline]
    pub fn has_conflict(&self) -> bool {
        self.words.iter().any(|word| word.conflicts() != 0)
    }

    /// The first start at or after `from`.
    #[must_use]
    #[inline]
    pub fn next_start(&self, from: usize) -> Option<usize> {
        let mut mask = u64::MAX << (from % 64);
        for (number, word) in self.words.iter().enumerate().skip(from / 64) {
            let starts = word.starts & mask;
            if starts != 0 {
                return Some(number * 64 + starts.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }
}

impl Word {
    fn conflicts(self) -> u64 {
        self.targets & (self.closed | !self.starts)
    }
}
