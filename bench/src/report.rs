//! Where results go: the terminal, files, and from a file to the terminal again.

use crate::arguments::{Arguments, Report};
use crate::results::Results;
use crate::{REQUIRE_PEERS, html, markdown, table};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// Prints and writes the results of a run.
pub(crate) fn report(arguments: &Arguments, results: &Results) -> Result<ExitCode> {
    print!("{}", table::render(results));
    if let Some(path) = &arguments.json {
        write(path, &(serde_json::to_string_pretty(results)? + "\n"))?;
    }
    if let Some(path) = &arguments.html {
        write(path, &html::render(results))?;
    }
    let failed = results.errors().count() + crossings_failed(results);
    if failed > 0 {
        eprintln!("bench: {failed} cases failed");
    }
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// Shows the results of an earlier run.
pub(crate) fn again(arguments: &Report) -> Result<ExitCode> {
    let path = &arguments.results;
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let results: Results = serde_json::from_str(&text)
        .with_context(|| format!("{} is not what --json writes", path.display()))?;
    match arguments.markdown {
        true => print!("{}", markdown::render(&results)),
        false => print!("{}", table::render(&results)),
    }
    if let Some(path) = &arguments.html {
        write(path, &html::render(&results))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Rows of crossings without numbers: those of this tree's own, and peers' if they are required.
fn crossings_failed(results: &Results) -> usize {
    let required = std::env::var_os(REQUIRE_PEERS).is_some();
    let rows = results
        .crossings
        .iter()
        .flat_map(|crossings| crossings.without_numbers());
    rows.filter(|(row, _)| required || row.peer.is_own())
        .count()
}

/// A file appears whole or not at all.
fn write(path: &Path, text: &str) -> Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".part");
    fs::write(&draft, text)
        .and_then(|()| fs::rename(&draft, path))
        .with_context(|| format!("writing {}", path.display()))?;
    eprintln!("bench: wrote {}", path.display());
    Ok(())
}
