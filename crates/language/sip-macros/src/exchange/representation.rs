//! How an enumeration is laid out, by its `#[repr]`.

use proc_macro2::TokenStream;
use syn::{DeriveInput, Error, LitInt, Result};

/// Types that a representation can name.
const NUMBERS: [&str; 10] = [
    "u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize",
];

/// A representation that fixes the layout, whatever the compiler would like.
pub(super) struct Representation {
    /// All of it, in an order of its own.
    pub(super) text: String,
    /// The type of the discriminants as they are written.
    pub(super) number: String,
}

impl Representation {
    pub(super) fn of(input: &DeriveInput) -> Result<Representation> {
        let mut all = Vec::new();
        for attribute in &input.attrs {
            if attribute.path().is_ident("repr") {
                attribute.parse_nested_meta(|meta| {
                    let name = meta.path.require_ident()?.to_string();
                    if name == "align" {
                        let content;
                        syn::parenthesized!(content in meta.input);
                        let align: LitInt = content.parse()?;
                        all.push(format!("align {}", align.base10_digits()));
                    } else if name == "C" || NUMBERS.contains(&&*name) {
                        all.push(name);
                    } else {
                        // What is new to this macro may be anything.
                        content_of(&meta)?;
                        return Err(meta.error("an enum with this representation cannot be sent"));
                    }
                    Ok(())
                })?;
            }
        }
        let number = all.iter().find(|name| NUMBERS.contains(&&***name)).cloned();
        let number = match number {
            Some(number) => number,
            None if all.iter().any(|name| name == "C") => "isize".to_owned(),
            None => {
                return Err(Error::new(
                    input.ident.span(),
                    "write #[repr(u8)] or #[repr(C)] above an enum that is sent: both sides must agree on its layout",
                ));
            }
        };
        all.sort();
        all.dedup();
        Ok(Representation {
            text: all.join(", "),
            number,
        })
    }
}

fn content_of(meta: &syn::meta::ParseNestedMeta) -> Result<()> {
    if meta.input.peek(syn::token::Paren) {
        let content;
        syn::parenthesized!(content in meta.input);
        content.parse::<TokenStream>()?;
    }
    Ok(())
}
