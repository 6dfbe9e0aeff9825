//! Short lists that need no memory of their own: nearly all calls pass one brigade with a bucket or two.

/// The first `N` elements, and those behind them.
pub(crate) struct Few<T, const N: usize> {
    count: usize,
    few: [T; N],
    more: Vec<T>,
}

impl<T: Copy + Default, const N: usize> Few<T, N> {
    #[inline]
    pub(crate) fn new() -> Few<T, N> {
        Few {
            count: 0,
            few: [T::default(); N],
            more: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, one: T) {
        match self.few.get_mut(self.count) {
            Some(place) => {
                *place = one;
                self.count += 1;
            }
            None => self.more.push(one),
        }
    }

    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.few.iter().take(self.count).chain(&self.more)
    }

    /// The one at a place, if there is one. To go through a list so moves nothing.
    #[inline]
    pub(crate) fn at(&self, place: usize) -> Option<T> {
        match place < self.count {
            true => self.few.get(place).copied(),
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
            self.count = self.count.checked_sub(1)?;
            self.few.get(self.count).copied()
        })
    }

    /// All of them, in their order; none are left.
    #[inline]
    pub(crate) fn take(&mut self) -> impl Iterator<Item = T> + use<T, N> {
        let count = std::mem::take(&mut self.count);
        let first = self.few.into_iter().take(count);
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
