//! What is known about registers within one straight line of code.
//!
//! Each fact carries the offset of the instruction that made it. Whoever relies
//! on a fact reports that offset, and the interval behind it becomes forbidden
//! to direct branches: entering there would bypass the maker.

use mullion_decoder::decode::{R14, R15, RSP};

/// A register that is none, for what writes to none.
pub(crate) const NOWHERE: u8 = 18;

/// What is known about a register, as bits; none of them: nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value(u8);

impl Value {
    /// Nothing is known.
    pub(crate) const ANY: Self = Self(0);
    /// The upper 32 bits are zero.
    pub(crate) const ZERO: Self = Self(1);
    /// An address in the window; of `%r15` give or take pending steps.
    pub(crate) const WINDOW: Self = Self(2);
    /// The lower 32 bits, as an offset, carry the label.
    pub(crate) const LABELLED: Self = Self(4);
    /// The complement of the label, zero-extended.
    pub(crate) const COMPLEMENT: Self = Self(8 | Self::ZERO.0);
    /// It is `%r14` or `%r15`.
    pub(crate) const RESERVED: Self = Self(16);
    /// It is `%rsp`.
    pub(crate) const CONTROL: Self = Self(32);

    /// Whether everything that `known` says is known.
    #[inline(always)]
    pub(crate) const fn is(self, known: Self) -> bool {
        self.0 & known.0 == known.0
    }

    /// Both are known.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether any of the bits `mask` is set.
    #[inline(always)]
    pub(crate) const fn meets(self, mask: u32) -> bool {
        self.0 as u32 & mask != 0
    }

    pub(crate) const fn bits(self) -> u32 {
        self.0 as u32
    }

    /// The upper 32 bits are zero, or nothing is known.
    #[inline(always)]
    pub(crate) const fn zero_if(zero: bool) -> Self {
        Self(zero as u8)
    }
}

/// At the beginning of a straight line.
#[allow(clippy::indexing_slicing, reason = "runs at compile time only")]
const FRESH: [Value; 32] = {
    let mut values = [Value::ANY; 32];
    values[RSP as usize] = Value::CONTROL;
    values[R14 as usize] = Value::RESERVED;
    values[R15 as usize] = Value::RESERVED.and(Value::WINDOW);
    values
};

/// The state of a straight line.
#[cfg_attr(test, derive(Clone, Debug))]
pub(crate) struct Line {
    /// From 16 on there are no registers, and nothing is known but of [`NOWHERE`], which nobody asks for.
    values: [Value; 32],
    since: [u32; 32],
    /// Offset of the first step of `%r15` that no probe has followed yet.
    pub(crate) stepped: Option<u32>,
    /// Sum of the steps since the last probe.
    pub(crate) steps: i64,
    /// The last comparison with the label.
    pub(crate) check: Option<Check>,
    /// A comparison has succeeded in this line.
    pub(crate) labelled: bool,
}

/// A comparison with the label: it holds if `jne`, right behind it, is not taken.
#[derive(Clone, Copy)]
#[cfg_attr(test, derive(Debug, PartialEq))]
pub(crate) struct Check {
    /// The register whose target was looked at.
    pub(crate) register: u8,
    /// Offset of the comparison.
    pub(crate) made: u32,
    /// Offset of what is behind it.
    pub(crate) end: u32,
}

impl Line {
    /// A line that just began: nothing known, `%r15` in the window.
    pub(crate) const fn new() -> Self {
        Self {
            values: FRESH,
            since: [0; 32],
            stepped: None,
            steps: 0,
            check: None,
            labelled: false,
        }
    }

    /// Begins anew.
    #[inline]
    pub(crate) fn restart(&mut self) {
        self.values = FRESH;
        self.stepped = None;
        self.steps = 0;
        self.check = None;
        self.labelled = false;
    }

    #[inline]
    pub(crate) fn value(&self, register: u8) -> Value {
        let value = self.values.get(usize::from(register & 31)).copied();
        value.unwrap_or(Value::ANY)
    }

    #[inline]
    pub(crate) fn set(&mut self, register: u8, value: Value, at: u32) {
        let value = match register {
            R15 => value.and(Value::RESERVED),
            _ if register < 16 => value,
            _ => Value::ANY,
        };
        self.note(register, value, at);
    }

    /// The same for registers that are not reserved, and for [`NOWHERE`].
    #[inline(always)]
    pub(crate) fn note(&mut self, register: u8, value: Value, at: u32) {
        let register = usize::from(register & 31);
        if let (Some(slot), Some(since)) =
            (self.values.get_mut(register), self.since.get_mut(register))
        {
            *slot = value;
            *since = at;
        }
    }

    /// The instruction at `at` relies on what is known about `register`.
    /// Returns the offset from which on no branch may enter, exclusive. A
    /// second reliance on the same fact reports the first one's offset, so that
    /// all intervals together are at most 16 times as long as the code.
    #[inline]
    pub(crate) fn rely(&mut self, register: u8, at: u32) -> u32 {
        self.since
            .get_mut(usize::from(register & 31))
            .map_or(at, |since| std::mem::replace(since, at))
    }

    /// Whether `%r15` is between a 32-bit write and the addition of the base.
    #[inline]
    pub(crate) fn unfinished(&self) -> bool {
        !self.value(R15).is(Value::WINDOW)
    }

    /// Registers in `mask` are written with what is not known. `%rsp` is not among them.
    #[inline]
    pub(crate) fn clobber(&mut self, mask: u16, at: u32) {
        for register in (0..16).filter(|register| mask >> register & 1 == 1 && *register != RSP) {
            self.set(register, Value::ANY, at);
        }
    }
}

#[cfg(test)]
impl PartialEq for Line {
    /// As far as anybody can ask.
    fn eq(&self, other: &Self) -> bool {
        let known = |line: &Self| (0..18).map(|r| line.value(r)).collect::<Vec<_>>();
        let since = |line: &Self| line.since.iter().take(16).copied().collect::<Vec<_>>();
        let rest = |line: &Self| (line.stepped, line.steps, line.check, line.labelled);
        known(self) == known(other) && since(self) == since(other) && rest(self) == rest(other)
    }
}
