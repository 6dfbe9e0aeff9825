//! From a chart with a layout to SVG.

use crate::chart::{Cell, Chart, Column, Kind};
use crate::layout::{
    AXIS_TEXT, Across, LABEL_ROOM, LABEL_TEXT, LEFT_OUT_TEXT, LINE, Layout, NAME_ROOM, NAME_TEXT,
    Pane, SMALLEST, Shown,
};
use crate::state::{AccessKind, ExportLevel};
use crate::text::{bytes, escape, shorten, width};
use crate::validate::Valid;
use crate::view::Excerpt;
use std::fmt::Write;

const LIGHT: &str = include_str!("style.css");
const DARK: &str = include_str!("dark.css");

/// On which ground the picture stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// Light or dark, as the reader's system says.
    #[default]
    Auto,
    /// Always light.
    Light,
    /// Always dark.
    Dark,
}

/// What the state does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PaintOptions {
    /// Instead of the state's own title.
    pub title: Option<String>,
    /// On which ground.
    pub theme: Theme,
    /// Which part of the state, and how much of it. What is left out is said in the picture.
    pub view: Excerpt,
}

/// Paints a state as one SVG file that needs nothing else. The same state gives the same picture.
pub fn paint(valid: &Valid, options: &PaintOptions) -> String {
    let state = valid.state();
    let (chart, items) = Chart::fitting(valid, &options.view);
    let own = if state.title.is_empty() {
        "Who may touch what"
    } else {
        &state.title
    };
    let title = options.title.as_deref().unwrap_or(own);
    let layout = Layout::new(&chart, &items, &state.labels, title);
    let mut picture = Picture {
        chart: &chart,
        layout: &layout,
        out: String::new(),
    };
    picture.heading(title);
    picture.tree();
    picture.names();
    for pane in &layout.panes {
        picture.pane(pane);
    }
    picture.folds();
    picture.brackets();
    picture.groups();
    let height = picture.legend();
    wrap(&picture.out, &layout, height, title, options.theme)
}

/// The file around the drawing.
fn wrap(body: &str, layout: &Layout, height: f64, title: &str, theme: Theme) -> String {
    let style = match theme {
        Theme::Auto => format!("{LIGHT}@media (prefers-color-scheme: dark) {{\n{DARK}}}\n"),
        Theme::Light => LIGHT.to_owned(),
        Theme::Dark => format!("{LIGHT}{DARK}"),
    };
    let (width, height) = (layout.width.ceil(), height.ceil());
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">
<title>{}</title>
<style>
{style}</style>
<defs><pattern id="through" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="hatch" x1="1" y1="0" x2="1" y2="6"/></pattern></defs>
<rect class="page" width="{width}" height="{height}"/>
{body}</svg>
"##,
        escape(title)
    )
}

struct Picture<'a> {
    chart: &'a Chart,
    layout: &'a Layout,
    out: String,
}

/// Where a text stands relative to its point.
#[derive(Clone, Copy)]
enum Anchor {
    Start,
    Middle,
    End,
}

impl Picture<'_> {
    fn raw(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.out.write_fmt(line);
        self.out.push('\n');
    }

    fn rect(&mut self, class: &str, [x, y, width, height]: [f64; 4], tip: &str) {
        let tip = match tip {
            "" => "/>".to_owned(),
            tip => format!("><title>{}</title></rect>", escape(tip)),
        };
        let paint = match class {
            "through" => "fill=\"url(#through)\"".to_owned(),
            class => format!("class=\"{class}\""),
        };
        self.raw(format_args!(
            r#"<rect {paint} x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"{tip}"#
        ));
    }

    fn text(&mut self, class: &str, (x, y): (f64, f64), size: f64, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let text = escape(text);
        self.raw(format_args!(
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" font-size="{size}"{anchor}>{text}</text>"#
        ));
    }

    fn path(&mut self, class: &str, path: &str) {
        self.raw(format_args!(r#"<path class="{class}" d="{path}"/>"#));
    }

    fn heading(&mut self, title: &str) {
        let (x, y) = (self.layout.margin, self.layout.title);
        self.text("title", (x, y), 22.0, Anchor::Start, title);
        // What there is, shown or not.
        let domains = self.chart.left_out.domains.0;
        let groups = self.chart.left_out.groups.0;
        let mut facts = vec![count(domains, "domain")];
        if groups > 0 {
            facts.push(count(groups, "group"));
        }
        facts.push(count(self.chart.left_out.regions, "region"));
        let start = self.chart.rows.first().map_or(0, |row| row.start);
        facts.push(bytes(self.chart.left_out.rows_end.1 - start));
        self.text(
            "muted",
            (x, y + 19.0),
            12.0,
            Anchor::Start,
            &facts.join("  ·  "),
        );
        for (index, line) in self.layout.left_out.iter().enumerate() {
            let y = y + 19.0 + LINE * (index + 1) as f64;
            self.text("left-out", (x, y), LEFT_OUT_TEXT, Anchor::Start, line);
        }
    }

    /// Parents above children, over the names.
    fn tree(&mut self) {
        let level = |depth: usize| self.layout.tree + self.layout.tree_level * depth as f64;
        let place = |index: usize| middle(&self.layout.columns[index]);
        let mut paths = Vec::new();
        let mut dots = Vec::new();
        let mut deep = false;
        for (index, column) in self.chart.columns.iter().enumerate() {
            let Kind::Domain { depth, parent } = column.kind else {
                continue;
            };
            let (x, y) = (place(index), level(depth));
            deep |= depth > 0;
            dots.push((x, y));
            if let Some((parent, from)) =
                parent.map(|parent| (place(parent), level(depth.saturating_sub(1))))
            {
                paths.push(format!("M{parent:.1} {from:.1}H{x:.1}V{y:.1}"));
            }
        }
        if !deep {
            return;
        }
        for path in paths {
            self.path("thread", &path);
        }
        let radius = (self.layout.columns[0].width * 0.2).min(3.4);
        for (x, y) in dots {
            self.raw(format_args!(
                r#"<circle class="dot" cx="{x:.1}" cy="{y:.1}" r="{radius:.1}"/>"#
            ));
        }
    }

    fn names(&mut self) {
        for (column, across) in self.chart.columns.iter().zip(&self.layout.columns) {
            let (x, y) = (middle(across), self.layout.names);
            let tip = escape(&full_name(self.chart, column));
            let size = NAME_TEXT.min(across.width * 0.9);
            let class = match column.kind {
                Kind::Domain { .. } if column.ended => "name ended",
                Kind::Domain { .. } => "name",
                Kind::Group { .. } => "name muted",
            };
            if self.layout.upright {
                let short = escape(&shorten(&column.name, size, NAME_ROOM));
                let x = x + size * 0.36;
                self.raw(format_args!(
                    r#"<text class="{class}" transform="translate({x:.1} {y:.1}) rotate(-90)" font-size="{size:.1}"><title>{tip}</title>{short}</text>"#
                ));
            } else {
                let fits = |size: &f64| width(&column.name, *size) <= across.width - 4.0;
                let size = [size, size * 0.92, size * SMALLEST]
                    .into_iter()
                    .find(fits)
                    .unwrap_or(size);
                let short = escape(&shorten(&column.name, size, across.width - 4.0));
                self.raw(format_args!(
                    r#"<text class="{class}" x="{x:.1}" y="{y:.1}" font-size="{size}" font-weight="600" text-anchor="middle"><title>{tip}</title>{short}</text>"#
                ));
            }
        }
    }

    fn pane(&mut self, pane: &Pane) {
        let (line, rule) = (self.layout.line, self.layout.rule);
        let bottom = pane.bottom - rule + line;
        for (left, right) in self.layout.frames.clone() {
            self.rect("frame", [left, pane.y, right - left, bottom - pane.y], "");
        }
        for index in 0..self.chart.columns.len() {
            self.blocks(pane, index, false);
        }
        if pane.rows.len() <= 130 {
            for shown in pane.rows.iter().skip(1) {
                let y = shown.y - rule / 2.0;
                for (left, right) in self.layout.frames.clone() {
                    self.path("guide", &format!("M{left:.1} {y:.1}H{right:.1}"));
                }
            }
        }
        for index in 0..self.chart.columns.len() {
            self.blocks(pane, index, true);
            self.ownership(pane, index);
        }
        self.axis(pane, bottom);
    }

    /// The blocks of one column, those with a permission or those without: neighbouring rows with the same
    /// permission are one.
    fn blocks(&mut self, pane: &Pane, index: usize, some: bool) {
        let cell = |shown: &Shown| self.chart.rows[shown.row].cell(index);
        let runs: Vec<&[Shown]> = pane.rows.chunk_by(|a, b| cell(a) == cell(b)).collect();
        for run in runs
            .into_iter()
            .filter(|run| cell(&run[0]).is_some() == some)
        {
            self.block(run, index, cell(&run[0]));
        }
    }

    /// The thick edges of one column.
    fn ownership(&mut self, pane: &Pane, index: usize) {
        let across = self.layout.columns[index];
        let owns = |shown: &Shown| self.chart.rows[shown.row].owner == Some(index);
        let owned = pane
            .rows
            .chunk_by(|a, b| owns(a) == owns(b))
            .filter(|run| owns(&run[0]));
        for run in owned.collect::<Vec<_>>() {
            let (top, bottom) = self.extent(run);
            let (start, end) = self.addresses(run);
            let tip = format!(
                "{}\nowns {start:#x} to {end:#x}, {}",
                short_name(&self.chart.columns[index]),
                bytes(end - start)
            );
            self.rect("owner", [across.x, top, across.strip, bottom - top], &tip);
        }
    }

    fn extent(&self, run: &[Shown]) -> (f64, f64) {
        let last = run[run.len() - 1];
        (run[0].y, last.y + last.height - self.layout.rule)
    }

    fn addresses(&self, run: &[Shown]) -> (u128, u128) {
        (
            self.chart.rows[run[0].row].start,
            self.chart.rows[run[run.len() - 1].row].end,
        )
    }

    fn block(&mut self, run: &[Shown], index: usize, cell: Option<Cell>) {
        let across = self.layout.columns[index];
        let (top, bottom) = self.extent(run);
        let (start, end) = self.addresses(run);
        let column = &self.chart.columns[index];
        let what = describe(self.chart, cell);
        let tip = format!(
            "{}\n{start:#x} to {end:#x}, {}\n{what}",
            short_name(column),
            bytes(end - start)
        );
        let area = [across.x, top, across.width, bottom - top];
        self.rect(cell.map_or("none", |cell| class(cell.access)), area, &tip);
        let Some(cell) = cell else { return };
        if cell.through.is_some() {
            self.rect("through", area, &tip);
        }
        let owned = run
            .iter()
            .any(|shown| self.chart.rows[shown.row].owner == Some(index));
        let strip = if owned { across.strip } else { 0.0 };
        let room = across.width - strip;
        let center = (across.x + strip + room / 2.0, (top + bottom) / 2.0);
        let tall = bottom - top;
        if matches!(cell.access, AccessKind::SwitchGate | AccessKind::ReturnGate) {
            return self.gate(cell, center, room, tall);
        }
        let words = [long_word(cell.access), short_word(cell.access)];
        let fitting = words
            .into_iter()
            .find(|word| width(word, 11.0) <= room - 8.0);
        if let Some(word) = fitting.filter(|_| tall >= 14.0 && cell.through.is_none()) {
            let class = if cell.access == AccessKind::Read {
                "on-light"
            } else {
                "on-dark"
            };
            self.text(
                class,
                (center.0, center.1 + 3.8),
                11.0,
                Anchor::Middle,
                word,
            );
        }
    }

    /// A gate: a triangle that points inwards or back, and if there is room, where it leads.
    fn gate(&mut self, cell: Cell, (x, y): (f64, f64), room: f64, tall: f64) {
        let size = (tall * 0.36).min(room * 0.3).min(6.0);
        let text = match cell.access {
            AccessKind::ReturnGate => "return".to_owned(),
            _ => cell
                .to
                .map_or(String::new(), |to| format!("to {}", self.chart.domain(to))),
        };
        let text = shorten(&text, 11.0, room - 3.0 * size - 10.0);
        let written = tall >= 14.0 && text.chars().count() > 3;
        let wide = if written {
            width(&text, 11.0) * 0.92 + 3.0 * size
        } else {
            2.0 * size
        };
        let left = x - wide / 2.0;
        let (from, tip) = match cell.access {
            AccessKind::ReturnGate => (left + 2.0 * size, left),
            _ => (left, left + 2.0 * size),
        };
        let (above, below) = (y - size, y + size);
        self.path(
            "mark",
            &format!("M{from:.1} {above:.1}L{tip:.1} {y:.1}L{from:.1} {below:.1}Z"),
        );
        if written {
            self.text(
                "on-light",
                (left + 3.0 * size, y + 3.8),
                11.0,
                Anchor::Start,
                &text,
            );
        }
    }

    /// Addresses where something changes, as many as fit, and the sizes between them.
    fn axis(&mut self, pane: &Pane, bottom: f64) {
        let apart = AXIS_TEXT + 2.0;
        let mut last = f64::MIN;
        let shift = self.layout.rule / 2.0;
        for (place, shown) in pane.rows.iter().enumerate() {
            let y = if place == 0 {
                pane.y + self.layout.line / 2.0
            } else {
                shown.y - shift
            };
            if place > 0 && (y - last < apart || bottom - y < apart) {
                continue;
            }
            last = y;
            self.address(y, self.chart.rows[shown.row].start);
        }
        if let Some(shown) = pane.rows.last()
            && bottom - last >= apart * 0.9
        {
            self.address(
                bottom - self.layout.line / 2.0,
                self.chart.rows[shown.row].end,
            );
        }
        for shown in pane.rows.iter().filter(|shown| shown.height >= 13.0) {
            let y = shown.y + (shown.height - self.layout.rule) / 2.0 + 3.5;
            let size = bytes(self.chart.rows[shown.row].bytes());
            self.text("muted", (self.layout.sizes, y), 10.0, Anchor::End, &size);
        }
    }

    fn address(&mut self, y: f64, address: u128) {
        let x = self.layout.axis;
        self.text(
            "address",
            (x, y + 3.6),
            AXIS_TEXT,
            Anchor::End,
            &format!("{address:#x}"),
        );
        self.path(
            "tick",
            &format!("M{:.1} {y:.1}H{:.1}", x + 3.0, self.layout.frames[0].0),
        );
    }

    fn folds(&mut self) {
        for fold in self.layout.folds.clone() {
            let (left, right) = self.layout.frames[0];
            let room = right - left - 24.0;
            let text = shorten(&fold.text, 11.0, room.max(260.0));
            let x = match width(&text, 11.0) < room {
                true => (left + right) / 2.0,
                false => left + width(&text, 11.0) / 2.0,
            };
            self.text("muted", (x, fold.y + 4.0), 11.0, Anchor::Middle, &text);
            self.text(
                "muted",
                (self.layout.axis - 6.0, fold.y + 5.0),
                14.0,
                Anchor::End,
                "⋮",
            );
        }
    }

    fn brackets(&mut self) {
        // Where the last text of each level stands: they must not touch.
        let mut written: Vec<(f64, f64)> = Vec::new();
        for bracket in self.layout.brackets.clone() {
            let x = bracket.x;
            let (y, bottom) = (bracket.y + 1.5, bracket.bottom - 1.5 - self.layout.rule);
            if bottom - y < 2.0 {
                continue;
            }
            self.path(
                "tick",
                &format!("M{:.1} {y:.1}H{x:.1}V{bottom:.1}H{:.1}", x + 4.0, x + 4.0),
            );
            let middle = (y + bottom) / 2.0 + 4.0;
            let free =
                |(level, last): &(f64, f64)| *level != x || (middle - last).abs() >= LABEL_TEXT;
            if bottom - y >= 7.0 && written.iter().all(free) {
                written.push((x, middle));
                let text = shorten(&bracket.name, LABEL_TEXT, LABEL_ROOM);
                self.text("label", (x - 5.0, middle), LABEL_TEXT, Anchor::End, &text);
            }
        }
    }

    /// Each group is a line through its members to its column: a dot is a member, a ring the creator.
    fn groups(&mut self) {
        let radius = (self.layout.columns[0].width * 0.3).min(4.6);
        for (place, index) in (self.chart.domain_count..self.chart.columns.len()).enumerate() {
            let column = &self.chart.columns[index];
            let Kind::Group { creator, members } = &column.kind else {
                continue;
            };
            let y = self.layout.tracks + self.layout.track_height * (place as f64 + 0.5);
            let x = |column: usize| middle(&self.layout.columns[column]);
            let joined = members
                .iter()
                .chain(creator)
                .map(|member| x(*member))
                .fold(x(index), f64::min);
            self.path(
                "thread",
                &format!(
                    "M{joined:.1} {y:.1}H{:.1}V{:.1}",
                    x(index),
                    self.layout.tracks - 8.0
                ),
            );
            if let Some(creator) = creator {
                let ring = radius + 1.6;
                self.raw(format_args!(
                    r#"<circle class="ring" cx="{:.1}" cy="{y:.1}" r="{ring:.1}"/>"#,
                    x(*creator)
                ));
            }
            for member in members {
                let tip = escape(&format!(
                    "{} is in {}",
                    self.chart.columns[*member].name, column.name
                ));
                let dot = if creator == &Some(*member) {
                    radius * 0.6
                } else {
                    radius
                };
                self.raw(format_args!(
                    r#"<circle class="dot" cx="{:.1}" cy="{y:.1}" r="{dot:.1}"><title>{tip}</title></circle>"#,
                    x(*member)
                ));
            }
            let name = shorten(&column.name, 11.5, self.layout.axis - self.layout.margin);
            self.text(
                "muted",
                (self.layout.axis, y + 4.0),
                11.5,
                Anchor::End,
                &name,
            );
        }
    }

    /// What the colours mean, and only of what is there; returns the height of the whole picture.
    fn legend(&mut self) -> f64 {
        let cells = || {
            self.chart
                .rows
                .iter()
                .flat_map(|row| row.cells.iter().map(|(_, cell)| cell))
        };
        let has = |access| cells().any(|cell| cell.access == access);
        let through = cells().any(|cell| cell.through.is_some());
        let groups = self.chart.columns.len() > self.chart.domain_count;
        let entries = [
            (true, Swatch::Block(None), "none"),
            (true, Swatch::Block(Some(AccessKind::Read)), "read"),
            (
                true,
                Swatch::Block(Some(AccessKind::ReadWrite)),
                "read-write",
            ),
            (
                true,
                Swatch::Block(Some(AccessKind::ExecuteRead)),
                "execute-read",
            ),
            (
                has(AccessKind::SwitchGate),
                Swatch::Block(Some(AccessKind::SwitchGate)),
                "switch gate",
            ),
            (
                has(AccessKind::ReturnGate),
                Swatch::Block(Some(AccessKind::ReturnGate)),
                "return gate",
            ),
            (through, Swatch::Through, "through a group"),
            (true, Swatch::Owner, "owner"),
            (groups, Swatch::Member, "member"),
            (groups, Swatch::Creator, "group's creator"),
        ];
        let (mut x, mut y) = (self.layout.margin, self.layout.legend);
        for (_, swatch, word) in entries.into_iter().filter(|(shown, _, _)| *shown) {
            let wide = 34.0 + width(word, 11.5) + 12.0;
            if x + wide > self.layout.width - self.layout.margin + 12.0 && x > self.layout.margin {
                x = self.layout.margin;
                y += 26.0;
            }
            self.swatch(swatch, x, y);
            self.text("legend", (x + 34.0, y + 13.0), 11.5, Anchor::Start, word);
            x += wide;
        }
        y + 18.0 + self.layout.margin
    }

    fn swatch(&mut self, swatch: Swatch, x: f64, y: f64) {
        let center = (x + 13.0, y + 9.0);
        match swatch {
            Swatch::Member => {
                self.raw(format_args!(
                    r#"<circle class="dot" cx="{:.1}" cy="{:.1}" r="4.6"/>"#,
                    center.0, center.1
                ));
                return;
            }
            Swatch::Creator => {
                self.raw(format_args!(
                    r#"<circle class="ring" cx="{:.1}" cy="{:.1}" r="6"/>"#,
                    center.0, center.1
                ));
                return;
            }
            _ => {}
        }
        self.rect("frame", [x, y, 26.0, 18.0], "");
        let inner = [x + 2.0, y + 2.0, 22.0, 14.0];
        match swatch {
            Swatch::Block(access) => {
                self.rect(access.map_or("none", class), inner, "");
                if let Some(access @ (AccessKind::SwitchGate | AccessKind::ReturnGate)) = access {
                    let cell = Cell {
                        access,
                        to: None,
                        export: ExportLevel::None,
                        through: None,
                    };
                    self.gate(cell, center, 20.0, 13.0);
                }
            }
            Swatch::Through => {
                self.rect("read", inner, "");
                self.rect("through", inner, "");
            }
            _ => {
                self.rect("none", inner, "");
                self.rect("owner", [x + 2.0, y + 2.0, 7.0, 14.0], "");
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Swatch {
    Block(Option<AccessKind>),
    Through,
    Owner,
    Member,
    Creator,
}

fn middle(across: &Across) -> f64 {
    across.x + across.width / 2.0
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

fn class(access: AccessKind) -> &'static str {
    match access {
        AccessKind::Read => "read",
        AccessKind::ReadWrite => "read-write",
        AccessKind::ExecuteRead => "execute-read",
        AccessKind::SwitchGate | AccessKind::ReturnGate => "gate",
    }
}

fn long_word(access: AccessKind) -> &'static str {
    match access {
        AccessKind::Read => "read",
        AccessKind::ReadWrite => "read-write",
        AccessKind::ExecuteRead => "execute-read",
        AccessKind::SwitchGate => "switch gate",
        AccessKind::ReturnGate => "return gate",
    }
}

fn short_word(access: AccessKind) -> &'static str {
    match access {
        AccessKind::Read => "r",
        AccessKind::ReadWrite => "rw",
        AccessKind::ExecuteRead => "rx",
        AccessKind::SwitchGate | AccessKind::ReturnGate => "",
    }
}

/// Of domains that share a column, so many are named.
const MOST_ALIKE: usize = 40;

fn short_name(column: &Column) -> String {
    let kind = match column.kind {
        Kind::Domain { .. } => "domain",
        Kind::Group { .. } => "group",
    };
    format!("{} ({kind} {})", column.name, column.id)
}

/// Its name, and those of the domains that share the column.
fn full_name(chart: &Chart, column: &Column) -> String {
    let mut name = short_name(column);
    if !column.alike.is_empty() {
        let all = |id: &u32| chart.domain(*id).to_owned();
        let mut others: Vec<String> = column.alike.iter().take(MOST_ALIKE).map(all).collect();
        if column.alike.len() > MOST_ALIKE {
            others.push("…".to_owned());
        }
        let _ = write!(name, "\nalike: {}", others.join(", "));
    }
    name
}

/// A permission in words.
fn describe(chart: &Chart, cell: Option<Cell>) -> String {
    let Some(cell) = cell else {
        return "no access".to_owned();
    };
    let mut text = long_word(cell.access).to_owned();
    if let Some(to) = cell.to {
        let _ = write!(text, " to domain {to}");
    }
    if let Some(through) = cell.through {
        let name = chart.group(through);
        let _ = write!(text, ", through {name} (group {through})");
    }
    text.push_str(match cell.export {
        ExportLevel::None => "; may not pass it on",
        ExportLevel::Read => "; may pass on read",
        ExportLevel::Full => "; may pass it on",
    });
    text
}
