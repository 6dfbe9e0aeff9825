//! A module that the verifier accepts, loaded without a word of trust in its maker.

mod module;

use module::{build, function};
use mullion_word_runtime::{Effect, FaultKind, FunctionPolicy, Host, Module, Policy, Size};
use mullion_word_verifier::verify;

type Fn0 = extern "C" fn() -> u64;
type Fn2 = extern "C" fn(u64, u64) -> u64;

const TEXT: &str = "
    import  malloc
    import  free
    gate    get
    call    stub.malloc
    ret
    gate    drop
    call    stub.free
    mov     $1, %eax
    ret
    gate    put
    checked 2, 0, (%rdi), mov %esi, (%rdi)
    mov     $1, %eax
    ret
    gate    look
    checked 1, 0, (%rdi), mov (%rdi), %eax
    ret
    gate    count
    incl    counter(%rip)
    mov     counter(%rip), %eax
    ret
    gate    stack
    sub     $32, %r15
    movl    $5, 8(%r15)
    mov     8(%r15), %eax
    add     $32, %r15
    mov     (%r15), %r11            # a probe
    ret
stub.malloc:
    jmp     *slot.malloc(%rip)
stub.free:
    jmp     *slot.free(%rip)
    .data
counter: .long 40
    .text
";

#[test]
fn a_verified_module_runs() {
    let verified =
        verify(build("verified", TEXT)).unwrap_or_else(|rejected| panic!("{rejected:#?}"));
    let module = Module::new("verified", &verified).unwrap();
    let host = Host::new().unwrap();
    let policy = Policy::new().allocators().export(
        "look",
        FunctionPolicy::of(&[Effect::In(0, Size::Bytes(4))]).error(-1),
    );
    let domain = host.load(&module, policy).unwrap();
    assert_eq!(function::<Fn0>(&domain, "count")(), 41);
    assert_eq!(function::<Fn0>(&domain, "stack")(), 5);
    let (get, put): (Fn2, Fn2) = (function(&domain, "get"), function(&domain, "put"));
    let block = get(64, 0);
    assert_eq!(put(block + 60, 9), 1);
    assert_eq!(function::<Fn2>(&domain, "look")(block + 60, 0), 9);
    let cell = Box::new(77u32);
    let at = &raw const *cell as u64;
    assert_eq!(function::<Fn2>(&domain, "look")(at, 0), 77);
    assert_eq!(function::<Fn2>(&domain, "drop")(block, 0), 1);
    assert_eq!(put(at, 1), 0);
    let report = domain.take_reports().remove(0);
    assert_eq!((report.kind, report.address), (FaultKind::Access, Some(at)));
    assert_eq!(*cell, 77);
    domain.restart().unwrap();
    assert_eq!(function::<Fn0>(&domain, "count")(), 41, "its data is fresh");
    domain.unload().unwrap();
}
