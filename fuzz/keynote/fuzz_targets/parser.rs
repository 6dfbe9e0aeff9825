//! Any text: the parser ends, and so does a query over what it accepts, within a stranger's budget;
//! what was answered is explained.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mullion_trust::keynote::{Attributes, Query, Store, Work, parse_all, parse_each, posix_match};

fuzz_target!(|text: &[u8]| {
    let mut store = Store::default();
    for assertion in parse_all(text).unwrap_or_default() {
        store.add_policy(assertion, "fuzz");
    }
    let attributes = Attributes::from([("a".to_owned(), b"aaaaaaaaaaaaaaaaaaaaaaaab".to_vec())]);
    let query = Query::new(&["no", "maybe", "yes"], &[b"r"], attributes).expect("a query");
    let mut work = Work::of(Work::STRANGER);
    if let Ok(answer) = store.query(&query, &mut work) {
        for (id, _) in answer.considered {
            let _ = mullion_trust::why(&store, id, &query, &mut work);
        }
    }
    let mut work = Work::of(Work::STRANGER);
    let _ = parse_each(text, &mut work);
    if let Some((pattern, text)) = text.split_at_checked(text.len() / 2) {
        let _ = posix_match(pattern, text, &mut work);
    }
});
