//! A run with its calls and accesses goes through the hardware model, which refuses none of them. Nothing of the run can be left
//! out, and no access can be elsewhere.

mod module;

use module::{build, function, module};
use mullion_mmp::config::Config;
use mullion_mmp::log::{RunEvent, write_run};
use mullion_mmp::machine::Machine;
use mullion_mmp::measurement::Crossings;
use mullion_mmp::recorder::ADDRESS_BITS;
use mullion_mmp::trace::TraceReader;
use mullion_supervisor::AuditLog;
use mullion_word_runtime::{Effect, FunctionPolicy, Host, Module, ModuleStep, Policy, Size};
use mullion_word_verifier::verify;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

const BELOW: &str = "
    gate    bump
    checked 2, 0, (%rdi), mov %esi, (%rdi)
    ret
    gate    look
    checked 1, 0, (%rdi), mov (%rdi), %eax
    ret
";

const LATE: &str = "
    gate    reach
    checked 2, 0, (%rdi), mov %esi, (%rdi)
    ret
";

/// `work` gets a cell, a number, a function of the host, and one of the other module.
const ABOVE: &str = "
    import  bump
    import  watched
    import  tell
    import  malloc
    import  free
    gate    back
    checked 2, 0, (%rdi), mov %esi, (%rdi)
    ret
    gate    work
    push    %rcx
    push    %rdx
    push    %rdi
    call_import bump
    mov     (%rsp), %rdi
    call_import watched
    mov     (%rsp), %rdi
    lea     back(%rip), %rsi
    call_import tell
    mov     8(%rsp), %rax
    call_by %rax
    mov     16(%rsp), %rax
    mov     (%rsp), %rdi
    mov     $6, %esi
    call_by %rax
    mov     $24, %edi
    call_import malloc
    mov     %rax, %rdi
    push    %rdi
    checked 2, 0, (%rdi), mov %esi, (%rdi)
    pop     %rdi
    call_import free
    pop     %rdi
    mov     $9, %esi
    checked 2, 0, (%rdi), mov %esi, (%rdi)
    pop     %rdx
    pop     %rcx
    mov     $7, %eax
    ret
";

extern "C" fn tell(cell: u64, back: extern "C" fn(u64, u64)) {
    back(cell, 5);
}

extern "C" fn quiet() {}

static RUN: Mutex<Vec<RunEvent>> = Mutex::new(Vec::new());

/// The two accesses that the text above has, as machine code. Each instruction counts as one byte.
fn note(host: &Host, step: ModuleStep<'_>) {
    let mut run = RUN.lock().unwrap();
    match step {
        ModuleStep::Instruction {
            address,
            code,
            registers,
        } => {
            run.push(RunEvent::Instruction(address, 1));
            match code {
                [0x89, 0x37, ..] => run.push(RunEvent::Store(registers[7], 4)),
                [0x8b, 0x07, ..] => run.push(RunEvent::Load(registers[7], 4)),
                _ => {}
            }
        }
        step => {
            run.push(RunEvent::Decisions(host.audited()));
            run.push(match step {
                ModuleStep::Call { domain, gate } => RunEvent::Call { domain, gate },
                ModuleStep::Return => RunEvent::Return,
                ModuleStep::Leave { domain, function } => RunEvent::Leave { domain, function },
                ModuleStep::Back => RunEvent::Back,
                ModuleStep::Granted | ModuleStep::Instruction { .. } => return,
            });
        }
    }
}

/// What the model refuses, and what it counts.
fn model(log: &AuditLog, events: &[RunEvent]) -> (usize, Crossings, String) {
    let file = write_run(log, events.iter().copied(), "a run", Vec::new()).unwrap();
    let mut reader = TraceReader::new(&file[..]).unwrap();
    let mut machine = Machine::new(&Config::default(), ADDRESS_BITS).unwrap();
    while let Some(block) = reader.next_block().unwrap() {
        for event in block.events() {
            machine.step(&event.unwrap()).unwrap();
        }
    }
    let report = machine.report();
    let refused: Vec<String> = report.refusals.iter().map(ToString::to_string).collect();
    (refused.len(), report.crossings, refused.join("\n"))
}

/// The process has one hook, so this is the one test here.
#[test]
fn a_run_with_calls_and_accesses_is_what_the_model_allows() {
    let host = Host::new().unwrap();
    host.start_audit(usize::MAX);
    assert!(host.follow(move |step| note(&host, step)));
    assert!(!host.follow(|_| panic!("it is not the first")));
    let cell = |right: fn(u8, Size) -> Effect| FunctionPolicy::of(&[right(0, Size::Bytes(4))]);
    let policy = Policy::new()
        .export("bump", cell(Effect::InOut))
        .export("look", cell(Effect::In));
    let below = host.load(&module("below", BELOW), policy).unwrap();
    let [bump, look] = ["bump", "look"].map(|name| below.function(name).unwrap() as usize);
    let tells = FunctionPolicy::of(&[Effect::In(0, Size::Bytes(4)), Effect::Callback(1)])
        .callback(1, cell(Effect::InOut));
    let quiet = quiet as *const () as usize;
    // SAFETY: they are called with a cell of the test's.
    let policy = unsafe {
        Policy::new()
            .allocators()
            .export("work", cell(Effect::InOut))
            .export("back", cell(Effect::InOut))
            .offer("bump", bump, None)
            .offer("watched", look, Some(cell(Effect::In)))
            .offer("tell", tell as *const () as usize, Some(tells))
            .offer("quiet", quiet, None)
    };
    let above = host.load(&module("above", ABOVE), policy).unwrap();
    type Work = extern "C" fn(u64, u64, u64, u64) -> u64;
    let work: Work = function(&above, "work");
    let cells: Box<[AtomicU32; 16]> = Box::default();
    let cell_of = |at: usize| cells[at].load(Ordering::Relaxed);
    let at = cells.as_ptr() as u64;
    for cell in [1, 7] {
        assert_eq!(work(at + 4 * cell, 3, quiet as u64, bump as u64), 7);
        assert_eq!(cell_of(cell as usize), 9);
        // A decision about the words of a gate: it is placed anew.
        host.revoke(tell as *const () as usize, 4).unwrap();
    }
    // A right that is granted in the middle of code is there when the access comes.
    let verified = verify(build("late", LATE)).unwrap();
    let late = Module::new("late", &verified).unwrap();
    let late = host.load(&late, Policy::new()).unwrap();
    late.on_demand(move |address, bytes, write| {
        // SAFETY: it is a cell of the test's.
        unsafe { host.grant(&late, address as usize, bytes as usize, write) }.is_ok()
    });
    let reach: extern "C" fn(u64, u64) = function(&late, "reach");
    reach(at + 40, 4);
    assert_eq!(cell_of(10), 4);
    let events = std::mem::take(&mut *RUN.lock().unwrap());
    assert!(above.take_reports().is_empty() && below.take_reports().is_empty());
    let log = host.take_audit().unwrap();

    // What has happened, by the text of the modules. The block that was allocated is wherever `malloc` had it.
    let [work, back] = ["work", "back"].map(|name| above.function(name).unwrap() as u64);
    let is_way =
        |event: &&RunEvent| !matches!(event, RunEvent::Instruction(..) | RunEvent::Decisions(_));
    let way: Vec<RunEvent> = events.iter().filter(is_way).copied().collect();
    let (a, b) = (above.id(), below.id());
    let call = |domain, gate| RunEvent::Call { domain, gate };
    let leave = |function| RunEvent::Leave {
        domain: a,
        function,
    };
    let (rounds, reached) = way.split_at(way.len() - 3);
    let reach = late.function("reach").unwrap() as u64;
    let store = RunEvent::Store(at + 40, 4);
    assert_eq!(reached, [call(late.id(), reach), store, RunEvent::Return]);
    for (way, cell) in rounds.chunks(rounds.len() / 2).zip([at + 4, at + 28]) {
        let (store, load) = (RunEvent::Store(cell, 4), RunEvent::Load(cell, 4));
        let [.., malloc, back_1, block, free, back_2, last, end] = *way else {
            panic!("{way:x?}");
        };
        let begin = [
            call(a, work),
            call(b, bump as u64),
            store,
            RunEvent::Return,
            call(b, look as u64),
            load,
            RunEvent::Return,
            leave(tell as *const () as u64),
            call(a, back),
            store,
            RunEvent::Return,
            RunEvent::Back,
            leave(quiet as u64),
            RunEvent::Back,
            call(b, bump as u64),
            store,
            RunEvent::Return,
        ];
        assert_eq!(way[..way.len() - 7], begin);
        assert!(matches!(malloc, RunEvent::Leave { domain, .. } if domain == a));
        assert!(matches!(block, RunEvent::Store(at, 4) if at != cell));
        assert!(matches!(free, RunEvent::Leave { domain, .. } if domain == a));
        assert_eq!(
            [back_1, back_2, last, end],
            [RunEvent::Back, RunEvent::Back, store, RunEvent::Return]
        );
    }

    let (refused, crossings, which) = model(&log, &events);
    assert_eq!(refused, 0, "{which}");
    let count = |crossings: Crossings| (crossings.calls, crossings.returns, crossings.to_other);
    assert_eq!(count(crossings), (19, 19, 19));

    // Without one of its calls or returns the model refuses what comes behind it.
    let crosses = |event: &RunEvent| {
        is_way(&event) && !matches!(event, RunEvent::Store(..) | RunEvent::Load(..))
    };
    let mut tried = 0;
    for left_out in 0..events.len() {
        let mut others = events.clone();
        match others.remove(left_out) {
            event if crosses(&event) => {
                let (refused, crossings, _) = model(&log, &others);
                assert!(
                    refused > 0 || crossings.calls != crossings.returns,
                    "without {event:x?}, event {left_out}"
                );
            }
            // An access is allowed where it was, and not one word further on.
            RunEvent::Store(at, bytes) => {
                others.insert(left_out, RunEvent::Store(at + 64, bytes));
                assert_eq!(model(&log, &others).0, 1, "a store, event {left_out}");
            }
            RunEvent::Load(at, bytes) => {
                others.insert(left_out, RunEvent::Load(at + 4, bytes));
                assert_eq!(model(&log, &others).0, 1, "a load, event {left_out}");
            }
            _ => continue,
        }
        tried += 1;
    }
    assert_eq!(tried, way.len());
    // The rights came and went between the calls, and the accesses need them.
    let mut all_before = events.clone();
    all_before.retain(|event| !matches!(event, RunEvent::Decisions(_)));
    assert!(model(&log, &all_before).0 > 0);
}
