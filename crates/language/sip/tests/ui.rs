//! What must not compile, and what the compiler says to it. `TRYBUILD=overwrite cargo test -p mullion-sip --test ui`
//! blesses new output; read it before you keep it.

#[test]
fn refusals_are_readable() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
