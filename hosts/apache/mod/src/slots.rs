//! Tables of functions that know their place: a pointer to one of them says which row of a table of ours is meant.

/// Functions of six integers; the system's convention passes them in registers, however many a caller has.
pub(crate) type Function = extern "C" fn(u64, u64, u64, u64, u64, u64) -> u64;

/// Functions of so many integers: those behind the sixth are on the stack. A function of fewer leaves the others alone.
pub(crate) const WIDE: usize = 12;

/// The same for functions with more than six.
pub(crate) type Wide =
    extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> u64;

/// How many of them are on the stack.
pub(crate) const STACKED: u8 = 6;

/// Calls a function of up to twelve integers.
///
/// # Safety
/// There is one, for integers.
pub(crate) unsafe fn call_wide(at: u64, arguments: &[u64; WIDE]) -> u64 {
    // SAFETY: by the caller; words on the stack that a function has no parameters for do not matter to it.
    let function = unsafe { std::mem::transmute::<u64, Wide>(at) };
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *arguments;
    function(a, b, c, d, e, f, g, h, i, j, k, l)
}

/// So many functions.
pub(crate) const COUNT: usize = 2048;

/// Sixteen times sixteen times eight functions.
pub(crate) type Slots<F = Function> = [[[F; 16]; 16]; 8];

macro_rules! row {
    ($f:ident, $at:expr) => {
        [
            $f::<{ $at }>,
            $f::<{ $at + 1 }>,
            $f::<{ $at + 2 }>,
            $f::<{ $at + 3 }>,
            $f::<{ $at + 4 }>,
            $f::<{ $at + 5 }>,
            $f::<{ $at + 6 }>,
            $f::<{ $at + 7 }>,
            $f::<{ $at + 8 }>,
            $f::<{ $at + 9 }>,
            $f::<{ $at + 10 }>,
            $f::<{ $at + 11 }>,
            $f::<{ $at + 12 }>,
            $f::<{ $at + 13 }>,
            $f::<{ $at + 14 }>,
            $f::<{ $at + 15 }>,
        ]
    };
}

macro_rules! rows {
    ($f:ident, $at:expr) => {
        [
            $crate::slots::row!($f, $at),
            $crate::slots::row!($f, $at + 16),
            $crate::slots::row!($f, $at + 32),
            $crate::slots::row!($f, $at + 48),
            $crate::slots::row!($f, $at + 64),
            $crate::slots::row!($f, $at + 80),
            $crate::slots::row!($f, $at + 96),
            $crate::slots::row!($f, $at + 112),
            $crate::slots::row!($f, $at + 128),
            $crate::slots::row!($f, $at + 144),
            $crate::slots::row!($f, $at + 160),
            $crate::slots::row!($f, $at + 176),
            $crate::slots::row!($f, $at + 192),
            $crate::slots::row!($f, $at + 208),
            $crate::slots::row!($f, $at + 224),
            $crate::slots::row!($f, $at + 240),
        ]
    };
}

/// The table of a function with a place as its constant.
macro_rules! slots {
    ($f:ident) => {
        [
            $crate::slots::rows!($f, 0),
            $crate::slots::rows!($f, 256),
            $crate::slots::rows!($f, 512),
            $crate::slots::rows!($f, 768),
            $crate::slots::rows!($f, 1024),
            $crate::slots::rows!($f, 1280),
            $crate::slots::rows!($f, 1536),
            $crate::slots::rows!($f, 1792),
        ]
    };
}

pub(crate) use {row, rows, slots};

/// The function with this place.
pub(crate) fn at<F: Copy>(slots: &Slots<F>, place: usize) -> usize {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let function = slots[place >> 8][place >> 4 & 15][place & 15];
    // SAFETY: it is a pointer to a function, as large as a number.
    unsafe { std::mem::transmute_copy(&function) }
}
