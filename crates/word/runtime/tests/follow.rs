//! A host is told what a module does, instruction by instruction. That is so on one thread, for modules that were loaded for it.

mod module;

use module::{function, module};
use mullion_word_runtime::{Effect, FunctionPolicy, Host, ModuleStep, Policy, Size};
use std::sync::Mutex;

type Fn2 = extern "C" fn(u64, u64) -> u64;

/// What was told, with the register that has the first argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Call(u64),
    Return,
    Leave(u64),
    Back,
    Instruction(u64, u64),
}

static TOLD: Mutex<Vec<Told>> = Mutex::new(Vec::new());

const TEXT: &str = "
    import  malloc
    import  free
    gate    fill
    checked 2, 0, (%rdi), mov %esi, (%rdi)
    mov     $1, %eax
    ret
    gate    get
    call_import malloc
    ret
    gate    drop
    call_import free
    ret
";

fn told() -> Vec<Told> {
    std::mem::take(&mut *TOLD.lock().unwrap())
}

/// The process has one hook, so this is the one test here.
#[test]
fn what_a_module_does_is_told() {
    let host = Host::new().unwrap();
    let fills = FunctionPolicy::of(&[Effect::InOut(0, Size::Argument(1))]);
    let policy = || Policy::new().allocators().export("fill", fills.clone());
    let text = module("followed", TEXT);
    let before = host.load(&text, policy()).unwrap();
    host.follow(|step| {
        let told = match step {
            ModuleStep::Call { gate, .. } => Told::Call(gate),
            ModuleStep::Return => Told::Return,
            ModuleStep::Leave { function, .. } => Told::Leave(function),
            ModuleStep::Back => Told::Back,
            ModuleStep::Granted => panic!("nothing is granted on demand"),
            ModuleStep::Instruction {
                address,
                code,
                registers,
            } => {
                assert!(!code.is_empty());
                Told::Instruction(address, registers[7])
            }
        };
        TOLD.lock().unwrap().push(told);
    });
    let domain = host.load(&text, policy()).unwrap();
    let mut cell = [5u32; 4];
    let at = cell.as_mut_ptr() as u64;

    let fill: Fn2 = function(&domain, "fill");
    assert_eq!(fill(at, 8), 1);
    assert_eq!(std::hint::black_box(&mut cell)[0], 8);
    let all = told();
    let gate = domain.function("fill").unwrap() as u64;
    assert_eq!(
        (all[0], *all.last().unwrap()),
        (Told::Call(gate), Told::Return)
    );
    let instructions = all.iter().filter_map(|told| match told {
        Told::Instruction(address, argument) => Some((*address, *argument)),
        _ => None,
    });
    let instructions: Vec<_> = instructions.collect();
    assert_eq!(instructions.len(), all.len() - 2, "nothing else: {all:x?}");
    // The check, the store, the number, and the return.
    assert!(instructions.len() >= 6, "{all:x?}");
    assert!(instructions.iter().all(|(_, argument)| *argument == at));
    assert!(instructions.is_sorted() && instructions[0].0 > gate);

    let get: Fn2 = function(&domain, "get");
    let block = get(24, 0);
    assert_ne!(block, 0);
    let all = told();
    let is_way = |told: &&Told| !matches!(told, Told::Instruction(..));
    let way: Vec<Told> = all.iter().filter(is_way).copied().collect();
    assert!(
        matches!(
            way[..],
            [Told::Call(_), Told::Leave(_), Told::Back, Told::Return]
        ),
        "{way:x?}"
    );
    let after = all.iter().position(|told| *told == Told::Back).unwrap();
    assert!(matches!(all[after + 1], Told::Instruction(..)), "{all:x?}");
    function::<Fn2>(&domain, "drop")(block, 0);

    // A refused access ends the call as ever.
    let _so_far = told();
    let poke: Fn2 = function(&domain, "fill");
    assert_eq!(poke(0x1000, 0), 0);
    assert_eq!(*told().last().unwrap(), Told::Return);
    assert_eq!(domain.take_reports().len(), 1);
    domain.restart().unwrap();

    // Neither one that was loaded before, nor one with instances, nor another thread.
    let _so_far = told();
    let served = host.load(&text, policy().instances()).unwrap();
    assert_eq!(function::<Fn2>(&served, "fill")(at, 8), 1);
    assert_eq!(function::<Fn2>(&before, "fill")(at, 8), 1);
    std::thread::spawn(move || assert_eq!(fill(at, 8), 1))
        .join()
        .unwrap();
    assert_eq!(told(), []);

    // Rights are taken away by another thread meanwhile: it waits for checks, and both go on.
    let shared = vec![0u32; 64];
    let place = shared.as_ptr() as usize;
    let revokes = std::thread::spawn(move || {
        for _ in 0..200 {
            // SAFETY: it is the test's own.
            unsafe { host.grant(&domain, place, 64, true) }.unwrap();
            host.revoke(place, 64).unwrap();
        }
    });
    let mut rounds = 0;
    while !revokes.is_finished() || rounds < 50 {
        assert_eq!(fill(at, 8), 1);
        rounds += 1;
    }
    revokes.join().unwrap();
    let _so_far = told();
    assert_eq!(fill(at, 8), 1);
    assert!(told().len() >= 8, "it is followed still");
}
