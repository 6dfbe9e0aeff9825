//! Functions that a module passes to the host, which calls them with values of its own. The policy of the host's function says what
//! they are granted meanwhile, and an export's policy does not: the module chooses what it passes.

mod module;

use module::{function, load, module};
use mullion_supervisor::Permission;
use mullion_word_runtime::{
    Domain, Effect, FaultKind, FunctionPolicy, Host, LoadError, Policy, Size,
};
use std::sync::{Mutex, MutexGuard, PoisonError};

type Each = extern "C" fn(u64, u64, u64) -> u64;
type Fn3 = extern "C" fn(u64, u64, u64) -> u64;

const TEXT: &str = "
    import  walk
    import  plain
    gate    all                     # walk(each, cookie, how)
    mov     %rdi, %rsi
    lea     each(%rip), %rdi
    call_import walk
    ret
    gate    all_plain
    mov     %rdi, %rsi
    lea     each(%rip), %rdi
    call_import plain
    ret
    gate    by_name                 # walk(%rdi, %rsi, %rdx)
    call_import walk
    ret
    gate    plain_by_name
    call_import plain
    ret
    gate    each                    # what the last of %rsi bytes at %rdi is, and one more
    lea     -4(%rdi,%rsi), %rcx
    checked 1, 0, (%rcx), mov (%rcx), %eax
    inc     %eax
    checked 2, 0, (%rcx), mov %eax, (%rcx)
    ret
    gate    again                   # the host once more, which calls each
    lea     each(%rip), %rdi
    call_import plain
    ret
";

/// What the host's function does with the module's.
type Walk = Box<dyn FnMut(Each, u64, u64) -> u64 + Send>;
static WALK: Mutex<Option<Walk>> = Mutex::new(None);
static PLAIN: Mutex<Option<Walk>> = Mutex::new(None);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(job: &Mutex<Option<Walk>>, each: Each, cookie: u64, how: u64) -> u64 {
    let taken = lock(job).take();
    taken.map_or(0, |mut walk| walk(each, cookie, how))
}

extern "C" fn walk(each: Each, cookie: u64, how: u64) -> u64 {
    run(&WALK, each, cookie, how)
}

extern "C" fn plain(each: Each, cookie: u64, how: u64) -> u64 {
    run(&PLAIN, each, cookie, how)
}

struct Scene {
    domain: Domain,
    _turn: MutexGuard<'static, ()>,
}

/// Rows of so many bytes as the second argument says.
fn rows() -> FunctionPolicy {
    FunctionPolicy::of(&[Effect::InOut(0, Size::Argument(1))])
}

fn policy() -> Policy {
    let function = FunctionPolicy::of(&[Effect::Callback(0)]);
    // SAFETY: they call what the module may enter.
    unsafe {
        Policy::new()
            .offer(
                "walk",
                walk as *const () as usize,
                Some(function.clone().callback(0, rows())),
            )
            .offer("plain", plain as *const () as usize, Some(function))
    }
}

impl Scene {
    fn new(policy: Policy) -> Scene {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = lock(&TURN);
        let (_, domain) = load("callbacks", TEXT, policy);
        Scene {
            domain,
            _turn: turn,
        }
    }

    fn call(&self, name: &str, cookie: u64) -> u64 {
        function::<Fn3>(&self.domain, name)(cookie, 0, 0)
    }

    fn walks(&self, walk: impl FnMut(Each, u64, u64) -> u64 + Send + 'static) {
        *lock(&WALK) = Some(Box::new(walk));
    }

    fn plain(&self, walk: impl FnMut(Each, u64, u64) -> u64 + Send + 'static) {
        *lock(&PLAIN) = Some(Box::new(walk));
    }

    /// Why the module was ended, which begins anew.
    fn refused(&self) -> (FaultKind, String) {
        let reports = self.domain.take_reports();
        assert_eq!(reports.len(), 1, "{reports:?}");
        self.domain.restart().unwrap();
        (reports[0].kind, reports[0].to_string())
    }

    fn has(&self, at: u64) -> bool {
        self.domain.permission(at as usize) != Permission::None
    }
}

fn row() -> (Box<[u32; 4]>, u64) {
    let row = Box::new([5, 6, 7, 8]);
    let at = row.as_ptr() as u64;
    (row, at)
}

#[test]
fn a_callback_has_what_the_hosts_function_says_for_the_length_of_its_call() {
    let scene = Scene::new(policy());
    let (row, at) = row();
    let domain = scene.domain;
    for round in 0..200 {
        scene.walks(move |each, cookie, _| {
            assert_eq!(cookie, 77);
            let answer = each(at, 12, cookie);
            assert!(
                domain.permission(at as usize) == Permission::None,
                "taken back"
            );
            answer + each(at + 4, 4, cookie)
        });
        assert_eq!(scene.call("all", 77), 15 + 2 * round, "{round}");
        assert!(!scene.has(at));
    }
    assert_eq!(*row, [5, 206, 207, 8]);
    assert!(scene.domain.take_reports().is_empty());
    // Nothing beyond what the host passes.
    scene.walks(move |each, _, _| each(at, 20, 0).wrapping_add(each(at - 1, 0, 0)));
    scene.call("all", 0);
    assert_eq!(scene.refused().0, FaultKind::Access);
}

#[test]
fn without_a_word_of_the_hosts_function_a_callback_has_nothing() {
    let scene = Scene::new(policy());
    let (row, at) = row();
    scene.plain(move |each, _, _| each(at, 4, 0));
    assert_eq!(scene.call("all_plain", 0), 0);
    assert_eq!(scene.refused().0, FaultKind::Access);
    // Nor has the same function when the host calls it behind the call that has passed it, or in another thread.
    scene.walks(move |each, _, _| each as usize as u64);
    let each = scene.call("all", 0);
    assert_eq!(function::<Each>(&scene.domain, "each")(at, 4, 0), 0);
    assert_eq!(scene.refused().0, FaultKind::Access);
    assert_eq!(each, scene.domain.function("each").unwrap() as u64);
    scene.walks(move |each, _, _| std::thread::spawn(move || each(at, 4, 0)).join().unwrap());
    scene.call("all", 0);
    assert_eq!(scene.refused().0, FaultKind::Access);
    assert_eq!(*row, [5, 6, 7, 8]);
}

/// The frame of the module that has passed it, and no other, is what a callback is known by.
#[test]
fn a_call_in_between_does_not_have_what_the_outer_one_has() {
    let scene = Scene::new(policy());
    let (row, at) = row();
    let again = function::<Each>(&scene.domain, "again");
    scene.plain(move |each, _, _| each(at, 4, 0));
    scene.walks(move |_, _, _| again(0, 0, 0));
    scene.call("all", 0);
    assert_eq!(scene.refused().0, FaultKind::Access);
    // Behind it, the outer one has it still.
    scene.plain(|_, _, _| 1);
    scene.walks(move |each, _, _| again(0, 0, 0) + each(at, 8, 0));
    assert_eq!(scene.call("all", 0), 1 + 7);
    assert_eq!(*row, [5, 7, 7, 8]);
}

/// The module chooses what it passes: an export that is granted something is granted what the host's function says, or it is refused.
#[test]
fn an_export_as_a_callback_is_granted_nothing_by_its_own_policy() {
    let large = FunctionPolicy::of(&[Effect::InOut(0, Size::Bytes(16))]);
    let scene = Scene::new(policy().export("each", large));
    let (_row, at) = row();
    let each = scene.domain.function("each").unwrap() as u64;
    let by_name: Fn3 = function(&scene.domain, "plain_by_name");
    scene.plain(|_, _, _| panic!("it is not called"));
    assert_eq!(by_name(each, at, 0), 0);
    let (kind, said) = scene.refused();
    assert_eq!(kind, FaultKind::Policy);
    assert!(said.contains("`each`, which has rights by"), "{said}");
    // Nor where the host's function says less: the host may keep it, and call it later.
    scene.walks(|_, _, _| panic!("it is not called"));
    assert_eq!(scene.call("all", 0), 0);
    let (kind, said) = scene.refused();
    assert_eq!(kind, FaultKind::Policy);
    assert!(said.contains("`each`, which has rights by"), "{said}");
    // Called by the host itself it is what it was.
    assert_eq!(function::<Each>(&scene.domain, "each")(at, 16, 0), 9);
}

/// An export that says the very same may be passed, and kept.
#[test]
fn an_export_with_the_rights_of_a_callback_may_be_kept() {
    let scene = Scene::new(policy().export("each", rows()));
    let (row, at) = row();
    scene.walks(move |each, _, _| each(at, 4, 0));
    assert_eq!(scene.call("all", 0), 6);
    scene.walks(move |each, _, _| each as usize as u64);
    let kept = scene.call("all", 0);
    assert_eq!(kept, scene.domain.function("each").unwrap() as u64);
    let each: Each = function(&scene.domain, "each");
    assert_eq!(each(at, 8, 0), 7);
    assert_eq!(*row, [6, 7, 7, 8]);
    // Beyond what the host passes there is nothing.
    assert_eq!(each(at + 4, 1, 0), 0);
    assert_eq!(scene.refused().0, FaultKind::Access);
}

/// A value that the host only passes on does not say for which instance a callback runs.
#[test]
fn an_export_that_names_an_instance_is_no_callback() {
    let named = FunctionPolicy::of(&[Effect::Instance(0)]);
    let scene = Scene::new(policy().export("each", named).instances());
    let (_row, at) = row();
    let each = scene.domain.function("each").unwrap() as u64;
    let other = scene.domain.instance(at).unwrap();
    // SAFETY: the test's own.
    unsafe { other.grant(at as usize, 16, true) }.unwrap();
    let by_name: Fn3 = function(&scene.domain, "plain_by_name");
    scene.plain(|_, _, _| panic!("it is not called"));
    assert_eq!(by_name(each, at, 0), 0);
    assert_eq!(scene.refused().0, FaultKind::Policy);
    // Nor is it passed where its meaning is said: the host may keep it.
    scene.walks(|_, _, _| panic!("it is not called"));
    assert_eq!(scene.call("all", 0), 0);
    assert_eq!(scene.refused().0, FaultKind::Policy);
    assert_eq!(function::<Each>(&scene.domain, "each")(at, 16, 0), 9);
}

/// A value that the host only passes on does not say for which instance a callback runs.
#[test]
fn a_callback_runs_for_the_instance_that_has_passed_it() {
    let scene = Scene::new(policy().instances());
    let (_row, at) = row();
    let (one, other) = (scene.domain.instance(1), scene.domain.instance(at));
    let (one, other) = (one.unwrap(), other.unwrap());
    // SAFETY: the test's own.
    unsafe { other.grant(at as usize, 16, true) }.unwrap();
    scene.walks(move |each, _, _| each(at, 4, 0));
    assert_eq!(one.run(|| scene.call("all", 0)), 6);
    // The host lends nothing, and the words are the other instance's.
    scene.walks(move |each, _, _| each(at + 4, 0, 0));
    one.run(|| scene.call("all", 0));
    assert_eq!(scene.refused().0, FaultKind::Access);
}

#[test]
fn what_a_callback_means_is_looked_at_when_a_module_is_loaded() {
    let host = Host::new().unwrap();
    let module = module("callbacks", TEXT);
    let one = || FunctionPolicy::of(&[Effect::Callback(0)]);
    let of = |effects: &[Effect]| one().callback(0, FunctionPolicy::of(effects));
    let wrong = [
        FunctionPolicy::of(&[]).callback(0, rows()),
        one().callback(1, rows()),
        one().callback(0, one().callback(0, rows())),
        of(&[Effect::Frees(0)]),
        of(&[Effect::Instance(0)]),
        of(&[Effect::Out(0, Size::Text)]),
    ];
    for function in wrong {
        // SAFETY: it is not called.
        let policy = unsafe { Policy::new().offer("walk", 16, Some(function.clone())) };
        let loaded = host.load(&module, policy).map(drop);
        assert!(
            matches!(loaded, Err(LoadError::Misfit { .. })),
            "{function:?}"
        );
    }
    let beyond = of(&[Effect::In(6, Size::Bytes(4))]);
    // SAFETY: it is not called.
    let policy = unsafe { Policy::new().offer("walk", 16, Some(beyond)) };
    let loaded = host.load(&module, policy).map(drop);
    assert!(matches!(
        loaded,
        Err(LoadError::OnStack { argument: 6, .. })
    ));
}
