//! Columns and rows: what each domain may do where, before anything has a place on paper.
//!
//! A column has one domain, or many that are alike. A row has only the cells in which something is
//! allowed: most domains have nothing at most addresses.

use crate::fold::{Item, cut, fold};
use crate::state::{
    AccessKind, ByteAddress, DrawnDomain, DrawnGrant, DrawnGroup, ExportLevel, Label, Region,
    Space, SupervisorState,
};
use crate::validate::Valid;
use crate::view::{Excerpt, LeftOut};
use std::collections::{BTreeMap, BTreeSet};

/// What stands in a column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) id: u32,
    pub(crate) name: String,
    /// A domain that takes no calls.
    pub(crate) ended: bool,
    pub(crate) kind: Kind,
    /// The numbers of other domains that may do the same, and share the column.
    pub(crate) alike: Vec<u32>,
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
    pub(crate) access: AccessKind,
    pub(crate) to: Option<u32>,
    pub(crate) export: ExportLevel,
    /// The group that gives it, if it does not come from a grant of its own.
    pub(crate) through: Option<u32>,
}

/// Words on which everything is the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) start: u128,
    pub(crate) end: u128,
    /// The owner's column, if it has one.
    pub(crate) owner: Option<usize>,
    /// By column, in their order, where something is allowed.
    pub(crate) cells: Vec<(usize, Cell)>,
    /// The kind of the innermost label; 0 without one.
    pub(crate) label: usize,
}

impl Row {
    pub(crate) fn bytes(&self) -> u128 {
        self.end - self.start
    }

    /// What a column may do here.
    pub(crate) fn cell(&self, column: usize) -> Option<Cell> {
        let found = self.cells.binary_search_by_key(&column, |(at, _)| *at);
        found.ok().map(|index| self.cells[index].1)
    }

    /// Whether another row differs in its address alone.
    pub(crate) fn is_like(&self, other: &Row) -> bool {
        self.bytes() == other.bytes() && self.label == other.label && self.has_same(other)
    }

    fn has_same(&self, other: &Row) -> bool {
        self.owner == other.owner && self.cells == other.cells
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// Domains first, a parent before its children; then groups.
    pub(crate) columns: Vec<Column>,
    /// How many of the columns are domains.
    pub(crate) domain_count: usize,
    pub(crate) rows: Vec<Row>,
    /// What domains and groups are called, shown or not.
    domains: BTreeMap<u32, String>,
    groups: BTreeMap<u32, String>,
    pub(crate) left_out: LeftOut,
}

impl Chart {
    pub(crate) fn new(valid: &Valid, view: &Excerpt) -> Chart {
        let state = valid.state();
        let mut left_out = LeftOut {
            chosen: !view.domains.is_empty(),
            ..LeftOut::default()
        };
        let names = names(state);
        let mut columns = domain_columns(state, view, &names, &mut left_out);
        let domain_count = columns.len();
        let mut column_of = BTreeMap::new();
        for (index, column) in columns.iter().enumerate() {
            column_of.insert(column.id, index);
            column_of.extend(column.alike.iter().map(|id| (*id, index)));
        }
        let groups = group_columns(state, view, &column_of, &mut left_out);
        columns.extend(groups);
        let mut rows = rows(state, view, &columns, &column_of);
        name_rows(&mut rows, &state.labels);
        let groups = state.groups.iter();
        Chart {
            columns,
            domain_count,
            rows,
            domains: names,
            groups: groups.map(|group| (group.id, group_name(group))).collect(),
            left_out,
        }
    }

    /// As [`Chart::new`]; if there are more rows than may be shown, then without those domains that have
    /// nothing on the rows that are.
    pub(crate) fn fitting(valid: &Valid, view: &Excerpt) -> (Chart, Vec<Item>) {
        let chart = Chart::new(valid, view);
        let (items, covered) = cut(fold(&chart.rows), view.most_rows);
        let Some((first, last)) = chart.rows.first().zip(chart.rows.last()) else {
            return (chart, items);
        };
        let (start, end, all) = (first.start, last.end, chart.rows.len());
        let shown_end = |chart: &Chart, covered: usize| {
            let last = covered.checked_sub(1).and_then(|last| chart.rows.get(last));
            last.map_or(start, |row| row.end)
        };
        let rows_end = shown_end(&chart, covered);
        let narrow = covered < all && rows_end > start && view.domains.is_empty();
        let (mut chart, items, covered, hidden) = match narrow {
            false => (chart, items, covered, 0),
            true => {
                let (start, end) = (ByteAddress(start), ByteAddress(rows_end));
                let near = Excerpt {
                    range: Some(Space { start, end }),
                    ..view.clone()
                };
                let chart = Chart::new(valid, &near);
                let (items, shown) = cut(fold(&chart.rows), view.most_rows);
                (chart, items, shown, all - covered)
            }
        };
        chart.left_out.regions = shown(valid.state(), view).count();
        chart.left_out.rows = (chart.rows.len() + hidden, covered);
        chart.left_out.rows_end = (shown_end(&chart, covered), end);
        (chart, items)
    }

    /// The name of a domain, which may have no column.
    pub(crate) fn domain(&self, id: u32) -> &str {
        self.domains.get(&id).map_or("", String::as_str)
    }

    /// The name of a group, which may have no column.
    pub(crate) fn group(&self, id: u32) -> &str {
        self.groups.get(&id).map_or("", String::as_str)
    }
}

/// The regions of a view, each with the piece of it that is shown.
fn shown<'a>(
    state: &'a SupervisorState,
    view: &'a Excerpt,
) -> impl Iterator<Item = (u128, u128, &'a Region)> + 'a {
    state.regions.iter().filter_map(|region| {
        let (start, end) = view.overlap(region.start.0, region.end.0)?;
        Some((start, end, region))
    })
}

/// The domains' names, with what they are called that have none.
fn names(state: &SupervisorState) -> BTreeMap<u32, String> {
    let name = |domain: &DrawnDomain| match (domain.name.as_str(), domain.id) {
        ("", 0) => "supervisor".to_owned(),
        ("", id) => format!("PD {id}"),
        (name, _) => name.to_owned(),
    };
    let domains = state.domains.iter();
    domains.map(|domain| (domain.id, name(domain))).collect()
}

/// A supervisor that neither owns nor holds anything is not part of the picture.
fn is_idle(state: &SupervisorState) -> bool {
    let holds = |grant: &DrawnGrant| grant.domain == Some(0) || grant.to == Some(0);
    let mut regions = state.regions.iter();
    state.domains.len() > 1
        && !regions.any(|region| region.owner == 0 || region.grants.iter().any(holds))
}

/// What a grant gives, and where it leads if it is a gate.
type Held = (AccessKind, Option<u32>, ExportLevel);

/// What a domain has at the addresses that are shown. Domains of which it is equal may do the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Holdings {
    /// By number of the region; one that it owns alone has no access.
    own: Vec<(usize, Option<Held>)>,
    groups: Vec<u32>,
}

fn holdings(state: &SupervisorState, view: &Excerpt) -> BTreeMap<u32, Holdings> {
    let mut all: BTreeMap<u32, Holdings> = BTreeMap::new();
    let mut used = BTreeSet::new();
    for (index, (_, _, region)) in shown(state, view).enumerate() {
        let owner = all.entry(region.owner).or_default();
        owner.own.push((index, None));
        for grant in &region.grants {
            if let Some(domain) = grant.domain {
                let holder = all.entry(domain).or_default();
                let held = (grant.access, grant.to, grant.export);
                holder.own.push((index, Some(held)));
            }
            used.extend(grant.group);
        }
    }
    for group in state.groups.iter().filter(|group| used.contains(&group.id)) {
        for member in &group.members {
            all.entry(*member).or_default().groups.push(group.id);
        }
    }
    if used.contains(&0) {
        for domain in &state.domains {
            all.entry(domain.id).or_default().groups.push(0);
        }
    }
    all
}

/// Below so many columns each domain has one of its own.
const FEW: usize = 12;

fn domain_columns(
    state: &SupervisorState,
    view: &Excerpt,
    names: &BTreeMap<u32, String>,
    left_out: &mut LeftOut,
) -> Vec<Column> {
    let by_id: BTreeMap<u32, &DrawnDomain> =
        state.domains.iter().map(|one| (one.id, one)).collect();
    let idle = is_idle(state);
    let chosen: BTreeSet<u32> = view.domains.iter().copied().collect();
    let mut order: Vec<(u32, usize)> = state.preorder();
    order.retain(|(id, _)| match chosen.is_empty() {
        true => !(idle && *id == 0),
        false => chosen.contains(id),
    });
    left_out.domains.0 = state.domains.len() - usize::from(idle && !chosen.contains(&0));
    let mut alike: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    if chosen.is_empty() && (order.len() > FEW || view.range.is_some()) {
        let mut has = holdings(state, view);
        if view.range.is_some() || order.len() > view.most_domains {
            let before = order.len();
            order.retain(|(id, _)| has.contains_key(id));
            left_out.idle = before - order.len();
        }
        if order.len() > FEW {
            // The first of those that are alike stands for them.
            let mut first = BTreeMap::new();
            order.retain(|(id, _)| {
                let of = by_id.get(id).map(|one| (one.parent, one.ended));
                let same = (of, has.remove(id).unwrap_or_default());
                let stands = *first.entry(same).or_insert(*id);
                if stands != *id {
                    alike.entry(stands).or_default().push(*id);
                }
                stands == *id
            });
        }
    }
    if chosen.is_empty() {
        order.truncate(view.most_domains);
    }
    let place: BTreeMap<u32, usize> = order
        .iter()
        .enumerate()
        .flat_map(|(place, (id, _))| {
            let others = alike.get(id).into_iter().flatten();
            others.chain([id]).map(move |id| (*id, place))
        })
        .collect();
    left_out.domains.1 = place.len();
    let column = |(id, depth): &(u32, usize)| {
        let alike = alike.get(id).cloned().unwrap_or_default();
        let domain = by_id.get(id);
        let ended = domain.is_some_and(|domain| domain.ended);
        let mut name = names.get(id).cloned().unwrap_or_default();
        if !alike.is_empty() {
            name += &format!(" and {} alike", alike.len());
        }
        if ended {
            name += " (ended)";
        }
        Column {
            id: *id,
            name,
            ended,
            kind: Kind::Domain {
                depth: depth - usize::from(idle && *depth > 0),
                parent: domain
                    .and_then(|domain| domain.parent)
                    .and_then(|parent| place.get(&parent).copied()),
            },
            alike,
        }
    };
    order.iter().map(column).collect()
}

fn group_name(group: &DrawnGroup) -> String {
    match (group.name.as_str(), group.id) {
        ("", 0) => "everybody".to_owned(),
        ("", id) => format!("group {id}"),
        (name, _) => name.to_owned(),
    }
}

/// The groups but a global one without grants; of a part of the state, those that have something in it.
fn group_columns(
    state: &SupervisorState,
    view: &Excerpt,
    column_of: &BTreeMap<u32, usize>,
    left_out: &mut LeftOut,
) -> Vec<Column> {
    let used: BTreeSet<u32> = shown(state, view)
        .flat_map(|(_, _, region)| region.grants.iter().filter_map(|grant| grant.group))
        .collect();
    let column = |group: &DrawnGroup| Column {
        id: group.id,
        ended: false,
        name: group_name(group),
        kind: Kind::Group {
            creator: column_of.get(&group.creator).copied(),
            members: match group.id {
                0 => BTreeSet::from_iter(column_of.values().copied()),
                _ => BTreeSet::from_iter(
                    group
                        .members
                        .iter()
                        .filter_map(|member| column_of.get(member).copied()),
                ),
            }
            .into_iter()
            .collect(),
        },
        alike: Vec::new(),
    };
    let narrowed = left_out.chosen || view.range.is_some();
    let concerns = |column: &Column| match &column.kind {
        Kind::Group { members, .. } => used.contains(&column.id) && !members.is_empty(),
        Kind::Domain { .. } => false,
    };
    let there = state
        .groups
        .iter()
        .filter(|group| group.id != 0 || used.contains(&0));
    let mut columns: Vec<Column> = there.map(column).collect();
    left_out.groups.0 = columns.len();
    columns.retain(|column| !narrowed || concerns(column));
    columns.truncate(view.most_domains / 2);
    left_out.groups.1 = columns.len();
    columns
}

fn rows(
    state: &SupervisorState,
    view: &Excerpt,
    columns: &[Column],
    column_of: &BTreeMap<u32, usize>,
) -> Vec<Row> {
    // The columns of a group's members, and its own if it has one.
    let mut groups: BTreeMap<u32, (Option<usize>, BTreeSet<usize>)> = BTreeMap::new();
    for group in &state.groups {
        let members = group.members.iter();
        let members = members.filter_map(|member| column_of.get(member).copied());
        groups.insert(group.id, (None, members.collect()));
    }
    groups.entry(0).or_default().1 = column_of.values().copied().collect();
    for (index, column) in columns.iter().enumerate() {
        if let (Kind::Group { .. }, Some(group)) = (&column.kind, groups.get_mut(&column.id)) {
            group.0 = Some(index);
        }
    }
    let mut rows: Vec<Row> = Vec::new();
    for (start, end, region) in shown(state, view) {
        let owner = column_of.get(&region.owner).copied();
        let row = Row {
            start,
            end,
            owner,
            cells: cells(region, owner, column_of, &groups),
            label: 0,
        };
        match rows.last_mut() {
            Some(last) if last.has_same(&row) => last.end = row.end,
            _ => rows.push(row),
        }
    }
    rows
}

/// As the supervisor decides: the stronger of the domain's own grant and those of its groups, its own of
/// equals, then the group with the lowest number; an owner has its own alone.
fn cells(
    region: &Region,
    owner: Option<usize>,
    column_of: &BTreeMap<u32, usize>,
    groups: &BTreeMap<u32, (Option<usize>, BTreeSet<usize>)>,
) -> Vec<(usize, Cell)> {
    // By column, then one's own before those of groups.
    let mut candidates: Vec<(usize, Option<u32>, Cell)> = Vec::new();
    for grant in &region.grants {
        let cell = |through| Cell {
            access: grant.access,
            to: grant.to,
            export: grant.export,
            through,
        };
        if let Some(column) = grant.domain.and_then(|id| column_of.get(&id)) {
            candidates.push((*column, None, cell(None)));
        }
        if let Some((id, (own, members))) = grant.group.and_then(|id| Some((id, groups.get(&id)?)))
        {
            candidates.extend(own.map(|column| (column, None, cell(None))));
            let others = members.iter().filter(|column| Some(**column) != owner);
            candidates.extend(others.map(|column| (*column, Some(id), cell(Some(id)))));
        }
    }
    candidates.sort_by_key(|(column, through, _)| (*column, *through));
    let mut cells: Vec<(usize, Cell)> = Vec::new();
    for (column, _, cell) in candidates {
        match cells.last_mut() {
            Some((last, best)) if *last == column => {
                if full(cell) && !full(*best) {
                    *best = cell;
                }
            }
            _ => cells.push((column, cell)),
        }
    }
    cells
}

fn full(cell: Cell) -> bool {
    cell.access != AccessKind::Read
}

/// A label over more rows than these says nothing of each of them.
const NEAR: usize = 12;

/// Says of each row what kind of label it has: what is called "heap" is not like what is called "stack".
fn name_rows(rows: &mut [Row], labels: &[Label]) {
    let mut order: Vec<&Label> = labels.iter().collect();
    // The innermost come last, and stay.
    order.sort_by_key(|label| std::cmp::Reverse(label.end.0 - label.start.0));
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for label in order {
        let first = rows.partition_point(|row| row.start < label.start.0);
        let inside = rows[first..].partition_point(|row| row.end <= label.end.0);
        if (1..=NEAR).contains(&inside) {
            // "channel 3" and "channel 4" are of one kind.
            let kind = label.name.trim_end_matches(|c: char| c.is_ascii_digit());
            let number = kinds.len() + 1;
            let kind = *kinds.entry(kind.to_owned()).or_insert(number);
            rows[first..first + inside]
                .iter_mut()
                .for_each(|row| row.label = kind);
        }
    }
}
