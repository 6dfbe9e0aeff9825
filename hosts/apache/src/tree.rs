//! Which modules httpd's source has, and which files each is made from: `APACHE_MODULE` in its `config.m4` files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A module of the source package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Without `mod_`.
    pub name: String,
    /// Its C files.
    pub files: Vec<PathBuf>,
}

/// All modules of the tree, by name.
///
/// # Errors
/// The tree cannot be read.
pub fn modules(tree: &Path) -> io::Result<Vec<Module>> {
    let mut found = Vec::new();
    look(&tree.join("modules"), &mut found)?;
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found.dedup_by(|one, other| one.name == other.name);
    Ok(found)
}

fn look(folder: &Path, found: &mut Vec<Module>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            look(&path, found)?;
        } else if name.starts_with("config") && name.ends_with(".m4") {
            let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
            found.extend(listed(&text, folder));
        }
    }
    Ok(())
}

/// The modules that one file of configuration names.
fn listed(text: &str, folder: &Path) -> Vec<Module> {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("dnl "));
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    let calls = text.split("APACHE_MODULE(").skip(1);
    let read = |call: &str| {
        let arguments = arguments(call);
        let name = arguments.first()?.trim().to_owned();
        let objects = arguments.get(2).map_or("", |objects| objects.trim());
        let objects = match objects.strip_prefix('$') {
            Some(variable) => assigned(&text, variable),
            None => objects,
        };
        let mut files: Vec<PathBuf> = objects
            .split(|c: char| c.is_whitespace() || c == '\\')
            .filter_map(|word| Some(folder.join(format!("{}.c", word.strip_suffix(".lo")?))))
            .collect();
        if files.is_empty() {
            files.push(folder.join(format!("mod_{name}.c")));
        }
        Some(Module { name, files })
    };
    calls.filter_map(read).collect()
}

/// The arguments of a macro, up to its closing parenthesis; brackets quote.
fn arguments(call: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut depth = 0u32;
    for c in call.chars() {
        match c {
            ')' if depth == 0 => break,
            ',' if depth == 0 => {
                all.push(String::new());
                continue;
            }
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if let Some(last) = all.last_mut() {
            last.push(c);
        }
    }
    all
}

/// The value with the most files that the shell variable gets: others are for systems with less, or add what is no file.
fn assigned<'t>(text: &'t str, variable: &str) -> &'t str {
    let start = format!("{variable}=\"");
    let values = text.split(start.as_str()).skip(1);
    let values = values.filter_map(|rest| rest.split('"').next());
    values
        .max_by_key(|value| value.matches(".lo").count())
        .unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_read_with_their_files() {
        let text = "dnl APACHE_MODULE(name, helptext)\n\
            two_objects=\"dnl\nmod_two.lo dnl\nhelp.lo dnl\n\"\n\
            two_objects=\"$two_objects ../a_long_way_up/mod_other.la\"\n\
            APACHE_MODULE(one, a first [, with a comma], , , yes)\n\
            APACHE_MODULE(two, a second (or so), $two_objects, , most, [\n  LIBS=\"x\"\n])\n\
            APACHE_MODULE(three,\n  a third)\n";
        let files: Vec<_> = listed(text, Path::new("m"))
            .into_iter()
            .map(|module| (module.name, module.files))
            .collect();
        let expected = [
            ("one", vec!["m/mod_one.c"]),
            ("two", vec!["m/mod_two.c", "m/help.c"]),
            ("three", vec!["m/mod_three.c"]),
        ];
        let expected = expected.map(|(name, files)| {
            let files: Vec<PathBuf> = files.into_iter().map(PathBuf::from).collect();
            (name.to_owned(), files)
        });
        assert_eq!(files, expected);
    }
}
