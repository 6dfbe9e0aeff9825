//! Any text: the parser ends, and so does a query over what it accepts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mullion_trust::keynote::{Attributes, Query, Store, parse_all};

fuzz_target!(|text: &[u8]| {
    let mut store = Store::default();
    for assertion in parse_all(text).unwrap_or_default() {
        store.add_policy(assertion, "fuzz");
    }
    let attributes = Attributes::from([("a".to_owned(), b"aaaaaaaaaaaaaaaaaaaaaaaab".to_vec())]);
    let query = Query::new(&["no", "maybe", "yes"], &[b"r"], attributes).expect("a query");
    let _ = store.query(&query);
});
