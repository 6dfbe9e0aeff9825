//! The macros of `mullion-sip`, which exports and documents them for its users.
//!
//! `contract!` reads a state machine (`syntax`), refuses what could deadlock or flood (`graph`), and writes
//! one module of endpoint types (`expand`). `derive(Exchange)` ([`exchange`]) says what may be sent.
//! The generated code calls `mullion_sip::__private` by its absolute path.

#![forbid(unsafe_code)]

use proc_macro::TokenStream;

mod exchange;
mod expand;
mod graph;
mod syntax;

/// A contract: who may send what, when. See `mullion_sip::contract`.
#[proc_macro]
pub fn contract(input: TokenStream) -> TokenStream {
    let contract = syn::parse_macro_input!(input as syntax::Contract);
    match contract.check() {
        Ok(bounds) => expand::module(&contract, bounds).into(),
        Err(error) => error.into_compile_error().into(),
    }
}

/// Lets values of a type be sent. See `mullion_sip::Exchange`.
#[proc_macro_derive(Exchange)]
pub fn exchange(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    exchange::derive(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
