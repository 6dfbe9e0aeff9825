//! The eight assertions and eleven queries of RFC 2704, section 6.

use mullion_trust::keynote::{Algorithms, Query, Store, Work, parse};

const A: &str = r#"
Authorizer: "POLICY"
Licensees: "RSA:abc123"
"#;

const B: &str = r#"
KeyNote-Version: 2
Local-Constants: Alice="DSA:4401ff92"  # Alice's key
                 Bob="RSA:d1234f"      # Bob's key
Authorizer: "RSA:abc123"
Licensees: Alice || Bob
Conditions: (app_domain == "RFC822-EMAIL") &&
            (address ~=   # only applies to one domain
              "^.*@keynote\\.research\\.att\\.com$");
Signature: "RSA-SHA1:213354f9"
"#;

const C: &str = r#"
KeyNote-Version: 2
Authorizer: "DSA:4401ff92"  # the Alice CA
Licensees: "DSA:12340987"   # mab's key
Conditions: ((app_domain == "RFC822-EMAIL") &&
             (name == "M. Blaze" || name == "") &&
             (address == "mab@keynote.research.att.com"));
Signature: "DSA-SHA1:ab23487"
"#;

const D: &str = r#"
KeyNote-Version: "2"
Authorizer: "DSA:4401ff92"   # the Alice CA
Licensees: "DSA:abc991" ||   # jf's DSA key
           "RSA:cde773" ||   # jf's RSA key
           "BFIK:fd091a"     # jf's BFIK key
Conditions: ((app_domain == "RFC822-EMAIL") &&
             (name == "J. Feigenbaum" || name == "") &&
             (address == "jf@keynote.research.att.com"));
Signature: "DSA-SHA1:8912aa"
"#;

const E: &str = r#"
Authorizer: "POLICY"
Licensees: "RSA:dab212"  # the CFO's key
Conditions: (app_domain=="SPEND") && (@dollars < 10000);
"#;

const F: &str = r#"
KeyNote-Version: 2
Comment: This credential specifies a spending policy
Authorizer: "RSA:dab212"        # the CFO
Licensees: "DSA:feed1234" &&    # The vice president
               ("RSA:abc123" || # middle manager #1
                "DSA:bcd987" || # middle manager #2
                "DSA:cde333" || # middle manager #3
                "DSA:def975" || # middle manager #4
                "DSA:978add")   # middle manager #5
Conditions: (app_domain=="SPEND")  # note nested clauses
              -> { (@(dollars) < 2500)
                     -> _MAX_TRUST;
                   (@(dollars) < 7500)
                     -> "ApproveAndLog";
                 };
Signature: "RSA-SHA1:9867a1"
"#;

const G: &str = r#"
KeyNote-Version: 2
Authorizer: "POLICY"
Licensees: 2-of("DSA:feed1234", # The VP
                "RSA:abc123",   # Middle management clones
                "DSA:bcd987",
                "DSA:cde333",
                "DSA:def975",
                "DSA:978add")
Conditions: (app_domain=="SPEND") &&
            (@(dollars) < 1000);
"#;

/// With `==` where the RFC has `=`.
const H: &str = r#"
KeyNote-Version: 2
Comment: This one credential is equivalent to six separate
         credentials, one for each VP and middle manager.
         Individually, they can spend up to $500, but if
         it's $100 or more, we log it.
Authorizer: "RSA:dab212"      # From the CFO
Licensees: "DSA:feed1234" ||  # The VP
           "RSA:abc123" ||    # The middle management clones
           "DSA:bcd987" ||
           "DSA:cde333" ||
           "DSA:def975" ||
           "DSA:978add"
Conditions: (app_domain=="SPEND")  # nested clauses
              -> { (@(dollars) < 100) -> _MAX_TRUST;
                   (@(dollars) < 500) -> "ApproveAndLog";
                 };
Signature: "RSA-SHA1:186123"
"#;

/// The examples' signatures are fictitious, so all of them are handed over the
/// trusted interface, as the reference implementation's `-l` does.
fn ask(assertions: &[&str], values: &[&str], who: &[&str], what: &[(&str, &str)]) -> String {
    let mut store = Store::new(Algorithms::default());
    for text in assertions {
        store.add_policy(
            parse(text.as_bytes()).expect("the example is KeyNote"),
            "RFC",
        );
    }
    let attributes = what.iter();
    let attributes =
        attributes.map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()));
    let who: Vec<_> = who.iter().map(|id| id.as_bytes()).collect();
    let query = Query::new(values, &who, attributes.collect()).expect("the query is legal");
    store
        .query(&query, &mut Work::unbounded())
        .expect("no bound")
        .value
}

fn email(who: &str, what: &[(&str, &str)]) -> String {
    let mut attributes = vec![("app_domain", "RFC822-EMAIL")];
    attributes.extend(what);
    ask(&[A, B, C, D], &["reject", "accept"], &[who], &attributes)
}

fn spend(who: &[&str], dollars: &str) -> String {
    let values = ["Reject", "ApproveAndLog", "Approve"];
    let attributes = [
        ("app_domain", "SPEND"),
        ("dollars", dollars),
        ("unmentioned_attribute", "whatever"),
    ];
    ask(&[E, F, G, H], &values, who, &attributes)
}

#[test]
fn email_accepted() {
    let address = ("address", "mab@keynote.research.att.com");
    assert_eq!(email("dsa:12340987", &[address]), "accept");
    assert_eq!(
        email("dsa:12340987", &[address, ("name", "M. Blaze")]),
        "accept"
    );
}

#[test]
fn email_rejected() {
    let address = ("address", "mab@keynote.research.att.com");
    let stranger = ("address", "angelos@dsl.cis.upenn.edu");
    assert_eq!(email("dsa:12340987", &[stranger]), "reject");
    assert_eq!(
        email("dsa:abc991", &[address, ("name", "M. Blaze")]),
        "reject"
    );
    assert_eq!(
        email("dsa:12340987", &[address, ("name", "J. Feigenbaum")]),
        "reject"
    );
}

#[test]
fn spending_approved() {
    assert_eq!(spend(&["DSA:978add"], "45"), "Approve");
    assert_eq!(spend(&["RSA:abc123", "DSA:cde333"], "550"), "Approve");
}

#[test]
fn spending_approved_and_logged() {
    assert_eq!(
        spend(&["DSA:feed1234", "DSA:cde333"], "5500"),
        "ApproveAndLog"
    );
    assert_eq!(spend(&["DSA:cde333"], "150"), "ApproveAndLog");
}

#[test]
fn spending_rejected() {
    assert_eq!(spend(&["DSA:def975"], "550"), "Reject");
    assert_eq!(spend(&["DSA:cde333", "DSA:978add"], "5500"), "Reject");
}

#[test]
fn example_h_as_printed_is_refused_with_the_way_out() {
    let printed = H.replace("app_domain==\"SPEND\"", "app_domain=\"SPEND\"");
    let error = parse(printed.as_bytes()).expect_err("`=` is no comparison");
    assert_eq!((error.line, error.column), (14, 24));
    assert_eq!(error.hint, "equality is `==`");
}
