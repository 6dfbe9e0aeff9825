//! A type that holds itself.
//!
//! ```text
//!   struct Node<T> { value: T, next: Option<ExBox<Node<T>>> }
//!                                           Self        checked: the field has this type
//!                                           Marker<Self>   described: `Enclosing` in the type's place
//! ```
//! A constant that needs itself is none, so the field's shape cannot be the field's own. The marker is a type inside
//! of one block of generated code. Program text in that block has no braces and no macros, and does not know the
//! marker's name. So nothing implements a trait for the marker but the block itself.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{DeriveInput, Error, GenericParam, Result, Type};

use super::has_code;

/// The type's own name, and what it is generic over.
pub(super) struct Own {
    name: String,
    parameters: Vec<String>,
    marker: Ident,
}

/// What stands in the type's place.
enum Place {
    Itself,
    Marked,
}

impl Own {
    pub(super) fn of(input: &DeriveInput) -> Result<Own> {
        let name = input.ident.to_string();
        let ident = |parameter: &GenericParam| match parameter {
            GenericParam::Type(kind) => kind.ident.clone(),
            GenericParam::Const(value) => value.ident.clone(),
            GenericParam::Lifetime(lifetime) => lifetime.lifetime.ident.clone(),
        };
        let parameters: Vec<Ident> = input.generics.params.iter().map(ident).collect();
        if let Some(same) = parameters.iter().find(|parameter| **parameter == name) {
            return Err(Error::new(
                same.span(),
                "a parameter with the name of its type: give it another",
            ));
        }
        let mut marker = "Enclosing".to_owned();
        let all = input.to_token_stream();
        while mentions(all.clone(), &marker) {
            marker.push('_');
        }
        Ok(Own {
            name,
            parameters: parameters.iter().map(Ident::to_string).collect(),
            marker: Ident::new(&marker, Span::call_site()),
        })
    }

    /// Whether the type itself stands somewhere in another.
    pub(super) fn is_in(&self, kind: &Type) -> bool {
        let tokens = kind.to_token_stream();
        mentions(tokens.clone(), &self.name) || mentions(tokens, "Self")
    }

    /// Describes a field that has the type itself in it: by its type with `Self` in the place, and with the marker.
    pub(super) fn described(
        &self,
        kind: &Type,
        describe: impl FnOnce(&TokenStream, &TokenStream) -> TokenStream,
    ) -> Result<TokenStream> {
        if has_code(kind) {
            return Err(Error::new(
                kind.span(),
                "a type that holds itself is written without blocks and macros here",
            ));
        }
        let itself = self.replaced(kind.to_token_stream(), &Place::Itself)?;
        let marked = self.replaced(kind.to_token_stream(), &Place::Marked)?;
        let (marker, described) = (&self.marker, describe(&itself, &marked));
        Ok(quote! {{
            struct #marker<X>(X);

            // SAFETY: its one field is all that it holds, and is visited.
            unsafe impl<X: ::mullion_sip::Exchange> ::mullion_sip::exchange::Handles for #marker<X> {
                const HOLDS: ::core::primitive::bool = true;
                fn visit<V: ::mullion_sip::__private::Visitor + ?Sized>(&self, visitor: &mut V) {
                    ::mullion_sip::exchange::Handles::visit(&self.0, visitor);
                }
            }

            // SAFETY: the marker is written inside a constant of the type around it, and stands for that type alone, whose shape
            // it says. Its one field is written and read as that type is.
            unsafe impl<X: ::mullion_sip::Exchange> ::mullion_sip::Exchange for #marker<X> {
                const SHAPE: ::mullion_sip::exchange::Shape<Self> =
                    ::mullion_sip::exchange::Shape::<Self>::enclosing();
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

            #described
        }})
    }

    /// The tokens with something else in the type's place.
    fn replaced(&self, tokens: TokenStream, place: &Place) -> Result<TokenStream> {
        let mut tokens = tokens.into_iter().peekable();
        let mut replaced = TokenStream::new();
        let mut after_colon = false;
        while let Some(token) = tokens.next() {
            let in_path = std::mem::replace(
                &mut after_colon,
                matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ':'),
            );
            match token {
                TokenTree::Ident(ident) if !in_path && ident == "Self" => {
                    replaced.extend(self.instead(place));
                }
                TokenTree::Ident(ident) if !in_path && ident == self.name => {
                    self.skip_arguments(&ident, &mut tokens)?;
                    replaced.extend(self.instead(place));
                }
                TokenTree::Group(group) => {
                    let inner = self.replaced(group.stream(), place)?;
                    replaced.extend([TokenTree::Group(Group::new(group.delimiter(), inner))]);
                }
                other => replaced.extend([other]),
            }
        }
        Ok(replaced)
    }

    fn instead(&self, place: &Place) -> TokenStream {
        let marker = &self.marker;
        match place {
            Place::Itself => quote!(Self),
            Place::Marked => quote!(#marker<Self>),
        }
    }

    /// The type's own parameters, in their order: then it is the type itself.
    fn skip_arguments(
        &self,
        at: &Ident,
        tokens: &mut impl Iterator<Item = TokenTree>,
    ) -> Result<()> {
        if self.parameters.is_empty() {
            return Ok(());
        }
        let mut wanted = vec!["<".to_owned()];
        for (index, parameter) in self.parameters.iter().enumerate() {
            wanted.extend((index > 0).then(|| ",".to_owned()));
            wanted.push(parameter.clone());
        }
        wanted.push(">".to_owned());
        for wanted in wanted {
            if tokens
                .next()
                .is_none_or(|token| token.to_string() != wanted)
            {
                return Err(Error::new(
                    at.span(),
                    "a type that holds itself holds itself with its own parameters, in their order",
                ));
            }
        }
        Ok(())
    }
}

/// Whether a name stands anywhere.
fn mentions(tokens: TokenStream, name: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == name,
        TokenTree::Group(group) => mentions(group.stream(), name),
        _ => false,
    })
}
