//! What random sequences seldom reach: the corners of prepared grants and of batches.

use crate::words;
use mullion_recorder::Recorder;
use mullion_supervisor::{
    BatchError, Change, DomainId, Error, HoldingNumber, Level, Mechanism, Permission, Range, Rule,
    Supervisor,
};

const ROOT: DomainId = DomainId::SUPERVISOR;

/// The kernel owns words 0 to 31, the module words 32 to 35.
fn world<M: Mechanism>(mechanism: M) -> (Supervisor<M>, DomainId, DomainId) {
    let mut s = Supervisor::new(words(0, 64), mechanism);
    let rw = Permission::ReadWrite;
    let kernel = s.pd_subdivide(&ROOT, words(0, 32), rw).unwrap();
    let module = s.pd_subdivide(&ROOT, words(32, 4), rw).unwrap();
    (s, kernel, module)
}

#[test]
fn what_is_granted_after_a_free_ends_with_its_holder() {
    let (mut s, kernel, module) = world(Recorder::new());
    let (range, rw) = (words(8, 4), Permission::ReadWrite);
    let grant = s.prepare(&kernel, module, range, rw, Level::None).unwrap();
    s.grant_prepared(&kernel, grant).unwrap();
    s.perm_free(&kernel, range).unwrap();
    s.grant_prepared(&kernel, grant).unwrap();
    assert_eq!(s.permission(module, 8), rw);
    s.check().unwrap();
    s.pd_free(&ROOT, module).unwrap();
    s.check().unwrap();
    for (_, holding) in s.regions(words(0, 32)) {
        assert!(holding.grants.iter().all(|(who, _)| *who == kernel.into()));
    }
    assert_eq!(
        s.grant_prepared(&kernel, grant),
        Err(Error::UnknownPrepared)
    );
}

#[test]
fn a_group_that_somebody_joins_is_asked_again() {
    let (mut s, kernel, _) = world(Recorder::new());
    let (range, rw) = (words(8, 4), Permission::ReadWrite);
    let module = s.pd_subdivide(&kernel, words(0, 1), rw).unwrap();
    let group = s.group_create(&kernel).unwrap();
    s.mprot_export(&kernel, group, range, rw).unwrap();
    let read = Permission::Read;
    let grant = s
        .prepare(&kernel, module, range, read, Level::None)
        .unwrap();
    s.grant_prepared(&kernel, grant).unwrap();
    s.revoke_prepared(&kernel, grant).unwrap();
    s.group_join(&module, group).unwrap();
    let refused = s.grant_prepared(&kernel, grant).unwrap_err();
    assert_eq!(refused.rule(), Rule::Groups);
    assert_eq!(s.permission(module, 8), rw);
}

#[test]
fn what_is_prepared_has_no_power_of_its_own() {
    let (mut s, kernel, module) = world(Recorder::new());
    let (range, rw) = (words(8, 4), Permission::ReadWrite);
    let grant = s.prepare(&kernel, module, range, rw, Level::None).unwrap();
    s.grant_prepared(&kernel, grant).unwrap();
    s.revoke_prepared(&kernel, grant).unwrap();
    let by_another = s.grant_prepared(&module, grant).unwrap_err();
    assert_eq!(by_another.rule(), Rule::Existence);
    s.mprot(&kernel, range, Permission::None).unwrap();
    s.chown(&kernel, range, module).unwrap();
    let before = s.snapshot();
    let not_the_owner = s.grant_prepared(&kernel, grant).unwrap_err();
    assert_eq!(not_the_owner.rule(), Rule::Row(4));
    assert_eq!(s.snapshot(), before);
}

#[test]
fn preparing_is_refused_as_the_grant_would_be() {
    let (mut s, kernel, module) = world(Recorder::new());
    let before = s.snapshot();
    let foreign = s.prepare(&module, kernel, words(0, 2), Permission::Read, Level::None);
    assert_eq!(foreign.unwrap_err().rule(), Rule::Row(4));
    assert_eq!(s.snapshot(), before);
}

#[test]
fn released_grants_leave_nothing_cut() {
    let (mut s, kernel, module) = world(Recorder::new());
    let regions = s.region_count();
    let before = s.snapshot();
    let rw = Permission::ReadWrite;
    let prepared: Vec<_> = (0..4)
        .map(|n| {
            s.prepare(&kernel, module, words(4 + 2 * n, 3), rw, Level::None)
                .unwrap()
        })
        .collect();
    for grant in &prepared {
        s.grant_prepared(&kernel, *grant).unwrap();
        s.revoke_prepared(&kernel, *grant).unwrap();
    }
    for grant in prepared {
        s.release(grant).unwrap();
        s.check().unwrap();
    }
    assert_eq!((s.region_count(), s.snapshot()), (regions, before));
}

#[test]
fn a_batch_is_told_by_its_outcome() {
    let (mut s, kernel, module) = world(Recorder::new());
    let export = |range, permission| {
        (
            kernel,
            Change::Export {
                target: module.into(),
                range,
                permission,
                export: Level::None,
            },
        )
    };
    let (writes, rw) = (s.mechanism().writes(), Permission::ReadWrite);
    let back_and_forth = [
        export(words(4, 4), rw),
        export(words(2, 9), Permission::None),
    ];
    s.change_all(&back_and_forth).unwrap();
    assert_eq!(s.mechanism().writes(), writes, "nothing differs at the end");
    let twice = [
        export(words(4, 4), rw),
        export(words(4, 4), Permission::Read),
    ];
    s.change_all(&twice).unwrap();
    assert_eq!(s.mechanism().writes(), writes + 1, "each word once");
    assert_eq!(s.mechanism().permission(module, 5), Permission::Read);
    let (before, told) = (s.snapshot(), s.mechanism().clone());
    let own = |word| {
        let range = words(word, 1);
        (
            module,
            Change::Own {
                range,
                permission: rw,
            },
        )
    };
    // The first gives read-write, so the second may have it: it is judged as if called behind it.
    let refused = s.change_all(&[export(words(0, 20), rw), own(9), own(25), own(9)]);
    let BatchError { index, error } = refused.unwrap_err();
    assert_eq!((index, error.rule()), (2, Rule::Row(2)), "{error}");
    assert_eq!((s.snapshot(), s.mechanism().clone()), (before, told));
}

/// Has room for nothing but taking away.
#[derive(Default)]
struct Full {
    asked: Vec<(u64, u64, bool)>,
}

impl Mechanism for Full {
    const BY_DOMAIN: bool = false;
    const BY_HOLDING: bool = true;

    fn room(&mut self, words: u64, pieces: u64, taking: bool) -> bool {
        self.asked.push((words, pieces, taking));
        taking || words <= 32
    }

    fn write(&mut self, _: DomainId, _: Range, _: Permission) {
        panic!("it is not told by domain");
    }

    fn flush(&mut self, _: DomainId, _: Range) {
        panic!("it is not told by domain");
    }

    fn hold(
        &mut self,
        _: Range,
        before: HoldingNumber,
        after: HoldingNumber,
        _: mullion_supervisor::Holders<'_>,
    ) {
        assert_ne!(before, after);
    }
}

#[test]
fn a_mechanism_without_room_has_the_call_refused() {
    let (mut s, kernel, module) = world(Full::default());
    let before = s.snapshot();
    let all = words(0, 64);
    let no_room = Err(Error::NoRoom { words: 64 });
    assert_eq!(
        s.mprot(&ROOT, all, Permission::Read).map_err(|e| e.rule()),
        Err(Rule::Row(2))
    );
    assert_eq!(s.snapshot(), before);
    s.pd_free(&ROOT, kernel).unwrap();
    s.pd_free(&ROOT, module).unwrap();
    let before = s.snapshot();
    assert_eq!(s.mprot(&ROOT, all, Permission::Read), no_room);
    let batch = [(
        ROOT,
        Change::Own {
            range: all,
            permission: Permission::Read,
        },
    )];
    let refused = s.change_all(&batch).unwrap_err();
    assert_eq!(Err(refused.error), no_room);
    let done = s.change_after(&batch, || -> Result<(), Error> { panic!("it is refused") });
    assert_eq!(done, no_room);
    assert_eq!(s.snapshot(), before);
    assert_eq!(s.mprot(&ROOT, all, Permission::None), Ok(()));
    assert!(s.mechanism().asked.ends_with(&[(64, 1, true)]));
}

/// A slab of words 4 to 27, prepared for two domains.
#[test]
fn parts_of_what_is_prepared_come_and_go_by_themselves() {
    let (mut s, kernel, module) = world(Recorder::new());
    let rw = Permission::ReadWrite;
    let other = s.pd_subdivide(&ROOT, words(36, 4), rw).unwrap();
    let slab = words(4, 24);
    let regions = s.region_count();
    let before = s.snapshot();
    let one = s.prepare(&kernel, module, slab, rw, Level::None).unwrap();
    let two = s
        .prepare(&kernel, other, slab, Permission::Read, Level::None)
        .unwrap();
    assert_eq!(s.grant_part(&kernel, one, words(5, 4)), Ok(true));
    assert_eq!(s.grant_part(&kernel, two, words(9, 2)), Ok(true));
    // It has a word of it already; more than was granted; outside; not by who has prepared it.
    assert_eq!(s.grant_part(&kernel, one, words(8, 2)), Ok(false));
    assert_eq!(s.revoke_part(&kernel, one, words(4, 3)), Ok(false));
    assert_eq!(s.revoke_part(&kernel, two, words(5, 4)), Ok(false));
    assert_eq!(s.grant_part(&kernel, one, words(3, 2)), Ok(false));
    assert_eq!(s.grant_part(&module, one, words(20, 2)), Ok(false));
    // Two may have the same words, or some of them.
    assert_eq!(s.grant_part(&kernel, two, words(8, 1)), Ok(true));
    assert_eq!(s.grant_part(&kernel, one, words(9, 6)), Ok(true));
    assert_eq!(s.permission(module, 8), rw);
    assert_eq!(s.permission(other, 8), Permission::Read);
    assert_eq!(s.permission(module, 10), rw);
    assert_eq!(s.permission(other, 10), Permission::Read);
    assert_eq!(s.permission(other, 11), Permission::None);
    assert_eq!(s.revoke_part(&kernel, one, words(9, 6)), Ok(true));
    assert_eq!(s.set_part(&kernel, two, words(5, 2), true), Ok(true));
    assert_eq!(s.set_part(&kernel, two, words(4, 4), false), Ok(true));
    s.check().unwrap();
    // A plain call in the midst of it makes regions of what was granted.
    s.mprot_export(&kernel, module, words(10, 1), rw).unwrap();
    assert_eq!(s.grant_part(&kernel, one, words(20, 2)), Ok(false));
    assert_eq!(s.permission(module, 8), rw);
    assert_eq!(s.permission(other, 10), Permission::Read);
    s.check().unwrap();
    // And after some more of them, a sheet of the regions.
    let asked = (0..20).position(|_| s.grant_part(&kernel, one, words(20, 2)) == Ok(true));
    assert!(asked.is_some());
    assert_eq!(s.permission(module, 8), rw);
    assert_eq!(s.permission(other, 10), Permission::Read);
    s.check().unwrap();
    s.perm_free(&kernel, slab).unwrap();
    s.mprot(&kernel, slab, rw).unwrap();
    // And again.
    assert_eq!(s.grant_part(&kernel, one, words(20, 2)), Ok(true));
    assert_eq!(s.revoke_part(&kernel, one, words(21, 1)), Ok(true));
    s.release(one).unwrap();
    assert_eq!(s.permission(module, 20), rw);
    s.check().unwrap();
    // What was granted by a part ends with its holder.
    s.pd_free(&ROOT, module).unwrap();
    s.check().unwrap();
    assert_eq!(
        s.grant_part(&kernel, one, words(20, 2)),
        Err(Error::UnknownPrepared)
    );
    s.release(two).unwrap();
    s.pd_free(&ROOT, other).unwrap();
    s.check().unwrap();
    assert!(s.region_count() <= regions);
    let slab_now: Vec<_> = s
        .regions(slab)
        .map(|(_, holding)| holding.clone())
        .collect();
    assert_eq!(slab_now.len(), 1);
    assert!(
        before
            .regions
            .iter()
            .any(|(_, holding)| *holding == slab_now[0])
    );
}

/// A part that moves, against the two calls that it stands for.
#[test]
fn a_part_that_moves_is_one_that_ends_and_one_that_begins() {
    let rw = Permission::ReadWrite;
    let [mut moving, mut calling] = [(); 2].map(|()| {
        let (mut s, kernel, module) = world(Recorder::new());
        let other = s.pd_subdivide(&ROOT, words(36, 4), rw).unwrap();
        let slabs = [module, other].map(|to| {
            let slab = s.prepare(&kernel, to, words(0, 32), rw, Level::None);
            slab.unwrap()
        });
        // From then on parts are decided at once.
        for (slab, part) in slabs.into_iter().cycle().zip([words(3, 2); 16]) {
            let is_known = s.grant_part(&kernel, slab, part).unwrap();
            assert_eq!(s.revoke_part(&kernel, slab, part).unwrap(), is_known);
        }
        for (slab, first) in slabs.into_iter().zip([2, 8]) {
            assert_eq!(s.grant_part(&kernel, slab, words(first, 2)), Ok(true));
        }
        (s, kernel, slabs)
    });
    let mut state = 7u64;
    let mut below = |limit: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
        (state >> 33) % limit
    };
    let mut parts = [words(2, 2), words(8, 2)];
    let (mut moved, mut refused) = (0, 0);
    for _ in 0..2_000 {
        let (at, start) = (below(2) as usize, below(30));
        let to = words(start, 1 + below(5.min(31 - start)));
        let (s, kernel, slabs) = &mut calling;
        assert_eq!(s.revoke_part(kernel, slabs[at], parts[at]), Ok(true));
        assert_eq!(s.grant_part(kernel, slabs[at], to), Ok(true));
        let (s, kernel, slabs) = &mut moving;
        let is_moved = s.move_part(kernel, slabs[at], parts[at], to);
        // Words that the other one has, too, are not decided at once.
        let is_alone = [parts[at], to].map(|part| part.overlap(parts[1 - at])) == [None; 2];
        assert!(is_alone || !is_moved);
        if !is_moved {
            assert_eq!(s.revoke_part(kernel, slabs[at], parts[at]), Ok(true));
            assert_eq!(s.grant_part(kernel, slabs[at], to), Ok(true));
        }
        parts[at] = to;
        moved += u32::from(is_moved);
        refused += u32::from(!is_moved);
        s.check().unwrap();
        for (domain, word) in (1..4).flat_map(|to| (0..64).map(move |at| (to, at))) {
            let domain = DomainId::new(domain);
            let of = |s: &Supervisor<Recorder>| {
                let told = s.mechanism();
                let by_holding = told.permission_by_holding(domain, word);
                let by_domain = told.permission(domain, word);
                (s.permission(domain, word), by_domain, by_holding)
            };
            assert_eq!(of(s), of(&calling.0), "word {word}");
        }
    }
    assert!(moved > 500 && refused > 100, "{moved} and {refused}");
    // A record has two entries for it: then it is two calls.
    let (s, kernel, slabs) = &mut moving;
    s.start_audit(10);
    assert!(!s.move_part(kernel, slabs[0], parts[0], parts[0]));
}
