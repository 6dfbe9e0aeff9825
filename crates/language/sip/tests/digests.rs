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
        pub(crate) mod c { Ask: client { Question(u32) -> Answer, Bye -> end } Answer: server { Reply(u32) -> Ask } }
    }
    another_name: d {
        pub(crate) mod d { Ask: client { Question(u32) -> Answer, Bye -> end } Answer: server { Reply(u32) -> Ask } }
    }
    another_state_name: c {
        pub(crate) mod c { Ask: client { Question(u32) -> Reply, Bye -> end } Reply: server { Reply(u32) -> Ask } }
    }
    another_message_name: c {
        pub(crate) mod c { Ask: client { Query(u32) -> Answer, Bye -> end } Answer: server { Reply(u32) -> Ask } }
    }
    another_payload: c {
        pub(crate) mod c { Ask: client { Question(i32) -> Answer, Bye -> end } Answer: server { Reply(u32) -> Ask } }
    }
    no_payload: c {
        pub(crate) mod c { Ask: client { Question -> Answer, Bye -> end } Answer: server { Reply(u32) -> Ask } }
    }
    another_target: c {
        pub(crate) mod c { Ask: client { Question(u32) -> Answer, Bye -> end } Answer: server { Reply(u32) -> end } }
    }
    another_end: c {
        pub(crate) mod c { Ask: client { Question(u32) -> Answer, Bye -> Answer } Answer: server { Reply(u32) -> end } }
    }
    other_directions: c {
        pub(crate) mod c { Ask: server { Question(u32) -> Answer, Bye -> end } Answer: client { Reply(u32) -> Ask } }
    }
    other_order_of_messages: c {
        pub(crate) mod c { Ask: client { Bye -> end, Question(u32) -> Answer } Answer: server { Reply(u32) -> Ask } }
    }
    other_order_of_states: c {
        pub(crate) mod c { Answer: server { Reply(u32) -> Ask } Ask: client { Question(u32) -> Answer, Bye -> end } }
    }
    one_more_message: c {
        pub(crate) mod c {
            Ask: client { Question(u32) -> Answer, Bye -> end }
            Answer: server { Reply(u32) -> Ask, No -> Ask }
        }
    }
    // The text is the same from here on, and what it names is not.
    a_type(
        #[derive(Exchange)] pub(crate) struct Thing { one: u32, two: u32 }
    ): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    of_other_fields(
        #[derive(Exchange)] pub(crate) struct Thing { one: u32, two: i32 }
    ): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    of_other_names(
        #[derive(Exchange)] pub(crate) struct Thing { one: u32, too: u32 }
    ): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    of_fewer_fields(
        #[derive(Exchange)] #[repr(align(8))] pub(crate) struct Thing { one: u32 }
    ): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    of_another_alignment(
        #[derive(Exchange)] #[repr(align(8))] pub(crate) struct Thing { one: u32, two: u32 }
    ): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    of_another_layout(
        #[derive(Exchange)] #[repr(C)] pub(crate) struct Thing { two: u32, one: u32 }
    ): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    an_enum(
        #[derive(Exchange)] #[repr(u8)] pub(crate) enum Thing { One, Two(u32) }
    ): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    of_other_variants(
        #[derive(Exchange)] #[repr(u8)] pub(crate) enum Thing { One, Too(u32) }
    ): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    of_other_values(
        #[derive(Exchange)] #[repr(u8)] pub(crate) enum Thing { One, Two(i32) }
    ): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    of_other_numbers(
        #[derive(Exchange)] #[repr(u8)] pub(crate) enum Thing { One = 3, Two(u32) }
    ): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    of_another_representation(
        #[derive(Exchange)] #[repr(i8)] pub(crate) enum Thing { One, Two(u32) }
    ): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    behind_a_box(
        #[derive(Exchange)] pub(crate) struct Thing { one: mullion_sip::ExBox<u32> }
    ): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    of_something_else(
        #[derive(Exchange)] pub(crate) struct Thing { one: mullion_sip::ExBox<i32> }
    ): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    an_end(
        contract! { pub(crate) mod talk { Say: client { Word(u32) -> end } } }
    ): c { pub(crate) mod c { Ask: client { Question(talk::Client<talk::Say>) -> end } } }
    of_another_contract(
        contract! { pub(crate) mod talk { Say: client { Word(i32) -> end } } }
    ): c { pub(crate) mod c { Ask: client { Question(talk::Client<talk::Say>) -> end } } }
    of_one_layout(
        #[derive(Exchange)] pub(crate) struct Thing { one: u8, two: u32 }
    ): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    of_the_layout_of_c(
        #[derive(Exchange)] #[repr(C)] pub(crate) struct Thing { one: u8, two: u32 }
    ): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    a_list(
        #[derive(Exchange)] pub(crate) struct Thing { next: Option<mullion_sip::ExBox<Thing>> }
    ): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    another_list(
        #[derive(Exchange)] pub(crate) struct Thing { next: Option<mullion_sip::ExBox<Option<Thing>>> }
    ): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    an_own_end: c { pub(crate) mod c { Ask: client { Give(Client<Ask>) -> Answer } Answer: server { Go -> end } } }
    another_own_end: c { pub(crate) mod c { Ask: client { Give(Server<Answer>) -> Answer } Answer: server { Go -> end } } }
    // What hostile pairs of libraries would try.
    a_part_named_as_the_whole(pub(crate) mod part { #[derive(mullion_sip::Exchange)] pub(crate) struct Thing(pub(crate) mullion_sip::ExVec<u64>); } #[derive(Exchange)] pub(crate) struct Thing { one: part::Thing }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    with_numbers_in_it(pub(crate) mod part { #[derive(mullion_sip::Exchange)] pub(crate) struct Thing(pub(crate) [u64; 2]); } #[derive(Exchange)] pub(crate) struct Thing { one: part::Thing }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    a_list_with_such_a_part(pub(crate) mod part { #[derive(mullion_sip::Exchange)] pub(crate) struct Thing(pub(crate) mullion_sip::ExVec<u64>); } #[derive(Exchange)] pub(crate) struct Thing { one: part::Thing, next: Option<mullion_sip::ExBox<Thing>> }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    with_numbers_in_it_too(pub(crate) mod part { #[derive(mullion_sip::Exchange)] pub(crate) struct Thing(pub(crate) [u64; 2]); } #[derive(Exchange)] pub(crate) struct Thing { one: part::Thing, next: Option<mullion_sip::ExBox<Thing>> }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    an_alias(type Inner = u32; #[derive(Exchange)] pub(crate) struct Thing { one: Inner, beside: u32 }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    of_something_else_of_the_size(type Inner = f32; #[derive(Exchange)] pub(crate) struct Thing { one: Inner, beside: u32 }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    the_real_vector(use mullion_sip::ExVec; #[derive(Exchange)] pub(crate) struct Thing { one: ExVec<u64> }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    a_vector_of_ones_own(#[derive(Exchange)] pub(crate) struct ExVec<T>([T; 2]); #[derive(Exchange)] pub(crate) struct Thing { one: ExVec<u64> }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    the_real_number(#[derive(Exchange)] pub(crate) struct Thing { only: u64 }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    a_number_of_ones_own(#[derive(Exchange)] #[repr(align(8))] #[allow(non_camel_case_types)] pub(crate) struct u64([u8; 8]); #[derive(Exchange)] pub(crate) struct Thing { only: u64 }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    laid_out_as_a_union(#[derive(Exchange)] #[repr(u8)] pub(crate) enum Thing { One(u8), Two(u64) }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    laid_out_with_the_tag_in_front(#[derive(Exchange)] #[repr(C, u8)] pub(crate) enum Thing { One(u8), Two(u64) }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    a_discriminant_by_name(const FIRST: u8 = 1; #[derive(Exchange)] #[repr(u8)] pub(crate) enum Thing { One = FIRST, Two(u32) = 9 }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    of_another_value(const FIRST: u8 = 2; #[derive(Exchange)] #[repr(u8)] pub(crate) enum Thing { One = FIRST, Two(u32) = 9 }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    a_negative_discriminant(#[derive(Exchange)] #[repr(i8)] pub(crate) enum Thing { One = -1, Two }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    the_same_bits(#[derive(Exchange)] #[repr(i8)] pub(crate) enum Thing { One = 127, Two = 0 }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    three_of_nothing(#[derive(Exchange)] pub(crate) struct Thing { one: [(); 3] }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    four_of_nothing(#[derive(Exchange)] pub(crate) struct Thing { one: [(); 4] }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    two_by_three(#[derive(Exchange)] pub(crate) struct Thing { one: [[u8; 2]; 3] }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    three_by_two(#[derive(Exchange)] pub(crate) struct Thing { one: [[u8; 3]; 2] }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    a_parameter_that_is_a_number(#[derive(Exchange)] pub(crate) struct Of<const N: usize>(u32); pub(crate) type Thing = Of<1>;): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    another_number(#[derive(Exchange)] pub(crate) struct Of<const N: usize>(u32); pub(crate) type Thing = Of<2>;): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    a_parameter_that_is_a_type(#[derive(Exchange)] pub(crate) struct Of<T: Exchange>(mullion_sip::ExBox<T>); pub(crate) type Thing = Of<u32>;): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    another_type(#[derive(Exchange)] pub(crate) struct Of<T: Exchange>(mullion_sip::ExBox<T>); pub(crate) type Thing = Of<i32>;): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    a_parameter_that_is_a_letter(#[derive(Exchange)] pub(crate) struct Of<const L: char>(u32); pub(crate) type Thing = Of<'a'>;): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    another_letter(#[derive(Exchange)] pub(crate) struct Of<const L: char>(u32); pub(crate) type Thing = Of<'b'>;): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    a_flag_that_may_be_missing(#[derive(Exchange)] pub(crate) struct Thing { one: Option<bool>, two: u8 }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    a_byte_that_may_be_there(#[derive(Exchange)] pub(crate) struct Thing { one: Option<()>, two: u8 }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    one_or_the_other(#[derive(Exchange)] pub(crate) struct Thing { one: Result<u8, i8> }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    the_other_or_one(#[derive(Exchange)] pub(crate) struct Thing { one: Result<i8, u8> }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    fields_by_place(#[derive(Exchange)] pub(crate) struct Thing(u16, u16);): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    fields_by_name(#[derive(Exchange)] pub(crate) struct Thing { a: u16, b: u16 }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    letters(#[derive(Exchange)] pub(crate) struct Thing { one: char }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    numbers(#[derive(Exchange)] pub(crate) struct Thing { one: u32 }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    a_text(#[derive(Exchange)] pub(crate) struct Thing { one: mullion_sip::ExString }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    bytes(#[derive(Exchange)] pub(crate) struct Thing { one: mullion_sip::ExVec<u8> }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    a_box_of_a_row(#[derive(Exchange)] pub(crate) struct Thing { one: mullion_sip::ExBox<[u8; 8]> }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    a_row_of_boxes(#[derive(Exchange)] pub(crate) struct Thing { one: [mullion_sip::ExBox<u8>; 1] }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    a_tree(#[derive(Exchange)] pub(crate) struct Branch<T: Exchange>(mullion_sip::ExVec<T>); #[derive(Exchange)] pub(crate) struct Thing { on: Option<mullion_sip::ExBox<Branch<Thing>>>, leaf: u32 }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    another_tree(#[derive(Exchange)] pub(crate) struct Branch<T: Exchange>(mullion_sip::ExBox<T>); #[derive(Exchange)] pub(crate) struct Thing { on: Option<mullion_sip::ExBox<Branch<Thing>>>, leaf: u32 }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    a_list_over_a_type(#[derive(Exchange)] pub(crate) struct Of<T: Exchange>(T, Option<mullion_sip::ExBox<Of<T>>>); pub(crate) type Thing = Of<u32>;): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    a_list_over_another(#[derive(Exchange)] pub(crate) struct Of<T: Exchange>(T, Option<mullion_sip::ExBox<Of<T>>>); pub(crate) type Thing = Of<f32>;): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    a_variant_that_holds_all(#[derive(Exchange)] #[repr(u8)] pub(crate) enum Thing { No, Yes(mullion_sip::ExVec<Thing>) }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    a_variant_that_holds_one(#[derive(Exchange)] #[repr(u8)] pub(crate) enum Thing { No, Yes(mullion_sip::ExBox<Thing>) }): c { pub(crate) mod c { Ask: client { Question(Thing) -> end } } }
    an_own_end_beside_a_type(
        #[derive(Exchange)] pub(crate) struct Thing { one: mullion_sip::ExVec<u64> }
    ): c { pub(crate) mod c { Ask: client { Give((Client<Ask>, Thing)) -> Answer } Answer: server { Go -> end } } }
    an_own_end_beside_another(
        #[derive(Exchange)] pub(crate) struct Thing { one: [u64; 2] }
    ): c { pub(crate) mod c { Ask: client { Give((Client<Ask>, Thing)) -> Answer } Answer: server { Go -> end } } }
    own_ends_in_a_type(
        #[derive(Exchange)] pub(crate) struct Pair<A, B>(A, B);
    ): c { pub(crate) mod c { Ask: client { Give(Pair<Client<Ask>, Server<Answer>>) -> Answer } Answer: server { Go -> end } } }
    own_ends_in_another_type(
        #[derive(Exchange)] pub(crate) struct Pair<A, B>(B, A);
    ): c { pub(crate) mod c { Ask: client { Give(Pair<Client<Ask>, Server<Answer>>) -> Answer } Answer: server { Go -> end } } }
    forever: c { #[endless] pub(crate) mod c { Ask: client { Go -> Answer } Answer: server { Go -> Ask } } }
    not_quite: c { pub(crate) mod c { Ask: client { Go -> Answer } Answer: server { Go -> Ask, Stop -> end } } }
    one_step: c { pub(crate) mod c { Ask: client { Go -> Answer } Answer: server { Go -> end } } }
    another_first_state: c { pub(crate) mod c { Begin: client { Go -> Answer } Answer: server { Go -> end } } }
    the_other_client: c { pub(crate) mod c { Ask: client { Go -> Answer } Answer: client { Go -> end } } }
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

/// Where a type is defined, how it came about and under which name it is known here changes nothing.
#[test]
fn the_same_type_by_another_way_is_the_same() {
    mod one {
        #[derive(mullion_sip::Exchange)]
        pub(super) struct Thing {
            pub(super) _a: u8,
            pub(super) _b: mullion_sip::ExVec<u16>,
        }
    }
    mod two {
        macro_rules! made {
            ($name:ident { $($field:ident: $kind:ty),* }) => {
                #[derive(mullion_sip::Exchange)]
                pub(in super::super) struct $name { $($field: $kind),* }
            };
        }
        pub(super) mod made {
            use mullion_sip::ExVec as Renamed;
            type Byte = core::primitive::u8;
            made!(Thing { _a: Byte, _b: Renamed<u16> });
        }
    }
    mod three {
        #[derive(mullion_sip::Exchange)]
        #[cfg_attr(all(), repr(Rust))]
        pub(super) struct Thing {
            #[doc = "another comment"]
            _a: u8,
            _b: ::mullion_sip::exchange::ExVec<u16>,
        }
    }
    use two::made::Thing as Again;
    let first = <one::Thing as Exchange>::DIGEST;
    assert_eq!(first, Again::DIGEST);
    assert_eq!(first, three::Thing::DIGEST);
}

/// What any bytes are is found out part by part.
#[test]
fn only_what_has_no_gaps_and_no_rules_is_plain() {
    #[derive(Exchange)]
    struct Whole(u32, [u16; 2], (u32, f32));
    #[derive(Exchange)]
    struct Gap(u8, u32);
    #[derive(Exchange)]
    struct Rule(u8, bool, [u8; 2]);
    #[derive(Exchange)]
    struct Nothing;
    #[derive(Exchange)]
    #[repr(align(16))]
    struct Wide(u64);
    let plain = [Whole::PLAIN, <[Whole; 3]>::PLAIN, Nothing::PLAIN];
    assert_eq!(plain, [true; 3]);
    let other = [Gap::PLAIN, Rule::PLAIN, Wide::PLAIN, <(u8, u32)>::PLAIN];
    assert_eq!(other, [false; 4]);
    let chosen = [<Option<u8>>::PLAIN, <[bool; 2]>::PLAIN, char::PLAIN];
    assert_eq!(chosen, [false; 3]);
}

/// An end in one state is not an end in another, nor the other side's.
#[test]
fn states_and_sides_of_ends_have_their_own() {
    mod talk {
        mullion_sip::contract! {
            pub(crate) mod talk {
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
