//! What cannot be sent is not to be hidden behind a parameter, the type's own name, a variant or an attribute.

use std::rc::Rc;

use mullion_sip::{ExBox, Exchange};

#[derive(Exchange)]
struct Wrapped<T>(T);

fn sent<T: Exchange>() {}

#[derive(Exchange)]
struct List {
    next: Option<Rc<List>>,
}

#[derive(Exchange)]
#[repr(u8)]
enum Variant {
    Nothing,
    Pointer(*const u8),
}

#[derive(Exchange)]
struct Named {
    #[exchange(by_name)]
    function: ExBox<fn(u8) -> u8>,
}

fn main() {
    sent::<Wrapped<fn()>>();
    sent::<Wrapped<&'static u8>>();
}
