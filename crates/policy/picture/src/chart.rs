//! Columns and rows: what each domain may do where, before anything has a place on paper.

use crate::state::{Access, Export, Region, State};
use crate::validate::Valid;
use std::collections::{BTreeMap, BTreeSet};

/// What stands in a column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) id: u32,
    pub(crate) name: String,
    /// A domain that takes no calls.
    pub(crate) ended: bool,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A domain, so deep below the root, with its parent's column if that is there.
    Domain { depth: usize, parent: Option<usize> },
    /// A group, with its creator's column and its members' columns.
    Group {
        creator: Option<usize>,
        members: Vec<usize>,
    },
}

/// What one column may do on one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) access: Access,
    pub(crate) to: Option<u32>,
    pub(crate) export: Export,
    /// The group that gives it, if it does not come from a grant of its own.
    pub(crate) through: Option<u32>,
}

/// Words on which everything is the same.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) start: u128,
    pub(crate) end: u128,
    /// The owner's number, and its column if it has one.
    pub(crate) owner: (u32, Option<usize>),
    /// One for each column.
    pub(crate) cells: Vec<Option<Cell>>,
}

impl Row {
    pub(crate) fn bytes(&self) -> u128 {
        self.end - self.start
    }

    /// Whether another row differs in its address alone.
    pub(crate) fn is_like(&self, other: &Row) -> bool {
        self.bytes() == other.bytes() && self.owner == other.owner && self.cells == other.cells
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// Domains first, a parent before its children; then groups.
    pub(crate) columns: Vec<Column>,
    /// How many of the columns are domains.
    pub(crate) domain_count: usize,
    pub(crate) rows: Vec<Row>,
}

impl Chart {
    pub(crate) fn new(valid: &Valid) -> Chart {
        let state = valid.state();
        let mut columns = domain_columns(state);
        let domain_count = columns.len();
        let column_of: BTreeMap<u32, usize> = columns
            .iter()
            .enumerate()
            .map(|(index, column)| (column.id, index))
            .collect();
        columns.extend(group_columns(state, &column_of));
        let member_of = memberships(state);
        let mut rows: Vec<Row> = Vec::new();
        for region in &state.regions {
            let row = Row {
                start: region.start.0,
                end: region.end.0,
                owner: (region.owner, column_of.get(&region.owner).copied()),
                cells: columns
                    .iter()
                    .map(|column| cell(region, column, &member_of))
                    .collect(),
            };
            match rows.last_mut() {
                Some(last) if last.owner == row.owner && last.cells == row.cells => {
                    last.end = row.end
                }
                _ => rows.push(row),
            }
        }
        Chart {
            columns,
            domain_count,
            rows,
        }
    }
}

/// The domains but a supervisor that neither owns nor holds anything: then it is not part of the picture.
fn domain_columns(state: &State) -> Vec<Column> {
    let idle = !state.regions.iter().any(|region| {
        region.owner == 0
            || region
                .grants
                .iter()
                .any(|grant| grant.domain == Some(0) || grant.to == Some(0))
    });
    let names: BTreeMap<u32, &str> = state
        .domains
        .iter()
        .map(|domain| (domain.id, domain.name.as_str()))
        .collect();
    let parents: BTreeMap<u32, Option<u32>> = state
        .domains
        .iter()
        .map(|domain| (domain.id, domain.parent))
        .collect();
    let shown: Vec<(u32, usize)> = state
        .preorder()
        .into_iter()
        .filter(|(id, _)| !(idle && *id == 0 && state.domains.len() > 1))
        .collect();
    let place = |id: u32| shown.iter().position(|(shown, _)| *shown == id);
    let ended: BTreeSet<u32> = state
        .domains
        .iter()
        .filter(|domain| domain.ended)
        .map(|domain| domain.id)
        .collect();
    let name = |id: &u32| match names.get(id) {
        Some(&"") | None if *id == 0 => "supervisor".to_owned(),
        Some(&"") | None => format!("PD {id}"),
        Some(name) => (*name).to_owned(),
    };
    let column = |(id, depth): &(u32, usize)| Column {
        id: *id,
        name: match ended.contains(id) {
            true => name(id) + " (ended)",
            false => name(id),
        },
        ended: ended.contains(id),
        kind: Kind::Domain {
            depth: depth - usize::from(idle && *depth > 0),
            parent: parents.get(id).copied().flatten().and_then(place),
        },
    };
    shown.iter().map(column).collect()
}

/// The groups but a global one without grants.
fn group_columns(state: &State, column_of: &BTreeMap<u32, usize>) -> Vec<Column> {
    let used = |id: u32| {
        state
            .regions
            .iter()
            .any(|region| region.grants.iter().any(|grant| grant.group == Some(id)))
    };
    let shown = state.groups.iter().filter(|group| group.id != 0 || used(0));
    let column = |group: &crate::Group| Column {
        id: group.id,
        ended: false,
        name: match (group.name.as_str(), group.id) {
            ("", 0) => "everybody".to_owned(),
            ("", id) => format!("group {id}"),
            (name, _) => name.to_owned(),
        },
        kind: Kind::Group {
            creator: column_of.get(&group.creator).copied(),
            members: match group.id {
                0 => column_of.values().copied().collect(),
                _ => group
                    .members
                    .iter()
                    .filter_map(|member| column_of.get(member).copied())
                    .collect(),
            },
        },
    };
    shown.map(column).collect()
}

/// The groups of each domain, but the global one.
fn memberships(state: &State) -> BTreeMap<u32, Vec<u32>> {
    let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for group in &state.groups {
        for member in &group.members {
            groups.entry(*member).or_default().push(group.id);
        }
    }
    groups
}

/// As the supervisor decides: the stronger of the domain's own grant and those of its groups, its own of
/// equals, then the group with the lowest number; an owner has its own alone.
fn cell(region: &Region, column: &Column, member_of: &BTreeMap<u32, Vec<u32>>) -> Option<Cell> {
    let own = |domain, group| {
        let found = region
            .grants
            .iter()
            .find(|grant| (grant.domain, grant.group) == (domain, group));
        found.map(|grant| Cell {
            access: grant.access,
            to: grant.to,
            export: grant.export,
            through: group,
        })
    };
    match column.kind {
        Kind::Group { .. } => own(None, Some(column.id)).map(|cell| Cell {
            through: None,
            ..cell
        }),
        Kind::Domain { .. } => {
            let direct = own(Some(column.id), None);
            if region.owner == column.id {
                return direct;
            }
            let nothing = Vec::new();
            let joined = member_of.get(&column.id).unwrap_or(&nothing);
            let mut groups: Vec<u32> = joined.iter().copied().chain([0]).collect();
            groups.sort_unstable();
            let given = groups
                .into_iter()
                .filter_map(|group| own(None, Some(group)));
            direct
                .into_iter()
                .chain(given)
                .reduce(|best, next| if full(next) & !full(best) { next } else { best })
        }
    }
}

fn full(cell: Cell) -> bool {
    cell.access != Access::Read
}
