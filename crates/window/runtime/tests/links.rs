//! Domains that call each other through gates.

mod support;

use mullion_runtime::{
    CallArguments, CallError, Cause, Claimed, Entry, Error, Limits, LinkOptions, Returned,
    WindowDomain,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{Loaded, Program, host};

const PROGRAM: &str = "
    import other
    import who
    export through
        subq $24, %r15
        movq %rbx, 8(%r15)
        movl $7, %ebx
        call other
        addq %rbx, %rax
        movq 8(%r15), %rbx
        addq $24, %r15
        testb $0, -8(%r15)
        ret
    export add
        movq $-1, %rbx
        movq $-1, %rbp
        movq $-1, %r12
        leaq (%rdi,%rsi), %rax
        movq %rdi, %rdx
        addsd %xmm1, %xmm0
        ret
    export ask
        call who
        ret
    export wrong
        ud2
    export forever
        jmp forever
";

fn load(program: &Program) -> Loaded {
    let who = host(|caller| Ok(caller.called_by().map_or(0, |caller| caller.0)));
    program.load_with(vec![host(|_| Ok(1)), who], Limits::default())
}

fn entry(loaded: &Loaded, name: &str) -> Entry {
    let address = Claimed(loaded.address(name));
    loaded.domain.entry(address).unwrap()
}

fn integer(integer: u64) -> Returned {
    Returned {
        integer,
        high: 0,
        double: 0.0,
    }
}

fn link(from: &Loaded, to: &Loaded, name: &str, options: LinkOptions) {
    let entry = entry(to, name);
    from.domain.link(0, &to.domain, entry, options).unwrap();
}

#[test]
fn registers_go_through_and_results_come_back() {
    let program = Program::new(PROGRAM);
    let (one, two) = (load(&program), load(&program));
    let doubles = LinkOptions {
        doubles: true,
        ..LinkOptions::default()
    };
    assert_eq!(one.call("through", &[]).unwrap().integer, 8, "the host's");
    link(&one, &two, "add", doubles);
    let arguments = CallArguments::new(&[30, 5]).with_doubles(&[1.5, 2.0]);
    let returned = one.call_with("through", &arguments).unwrap();
    assert_eq!(
        (returned.integer, returned.high, returned.double),
        (42, 30, 3.5)
    );
}

#[test]
fn the_called_one_knows_who_calls_and_the_host_sees_the_graph() {
    let program = Program::new(PROGRAM);
    let (one, two) = (load(&program), load(&program));
    link(&one, &two, "ask", LinkOptions::default());
    let caller = one.call("through", &[]).unwrap().integer - 7;
    assert_eq!(caller, one.domain.number().0);
    assert_eq!(two.call("ask", &[]).unwrap().integer, 0, "the host");
    let links = one.domain.links();
    assert_eq!(links.len(), 1);
    assert_eq!((links[0].import, links[0].callee), (0, two.domain.number()));
    assert_eq!((links[0].address, links[0].calls), (two.address("ask"), 1));
}

#[test]
fn domains_call_each_other_in_a_circle_until_the_depth_is_reached() {
    let program = Program::new(PROGRAM);
    let (one, two) = (load(&program), load(&program));
    link(&one, &two, "through", LinkOptions::default());
    link(&two, &one, "through", LinkOptions::default());
    let error = one.call("through", &[]).unwrap_err();
    assert!(error.to_string().contains("nested"), "{error}");
    assert!(!one.domain.has_ended() && !two.domain.has_ended());
}

#[test]
fn a_fault_ends_the_called_one_and_the_calling_invocation() {
    let program = Program::new(PROGRAM);
    let (one, mut two) = (load(&program), load(&program));
    link(&one, &two, "wrong", LinkOptions::default());
    let error = one.call("through", &[]).unwrap_err();
    assert!(error.to_string().contains("trap instruction"), "{error}");
    assert!(two.domain.has_ended());
    assert!(!one.domain.has_ended(), "it has done nothing wrong");
    let error = one.call("through", &[]).unwrap_err();
    assert!(error.to_string().contains("has ended"), "{error}");
    two.domain.restart().unwrap();
    two.domain.open();
    let error = one.call("through", &[]).unwrap_err();
    assert!(error.to_string().contains("trap instruction"), "again");
}

#[test]
fn a_failure_may_have_a_value_instead() {
    let program = Program::new(PROGRAM);
    let (one, two) = (load(&program), load(&program));
    let options = LinkOptions {
        failed: Some(Arc::new(|_| Ok(integer(35)))),
        ..LinkOptions::default()
    };
    link(&one, &two, "wrong", options);
    assert_eq!(one.call("through", &[]).unwrap().integer, 42);
    drop(two);
    assert_eq!(one.call("through", &[]).unwrap().integer, 42, "unloaded");
}

#[test]
fn the_host_decides_what_a_failure_comes_to() {
    let program = Program::new(PROGRAM);
    let (one, two) = (load(&program), load(&program));
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let list = seen.clone();
    let options = LinkOptions {
        failed: Some(Arc::new(move |error| {
            list.lock().unwrap().push(error.to_string());
            Err("that was all".into())
        })),
        ..LinkOptions::default()
    };
    link(&one, &two, "wrong", options);
    let error = one.call("through", &[]).unwrap_err();
    assert!(error.to_string().contains("that was all"), "{error}");
    let seen = seen.lock().unwrap();
    assert!(
        seen.len() == 1 && seen[0].contains("trap instruction"),
        "{seen:?}"
    );
}

#[test]
fn a_panic_behind_two_domains_reaches_the_host() {
    let program = Program::new(PROGRAM);
    let one = load(&program);
    let who = host(|_| panic!("on purpose"));
    let two = program.load_with(vec![host(|_| Ok(1)), who], Limits::default());
    link(&one, &two, "ask", LinkOptions::default());
    let call = || one.call("through", &[]).map(|returned| returned.integer);
    let caught = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
    assert_eq!(caught.downcast_ref(), Some(&"on purpose"));
    assert!(!one.domain.has_ended() && !two.domain.has_ended());
}

#[test]
fn integers_beyond_the_registers_go_from_stack_to_stack() {
    let program = Program::new(
        "
        import other
        export through
            subq $24, %r15
            movq $70, (%r15)
            movq $8, 8(%r15)
            call other
            addq $24, %r15
            testb $0, -8(%r15)
            ret
        export last
            movq 8(%r15), %rax
            addq (%r15), %rax
            ret
    ",
    );
    let load = || program.load_with(vec![host(|_| Ok(0))], Limits::default());
    let (one, two) = (load(), load());
    let options = LinkOptions {
        stacked: 2,
        ..LinkOptions::default()
    };
    link(&one, &two, "last", options);
    assert_eq!(one.call("through", &[]).unwrap().integer, 78);
}

#[test]
fn the_calling_ones_time_holds_for_the_called_one() {
    let program = Program::new(PROGRAM);
    let granted = Duration::from_millis(10);
    let limits = Limits {
        time: Some(granted),
        ..Limits::default()
    };
    let one = program.load_with(vec![host(|_| Ok(0)), host(|_| Ok(0))], limits);
    let two = load(&program);
    let options = LinkOptions {
        failed: Some(Arc::new(|_| Ok(integer(0)))),
        ..LinkOptions::default()
    };
    link(&one, &two, "forever", options);
    let fault = one.fault("through", &[]);
    assert_eq!(fault.cause, Cause::TimeLimit { granted });
}

#[test]
fn a_domain_that_another_one_calls_is_busy() {
    let program = Program::new(PROGRAM);
    let one = load(&program);
    let two: Arc<Mutex<Option<WindowDomain>>> = Arc::default();
    let held = two.clone();
    let who = host(move |_| {
        let mut domain = held.lock().unwrap();
        let result = domain.as_mut().unwrap().restart();
        assert!(matches!(result, Err(Error::Busy)));
        // Unloading it while it is called keeps its window until it returns.
        drop(domain.take());
        Ok(35)
    });
    let callee = program.load_with(vec![host(|_| Ok(1)), who], Limits::default());
    link(&one, &callee, "ask", LinkOptions::default());
    *two.lock().unwrap() = Some(callee.domain);
    assert_eq!(one.call("through", &[]).unwrap().integer, 42);
    assert!(one.call("through", &[]).is_err(), "now it is gone");
}

#[test]
fn the_last_who_leaves_gives_an_unloaded_domain_up() {
    let program = Program::new(PROGRAM);
    let mut called = 0;
    for round in 0..200 {
        let (one, two) = (load(&program), load(&program));
        let options = LinkOptions {
            failed: Some(Arc::new(|_| Ok(integer(0)))),
            ..LinkOptions::default()
        };
        link(&one, &two, "add", options);
        let window = two.domain.memory().base();
        let begin = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            let call = || {
                begin.wait();
                let calls = || one.call("through", &[1, 2]).unwrap().integer;
                std::iter::repeat_with(calls)
                    .take_while(|&sum| sum != 7)
                    .count()
            };
            let threads = [(); 3].map(|()| scope.spawn(call));
            begin.wait();
            // Another moment in each round; to yield would wait for the others' whole slices of time.
            for _ in 0..round % 20 * 50 {
                std::hint::spin_loop();
            }
            drop(two);
            called += threads
                .map(|thread| thread.join().unwrap())
                .into_iter()
                .sum::<usize>();
        });
        // The calling one, which has the link, is still there.
        let next = load(&program);
        assert_eq!(next.domain.memory().base(), window, "round {round}");
    }
    assert!(called > 0, "nobody was in it");
    println!("{called} calls");
}

#[test]
fn a_domain_is_restarted_between_calls_of_others() {
    let program = Program::new(PROGRAM);
    let (one, mut two) = (load(&program), load(&program));
    let options = LinkOptions {
        failed: Some(Arc::new(|_| Ok(integer(0)))),
        ..LinkOptions::default()
    };
    link(&one, &two, "add", options);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let found = one.call("through", &[1, 2]).unwrap().integer;
                    assert!(found == 10 || found == 7, "{found}");
                }
            });
        }
        let mut restarts = 0;
        while restarts < 200 {
            match two.domain.restart() {
                Ok(()) => {
                    two.domain.open();
                    restarts += 1;
                }
                Err(Error::Busy) => std::thread::yield_now(),
                Err(other) => panic!("{other}"),
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(one.call("through", &[1, 2]).unwrap().integer, 10);
}

#[test]
fn links_are_made_once_and_to_entries_of_the_callee() {
    let program = Program::new(PROGRAM);
    let (one, two) = (load(&program), load(&program));
    let (mine, yours) = (entry(&one, "add"), entry(&two, "add"));
    let link = |import, entry| {
        let options = LinkOptions::default();
        one.domain.link(import, &two.domain, entry, options)
    };
    assert!(matches!(link(0, mine), Err(Error::WrongDomain)));
    assert!(matches!(link(2, yours), Err(Error::NoImport { import: 2 })));
    link(0, yours).unwrap();
    assert!(matches!(link(0, yours), Err(Error::Linked)));
    let result = one.call("through", &[1, 2]);
    assert!(!matches!(result, Err(CallError::Fault(_))));
}
