//! From a checked contract to its module. The module has marker types for the states, two endpoint types with the
//! operations that each state allows. It also has an enum for what each state may bring.
//!
//! An endpoint's type names the state that it is in, and a message is a type that names its payload and the states
//! around it. The functions that send and receive are safe: the compiler compares these types. The code that is
//! generated has `unsafe impl`s and no `unsafe` block, and calls no free function in them. The reason: a program can
//! give the names `mullion_sip` and `core` to crates of its own (`mullion_sip::channel::message`).

mod own;

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{Ident, Type, Visibility, parse_quote};

use crate::graph::{Bounds, Side};
use crate::syntax::{Contract, Message, State};

pub(crate) fn module(contract: &Contract, bounds: Bounds) -> TokenStream {
    let Contract {
        attributes,
        visibility,
        name,
        ..
    } = contract;

    let inside = inside(visibility);
    let info = info(contract, bounds, &inside);
    let states = (0u16..)
        .zip(&contract.states)
        .map(|(index, state)| state_marker(index, state, &inside));
    let messages = messages(contract, &inside);
    let endpoints = [Side::Client, Side::Server].map(endpoint);
    let operations = numbered(contract).map(|(state, first)| {
        let operations = Operations {
            contract,
            state,
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
            #messages

            /// A new channel: both its endpoints, in the state where the contract starts.
            ///
            /// # Errors
            /// The caller's share of the exchange heap, or the heap, is used up.
            pub fn channel() -> ::core::result::Result<
                (Client<#start>, Server<#start>),
                ::mullion_sip::exchange::HeapError,
            > {
                let (client, server) = ::mullion_sip::__private::channel::<Contract>()?;
                Ok((Client(client), Server(server)))
            }

            #(#operations)*
        }
    }
}

/// The visibility of the module, as it is written inside of the module. What the contract consists of has it, since types
/// of payloads need not be visible anywhere else.
fn inside(module: &Visibility) -> Visibility {
    match module {
        Visibility::Inherited => parse_quote!(pub(super)),
        Visibility::Restricted(restricted) if restricted.path.is_ident("self") => {
            parse_quote!(pub(super))
        }
        Visibility::Restricted(restricted) => match restricted.path.segments.first() {
            Some(first) if first.ident == "super" => {
                let path = &restricted.path;
                parse_quote!(pub(in super::#path))
            }
            _ => module.clone(),
        },
        Visibility::Public(_) => module.clone(),
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
    let unit = || parse_quote!(());
    message.payload.clone().unwrap_or_else(unit)
}

/// What the contract is, as a type. Everything in it is a literal, or a type whose name is resolved in one place.
fn info(contract: &Contract, bounds: Bounds, visibility: &Visibility) -> TokenStream {
    let text = canonical(contract);
    let name = contract.name.to_string();
    let states = contract.states.iter().map(|state| {
        let (name, sender) = (state.name.to_string(), side(state.sender));
        quote!((#name, <::mullion_sip::channel::Side>::#sender))
    });
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
    let Bounds {
        to_client,
        to_server,
    } = bounds;
    let start = &contract.states[0].name;
    let count: usize = contract
        .states
        .iter()
        .map(|state| state.messages.len())
        .sum();
    let messages = (0..count as u16).rev().fold(quote!(()), |rest, number| {
        let message = marker_of(number);
        quote!((#message, #rest))
    });
    quote! {
        /// The contract as a type: its text, digest and queues are in its
        /// [`INFO`](::mullion_sip::channel::Contract::INFO).
        #[derive(Debug)]
        #visibility enum Contract {}

        // SAFETY: names, states, steps and messages are those of one state machine, which the macro has read and checked; the
        // types of its messages are the ones that it writes here.
        unsafe impl ::mullion_sip::channel::Contract for Contract {
            const NAME: &'static ::core::primitive::str = #name;
            const TEXT: &'static ::core::primitive::str = #text;
            const STATES: &'static [(&'static ::core::primitive::str, ::mullion_sip::channel::Side)] =
                &[#(#states),*];
            const STEPS: &'static [::mullion_sip::__private::Step] = &[#(#steps),*];
            const BOUNDS: [::core::primitive::usize; 2] = [#to_client, #to_server];
            type Start = #start;
            type Messages = #messages;
        }
    }
}

/// The type that stands for a message.
fn marker_of(number: u16) -> Ident {
    format_ident!("MessageNumber{number}")
}

/// Each message as a type, with its payload and the states around it.
fn messages(contract: &Contract, visibility: &Visibility) -> TokenStream {
    let each = numbered(contract).flat_map(|(state, first)| {
        (first..)
            .zip(&state.messages)
            .map(move |(number, message)| {
                let marker = marker_of(number);
                let from = &state.name;
                let next = match contract.target(&message.next) {
                    Some(next) => contract.states[next].name.to_token_stream(),
                    None => quote!(::mullion_sip::__private::End),
                };
                let payload = payload(message);
                let (markers, covered) = own::covered(contract, &payload);
                let documentation = format!("Message `{}` of state `{from}`.", message.name);
                quote! {
                    #[doc(hidden)]
                    #[doc = #documentation]
                    #[derive(Debug)]
                    #visibility enum #marker {}

                    const _: () = {
                        #markers

                        // SAFETY: the state machine has this message between these two states. The number is its place in the list of
                        // messages, which is written in the same order.
                        unsafe impl ::mullion_sip::__private::Message for #marker {
                            type Contract = Contract;
                            type From = #from;
                            type Next = #next;
                            type Payload = #payload;
                            #covered
                        const NUMBER: ::core::primitive::u16 = #number;
                        }
                    };
                }
            })
    });
    each.collect()
}

fn side(side: Side) -> Ident {
    match side {
        Side::Client => format_ident!("Client"),
        Side::Server => format_ident!("Server"),
    }
}

fn state_marker(index: u16, state: &State, visibility: &Visibility) -> TokenStream {
    let State {
        attributes, name, ..
    } = state;
    let documentation = format!("State `{name}`: the {} sends.", state.sender.name());
    let (sender, receiver) = (state.sender as usize, state.sender.peer() as usize);
    quote! {
        #[doc = #documentation]
        #(#attributes)*
        #[derive(Debug)]
        #visibility enum #name {}

        // SAFETY: it is the contract's state with that number, in which that side sends and the other one receives.
        unsafe impl ::mullion_sip::__private::State for #name {
            type Contract = Contract;
            const INDEX: ::core::primitive::u16 = #index;
            const SENDER: ::core::primitive::usize = #sender;
        }
        // SAFETY: the state machine has this side send in the state; the macro writes no other such line for it.
        unsafe impl ::mullion_sip::__private::Sends<#sender> for #name {}
        // SAFETY: the other side than the one that sends; the macro writes no other such line for the state.
        unsafe impl ::mullion_sip::__private::Receives<#receiver> for #name {}
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
        pub struct #name<S>(::mullion_sip::__private::Endpoint<Contract, #index, S>);

        // SAFETY: its one field is the endpoint, and all that is visited; a handle that it holds is the endpoint's.
        unsafe impl<S: 'static> ::mullion_sip::exchange::Handles for #name<S> {
            const HOLDS: ::core::primitive::bool = true;
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
    /// The number of the state's first message.
    first: u16,
}

impl Operations<'_> {
    fn messages(&self) -> impl Iterator<Item = (&Message, u16)> {
        self.state.messages.iter().zip(self.first..)
    }

    /// The name of the state that a message leads to.
    fn next(&self, message: &Message) -> Option<&Ident> {
        let next = self.contract.target(&message.next)?;
        Some(&self.contract.states[next].name)
    }

    fn sends(&self) -> TokenStream {
        let sender = side(self.state.sender);
        let name = &self.state.name;
        let sends = self
            .messages()
            .map(|(message, number)| self.send(message, number));
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
                    any.narrow().map(Self)
                }
            }

            // SAFETY: it has one field, which may be sent in this state; the shape is the field's.
            unsafe impl ::mullion_sip::Exchange for #sender<#name> {
                const SHAPE: ::mullion_sip::exchange::Shape<Self> =
                    ::mullion_sip::exchange::Shape::<Self>::wrapping(|this: &Self| &this.0);

                fn encode(
                    &self,
                    to: &mut ::mullion_sip::__private::Writer<'_>,
                ) -> ::core::result::Result<(), ::mullion_sip::__private::EncodeError> {
                    ::mullion_sip::Exchange::encode(&self.0, to)
                }

                fn decode(
                    from: &mut ::mullion_sip::__private::Reader<'_>,
                ) -> ::core::result::Result<Self, ::mullion_sip::__private::DecodeError> {
                    ::mullion_sip::Exchange::decode(from).map(Self)
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
        let marker = marker_of(number);
        let (result, send) = match self.next(message) {
            Some(next) => (
                quote!(#sender<#next>),
                quote!(self.0.send::<#marker>(#value).map(#sender)),
            ),
            None => (quote!(()), quote!(self.0.send_last::<#marker>(#value))),
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
                #send
            }
        }
    }

    fn receives(&self) -> TokenStream {
        let receiver = side(self.state.sender.peer());
        let index = self.state.sender.peer() as usize;
        let name = &self.state.name;
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
            let next = self.next(message).map(|next| quote!(#receiver<#next>));
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
            let (name, payload) = (&received.name, &received.payload);
            let marker = marker_of(number);
            let value = payload.iter().map(|_| quote!(value));
            let binding = payload.as_ref().map_or(quote!(()), |_| quote!(value));
            match self.next(received) {
                Some(_) => quote! {
                    #number => {
                        let (#binding, endpoint) = arrived.take::<#marker>();
                        Ok(#message::#name(#(#value,)* #receiver(endpoint)))
                    }
                },
                None => {
                    let value = payload.as_ref().map(|_| quote!((value)));
                    quote! {
                        #number => {
                            let #binding = arrived.take_last::<#marker>();
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
                    Self::open(self.0.wait()?)
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
                        Ok(arrived) => Ok(Self::open(arrived)?),
                        Err(endpoint) => Err(::mullion_sip::channel::TryRecvError::Empty(Self(endpoint))),
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
                        Ok(arrived) => Ok(Self::open(arrived)?),
                        Err(endpoint) => Err(::mullion_sip::channel::TryRecvError::Empty(Self(endpoint))),
                    }
                }

                #[inline(always)]
                fn open(
                    arrived: ::mullion_sip::__private::Arrived<Contract, #index, #name>,
                ) -> ::core::result::Result<#message, ::mullion_sip::channel::ChannelClosed> {
                    match arrived.number() {
                        #(#arms)*
                        _ => Err(arrived.violated()),
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
                    any.narrow().map(Self)
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
