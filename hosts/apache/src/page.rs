//! A page of the policies, by risk: which module may do what that leads far, and why.

use crate::Setup;
use mullion_word_policy::File;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The list of folders and directives in a policy that says where the module writes files.
const WRITES: &str = "writes";
const LEVELS: [&str; 3] = ["high", "middle", "low"];

/// The folder of the policies.
#[must_use]
pub fn policies() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("mod/policies")
}

/// A right's row of `risks.txt`.
struct Risk {
    right: String,
    level: &'static str,
    why: String,
}

fn wrong(what: String) -> Setup {
    Setup::Generate(what)
}

fn risks(folder: &Path) -> Result<Vec<Risk>, Setup> {
    let file = folder.join("risks.txt");
    let text = fs::read_to_string(&file).map_err(|cause| Setup::Io(file, cause))?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let rows = lines.map(|line| {
        let words: Vec<&str> = line.split('\t').collect();
        let [right, level, why] = words[..] else {
            return Err(wrong(format!(
                "risks.txt: {line}: three columns are expected"
            )));
        };
        let level = LEVELS.into_iter().find(|known| *known == level);
        Ok(Risk {
            right: right.to_owned(),
            level: level.ok_or_else(|| wrong(format!("risks.txt: {line}: an unknown level")))?,
            why: why.to_owned(),
        })
    });
    rows.collect()
}

/// The row of a right: that of its own name, or the longest that it begins with.
fn risk<'a>(risks: &'a [Risk], right: &str) -> Option<&'a Risk> {
    let fits = risks.iter().filter(|risk| right.starts_with(&risk.right));
    fits.max_by_key(|risk| risk.right.len())
}

fn quoted(list: &[String]) -> String {
    let all: Vec<String> = list.iter().map(|one| format!("`{one}`")).collect();
    all.join(", ")
}

/// The page in Markdown, from the policies and the risks of a folder.
///
/// # Errors
/// A file cannot be read, a right has no risk, a line has no reason, or a row of risks is of no use.
pub fn page(folder: &Path) -> Result<String, Setup> {
    let risks = risks(folder)?;
    let entries = fs::read_dir(folder).map_err(|cause| Setup::Io(folder.into(), cause))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
    files.sort();
    let mut uses: BTreeMap<&str, Vec<(String, String, String)>> = BTreeMap::new();
    let mut used = Vec::new();
    let mut plain = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).map_err(|cause| Setup::Io(file.clone(), cause))?;
        let module = file.file_stem().and_then(|name| name.to_str());
        let module = module.unwrap_or_default().to_owned();
        let policy =
            File::parse(&text).map_err(|error| wrong(format!("{}: {error}", file.display())))?;
        if module == "default" {
            continue;
        }
        let mut highest = LEVELS.len();
        // Where it writes files is a right of its own.
        let writes = policy.lists.get(WRITES).filter(|list| !list.is_empty());
        let named = policy.allow.iter().filter(|right| *right != "@default");
        let writes_as = writes.map(|_| WRITES.to_owned());
        for right in named.chain(&writes_as) {
            let risk = risk(&risks, right)
                .ok_or_else(|| wrong(format!("{module}: {right} has no row in risks.txt")))?;
            let reason = policy.reasons.get(right);
            let reason = reason.ok_or_else(|| wrong(format!("{module}: {right} has no reason")))?;
            let reason = match (right.as_str(), writes) {
                (WRITES, Some(list)) => format!("{}: {reason}", quoted(list)),
                _ => reason.clone(),
            };
            let row = (module.clone(), right.clone(), reason);
            uses.entry(risk.level).or_default().push(row);
            used.push(risk.right.clone());
            let level = LEVELS.iter().position(|level| *level == risk.level);
            highest = highest.min(level.unwrap_or(0));
        }
        if highest >= 2 {
            plain.push(module);
        }
    }
    if let Some(risk) = risks
        .iter()
        .find(|risk| risk.right != "@default" && !used.contains(&risk.right))
    {
        return Err(wrong(format!("risks.txt: no policy has {}", risk.right)));
    }
    Ok(write(&risks, &uses, &plain))
}

fn write(
    risks: &[Risk],
    uses: &BTreeMap<&str, Vec<(String, String, String)>>,
    plain: &[String],
) -> String {
    let mut page = String::from(
        "# The policies of httpd's modules, by risk\n\n\
         `cargo run -p mullion-apache --bin apache-risks` makes this page from the policies and from `risks.txt`; do not change it by hand.\n\
         [The host's page](../../README.md#policies) says what the names give.\n\n\
         A module without a file has `default.toml`.\n",
    );
    let names: Vec<String> = plain.iter().map(|name| format!("`{name}`")).collect();
    // Writing to a string does not fail.
    let _ = writeln!(
        page,
        "\nThese have a file, and no right of more than low risk: {}.",
        names.join(" ")
    );
    for level in LEVELS {
        let rows = uses.get(level).map(Vec::as_slice).unwrap_or_default();
        let mut of: BTreeMap<&str, Vec<&(String, String, String)>> = BTreeMap::new();
        for row in rows {
            of.entry(&row.1).or_default().push(row);
        }
        let mut title = level.to_owned();
        title[..1].make_ascii_uppercase();
        let _ = writeln!(
            page,
            "\n## {title}\n\n| right | why it is so | modules, and what for |\n| --- | --- | --- |"
        );
        for (right, rows) in of {
            let why = risk(risks, right).map_or("", |risk| &risk.why);
            let each: Vec<String> = rows
                .iter()
                .map(|(module, _, reason)| format!("`{module}`: {reason}"))
                .collect();
            let _ = writeln!(page, "| `{right}` | {why} | {} |", each.join("; "));
        }
    }
    page
}
