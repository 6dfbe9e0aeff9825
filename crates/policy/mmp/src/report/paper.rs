//! What the paper measured, to stand beside a run's own rows.

/// The rows of the paper that stand beside this run's, from Mondrix, Tables 5 to 8. They have: benchmark;
/// cycles in billions, slowdown, Mbot, Mtop, Kern; XD, calls in millions, Cy/Ca, self; free memory used;
/// PLB time and miss rate. Percentages as the paper prints them.
pub const PAPER: [PaperRow; 4] = [
    PaperRow {
        name: "config-xemacs",
        table5: [16.5, 4.4, 2.4, 0.7, 1.3],
        table6: [0.3, 3.29, 1286.0, 70.0],
        table7: 10.2,
        table8: [0.8, 0.51],
    },
    PaperRow {
        name: "thttpd",
        table5: [0.23, 14.8, 9.3, 2.0, 3.7],
        table6: [0.8, 0.15, 939.0, 64.0],
        table7: 1.1,
        table8: [3.8, 0.87],
    },
    PaperRow {
        name: "find",
        table5: [14.3, 3.3, 1.3, 1.2, 0.8],
        table6: [0.2, 2.74, 846.0, 57.0],
        table7: 7.8,
        table8: [0.4, 0.07],
    },
    PaperRow {
        name: "MySQL",
        table5: [0.21, 9.6, 4.0, 3.3, 2.3],
        table6: [0.7, 0.12, 664.0, 50.0],
        table7: 1.6,
        table8: [1.7, 0.22],
    },
];

/// One benchmark's figures in the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaperRow {
    /// The benchmark (Table 4).
    pub name: &'static str,
    /// Table 5: cycles in billions, then percentages: slowdown, Mbot, Mtop, Kern.
    pub table5: [f64; 5],
    /// Table 6: XD in per cent, calls in millions, cycles per call, self in per cent.
    pub table6: [f64; 4],
    /// Table 7: free memory used, in per cent.
    pub table7: f64,
    /// Table 8: PLB time and miss rate, in per cent.
    pub table8: [f64; 2],
}
