//! Where everything goes, in pixels.

use crate::chart::{Chart, Kind, Row};
use crate::fold::Item;
use crate::state::Label;
use crate::text::{bytes, width};

/// The height of text on the axis.
pub(crate) const AXIS_TEXT: f64 = 10.5;
/// The height of the names above columns.
pub(crate) const NAME_TEXT: f64 = 12.0;
/// The most room that an upright name gets.
pub(crate) const NAME_ROOM: f64 = 320.0;
/// How much smaller a name is written where it fits then.
pub(crate) const SMALLEST: f64 = 0.85;
/// The height of a line of text that says what is not shown, and of its letters.
pub(crate) const LINE: f64 = 17.0;
pub(crate) const LEFT_OUT_TEXT: f64 = 12.0;
const MARGIN: f64 = 28.0;
/// The greatest height of a row in which nobody may do anything.
const EMPTY: f64 = 24.0;
/// What a piece of a row needs whose label begins or ends there.
const PIECE: f64 = 14.0;
/// With more edges of labels in it, a row is as high as without.
const MOST_EDGES: usize = 8;
const FOLD_HEIGHT: f64 = 26.0;
const TRACK_HEIGHT: f64 = 18.0;
const TREE_LEVEL: f64 = 11.0;

/// A piece of a column between lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Across {
    pub(crate) x: f64,
    pub(crate) strip: f64,
    pub(crate) width: f64,
}

/// A row that is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    pub(crate) row: usize,
    pub(crate) y: f64,
    pub(crate) height: f64,
}

/// Rows without a fold between them: one composition with a frame of its own.
#[derive(Clone, Debug)]
pub(crate) struct Pane {
    pub(crate) y: f64,
    pub(crate) bottom: f64,
    pub(crate) rows: Vec<Shown>,
}

/// The words between two panes, and behind the last one.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub(crate) y: f64,
    pub(crate) text: String,
    pub(crate) end: u128,
}

/// The bracket of a label.
#[derive(Clone, Debug)]
pub(crate) struct Bracket {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) bottom: f64,
    pub(crate) name: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) width: f64,
    pub(crate) margin: f64,
    /// The thickness of upright lines and of frames.
    pub(crate) line: f64,
    /// The thickness of the lines between a column's blocks.
    pub(crate) rule: f64,
    pub(crate) columns: Vec<Across>,
    /// Names stand upright where columns are narrow.
    pub(crate) upright: bool,
    /// Left and right ends of the frames: domains, and groups if there are any.
    pub(crate) frames: Vec<(f64, f64)>,
    /// The right end of addresses, and of sizes.
    pub(crate) axis: f64,
    pub(crate) sizes: f64,
    /// What is not shown, and how to see it: one line each.
    pub(crate) left_out: Vec<String>,
    /// The baseline of the title, and the top of the tree.
    pub(crate) title: f64,
    pub(crate) tree: f64,
    pub(crate) tree_level: f64,
    /// The lower end of the names.
    pub(crate) names: f64,
    pub(crate) panes: Vec<Pane>,
    pub(crate) folds: Vec<Fold>,
    pub(crate) brackets: Vec<Bracket>,
    /// The top of the groups' lines.
    pub(crate) tracks: f64,
    pub(crate) track_height: f64,
    pub(crate) legend: f64,
}

/// Column pitch, line thickness by number of columns.
fn pitch(columns: usize) -> (f64, f64) {
    match columns {
        0..=4 => (132.0, 5.0),
        5..=7 => (108.0, 5.0),
        8..=12 => (76.0, 4.0),
        13..=24 => (46.0, 3.0),
        25..=48 => (27.0, 2.0),
        49..=130 => (15.0, 1.5),
        _ => (9.0, 1.0),
    }
}

/// The least and the greatest height of a row, by number of rows.
fn heights(rows: usize) -> (f64, f64) {
    match rows {
        0..=10 => (28.0, 120.0),
        11..=20 => (22.0, 84.0),
        21..=45 => (16.0, 56.0),
        46..=75 => (13.0, 44.0),
        76..=130 => (12.0, 30.0),
        131..=400 => (7.0, 16.0),
        401..=1500 => (4.0, 7.0),
        _ => (2.0, 3.0),
    }
}

impl Layout {
    pub(crate) fn new(chart: &Chart, items: &[Item], labels: &[Label], title: &str) -> Layout {
        let (all, covered) = chart.left_out.rows;
        let (rows_end, end) = chart.left_out.rows_end;
        let left_out = chart.left_out.lines();
        let first = chart.rows.first().map_or(0, |row| row.start);
        let labels = visible(labels, first, rows_end);
        let labels = &labels[..];
        let edges = edges(labels);
        let shown = items
            .iter()
            .filter(|item| matches!(item, Item::Row(_)))
            .count();
        let (pitch, line) = pitch(chart.columns.len());
        let (least, greatest) = heights(shown);
        let height_of = |row: &Row| {
            let doublings = (row.bytes() / 4).max(1).ilog2();
            let share = (f64::from(doublings) / 16.0).min(1.0).powf(1.7);
            let height = (least + (greatest - least) * share).round();
            // Where nobody may do anything there is little to see.
            let height = match row.cells.is_empty() {
                true => height.min(EMPTY.max(least)),
                false => height,
            };
            match inside(&edges, row).len() {
                edges @ 1..=MOST_EDGES if shown <= 130 => height.max(PIECE * (edges + 1) as f64),
                _ => height,
            }
        };

        let label_room: f64 = level_rooms(labels).iter().sum();
        let address_room = chart
            .rows
            .iter()
            .map(|row| width(&format!("{:#x}", row.end), AXIS_TEXT))
            .fold(0.0, f64::max);
        let sizes = MARGIN + label_room + 58.0;
        let axis = sizes + 14.0 + address_room;
        let left = axis + 12.0;

        // Upright there is room for long names.
        let fits = |name: &str| width(name, NAME_TEXT * SMALLEST) <= pitch - line - 4.0;
        let upright = pitch < 60.0 || !chart.columns.iter().all(|column| fits(&column.name));
        let strip = (pitch * 0.11).clamp(2.5, 12.0).round();
        let group_count = chart.columns.len() - chart.domain_count;
        let mut columns = Vec::new();
        let mut frames = vec![(left, left + pitch * chart.domain_count as f64 + line)];
        let gap = (pitch * 0.35).clamp(14.0, 34.0);
        if group_count > 0 {
            let start = frames[0].1 + gap;
            frames.push((start, start + pitch * group_count as f64 + line));
        }
        for index in 0..chart.columns.len() {
            let (frame, place) = match index.checked_sub(chart.domain_count) {
                None => (frames[0].0, index),
                Some(place) => (frames[1].0, place),
            };
            columns.push(Across {
                x: frame + line + pitch * place as f64,
                strip,
                width: pitch - line,
            });
        }

        let depth = chart.columns.iter().map(|column| match column.kind {
            Kind::Domain { depth, .. } => depth,
            Kind::Group { .. } => 0,
        });
        let depth = depth.max().unwrap_or(0);
        let tree_level = if depth > 8 {
            80.0 / depth as f64
        } else {
            TREE_LEVEL
        };
        let names_height = match upright {
            false => 22.0,
            true => {
                let longest = chart
                    .columns
                    .iter()
                    .map(|column| width(&column.name, NAME_TEXT))
                    .fold(0.0, f64::max);
                longest.min(NAME_ROOM) + 10.0
            }
        };
        let title_line = MARGIN + 22.0;
        let tree = title_line + 40.0 + LINE * left_out.len() as f64;
        let names =
            tree + if depth > 0 {
                tree_level * depth as f64 + 12.0
            } else {
                0.0
            } + names_height;

        let mut y = names + 8.0;
        let mut panes: Vec<Pane> = Vec::new();
        let mut folds = Vec::new();
        let mut open = false;
        for item in items {
            match *item {
                Item::Row(row) => {
                    if !open {
                        panes.push(Pane {
                            y,
                            bottom: y,
                            rows: Vec::new(),
                        });
                        y += line;
                        open = true;
                    }
                    let height = height_of(&chart.rows[row]);
                    if let Some(pane) = panes.last_mut() {
                        pane.rows.push(Shown { row, y, height });
                        pane.bottom = y + height;
                    }
                    y += height;
                }
                Item::Repeat { period, times, end } => {
                    open = false;
                    y += line;
                    let span: u128 =
                        chart.rows[end - 1].end - chart.rows[end - period * times].start;
                    let rows = if period == 1 {
                        "this row".to_owned()
                    } else {
                        format!("these {period} rows")
                    };
                    let text = format!("{rows} {times} times more, {}", bytes(span));
                    folds.push(Fold {
                        y: y + FOLD_HEIGHT / 2.0,
                        text,
                        end: chart.rows[end - 1].end,
                    });
                    y += FOLD_HEIGHT;
                }
            }
        }
        if covered < all {
            y += line;
            let span = end - rows_end;
            let text = format!("{} rows more, {}", all - covered, bytes(span));
            folds.push(Fold {
                y: y + FOLD_HEIGHT / 2.0,
                text,
                end: rows_end,
            });
            y += FOLD_HEIGHT;
        }
        let brackets = brackets(chart, labels, &edges, &panes, &folds);
        let tracks = y + line + 14.0;
        let legend =
            tracks + TRACK_HEIGHT * group_count as f64 + if group_count > 0 { 20.0 } else { 14.0 };
        let right = frames.last().map_or(left, |frame| frame.1);
        let longest = left_out.iter().map(|line| width(line, LEFT_OUT_TEXT));
        let longest = longest.fold(0.0, f64::max);
        let width = (right + MARGIN)
            .max(MARGIN * 2.0 + width(title, 22.0))
            .max(MARGIN * 2.0 + longest)
            .max(560.0);
        Layout {
            width,
            margin: MARGIN,
            line,
            rule: line.min(least * 0.35),
            columns,
            upright,
            frames,
            axis,
            sizes,
            left_out,
            title: title_line,
            tree,
            tree_level,
            names,
            panes,
            folds,
            brackets,
            tracks,
            track_height: TRACK_HEIGHT,
            legend,
        }
    }
}

/// The height of a label's text, and the most room that it gets.
pub(crate) const LABEL_TEXT: f64 = 11.5;
pub(crate) const LABEL_ROOM: f64 = 220.0;
/// Labels that contain others that contain others, and so on, are shown so deep.
const DEEPEST: usize = 3;

/// How many labels lie inside each other below each one: 0 for one that contains no other.
fn nesting(labels: &[Label]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..labels.len()).collect();
    order.sort_by_key(|index| (labels[*index].start, std::cmp::Reverse(labels[*index].end)));
    let mut levels = vec![0; labels.len()];
    let mut open: Vec<usize> = Vec::new();
    for index in order {
        open.retain(|outer| labels[*outer].end > labels[index].start);
        for (above, outer) in open.iter().rev().enumerate() {
            levels[*outer] = levels[*outer].max(above + 1);
        }
        open.push(index);
    }
    levels
}

/// The width of each level's labels, innermost first.
fn level_rooms(labels: &[Label]) -> Vec<f64> {
    let mut rooms: Vec<f64> = Vec::new();
    for (label, level) in labels
        .iter()
        .zip(nesting(labels))
        .filter(|(_, level)| *level < DEEPEST)
    {
        rooms.resize(rooms.len().max(level + 1), 0.0);
        rooms[level] = rooms[level].max(width(&label.name, LABEL_TEXT).min(LABEL_ROOM) + 22.0);
    }
    rooms
}

/// The labels of what lies between two addresses.
fn visible(labels: &[Label], start: u128, end: u128) -> Vec<Label> {
    let there = |label: &&Label| label.start.0 < end && start < label.end.0;
    labels.iter().filter(there).cloned().collect()
}

/// Where labels begin and end, in order.
fn edges(labels: &[Label]) -> Vec<u128> {
    let both = |label: &Label| [label.start.0, label.end.0];
    let mut edges: Vec<u128> = labels.iter().flat_map(both).collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// The edges of labels that lie within a row.
fn inside<'a>(edges: &'a [u128], row: &Row) -> &'a [u128] {
    let first = edges.partition_point(|edge| *edge <= row.start);
    let last = edges.partition_point(|edge| *edge < row.end);
    edges.get(first..last).unwrap_or(&[])
}

fn brackets(
    chart: &Chart,
    labels: &[Label],
    edges: &[u128],
    panes: &[Pane],
    folds: &[Fold],
) -> Vec<Bracket> {
    let mut brackets = Vec::new();
    let rooms = level_rooms(labels);
    for (label, level) in labels
        .iter()
        .zip(nesting(labels))
        .filter(|(_, level)| *level < DEEPEST)
    {
        let shown = panes.iter().flat_map(|pane| &pane.rows).filter(|shown| {
            let row = &chart.rows[shown.row];
            row.start < label.end.0 && label.start.0 < row.end
        });
        let (mut y, mut bottom) = (f64::MAX, f64::MIN);
        for shown in shown {
            let row = &chart.rows[shown.row];
            // A label that begins or ends inside a row gets its share of it: one of equal pieces, or of
            // many its bytes.
            let inside = inside(edges, row);
            let at = |address: u128| {
                let address = address.clamp(row.start, row.end);
                let before = inside.partition_point(|edge| *edge < address);
                let share = match address {
                    address if address == row.start => 0.0,
                    address if address == row.end => 1.0,
                    _ if inside.len() <= MOST_EDGES => {
                        (before + 1) as f64 / (inside.len() + 1) as f64
                    }
                    address => (address - row.start) as f64 / row.bytes() as f64,
                };
                shown.y + shown.height * share
            };
            y = y.min(at(label.start.0));
            bottom = bottom.max(at(label.end.0));
        }
        for fold in folds
            .iter()
            .filter(|fold| y < fold.y && fold.end <= label.end.0)
        {
            bottom = bottom.max(fold.y + FOLD_HEIGHT / 2.0);
        }
        if y < bottom {
            let x = MARGIN + rooms[level..].iter().sum::<f64>() - 8.0;
            brackets.push(Bracket {
                x,
                y,
                bottom,
                name: label.name.clone(),
            });
        }
    }
    brackets
}
