//! The examples of `examples/sip`, run by their own configurations.

#[path = "../../process/sip-host/tests/built/mod.rs"]
mod built;
#[allow(dead_code, reason = "others use more of it")]
mod sips;

use sips::Run;

#[test]
fn hello_greets_and_ends() {
    let (code, log) = Run::example("hello", |text| text).end();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("hello, processes\n"), "{log}");
}

#[test]
fn the_pipeline_adds_up_the_primes() {
    let (code, log) = Run::example("pipeline", |text| text).end();
    assert_eq!(code, Some(0), "{log}");
    let primes: Vec<u64> = (2..200_000)
        .filter(|number: &u64| (2..=number.isqrt()).all(|factor| !number.is_multiple_of(factor)))
        .collect();
    let sum: u64 = primes.iter().sum();
    let line = format!("{} primes, which add up to {sum}\n", primes.len());
    assert!(log.contains(&line), "{log}");
}

#[test]
fn names_are_reached_by_those_who_may() {
    // Friend and guest ask for ever, unless they are told how often.
    let mut run = Run::example("names", |text| {
        text.replace("[\"0\", \"1000\", ", "[\"100\", \"0\", ")
    });
    run.said("ended process=\"friend\" cause=Returned");
    run.said("ended process=\"guest\" cause=Returned");
    let refused = run.said("ended process=\"intruder\"");
    assert!(
        refused.contains("Exited(1)") && refused.contains("no right to the name"),
        "{refused}"
    );
    run.terminate();
    assert_eq!(run.end().0, Some(143));
}

/// As the configuration has it, each in an OS process; and in one.
#[test]
fn the_broker_introduces_who_knows_no_name() {
    for kind in ["process", "same"] {
        let mut run = Run::example("broker", |text| {
            text.replace("\"process\"", &format!("\"{kind}\""))
        });
        run.said("ended process=\"client\" cause=Returned");
        run.said("ended process=\"server\" cause=Returned");
        run.terminate();
        let (code, log) = run.end();
        assert_eq!(code, Some(143), "{log}");
    }
}

/// Three pieces end two workers each; all others are done, whoever was ended in between.
#[test]
fn work_is_done_whoever_crashes() {
    let (code, log) = Run::example("supervision", |text| text).end();
    assert_eq!(code, Some(0), "{log}");
    let sum: u64 = (1..=100u64)
        .filter(|number| ![7, 14, 21].contains(number))
        .map(|number| number * number)
        .sum();
    let line = log.lines().find(|line| line.starts_with("97 of 100 done"));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains(&format!("the sum is {sum};")), "{line}");
    for number in ["7", "14", "21"] {
        assert!(line.contains(number), "{line}");
    }
    for cause in ["cause=Panic", "cause=Slice", "cause=Memory"] {
        assert_eq!(log.matches(cause).count(), 2, "{cause} in {log}");
    }
}

#[test]
fn one_thread_serves_a_hundred_channels() {
    let mut run = Run::example("store", |text| text.replace("\"1000\"", "\"50\""));
    for customer in ["customer-1", "customer-2"] {
        run.said(&format!("{customer}: 50 rounds on 50 channels"));
        run.said(&format!("ended process=\"{customer}\" cause=Returned"));
    }
    run.terminate();
    let (code, log) = run.end();
    assert_eq!(code, Some(143), "{log}");
}
