//! Short lists that need no memory of their own: nearly all calls pass one brigade with a bucket or two.

use std::mem::MaybeUninit;

/// The first `N` elements, and those behind them. Only the first `count` places are written: most lists stay empty.
pub(crate) struct Few<T, const N: usize> {
    count: usize,
    few: [MaybeUninit<T>; N],
    more: Vec<T>,
}

impl<T: Copy, const N: usize> Few<T, N> {
    #[inline]
    pub(crate) fn new() -> Few<T, N> {
        Few {
            count: 0,
            few: [const { MaybeUninit::uninit() }; N],
            more: Vec::new(),
        }
    }

    /// Those that lie here.
    #[inline]
    fn first(&self) -> &[T] {
        // SAFETY: `push` writes each place before it counts it, and one that may be unwritten lies as one that is not.
        unsafe { std::slice::from_raw_parts(self.few.as_ptr().cast::<T>(), self.count) }
    }

    #[inline]
    pub(crate) fn push(&mut self, one: T) {
        match self.few.get_mut(self.count) {
            Some(place) => {
                place.write(one);
                self.count += 1;
            }
            None => self.more.push(one),
        }
    }

    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first().iter().chain(&self.more)
    }

    /// The one at a place, if there is one. To go through a list so moves nothing.
    #[inline]
    pub(crate) fn at(&self, place: usize) -> Option<T> {
        match place < self.count {
            true => self.first().get(place).copied(),
            false => self.more.get(place - self.count).copied(),
        }
    }

    /// None is left.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.count = 0;
        if !self.more.is_empty() {
            self.more.clear();
        }
    }

    /// The last one, which goes.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.more.pop().or_else(|| {
            let last = self.first().last().copied()?;
            self.count -= 1;
            Some(last)
        })
    }

    /// All of them, in their order; none are left.
    #[inline]
    pub(crate) fn take(&mut self) -> impl Iterator<Item = T> + use<T, N> {
        let (count, few) = (std::mem::take(&mut self.count), self.few);
        // SAFETY: as in `first`, which had so many.
        let first = few
            .into_iter()
            .take(count)
            .map(|one| unsafe { one.assume_init() });
        first.chain(std::mem::take(&mut self.more))
    }
}

#[cfg(test)]
mod tests {
    use super::Few;

    #[test]
    fn many_are_kept_in_their_order_and_taken_once() {
        for many in 0..7u64 {
            let mut few: Few<u64, 3> = Few::new();
            (0..many).for_each(|one| few.push(one));
            let all: Vec<u64> = (0..many).collect();
            assert_eq!(few.iter().copied().collect::<Vec<_>>(), all);
            let each: Vec<u64> = (0..).map_while(|place| few.at(place)).collect();
            assert_eq!(each, all);
            few.clear();
            assert_eq!((few.iter().count(), few.at(0)), (0, None));
            (0..many).for_each(|one| few.push(one));
            assert_eq!(few.take().collect::<Vec<_>>(), all);
            assert_eq!(few.iter().count(), 0);
            few.push(9);
            assert_eq!(few.take().collect::<Vec<_>>(), [9]);
            (0..many).for_each(|one| few.push(one));
            let last: Vec<u64> = std::iter::from_fn(|| few.pop()).collect();
            assert_eq!(last, all.into_iter().rev().collect::<Vec<_>>());
            assert_eq!(few.iter().count(), 0);
        }
    }
}
