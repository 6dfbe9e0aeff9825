//! Size classes: 16 to 128 in steps of 16, then four to each doubling, up to 32 KiB.

use std::alloc::Layout;

/// How many classes there are.
pub(super) const CLASSES: usize = 8 + 4 * 8;
/// The largest block of a class; a larger one has a run of its own.
const LARGEST: usize = 32 << 10;

/// What serves a layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Size {
    /// A block of this class.
    Class(usize),
    /// A run of 1 << order units.
    Run(usize),
}

impl Size {
    /// `None` if no run is large enough or aligned enough.
    #[inline]
    pub(super) fn of(layout: Layout) -> Option<Size> {
        let size = if layout.align() <= 16 {
            layout.size()
        } else {
            // A power of two as large as the alignment: runs are aligned to more, and blocks of a power of
            // two lie at multiples of it.
            layout
                .size()
                .max(layout.align())
                .checked_next_power_of_two()?
        };
        if size <= LARGEST {
            return Some(Size::Class(class(size)));
        }
        let units = size.div_ceil(super::UNIT).next_power_of_two();
        let order = units.ilog2() as usize;
        let aligned = layout.align() <= (super::UNIT << order.min(8));
        (order < super::region::ORDERS && aligned).then_some(Size::Run(order))
    }
}

/// The smallest class whose blocks hold `size` bytes, which are at most `LARGEST`.
#[inline]
fn class(size: usize) -> usize {
    if size <= 128 {
        return size.saturating_sub(1) / 16;
    }
    let doubling = (size - 1).ilog2() as usize;
    let quarter = ((size - 1) >> (doubling - 2)) & 3;
    8 + (doubling - 7) * 4 + quarter
}

/// The bytes of a class's blocks.
#[inline]
pub(super) const fn bytes(class: usize) -> usize {
    if class < 8 {
        return (class + 1) * 16;
    }
    let (doubling, quarter) = ((class - 8) / 4, (class - 8) % 4);
    (5 + quarter) << (5 + doubling)
}

/// The run that blocks of a class are cut from, as its order: at least four blocks, or a waste below an eighth.
pub(super) const fn run(class: usize) -> usize {
    let bytes = bytes(class);
    if bytes <= 2048 {
        0
    } else if bytes <= 16384 {
        2
    } else {
        3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_the_tightest_that_hold() {
        for size in 1..=LARGEST {
            let found = class(size);
            assert!(bytes(found) >= size, "{size}");
            assert!(found == 0 || bytes(found - 1) < size, "{size}");
        }
        assert_eq!(class(LARGEST), CLASSES - 1);
    }

    #[test]
    fn alignment_is_kept() {
        for align in (0..=22).map(|bit| 1 << bit) {
            for size in [1, 24, 129, 5000, 40 << 10, 3 << 20] {
                let layout = Layout::from_size_align(size, align).expect("a layout");
                match Size::of(layout) {
                    Some(Size::Class(class)) => {
                        assert!(
                            bytes(class).is_multiple_of(align.min(bytes(class))) || align <= 16
                        );
                        assert!(align <= 16 || bytes(class).is_multiple_of(align));
                        assert!(bytes(class) >= size);
                    }
                    Some(Size::Run(order)) => {
                        assert!(super::super::UNIT << order >= size.max(align))
                    }
                    None => panic!("{size} aligned to {align}"),
                }
            }
        }
        assert_eq!(
            Size::of(Layout::from_size_align(1, 1 << 30).expect("a layout")),
            None
        );
    }
}
