//! `derive(Exchange)`: a type may be sent if all its fields may, and if nothing runs when it is dropped.
//!
//! The code that is generated describes the type to `mullion_sip::exchange::Shape`, which computes the digest. It
//! calls no free function: a program can give the names `mullion_sip` and `core` to crates of its own, but not the
//! types that the trait names. The compiler says what type a field has, from a pointer to the field.
//!
//! A field may have the type itself in it (`next: Option<ExBox<Node>>`). It is described with a marker in the type's
//! place ([`own`]). The compiler checks that the marker stands for the type itself.

mod own;
mod representation;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Data, DeriveInput, Error, Field, Fields, GenericParam, Generics, Ident, Index, Member, Result,
    Type, parse_quote,
};

use own::Own;
use representation::Representation;

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    refuse_lifetimes(&input.generics)?;
    let own = Own::of(input)?;
    let body = match &input.data {
        Data::Struct(data) => structure(input, &own, &data.fields)?,
        Data::Enum(data) => enumeration(input, &own, data)?,
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
        shape,
        encode,
        decode,
    } = body;
    let name = &input.ident;
    let mut generics = input.generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(::mullion_sip::Exchange));
    }
    // Asked for once, at the field, so that there is one error and it points there. A field that has the type itself
    // in it cannot be a condition for the type; its shape is asked for instead.
    let conditions = &mut generics.make_where_clause().predicates;
    for kind in fields.iter().map(|field| &field.ty) {
        if !own.is_in(kind) {
            let condition = quote_spanned!(kind.span()=> #kind: ::mullion_sip::Exchange);
            conditions.push(syn::parse2(condition)?);
        }
    }
    let (implementation, arguments, clause) = generics.split_for_impl();
    let count = u32::try_from(fields.len())
        .map_err(|_| Error::new(name.span(), "more fields than there are numbers"))?;
    let deepest = local("deepest");
    let depths = fields.iter().map(|field| {
        let kind = &field.ty;
        let stack = quote!(<#kind as ::mullion_sip::exchange::Handles>::STACK);
        quote!(let #deepest = if #stack > #deepest { #stack } else { #deepest };)
    });
    Ok(quote! {
        // SAFETY: every field is visited, since all are named; every field may be sent, since its shape is asked for;
        // the type has no destructor of its own, which the two implementations of `NoDrop` would show.
        #[allow(trivial_bounds)]
        unsafe impl #implementation ::mullion_sip::exchange::Handles for #name #arguments #clause {
            const HOLDS: ::core::primitive::bool = <Self as ::mullion_sip::Exchange>::SHAPE.holds();
            const STACK: ::core::primitive::u32 = {
                let #deepest = 0;
                #(#depths)*
                ::mullion_sip::exchange::Shape::<Self>::frame(#count) + #deepest
            };

            #[inline]
            fn visit<V: ::mullion_sip::__private::Visitor + ?Sized>(&self, visitor: &mut V) {
                let () = <Self as ::mullion_sip::exchange::Handles>::BOUNDED;
                #visit
            }
        }

        // SAFETY: all fields are written and read in one order, and the shape, from which the digest follows, has each of them
        // with its place; so bytes and blocks of one digest are values of one layout.
        #[allow(trivial_bounds, unreachable_patterns, clippy::empty_loop)]
        unsafe impl #implementation ::mullion_sip::Exchange for #name #arguments #clause {
            const SHAPE: ::mullion_sip::exchange::Shape<Self> = #shape;

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
    shape: TokenStream,
    encode: TokenStream,
    decode: TokenStream,
}

/// A local variable that the program's own tokens cannot mean.
fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

fn structure<'a>(input: &DeriveInput, own: &Own, fields: &'a Fields) -> Result<Body<'a>> {
    let name = plain_name(&input.ident);
    let members: Vec<Member> = fields.members().collect();
    let bindings: Vec<Ident> = (0..members.len())
        .map(|index| format_ident!("field_{index}", span = Span::mixed_site()))
        .collect();
    let (place, at, shape) = (local("place"), local("at"), local("shape"));
    let mut parts = parameters(&input.generics, &shape);
    for (field, member) in fields.iter().zip(&members) {
        let kind = &field.ty;
        let label = match member {
            Member::Named(name) => plain_name(name),
            Member::Unnamed(index) => index.index.to_string(),
        };
        parts.extend(if own.is_in(kind) {
            let described = own.described(kind, |itself, marked| {
                quote! {
                    let found: *const #itself = &raw const (*#at).#member;
                    #shape.recursive::<#itself, #marked>(#label, found)
                }
            })?;
            quote!(let #shape = unsafe { #described };)
        } else {
            let described =
                quote_spanned!(kind.span()=> #shape.field(#label, &raw const (*#at).#member));
            quote!(let #shape = unsafe { #described };)
        });
    }
    Ok(Body {
        shape: quote! {{
            let #place = ::mullion_sip::exchange::Shape::<Self>::place();
            let #at = #place.as_ptr();
            let #shape = ::mullion_sip::exchange::Shape::<Self>::structure(#name, #at);
            // SAFETY: the pointer is of a field of the type, computed from the place's own address, and is not followed.
            #parts
            #shape.finish()
        }},
        encode: quote! {
            if <Self as ::mullion_sip::Exchange>::PLAIN {
                return to.value(self);
            }
            let Self { #(#members: #bindings),* } = self;
            #(::mullion_sip::Exchange::encode(#bindings, to)?;)*
            ::core::result::Result::Ok(())
        },
        decode: quote! {
            if <Self as ::mullion_sip::Exchange>::PLAIN {
                return from.value();
            }
            ::core::result::Result::Ok(Self {
                #(#members: ::mullion_sip::Exchange::decode(from)?,)*
            })
        },
        fields: fields.iter().collect(),
        visit: quote! {
            let Self { #(#members: #bindings),* } = self;
            #(::mullion_sip::exchange::Handles::visit(#bindings, visitor);)*
        },
    })
}

fn enumeration<'a>(input: &DeriveInput, own: &Own, data: &'a syn::DataEnum) -> Result<Body<'a>> {
    let name = plain_name(&input.ident);
    let Representation { text, number } = Representation::of(input)?;
    let shape = local("shape");
    let mut parts = parameters(&input.generics, &shape);
    let mut arms = TokenStream::new();
    let mut writes = TokenStream::new();
    let mut reads = TokenStream::new();
    for (index, variant) in data.variants.iter().enumerate() {
        let index = u16::try_from(index)
            .map_err(|_| Error::new(variant.span(), "more variants than there are numbers"))?;
        let (label, ident) = (plain_name(&variant.ident), &variant.ident);
        parts.extend(match &variant.discriminant {
            Some((_, value)) => {
                let with = format_ident!("variant_{number}");
                quote!(let #shape = #shape.#with(#label, #value);)
            }
            None => quote!(let #shape = #shape.variant(#label);),
        });
        let mut patterns = Vec::new();
        let mut bindings = Vec::new();
        let mut members = Vec::new();
        for (position, field) in variant.fields.iter().enumerate() {
            let binding = format_ident!("field_{position}", span = Span::mixed_site());
            let member = field
                .ident
                .clone()
                .map_or(Member::Unnamed(Index::from(position)), Member::Named);
            let label = match &member {
                Member::Named(name) => plain_name(name),
                Member::Unnamed(index) => index.index.to_string(),
            };
            let (kind, value) = (&field.ty, local("value"));
            let find = quote!(|#value: &Self| match #value {
                Self::#ident { #member: #binding, .. } => #binding,
                _ => loop {},
            });
            parts.extend(if own.is_in(kind) {
                let described = own.described(
                    kind,
                    |itself, marked| quote!(#shape.recursive::<#itself, #marked>(#label, #find)),
                )?;
                quote!(let #shape = #described;)
            } else {
                quote_spanned!(kind.span()=> let #shape = #shape.field(#label, #find);)
            });
            patterns.push(quote!(#member: #binding));
            bindings.push(binding);
            members.push(member);
        }
        writes.extend(quote! {
            Self::#ident { #(#patterns),* } => {
                to.variant(#index)?;
                #(::mullion_sip::Exchange::encode(#bindings, to)?;)*
            }
        });
        reads.extend(quote! {
            #index => Self::#ident {
                #(#members: ::mullion_sip::Exchange::decode(from)?,)*
            },
        });
        arms.extend(quote! {
            Self::#ident { #(#patterns),* } => {
                #(::mullion_sip::exchange::Handles::visit(#bindings, visitor);)*
            }
        });
    }
    Ok(Body {
        fields: data
            .variants
            .iter()
            .flat_map(|variant| &variant.fields)
            .collect(),
        visit: quote!(match self { #arms }),
        shape: quote! {{
            let #shape = ::mullion_sip::exchange::Shape::<Self>::enumeration(#name, #text);
            #parts
            #shape.finish()
        }},
        encode: quote! {
            match self { #writes }
            ::core::result::Result::Ok(())
        },
        decode: quote! {
            ::core::result::Result::Ok(match from.variant()? {
                #reads
                _ => return ::core::result::Result::Err(
                    ::mullion_sip::__private::DecodeError::Invalid(#name),
                ),
            })
        },
    })
}

/// What the type is generic over.
fn parameters(generics: &Generics, shape: &Ident) -> TokenStream {
    let each = generics.params.iter().map(|parameter| match parameter {
        GenericParam::Type(kind) => {
            let name = &kind.ident;
            quote!(let #shape = #shape.parameter::<#name>();)
        }
        GenericParam::Const(value) => {
            let name = &value.ident;
            quote!(let #shape = #shape.number(#name as _);)
        }
        GenericParam::Lifetime(_) => TokenStream::new(),
    });
    each.collect()
}

/// A name, however it had to be written.
fn plain_name(name: &Ident) -> String {
    name.to_string().trim_start_matches("r#").to_owned()
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

/// Whether a type is written with something in it that the compiler would run or expand.
pub(crate) fn has_code(kind: &Type) -> bool {
    fn find(tokens: TokenStream) -> bool {
        use proc_macro2::{Delimiter, TokenTree};
        tokens.into_iter().any(|token| match token {
            TokenTree::Group(group) => {
                group.delimiter() == Delimiter::Brace || find(group.stream())
            }
            TokenTree::Punct(punct) => punct.as_char() == '!',
            _ => false,
        })
    }
    find(kind.to_token_stream())
}
