//! What is known about registers within one straight line of code.
//!
//! Each fact carries the offset of the instruction that made it. Whoever relies
//! on a fact reports that offset, and the interval behind it becomes forbidden
//! to direct branches: entering there would bypass the maker.

use crate::decode::{R15, RSP};

/// What is known about a register's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Nothing. Of `%r15`: it lies in the window, give or take pending steps.
    Any,
    /// The upper 32 bits are zero.
    Zero,
    /// ... and the offset carries the label.
    ZeroLabelled,
    /// The complement of the label, zero-extended.
    Complement,
    /// An address in the window.
    Window,
    /// ... that carries the label.
    WindowLabelled,
    /// The lower 32 bits, as an offset, carry the label.
    LowLabelled,
}

impl Value {
    /// Whether the upper 32 bits are zero.
    pub(crate) const fn is_zero_extended(self) -> bool {
        matches!(self, Self::Zero | Self::ZeroLabelled | Self::Complement)
    }

    /// Whether it is an address in the window.
    pub(crate) const fn is_window(self) -> bool {
        matches!(self, Self::Window | Self::WindowLabelled)
    }

    /// Whether the lower 32 bits are an offset that carries the label.
    pub(crate) const fn is_labelled(self) -> bool {
        matches!(
            self,
            Self::ZeroLabelled | Self::WindowLabelled | Self::LowLabelled
        )
    }
}

/// The state of a straight line.
pub(crate) struct Line {
    /// From 16 on there are no registers, and nothing is ever known.
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
            values: [Value::Any; 32],
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
        self.values = [Value::Any; 32];
        self.stepped = None;
        self.steps = 0;
        self.check = None;
        self.labelled = false;
    }

    #[inline]
    pub(crate) fn value(&self, register: u8) -> Value {
        let value = self.values.get(usize::from(register & 31)).copied();
        value.unwrap_or(Value::Any)
    }

    #[inline]
    pub(crate) fn set(&mut self, register: u8, value: Value, at: u32) {
        let value = if register < 16 { value } else { Value::Any };
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
        self.value(R15) != Value::Any
    }

    /// Registers in `mask` are written with what is not known. `%rsp` is not among them.
    #[inline]
    pub(crate) fn clobber(&mut self, mask: u16, at: u32) {
        for register in (0..16).filter(|register| mask >> register & 1 == 1 && *register != RSP) {
            self.set(register, Value::Any, at);
        }
    }
}
