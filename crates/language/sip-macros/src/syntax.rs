//! The text of a contract, and its faults as errors at the right place.
//!
//! ```text
//! contract = attributes ["pub"...] "mod" name "{" state* "}"
//! state    = attributes Name ":" ("client" | "server") "{" message,* "}"
//! message  = attributes Name ["(" type ")"] "->" (Name | "end")
//! ```

use proc_macro2::Span;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Ident, Result, Token, Type, Visibility, braced, parenthesized};

use crate::exchange::has_code;
use crate::graph::{Bounds, Fault, Graph, Node, Side, analyse};

pub(crate) struct Contract {
    /// Without `#[endless]`.
    pub(crate) attributes: Vec<Attribute>,
    /// Where `#[endless]` stands, if it does: no state leads to the end, and that is meant.
    pub(crate) endless: Option<Span>,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    pub(crate) states: Vec<State>,
}

pub(crate) struct State {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) name: Ident,
    pub(crate) sender: Side,
    pub(crate) messages: Vec<Message>,
}

pub(crate) struct Message {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) name: Ident,
    pub(crate) payload: Option<Type>,
    pub(crate) next: Next,
}

/// Where a message leads: a state's name, or `end`.
pub(crate) struct Next(pub(crate) Ident);

impl Next {
    pub(crate) fn is_end(&self) -> bool {
        self.0 == "end"
    }
}

/// Names that the generated module has for itself.
const RESERVED: [&str; 4] = ["Client", "Server", "Contract", "State"];
/// More states or messages would not fit the numbers by which they travel.
const MOST: usize = u16::MAX as usize;

impl Parse for Contract {
    fn parse(input: ParseStream) -> Result<Contract> {
        let (endless, attributes) = Attribute::parse_outer(input)?
            .into_iter()
            .partition::<Vec<_>, _>(|attribute| attribute.path().is_ident("endless"));
        let visibility = input.parse()?;
        input.parse::<Token![mod]>()?;
        let name = input.parse()?;
        let body;
        braced!(body in input);
        let mut states = Vec::new();
        while !body.is_empty() {
            states.push(body.parse()?);
        }
        Ok(Contract {
            attributes,
            endless: endless.first().map(|endless| {
                use syn::spanned::Spanned;
                endless.span()
            }),
            visibility,
            name,
            states,
        })
    }
}

impl Parse for State {
    fn parse(input: ParseStream) -> Result<State> {
        let attributes = Attribute::parse_outer(input)?;
        let name = input.parse()?;
        input.parse::<Token![:]>()?;
        let sender = input.parse::<Ident>()?;
        let sender = match sender.to_string().as_str() {
            "client" => Side::Client,
            "server" => Side::Server,
            _ => {
                return Err(Error::new(
                    sender.span(),
                    "expected `client` or `server`: the one side that sends in this state",
                ));
            }
        };
        let body;
        braced!(body in input);
        let messages = Punctuated::<Message, Token![,]>::parse_terminated(&body)?;
        Ok(State {
            attributes,
            name,
            sender,
            messages: messages.into_iter().collect(),
        })
    }
}

impl Parse for Message {
    fn parse(input: ParseStream) -> Result<Message> {
        let attributes = Attribute::parse_outer(input)?;
        let name = input.parse()?;
        let payload = if input.peek(syn::token::Paren) {
            let content;
            parenthesized!(content in input);
            let payload = content.parse()?;
            if has_code(&payload) {
                return Err(Error::new_spanned(
                    payload,
                    "a payload is written without blocks and macros: give it a name outside of the contract",
                ));
            }
            if !content.is_empty() {
                return Err(content.error("a message carries one value; make several a tuple"));
            }
            Some(payload)
        } else {
            None
        };
        input.parse::<Token![->]>()?;
        Ok(Message {
            attributes,
            name,
            payload,
            next: Next(input.parse()?),
        })
    }
}

impl Contract {
    /// The queues' bounds of a contract that keeps the rules, or the first rule that it breaks.
    pub(crate) fn check(&self) -> Result<Bounds> {
        for (index, state) in self.states.iter().enumerate() {
            self.check_state(index, state)?;
        }
        let messages: usize = self.states.iter().map(|state| state.messages.len()).sum();
        if messages > MOST {
            return Err(Error::new(self.name.span(), "too many messages"));
        }
        analyse(&self.graph()?, self.endless.is_some()).map_err(|fault| self.explain(fault))
    }

    fn check_state(&self, index: usize, state: &State) -> Result<()> {
        let name = &state.name;
        if name == "end" || RESERVED.iter().any(|reserved| name == reserved) {
            return Err(Error::new(
                name.span(),
                format!("`{name}` has a meaning of its own and cannot name a state"),
            ));
        }
        if self.states[..index].iter().any(|other| other.name == *name) {
            return Err(Error::new(
                name.span(),
                format!("two states named `{name}`"),
            ));
        }
        for (index, message) in state.messages.iter().enumerate() {
            if state.messages[..index]
                .iter()
                .any(|other| other.name == message.name)
            {
                return Err(Error::new(
                    message.name.span(),
                    format!("two messages named `{}` in state `{name}`", message.name),
                ));
            }
        }
        Ok(())
    }

    /// Which state a message leads to; `None` is the end.
    pub(crate) fn target(&self, next: &Next) -> Option<usize> {
        self.states.iter().position(|state| state.name == next.0)
    }

    fn graph(&self) -> Result<Graph> {
        let node = |state: &State| {
            let edge = |message: &Message| match self.target(&message.next) {
                None if !message.next.is_end() => Err(Error::new(
                    message.next.0.span(),
                    format!("no state is named `{}`", message.next.0),
                )),
                target => Ok(target),
            };
            Ok(Node {
                sender: state.sender,
                edges: state.messages.iter().map(edge).collect::<Result<_>>()?,
            })
        };
        Ok(Graph {
            states: self.states.iter().map(node).collect::<Result<_>>()?,
        })
    }

    fn explain(&self, fault: Fault) -> Error {
        let name = |state: usize| &self.states[state].name;
        match fault {
            Fault::Empty => Error::new(self.name.span(), "a contract needs at least one state"),
            Fault::Silent(state) => Error::new(
                name(state).span(),
                format!(
                    "deadlock: nothing can be sent in state `{}`, so both sides would wait for ever",
                    name(state)
                ),
            ),
            Fault::Unreachable(state) => Error::new(
                name(state).span(),
                format!(
                    "no message leads to state `{}`; a channel starts in `{}`",
                    name(state),
                    name(0)
                ),
            ),
            Fault::Endless(state) => Error::new(
                name(state).span(),
                format!(
                    "no way leads from state `{}` to `end`; if that is meant, write #[endless] above the contract",
                    name(state)
                ),
            ),
            Fault::EndOfEndless(state, message) => Error::new(
                self.states[state].messages[message].next.0.span(),
                "this message ends a contract that is declared #[endless]",
            ),
            Fault::Flood(states) => {
                let way: Vec<String> = states
                    .iter()
                    .chain(states.first())
                    .map(|&state| name(state).to_string())
                    .collect();
                let sender = self.states[states[0]].sender.name();
                let message = format!(
                    "the {sender} could send for ever without hearing from its peer: {}; \
                     let the peer answer somewhere on the way, so that the queue has a bound",
                    way.join(" -> ")
                );
                Error::new(name(states[0]).span(), message)
            }
        }
    }
}

impl Side {
    /// As it is written in a contract.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Side::Client => "client",
            Side::Server => "server",
        }
    }

    /// The side that receives.
    pub(crate) fn peer(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}
