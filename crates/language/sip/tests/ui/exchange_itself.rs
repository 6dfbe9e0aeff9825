//! A type that holds itself cannot be described as what it is not.

use mullion_sip::{ExBox, ExVec, Exchange};

trait Picks {
    type Picked;
}

#[derive(Exchange)]
struct Code {
    next: Option<ExBox<[Code; {
        struct Inside;
        1
    }]>>,
}

#[derive(Exchange)]
struct Other<T> {
    value: T,
    next: Option<ExBox<Other<ExVec<T>>>>,
}

#[derive(Exchange)]
struct Same<Same> {
    value: Same,
}

impl Picks for Picky {
    type Picked = ExVec<u64>;
}

#[derive(Exchange)]
struct Picky {
    next: ExVec<Picky>,
    picked: ExVec<<Picky as Picks>::Picked>,
}

fn main() {}
