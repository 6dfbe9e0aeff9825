//! What calls cost as the state grows: `cargo run --release -p mullion-supervisor --example size`.
//!
//! The time of a call should grow with the logarithm of the number of regions, and with the number of holders of what
//! it touches. Nothing else should matter. Times are nanoseconds a call, the best of seven batches, with a mechanism
//! that does nothing.

use mullion_supervisor::{
    CallStack, Change, DomainId, Level, Mechanism, Permission, Range, Supervisor,
};
use std::hint::black_box;
use std::time::Instant;

struct Nothing;

impl Mechanism for Nothing {
    fn write(&mut self, domain: DomainId, range: Range, permission: Permission) {
        black_box((domain, range, permission));
    }

    fn flush(&mut self, _: DomainId, _: Range) {}
}

/// A call stack on which `previous` has called `current`.
struct Called {
    current: DomainId,
    previous: DomainId,
}

impl CallStack for Called {
    fn current(&self) -> DomainId {
        self.current
    }

    fn previous(&self) -> Option<DomainId> {
        Some(self.previous)
    }
}

const ROOT: DomainId = DomainId::SUPERVISOR;
const BATCH: u64 = 20_000;

/// The kernel owns the space but for a word for each domain; word `4 i` is held by domain `i mod domains`.
struct World {
    supervisor: Supervisor<Nothing>,
    kernel: DomainId,
    domains: Vec<DomainId>,
    grants: u64,
    seed: u64,
}

fn words(first: u64, count: u64) -> Range {
    Range::words(first, count).expect("inside the space")
}

impl World {
    fn new(regions: u64, domain_count: u64) -> World {
        let grants = regions / 2;
        let private = 4 * grants + 64;
        let mut supervisor = Supervisor::new(words(0, private + 2 * domain_count + 64), Nothing);
        let kernel = supervisor
            .pd_subdivide(&ROOT, supervisor.space(), Permission::ReadWrite)
            .expect("free");
        let domains: Vec<DomainId> = (0..domain_count)
            .map(|n| {
                supervisor.pd_subdivide(&kernel, words(private + 2 * n, 1), Permission::ReadWrite)
            })
            .collect::<Result<_, _>>()
            .expect("owned and unshared");
        for grant in 0..grants {
            let holder = domains[(grant % domain_count) as usize];
            let made =
                supervisor.mprot_export(&kernel, holder, words(4 * grant, 2), Permission::Read);
            made.expect("the owner may");
        }
        World {
            supervisor,
            kernel,
            domains,
            grants,
            seed: 0x9e37_79b9_7f4a_7c15,
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed % below
    }

    /// Nanoseconds for each of `calls` calls to the supervisor that one `step` makes.
    fn time(&mut self, calls: u64, mut step: impl FnMut(&mut World, u64, DomainId)) -> f64 {
        let mut best = f64::MAX;
        for _ in 0..7 {
            let places: Vec<(u64, DomainId)> = (0..BATCH)
                .map(|_| {
                    let domain = self.random(self.domains.len() as u64) as usize;
                    (4 * self.random(self.grants), self.domains[domain])
                })
                .collect();
            let start = Instant::now();
            for (word, domain) in places {
                step(self, word, domain);
            }
            best = best.min(start.elapsed().as_secs_f64() * 1e9 / (BATCH * calls) as f64);
        }
        best
    }
}

/// Resident bytes of this process; 0 where the system does not say.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}

/// What a region takes, when it is the first thing that this process does.
fn memory() {
    let empty = resident();
    let world = World::new(1_000_000, 1000);
    let regions = world.supervisor.region_count() as u64;
    let each = resident().saturating_sub(empty) / regions;
    println!("{each} bytes a region, at {regions} regions\n");
}

fn row(regions: u64, domain_count: u64) {
    let mut world = World::new(regions, domain_count);
    let built = world.supervisor.region_count();
    let kernel = world.kernel;
    let look = world.time(1, |w, word, domain| {
        black_box(w.supervisor.permission(domain, word));
    });
    let export = world.time(2, |w, word, domain| {
        let range = words(word + 2, 2);
        w.supervisor
            .mprot_export(&kernel, domain, range, Permission::ReadWrite)
            .expect("the owner may");
        w.supervisor
            .mprot_export(&kernel, domain, range, Permission::None)
            .expect("the owner may");
    });
    let mprot = world.time(2, |w, word, _| {
        w.supervisor
            .mprot(&kernel, words(word + 2, 1), Permission::ExecuteRead)
            .expect("the owner may");
        w.supervisor
            .mprot(&kernel, words(word + 2, 1), Permission::None)
            .expect("the owner may");
    });
    let alloc = world.time(2, |w, word, domain| {
        let stack = Called {
            current: kernel,
            previous: domain,
        };
        w.supervisor
            .perm_alloc(&stack, words(word + 2, 2))
            .expect("the owner may");
        w.supervisor
            .perm_free(&stack, words(word + 2, 2))
            .expect("the owner may");
    });
    let subdivide = world.time(2, |w, word, _| {
        let child = w
            .supervisor
            .pd_subdivide(&kernel, words(word + 2, 1), Permission::ReadWrite)
            .expect("free");
        w.supervisor.pd_free(&kernel, child).expect("a child");
    });
    println!(
        "{built:>9} {domain_count:>7} {look:>8.0} {export:>8.0} {mprot:>8.0} {alloc:>8.0} {subdivide:>10.0}",
    );
}

/// A free when `holders` of a thousand domains hold the word.
fn revocation() {
    let mut world = World::new(100_000, 1000);
    let kernel = world.kernel;
    println!("\nperm_free of one word among 100,000 regions and 1,000 domains, ns:");
    println!("{:>9} {:>9} {:>9}", "holders", "ns", "ns/holder");
    for holders in [1, 10, 100, 1000] {
        let mut best = f64::MAX;
        for _ in 0..20 {
            let range = words(4 * world.random(world.grants) + 2, 1);
            for domain in world.domains.iter().take(holders) {
                let made = world
                    .supervisor
                    .mprot_export(&kernel, *domain, range, Permission::Read);
                made.expect("the owner may");
            }
            let start = Instant::now();
            world.supervisor.perm_free(&kernel, range).expect("shared");
            best = best.min(start.elapsed().as_secs_f64() * 1e9);
        }
        println!("{holders:>9} {best:>9.0} {:>9.0}", best / holders as f64);
    }
}

/// One region granted to many domains, one after the other, and then freed.
fn crowd() {
    println!("\none region of 4 KiB to many domains, ns for each of them:");
    println!("{:>9} {:>9} {:>9}", "domains", "export", "perm_free");
    for domains in [10, 100, 1_000, 10_000] {
        let mut world = World::new(1_000, domains);
        let (kernel, shared) = (world.kernel, words(4, 1024));
        let (mut granted, mut freed) = (f64::MAX, f64::MAX);
        for _ in 0..3 {
            let start = Instant::now();
            for domain in &world.domains {
                world
                    .supervisor
                    .mprot_export(&kernel, *domain, shared, Permission::Read)
                    .expect("the owner may");
            }
            granted = granted.min(start.elapsed().as_secs_f64() * 1e9);
            let start = Instant::now();
            world.supervisor.perm_free(&kernel, shared).expect("shared");
            freed = freed.min(start.elapsed().as_secs_f64() * 1e9);
        }
        let each = domains as f64;
        println!("{domains:>9} {:>9.0} {:>9.0}", granted / each, freed / each);
    }
}

/// A buffer that is granted and revoked again and again, as at a call with an argument by address.
fn common_case() {
    let mut world = World::new(1_000, 10);
    let kernel = world.kernel;
    let domain = world.domains[3];
    println!("\na grant and its revocation at one of so many places in turn, ns for both:");
    println!("{:>9} {:>9} {:>9}", "places", "plain", "prepared");
    for places in [1, 16, 200] {
        let mut turn = 0;
        let both = world.time(1, |w, _, _| {
            turn = (turn + 1) % places;
            let range = words(4 * turn + 2, 2);
            for permission in [Permission::ReadWrite, Permission::None] {
                w.supervisor
                    .mprot_export(&kernel, domain, range, permission)
                    .expect("the owner may");
            }
        });
        let prepared: Vec<_> = (0..places)
            .map(|place| {
                let range = words(4 * place + 2, 2);
                let access = Permission::ReadWrite;
                world
                    .supervisor
                    .prepare(&kernel, domain, range, access, Level::None)
                    .expect("the owner may")
            })
            .collect();
        let mut turn = 0;
        let ready = world.time(1, |w, _, _| {
            turn = (turn + 1) % places as usize;
            w.supervisor
                .grant_prepared(&kernel, prepared[turn])
                .expect("the owner may");
            w.supervisor
                .revoke_prepared(&kernel, prepared[turn])
                .expect("the owner may");
        });
        for grant in prepared {
            world.supervisor.release(grant).expect("prepared");
        }
        println!("{places:>9} {both:>9.0} {ready:>9.0}");
    }
}

/// Ten grants of buffers and their revocation, one by one and as two batches.
fn batches() {
    let mut world = World::new(1_000, 10);
    let (kernel, domain) = (world.kernel, world.domains[3]);
    let changes = |permission| -> Vec<(DomainId, Change)> {
        let change = |place| Change::Export {
            target: domain.into(),
            range: words(4 * place + 2, 2),
            permission,
            export: Level::None,
        };
        (0..10u64).map(|place| (kernel, change(place))).collect()
    };
    let all = [changes(Permission::ReadWrite), changes(Permission::None)];
    let singly = world.time(10, |w, _, _| {
        for (caller, change) in all.iter().flatten() {
            w.supervisor
                .call(caller, change.call())
                .expect("the owner may");
        }
    });
    let together = world.time(10, |w, _, _| {
        for batch in &all {
            w.supervisor.change_all(batch).expect("the owner may");
        }
    });
    println!(
        "\nten grants and their revocations, ns for each pair: one by one {singly:.0}, as two batches {together:.0}"
    );
}

/// The cheapest call, without and with the log.
fn audit() {
    let mut world = World::new(1000, 10);
    let kernel = world.kernel;
    let step = |w: &mut World, word: u64, _: DomainId| {
        let made = w
            .supervisor
            .mprot(&kernel, words(word + 2, 1), Permission::ReadWrite);
        made.expect("the owner may");
    };
    let off = world.time(1, step);
    world.supervisor.start_audit(1 << 16);
    let on = world.time(1, step);
    world.supervisor.stop_audit();
    let off_again = world.time(1, step);
    println!(
        "\nmprot that changes nothing, ns: log off {off:.0}, on {on:.0}, off again {off_again:.0}"
    );
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("--common") {
        common_case();
        return batches();
    }
    memory();
    println!("ns a call:");
    println!(
        "{:>9} {:>7} {:>8} {:>8} {:>8} {:>8} {:>10}",
        "regions", "domains", "look-up", "export", "mprot", "alloc", "subdivide"
    );
    for (regions, domains) in [
        (1_000, 10),
        (10_000, 10),
        (100_000, 100),
        (1_000_000, 10),
        (1_000_000, 100),
        (1_000_000, 1_000),
    ] {
        row(regions, domains);
    }
    revocation();
    crowd();
    common_case();
    batches();
    audit();
}
