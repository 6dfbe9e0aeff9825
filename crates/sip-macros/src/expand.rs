//! From a checked contract to its module: marker types for the states, two endpoint types with the operations
//! that each state allows, and an enum for what each state may bring.
//!
//! The generated `unsafe` rests on one fact: an endpoint's type names the state it is in. Messages travel by
//! number; numbers are unique in a contract, so a payload's type follows from the number alone.

use proc_macro2::{Literal, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Type};

use crate::graph::{Bounds, Side};
use crate::syntax::{Contract, Message, State};

pub(crate) fn module(contract: &Contract, bounds: Bounds) -> TokenStream {
    let Contract {
        attributes,
        visibility,
        name,
        ..
    } = contract;
    let info = info(contract, bounds);
    let states = contract.states.iter().map(state_marker);
    let endpoints = [Side::Client, Side::Server].map(endpoint);
    let operations = numbered(contract).map(|(state, first)| {
        let operations = Operations {
            contract,
            state,
            index: index_of(contract, state),
            first,
        };
        let sends = operations.sends();
        let receives = operations.receives();
        quote!(#sends #receives)
    });
    let start = &contract.states[0].name;
    quote! {
        #(#attributes)*
        #[allow(dead_code, unreachable_pub, unused_imports)]
        #visibility mod #name {
            use super::*;

            #info
            #(#states)*
            #(#endpoints)*

            /// A new channel: both its endpoints, in the state where the contract starts.
            ///
            /// # Errors
            /// The caller's share of the exchange heap, or the heap, is used up.
            pub fn channel() -> ::core::result::Result<
                (Client<#start>, Server<#start>),
                ::mullion_sip::exchange::HeapError,
            > {
                let (client, server) = ::mullion_sip::__private::channel::<Contract>()?;
                Ok((Client::wrap(client), Server::wrap(server)))
            }

            #(#operations)*
        }
    }
}

/// Each state with the number of its first message.
fn numbered(contract: &Contract) -> impl Iterator<Item = (&State, u16)> {
    contract.states.iter().scan(0, |next, state| {
        let first = *next;
        *next += state.messages.len() as u16;
        Some((state, first))
    })
}

fn index_of(contract: &Contract, state: &State) -> u16 {
    let same = |other: &State| other.name == state.name;
    contract.states.iter().position(same).unwrap_or_default() as u16
}

/// The contract in one spelling, whatever its layout and comments: what the digest covers.
fn canonical(contract: &Contract) -> String {
    let mut text = format!("contract {}", contract.name);
    if contract.endless.is_some() {
        text += " endless";
    }
    for state in &contract.states {
        text += &format!("\n{}: {}", state.name, state.sender.name());
        for message in &state.messages {
            let payload = message.payload.as_ref().map_or(String::new(), |payload| {
                format!("({})", payload.to_token_stream())
            });
            text += &format!("\n  {}{payload} -> {}", message.name, message.next.0);
        }
    }
    text + "\n"
}

fn payload(message: &Message) -> Type {
    let unit = || syn::parse_quote!(());
    message.payload.clone().unwrap_or_else(unit)
}

/// The static description that a channel carries with it, and that both sides compare when they bind.
fn info(contract: &Contract, bounds: Bounds) -> TokenStream {
    let text = canonical(contract);
    let name = contract.name.to_string();
    let payloads: Vec<Type> = contract
        .states
        .iter()
        .flat_map(|state| state.messages.iter().map(payload))
        .collect();
    // A contract may send its own endpoints: their digest is this very one, so the text must do for them.
    let foreign = payloads.iter().filter(|payload| !names_own(payload));
    let checks = payloads.iter().map(|payload| {
        quote_spanned!(payload.span()=> ::mullion_sip::__private::must_be_exchange::<#payload>();)
    });
    let numbers: Vec<Literal> = (0..payloads.len())
        .map(|number| Literal::u16_unsuffixed(number as u16))
        .collect();
    let steps = contract
        .states
        .iter()
        .zip(0u16..)
        .flat_map(|(state, from)| {
            state.messages.iter().map(move |message| {
                let next = contract
                    .target(&message.next)
                    .map_or(u16::MAX, |next| next as u16);
                quote!(::mullion_sip::__private::Step { from: #from, next: #next })
            })
        });
    let ring = |receiver: Side, bound: usize| {
        let incoming = contract
            .states
            .iter()
            .filter(|state| state.sender != receiver)
            .flat_map(|state| state.messages.iter().map(payload));
        quote! {
            ::mullion_sip::__private::Ring::new(#bound, &[
                #(::mullion_sip::__private::slot::<#incoming>()),*
            ])
        }
    };
    let to_client = ring(Side::Client, bounds.to_client);
    let to_server = ring(Side::Server, bounds.to_server);
    let states = contract.states.iter().map(|state| {
        let (name, sender) = (state.name.to_string(), side(state.sender));
        quote!((#name, ::mullion_sip::channel::Side::#sender))
    });
    quote! {
        /// The contract as a type: its text, digest and queues are in its
        /// [`INFO`](::mullion_sip::channel::Contract::INFO).
        #[derive(Debug)]
        pub enum Contract {}

        const _: fn() = || { #(#checks)* };

        // SAFETY: the bounds are those of the state machine that the operations below keep to, the slots have
        // room for every message of their direction, and `visit` knows each number's payload.
        unsafe impl ::mullion_sip::channel::Contract for Contract {
            const INFO: &'static ::mullion_sip::channel::Info =
                &::mullion_sip::__private::info(
                    #name,
                    #text,
                    &[#(<#foreign as ::mullion_sip::Exchange>::DIGEST),*],
                    &[#(#states),*],
                    [#to_client, #to_server],
                    {
                        /// # Safety
                        /// `payload` points to the payload of a message with this number.
                        unsafe fn visit(
                            number: u16,
                            payload: *const u8,
                            visitor: &mut dyn ::mullion_sip::__private::Visitor,
                        ) {
                            match number {
                                // SAFETY: by the caller.
                                #(#numbers => unsafe {
                                    ::mullion_sip::__private::visit_at::<#payloads>(payload, visitor)
                                },)*
                                _ => {}
                            }
                        }
                        visit
                    },
                    ::mullion_sip::__private::Wire {
                        steps: &[#(#steps),*],
                        encode: {
                            /// # Safety
                            /// `payload` points to the payload of a message with this number.
                            unsafe fn encode(
                                number: u16,
                                payload: *const u8,
                                to: &mut ::mullion_sip::__private::Writer<'_>,
                            ) -> ::core::result::Result<(), ::mullion_sip::__private::EncodeError> {
                                match number {
                                    // SAFETY: by the caller.
                                    #(#numbers => unsafe {
                                        ::mullion_sip::__private::encode_at::<#payloads>(payload, to)
                                    },)*
                                    _ => ::core::result::Result::Ok(()),
                                }
                            }
                            encode
                        },
                        decode: {
                            /// # Safety
                            /// `payload` points to room for the payload of a message with this number.
                            unsafe fn decode(
                                number: u16,
                                payload: *mut u8,
                                from: &mut ::mullion_sip::__private::Reader<'_>,
                            ) -> ::core::result::Result<(), ::mullion_sip::__private::DecodeError> {
                                match number {
                                    // SAFETY: by the caller.
                                    #(#numbers => unsafe {
                                        ::mullion_sip::__private::decode_at::<#payloads>(payload, from)
                                    },)*
                                    _ => ::core::result::Result::Err(
                                        ::mullion_sip::__private::DecodeError::Invalid("message of the contract"),
                                    ),
                                }
                            }
                            decode
                        },
                    },
                );
        }
    }
}

/// Whether a payload names an endpoint of this contract: `Client` or `Server` at the beginning of a path.
fn names_own(payload: &Type) -> bool {
    fn find(tokens: TokenStream) -> bool {
        let mut in_path = false;
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(ident) => {
                let begins = !std::mem::replace(&mut in_path, false);
                begins && (ident == "Client" || ident == "Server")
            }
            TokenTree::Group(group) => find(group.stream()),
            TokenTree::Punct(punct) => {
                in_path = punct.as_char() == ':';
                false
            }
            TokenTree::Literal(_) => false,
        })
    }
    find(payload.to_token_stream())
}

fn side(side: Side) -> Ident {
    match side {
        Side::Client => format_ident!("Client"),
        Side::Server => format_ident!("Server"),
    }
}

fn state_marker(state: &State) -> TokenStream {
    let State {
        attributes, name, ..
    } = state;
    let documentation = format!("State `{name}`: the {} sends.", state.sender.name());
    quote! {
        #[doc = #documentation]
        #(#attributes)*
        #[derive(Debug)]
        pub enum #name {}
    }
}

/// `Client` or `Server`, generic over the state.
fn endpoint(side_of: Side) -> TokenStream {
    let name = side(side_of);
    let index = side_of as usize;
    let documentation = format!(
        "The {}'s endpoint, in state `S`. Dropping it is [`ChannelClosed`](::mullion_sip::channel::ChannelClosed) \
         at its peer.",
        side_of.name()
    );
    quote! {
        #[doc = #documentation]
        #[must_use = "dropping an endpoint closes the channel"]
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct #name<S>(
            ::mullion_sip::__private::Endpoint<Contract, #index>,
            ::core::marker::PhantomData<fn() -> S>,
        );

        impl<S> #name<S> {
            fn wrap(endpoint: ::mullion_sip::__private::Endpoint<Contract, #index>) -> Self {
                Self(endpoint, ::core::marker::PhantomData)
            }
        }

        // SAFETY: an endpoint is one handle, which visits itself.
        unsafe impl<S: 'static> ::mullion_sip::exchange::Handles for #name<S> {
            const HOLDS: bool = true;
            fn visit<V: ::mullion_sip::__private::Visitor + ?Sized>(&self, visitor: &mut V) {
                ::mullion_sip::exchange::Handles::visit(&self.0, visitor);
            }
        }
    }
}

/// What the two endpoints can do in one state.
struct Operations<'a> {
    contract: &'a Contract,
    state: &'a State,
    index: u16,
    /// The number of the state's first message.
    first: u16,
}

impl Operations<'_> {
    fn messages(&self) -> impl Iterator<Item = (&Message, u16)> {
        self.state.messages.iter().zip(self.first..)
    }

    /// The number and the name of the state that a message leads to.
    fn next(&self, message: &Message) -> Option<(u16, &Ident)> {
        let next = self.contract.target(&message.next)?;
        Some((next as u16, &self.contract.states[next].name))
    }

    fn sends(&self) -> TokenStream {
        let sender = side(self.state.sender);
        let (name, index) = (&self.state.name, self.index);
        let sends = self
            .messages()
            .map(|(message, number)| self.send(message, number));
        let which = format!("{} in state {name}", self.state.sender.name());
        quote! {
            impl #sender<#name> {
                #(#sends)*

                /// Forgets contract and state, to be passed where types do not reach.
                pub fn into_any(self) -> ::mullion_sip::channel::AnyEndpoint {
                    self.0.into_any()
                }

                /// An endpoint of this contract, side and state.
                ///
                /// # Errors
                /// It is another's: gives it back.
                pub fn from_any(
                    any: ::mullion_sip::channel::AnyEndpoint,
                ) -> ::core::result::Result<Self, ::mullion_sip::channel::Mismatch> {
                    any.narrow(#index).map(Self::wrap)
                }
            }

            // SAFETY: in this state its peer waits, so nothing is on its way to it (see `mullion_sip::channel`);
            // the digest covers contract, side and state.
            unsafe impl ::mullion_sip::Exchange for #sender<#name> {
                const DIGEST: ::mullion_sip::Digest = ::mullion_sip::Digest::new()
                    .text(#which)
                    .digest(<Contract as ::mullion_sip::channel::Contract>::INFO.digest)
                    .finish();
                const PLAIN: bool = false;

                fn encode(
                    &self,
                    to: &mut ::mullion_sip::__private::Writer<'_>,
                ) -> ::core::result::Result<(), ::mullion_sip::__private::EncodeError> {
                    self.0.encode(to)
                }

                fn decode(
                    from: &mut ::mullion_sip::__private::Reader<'_>,
                ) -> ::core::result::Result<Self, ::mullion_sip::__private::DecodeError> {
                    ::mullion_sip::__private::Endpoint::decode(#index, from).map(Self::wrap)
                }
            }
        }
    }

    fn send(&self, message: &Message, number: u16) -> TokenStream {
        let method = snake_case(&message.name);
        let (attributes, payload) = (&message.attributes, &message.payload);
        let argument = payload.as_ref().map(|payload| quote!(, message: #payload));
        let value = payload.as_ref().map_or(quote!(()), |_| quote!(message));
        let sender = side(self.state.sender);
        let (result, send) = match self.next(message) {
            Some((index, next)) => (
                quote!(#sender<#next>),
                quote!(self.0.send(#number, #index, #value).map(#sender::wrap)),
            ),
            None => (quote!(()), quote!(self.0.send_last(#number, #value))),
        };
        let documentation = format!(
            "Sends `{}` and goes on to `{}`. Neither blocks nor allocates.",
            message.name, message.next.0
        );
        quote! {
            #[doc = #documentation]
            #(#attributes)*
            ///
            /// # Errors
            /// The peer has gone; the message is dropped.
            #[inline(always)]
            pub fn #method(
                self #argument
            ) -> ::core::result::Result<#result, ::mullion_sip::channel::ChannelClosed> {
                // SAFETY: the contract allows this message in this state, and leads to that one.
                unsafe { #send }
            }
        }
    }

    fn receives(&self) -> TokenStream {
        let receiver = side(self.state.sender.peer());
        let (name, index) = (&self.state.name, self.index);
        let message = format_ident!("{name}Message");
        let documentation = format!(
            "What the {} may receive in state `{name}`, with the endpoint in its next state.",
            self.state.sender.peer().name()
        );
        let variants = self.messages().map(|(message, _)| {
            let Message {
                name,
                attributes,
                payload,
                ..
            } = message;
            let next = self.next(message).map(|(_, next)| quote!(#receiver<#next>));
            let fields: Vec<TokenStream> = payload
                .iter()
                .map(|payload| quote!(#payload))
                .chain(next)
                .collect();
            let fields = (!fields.is_empty()).then(|| quote!((#(#fields),*)));
            let documentation = format!("Goes on to `{}`.", message.next.0);
            quote!(#(#attributes)* #[doc = #documentation] #name #fields)
        });
        let names = self.messages().map(|(message, _)| {
            let (name, text) = (&message.name, message.name.to_string());
            quote!(Self::#name { .. } => #text)
        });
        let arms = self.messages().map(|(received, number)| {
            let name = &received.name;
            let payload = &received.payload;
            let kind = payload
                .as_ref()
                .map_or(quote!(()), |payload| quote!(#payload));
            let value = payload.iter().map(|_| quote!(value));
            let binding = payload.as_ref().map_or(quote!(()), |_| quote!(value));
            match self.next(received) {
                Some((index, _)) => quote! {
                    #number => {
                        // SAFETY: that message was found, which carries this type and leads to that state.
                        let (#binding, endpoint) = unsafe { endpoint.take::<#kind>(#index) };
                        Ok(#message::#name(#(#value,)* #receiver::wrap(endpoint)))
                    }
                },
                None => {
                    let value = payload.as_ref().map(|_| quote!((value)));
                    quote! {
                        #number => {
                            // SAFETY: that message was found, which carries this type and is the last.
                            let #binding = unsafe { endpoint.take_last::<#kind>() };
                            Ok(#message::#name #value)
                        }
                    }
                }
            }
        });
        quote! {
            #[doc = #documentation]
            #[allow(clippy::large_enum_variant)]
            // All payloads begin at multiples of eight. Where the compiler lays them out, the fields of one lie across those
            // of another, and it moves each in pieces so small that a processor does not hand them on as one.
            #[repr(u64)]
            pub enum #message { #(#variants),* }

            /// Its name; payloads need not be printable.
            impl ::core::fmt::Debug for #message {
                fn fmt(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    formatter.write_str(match self { #(#names),* })
                }
            }

            impl #receiver<#name> {
                /// Waits for the next message.
                ///
                /// # Errors
                /// The peer has gone and everything it sent has been received.
                #[inline(always)]
                pub fn recv(self) -> ::core::result::Result<#message, ::mullion_sip::channel::ChannelClosed> {
                    let number = self.0.wait()?;
                    self.open(number)
                }

                /// The next message if there is one already.
                ///
                /// # Errors
                /// There is none yet (which gives the endpoint back), or the peer has gone.
                #[inline]
                pub fn try_recv(
                    self,
                ) -> ::core::result::Result<#message, ::mullion_sip::channel::TryRecvError<Self>> {
                    match self.0.poll()? {
                        Some(number) => Ok(self.open(number)?),
                        None => Err(::mullion_sip::channel::TryRecvError::Empty(self)),
                    }
                }

                /// Waits for the next message, but not longer than `timeout`.
                ///
                /// # Errors
                /// There is none yet (which gives the endpoint back), or the peer has gone.
                pub fn recv_timeout(
                    self,
                    timeout: ::core::time::Duration,
                ) -> ::core::result::Result<#message, ::mullion_sip::channel::TryRecvError<Self>> {
                    match self.0.wait_for(timeout)? {
                        Some(number) => Ok(self.open(number)?),
                        None => Err(::mullion_sip::channel::TryRecvError::Empty(self)),
                    }
                }

                #[inline(always)]
                fn open(
                    self,
                    number: u16,
                ) -> ::core::result::Result<#message, ::mullion_sip::channel::ChannelClosed> {
                    let endpoint = self.0;
                    match number {
                        #(#arms)*
                        _ => Err(endpoint.violated()),
                    }
                }

                /// Forgets contract and state, to be passed where types do not reach.
                pub fn into_any(self) -> ::mullion_sip::channel::AnyEndpoint {
                    self.0.into_any()
                }

                /// An endpoint of this contract, side and state.
                ///
                /// # Errors
                /// It is another's: gives it back.
                pub fn from_any(
                    any: ::mullion_sip::channel::AnyEndpoint,
                ) -> ::core::result::Result<Self, ::mullion_sip::channel::Mismatch> {
                    any.narrow(#index).map(Self::wrap)
                }
            }

            impl ::mullion_sip::channel::Incoming for #receiver<#name> {
                fn port(&self) -> ::mullion_sip::channel::Port<'_> {
                    self.0.port()
                }
            }
        }
    }
}

/// `ReadLine` as a method: `read_line`, or `r#move` where it would be a keyword.
fn snake_case(name: &Ident) -> Ident {
    let mut text = String::new();
    for letter in name.to_string().trim_start_matches("r#").chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    syn::parse_str::<Ident>(&text).map_or_else(
        |_| Ident::new_raw(&text, name.span()),
        |_| Ident::new(&text, name.span()),
    )
}
