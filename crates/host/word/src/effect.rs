//! Rows of policies, as C lays them out.

use crate::runtime::{Bits, Effect, FunctionPolicy, Number, Size};
use crate::status::{Failure, Status};
use std::ffi::c_char;

/// `mullion_word_size`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CSize {
    kind: u8,
    first: u8,
    second: u8,
    bytes: u64,
}

/// `mullion_word_effect`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CEffect {
    kind: u8,
    argument: u8,
    size: CSize,
}

/// `mullion_word_row`: what is true of a function.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CRow {
    pub(crate) effects: *const CEffect,
    pub(crate) count: usize,
    stacked: u8,
    error: i64,
    float_error: f64,
    pub(crate) allocator: *const c_char,
}

fn wrong(what: &str) -> Failure {
    Failure::new(Status::BAD_ARGUMENT, format!("no such {what}"))
}

impl CSize {
    fn size(self) -> Result<Size, Failure> {
        match self.kind {
            0 => Ok(Size::Bytes(self.bytes)),
            1 => Ok(Size::Argument(self.first)),
            2 => Ok(Size::Product(self.first, self.second)),
            3 => Ok(Size::Text),
            4 => Ok(Size::Sum(Number::of(self.first, self.bits()?).into())),
            5 => {
                let offset = u32::try_from(self.bytes).map_err(|_| wrong("offset of a field"))?;
                let field = Number::field(self.first, offset, self.bits()?);
                Ok(Size::Sum(field.into()))
            }
            6 => Ok(Size::List),
            7 => Ok(Size::Texts),
            8 => Ok(Size::Vectors(Number::of(self.first, self.bits()?).into())),
            _ => Err(wrong("kind of size")),
        }
    }
}

impl CSize {
    fn bits(self) -> Result<Bits, Failure> {
        use Bits::{I8, I16, I32, I64, U8, U16, U32, U64};
        let all = [U8, I8, U16, I16, U32, I32, U64, I64];
        let found = all.get(usize::from(self.second)).copied();
        found.ok_or_else(|| wrong("type of an integer"))
    }
}

impl CEffect {
    fn effect(self) -> Result<Effect, Failure> {
        let (at, size) = (self.argument, self.size.size()?);
        match self.kind {
            1 => Ok(Effect::In(at, size)),
            2 => Ok(Effect::Out(at, size)),
            3 => Ok(Effect::InOut(at, size)),
            4 => Ok(Effect::Gives(size)),
            5 => Ok(Effect::Takes(at, size)),
            6 => Ok(Effect::Frees(at)),
            7 => Ok(Effect::Moves(at, size)),
            8 => Ok(Effect::Callback(at)),
            9 => Ok(Effect::Instance(at)),
            10 => Ok(Effect::CopyIn(at, size)),
            11 => Ok(Effect::CopyInOut(at, size)),
            12 => Ok(Effect::Into(at, size, self.size.first)),
            _ => Err(wrong("kind of effect")),
        }
    }
}

/// A row with its effects.
pub(crate) fn row(row: &CRow, effects: &[CEffect]) -> Result<FunctionPolicy, Failure> {
    if row.stacked > 16 {
        return Err(wrong("number of words on the stack: there are 16 at most"));
    }
    let effects: Result<Vec<Effect>, Failure> = effects.iter().map(|one| one.effect()).collect();
    let mut policy = FunctionPolicy::of(&effects?)
        .stacked(row.stacked)
        .error(row.error);
    policy.error.float = row.float_error;
    Ok(policy)
}
