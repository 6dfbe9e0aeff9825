//! Groups: Figure 4 of the paper, the global group, and what the mechanism is told.

use crate::words;
use mullion_recorder::Recorder;
use mullion_supervisor::{DomainId, GroupId, Mechanism, Permission, Range, Supervisor};
use mullion_supervisor::{Family, Order};

const ROOT: DomainId = DomainId::SUPERVISOR;

#[test]
fn figure_4_a_member_has_what_its_group_has_as_long_as_it_is_one() {
    let mut s = Supervisor::new(words(0, 64), Recorder::new());
    let one = s
        .pd_subdivide(&ROOT, words(0, 48), Permission::ReadWrite)
        .unwrap();
    let two = s
        .pd_subdivide(&one, words(32, 8), Permission::ReadWrite)
        .unwrap();
    let three = s
        .pd_subdivide(&one, words(40, 8), Permission::ReadWrite)
        .unwrap();
    let group = s.group_create(&one).unwrap();
    s.mprot_export(&one, group, words(4, 4), Permission::Read)
        .unwrap();
    s.group_join(&three, group).unwrap();
    s.mprot_export(&one, group, words(16, 2), Permission::Read)
        .unwrap();
    for (word, expected) in [
        (4, Permission::Read),
        (17, Permission::Read),
        (18, Permission::None),
    ] {
        assert_eq!(s.permission(three, word), expected, "word {word}");
        assert_eq!(s.permission(two, word), Permission::None, "word {word}");
        assert_eq!(
            s.permission(one, word),
            Permission::ReadWrite,
            "word {word}"
        );
    }
    s.mprot_export(&one, group, words(4, 4), Permission::None)
        .unwrap();
    assert_eq!(s.permission(three, 4), Permission::None);
    s.group_leave(&three, group).unwrap();
    assert_eq!(s.permission(three, 17), Permission::None);
    assert_eq!(s.mechanism().permission(three, 17), Permission::None);
}

#[test]
fn the_global_group_reaches_domains_that_are_made_later() {
    let mut s = Supervisor::new(words(0, 64), Recorder::new());
    s.mprot_export(&ROOT, GroupId::GLOBAL, words(0, 4), Permission::ExecuteRead)
        .unwrap();
    let late = s
        .pd_subdivide(&ROOT, words(8, 8), Permission::ReadWrite)
        .unwrap();
    assert_eq!(s.mechanism().permission(late, 3), Permission::ExecuteRead);
    // The owner has what it set itself, which is nothing.
    assert_eq!(s.permission(ROOT, 3), Permission::None);
}

#[test]
fn a_group_that_is_deleted_takes_its_grants_along_and_one_whose_maker_is_deleted_is_inherited() {
    let mut s = Supervisor::new(words(0, 64), Recorder::new());
    let one = s
        .pd_subdivide(&ROOT, words(0, 48), Permission::ReadWrite)
        .unwrap();
    let two = s
        .pd_subdivide(&one, words(32, 8), Permission::ReadWrite)
        .unwrap();
    let group = s.group_create(&two).unwrap();
    s.mprot_export(&one, group, words(0, 4), Permission::Read)
        .unwrap();
    s.pd_free(&one, two).unwrap();
    s.group_join(&one, group).unwrap();
    s.group_free(&one, group).unwrap();
    assert!(s.members(group).is_err());
    assert_eq!(s.regions(words(0, 4)).next().unwrap().1.grants.len(), 1);
    s.check().unwrap();
}

/// Notes every hint.
#[derive(Default)]
struct Hints(Vec<(Vec<DomainId>, Range, Permission)>);

impl Mechanism for Hints {
    fn write(&mut self, _: DomainId, _: Range, _: Permission) {}

    fn flush(&mut self, _: DomainId, _: Range) {}

    fn alike(&mut self, members: &[DomainId], range: Range, permission: Permission) {
        self.0.push((members.to_vec(), range, permission));
    }
}

#[test]
fn only_members_that_really_hold_the_same_are_called_alike() {
    let mut s = Supervisor::with(words(0, 64), Hints::default(), Family, Order::Paper);
    let one = s
        .pd_subdivide(&ROOT, words(0, 32), Permission::ReadWrite)
        .unwrap();
    let members: Vec<DomainId> = (0..4)
        .map(|n| {
            s.pd_subdivide(&one, words(16 + n, 1), Permission::Read)
                .unwrap()
        })
        .collect();
    let group = s.group_create(&one).unwrap();
    for member in &members {
        s.group_join(member, group).unwrap();
    }
    s.mprot_export(&one, members[0], words(2, 1), Permission::ReadWrite)
        .unwrap();
    s.mprot_export(&one, group, words(0, 8), Permission::Read)
        .unwrap();
    let expected = (members[1..].to_vec(), words(0, 8), Permission::Read);
    assert_eq!(s.mechanism().0, [expected]);
}

#[test]
fn neighbours_with_one_permission_are_written_and_flushed_as_one() {
    let mut s = Supervisor::new(words(0, 64), Recorder::new());
    let one = s
        .pd_subdivide(&ROOT, words(0, 32), Permission::None)
        .unwrap();
    let other = s
        .pd_subdivide(&ROOT, words(32, 8), Permission::None)
        .unwrap();
    for word in [2, 4, 6] {
        s.mprot_export(&one, other, words(word, 1), Permission::Read)
            .unwrap();
    }
    let (writes, flushes) = (s.mechanism().writes(), s.mechanism().flushes());
    s.mprot(&one, words(0, 16), Permission::ReadWrite).unwrap();
    assert_eq!(
        (s.mechanism().writes(), s.mechanism().flushes()),
        (writes + 1, flushes + 1)
    );
    // Revoking costs a write for each piece that somebody holds, not for each domain there is.
    s.perm_free(&one, words(0, 16)).unwrap();
    assert_eq!(
        (s.mechanism().writes(), s.mechanism().flushes()),
        (writes + 4, flushes + 4)
    );
}
