//! What has no shape of its own cannot be sent, however it is wrapped.
#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell, UnsafeCell};
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use mullion_sip::{Exchange, ExVec};

fn sent<T: Exchange>() {}

#[derive(Exchange)]
#[repr(packed)]
struct Packed {
    one: u8,
    two: u32,
}

#[derive(Exchange)]
struct Borrowed<'a> {
    one: &'a u8,
}

#[derive(Exchange)]
union Either {
    one: u8,
    two: i8,
}

#[derive(Exchange)]
enum Free {
    One,
    Two,
}

struct Mine(u8);

impl Exchange for Mine {
    const SHAPE: mullion_sip::exchange::Shape<Self> = mullion_sip::exchange::Shape::enclosing();
}

fn main() {
    sent::<Cell<u8>>();
    sent::<RefCell<u8>>();
    sent::<UnsafeCell<u8>>();
    sent::<AtomicU64>();
    sent::<Mutex<u8>>();
    sent::<Rc<u8>>();
    sent::<Arc<u8>>();
    sent::<Box<u8>>();
    sent::<Vec<u8>>();
    sent::<String>();
    sent::<&'static str>();
    sent::<*mut u8>();
    sent::<fn()>();
    sent::<Box<dyn Fn()>>();
    sent::<PhantomData<u8>>();
    sent::<NonZeroU32>();
    sent::<ExVec<&'static u8>>();
    sent::<[Rc<u8>; 0]>();
    sent::<std::time::Instant>();
    sent::<std::any::TypeId>();
    sent::<mullion_sip::channel::AnyEndpoint>();
}
