//! The table against a naive model: the supervisor's answer for each word, and a map of words by hand.

use mullion_supervisor::{
    Change, DomainId, Error, GroupId, Level, Permission, PreparedGrant, Range, Subject, Supervisor,
};
use mullion_word_abi::{CLOSED_END, CLOSED_FIRST, MAP_STRIDE, OWN_FIRST, OWN_LAST};
use mullion_word_table::SpaceError;
use mullion_word_table::{
    ADDRESS_BITS, Access, Inside, Limits, Settling, Table, checked_code, load4, store4,
};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

const ROOT: DomainId = DomainId::SUPERVISOR;
const RW: Permission = Permission::ReadWrite;

/// An address space has room for one shadow.
static ONE_TABLE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn table(limits: Limits) -> Supervisor<Table> {
    let inside = Inside::new().expect("Linux has membarrier");
    let space = Range::bytes(0, 1 << ADDRESS_BITS).unwrap();
    Supervisor::new(
        space,
        Table::reserve(limits, inside).expect("address space"),
    )
}

fn words(first: u64, count: u64) -> Range {
    Range::words(first, count).unwrap()
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// What was granted, word by word, written down from the outcome of each call alone.
#[derive(Default)]
struct Naive {
    owner: HashMap<u64, DomainId>,
    granted: HashMap<(u64, Subject), Permission>,
    members: HashMap<GroupId, Vec<DomainId>>,
}

impl Naive {
    fn grant(&mut self, range: Range, subject: Subject, permission: Permission) {
        for word in range.start()..range.end() {
            match permission {
                Permission::None => self.granted.remove(&(word, subject)),
                _ => self.granted.insert((word, subject), permission),
            };
        }
    }

    fn clear(&mut self, range: Range, keep: Option<Subject>, owner: DomainId) {
        let inside = |word: &u64| range.holds(*word);
        self.granted
            .retain(|(word, subject), _| !inside(word) || Some(*subject) == keep);
        for word in range.start()..range.end() {
            self.owner.insert(word, owner);
        }
    }

    fn end(&mut self, domain: DomainId, parent: DomainId) {
        let owned: Vec<u64> = self
            .owner
            .iter()
            .filter(|(_, owner)| **owner == domain)
            .map(|(word, _)| *word)
            .collect();
        for word in owned {
            self.clear(words(word, 1), None, parent);
        }
        self.granted
            .retain(|(_, subject), _| *subject != domain.into());
        self.members
            .values_mut()
            .for_each(|members| members.retain(|member| *member != domain));
    }

    /// The strongest of its own and its groups', as the supervisor's rules have it; of equals its own.
    fn access(&self, domain: DomainId, word: u64) -> Access {
        let mut best = self
            .granted
            .get(&(word, domain.into()))
            .copied()
            .unwrap_or_default();
        let mut groups: Vec<_> = self.members.iter().collect();
        groups.sort_by_key(|(group, _)| **group);
        for (group, members) in groups {
            let given = self
                .granted
                .get(&(word, Subject::Group(*group)))
                .copied()
                .unwrap_or_default();
            let owns = self.owner.get(&word) == Some(&domain);
            if members.contains(&domain) && !owns && given.level() > best.level() {
                best = given;
            }
        }
        Access::of(best, domain)
    }
}

/// How many steps: more with `MULLION_WORD_STEPS`.
fn steps() -> u64 {
    let set = std::env::var("MULLION_WORD_STEPS");
    set.map_or(40_000, |steps| {
        steps.parse().expect("MULLION_WORD_STEPS is a number")
    })
}

const SPACE: u64 = 96;
const KERNEL: DomainId = DomainId::new(1);

/// The kernel owns all; domains come and go, are granted and revoked, join and leave.
fn run(seed: u64, limits: Limits, steps: u64, settling: Settling) -> (u64, u64) {
    let mut random = Random(seed);
    let mut s = table(limits);
    s.mechanism_mut().set_settling(settling);
    let mut naive = Naive::default();
    let all = words(0, SPACE + 64);
    assert_eq!(s.pd_subdivide(&ROOT, all, Permission::None), Ok(KERNEL));
    naive.clear(all, None, KERNEL);
    let groups: Vec<GroupId> = (0..3).map(|_| s.group_create(&KERNEL).unwrap()).collect();
    naive.members = groups.iter().map(|group| (*group, Vec::new())).collect();
    let mut living: Vec<DomainId> = Vec::new();
    let mut prepared: Vec<(PreparedGrant, DomainId, Range, Permission)> = Vec::new();
    let (mut collected, mut refused, mut parts) = (0, 0, 0u64);
    for step in 0..steps {
        let first = random.below(SPACE);
        let range = words(first, 1 + random.below(SPACE - first).min(random.below(24)));
        let permission = [
            Permission::None,
            Permission::Read,
            RW,
            Permission::ExecuteRead,
            Permission::ReturnGate,
        ][random.below(5) as usize];
        let who = match living.len() {
            0 => None,
            count => Some(living[random.below(count as u64) as usize]),
        };
        let group = groups[random.below(3) as usize];
        let outcome = match (random.below(16), who) {
            (0, _) | (_, None) if living.len() < 12 => {
                // A domain of its own memory, behind what all use.
                let own = words(SPACE + 4 * random.below(16), 4);
                s.perm_free(&KERNEL, own)
                    .and_then(|()| s.mprot(&KERNEL, own, Permission::None))
                    .and_then(|()| {
                        let made = s.pd_subdivide(&KERNEL, own, RW)?;
                        living.push(made);
                        naive.clear(own, None, made);
                        naive.grant(own, made.into(), RW);
                        Ok(())
                    })
            }
            (1, Some(domain)) if random.below(6) == 0 => {
                living.retain(|found| *found != domain);
                prepared.retain(|(_, target, ..)| *target != domain);
                naive.end(domain, KERNEL);
                s.pd_free(&KERNEL, domain)
            }
            (2, Some(domain)) => s.group_join(&domain, group).map(|()| {
                naive.members.get_mut(&group).unwrap().push(domain);
            }),
            (3, Some(domain)) => s.group_leave(&domain, group).map(|()| {
                naive
                    .members
                    .get_mut(&group)
                    .unwrap()
                    .retain(|member| *member != domain);
            }),
            (4 | 5, _) => s.mprot_export(&KERNEL, group, range, permission).map(|()| {
                naive.grant(range, group.into(), permission);
            }),
            (6, _) => s.perm_free(&KERNEL, range).map(|()| {
                naive.clear(range, Some(KERNEL.into()), KERNEL);
            }),
            (7, Some(target)) if prepared.len() < 12 => s
                .prepare(&KERNEL, target, range, permission, Level::None)
                .map(|grant| {
                    prepared.push((grant, target, range, permission));
                }),
            (8..=10, _) if !prepared.is_empty() => {
                let (grant, target, range, permission) =
                    prepared[random.below(prepared.len() as u64) as usize];
                let first = random.below(range.count());
                let part = words(
                    range.start() + first,
                    1 + random.below(range.count() - first),
                );
                match random.below(6) {
                    2 | 3 => s.grant_part(&KERNEL, grant, part).map(|done| {
                        if done {
                            parts += 1;
                            naive.grant(part, target.into(), permission);
                        }
                    }),
                    4 | 5 => s.revoke_part(&KERNEL, grant, part).map(|done| {
                        if done {
                            parts += 1;
                            naive.grant(part, target.into(), Permission::None);
                        }
                    }),
                    0 => s
                        .grant_prepared(&KERNEL, grant)
                        .map(|()| naive.grant(range, target.into(), permission)),
                    _ => s
                        .revoke_prepared(&KERNEL, grant)
                        .map(|()| naive.grant(range, target.into(), Permission::None)),
                }
            }
            (11, Some(target)) => {
                let second = words(range.start() / 2, range.count());
                let export = |range, permission| {
                    (
                        KERNEL,
                        Change::Export {
                            target: target.into(),
                            range,
                            permission,
                            export: Level::None,
                        },
                    )
                };
                let batch = [export(range, permission), export(second, RW)];
                s.change_all(&batch)
                    .map_err(|refused| refused.error)
                    .map(|()| {
                        naive.grant(range, target.into(), permission);
                        naive.grant(second, target.into(), RW);
                    })
            }
            (_, Some(target)) => s
                .mprot_export(&KERNEL, target, range, permission)
                .map(|()| {
                    naive.grant(range, target.into(), permission);
                }),
            _ => Ok(()),
        };
        match outcome {
            Err(Error::NoRoom { .. }) => {
                refused += 1;
                if random.below(2) == 0 {
                    Table::collect(&mut s);
                    collected += 1;
                }
            }
            Err(_) => {}
            Ok(()) => {}
        }
        if step % 5000 == 4999 {
            Table::collect(&mut s);
        }
        let checked = match step % 16 {
            0 => 0..SPACE + 64,
            _ => range.start()..range.end(),
        };
        for word in checked {
            for domain in &living {
                let found = s.mechanism().access(*domain, 4 * word);
                let said = Access::of(s.permission(*domain, word), *domain);
                let all = (found, said, naive.access(*domain, word));
                let alike = all.0 == all.1 && all.1 == all.2;
                assert!(
                    alike,
                    "step {step}, {domain}, word {word}: table, supervisor, model {all:?}"
                );
            }
        }
    }
    s.check().unwrap();
    assert!(parts > 0);
    (collected, refused)
}

#[test]
fn random_grants_groups_and_ends_agree_with_the_naive_model() {
    let _alone = alone();
    for (seed, settling) in [(1, Settling::Now), (2, Settling::Later), (3, Settling::Now)] {
        run(
            0x9e37_79b9_7f4a_7c15 ^ seed,
            Limits::default(),
            steps(),
            settling,
        );
    }
}

/// Modules that are granted parts of a slab, with a plain call or an end of one in between now and then.
#[test]
fn random_parts_of_a_slab_agree_with_the_naive_model() {
    let _alone = alone();
    let slab = words(40, 300);
    let mut random = Random(0x51ab);
    let mut s = table(Limits::default());
    let mut naive = Naive::default();
    let all = words(0, 400);
    assert_eq!(s.pd_subdivide(&ROOT, all, Permission::None), Ok(KERNEL));
    naive.clear(all, None, KERNEL);
    let mut living: Vec<(DomainId, [PreparedGrant; 2])> = Vec::new();
    let mut granted: Vec<(PreparedGrant, DomainId, Range)> = Vec::new();
    let mut parts = 0u64;
    let steps = steps() / 4;
    for step in 0..steps {
        if living.len() < 4 {
            let own = words(350 + step % 50, 1);
            let made = s.perm_free(&KERNEL, own).and_then(|()| {
                naive.clear(own, None, KERNEL);
                s.pd_subdivide(&KERNEL, own, RW)
            });
            if let Ok(made) = made {
                naive.clear(own, None, made);
                naive.grant(own, made.into(), RW);
                let prepare = |permission| s.prepare(&KERNEL, made, slab, permission, Level::None);
                living.push((
                    made,
                    [RW, Permission::Read].map(prepare).map(Result::unwrap),
                ));
            }
        }
        let (domain, prepared) = living[random.below(living.len() as u64) as usize];
        let first = slab.start() + random.below(slab.count());
        let range = words(
            first,
            1 + random.below(slab.end() - first).min(random.below(90)),
        );
        match random.below(200) {
            0 => {
                s.pd_free(&KERNEL, domain).unwrap();
                naive.end(domain, KERNEL);
                living.retain(|(other, _)| *other != domain);
                granted.retain(|(_, other, _)| *other != domain);
            }
            1 | 2 => {
                s.mprot_export(&KERNEL, domain, range, RW).unwrap();
                naive.grant(range, domain.into(), RW);
            }
            3 => {
                s.perm_free(&KERNEL, slab).unwrap();
                naive.clear(slab, Some(KERNEL.into()), KERNEL);
                s.mprot(&KERNEL, slab, Permission::None).unwrap();
                naive.clear(slab, None, KERNEL);
                granted.clear();
            }
            4 if step % 7 == 0 => Table::collect(&mut s),
            5..=110 => {
                let write = random.below(2) as usize;
                let grant = prepared[1 - write];
                if s.grant_part(&KERNEL, grant, range).unwrap() {
                    let permission = [Permission::Read, RW][write];
                    naive.grant(range, domain.into(), permission);
                    granted.push((grant, domain, range));
                    parts += 1;
                }
            }
            _ if !granted.is_empty() => {
                let at = random.below(granted.len() as u64) as usize;
                let (grant, domain, range) = granted.swap_remove(at);
                if s.revoke_part(&KERNEL, grant, range).unwrap() {
                    naive.grant(range, domain.into(), Permission::None);
                    parts += 1;
                }
            }
            _ => {}
        }
        let checked = match step % 64 {
            0 => all,
            _ => range,
        };
        for word in checked.start()..checked.end() {
            for (domain, _) in &living {
                let found = s.mechanism().access(*domain, 4 * word);
                let said = Access::of(s.permission(*domain, word), *domain);
                let all = (found, said, naive.access(*domain, word));
                let alike = all.0 == all.1 && all.1 == all.2;
                assert!(
                    alike,
                    "step {step}, {domain}, word {word}: table, supervisor, model {all:?}"
                );
            }
        }
    }
    s.check().unwrap();
    assert!(parts > steps / 8, "only {parts} parts were decided at once");
}

#[test]
fn numbers_run_out_and_come_back() {
    let _alone = alone();
    let limits = Limits {
        numbers: 120,
        reserve: 40,
        domains: 14,
        ..Limits::default()
    };
    let (collected, refused) = run(0x1234_5678_9abc_def1, limits, steps(), Settling::Now);
    assert!(
        refused > 10 && collected > 10,
        "{refused} refused, {collected} collected"
    );
}

#[test]
fn joining_leaving_and_ending_write_no_shadow() {
    let _alone = alone();
    let mut s = table(Limits::default());
    s.pd_subdivide(&ROOT, words(0, 1 << 20), Permission::None)
        .unwrap();
    let group = s.group_create(&KERNEL).unwrap();
    s.mprot_export(&KERNEL, group, words(4096, 8192), Permission::Read)
        .unwrap();
    let module = s.pd_subdivide(&KERNEL, words(0, 1024), RW).unwrap();
    let other = s.pd_subdivide(&KERNEL, words(1024, 1024), RW).unwrap();
    s.mprot_export(&module, other, words(0, 512), Permission::Read)
        .unwrap();
    let before = s.mechanism().usage().words_written;
    s.group_join(&module, group).unwrap();
    assert_eq!(s.mechanism().access(module, 4 * 5000), Access::READ);
    s.group_leave(&module, group).unwrap();
    assert_eq!(s.mechanism().access(module, 4 * 5000), Access::NONE);
    s.group_join(&module, group).unwrap();
    assert_eq!(s.mechanism().access(other, 4 * 100), Access::READ);
    s.pd_free(&KERNEL, module).unwrap();
    assert_eq!(s.mechanism().access(other, 4 * 100), Access::NONE);
    assert_eq!(s.mechanism().access(module, 4 * 5000), Access::NONE);
    assert_eq!(s.mechanism().usage().words_written, before);
    assert!(s.mechanism().usage().numbers_spent > 0);
    Table::collect(&mut s);
    assert_eq!(s.mechanism().usage().numbers_spent, 0);
    assert_eq!(s.mechanism().access(other, 4 * 1500), Access::READ_WRITE);
}

#[test]
fn a_call_that_is_too_large_is_refused_and_changes_nothing() {
    let _alone = alone();
    let mut s = table(Limits {
        words: 1 << 16,
        ..Limits::default()
    });
    s.pd_subdivide(&ROOT, words(0, 1 << 30), Permission::None)
        .unwrap();
    let module = s
        .pd_subdivide(&KERNEL, words(1 << 30 >> 1, 16), RW)
        .unwrap();
    let (before, wide) = (s.snapshot(), words(0, 1 << 17));
    let refused = s.mprot_export(&KERNEL, module, wide, RW).unwrap_err();
    assert_eq!(refused, Error::NoRoom { words: 1 << 17 });
    assert_eq!(s.snapshot(), before);
    assert_eq!(s.mechanism().access(module, 0x100), Access::NONE);
}

#[test]
fn checked_code_finds_what_the_table_says() {
    let _alone = alone();
    let _loaded = checked_code().load();
    let mut s = table(Limits::default());
    // Two pages of ours, at whatever address.
    let pages = vec![0u32; 4096].into_boxed_slice();
    let base = (pages.as_ptr() as u64).next_multiple_of(4096);
    let at = |offset: u64, bytes: u64| Range::bytes(base + offset, bytes).unwrap();
    let module = s.pd_subdivide(&ROOT, at(0, 1024), RW).unwrap();
    s.mprot_export(&ROOT, module, at(2048, 256), RW).unwrap();
    s.mprot_export(&ROOT, module, at(3072, 4), Permission::Read)
        .unwrap();
    let other = s.pd_subdivide(&ROOT, at(4096, 64), RW).unwrap();
    s.mprot_export(&other, module, at(4096, 32), RW).unwrap();
    let view = s.mechanism().view(module).unwrap();
    // SAFETY: nothing else uses %gs here, and the table lives on.
    unsafe { view.load() };
    let cases = [
        (0, true, true),
        (1020, true, true),
        (1024, false, false),
        (2044, false, false),
        (2048, true, true),
        (2300, true, true),
        (2304, false, false),
        (3072, true, false),
        (3076, false, false),
        (4096, true, true),
        (4128, false, false),
    ];
    for (offset, reads, writes) in cases {
        let address = base + offset;
        // SAFETY: it is our memory, on which nothing depends.
        let (loaded, stored) = unsafe { (load4(&view, address), store4(&view, address, 7)) };
        assert_eq!((loaded.is_some(), stored), (reads, writes), "{offset}");
        assert_eq!(view.allows(address, 4, Access::READ), reads);
        assert_eq!(view.allows(address, 4, Access::WRITE), writes);
        let after = pages[((address - pages.as_ptr() as u64) / 4) as usize];
        assert_eq!(after, if writes { 7 } else { 0 }, "{offset}");
    }
    // An access that straddles the border of what is granted.
    assert!(
        !view.allows(base + 1022, 4, Access::READ) && view.allows(base + 1020, 4, Access::READ)
    );
    assert!(!view.allows(u64::MAX - 1, 4, Access::READ) && !view.allows(1 << 47, 1, Access::READ));
    drop(pages);
}

/// What checked code reads is where the contract says, byte for byte.
#[test]
fn the_layout_is_the_contract_s() {
    let _alone = alone();
    let mut s = table(Limits::default());
    let module = s.pd_subdivide(&ROOT, words(1 << 20, 64), RW).unwrap();
    let other = s.pd_subdivide(&ROOT, words(2 << 20, 64), RW).unwrap();
    s.mprot_export(&module, other, words(1 << 20, 8), Permission::Read)
        .unwrap();
    let views = [module, other].map(|domain| s.mechanism().view(domain).unwrap());
    let base = views[0].shadow();
    let number = |word: usize| {
        // SAFETY: the shadow is mapped as long as the table lives.
        unsafe { base.add(2 * word).cast::<u16>().read() }
    };
    let byte = |own: u16, number: u16| {
        let at = usize::from(own) * MAP_STRIDE as usize + usize::from(number);
        // SAFETY: as above; the maps lie in it.
        unsafe { base.add(at).read() }
    };
    let own = views.each_ref().map(mullion_word_table::View::number);
    assert!(own.iter().all(|own| (OWN_FIRST..=OWN_LAST).contains(own)) && own[0] != own[1]);
    for (view, own) in views.iter().zip(own) {
        assert_eq!(view.own() as u32, u32::from(own) * MAP_STRIDE as u32);
        assert_eq!(view.own() >> 48, u64::from(own));
        assert_eq!(byte(own, own), 3, "for checks of several words");
        assert_eq!(byte(own, 0), 0);
    }
    assert_eq!((byte(own[0], own[1]), byte(own[1], own[0])), (0, 0));
    assert_eq!((number((1 << 20) + 8), number(2 << 20)), (own[0], own[1]));
    let shared = number(1 << 20);
    assert!(shared != 0 && shared < OWN_FIRST);
    assert_eq!((byte(own[0], shared), byte(own[1], shared)), (3, 1));
}

#[test]
fn nothing_is_granted_where_the_table_is() {
    let _alone = alone();
    let mut s = table(Limits::default());
    let module = s.pd_subdivide(&ROOT, words(1 << 20, 64), RW).unwrap();
    let shadow = s.mechanism().view(module).unwrap().shadow() as u64;
    for at in [
        CLOSED_FIRST,
        CLOSED_END - 4,
        shadow,
        shadow + (1 << 40),
        shadow + u64::from(OWN_FIRST) * MAP_STRIDE / 4096 * 4096,
        (1 << 47) - 4096,
        1 << 47,
    ] {
        let range = Range::bytes(at, 8).unwrap();
        for permission in [RW, Permission::Read, Permission::SwitchGate { to: ROOT }] {
            let refused = s.mprot_export(&ROOT, module, range, permission);
            let expected = match at {
                0x8000_0000_0000 => matches!(refused, Err(Error::OutsideSpace { .. })),
                // The last page of the address space is as good as any other.
                0x7fff_ffff_f000 => refused.is_ok(),
                _ => refused == Err(Error::NotEnforced { range }),
            };
            assert!(expected, "{at:#x}: {refused:?}");
        }
    }
    let wide = Range::bytes(CLOSED_FIRST - 4096, 8192).unwrap();
    assert_eq!(
        s.pd_subdivide(&ROOT, wide, RW),
        Err(Error::NotEnforced { range: wide })
    );
    assert_eq!(
        s.prepare(&ROOT, module, wide, RW, Level::None),
        Err(Error::NotEnforced { range: wide })
    );
    // Writing the whole shadow anew goes around them.
    Table::collect(&mut s);
    assert_eq!(s.mechanism().access(module, 4 << 20), Access::READ_WRITE);
    assert_eq!(s.mechanism().access(module, CLOSED_FIRST), Access::NONE);
}

#[test]
fn the_closed_addresses_stay_closed_or_it_says_who_is_there() {
    let _alone = alone();
    let map = |flags: i32| {
        let at = (CLOSED_FIRST + 0x1_0000) as *mut libc::c_void;
        let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: it replaces nothing.
        unsafe {
            libc::mmap(
                at,
                4096,
                libc::PROT_READ,
                flags | libc::MAP_FIXED_NOREPLACE,
                -1,
                0,
            )
        }
    };
    let there = map(0);
    assert_ne!(there, libc::MAP_FAILED);
    let refused = Table::reserve(Limits::default(), Inside::new().unwrap()).unwrap_err();
    let SpaceError::Closed { who } = &refused else {
        panic!("{refused}");
    };
    assert!(who.starts_with("180028000-180029000 r--p"), "{who}");
    // SAFETY: it was mapped above, and nobody uses it.
    unsafe { libc::munmap(there, 4096) };
    let s = table(Limits::default());
    assert_eq!(map(0), libc::MAP_FAILED);
    drop(s);
    let again = map(0);
    assert_ne!(again, libc::MAP_FAILED, "a table that is gone leaves them");
    // SAFETY: the test has mapped it, and nobody uses it.
    unsafe { libc::munmap(again, 4096) };
}

#[test]
fn there_is_room_for_16383_domains_and_again_for_others() {
    let _alone = alone();
    let mut s = table(Limits::default());
    let own = |n: u64| words((1 << 20) + 4 * n, 4);
    let made: Vec<DomainId> = (0..16_383)
        .map(|n| s.pd_subdivide(&ROOT, own(n), RW).unwrap())
        .collect();
    let count = own(16_383).count();
    assert_eq!(
        s.pd_subdivide(&ROOT, own(16_383), RW),
        Err(Error::NoRoom { words: count })
    );
    let last = *made.last().unwrap();
    assert_eq!(
        s.mechanism().access(last, own(16_382).address()),
        Access::READ_WRITE
    );
    assert_eq!(s.mechanism().access(last, own(0).address()), Access::NONE);
    // Whose words are given back first leaves nothing in the shadow; others need a collection.
    s.perm_free(&made[0], own(0)).ok();
    s.pd_free(&ROOT, made[1]).unwrap();
    Table::collect(&mut s);
    let new = s.pd_subdivide(&ROOT, own(16_383), RW).unwrap();
    assert_eq!(
        s.mechanism().access(new, own(16_383).address()),
        Access::READ_WRITE
    );
    assert_eq!(s.mechanism().access(new, own(1).address()), Access::NONE);
}

/// A domain's end tells of many holdings at once, and the supervisor gives the place of one that is gone to another one
/// of them. The numbers of the first must not be taken for free: words have them.
#[test]
fn ends_of_domains_with_many_holdings_lose_no_number() {
    let _alone = alone();
    let mut supervisor = table(Limits::default());
    let mut random = Random(0x1234_5678_9abc_def1);
    let first = 0x4000_0000;
    let mut made = 0;
    let mut create = |supervisor: &mut Supervisor<Table>| {
        made += 1;
        let own = words(0x1000_0000 + 16 * made, 16);
        supervisor
            .pd_subdivide(&ROOT, own, Permission::None)
            .unwrap()
    };
    let mut domains: Vec<DomainId> = (0..8).map(|_| create(&mut supervisor)).collect();
    for _round in 0..150 {
        for _ in 0..260 {
            let domain = domains[random.below(8) as usize];
            let start = random.below(400);
            let range = words(first + start, 1 + random.below((400 - start).min(7)));
            let permission = [Permission::None, Permission::Read, RW][random.below(3) as usize];
            supervisor
                .mprot_export_up_to(&ROOT, domain, range, permission, Level::None)
                .unwrap();
        }
        let at = random.below(8) as usize;
        supervisor.pd_free(&ROOT, domains[at]).unwrap();
        domains[at] = create(&mut supervisor);
        for domain in &domains {
            for word in first..first + 400 {
                let wanted = Access::of(supervisor.permission(*domain, word), *domain);
                let found = supervisor.mechanism().access(*domain, 4 * word);
                assert_eq!(found, wanted, "word {word:#x} of {domain}");
            }
        }
    }
}

/// There are maps in the place of the shadow of the closed addresses. They are no numbers of words: a module must not pass such
/// an address to a function of the host, which would read there.
#[test]
fn nobody_has_anything_at_the_closed_addresses() {
    let _alone = alone();
    let mut s = table(Limits::default());
    let module = s.pd_subdivide(&ROOT, words(0x4000, 4), RW).unwrap();
    // Shared holdings with low numbers, so that bytes of a map look like numbers that mean something.
    for n in 0..8 {
        let place = words(0x8000 + 16 * n, 1);
        let other = s.pd_subdivide(&ROOT, words(0x4100 + n, 1), RW).unwrap();
        s.mprot_export(&ROOT, module, place, RW).unwrap();
        s.mprot_export(&ROOT, other, place, Permission::Read)
            .unwrap();
    }
    let view = s.mechanism().view(module).unwrap();
    let own = u64::from(view.number());
    // The word whose two bytes of shadow are those of the own number, and of the one behind it, in the own map.
    let address = 2 * own * (MAP_STRIDE + 1);
    assert!((CLOSED_FIRST..CLOSED_END).contains(&address));
    assert_eq!(view.access(address), Access::NONE);
    assert!(!view.allows(address, 4, Access::READ));
    assert_eq!(view.allowed(address - 64, 128, Access::READ), 0);
    assert_eq!(s.mechanism().access(module, address), Access::NONE);
    assert_eq!(view.allowed(0x8000 * 4, 64, Access::READ), 4);
    assert_eq!(view.allowed(0x8000 * 4 + 3, 64, Access::READ), 1);
    assert_eq!(view.allowed(0x8000 * 4 + 4, 64, Access::READ), 0);
}

/// Several words are looked at together. The answer is that of looking at each.
#[test]
fn what_is_allowed_is_so_word_by_word() {
    let _alone = alone();
    let mut s = table(Limits::default());
    let module = s.pd_subdivide(&ROOT, words(0x4000, 4), RW).unwrap();
    let other = s.pd_subdivide(&ROOT, words(0x4100, 4), RW).unwrap();
    // Runs of 1 to 11 words: the module's alone, shared, to read, nobody's.
    let (mut at, mut length) = (0x8000, 1);
    while at < 0x8100 {
        let run = words(at, length);
        match length % 5 {
            0 => {}
            1 | 2 => s.mprot_export(&ROOT, module, run, RW).unwrap(),
            3 => s
                .mprot_export(&ROOT, module, run, Permission::Read)
                .unwrap(),
            _ => {
                s.mprot_export(&ROOT, module, run, RW).unwrap();
                s.mprot_export(&ROOT, other, run, RW).unwrap();
            }
        }
        at += length;
        length = length * 7 % 11 + 1;
    }
    let view = s.mechanism().view(module).unwrap();
    let (first, mut most) = (0x8000 * 4, 0);
    for right in [Access::READ, Access::READ_WRITE] {
        for address in first..first + 0x400 {
            for limit in [1, 3, 4, 15, 16, 17, 40, 64, 200] {
                let each =
                    (address..address + limit).take_while(|at| view.access(*at).covers(right));
                let each = each.count() as u64;
                assert_eq!(
                    view.allowed(address, limit, right),
                    each,
                    "{address:#x}, {limit}"
                );
                most = most.max(each);
            }
        }
    }
    assert!(most >= 40, "{most}: groups were looked at");
}
