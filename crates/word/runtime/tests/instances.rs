//! One module, many instances: what is one request's, another request's calls cannot touch, whatever pointers the module
//! has kept.

mod module;

use module::{function, module};
use mullion_supervisor::Permission;
use mullion_word_runtime::{
    Domain, Effect, EndError, FaultKind, FunctionPolicy, GrantError, Host, Instance, InstanceError,
    Lease, Limits, Policy, Size, calling,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};

type Fn3 = extern "C" fn(u64, u64, u64) -> u64;

/// The first argument is the name of a request in all but `inner`.
const TEXT: &str = "
    import  malloc
    import  free
    import  call_back
    import  pool_get
    import  wait
    gate    store
    checked 2, 0, (%rsi), mov %edx, (%rsi)
    incl    count(%rip)
    mov     $1, %eax
    ret
    gate    look
    checked 1, 0, (%rsi), mov (%rsi), %eax
    bts     $32, %rax
    ret
    gate    get
    mov     %rsi, %rdi
    call_import malloc
    ret
    gate    drop
    mov     %rsi, %rdi
    call_import free
    mov     $1, %eax
    ret
    gate    pooled
    mov     %rsi, %rdi
    call_import pool_get
    ret
    gate    stack                   # where a local variable lies
    lea     -64(%r15), %rax
    ret
    gate    leave_secret
    mov     %esi, -64(%r15)
    mov     $1, %eax
    ret
    gate    peek
    mov     -64(%r15), %eax
    bts     $32, %rax
    ret
    gate    by_pointer              # store, by its own gate
    lea     store(%rip), %rax
    call_by %rax
    ret
    gate    back                    # store, by a function of the host that calls back
    lea     inner(%rip), %rdi
    call_import call_back
    ret
    gate    inner
    checked 2, 0, (%rsi), mov %edx, (%rsi)
    mov     $1, %eax
    ret
    gate    own_data
    lea     count(%rip), %rsi
    checked 2, 0, (%rsi), incl (%rsi)
    checked 1, 0, (%rsi), mov (%rsi), %eax
    ret
    gate    drop_and_store          # what it is granted for the call
    sub     $32, %r15
    mov     %rsi, (%r15)
    mov     %rdx, 8(%r15)
    mov     %rsi, %rdi
    call_import free
    mov     (%r15), %rsi
    mov     8(%r15), %rdx
    add     $32, %r15
    checked 2, 0, (%rsi), mov %edx, (%rsi)
    mov     $1, %eax
    ret
    gate    waits                   # with what it is granted for the call
    call_import wait
    mov     $1, %eax
    ret
    .bss
    .p2align 3
count:
    .quad   0
    .text
";

const NAMED: [&str; 11] = [
    "store",
    "look",
    "get",
    "drop",
    "pooled",
    "stack",
    "leave_secret",
    "peek",
    "by_pointer",
    "back",
    "own_data",
];

extern "C" fn call_back(f: Fn3, at: u64, value: u64) -> u64 {
    f(0, at, value)
}

static POOL: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];
static LEASE: Mutex<Option<Lease>> = Mutex::new(None);

extern "C" fn pool_get(place: u64) -> u64 {
    let at = POOL[place as usize].as_ptr() as usize;
    let to = calling().expect("a module calls");
    // SAFETY: it is the pool's.
    unsafe {
        LEASE
            .lock()
            .unwrap()
            .get_or_insert_default()
            .grant(to, at, 8, true)
    }
    .unwrap();
    at as u64
}

static MEET: [Barrier; 2] = [Barrier::new(2), Barrier::new(2)];

extern "C" fn wait() {
    MEET[0].wait();
    MEET[1].wait();
}

struct Scene {
    host: Host,
    domain: Domain,
}

fn policy() -> Policy {
    let offer = |address: *const ()| address as usize;
    // SAFETY: they do with their arguments what the module may.
    let mut policy = unsafe {
        Policy::new()
            .allocators()
            .offer("call_back", offer(call_back as *const ()), None)
            .offer("pool_get", offer(pool_get as *const ()), None)
            .offer("wait", offer(wait as *const ()), None)
    };
    for name in NAMED {
        policy = policy.export(name, FunctionPolicy::of(&[Effect::Instance(0)]));
    }
    let waits = [Effect::Instance(0), Effect::InOut(1, Size::Bytes(8))];
    let policy = policy.export("drop_and_store", FunctionPolicy::of(&waits));
    policy.export("waits", FunctionPolicy::of(&waits))
}

impl Scene {
    fn new() -> Scene {
        let host = Host::new().unwrap();
        let domain = host.load(&module("instances", TEXT), policy()).unwrap();
        Scene { host, domain }
    }

    fn call(&self, name: &str, request: u64, a: u64, b: u64) -> u64 {
        function::<Fn3>(&self.domain, name)(request, a, b)
    }

    /// The latest call was refused at this address.
    fn refused(&self, at: u64) {
        let reports = self.domain.take_reports();
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert_eq!(reports[0].kind, FaultKind::Access, "{}", reports[0]);
        assert_eq!(reports[0].address, Some(at), "{}", reports[0]);
        self.domain.restart().unwrap();
    }

    /// The latest call was refused before it began, or by a policy.
    fn refused_by_policy(&self, what: &str) {
        let reports = self.domain.take_reports();
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert_eq!(reports[0].kind, FaultKind::Policy, "{}", reports[0]);
        assert!(reports[0].to_string().contains(what), "{}", reports[0]);
        if self.domain.is_ended() {
            self.domain.restart().unwrap();
        }
    }

    fn grant(&self, to: Instance, of: &[AtomicU64], write: bool) {
        // SAFETY: they are the test's own.
        unsafe { to.grant(of.as_ptr() as usize, 8 * of.len(), write) }.unwrap();
    }
}

fn cells() -> [AtomicU64; 4] {
    [const { AtomicU64::new(5) }; 4]
}

const A: u64 = 0x1000;
const B: u64 = 0x2000;

#[test]
fn a_request_cannot_touch_another_one_by_a_pointer_that_the_module_has_kept() {
    let scene = Scene::new();
    let (a, b) = (
        scene.domain.instance(A).unwrap(),
        scene.domain.instance(B).unwrap(),
    );
    let (of_a, of_b, of_all) = (cells(), cells(), cells());
    scene.grant(a, &of_a, true);
    scene.grant(b, &of_b, true);
    // SAFETY: the test's own.
    unsafe {
        scene
            .host
            .grant(&scene.domain, of_all.as_ptr() as usize, 32, true)
    }
    .unwrap();
    let at = |of: &[AtomicU64; 4]| of.as_ptr() as u64;
    for way in ["store", "by_pointer", "back"] {
        for (name, own, other) in [(A, &of_a, &of_b), (B, &of_b, &of_a)] {
            assert_eq!(scene.call(way, name, at(own), 7), 1, "{way}");
            assert_eq!(own[0].load(Ordering::Relaxed) as u32, 7);
            // What the module has, all have.
            assert_eq!(scene.call(way, name, at(&of_all), 9), 1, "{way}");
            other[0].store(6, Ordering::Relaxed);
            assert_eq!(scene.call(way, name, at(other), 8), 0, "{way}");
            scene.refused(at(other));
            assert_eq!(other[0].load(Ordering::Relaxed), 6);
        }
        // For nobody it is the module alone.
        for of in [&of_a, &of_b] {
            assert_eq!(scene.call(way, 0, at(of), 8), 0, "{way}");
            scene.refused(at(of));
        }
    }
    for (name, other) in [(A, &of_b), (B, &of_a)] {
        assert_eq!(scene.call("look", name, at(other), 0), 0);
        scene.refused(at(other));
    }
    assert_eq!(a.permission(of_a.as_ptr() as usize), Permission::ReadWrite);
    assert_eq!(b.permission(of_a.as_ptr() as usize), Permission::None);
    assert_eq!(
        b.permission(of_all.as_ptr() as usize),
        Permission::ReadWrite
    );
    // The module's own data is one.
    for (call, name) in [A, B, 0, A].into_iter().enumerate() {
        assert_eq!(scene.call("own_data", name, 0, 0), call as u64 + 1);
    }
}

#[test]
fn stacks_and_blocks_are_the_instances_own() {
    let scene = Scene::new();
    let _both = [A, B].map(|name| scene.domain.instance(name).unwrap());
    let names = [A, B, 0];
    let locals = names.map(|name| scene.call("stack", name, 0, 0));
    for (who, name) in names.into_iter().enumerate() {
        for (whose, local) in locals.into_iter().enumerate() {
            let done = scene.call("store", name, local, 3);
            assert_eq!(done == 1, who == whose, "{who} {whose}");
            if done == 0 {
                scene.refused(local);
            }
        }
    }
    // Blocks: an instance has its own and the module's.
    for (owner, other, may) in [(A, B, false), (A, 0, false), (0, A, true), (A, A, true)] {
        for way in ["store", "drop"] {
            let scene = Scene::new();
            let _both = [A, B].map(|name| scene.domain.instance(name).unwrap());
            let block = scene.call("get", owner, 24, 0);
            let done = scene.call(way, other, block, 3);
            assert_eq!(done, u64::from(may), "{owner:#x} {other:#x} {way}");
            match (may, way) {
                (true, _) => assert!(scene.domain.take_reports().is_empty()),
                (false, "store") => scene.refused(block),
                (false, _) => scene.refused_by_policy("no block that was given"),
            }
        }
    }
    // The limit of memory is for all together.
    let limits = Limits {
        memory: 1000,
        ..Limits::default()
    };
    let host = Host::new().unwrap();
    let domain = host
        .load(&module("limited", TEXT), policy().limits(limits))
        .unwrap();
    let both = [A, B].map(|name| domain.instance(name).unwrap());
    let get: Fn3 = function(&domain, "get");
    assert_ne!(get(A, 600, 0), 0);
    assert_eq!(get(B, 600, 0), 0);
    both[0].end().unwrap();
    assert_ne!(get(B, 600, 0), 0);
}

#[test]
fn names_are_for_living_instances() {
    let scene = Scene::new();
    let a = scene.domain.instance(A).unwrap();
    assert!(matches!(
        scene.domain.instance(A),
        Err(InstanceError::Taken { .. })
    ));
    assert!(matches!(
        scene.domain.instance(0),
        Err(InstanceError::Taken { .. })
    ));
    a.also(0x1008).unwrap();
    assert!(matches!(a.also(A), Err(InstanceError::Taken { .. })));
    let own = cells();
    scene.grant(a, &own, true);
    let at = own.as_ptr() as u64;
    assert_eq!(scene.call("store", 0x1008, at, 1), 1, "by its other name");
    assert_eq!(scene.call("store", 0x3000, at, 1), 0);
    scene.refused_by_policy("store: argument 0, 0x3000, is the name of no instance");
    a.end().unwrap();
    for name in [A, 0x1008] {
        assert_eq!(scene.call("store", name, at, 1), 0);
        scene.refused_by_policy("is the name of no instance");
    }
    assert!(matches!(a.end(), Err(EndError::Gone)));
    assert!(matches!(a.also(9), Err(InstanceError::Ended)));
    // SAFETY: it must be refused.
    let granted = unsafe { a.grant(at as usize, 4, true) };
    assert_eq!(granted, Err(GrantError::Ended));
    // A module without instances has none.
    let plain = scene
        .host
        .load(&module("plain", "gate f\n ret"), Policy::new())
        .unwrap();
    assert!(matches!(plain.instance(1), Err(InstanceError::None(_))));
}

#[test]
fn a_place_that_comes_again_has_nothing_of_the_one_before() {
    let scene = Scene::new();
    let (kept, own) = (cells(), cells());
    let (old, new) = (Lease::new(), Lease::new());
    let at = own.as_ptr() as u64;
    let a = scene.domain.instance(A).unwrap();
    scene.grant(a, &own, true);
    // SAFETY: the test's own.
    unsafe { old.grant(a, kept.as_ptr() as usize, 32, true) }.unwrap();
    let block = scene.call("get", A, 40, 0);
    assert_eq!(scene.call("leave_secret", A, 77, 0), 1);
    assert_eq!(scene.call("peek", A, 0, 0), 77 | 1 << 32);
    a.end().unwrap();
    let b = scene.domain.instance(B).unwrap();
    assert_eq!(
        scene.call("peek", B, 0, 0),
        1 << 32,
        "the stack was cleared"
    );
    for at in [at, kept.as_ptr() as u64, block] {
        assert_eq!(b.permission(at as usize), Permission::None);
        assert_eq!(scene.call("look", B, at, 0), 0);
        scene.refused(at);
    }
    // A lease of the one before takes nothing from the next.
    // SAFETY: the test's own.
    unsafe { new.grant(b, kept.as_ptr() as usize, 32, true) }.unwrap();
    old.end();
    assert_eq!(scene.call("store", B, kept.as_ptr() as u64, 4), 1);
    new.end();
    assert_eq!(scene.call("store", B, kept.as_ptr() as u64, 4), 0);
    scene.refused(kept.as_ptr() as u64);
    // Many of them, one after the other.
    for round in 0..200u64 {
        let name = 0x10_0000 + 16 * round;
        let one = scene.domain.instance(name).unwrap();
        scene.grant(one, &own, true);
        assert_eq!(scene.call("store", name, at, round), 1);
        one.end().unwrap();
        assert_eq!(scene.call("store", B, kept.as_ptr() as u64, 4) + 1, 1);
        scene.refused(kept.as_ptr() as u64);
    }
    let usage = own[0].load(Ordering::Relaxed) as u32;
    assert_eq!(usage, 199);
}

/// A thread begins its first call for an instance, on a stack that a thread before it has left, while the instance ends.
#[test]
fn a_stack_that_is_taken_while_its_instance_ends_has_nothing_for_the_next() {
    const SECRET: u64 = 77;
    let scene = Scene::new();
    let leave_secret: Fn3 = function(&scene.domain, "leave_secret");
    let peek: Fn3 = function(&scene.domain, "peek");
    let mut refused = 0;
    for round in 0..1500u64 {
        let (name, next) = (0x10_0000 + 32 * round, 0x10_0010 + 32 * round);
        let old = scene.domain.instance(name).unwrap();
        let first = std::thread::spawn(move || leave_secret(name, SECRET, 0));
        assert_eq!(first.join().unwrap(), 1);
        let (meet, go_on) = (Barrier::new(2), Barrier::new(2));
        let seen = std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                meet.wait();
                let seen = peek(name, 0, 0);
                go_on.wait();
                (seen, peek(next, 0, 0))
            });
            meet.wait();
            for _ in 0..50 * (round % 300) {
                std::hint::spin_loop();
            }
            while let Err(EndError::InUse(..)) = old.end() {}
            scene.domain.instance(next).unwrap();
            go_on.wait();
            second.join().unwrap()
        });
        refused += u32::from(seen.0 == 0);
        assert_eq!(seen.1, 1 << 32, "in round {round} the next one found it");
    }
    println!("{refused} calls were refused");
}

#[test]
fn the_host_says_for_whom_it_calls_and_a_pool_gives_to_whom_it_is() {
    let scene = Scene::new();
    let (a, b) = (
        scene.domain.instance(A).unwrap(),
        scene.domain.instance(B).unwrap(),
    );
    let inner: Fn3 = function(&scene.domain, "inner");
    let own = cells();
    scene.grant(a, &own, true);
    let at = own.as_ptr() as u64;
    assert_eq!(a.run(|| inner(0, at, 3)), 1);
    a.enter();
    assert_eq!(b.run(|| inner(0, at, 3)), 0);
    scene.refused(at);
    assert_eq!(inner(0, at, 3), 1);
    a.leave();
    assert_eq!(inner(0, at, 3), 0);
    scene.refused(at);
    // A scope that the host has left behind is not for the next instance in its place.
    let gone = scene.domain.instance(0x4000).unwrap();
    gone.enter();
    gone.end().unwrap();
    let next = scene.domain.instance(0x5000).unwrap();
    scene.grant(next, &own, true);
    assert_eq!(inner(0, at, 3), 0);
    scene.refused_by_policy("inner: the instance that it is called for has ended");
    gone.leave();
    next.end().unwrap();
    // An argument that names another one counts more.
    assert_eq!(a.run(|| scene.call("store", B, at, 3)), 0);
    scene.refused(at);
    // A function of the host gives to the instance that has called it.
    let place = scene.call("pooled", A, 3, 0);
    assert_eq!(scene.call("store", A, place, 3), 1);
    assert_eq!(scene.call("store", B, place, 3), 0);
    scene.refused(place);
    LEASE.lock().unwrap().take();
    assert_eq!(scene.call("store", A, place, 3), 0);
    scene.refused(place);
}

#[test]
fn what_is_granted_for_a_call_is_for_its_instance() {
    let scene = Scene::new();
    let (a, _b) = (
        scene.domain.instance(A).unwrap(),
        scene.domain.instance(B).unwrap(),
    );
    let passed = cells();
    let at = passed.as_ptr() as u64;
    std::thread::scope(|scope| {
        let call = scope.spawn(|| scene.call("waits", A, at, 0));
        MEET[0].wait();
        let ended = a.end();
        let held = a.permission(at as usize);
        let seen = scene.call("look", B, at, 0);
        let reports = scene.domain.take_reports();
        // Before anything is asserted: the thread waits for it.
        MEET[1].wait();
        assert!(matches!(ended, Err(EndError::InUse(..))), "{ended:?}");
        assert!(a.is_live());
        assert_eq!((held, seen), (Permission::ReadWrite, 0));
        assert_eq!(reports[0].address, Some(at));
        assert_eq!(call.join().unwrap(), 0, "the module was ended meanwhile");
    });
    assert_eq!(a.permission(at as usize), Permission::None);
    scene.domain.restart().unwrap();
    // A right of the module that ends in the call does not take what the call was granted.
    let lease = Lease::new();
    // SAFETY: the test's own.
    unsafe { lease.grant(scene.domain, at as usize, 8, true) }.unwrap();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| scene.call("waits", A, at, 0));
        MEET[0].wait();
        lease.end();
        let held = a.permission(at as usize);
        MEET[1].wait();
        assert_eq!((held, call.join().unwrap()), (Permission::ReadWrite, 1));
    });
    assert_eq!(a.permission(at as usize), Permission::None);
    a.end().unwrap();
}

/// A block of the module, or of the instance itself, that the host passes: whoever frees it in the call has nothing there from then on.
#[test]
fn a_block_that_is_freed_in_a_call_is_not_the_calls_any_more() {
    for (owner, caller) in [(0, A), (A, A), (0, 0)] {
        let scene = Scene::new();
        let _a = scene.domain.instance(A).unwrap();
        let block = scene.call("get", owner, 24, 0);
        assert_ne!(block, 0);
        let done = scene.call("drop_and_store", caller, block, 3);
        assert_eq!(
            done, 0,
            "{owner:#x} {caller:#x}: it wrote into what it has freed"
        );
        scene.refused(block);
    }
    // Neither is it another instance's, whose call runs.
    let scene = Scene::new();
    let [a, _b] = [A, B].map(|name| scene.domain.instance(name).unwrap());
    let block = scene.call("get", 0, 24, 0);
    std::thread::scope(|scope| {
        let call = scope.spawn(|| scene.call("waits", A, block, 0));
        MEET[0].wait();
        let held = a.permission(block as usize);
        let done = scene.call("drop", B, block, 0);
        let left = a.permission(block as usize);
        MEET[1].wait();
        assert_eq!((held, left), (Permission::ReadWrite, Permission::None));
        assert_eq!((done, call.join().unwrap()), (1, 1));
    });
    assert!(scene.domain.take_reports().is_empty());
}

#[test]
fn threads_serve_instances_side_by_side() {
    let scene = Scene::new();
    std::thread::scope(|scope| {
        for thread in 1..5u64 {
            let scene = &scene;
            scope.spawn(move || {
                let own = cells();
                let at = own.as_ptr() as u64;
                for round in 0..150 {
                    let name = thread << 32 | (round + 1) << 4;
                    let one = scene.domain.instance(name).unwrap();
                    scene.grant(one, &own, true);
                    assert_eq!(scene.call("store", name, at, round), 1);
                    let block = scene.call("get", name, 16, 0);
                    assert_eq!(scene.call("store", name, block, round), 1);
                    one.end().unwrap();
                    assert_eq!(own[0].load(Ordering::Relaxed) as u32 as u64, round);
                }
            });
        }
    });
    assert!(scene.domain.take_reports().is_empty());
    // With instances that nobody has ended.
    let _left = scene.domain.instance(A).unwrap();
    assert_ne!(scene.call("get", A, 16, 0), 0);
    scene.domain.unload().unwrap();
    assert!(matches!(
        scene.domain.instance(B),
        Err(InstanceError::Ended)
    ));
}

/// Another domain may get the memory: the place of the ended instance must not have anything there.
#[test]
fn a_stack_of_a_thread_that_has_ended_goes_with_its_instance() {
    let scene = Scene::new();
    let a = scene.domain.instance(A).unwrap();
    let local = std::thread::scope(|scope| {
        let thread = scope.spawn(|| scene.call("stack", A, 0, 0));
        thread.join().unwrap()
    });
    assert_eq!(a.permission(local as usize), Permission::ReadWrite);
    a.end().unwrap();
    // It has the place of the first, and a thread of its own.
    let b = scene.domain.instance(B).unwrap();
    assert_eq!(b.permission(local as usize), Permission::None);
}

/// What a life has left on a stack, the next one does not find: on a thread that lives, and on one that has ended.
#[test]
fn stacks_are_fresh_behind_a_restart() {
    let scene = Scene::new();
    let _a = scene.domain.instance(A).unwrap();
    let on_a_thread = |name: &str, who: u64, value: u64| {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| scene.call(name, who, value, 0));
            thread.join().unwrap()
        })
    };
    for who in [0, A] {
        assert_eq!(scene.call("leave_secret", who, 77, 0), 1);
        assert_eq!(scene.call("peek", who, 0, 0), 1 << 32 | 77);
        assert_eq!(on_a_thread("leave_secret", who, 78), 1);
    }
    scene.domain.restart().unwrap();
    for who in [0, A] {
        assert_eq!(scene.call("peek", who, 0, 0), 1 << 32, "{who:#x}");
        assert_eq!(on_a_thread("peek", who, 0), 1 << 32, "{who:#x}");
    }
}
