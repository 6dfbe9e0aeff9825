//! Scalars in and out, in every register.

use crate::domain;
use mullion::Callback;

#[test]
fn integers_of_each_size_and_sign() {
    let domain = domain();
    let narrow = domain.function::<fn(i8, u16) -> i8>("narrow").unwrap();
    assert_eq!(narrow.call(-100, 20).unwrap(), -80);
    assert_eq!(narrow.call(127, 1).unwrap(), -128);
    let is_less = domain.function::<fn(i64, i64) -> bool>("is_less").unwrap();
    assert!(is_less.call(i64::MIN, 0).unwrap());
    assert!(!is_less.call(0, -1).unwrap());
}

#[test]
fn eight_arguments_of_both_kinds() {
    let domain = domain();
    let mixed = domain
        .function::<fn(i32, f64, f32, i64, f64, u8, f64, i32) -> f64>("mixed")
        .unwrap();
    let result = mixed
        .call(-1, 0.5, 0.25, 1 << 40, -2.0, 255, 1e9, 3)
        .unwrap();
    let expected = -1.0 + 1.0 + 0.75 + 4.0 * (1u64 << 40) as f64 - 10.0 + 1530.0 + 7e9 + 24.0;
    assert_eq!(result, expected);
}

#[test]
fn eight_integers_of_which_two_travel_on_the_stack() {
    let domain = domain();
    let eight = domain
        .function::<fn(i32, i64, i32, i32, i32, i32, i8, u64) -> i64>("eight")
        .unwrap();
    let result = eight.call(1, -2, 3, -4, 5, -6, -7, 1 << 40).unwrap();
    assert_eq!(result, 1 - 4 + 9 - 16 + 25 - 36 - 49 + (8 << 40));
}

#[test]
fn single_precision_and_nothing() {
    let domain = domain();
    let halve = domain.function::<fn(f32) -> f32>("halve").unwrap();
    assert_eq!(halve.call(-7.0).unwrap(), -3.5);
    domain.function::<fn()>("nothing").unwrap().call().unwrap();
}

#[test]
fn a_function_pointer_that_the_domain_returns_can_be_called() {
    let domain = domain();
    let get = domain
        .function::<fn() -> Callback<fn(i32) -> i32>>("get_twice")
        .unwrap();
    let twice = get.call().unwrap();
    assert_eq!(twice.call(&domain, 21).unwrap(), 42);
}

#[test]
fn constructors_have_run_and_state_is_kept() {
    let domain = domain();
    let count = domain.function::<fn() -> i32>("count").unwrap();
    assert_eq!(count.call().unwrap(), 42);
    assert_eq!(count.call().unwrap(), 43);
}

#[test]
fn several_threads_call_one_domain_at_once() {
    let domain = domain();
    let sum = domain
        .function::<fn(mullion::Ptr<u32>, u64) -> u64>("sum")
        .unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let (sum, domain) = (sum.clone(), domain.clone());
            scope.spawn(move || {
                use mullion::DomainMemory;
                for round in 0..200 {
                    let list = domain.copy_in(&[thread; 100]).unwrap();
                    let total = sum.call(list.ptr(), list.len()).unwrap();
                    assert_eq!(total, u64::from(thread) * 100, "round {round}");
                }
            });
        }
    });
}
