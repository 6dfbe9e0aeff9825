//! Paths of the program's, and which of the granted directories one leads into.
//!
//! A path is made absolute and its `.` and `..` are taken out by their names. The longest granted directory that is a
//! prefix of it is chosen. The rest is left to the trusted half, whose kernel resolves it beneath that directory.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// `path`, seen from `directory`, without `.`, `..` and empty parts.
pub(crate) fn absolute(directory: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let start = if path.starts_with('/') { "" } else { directory };
    for part in start.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The part of `path` beneath `directory`, if it is beneath it.
fn beneath<'a>(directory: &str, path: &'a str) -> Option<&'a str> {
    if directory == "/" {
        return path.strip_prefix('/');
    }
    let rest = path.strip_prefix(directory)?;
    match rest.strip_prefix('/') {
        Some(rest) => Some(rest),
        None => rest.is_empty().then_some(""),
    }
}

/// The directory that an absolute path leads into, and where the path beneath it begins. Of several that are the same,
/// the last.
pub(crate) fn find(directories: &[String], path: &str) -> Option<(usize, usize)> {
    directories
        .iter()
        .enumerate()
        .filter_map(|(index, directory)| Some((index, directory, beneath(directory, path)?)))
        .max_by_key(|(_, directory, _)| directory.len())
        .map(|(index, _, rest)| (index, path.len() - rest.len()))
}

/// Names in the directory of an absolute path that lead to granted directories; none if none is beneath it.
pub(crate) fn ways(directories: &[String], path: &str) -> Vec<String> {
    let mut names: Vec<String> = directories
        .iter()
        .filter_map(|directory| beneath(path, directory)?.split('/').next())
        .filter(|name| !name.is_empty())
        .map(String::from)
        .collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::ToOwned as _;

    #[test]
    fn paths_are_made_absolute_by_their_names() {
        assert_eq!(absolute("/a/b", "c/./d"), "/a/b/c/d");
        assert_eq!(absolute("/a/b", "../../../x"), "/x");
        assert_eq!(absolute("/a", "/b//c/"), "/b/c");
        assert_eq!(absolute("/", "."), "/");
    }

    #[test]
    fn ways_lead_to_granted_directories() {
        let directories = ["/srv/data", "/srv/data/deep", "/srv/x", "/tmp"].map(str::to_owned);
        assert_eq!(ways(&directories, "/"), ["srv", "tmp"]);
        assert_eq!(ways(&directories, "/srv"), ["data", "x"]);
        assert_eq!(ways(&directories, "/srv/data"), ["deep"]);
        for other in ["/tmp", "/tm", "/srv/dat", "/srv/data/deep", "/etc"] {
            assert_eq!(ways(&directories, other), [""; 0], "{other}");
        }
        assert_eq!(ways(&["/".to_owned()], "/"), [""; 0]);
    }

    #[test]
    fn the_longest_directory_is_chosen_and_neighbours_are_not_taken_for_it() {
        let directories = ["/data", "/data/deep"].map(str::to_owned);
        let found = |path: &str| {
            let found = find(&directories, path);
            found.map(|(index, rest)| (index, path[rest..].to_owned()))
        };
        assert_eq!(found("/data/x"), Some((0, "x".to_owned())));
        assert_eq!(found("/data/deep/x/y"), Some((1, "x/y".to_owned())));
        assert_eq!(found("/data"), Some((0, String::new())));
        assert_eq!(found("/database"), None);
        assert_eq!(found("/"), None);
    }
}
