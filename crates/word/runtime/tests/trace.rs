//! What a real run was granted and lost goes through the hardware model, and the model comes to the same permissions.

mod module;

use module::{function, module};
use mullion_mmp::config::Config;
use mullion_mmp::machine::Machine;
use mullion_mmp::recorder::{ADDRESS_BITS, TraceRecorder};
use mullion_mmp::trace::{Header, TraceReader, TraceWriter};
use mullion_supervisor::Call;
use mullion_word_runtime::{Effect, FunctionPolicy, Host, Lease, Policy, Size};

type Fn2 = extern "C" fn(u64, u64) -> u64;

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

/// The process has one supervisor, so this is the one test here.
#[test]
fn a_run_s_decisions_lead_the_model_to_the_same_permissions() {
    let host = Host::new().unwrap();
    host.start_audit(usize::MAX);
    let fills = FunctionPolicy::of(&[Effect::InOut(0, Size::Argument(1))]);
    let policy = || Policy::new().allocators().export("fill", fills.clone());
    let text = module("traced", TEXT);
    let domains = [0, 1].map(|_| host.load(&text, policy()).unwrap());
    let served = host.load(&text, policy().instances()).unwrap();
    let cells = vec![0u32; 1024];
    let at = cells.as_ptr() as u64;
    for round in 0..300u64 {
        let [fill, get, drop] =
            ["fill", "get", "drop"].map(|name| function::<Fn2>(&domains[round as usize % 2], name));
        assert_eq!(fill(at + 16 * (round % 40), 4 + round % 9), 1);
        let block = get(8 + round % 100, 0);
        if round % 3 != 0 {
            drop(block, 0);
        }
    }
    let instance = served.instance(1).unwrap();
    let (kept, gone) = (Lease::new(), Lease::new());
    for n in 0..60 {
        let (lease, place) = (if n % 2 == 0 { &kept } else { &gone }, at as usize + 32 * n);
        // SAFETY: they are the test's own.
        unsafe {
            lease.grant(domains[n % 2], place, 12, n % 3 == 0).unwrap();
            lease.grant(instance, place + 16, 8, true).unwrap();
        }
    }
    gone.end();
    host.revoke(at as usize + 256, 64).unwrap();
    let ended = domains[1];
    ended.unload().unwrap();
    let log = host.take_audit().unwrap();

    // As a file, which is what `mullion model run` reads.
    let header = Header {
        address_bits: ADDRESS_BITS,
        note: "a run of the word wall".to_owned(),
    };
    let mut writer = TraceWriter::new(Vec::new(), &header).unwrap();
    let mut recorder = TraceRecorder::new(|event| writer.write(&event));
    for decision in log.iter() {
        recorder.decision(decision).unwrap();
    }
    assert_eq!(recorder.refused(), 0);
    let file = writer.finish().unwrap();
    let mut reader = TraceReader::new(&file[..]).unwrap();
    let mut machine = Machine::new(&Config::default(), ADDRESS_BITS).unwrap();
    while let Some(block) = reader.next_block().unwrap() {
        for event in block.events() {
            machine.step(&event.unwrap()).unwrap();
        }
    }
    let report = machine.report();
    assert_eq!(report.refusals, []);
    assert!(report.supervisor_calls >= log.total());

    // Every word of every domain's grants: the same in the model as in the table.
    let model = machine.supervisor();
    let mut granted = [0u64; 2];
    for domain in [domains[0], served] {
        for word in 0..1024 {
            let address = at as usize + 4 * word;
            let real = domain.permission(address);
            assert_eq!(
                real,
                model.permission(domain.id(), address as u64 / 4),
                "word {word}"
            );
            granted[0] += u64::from(real.writes());
            assert_eq!(
                domain.view().access(address as u64).bits() & 3,
                u8::from(real >= mullion_supervisor::Permission::Read)
                    | u8::from(real.writes()) << 1
            );
        }
    }
    for word in 0..1024 {
        granted[1] += u64::from(instance.permission(at as usize + 4 * word).writes());
    }
    // 10 of the 30 leases that are kept may write 3 words; 2 of them were revoked.
    assert!(granted[0] >= 20 && granted[1] >= 50, "{granted:?}");
    let grants = log
        .iter()
        .filter(|one| matches!(one.call, Call::MprotExport { .. }));
    assert!(grants.count() > 600, "the calls are in it, too");
    assert!(!model.exists(ended.id()));
    kept.end();
}
