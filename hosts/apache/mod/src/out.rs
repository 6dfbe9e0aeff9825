//! Functions of the host that modules call by an address in one of the host's structures: providers' functions, and those
//! of buckets' types. Each address that may be called leads to a function of ours that looks at the arguments.

use crate::call::{checked, mediate};
use crate::interface::{Answer as Result_, Back, Param, param};
use crate::rings::{self, Of};
use crate::slots::{self, COUNT, STACKED, Slots, WIDE, Wide, slots};
use crate::walled::{Answer, Walled, lock};
use mullion_word_runtime::FunctionPolicy;
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

struct Slot {
    name: String,
    params: Vec<Param>,
    answer: Result_,
    real: usize,
    of: What,
}

/// What a function is, besides its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Plain,
    /// One of another module's, or of the host's, that is of a known kind.
    Known(&'static Back),
    /// A function of buckets.
    Bucket(Of),
    /// A filter's, or its beginning.
    Filter {
        begins: bool,
    },
}

extern "C" fn out<const PLACE: usize>(
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    f: u64,
    g: u64,
    h: u64,
    i: u64,
    j: u64,
    k: u64,
    l: u64,
) -> u64 {
    called(PLACE, &[a, b, c, d, e, f, g, h, i, j, k, l])
}

/// What all of [`STANDS`] do. There are as many of those as slots, so each is this call and nothing more.
#[inline(never)]
extern "C" fn called(place: usize, arguments: &[u64; WIDE]) -> u64 {
    mediate(|frame| match OUTS[place].get() {
        Some(Slot {
            of: What::Bucket(of),
            ..
        }) => {
            let [a, b, c, d, e, f, ..] = *arguments;
            rings::call(frame, *of, [a, b, c, d, e, f])
        }
        Some(Slot {
            of: What::Filter { begins },
            name,
            real,
            ..
        }) => crate::filters::call(frame, (name, *real, *begins), arguments),
        Some(
            slot @ Slot {
                of: What::Known(back),
                ..
            },
        ) => {
            crate::partners::may_call(back, arguments)?;
            let mut all = *arguments;
            let result = checked(
                frame,
                &slot.name,
                &slot.params,
                slot.answer,
                slot.real,
                &mut all,
            )?;
            crate::partners::show_structures(frame, back, arguments)?;
            Ok(result)
        }
        Some(slot) => checked(
            frame,
            &slot.name,
            &slot.params,
            slot.answer,
            slot.real,
            &mut arguments.clone(),
        ),
        None => Err("no function of the host".to_owned()),
    })
}

static STANDS: Slots<Wide> = slots!(out);
static OUTS: [OnceLock<Slot>; COUNT] = [const { OnceLock::new() }; COUNT];
/// By the function's address.
static KNOWN: Mutex<Option<HashMap<usize, usize>>> = Mutex::new(None);

/// Lets a module call functions by their addresses; each with a name and its parameters, as httpd.txt has them.
pub(crate) fn offer(walled: &'static Walled, functions: &[(usize, String, &str)]) -> Answer<()> {
    let functions = functions.iter();
    let functions = functions.map(|(real, name, params)| {
        let params = params.split_ascii_whitespace().map(param).collect();
        (*real, name.clone(), params, Result_::Plain, What::Plain)
    });
    offer_all(walled, functions.collect())
}

/// Lets a module call a function of another module, or of the host, that is of a known kind.
pub(crate) fn offer_back(walled: &'static Walled, real: usize, back: &'static Back) -> Answer<()> {
    offer_beside(walled, real, real, back)
}

/// The same of a function that the module calls by another address.
pub(crate) fn offer_beside(
    walled: &'static Walled,
    at: usize,
    real: usize,
    back: &'static Back,
) -> Answer<()> {
    let of = What::Known(back);
    let function = (at, back.name.to_owned(), back.params(), back.answer, of);
    offer_at(walled, vec![function], |_| real)
}

/// Lets a module call a filter's function, and its beginning or null, with filters of its own.
pub(crate) fn offer_filter(
    walled: &'static Walled,
    function: usize,
    beginning: usize,
) -> Answer<()> {
    let of = |begins| What::Filter { begins };
    let offered = [
        (function, "a filter", of(false)),
        (beginning, "a filter's beginning", of(true)),
    ];
    let offered = offered.map(|(real, name, of)| {
        let (name, params) = (name.to_owned(), Vec::new());
        (real, name, params, Result_::Plain, of)
    });
    offer_all(walled, offered.into())
}

/// The types of buckets whose functions modules may call.
const TYPES: [&str; 13] = [
    "apr_bucket_type_eos",
    "apr_bucket_type_flush",
    "apr_bucket_type_heap",
    "apr_bucket_type_pool",
    "apr_bucket_type_transient",
    "apr_bucket_type_immortal",
    "apr_bucket_type_file",
    "apr_bucket_type_mmap",
    "apr_bucket_type_pipe",
    "apr_bucket_type_socket",
    "ap_bucket_type_error",
    "ap_bucket_type_eoc",
    "ap_bucket_type_eor",
];

/// Lets a module call the functions of buckets and their types.
pub(crate) fn offer_buckets(walled: &'static Walled) -> Answer<()> {
    let mut all: Vec<Offered> = Vec::new();
    for name in TYPES {
        let Some(kind) = crate::apr::symbol(name) else {
            continue;
        };
        for of in [Of::Destroy, Of::Read, Of::SetAside, Of::Split, Of::Copy] {
            // SAFETY: it is a type of APR's or the core's, which has these functions.
            let real = unsafe { crate::layout::read(kind as u64 + of as u64) } as usize;
            match all.iter().find(|(known, ..)| *known == real) {
                Some((.., known)) if *known != What::Bucket(of) => {
                    return Err(format!("a function of {name} is two in one"));
                }
                Some(_) => {}
                None => {
                    let name = format!("{of:?} of {name}");
                    all.push((real, name, Vec::new(), Result_::Plain, What::Bucket(of)));
                }
            }
        }
    }
    for (real, of) in crate::kinds::functions() {
        all.push((
            real,
            format!("{of:?} of a bucket"),
            Vec::new(),
            Result_::Plain,
            What::Bucket(of),
        ));
    }
    if let Some(free) = crate::apr::symbol("apr_bucket_free") {
        let name = "apr_bucket_free".to_owned();
        let of = What::Bucket(Of::Free);
        all.push((free, name, Vec::new(), Result_::Plain, of));
    }
    offer_all(walled, all)
}

type Offered = (usize, String, Vec<Param>, Result_, What);

fn offer_all(walled: &'static Walled, functions: Vec<Offered>) -> Answer<()> {
    offer_at(walled, functions, |at| at)
}

/// The same of functions that are elsewhere than the module has them.
fn offer_at(
    walled: &'static Walled,
    functions: Vec<Offered>,
    real_of: impl Fn(usize) -> usize,
) -> Answer<()> {
    let mut calls = Vec::new();
    for (at, name, params, answer, of) in functions {
        if at == 0 || !walled.is_new_call(at) {
            continue;
        }
        let mut known = lock(&KNOWN);
        let known = known.get_or_insert_with(HashMap::new);
        let next = known.len();
        let place = *known.entry(at).or_insert(next);
        let slot = OUTS
            .get(place)
            .ok_or("there are no more functions to stand for the host's")?;
        let policy = (params.len() > 6).then(|| FunctionPolicy::of(&[]).stacked(STACKED));
        let _made = slot.get_or_init(|| Slot {
            name: name.clone(),
            params,
            answer,
            real: real_of(at),
            of,
        });
        calls.push((at, name, slots::at(&STANDS, place), policy));
    }
    if !calls.is_empty() {
        // SAFETY: the functions are ours, and stay.
        unsafe { walled.host.offer(&walled.domain, calls) };
    }
    Ok(())
}
