//! KeyNote against a second, naive evaluator; monotonicity; hostile text.

use mullion_trust::keynote::{Algorithms, Attributes, Query, Store, Work, parse, parse_all};
use mullion_trust::{Limit, Limits};
use proptest::prelude::*;

const VALUES: [&str; 4] = ["none", "low", "middle", "high"];
/// Principal 0 is POLICY; the others are `p1`, `p2` ...
const PRINCIPALS: usize = 7;

#[derive(Clone, Debug)]
enum Who {
    One(usize),
    Both(Box<Who>, Box<Who>),
    Either(Box<Who>, Box<Who>),
    Some(usize, Vec<usize>),
}

#[derive(Clone, Debug)]
struct Link {
    from: usize,
    to: Who,
    worth: usize,
}

fn name(principal: usize) -> String {
    match principal {
        0 => "\"POLICY\"".to_owned(),
        other => format!("\"p{other}\""),
    }
}

impl Who {
    fn text(&self) -> String {
        match self {
            Who::One(principal) => name(*principal),
            Who::Both(left, right) => format!("({} && {})", left.text(), right.text()),
            Who::Either(left, right) => format!("({} || {})", left.text(), right.text()),
            Who::Some(count, list) => {
                let names: Vec<_> = list.iter().map(|principal| name(*principal)).collect();
                format!("{count}-of({})", names.join(", "))
            }
        }
    }

    fn rank(&self, ranks: &[usize]) -> usize {
        match self {
            Who::One(principal) => ranks[*principal],
            Who::Both(left, right) => left.rank(ranks).min(right.rank(ranks)),
            Who::Either(left, right) => left.rank(ranks).max(right.rank(ranks)),
            // The greatest value that at least `count` of them reach.
            Who::Some(count, list) => (0..VALUES.len())
                .rev()
                .find(|rank| list.iter().filter(|one| ranks[**one] >= *rank).count() >= *count)
                .unwrap_or(0),
        }
    }
}

/// Goes over all links again and again until nothing changes.
fn naive(links: &[Link], requesters: &[usize]) -> usize {
    let mut ranks = [0; PRINCIPALS];
    for requester in requesters {
        ranks[*requester] = VALUES.len() - 1;
    }
    loop {
        let before = ranks;
        for link in links {
            let rank = link.worth.min(link.to.rank(&before));
            ranks[link.from] = ranks[link.from].max(rank);
        }
        if ranks == before {
            return ranks[0];
        }
    }
}

fn asked(links: &[Link], requesters: &[usize]) -> usize {
    let mut store = Store::new(Algorithms::default());
    for link in links {
        let text = format!(
            "Authorizer: {}\nLicensees: {}\nConditions: a == \"b\" -> \"{}\";\n",
            name(link.from),
            link.to.text(),
            VALUES[link.worth]
        );
        store.add_policy(parse(text.as_bytes()).expect("KeyNote"), "test");
    }
    let who: Vec<_> = requesters.iter().map(|one| format!("p{one}")).collect();
    let who: Vec<_> = who.iter().map(|one| one.as_bytes()).collect();
    let attributes = Attributes::from([("a".to_owned(), b"b".to_vec())]);
    store
        .query(
            &Query::new(&VALUES, &who, attributes).expect("a query"),
            &mut Work::unbounded(),
        )
        .expect("no bound")
        .rank
}

fn who() -> impl Strategy<Value = Who> {
    let leaf = prop_oneof![
        (0..PRINCIPALS).prop_map(Who::One),
        prop::collection::vec(0..PRINCIPALS, 1..5)
            .prop_flat_map(|list| (1..=list.len(), Just(list)))
            .prop_map(|(count, list)| Who::Some(count, list)),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        let pair = (inner.clone(), inner);
        prop_oneof![
            pair.clone()
                .prop_map(|(left, right)| Who::Both(left.into(), right.into())),
            pair.prop_map(|(left, right)| Who::Either(left.into(), right.into())),
        ]
    })
}

fn links() -> impl Strategy<Value = Vec<Link>> {
    let link = (0..PRINCIPALS, who(), 0..VALUES.len());
    prop::collection::vec(
        link.prop_map(|(from, to, worth)| Link { from, to, worth }),
        0..20,
    )
}

/// An integer expression as text, and its value in 64 bits: `None` is an error.
fn arithmetic() -> impl Strategy<Value = (String, Option<i64>)> {
    let leaf = (0..200_i64).prop_map(|number| (number.to_string(), Some(number)));
    leaf.prop_recursive(4, 24, 2, |inner| {
        (inner.clone(), inner, 0..6_usize).prop_map(|((left, a), (right, b), operator)| {
            let sign = ["+", "-", "*", "/", "%", "-"][operator];
            let value = a.zip(b).and_then(|(a, b)| match operator {
                0 => Some(a + b),
                1 => Some(a - b),
                2 => a.checked_mul(b),
                3 => a.checked_div(b),
                4 => a.checked_rem(b),
                _ => Some(-b),
            });
            let value = value.filter(|value| i32::try_from(*value).is_ok());
            match operator {
                5 => (format!("(-({right}))"), b.and(value).or(b.map(|b| -b))),
                _ => (format!("({left} {sign} {right})"), value),
            }
        })
    })
}

proptest! {
    #[test]
    fn as_the_naive_evaluator(links in links(), requesters in prop::collection::vec(1..PRINCIPALS, 1..4)) {
        prop_assert_eq!(asked(&links, &requesters), naive(&links, &requesters));
    }

    #[test]
    fn more_credentials_never_lower_the_answer(links in links(), more in links(), who in 1..PRINCIPALS) {
        let mut all = links.clone();
        all.extend(more);
        prop_assert!(asked(&all, &[who]) >= asked(&links, &[who]));
    }

    #[test]
    fn arithmetic_is_that_of_64_bits_within_32((text, value) in arithmetic()) {
        let test = match value {
            Some(value) if value < 0 => format!("{text} + {} == 0", -value),
            Some(value) => format!("{text} == {value}"),
            None => format!("!({text} == 0 && {text} != 0)"),
        };
        let source = format!("Authorizer: \"POLICY\"\nConditions: {test};\n");
        let mut store = Store::default();
        store.add_policy(parse(source.as_bytes()).expect("KeyNote"), "test");
        let query = Query::new(&["no", "yes"], &[b"r"], Attributes::new()).expect("a query");
        prop_assert_eq!(store.query(&query, &mut Work::unbounded()).expect("no bound").granted, value.is_some(), "{}", test);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse_all(&text);
    }

    #[test]
    fn nor_one_of_its_own_words(words in prop::collection::vec(prop::sample::select(vec![
        "Authorizer:", "Licensees:", "Conditions:", "Signature:", "\n", "\n ", "(", ")", "{", "}", "->", ";",
        "\"a\"", "2-of", "@", "&", "$", "a", "1", "1.5", "==", "~=", "&&", "||", "!", "+", "-", ".", ",", "\\", "\"",
    ]), 0..60)) {
        let text = format!("Authorizer: \"x\"\n{}", words.join(" "));
        let _ = parse_all(text.as_bytes());
    }

    #[test]
    fn limits_meet_as_in_a_lattice(a in limits(), b in limits(), c in limits()) {
        prop_assert_eq!(a.meet(&b), b.meet(&a));
        prop_assert_eq!(a.meet(&b).meet(&c), a.meet(&b.meet(&c)));
        prop_assert_eq!(a.meet(&a), a);
        prop_assert_eq!(a.meet(&Limits::NONE), a);
        prop_assert!(a.meet(&b).within(&a) && a.meet(&b).within(&b));
        prop_assert_eq!(c.within(&a) && c.within(&b), c.within(&a.meet(&b)));
    }
}

fn limits() -> impl Strategy<Value = Limits> {
    prop::collection::vec(prop::option::of(0..5_u64), 4).prop_map(|amounts| {
        let mut limits = Limits::NONE;
        for (limit, amount) in Limit::ALL.into_iter().zip(amounts) {
            limits.set(limit, amount);
        }
        limits
    })
}

#[test]
fn depth_is_bounded_and_length_costs_no_stack() {
    let nested = |open: &str, close: &str| {
        let text = format!(
            "Authorizer: \"x\"\nConditions: {}true{};\n",
            open.repeat(3000),
            close.repeat(3000)
        );
        parse(text.as_bytes()).expect_err("too deep").problem
    };
    for (open, close) in [
        ("(", ")"),
        ("!", ""),
        ("true -> {", "; }"),
        ("- ", ""),
        ("$", ""),
        ("@", ""),
    ] {
        assert!(nested(open, close).contains("nesting"), "{open}");
    }
    for chain in [" || a == b", " && a == b"] {
        let text = format!(
            "Authorizer: \"x\"\nConditions: true{};\n",
            chain.repeat(5000)
        );
        parse(text.as_bytes()).expect("long is not deep");
    }
    let sum = format!(
        "Authorizer: \"x\"\nConditions: 1{} > 0;\n",
        " + 1".repeat(12_000)
    );
    parse(sum.as_bytes()).expect("long is not deep");
}
