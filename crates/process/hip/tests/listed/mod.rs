//! Tests of programs that have a `main` of their own, because they are run again as domains.

/// Tests by their names.
macro_rules! listed {
    ($($test:path),* $(,)?) => {
        &[$((stringify!($test), $test as fn())),*]
    };
}
pub(crate) use listed;

/// Runs those whose names contain the program's first argument, or all.
pub(crate) fn run(tests: &[(&str, fn())]) {
    let first = std::env::args().nth(1);
    let wanted = first.filter(|argument| !argument.starts_with('-'));
    let wanted = wanted.unwrap_or_default();
    let mut run = 0;
    for (name, test) in tests.iter().filter(|(name, _)| name.contains(&wanted)) {
        println!("test {name}");
        test();
        run += 1;
    }
    println!("test result: ok. {run} passed");
}
