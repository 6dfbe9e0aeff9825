//! Addresses of thunks of imports come back. (A file of its own: domains of other tests take some, too.)

mod module;

use module::{function, module};
use mullion_word_runtime::{FunctionPolicy, Host, LoadError, Policy};

#[test]
fn what_an_unloaded_domain_and_a_failed_load_had_comes_back() {
    const ROUNDS: usize = 50;
    const PAGE: u64 = 4096;
    // Three pages of thunks.
    let imports: String = (0..700).map(|one| format!("import i{one}\n")).collect();
    let text = format!("{imports} gate where\n mov slot.i699(%rip), %rax\n ret");
    let module = module("imports", &text);
    let host = Host::new().unwrap();
    let mut places = Vec::new();
    for _ in 0..ROUNDS {
        let nobody = Policy::new().export("nobody", FunctionPolicy::default());
        let refused = host.load(&module, nobody);
        assert!(matches!(refused, Err(LoadError::NoExport { .. })));
        let domain = host.load(&module, Policy::new()).unwrap();
        let of: extern "C" fn() -> u64 = function(&domain, "where");
        places.push(of());
        domain.unload().unwrap();
        assert_eq!(of(), 0, "its gates answer, by its first thunks");
    }
    let (first, last) = (places.iter().min().unwrap(), places.iter().max().unwrap());
    let pages = (last - first) / PAGE;
    assert!(pages <= ROUNDS as u64 + 2, "{pages} pages are gone");
}
