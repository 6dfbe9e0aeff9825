//! Safe code that attacks its host and its neighbours in every way that the interface of `mullion-sip` and the standard
//! library leave it. `crates/process/sip-host/tests/hostile.rs` runs it.
//!
//! Its argument says which way. `all` tries everything that a process should survive, and fails with the first attack
//! that gets through; every other way is to end the process, each with its own cause.
#![forbid(unsafe_code)]

mod deadly;
mod harmless;

use std::time::Duration;

use sip_contracts::{bell, echo};

mullion_sip::sip_main! {
    name: "attacker",
    main: main,
    contracts: [bell, echo],
    limits: { memory: 8 << 20, exchange: 1 << 20, threads: 16, children: 2, slice: Duration::from_millis(100) },
}

fn main(arguments: Vec<String>) -> Result<(), String> {
    match arguments.first().map_or("", String::as_str) {
        "all" => harmless::all(),
        "ways" => Err(deadly::WAYS.map(|(name, _)| name).join(" ")),
        way => {
            let found = deadly::WAYS.iter().find(|(name, _)| *name == way);
            let (_, attack) = found.ok_or_else(|| format!("no such way: {way}"))?;
            attack();
            Err("it lives".to_owned())
        }
    }
}
