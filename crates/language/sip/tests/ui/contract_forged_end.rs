//! Endpoints of another type under the name that `contract!` uses are no endpoints: where the contract sends its own, they
//! do not compile.

extern crate mullion_sip as real;
extern crate self as mullion_sip;

pub use real::Exchange;

pub mod exchange {
    pub use real::exchange::*;
}

pub mod channel {
    pub use real::channel::{ChannelClosed, Contract, Incoming, Mismatch, Port, Side, TryRecvError};

    pub struct AnyEndpoint;

    impl AnyEndpoint {
        pub fn narrow<E>(self) -> Result<E, Mismatch> {
            loop {}
        }
    }
}

pub mod __private {
    pub use real::__private::*;
    use real::channel::{ChannelClosed, Contract, Port};
    use real::exchange::HeapError;

    /// A number that says it is an endpoint.
    #[derive(real::Exchange)]
    pub struct Number(u64);

    pub type Endpoint<C, const SIDE: usize, S> = <(C, S) as Numbered<SIDE>>::Number;

    pub trait Numbered<const SIDE: usize> {
        type Number;
    }

    impl<C, S, const SIDE: usize> Numbered<SIDE> for (C, S) {
        type Number = Number;
    }

    impl std::fmt::Debug for Number {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            Ok(())
        }
    }

    impl Number {
        pub fn send<M: Message>(self, _: M::Payload) -> Result<Number, ChannelClosed> {
            Ok(self)
        }
        pub fn send_last<M: Message>(self, _: M::Payload) -> Result<(), ChannelClosed> {
            Ok(())
        }
        pub fn into_any(self) -> crate::channel::AnyEndpoint {
            crate::channel::AnyEndpoint
        }
        pub fn wait<A>(self) -> Result<A, ChannelClosed> {
            Err(ChannelClosed)
        }
        pub fn poll<A>(self) -> Result<Result<A, Number>, ChannelClosed> {
            Err(ChannelClosed)
        }
        pub fn wait_for<A>(self, _: std::time::Duration) -> Result<Result<A, Number>, ChannelClosed> {
            Err(ChannelClosed)
        }
        pub fn port(&self) -> Port<'_> {
            loop {}
        }
    }

    pub fn channel<C: Contract>() -> Result<(Number, Number), HeapError> {
        Ok((Number(1), Number(2)))
    }
}

real::contract! {
    pub mod ask {
        Ask: client { Give(Client<Ask>) -> end }
    }
}

fn main() {}
