//! `derive(Exchange)`: a type may be sent if all its fields may, and if nothing runs when it is dropped.
//!
//! The digest covers names, order, types, offsets, size and alignment. A field that mentions the type itself
//! (`next: Option<ExBox<Node>>`) goes in by its type's text, as does a field marked `#[exchange(by_name)]`,
//! since constants cannot be circular.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Data, DeriveInput, Error, Field, Fields, GenericParam, Generics, Index, Member, Result, Type,
    parse_quote,
};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    refuse_lifetimes(&input.generics)?;
    let body = match &input.data {
        Data::Struct(data) => structure(input, &data.fields)?,
        Data::Enum(data) => enumeration(input, data)?,
        Data::Union(_) => {
            return Err(Error::new(
                input.ident.span(),
                "a union cannot be sent: nobody knows which of its fields is there",
            ));
        }
    };
    let Body {
        fields,
        visit,
        digest,
        plain,
        encode,
        decode,
    } = body;
    let name = &input.ident;
    let mut generics = input.generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(::mullion_sip::Exchange));
    }
    let types: Vec<&Type> = fields.iter().map(|field| &field.ty).collect();
    let own = name.to_string();
    let (recursive, others): (Vec<&Type>, Vec<&Type>) =
        types.iter().partition(|kind| mentions(kind, &own));
    // Asked for once, at the field, so that there is one error and it points there. A field that mentions the
    // type itself cannot be a condition for the type; it is asked for in `check`.
    let conditions = &mut generics.make_where_clause().predicates;
    for kind in &others {
        let condition = quote_spanned!(kind.span()=> #kind: ::mullion_sip::Exchange);
        conditions.push(syn::parse2(condition)?);
    }
    let checks = recursive.iter().map(
        |kind| quote_spanned!(kind.span()=> ::mullion_sip::__private::must_be_exchange::<#kind>();),
    );
    let is_recursive = !recursive.is_empty();
    let (implementation, arguments, clause) = generics.split_for_impl();
    Ok(quote! {
        // SAFETY: every field is visited; every field may be sent, which `check` asks of the compiler; the type
        // has no destructor of its own, which the two implementations of `NoDrop` would show.
        #[allow(trivial_bounds)]
        unsafe impl #implementation ::mullion_sip::exchange::Handles for #name #arguments #clause {
            const HOLDS: bool = #is_recursive
                #(|| <#others as ::mullion_sip::exchange::Handles>::HOLDS)*;

            #[inline]
            fn visit<V: ::mullion_sip::__private::Visitor + ?Sized>(&self, visitor: &mut V) {
                #visit
            }
        }

        // SAFETY: as above; the digest covers the layout; it is plain if its fields are and fill it.
        #[allow(trivial_bounds)]
        unsafe impl #implementation ::mullion_sip::Exchange for #name #arguments #clause {
            const DIGEST: ::mullion_sip::Digest = #digest;
            const PLAIN: bool = #plain;

            #[inline]
            fn encode(
                &self,
                to: &mut ::mullion_sip::__private::Writer<'_>,
            ) -> ::core::result::Result<(), ::mullion_sip::__private::EncodeError> {
                #encode
            }

            #[inline]
            fn decode(
                from: &mut ::mullion_sip::__private::Reader<'_>,
            ) -> ::core::result::Result<Self, ::mullion_sip::__private::DecodeError> {
                #decode
            }
        }

        const _: () = {
            #[allow(dead_code, trivial_bounds)]
            fn check #implementation () #clause { #(#checks)* }

            trait NoDrop {}
            #[allow(drop_bounds)]
            impl<T: ::core::ops::Drop> NoDrop for T {}
            #[allow(trivial_bounds)]
            impl #implementation NoDrop for #name #arguments #clause {}
        };
    })
}

/// What depends on the kind of type.
struct Body<'a> {
    fields: Vec<&'a Field>,
    visit: TokenStream,
    digest: TokenStream,
    plain: TokenStream,
    encode: TokenStream,
    decode: TokenStream,
}

fn structure<'a>(input: &DeriveInput, fields: &'a Fields) -> Result<Body<'a>> {
    let name = input.ident.to_string();
    let members: Vec<Member> = fields.members().collect();
    let mut digest = start(&format!("struct {name}"));
    for (field, member) in fields.iter().zip(&members) {
        let label = member.to_token_stream().to_string();
        let kind = field_digest(field, &name)?;
        digest.extend(quote! {
            .text(#label)
            .number(::core::mem::offset_of!(Self, #member) as u64)
            #kind
        });
    }
    digest.extend(quote!(.finish()));
    let types: Vec<&Type> = fields.iter().map(|field| &field.ty).collect();
    // A type that holds itself holds it in a box, which is not plain; to ask would be circular.
    let plain = if types.iter().any(|kind| mentions(kind, &name)) {
        quote!(false)
    } else {
        quote! {
            true #(&& <#types as ::mullion_sip::Exchange>::PLAIN)*
                && 0 #(+ ::core::mem::size_of::<#types>())* == ::core::mem::size_of::<Self>()
        }
    };
    Ok(Body {
        plain,
        encode: quote! {
            if <Self as ::mullion_sip::Exchange>::PLAIN {
                return to.plain(::core::slice::from_ref(self));
            }
            #(::mullion_sip::Exchange::encode(&self.#members, to)?;)*
            ::core::result::Result::Ok(())
        },
        decode: quote! {
            if <Self as ::mullion_sip::Exchange>::PLAIN {
                return from.value();
            }
            ::core::result::Result::Ok(Self {
                #(#members: <#types as ::mullion_sip::Exchange>::decode(from)?,)*
            })
        },
        fields: fields.iter().collect(),
        visit: quote!(#(::mullion_sip::exchange::Handles::visit(&self.#members, visitor);)*),
        digest,
    })
}

fn enumeration<'a>(input: &DeriveInput, data: &'a syn::DataEnum) -> Result<Body<'a>> {
    let name = input.ident.to_string();
    let Some(representation) = representation(input)? else {
        return Err(Error::new(
            input.ident.span(),
            "write #[repr(u8)] or #[repr(C)] above an enum that is sent: both sides must agree on its layout",
        ));
    };
    let mut digest = start(&format!("enum {name} repr {representation}"));
    let mut arms = TokenStream::new();
    let mut writes = TokenStream::new();
    let mut reads = TokenStream::new();
    for (variant, number) in data.variants.iter().zip(0u16..) {
        let (label, ident) = (variant.ident.to_string(), &variant.ident);
        digest.extend(quote!(.text(#label)));
        if let Some((_, value)) = &variant.discriminant {
            let value = value.to_token_stream().to_string();
            digest.extend(quote!(.text(#value)));
        }
        let mut patterns = Vec::new();
        let mut names = Vec::new();
        let mut kinds = Vec::new();
        let mut members = Vec::new();
        for (position, field) in variant.fields.iter().enumerate() {
            let binding = format_ident!("field_{position}");
            let member = field
                .ident
                .clone()
                .map_or(Member::Unnamed(Index::from(position)), Member::Named);
            let kind = field_digest(field, &name)?;
            digest.extend(quote!(.text("field") #kind));
            patterns.push(quote!(#member: #binding));
            names.push(binding);
            kinds.push(&field.ty);
            members.push(member);
        }
        writes.extend(quote! {
            Self::#ident { #(#patterns),* } => {
                to.bytes(&#number.to_le_bytes())?;
                #(::mullion_sip::Exchange::encode(#names, to)?;)*
            }
        });
        reads.extend(quote! {
            #number => Self::#ident {
                #(#members: <#kinds as ::mullion_sip::Exchange>::decode(from)?,)*
            },
        });
        arms.extend(quote! {
            Self::#ident { #(#patterns),* } => {
                #(::mullion_sip::exchange::Handles::visit(#names, visitor);)*
            }
        });
    }
    digest.extend(quote!(.finish()));
    Ok(Body {
        fields: data
            .variants
            .iter()
            .flat_map(|variant| &variant.fields)
            .collect(),
        visit: quote!(match self { #arms }),
        digest,
        plain: quote!(false),
        encode: quote! {
            match self { #writes }
            ::core::result::Result::Ok(())
        },
        decode: quote! {
            ::core::result::Result::Ok(match u16::from_le_bytes(from.array()?) {
                #reads
                _ => return ::core::result::Result::Err(
                    ::mullion_sip::__private::DecodeError::Invalid(#name),
                ),
            })
        },
    })
}

fn start(what: &str) -> TokenStream {
    quote! {
        ::mullion_sip::Digest::new()
            .text(#what)
            .number(::core::mem::size_of::<Self>() as u64)
            .number(::core::mem::align_of::<Self>() as u64)
    }
}

/// The layout's representation as written, if the attribute fixes one.
fn representation(input: &DeriveInput) -> Result<Option<String>> {
    let mut found = None;
    for attribute in &input.attrs {
        if attribute.path().is_ident("repr") {
            attribute.parse_nested_meta(|meta| {
                if let Some(name) = meta.path.get_ident()
                    && name != "align"
                {
                    found = Some(name.to_string());
                }
                if meta.input.peek(syn::token::Paren) {
                    let content;
                    syn::parenthesized!(content in meta.input);
                    content.parse::<TokenStream>()?;
                }
                Ok(())
            })?;
        }
    }
    Ok(found)
}

fn field_digest(field: &Field, own: &str) -> Result<TokenStream> {
    let kind = &field.ty;
    if by_name(field)? || mentions(kind, own) {
        let text = kind.to_token_stream().to_string();
        return Ok(quote!(.text(#text).number(::core::mem::size_of::<#kind>() as u64)));
    }
    Ok(quote!(.digest(<#kind as ::mullion_sip::Exchange>::DIGEST)))
}

fn by_name(field: &Field) -> Result<bool> {
    let mut by_name = false;
    for attribute in &field.attrs {
        if attribute.path().is_ident("exchange") {
            attribute.parse_nested_meta(|meta| {
                by_name = meta.path.is_ident("by_name");
                if by_name {
                    Ok(())
                } else {
                    Err(meta.error("the only attribute here is `by_name`"))
                }
            })?;
        }
    }
    Ok(by_name)
}

fn refuse_lifetimes(generics: &Generics) -> Result<()> {
    for parameter in &generics.params {
        if let GenericParam::Lifetime(lifetime) = parameter {
            return Err(Error::new(
                lifetime.span(),
                "a type with a lifetime borrows from its process and cannot be sent",
            ));
        }
    }
    Ok(())
}

/// Whether `name` or `Self` stands anywhere in a type.
fn mentions(kind: &Type, name: &str) -> bool {
    fn find(tokens: TokenStream, name: &str) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(ident) => ident == name || ident == "Self",
            TokenTree::Group(group) => find(group.stream(), name),
            _ => false,
        })
    }
    find(kind.to_token_stream(), name)
}
