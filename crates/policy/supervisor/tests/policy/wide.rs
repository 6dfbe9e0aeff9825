//! A space that is cut into many regions, and a region that many hold.

use crate::naive::Naive;
use crate::{agree, permissions, words};
use mullion_recorder::Recorder;
use mullion_supervisor::{
    Call, DomainId, Error, Family, GroupId, Level, Order, Permission, Range, Reply, Subject,
    Supervisor,
};

const ROOT: DomainId = DomainId::SUPERVISOR;

/// Random numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[test]
fn many_small_regions_come_and_go_as_in_the_naive_model() {
    const WORDS: u64 = 1200;
    let mut random = Random(0x5eed_1234_5678_9abc);
    let mut supervisor = Supervisor::new(words(0, WORDS), Recorder::new());
    let mut naive = Naive::new(WORDS as usize, Order::Strict);
    let mut step = |call: Call| {
        let outcome = supervisor.call(&ROOT, call);
        let expected = naive.call(ROOT, None, call);
        assert_eq!(outcome.map_err(|error| error.rule()), expected, "{call:?}");
        (supervisor.region_count(), outcome)
    };
    for place in 0..6 {
        let (range, permission) = (words(WORDS - 1 - place, 1), Permission::ReadWrite);
        step(Call::PdSubdivide { range, permission }).1.unwrap();
    }
    step(Call::GroupCreate).1.unwrap();
    let shared = WORDS - 6;
    // Cut into ever more regions, then joined again.
    let mut most = 0;
    for round in 0..4000u64 {
        let cuts = round < 2400;
        let range = words(
            random.below(shared - 8),
            1 + random.below(if cuts { 3 } else { 8 }),
        );
        let target = match random.below(7) {
            6 => Subject::Group(GroupId::new(1)),
            n => Subject::Domain(DomainId::new(1 + n as u32)),
        };
        let call = match random.below(12) {
            0 => Call::PermFree { range },
            1 => Call::Mprot {
                range,
                permission: permissions(ROOT)[random.below(6) as usize],
            },
            _ if !cuts && random.below(3) > 0 => Call::PermFree { range },
            n => Call::MprotExport {
                target,
                range,
                permission: permissions(ROOT)[1 + random.below(3) as usize],
                export: [Level::None, Level::Full][n as usize % 2],
            },
        };
        most = most.max(step(call).0);
    }
    assert!(most > 600, "at most {most} regions");
    agree(&supervisor, &naive);
    let all = words(0, shared);
    supervisor.perm_free(&ROOT, all).unwrap();
    supervisor.mprot(&ROOT, all, Permission::None).unwrap();
    supervisor.check().unwrap();
    assert_eq!(supervisor.regions(all).count(), 1);
}

#[test]
fn a_region_that_many_hold_is_cut_and_freed() {
    let mut s = Supervisor::with(words(0, 4000), Recorder::new(), Family, Order::Strict);
    let domains: Vec<DomainId> = (0..1500)
        .map(|n| {
            s.pd_subdivide(&ROOT, words(2000 + n, 1), Permission::Read)
                .unwrap()
        })
        .collect();
    let range = |first, count| -> Range { words(first, count) };
    for domain in &domains {
        s.mprot_export(&ROOT, *domain, range(0, 1000), Permission::Read)
            .unwrap();
    }
    s.check().unwrap();
    assert_eq!(s.regions(range(0, 1000)).count(), 1);
    // One of them gets more in the middle, and gives it back: one region again.
    s.mprot_export(&ROOT, domains[700], range(400, 10), Permission::ReadWrite)
        .unwrap();
    assert_eq!(s.regions(range(0, 1000)).count(), 3);
    s.check().unwrap();
    s.mprot(&domains[700], range(400, 10), Permission::Read)
        .unwrap();
    s.mprot_export(&ROOT, domains[700], range(400, 10), Permission::Read)
        .unwrap();
    assert_eq!(s.regions(range(0, 1000)).count(), 1);
    s.check().unwrap();
    s.perm_free(&ROOT, range(500, 500)).unwrap();
    s.check().unwrap();
    for domain in &domains {
        assert_eq!(s.permission(*domain, 499), Permission::Read);
        assert_eq!(s.mechanism().permission(*domain, 499), Permission::Read);
        assert_eq!(s.permission(*domain, 500), Permission::None);
        assert_eq!(s.mechanism().permission(*domain, 500), Permission::None);
    }
}

#[test]
fn a_free_of_what_nobody_else_holds_says_so() {
    let mut s = Supervisor::new(words(0, 64), Recorder::new());
    let module = s
        .pd_subdivide(&ROOT, words(32, 8), Permission::ReadWrite)
        .unwrap();
    let free = Call::PermFree { range: words(0, 4) };
    assert_eq!(s.call(&ROOT, free), Ok(Reply::NothingToFree));
    s.mprot_export(&ROOT, module, words(3, 1), Permission::Read)
        .unwrap();
    assert_eq!(s.call(&ROOT, free), Ok(Reply::Done));
    let before = s.snapshot();
    assert_eq!(s.call(&ROOT, free), Ok(Reply::NothingToFree));
    assert_eq!(s.snapshot(), before);
    assert!(matches!(s.call(&module, free), Err(Error::NotOwner { .. })));
}

#[test]
fn a_new_supervisor_does_not_let_a_gate_become_the_right_to_write() {
    let mut s = Supervisor::new(words(0, 64), Recorder::new());
    assert_eq!(s.order(), Order::Strict);
    let module = s
        .pd_subdivide(&ROOT, words(32, 8), Permission::ReadWrite)
        .unwrap();
    let gate = Permission::SwitchGate { to: ROOT };
    s.mprot_export_up_to(&ROOT, module, words(1, 1), gate, Level::None)
        .unwrap();
    let refused = s.mprot(&module, words(1, 1), Permission::ReadWrite);
    assert!(matches!(refused, Err(Error::AboveOwn { .. })));
    let mut paper = Supervisor::with(words(0, 64), Recorder::new(), Family, Order::Paper);
    let module = paper
        .pd_subdivide(&ROOT, words(32, 8), Permission::ReadWrite)
        .unwrap();
    paper
        .mprot_export_up_to(&ROOT, module, words(1, 1), gate, Level::None)
        .unwrap();
    paper
        .mprot(&module, words(1, 1), Permission::ReadWrite)
        .unwrap();
}
