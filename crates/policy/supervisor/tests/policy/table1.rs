//! Every row of `TABLE_1`, read from the table itself: its cells set the scene, name the call, and say
//! what must come of it, for all values of its letters.

use crate::{Stack, permissions, words};
use mullion_recorder::Recorder;
use mullion_supervisor::{
    DomainId, Error, Family, Order, Permission, Range, Row, Rule, Supervisor, TABLE_1,
};
use std::collections::BTreeMap;

const ROOT: DomainId = DomainId::SUPERVISOR;
/// The memory that the row is about, and a word on either side that no row touches.
const FIRST: u64 = 8;
const COUNT: u64 = 3;

/// One scene: who is who, and what the letters stand for.
struct Scene {
    supervisor: Supervisor<Recorder>,
    caller: DomainId,
    target: DomainId,
    bystander: DomainId,
    owner: DomainId,
    letters: BTreeMap<char, Permission>,
    bystander_has: Permission,
}

fn memory() -> Range {
    words(FIRST, COUNT)
}

/// `own, X` and `other, B`: who owns, and the letter.
fn cell(text: &str) -> (&str, Option<char>) {
    let (own, access) = text.split_once(", ").unwrap_or((text, ""));
    (own, access.chars().next())
}

/// The letter that the call is made with, if it takes one.
fn argument(row: &Row) -> Option<char> {
    row.call
        .split_once(' ')
        .and_then(|(_, letter)| letter.chars().next())
}

/// All scenes of a row: both orders, every value of every letter, with and without a bystander, and for a
/// deletion by its parent and by one further up.
fn scenes(row: &Row, order: Order) -> Vec<Scene> {
    let mut scenes = Vec::new();
    let deletions: &[bool] = if row.call == "pd_free" {
        &[true, false]
    } else {
        &[true]
    };
    for by_parent in deletions {
        for caller_index in 0..6 {
            for target_index in 0..6 {
                for argument_index in 0..6 {
                    for bystander_has in [Permission::None, Permission::Read] {
                        let indexes = [caller_index, target_index, argument_index];
                        scenes.extend(scene(row, order, indexes, bystander_has, *by_parent));
                    }
                }
            }
        }
    }
    scenes
}

/// Sets one scene; none where an index has no letter to give a value to and is not the first.
fn scene(
    row: &Row,
    order: Order,
    [caller_index, target_index, argument_index]: [usize; 3],
    bystander_has: Permission,
    by_parent: bool,
) -> Option<Scene> {
    let ((caller_owns, caller_letter), (target_owns, target_letter)) =
        (cell(row.caller), cell(row.target));
    if (target_letter.is_none() && target_index > 0)
        || (argument(row).is_none() && argument_index > 0)
    {
        return None;
    }
    let mut supervisor = Supervisor::with(words(0, 32), Recorder::new(), Family, order);
    let parent = supervisor
        .pd_subdivide(&ROOT, words(0, 6), Permission::ReadWrite)
        .unwrap();
    let target = supervisor
        .pd_subdivide(&parent, words(1, 1), Permission::ReadWrite)
        .unwrap();
    let third = supervisor
        .pd_subdivide(&ROOT, words(16, 1), Permission::ReadWrite)
        .unwrap();
    let bystander = supervisor
        .pd_subdivide(&ROOT, words(20, 1), Permission::ReadWrite)
        .unwrap();
    let caller = if by_parent { parent } else { ROOT };
    let owner = match (caller_owns, target_owns) {
        ("own", _) => caller,
        (_, "own") => target,
        _ => third,
    };
    supervisor.chown(&ROOT, memory(), owner).unwrap();

    let mut letters = BTreeMap::new();
    let mut hold = |domain: DomainId, permission: Permission| {
        let made = match domain == owner {
            true => supervisor.mprot(&owner, memory(), permission),
            false => supervisor.mprot_export(&owner, domain, memory(), permission),
        };
        made.unwrap();
    };
    let caller_has = permissions(owner)[caller_index];
    hold(caller, caller_has);
    letters.extend(caller_letter.map(|letter| (letter, caller_has)));
    if let Some(letter) = target_letter {
        let has = permissions(owner)[target_index];
        hold(target, has);
        // Table 1 writes X for both sides of a row that changes neither.
        if letter != 'X' {
            letters.insert(letter, has);
        }
    }
    hold(bystander, bystander_has);
    letters.extend(argument(row).map(|letter| (letter, permissions(caller)[argument_index])));
    Some(Scene {
        supervisor,
        caller,
        target,
        bystander,
        owner,
        letters,
        bystander_has,
    })
}

/// Whether the row allows the call in this scene.
fn allowed(row: &Row, scene: &Scene, order: Order) -> bool {
    let shared = scene.bystander_has != Permission::None
        || [scene.caller, scene.target].into_iter().any(|domain| {
            domain != scene.owner && scene.supervisor.permission(domain, FIRST) != Permission::None
        });
    match row.condition {
        "always" => true,
        "never" => false,
        "nobody else has access" => !shared,
        chain => {
            let values: Vec<Permission> = chain
                .split(" at most ")
                .map(|letter| scene.letters[&letter.chars().next().unwrap()])
                .collect();
            values
                .windows(2)
                .all(|pair| order.at_most(pair[0], pair[1]))
        }
    }
}

/// Makes the call of the row; a new domain takes the target's place.
fn make(row: &Row, scene: &mut Scene) -> Result<(), Error> {
    let value = argument(row).map(|letter| scene.letters[&letter]);
    let stack = Stack {
        current: scene.caller,
        previous: Some(scene.target),
    };
    let supervisor = &mut scene.supervisor;
    match (row.call.split(' ').next().unwrap(), value) {
        ("mprot", Some(value)) => supervisor.mprot(&stack, memory(), value),
        ("mprot_export", Some(value)) => {
            supervisor.mprot_export(&stack, scene.target, memory(), value)
        }
        ("pd_subdivide", Some(value)) => {
            let child = supervisor.pd_subdivide(&stack, memory(), value);
            child.map(|child| scene.target = child)
        }
        ("pd_free", None) => supervisor.pd_free(&stack, scene.target),
        ("perm_alloc", None) => supervisor.perm_alloc(&stack, memory()),
        ("perm_free", None) => supervisor.perm_free(&stack, memory()),
        other => panic!(
            "row {} names a call that this test does not know: {other:?}",
            row.number
        ),
    }
}

/// What the row says a domain has afterwards, compared on every word and in the mechanism.
fn expect(row: &Row, scene: &Scene, domain: DomainId, text: &str) {
    let supervisor = &scene.supervisor;
    let (own, _) = cell(text);
    let value = match text.rsplit(", ").next().unwrap() {
        "" => return,
        "gone" => return assert!(!supervisor.exists(domain), "row {}", row.number),
        "none" => Permission::None,
        "RW" => Permission::ReadWrite,
        letter => scene
            .letters
            .get(&letter.chars().next().unwrap())
            .copied()
            .unwrap_or_else(|| {
                panic!("row {}: no letter {letter}", row.number);
            }),
    };
    for word in FIRST..FIRST + COUNT {
        let about = format!("row {} ({}), word {word}, {domain}", row.number, row.call);
        assert_eq!(supervisor.permission(domain, word), value, "{about}");
        assert_eq!(
            supervisor.mechanism().permission(domain, word),
            value,
            "{about}"
        );
        let owns = supervisor.owner(word) == Some(domain);
        match own {
            "own" => assert!(owns, "{about}"),
            "other" => assert!(!owns, "{about}"),
            "own if parent" => assert_eq!(owns, domain != ROOT, "{about}"),
            _ => panic!("row {}: {own}", row.number),
        }
    }
}

#[test]
fn every_row_of_table_1_holds_for_all_values_of_its_letters() {
    for (index, row) in TABLE_1.iter().enumerate() {
        assert_eq!(usize::from(row.number), index + 1);
        let (mut granted, mut refused) = (0, 0);
        for order in [Order::Paper, Order::Strict] {
            for mut scene in scenes(row, order) {
                let may = allowed(row, &scene, order);
                let before = (
                    scene.supervisor.snapshot(),
                    scene.supervisor.mechanism().clone(),
                );
                match make(row, &mut scene) {
                    Ok(()) => {
                        assert!(may, "row {} was granted: {:?}", row.number, scene.letters);
                        granted += 1;
                        expect(row, &scene, scene.caller, row.caller_after);
                        expect(row, &scene, scene.target, row.target_after);
                        let revoked = ["pd_free", "perm_free"].contains(&row.call);
                        let left = if revoked {
                            Permission::None
                        } else {
                            scene.bystander_has
                        };
                        assert_eq!(
                            scene.supervisor.permission(scene.bystander, FIRST),
                            left,
                            "row {}",
                            row.number
                        );
                    }
                    Err(error) => {
                        assert!(
                            !may,
                            "row {} was refused: {error} {:?}",
                            row.number, scene.letters
                        );
                        refused += 1;
                        assert_eq!(error.rule(), Rule::Row(row.number), "{error}");
                        let after = (
                            scene.supervisor.snapshot(),
                            scene.supervisor.mechanism().clone(),
                        );
                        assert_eq!(before, after, "row {}", row.number);
                    }
                }
                scene.supervisor.check().unwrap();
            }
        }
        println!(
            "row {:2} {:15} granted {granted:5} refused {refused:5}",
            row.number, row.call
        );
        match row.condition {
            "always" => assert!(granted > 0 && refused == 0),
            "never" => assert!(granted == 0 && refused > 0),
            _ => assert!(
                granted > 0 && refused > 0,
                "row {} was tried on one side only",
                row.number
            ),
        }
    }
}
