//! A contract that sends its own endpoints.
//!
//! ```text
//!   Give(ExBox<Client<Ask>>)          the payload
//!        ExBox<OwnClient<Ask>>        described: "the client's end of the contract around it, in state Ask"
//! ```
//! The contract's digest covers its payloads' digests, and an endpoint's digest covers its contract's. A payload may
//! have an endpoint of the same contract in it. It is described with a marker in the endpoint's place, as a type that
//! holds itself is (`exchange::own`).

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::Type;

use super::side;
use crate::graph::Side;
use crate::syntax::Contract;

/// What a message says of its digest if its payload has endpoints of the contract itself, and the markers that this
/// needs. The markers are items of the block that the payload stands in.
pub(super) fn covered(contract: &Contract, payload: &Type) -> (TokenStream, TokenStream) {
    let tokens = payload.to_token_stream();
    let names = Names::apart_from(&tokens);
    let Some(described) = names.replaced(tokens) else {
        return Default::default();
    };
    let markers = [Side::Client, Side::Server].map(|of| marker(contract, of, names.of(of)));
    let covered = quote! {
        const COVERED: ::mullion_sip::__private::Covered<#payload> =
            <::mullion_sip::__private::Covered<#payload>>::by::<#described>();
    };
    (quote!(#(#markers)*), covered)
}

/// The markers' names: none that the payload itself could mean.
struct Names([Ident; 2]);

impl Names {
    fn apart_from(tokens: &TokenStream) -> Names {
        fn mentions(tokens: &TokenStream, name: &str) -> bool {
            tokens.clone().into_iter().any(|token| match token {
                TokenTree::Ident(ident) => ident == name,
                TokenTree::Group(group) => mentions(&group.stream(), name),
                _ => false,
            })
        }
        Names([Side::Client, Side::Server].map(|of| {
            let mut name = format!("Own{}", side(of));
            while mentions(tokens, &name) {
                name.push('_');
            }
            Ident::new(&name, Span::call_site())
        }))
    }

    fn of(&self, side: Side) -> &Ident {
        &self.0[side as usize]
    }

    /// The tokens with markers where `Client` or `Server` stand at the beginning of a path; nothing, if they do not.
    fn replaced(&self, tokens: TokenStream) -> Option<TokenStream> {
        let mut found = false;
        let mut after_colon = false;
        let mut each = Vec::new();
        for token in tokens {
            let in_path = std::mem::replace(
                &mut after_colon,
                matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ':'),
            );
            let own = [Side::Client, Side::Server].into_iter().find(
                |of| matches!(&token, TokenTree::Ident(ident) if !in_path && *ident == side(*of)),
            );
            each.push(match (own, token) {
                (Some(own), _) => {
                    found = true;
                    TokenTree::Ident(self.of(own).clone())
                }
                (None, TokenTree::Group(group)) => {
                    let inner = self.replaced(group.stream());
                    found |= inner.is_some();
                    let inner = inner.unwrap_or_else(|| group.stream());
                    TokenTree::Group(Group::new(group.delimiter(), inner))
                }
                (None, other) => other,
            });
        }
        found.then(|| each.into_iter().collect())
    }
}

/// A marker for one side's endpoints, which may be sent in the states in which that side sends.
fn marker(contract: &Contract, of: Side, marker: &Ident) -> TokenStream {
    let (end, index) = (side(of), of as usize);
    let states = contract.states.iter().filter(|state| state.sender == of);
    let shapes = states.map(|state| {
        let state = &state.name;
        quote! {
            // SAFETY: its endpoint is all it has; the shape takes a function that finds it, and says which.
            unsafe impl ::mullion_sip::Exchange for #marker<#state> {
                const SHAPE: ::mullion_sip::exchange::Shape<Self> =
                    ::mullion_sip::exchange::Shape::<Self>::own_end::<Contract, #index, #state>(
                        |this: &Self| &this.0.0,
                    );
                fn encode(
                    &self,
                    to: &mut ::mullion_sip::__private::Writer<'_>,
                ) -> ::core::result::Result<(), ::mullion_sip::__private::EncodeError> {
                    ::mullion_sip::Exchange::encode(&self.0, to)
                }
                fn decode(
                    from: &mut ::mullion_sip::__private::Reader<'_>,
                ) -> ::core::result::Result<Self, ::mullion_sip::__private::DecodeError> {
                    ::core::result::Result::Ok(Self(::mullion_sip::Exchange::decode(from)?))
                }
            }
        }
    });
    quote! {
        #[allow(dead_code)]
        struct #marker<S>(#end<S>);

        // SAFETY: its one field is the endpoint, which is visited.
        unsafe impl<S: 'static> ::mullion_sip::exchange::Handles for #marker<S> {
            const HOLDS: bool = true;
            fn visit<V: ::mullion_sip::__private::Visitor + ?Sized>(&self, visitor: &mut V) {
                ::mullion_sip::exchange::Handles::visit(&self.0, visitor);
            }
        }

        #(#shapes)*
    }
}
