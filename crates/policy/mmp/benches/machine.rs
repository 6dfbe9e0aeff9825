//! Events a second of the machine on a realistic trace, and nanoseconds of a call to the supervisor:
//! `cargo bench -p mullion-mmp`. The best of five runs, in
//! processor time of one core.

use mullion_mmp::config::Config;
use mullion_mmp::machine::Machine;
use mullion_mmp::synth::{ADDRESS_BITS, Params, generate};
use mullion_mmp::table::Format;
use mullion_mmp::trace::{Header, TraceReader, TraceWriter};
use mullion_supervisor::{CallStack, DomainId, Mechanism, Permission, Range, Supervisor};
use rustix::time::{ClockId, clock_gettime};

const RUNS: usize = 5;

fn main() {
    let params = Params {
        events: 10_000_000,
        ..Params::default()
    };
    let header = Header {
        address_bits: ADDRESS_BITS,
        note: params.note(),
    };
    let mut writer = TraceWriter::new(Vec::new(), &header).expect("a vector takes all");
    generate(&params, |event| writer.write(&event)).expect("the default parameters are good");
    let file = writer.finish().expect("a vector takes all");
    let bytes = file.len() as f64 / params.events as f64;
    println!("{} events, {bytes:.2} bytes each", params.events);

    let only_read = best(|| {
        let mut reader = TraceReader::new(&file[..]).expect("just written");
        let mut count = 0u64;
        while let Some(block) = reader.next_block().expect("just written") {
            count += block.events().filter(Result::is_ok).count() as u64;
        }
        assert_eq!(count, params.events);
    });
    show("reading alone", params.events, only_read);
    for format in Format::ALL {
        for baseline in [true, false] {
            let mut config = Config::default();
            config.tables.format = format;
            config.report.baseline = baseline;
            let seconds = best(|| run(&file, &config));
            let beside = if baseline { "with" } else { "without" };
            let name = format!("{format}, {beside} the unprotected machine beside it");
            show(&name, params.events, seconds);
        }
    }
    supervisor_call();
}

fn run(file: &[u8], config: &Config) {
    let mut reader = TraceReader::new(file).expect("just written");
    let mut machine = Machine::new(config, ADDRESS_BITS).expect("a good configuration");
    while let Some(block) = reader.next_block().expect("just written") {
        let mut events = block.events();
        let mut at = events.position();
        while let Some(event) = events.next() {
            machine
                .step_at(at, &event.expect("just written"))
                .expect("small tables");
            at = events.position();
        }
    }
    assert_eq!(machine.refused_accesses() + machine.refused_calls(), 0);
}

fn best(mut work: impl FnMut()) -> f64 {
    (0..RUNS)
        .map(|_| {
            let start = processor_seconds();
            work();
            processor_seconds() - start
        })
        .fold(f64::INFINITY, f64::min)
}

fn processor_seconds() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

fn show(name: &str, events: u64, seconds: f64) {
    println!(
        "{:7.1} million events a second: {name}",
        events as f64 / seconds / 1e6
    );
}

/// A mechanism that does nothing, so that the time is the policy's.
struct Nothing;

impl Mechanism for Nothing {
    fn write(&mut self, _: DomainId, _: Range, _: Permission) {}
    fn flush(&mut self, _: DomainId, _: Range) {}
}

/// An allocator called by a domain.
struct Called(DomainId, DomainId);

impl CallStack for Called {
    fn current(&self) -> DomainId {
        self.0
    }

    fn previous(&self) -> Option<DomainId> {
        Some(self.1)
    }
}

/// Allocating and freeing objects among ten thousand others: the price of the top half.
fn supervisor_call() {
    let objects = 10_000u64;
    let space = Range::words(0, 1 << 30).expect("not empty");
    let mut supervisor = Supervisor::new(space, Nothing);
    let module = Range::words(0, 1024).expect("not empty");
    let client = supervisor
        .pd_subdivide(&DomainId::SUPERVISOR, module, Permission::ReadWrite)
        .expect("the supervisor owns it");
    let caller = Called(DomainId::SUPERVISOR, client);
    let place = |object| Range::words(4096 + object * 64, 32).expect("not empty");
    for object in 0..objects {
        supervisor
            .perm_alloc(&caller, place(object))
            .expect("owned");
    }
    let seconds = best(|| {
        for step in 0..objects {
            let object = step * 7919 % objects;
            supervisor
                .perm_free(&caller, place(object))
                .expect("allocated");
            supervisor.perm_alloc(&caller, place(object)).expect("free");
        }
    });
    let calls = 2 * objects;
    println!(
        "{:7.0} ns: a call to the supervisor",
        seconds / calls as f64 * 1e9
    );
}
