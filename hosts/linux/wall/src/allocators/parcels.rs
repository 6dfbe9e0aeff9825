//! Packets that a module gets, changes and hands on.

use super::{Arguments, call};
use crate::{journal, packets};
use mullion_word::runtime::{caller, refuse};
use std::sync::atomic::AtomicUsize;

/// The packet is the caller's.
pub(super) fn takes_packet(real: &AtomicUsize, arguments: Arguments) -> u64 {
    let result = call(real, arguments);
    if let Some(domain) = caller().filter(|_| !journal::is_nothing(result)) {
        packets::takes(&domain, result);
    }
    result
}

/// The packet is the caller's no longer: it is freed, or the kernel's.
pub(super) fn gives_packet(name: &str, real: &AtomicUsize, at: usize, arguments: Arguments) -> u64 {
    let packet = arguments[at];
    let is_its = caller().is_some_and(|domain| packets::gives(&domain, packet));
    if packet != 0 && !is_its {
        refuse(format!("{name}: {packet:#x} is not lent to the module"));
        return 0;
    }
    call(real, arguments)
}

/// The packet goes to another device of the module's. It is still the caller's if the result is 0.
pub(super) fn forwards_packet(name: &str, real: &AtomicUsize, arguments: Arguments) -> u64 {
    let packet = arguments[1];
    let Some(domain) = caller().filter(|domain| packets::is_its(domain, packet)) else {
        refuse(format!("{name}: {packet:#x} is not lent to the module"));
        return 0;
    };
    let result = call(real, arguments);
    match result as u32 {
        0 => packets::renews(&domain, packet),
        _ => drop(packets::gives(&domain, packet)),
    }
    result
}

/// The packet's bytes may lie elsewhere then.
pub(super) fn changes_packet(name: &str, real: &AtomicUsize, arguments: Arguments) -> u64 {
    let packet = arguments[0];
    let Some(domain) = caller().filter(|domain| packets::is_its(domain, packet)) else {
        refuse(format!("{name}: {packet:#x} is not lent to the module"));
        return 0;
    };
    let result = call(real, arguments);
    packets::renews(&domain, packet);
    result
}
