//! Other types under the names that the derive uses are other types, and what is implemented is another trait.

extern crate mullion_sip as real;
extern crate self as mullion_sip;

pub use real::Exchange;

pub mod exchange {
    pub use real::exchange::Handles;

    /// Says of any type that it is what is expected.
    pub struct Shape<T>(std::marker::PhantomData<T>);

    impl<T> Shape<T> {
        pub const fn place() -> std::mem::MaybeUninit<T> {
            std::mem::MaybeUninit::uninit()
        }
        pub const fn frame(_: u32) -> u32 {
            0
        }
        pub const fn structure(_: &str, _: *const T) -> Self {
            Shape(std::marker::PhantomData)
        }
        pub const fn field<F>(self, _: &str, _: *const F) -> Self {
            self
        }
        pub const fn finish(self) -> real::exchange::Shape<T> {
            real::exchange::Shape::enclosing()
        }
    }
}

pub mod __private {
    pub use real::__private::*;
}

#[derive(real::Exchange)]
struct Forged {
    one: u64,
}

fn main() {}
