//! The table: a row for each module and protection.

use std::io::{self, Write};

/// How far a module came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was made, and the verifier accepts it.
    Verified {
        /// Functions that it imports.
        functions: usize,
        /// Variables of the kernel whose addresses it has, and functions that it has pointers to.
        addresses: usize,
        /// Functions whose addresses leave it.
        gates: usize,
        /// Checks in its code.
        checks: u64,
        /// Bytes of code before rewriting, and after, as its note claims.
        code: (u32, u32),
    },
    /// The compiler, the rewriter or the linker refuses it: the first line that says why.
    NotMade(String),
    /// It was made, and the verifier does not accept it.
    Rejected(String),
}

/// A row.
#[derive(Clone, Debug)]
pub struct Row {
    /// The module's.
    pub name: String,
    /// What is checked.
    pub protection: &'static str,
    /// How far it came.
    pub outcome: Outcome,
}

/// Prints the rows, and the sums of each protection.
///
/// # Errors
/// Nobody reads, or the disk is full.
pub fn print(rows: &[Row], to: &mut dyn Write) -> io::Result<()> {
    let (module, protection) = ("module", "protection");
    writeln!(
        to,
        "{module:22} {protection:10} built verified functions addresses gates checks   plain checked  ratio"
    )?;
    for row in rows {
        let (name, protection) = (&row.name, row.protection);
        write!(to, "{name:22} {protection:10} ")?;
        match &row.outcome {
            Outcome::Verified {
                functions,
                addresses,
                gates,
                checks,
                code: (plain, checked),
            } => {
                let ratio = f64::from(*checked) / f64::from(*plain).max(1.0);
                writeln!(
                    to,
                    "yes   yes      {functions:9} {addresses:9} {gates:5} {checks:6} {plain:7} {checked:7}  {ratio:5.2}"
                )?;
            }
            Outcome::NotMade(why) => writeln!(to, "no    -        {why}")?,
            Outcome::Rejected(why) => writeln!(to, "yes   no       {why}")?,
        }
    }
    let mut protections: Vec<&str> = rows.iter().map(|row| row.protection).collect();
    protections.dedup();
    for protection in protections {
        sums(rows, protection, to)?;
    }
    Ok(())
}

fn sums(rows: &[Row], protection: &str, to: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<&Row> = rows
        .iter()
        .filter(|row| row.protection == protection)
        .collect();
    let made = rows
        .iter()
        .filter(|row| !matches!(row.outcome, Outcome::NotMade(_)));
    let (mut verified, mut before, mut after) = (0, 0, 0);
    for row in &rows {
        if let Outcome::Verified { code, .. } = row.outcome {
            verified += 1;
            before += u64::from(code.0);
            after += u64::from(code.1);
        }
    }
    writeln!(
        to,
        "{protection}: {} modules, {} made, {verified} verified; {before} bytes of code became {after}",
        rows.len(),
        made.count()
    )
}
