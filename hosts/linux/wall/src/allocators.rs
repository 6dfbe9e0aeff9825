//! The kernel's allocators, as walled modules call them: what they give is the module's until it is freed, and a module
//! frees only what it may write.
//!
//! ```text
//!   module ──► gate ──► mediator ──► __kmalloc ──► the object is granted to the caller
//!   module ──► gate ──► mediator: may the caller write there? ──► kfree ──► the kernel tells (`rights::freed`)
//! ```

use crate::{WALL, rights};
use mullion_word::runtime::{caller, refuse};
use std::sync::atomic::{AtomicUsize, Ordering};

type Function = extern "C" fn(u64, u64, u64, u64, u64, u64) -> u64;

/// A function of the kernel, and its mediator.
pub(crate) struct Mediated {
    pub(crate) name: &'static str,
    pub(crate) mediator: Function,
    real: &'static AtomicUsize,
}

impl Mediated {
    /// Tells the mediator where the kernel has the function.
    pub(crate) fn settle(&self, address: usize) {
        self.real.store(address, Ordering::Relaxed);
    }
}

fn call(real: &AtomicUsize, arguments: [u64; 6]) -> u64 {
    let address = real.load(Ordering::Relaxed);
    // SAFETY: a mediator is offered only behind `settle`, with the address of the kernel's function, which takes its
    // arguments from these registers.
    let real: Function = unsafe { std::mem::transmute(address) };
    let [a, b, c, d, e, f] = arguments;
    real(a, b, c, d, e, f)
}

/// The result is the caller's.
fn gives(real: &AtomicUsize, arguments: [u64; 6]) -> u64 {
    let result = call(real, arguments);
    if let (Some(wall), Some(domain), true) = (WALL.get(), caller(), result != 0) {
        rights::allocated(wall.host, wall.kernel, &domain, result);
    }
    result
}

/// The caller may write where the argument points to.
fn frees(name: &str, real: &AtomicUsize, at: usize, arguments: [u64; 6]) -> u64 {
    let address = arguments[at];
    let is_nothing = address <= 16;
    let may = caller().is_some_and(|domain| rights::may_write(&domain, address));
    if !is_nothing && !may {
        refuse(format!("{name}: {address:#x} is not the module's to free"));
        return 0;
    }
    call(real, arguments)
}

macro_rules! mediated {
    ($($name:literal $ident:ident $how:ident $($at:literal)?),* $(,)?) => {
        $(mod $ident {
            pub(super) static REAL: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
            pub(super) extern "C" fn mediator(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> u64 {
                super::mediate(super::How::$how$(($at))?, $name, &REAL, [a, b, c, d, e, f])
            }
        })*
        /// All of them.
        pub(crate) static ALL: &[Mediated] = &[
            $(Mediated { name: $name, mediator: $ident::mediator, real: &$ident::REAL }),*
        ];
    };
}

/// What is looked at: nothing but the result, or this argument.
enum How {
    Gives,
    Frees(usize),
}

fn mediate(how: How, name: &str, real: &AtomicUsize, arguments: [u64; 6]) -> u64 {
    match how {
        How::Gives => gives(real, arguments),
        How::Frees(at) => frees(name, real, at, arguments),
    }
}

mediated! {
    "__kmalloc" kmalloc Gives,
    "__kmalloc_node" kmalloc_node Gives,
    "kmalloc_trace" kmalloc_trace Gives,
    "kmalloc_node_trace" kmalloc_node_trace Gives,
    "kmalloc_large" kmalloc_large Gives,
    "kmem_cache_alloc" cache_alloc Gives,
    "kmem_cache_alloc_lru" cache_alloc_lru Gives,
    "kmem_cache_alloc_node" cache_alloc_node Gives,
    "kvmalloc_node" kvmalloc_node Gives,
    "kmemdup" kmemdup Gives,
    "kstrdup" kstrdup Gives,
    "kstrndup" kstrndup Gives,
    "krealloc" krealloc Gives,
    "__get_free_pages" get_free_pages Gives,
    "get_zeroed_page" get_zeroed_page Gives,
    "vmalloc" vmalloc Gives,
    "vzalloc" vzalloc Gives,
    "match_strdup" match_strdup Gives,
    "gf128mul_init_4k_lle" gf128mul_init Gives,
    "kfree" kfree Frees 0,
    "kvfree" kvfree Frees 0,
    "kfree_sensitive" kfree_sensitive Frees 0,
    "vfree" vfree Frees 0,
    "kmem_cache_free" cache_free Frees 1,
}
