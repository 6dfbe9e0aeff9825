//! The sizes of blocks: powers of two, and how a block's number holds its size.

/// The smallest block, and the alignment of all.
pub(crate) const SMALLEST: usize = 64;
/// How many sizes there are.
pub(crate) const CLASSES: usize = if cfg!(miri) { 10 } else { 22 };
/// Sizes of blocks in memory that OS processes have in common ([`super::common_memory`]), from 1 KiB in fourfold steps. Their
/// spans follow those of all others.
pub(crate) const COMMON: usize = if cfg!(miri) { 0 } else { 9 };
/// Bits of an offset into the smallest of them.
const SMALLEST_COMMON: u32 = 10;
/// The largest block: 128 MiB.
pub(crate) const LARGEST: usize = SMALLEST << (CLASSES - 1);
/// Bits of an offset into the span of one size: 8 GiB each.
pub(crate) const SPAN_BITS: u32 = if cfg!(miri) { 16 } else { 33 };
/// Bits of a block's place in its span.
pub(crate) const PLACE_BITS: u32 = SPAN_BITS - SMALLEST.trailing_zeros();
/// The span that no size has: numbers for the heads of owners' lists.
pub(crate) const HEADS: u32 = 31;

/// Bits of an offset into a block of each size.
const BITS: [u8; 32] = {
    let mut bits = [0; 32];
    let mut size = 0;
    while size < CLASSES {
        bits[size] = (SMALLEST.trailing_zeros() + size as u32) as u8;
        size += 1;
    }
    while size < CLASSES + COMMON {
        bits[size] = (SMALLEST_COMMON + 2 * (size - CLASSES) as u32) as u8;
        size += 1;
    }
    bits
};

/// Bytes of a block of each size. Looked up: each message with a block asks twice.
const BYTES: [u32; 32] = {
    let mut bytes = [0; 32];
    let mut size = 0;
    while size < CLASSES + COMMON {
        bytes[size] = 1 << BITS[size];
        size += 1;
    }
    bytes
};

/// A size: those of blocks of our own in powers of two above [`SMALLEST`], then those of blocks in common memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Class(u32);

impl Class {
    /// That of blocks of [`SMALLEST`] bytes.
    pub(crate) const SMALLEST: Class = Class(0);

    /// The smallest size with room for `bytes`.
    #[inline]
    pub(crate) const fn holding(bytes: usize) -> Option<Class> {
        if bytes > LARGEST {
            return None;
        }
        let power = if bytes <= SMALLEST {
            0
        } else {
            (bytes - 1).ilog2() + 1 - SMALLEST.ilog2()
        };
        Some(Class(power))
    }

    /// The smallest size in common memory with room for `bytes`.
    #[inline]
    pub(crate) const fn common_holding(bytes: usize) -> Option<Class> {
        let mut index = 0;
        while index < COMMON {
            if Class::common(index).bytes() >= bytes {
                return Some(Class::common(index));
            }
            index += 1;
        }
        None
    }

    /// A size in common memory, counted from the smallest.
    pub(crate) const fn common(index: usize) -> Class {
        Class((CLASSES + index) as u32)
    }

    /// The same, of a size in common memory.
    #[inline]
    pub(crate) const fn common_index(self) -> usize {
        self.index() - CLASSES
    }

    #[cfg(test)]
    pub(crate) const fn all() -> [Class; CLASSES] {
        let mut all = [Class(0); CLASSES];
        let mut index = 0;
        while index < CLASSES {
            all[index] = Class(index as u32);
            index += 1;
        }
        all
    }

    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    #[inline]
    pub(crate) const fn bytes(self) -> usize {
        BYTES[self.index() % BYTES.len()] as usize
    }

    #[inline]
    const fn bits(self) -> u32 {
        BITS[self.index() % BITS.len()] as u32
    }

    /// The first place that is used. Spans begin at large powers of two, so the first block of every size would
    /// fall into one set of the cache, and look like one line to what predicts its ways: to make and drop a block
    /// cost three times as much. Number 0 is no block.
    pub(crate) const fn first(self) -> u32 {
        let half = self.places() / 2;
        (11 * self.0 + 3) % if half < 32 { half } else { 32 }
    }

    /// Blocks of this size that the span has room for.
    pub(crate) const fn places(self) -> u32 {
        1 << (SPAN_BITS - self.bits())
    }
}

/// A block's number: its size above its place in the span. 0 is no block, and is never given out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Id(pub(crate) u32);

impl Id {
    /// Whether the block is in common memory.
    #[inline]
    pub(crate) fn is_common(self) -> bool {
        self.class().index() >= CLASSES
    }

    pub(crate) const NONE: Id = Id(0);

    #[inline]
    pub(crate) const fn new(class: Class, place: u32) -> Id {
        Id(class.0 << PLACE_BITS | place)
    }

    /// The head of the list of the owner with this number.
    #[inline]
    pub(crate) const fn head(ledger: u32) -> Id {
        Id(HEADS << PLACE_BITS | ledger)
    }

    /// The ledger whose list this is the head of, if it is one.
    pub(crate) const fn as_head(self) -> Option<u32> {
        if self.0 >> PLACE_BITS == HEADS {
            Some(self.0 & ((1 << PLACE_BITS) - 1))
        } else {
            None
        }
    }

    #[inline]
    pub(crate) const fn class(self) -> Class {
        Class(self.0 >> PLACE_BITS)
    }

    #[inline]
    pub(crate) const fn place(self) -> u32 {
        self.0 & ((1 << PLACE_BITS) - 1)
    }

    /// From the beginning of the blocks, in bytes.
    #[inline]
    pub(crate) const fn offset(self) -> usize {
        let class = self.class();
        (class.index() << SPAN_BITS) + ((self.place() as usize) << class.bits())
    }

    /// The block with this byte in it.
    #[inline]
    pub(crate) const fn at(offset: usize) -> Id {
        Id::of(Class((offset >> SPAN_BITS) as u32), offset)
    }

    /// The same for a block whose size is known.
    #[inline]
    pub(crate) const fn of(class: Class, offset: usize) -> Id {
        let place = (offset & ((1 << SPAN_BITS) - 1)) >> class.bits();
        Id::new(class, place as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_hold_what_they_say() {
        for bytes in [
            0,
            1,
            63,
            64,
            65,
            127,
            128,
            129,
            4095,
            4096,
            4097,
            LARGEST - 1,
            LARGEST,
        ] {
            let class = Class::holding(bytes).expect("not too large");
            assert!(class.bytes() >= bytes);
            assert!(class.bytes() == SMALLEST || class.bytes() / 2 < bytes);
        }
        assert_eq!(Class::holding(LARGEST + 1), None);
    }

    #[test]
    fn numbers_and_addresses_agree() {
        let common = (0..COMMON).map(Class::common);
        for class in Class::all().into_iter().chain(common) {
            for place in [0, 1, class.places() - 1] {
                let id = Id::new(class, place);
                assert_eq!(Id::at(id.offset()), id);
                assert_eq!(Id::at(id.offset() + class.bytes() - 1), id);
                assert!(id.as_head().is_none());
            }
        }
        assert_eq!(Id::head(77).as_head(), Some(77));
    }
}
