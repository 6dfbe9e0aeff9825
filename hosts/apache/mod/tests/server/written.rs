//! Where a module writes files: below what its policy names (`tests/hostile/written.c`).

use crate::Place;
use crate::attacks::attacked;
use crate::running::{self, Server};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

/// All of a folder: names, rights, times, and what files have.
fn seen(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut all: Vec<String> = entries
        .flat_map(|entry| {
            let (path, data) = (entry.path(), entry.metadata().expect("it is there"));
            let text = fs::read_to_string(&path).unwrap_or_default();
            let line = format!("{path:?} {:o} {} {text:?}", data.mode(), data.mtime());
            let below = if data.is_dir() {
                seen(&path)
            } else {
                Vec::new()
            };
            [vec![line], below].concat()
        })
        .collect();
    all.sort();
    all
}

/// A folder that the policy names, with links out of it, and another one.
fn folders(root: &Path) {
    for name in ["open", "outside/folder"] {
        fs::create_dir_all(root.join(name)).expect("made");
    }
    for name in ["open", "outside", "outside/folder"] {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o777)).expect("ours");
    }
    for name in ["open/own", "outside/kept"] {
        fs::write(root.join(name), name).expect("written");
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o666)).expect("ours");
    }
    symlink(root.join("outside"), root.join("open/link")).expect("made");
    symlink(root.join("outside/kept"), root.join("open/linked")).expect("made");
    symlink(root.join("outside/none"), root.join("open/nowhere")).expect("made");
    fs::hard_link(root.join("outside/kept"), root.join("open/hard")).expect("made");
}

pub(crate) fn files_are_written_where_the_policy_says(place: &Place) {
    let root = place.scratch.path();
    folders(root);
    let before = seen(&root.join("outside"));
    let lines = [
        place.stock("mime"),
        place.wall(),
        place.walled("expires"),
        place.walled("hostile"),
    ];
    let lines = attacked(&lines.concat());
    let server = Server::start(place, &format!("Define WRITE_OUTSIDE\n{lines}"), true);
    let log = server.log();
    assert!(!log.contains("the wall stopped"), "{log}");
    assert_eq!(
        seen(&root.join("outside")),
        before,
        "while it starts: {log}"
    );
    assert!(
        log.contains("is below nothing that the policy names"),
        "{log}"
    );
    let ask = |path: &str| running::get(server.port, &format!("/hostile/{path}"), &[]);
    assert_eq!(ask("written-outside").status, 200, "{}", server.log());
    assert_eq!(seen(&root.join("outside")), before, "in a request");
    let inside = ask("written-inside");
    assert_eq!(inside.body, "0 ".repeat(12), "{}", server.log());
    assert_eq!(ask("written-piped").status, 500);
    let log = server.log();
    assert!(
        log.contains("is no program of a directive that the policy names"),
        "{log}"
    );
}
