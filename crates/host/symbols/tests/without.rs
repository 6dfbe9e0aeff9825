//! What is left when debug information is not to be read: names of the symbol table.

mod support;

use mullion_symbols::{Symbols, Unknown};
use support::compiled;

#[test]
fn nothing_but_names_is_read() {
    let image = compiled("int f(int x) { return x + 1; }\n", "c", &[]);
    let place = |symbols: &Symbols| {
        let mut all = symbols.functions();
        all.find(|function| function.name == "f").expect("f").offset
    };
    let mut whole = Symbols::new(&*image);
    let at = place(&whole);
    if cfg!(feature = "dwarf") {
        assert_eq!(whole.find(at)[0].line, Some(1));
        assert!(whole.signature(at).is_ok() && whole.steps() > 0);
    }
    let mut symbols = Symbols::without_debug_information(&*image);
    let found = symbols.find(at);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].function.as_deref(), Some("f"));
    assert_eq!((&found[0].file, found[0].line), (&None, None));
    assert_eq!(symbols.signature(at), Err(Unknown::NotRead));
    assert_eq!(symbols.steps(), 0, "not one read");
    assert!(!symbols.is_exhausted());
}
