//! Steps of a run, and where they come from. A step means something in every state, so any part of a
//! list is a list.

/// How many domains there are at once, and threads that call them.
pub(crate) const DOMAINS: usize = 4;
pub(crate) const THREADS: usize = 3;
/// Pages that the host shares.
pub(crate) const PAGES: usize = 4;

/// A step. `on` is the domain, `by` the thread that calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Load {
        on: usize,
    },
    Unload {
        on: usize,
    },
    Restart {
        on: usize,
        when_idle: bool,
    },
    Store {
        by: usize,
        on: usize,
        place: u64,
        value: u64,
    },
    Bump {
        by: usize,
        on: usize,
        value: u64,
    },
    Turn {
        by: usize,
        on: usize,
    },
    Block {
        by: usize,
        on: usize,
        place: u64,
        size: u64,
        byte: u64,
    },
    Gate {
        by: usize,
        on: usize,
        how: u64,
        value: u64,
    },
    Gates {
        by: usize,
        on: usize,
        count: u64,
        limit: u64,
    },
    Link {
        on: usize,
        to: usize,
        or: bool,
    },
    Over {
        by: usize,
        on: usize,
        value: u64,
    },
    Grant {
        on: usize,
        page: usize,
        permission: usize,
    },
    Get {
        by: usize,
        on: usize,
        page: usize,
    },
    Put {
        by: usize,
        on: usize,
        page: usize,
        value: u64,
    },
    Wrong {
        by: usize,
        on: usize,
        how: u64,
    },
    TimeLimit {
        by: usize,
        on: usize,
        processor: bool,
    },
    Cancel {
        by: usize,
        on: usize,
    },
    Start {
        on: usize,
        value: u64,
        cancel: bool,
    },
    CopyIn {
        on: usize,
        value: u64,
    },
    ReadBack {
        number: usize,
    },
    EndThread {
        by: usize,
    },
    Look,
}

impl Step {
    /// Its name, for counting.
    pub(crate) fn name(&self) -> String {
        let text = format!("{self:?}");
        text.split(' ').next().unwrap_or_default().to_owned()
    }
}

/// Numbers from a seed (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn steps(&mut self, count: usize) -> Vec<Step> {
        (0..count).map(|_| self.step()).collect()
    }

    fn step(&mut self) -> Step {
        let on = self.below(DOMAINS as u64) as usize;
        let by = self.below(THREADS as u64) as usize;
        let page = self.below(PAGES as u64) as usize;
        let value = self.below(1000);
        let place = self.below(2048);
        match self.below(100) {
            0..3 => Step::Unload { on },
            3..6 => Step::Load { on },
            6..15 => Step::Restart {
                on,
                when_idle: value.is_multiple_of(2),
            },
            15..27 => Step::Store {
                by,
                on,
                place,
                value,
            },
            27..33 => Step::Bump { by, on, value },
            33..39 => Step::Turn { by, on },
            39..44 => Step::Block {
                by,
                on,
                place,
                size: [0, 10, 5000, 300_000][page],
                byte: value % 256,
            },
            44..56 => Step::Gate {
                by,
                on,
                how: self.below(7),
                value,
            },
            56..58 => Step::Gates {
                by,
                on,
                count: self.below(8),
                limit: self.below(8),
            },
            58..62 => Step::Link {
                on,
                to: page % DOMAINS,
                or: value.is_multiple_of(2),
            },
            62..70 => Step::Over { by, on, value },
            70..75 => Step::Grant {
                on,
                page,
                permission: by,
            },
            75..80 => Step::Get { by, on, page },
            80..85 => Step::Put {
                by,
                on,
                page,
                value,
            },
            85..89 => Step::Wrong {
                by,
                on,
                how: self.below(7),
            },
            89 => Step::TimeLimit {
                by,
                on,
                processor: value.is_multiple_of(2),
            },
            90 => Step::Cancel { by, on },
            91 => Step::Start {
                on,
                value,
                cancel: value.is_multiple_of(2),
            },
            92..94 => Step::CopyIn { on, value },
            94..97 => Step::ReadBack {
                number: value as usize,
            },
            97..99 => Step::EndThread { by },
            _ => Step::Look,
        }
    }
}
