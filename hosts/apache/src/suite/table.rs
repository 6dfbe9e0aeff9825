//! Results of scripts, kept in a file: a run that was interrupted goes on there.

use mullion_apache::Setup;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// By script, and whether modules were behind the wall.
pub(crate) struct Table {
    file: PathBuf,
    rows: BTreeMap<(String, bool), String>,
}

pub(crate) fn kind(walled: bool) -> &'static str {
    match walled {
        true => "walled",
        false => "stock",
    }
}

impl Table {
    pub(crate) fn open(file: &Path) -> Result<Table, Setup> {
        let text = fs::read_to_string(file).unwrap_or_default();
        let rows = text.lines().filter_map(|line| {
            let (script, rest) = line.split_once('\t')?;
            let (kind, outcome) = rest.split_once('\t')?;
            Some(((script.to_owned(), kind == "walled"), outcome.to_owned()))
        });
        Ok(Table {
            file: file.to_path_buf(),
            rows: rows.collect(),
        })
    }

    pub(crate) fn has(&self, script: &str, walled: bool) -> bool {
        self.get(script, walled).is_some()
    }

    fn get(&self, script: &str, walled: bool) -> Option<&str> {
        let found = self.rows.get(&(script.to_owned(), walled));
        found.map(String::as_str)
    }

    pub(crate) fn add(&mut self, script: &str, walled: bool, outcome: &str) -> Result<(), Setup> {
        let said = |cause| Setup::Io(self.file.clone(), cause);
        let mut file = fs::OpenOptions::new();
        let mut file = file
            .create(true)
            .append(true)
            .open(&self.file)
            .map_err(said)?;
        writeln!(file, "{script}\t{}\t{outcome}", kind(walled)).map_err(said)?;
        let row = (script.to_owned(), walled);
        self.rows.insert(row, outcome.to_owned());
        Ok(())
    }

    pub(crate) fn is_same(&self, script: &str) -> bool {
        let stock = self.get(script, false);
        stock.is_some() && stock == self.get(script, true)
    }

    /// The table for people, and its sums.
    pub(crate) fn print(&self, scripts: &[String]) -> String {
        let mut text = String::from("| script | stock | walled |\n| --- | --- | --- |\n");
        for script in scripts {
            let [stock, walled] = [false, true].map(|walled| self.get(script, walled));
            let stock = stock.unwrap_or("not run");
            let walled = match self.is_same(script) {
                true => "the same",
                false => walled.unwrap_or("not run"),
            };
            let _always = writeln!(text, "| {script} | {stock} | {walled} |");
        }
        let same = scripts.iter().filter(|script| self.is_same(script)).count();
        let sums = [false, true].map(|walled| {
            let all = scripts.iter().filter_map(|script| self.get(script, walled));
            let passed = all.filter_map(|outcome| outcome.split(' ').next()?.parse::<u64>().ok());
            passed.sum::<u64>()
        });
        let _always = writeln!(
            text,
            "\n{same} of {} scripts did the same; {} checks passed stock, {} walled",
            scripts.len(),
            sums[0],
            sums[1]
        );
        text
    }
}
