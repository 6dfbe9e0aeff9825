//! Functions of the host that modules call by an address in one of the host's structures: providers' functions, and those
//! of buckets' types. Each address that may be called leads to a function of ours that looks at the arguments.

use crate::call::{checked, mediate};
use crate::interface::{Answer as Result_, Param, param};
use crate::slots::{self, COUNT, Slots, slots};
use crate::walled::{Answer, Walled, lock};
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

struct Slot {
    name: String,
    params: Vec<Param>,
    real: usize,
}

extern "C" fn out<const PLACE: usize>(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> u64 {
    mediate(|frame| match OUTS[PLACE].get() {
        Some(slot) => checked(
            frame,
            &slot.name,
            &slot.params,
            Result_::Plain,
            slot.real,
            [a, b, c, d, e, f],
        ),
        None => Err("no function of the host".to_owned()),
    })
}

static STANDS: Slots = slots!(out);
static OUTS: [OnceLock<Slot>; COUNT] = [const { OnceLock::new() }; COUNT];
/// By the function's address.
static KNOWN: Mutex<Option<HashMap<usize, usize>>> = Mutex::new(None);

/// Lets a module call functions by their addresses; each with a name and its parameters, as httpd.txt has them.
pub(crate) fn offer(walled: &'static Walled, functions: &[(usize, String, &str)]) -> Answer<()> {
    let mut calls = Vec::new();
    for (real, name, params) in functions {
        if *real == 0 || !walled.is_new_call(*real) {
            continue;
        }
        let mut known = lock(&KNOWN);
        let known = known.get_or_insert_with(HashMap::new);
        let next = known.len();
        let place = *known.entry(*real).or_insert(next);
        let slot = OUTS
            .get(place)
            .ok_or("there are no more functions to stand for the host's")?;
        let _made = slot.get_or_init(|| Slot {
            name: name.clone(),
            params: params.split_ascii_whitespace().map(param).collect(),
            real: *real,
        });
        calls.push((*real, name.clone(), slots::at(&STANDS, place), None));
    }
    if !calls.is_empty() {
        // SAFETY: the functions are ours, and stay.
        unsafe { walled.host.offer(&walled.domain, calls) };
    }
    Ok(())
}
