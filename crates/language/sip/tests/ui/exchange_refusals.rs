use std::rc::Rc;
use std::sync::Arc;

use mullion_sip::{ExBox, Exchange};

#[derive(Exchange)]
struct Borrows<'a> {
    text: &'a str,
}

#[derive(Exchange)]
struct Static {
    text: &'static str,
}

#[derive(Exchange)]
struct Pointer(*mut u8);

#[derive(Exchange)]
struct Shared(Rc<u8>, Arc<u8>);

#[derive(Exchange)]
struct OwnHeap(String, Vec<u8>, Box<dyn FnMut()>);

#[derive(Exchange)]
struct Function(fn());

#[derive(Exchange)]
struct Inside {
    list: ExBox<Option<Rc<u8>>>,
}

#[derive(Exchange)]
enum NoLayout {
    One(u8),
}

#[derive(Exchange)]
union Either {
    one: u8,
    other: i8,
}

fn main() {}
