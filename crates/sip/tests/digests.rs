//! Two sides that disagree on anything have different digests: one contract, and each small change of it.

use std::collections::HashMap;

use mullion_sip::channel::{Contract, Side};
use mullion_sip::{Digest, Exchange, contract};

/// Contracts in modules of their own. But for one they are all named `c`, since the name counts too.
macro_rules! variants {
    ($($variant:ident $(($($item:item)*))?: $name:ident { $($contract:tt)* })*) => {
        $(mod $variant {
            #[allow(dead_code, unreachable_pub, unused_imports)]
            use super::*;
            $($($item)*)?
            contract! { $($contract)* }
        })*

        fn all() -> Vec<(&'static str, Digest)> {
            vec![$((stringify!($variant), $variant::$name::Contract::INFO.digest)),*]
        }
    };
}

variants! {
    original: c {
        pub mod c { Ask: client { Question(u32) -> Answer, Bye -> end } Answer: server { Reply(u32) -> Ask } }
    }
    another_name: d {
        pub mod d { Ask: client { Question(u32) -> Answer, Bye -> end } Answer: server { Reply(u32) -> Ask } }
    }
    another_state_name: c {
        pub mod c { Ask: client { Question(u32) -> Reply, Bye -> end } Reply: server { Reply(u32) -> Ask } }
    }
    another_message_name: c {
        pub mod c { Ask: client { Query(u32) -> Answer, Bye -> end } Answer: server { Reply(u32) -> Ask } }
    }
    another_payload: c {
        pub mod c { Ask: client { Question(i32) -> Answer, Bye -> end } Answer: server { Reply(u32) -> Ask } }
    }
    no_payload: c {
        pub mod c { Ask: client { Question -> Answer, Bye -> end } Answer: server { Reply(u32) -> Ask } }
    }
    another_target: c {
        pub mod c { Ask: client { Question(u32) -> Answer, Bye -> end } Answer: server { Reply(u32) -> end } }
    }
    another_end: c {
        pub mod c { Ask: client { Question(u32) -> Answer, Bye -> Answer } Answer: server { Reply(u32) -> end } }
    }
    other_directions: c {
        pub mod c { Ask: server { Question(u32) -> Answer, Bye -> end } Answer: client { Reply(u32) -> Ask } }
    }
    other_order_of_messages: c {
        pub mod c { Ask: client { Bye -> end, Question(u32) -> Answer } Answer: server { Reply(u32) -> Ask } }
    }
    other_order_of_states: c {
        pub mod c { Answer: server { Reply(u32) -> Ask } Ask: client { Question(u32) -> Answer, Bye -> end } }
    }
    one_more_message: c {
        pub mod c {
            Ask: client { Question(u32) -> Answer, Bye -> end }
            Answer: server { Reply(u32) -> Ask, No -> Ask }
        }
    }
    // The text is the same from here on, and what it names is not.
    a_type(
        #[derive(Exchange)] pub(crate) struct Thing { one: u32, two: u32 }
    ): c { pub mod c { Ask: client { Question(Thing) -> end } } }
    of_other_fields(
        #[derive(Exchange)] pub(crate) struct Thing { one: u32, two: i32 }
    ): c { pub mod c { Ask: client { Question(Thing) -> end } } }
    of_other_names(
        #[derive(Exchange)] pub(crate) struct Thing { one: u32, too: u32 }
    ): c { pub mod c { Ask: client { Question(Thing) -> end } } }
    of_fewer_fields(
        #[derive(Exchange)] #[repr(align(8))] pub(crate) struct Thing { one: u32 }
    ): c { pub mod c { Ask: client { Question(Thing) -> end } } }
    of_another_alignment(
        #[derive(Exchange)] #[repr(align(8))] pub(crate) struct Thing { one: u32, two: u32 }
    ): c { pub mod c { Ask: client { Question(Thing) -> end } } }
    of_another_layout(
        #[derive(Exchange)] #[repr(C)] pub(crate) struct Thing { two: u32, one: u32 }
    ): c { pub mod c { Ask: client { Question(Thing) -> end } } }
    an_enum(
        #[derive(Exchange)] #[repr(u8)] pub(crate) enum Thing { One, Two(u32) }
    ): c { pub mod c { Ask: client { Question(Thing) -> end } } }
    of_other_variants(
        #[derive(Exchange)] #[repr(u8)] pub(crate) enum Thing { One, Too(u32) }
    ): c { pub mod c { Ask: client { Question(Thing) -> end } } }
    of_other_values(
        #[derive(Exchange)] #[repr(u8)] pub(crate) enum Thing { One, Two(i32) }
    ): c { pub mod c { Ask: client { Question(Thing) -> end } } }
    of_other_numbers(
        #[derive(Exchange)] #[repr(u8)] pub(crate) enum Thing { One = 3, Two(u32) }
    ): c { pub mod c { Ask: client { Question(Thing) -> end } } }
    of_another_representation(
        #[derive(Exchange)] #[repr(i8)] pub(crate) enum Thing { One, Two(u32) }
    ): c { pub mod c { Ask: client { Question(Thing) -> end } } }
    behind_a_box(
        #[derive(Exchange)] pub(crate) struct Thing { one: mullion_sip::ExBox<u32> }
    ): c { pub mod c { Ask: client { Question(Thing) -> end } } }
    of_something_else(
        #[derive(Exchange)] pub(crate) struct Thing { one: mullion_sip::ExBox<i32> }
    ): c { pub mod c { Ask: client { Question(Thing) -> end } } }
    an_end(
        contract! { pub mod talk { Say: client { Word(u32) -> end } } }
    ): c { pub mod c { Ask: client { Question(talk::Client<talk::Say>) -> end } } }
    of_another_contract(
        contract! { pub mod talk { Say: client { Word(i32) -> end } } }
    ): c { pub mod c { Ask: client { Question(talk::Client<talk::Say>) -> end } } }
    of_one_layout(
        #[derive(Exchange)] pub(crate) struct Thing { one: u8, two: u32 }
    ): c { pub mod c { Ask: client { Question(Thing) -> end } } }
    of_the_layout_of_c(
        #[derive(Exchange)] #[repr(C)] pub(crate) struct Thing { one: u8, two: u32 }
    ): c { pub mod c { Ask: client { Question(Thing) -> end } } }
    a_list(
        #[derive(Exchange)] pub(crate) struct Thing { next: Option<mullion_sip::ExBox<Thing>> }
    ): c { pub mod c { Ask: client { Question(Thing) -> end } } }
    another_list(
        #[derive(Exchange)] pub(crate) struct Thing { next: Option<mullion_sip::ExBox<Option<Thing>>> }
    ): c { pub mod c { Ask: client { Question(Thing) -> end } } }
    an_own_end: c { pub mod c { Ask: client { Give(Client<Ask>) -> Answer } Answer: server { Go -> end } } }
    another_own_end: c { pub mod c { Ask: client { Give(Server<Answer>) -> Answer } Answer: server { Go -> end } } }
    forever: c { #[endless] pub mod c { Ask: client { Go -> Answer } Answer: server { Go -> Ask } } }
    not_quite: c { pub mod c { Ask: client { Go -> Answer } Answer: server { Go -> Ask, Stop -> end } } }
    one_step: c { pub mod c { Ask: client { Go -> Answer } Answer: server { Go -> end } } }
    another_first_state: c { pub mod c { Begin: client { Go -> Answer } Answer: server { Go -> end } } }
    the_other_client: c { pub mod c { Ask: client { Go -> Answer } Answer: client { Go -> end } } }
}

#[test]
fn whatever_is_changed_changes_the_digest() {
    let mut seen = HashMap::new();
    let same = all().into_iter().filter_map(|(variant, digest)| {
        let other = seen.insert(digest.0, variant)?;
        Some((other, variant))
    });
    let same: Vec<_> = same.collect();
    assert!(same.is_empty(), "{same:?}");
}

contract! {
    /// The one above, in another layout.
    #[allow(missing_docs)]
    mod c {
        Ask: client { /* ? */ Question(u32) -> Answer, Bye -> end, }
        Answer: server { Reply(u32) -> Ask }
    }
}

#[test]
fn layout_and_comments_do_not() {
    assert_eq!(c::Contract::INFO.digest, original::c::Contract::INFO.digest);
}

/// An end in one state is not an end in another, nor the other side's.
#[test]
fn states_and_sides_of_ends_have_their_own() {
    mod talk {
        mullion_sip::contract! {
            pub mod talk {
                One: client { Go -> Two }
                Two: client { Go -> Three }
                Three: server { Go -> end }
            }
        }
    }
    use talk::talk::{Client, One, Server, Three, Two};
    let ends = [
        <Client<One>>::DIGEST,
        <Client<Two>>::DIGEST,
        <Server<Three>>::DIGEST,
    ];
    assert!(ends[0] != ends[1] && ends[1] != ends[2] && ends[0] != ends[2]);
}

/// As many places as messages can wait, on each side.
#[test]
fn queues_have_the_room_that_the_states_ask_for() {
    contract! {
        mod runs {
            Ask: client { One -> Second, Bye -> end }
            Second: client { Two -> Third }
            Third: client { Three -> Answer }
            Answer: server { Four -> More, Five -> Ask }
            More: server { Six -> Ask }
        }
    }
    let bounds = [Side::Server, Side::Client].map(|side| runs::Contract::INFO.bound(side));
    assert_eq!(bounds, [3, 2]);
    let bounds = [Side::Server, Side::Client].map(|side| one_step::c::Contract::INFO.bound(side));
    assert_eq!(bounds, [1, 1]);
    let one_way = the_other_client::c::Contract::INFO;
    assert_eq!(
        [Side::Server, Side::Client].map(|side| one_way.bound(side)),
        [2, 0]
    );
}
