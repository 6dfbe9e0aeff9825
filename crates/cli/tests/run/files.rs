//! `--dir`: what is granted works, nothing else is there.

use crate::{changed, expect, run, text};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// A directory `d` with a file, a secret beside it, and ways out of it; a directory `w`.
fn tree() -> tempfile::TempDir {
    let top = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| top.path().join(name);
    for name in ["d", "d/sub", "w"] {
        fs::create_dir(at(name)).expect("a directory");
    }
    for name in ["secret", "d/file", "w/mine"] {
        fs::write(at(name), "content").expect("a file");
    }
    for (to, name) in [
        (Path::new("../secret"), "d/out"),
        (&at("secret"), "d/absolute"),
        (Path::new(".."), "d/up"),
        (Path::new("../not-there-before"), "d/new-by-link"),
        (Path::new("sub/../file"), "d/inside"),
    ] {
        symlink(to, at(name)).expect("a link");
    }
    let made = Command::new("mkfifo").arg(at("d/fifo")).status();
    assert!(made.expect("mkfifo").success());
    top
}

fn grant(top: &Path, name: &str, rest: &str) -> String {
    format!("--dir={}::{rest}", top.join(name).display())
}

#[test]
fn nothing_without_a_grant() {
    let output = run(&[], "files", &["none"]);
    assert_eq!(output.status.code(), Some(0));
    let lines = text(&output.stdout);
    assert_eq!(lines.lines().count(), 3);
    assert!(
        lines
            .lines()
            .all(|line| line.ends_with(": Operation not permitted")),
        "{lines}"
    );
}

#[test]
fn a_granted_directory_works() {
    let top = tree();
    let output = run(&[&grant(top.path(), "w", "/w")], "files", &["work"]);
    expect(&output, 0, "two 13 0");
    assert_eq!(
        fs::read(top.path().join("w/moved")).expect("a file"),
        b"one two three"
    );
}

#[test]
fn directories_above_granted_ones_lead_to_them_and_to_nothing_else() {
    let top = tree();
    let grants = [
        grant(top.path(), "d", "/srv/one/d:ro"),
        grant(top.path(), "w", "/w"),
    ];
    let output = run(&[&grants[0], &grants[1]], "files", &["above"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    let (known, attempts) = lines
        .split_once("chdir")
        .unwrap_or_else(|| panic!("{lines}"));
    let expected = "/srv/one/d/file\n/: . .. srv w . .. srv w 0 40555\n/srv: . .. one . .. one 0 40555\n\
                    1 /srv/one/d/file\n";
    assert_eq!(known, expected);
    let ends: Vec<&str> = attempts
        .lines()
        .map(|line| line.rsplit(": ").next().unwrap_or_default())
        .collect();
    let (absent, used) = ("No such file or directory", "Resource busy");
    let expected = [
        "done", // chdir
        "done",
        "done",
        "done", // access
        "Read-only file system",
        "File exists", // mkdir
        absent,
        "Is a directory",
        "File exists",
        absent,
        used, // rmdir
        used,
        absent,
        used,
        absent,
        "Invalid argument", // readlink
        "Is a directory",
        absent,
        absent,
    ];
    assert_eq!(ends, expected, "{attempts}");
    assert!(!top.path().join("d/mine").exists() && top.path().join("w/mine").exists());
}

#[test]
fn links_lead_from_one_granted_directory_to_another_and_nowhere_else() {
    let top = tree();
    for (to, name) in [
        ("/w/mine", "d/way"),
        ("../../../w", "d/across"),
        ("/srv/one/d/circle", "d/circle"),
    ] {
        symlink(to, top.path().join(name)).expect("a link");
    }
    let grants = [
        grant(top.path(), "d", "/srv/one/d:ro"),
        grant(top.path(), "w", "/w"),
    ];
    let output = run(&[&grants[0], &grants[1]], "files", &["ways"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    let ends: Vec<&str> = lines
        .lines()
        .map(|line| line.rsplit(": ").next().unwrap_or_default())
        .collect();
    // By way of a directory for reading, nothing is written.
    let (absent, only) = ("No such file or directory", "Read-only file system");
    let expected = [
        "done", // open
        "done",
        "done",
        "done", // stat
        "done",
        only,
        "done", // chdir
        "/w",
        absent,
        "/w/mine",
        "Symbolic link loop",
        absent,
        only, // open, to make
        only,
        only,
    ];
    assert_eq!(ends, expected, "{lines}");
    assert!(!top.path().join("w/new").exists());
}

#[test]
fn links_lead_downwards_and_to_what_may_be_written() {
    let top = tree();
    let grants = [
        grant(top.path(), "d", "/d:ro"),
        grant(top.path(), "w", "/w"),
    ];
    let output = run(&[&grants[0], &grants[1]], "files", &["links"]);
    let lines = text(&output.stdout);
    let ends: Vec<&str> = lines
        .lines()
        .map(|line| line.rsplit(": ").next().unwrap_or_default())
        .collect();
    let (refused, only) = ("Operation not permitted", "Read-only file system");
    let expected = [
        refused,
        refused,
        refused,
        "done",
        "done",
        refused,
        only,
        only,
        "2 content",
    ];
    assert_eq!(ends, expected, "{lines}");
    assert!(!top.path().join("w/a").exists() && !top.path().join("w/stolen").exists());
}

#[test]
fn a_file_is_mapped_by_a_copy_and_a_program_begins_where_it_is_told() {
    let top = tree();
    let grant = grant(top.path(), "w", "/w");
    let output = run(&[&grant, "--cwd=/w"], "files", &["mapped"]);
    expect(&output, 0, "Content /w");
    let kept = fs::read(top.path().join("w/mine")).expect("a file");
    assert_eq!(kept, b"content");
    // Above what was granted is where the way to it begins.
    let above = run(&[&grant, "--cwd=/"], "files", &["here"]);
    let lines = "/\nopen(\"w/mine\", O_RDWR): done\nopen(\"secret\", O_RDONLY): No such file or directory\n";
    expect(&above, 0, lines);
    let elsewhere = run(&[&grant, "--cwd=/x"], "files", &["mapped"]);
    assert_eq!(elsewhere.status.code(), Some(126));
    let said = text(&elsewhere.stderr);
    assert!(
        said.contains("cannot be where the program begins"),
        "{said}"
    );
}

#[test]
fn what_is_written_goes_to_the_end_where_the_program_says_so() {
    let top = tree();
    let grant = grant(top.path(), "w", "/w");
    let output = run(&[&grant], "files", &["appended"]);
    expect(&output, 0, "Content more again");
}

#[test]
fn a_stream_is_opened_anew_without_a_name() {
    let top = tree();
    let grant = grant(top.path(), "w", "/w");
    let output = run(&[&grant], "files", &["reopened"]);
    expect(&output, 0, "content onetwo");
}

#[test]
fn a_directory_for_reading_stays_as_it_is() {
    let top = tree();
    let file = top.path().join("d/file");
    let past = Command::new("touch")
        .args(["-d", "2001-01-01"])
        .arg(&file)
        .status();
    assert!(past.expect("touch").success());
    let before = changed(&file);
    let grants = [
        grant(top.path(), "d", "/d:ro"),
        grant(top.path(), "w", "/w"),
    ];
    let output = run(&[&grants[0], &grants[1]], "files", &["read-only"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    let done: Vec<&str> = lines
        .lines()
        .filter(|line| line.ends_with(": done"))
        .collect();
    assert_eq!(done, ["open(\"/d/file\", O_RDONLY): done"], "{lines}");
    assert_eq!(lines.lines().count(), 21);
    assert_eq!(fs::read(&file).expect("still there"), b"content");
    assert_eq!(changed(&file), before);
    assert!(top.path().join("w/mine").exists());
}

#[test]
fn files_stay_whose_they_are() {
    use std::os::unix::fs::MetadataExt as _;
    let top = tree();
    let mine = top.path().join("w/mine");
    let owner = |path: &Path| path.metadata().map(|data| (data.uid(), data.gid()));
    let before = owner(&mine).expect("a file");
    let output = run(&[&grant(top.path(), "w", "/w")], "files", &["owner"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    let ends: Vec<&str> = lines
        .lines()
        .map(|line| line.rsplit(": ").next().unwrap_or_default())
        .collect();
    let (done, refused, absent) = (
        "done",
        "Operation not permitted",
        "No such file or directory",
    );
    let expected = [
        done,
        done,
        done,
        refused,
        refused,
        refused,
        refused,
        done,
        absent,
        absent,
        "Bad file descriptor",
        done,
        done,
        done,
        refused,
    ];
    assert_eq!(ends, expected, "{lines}");
    assert_eq!(owner(&mine).expect("still there"), before);
}

#[test]
fn no_way_leads_out() {
    let top = tree();
    let output = run(&[&grant(top.path(), "d", "/d")], "files", &["escape"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    let done: Vec<&str> = lines
        .lines()
        .filter(|line| line.ends_with(": done"))
        .collect();
    // The link `up` leads to the program's own `/`, which holds nothing but `d`.
    let expected = [
        "chdir(\"/d/up\"): done",
        "open(\"/d/inside\", O_RDONLY): done",
    ];
    assert_eq!(done, expected, "{lines}");
    assert_eq!(
        fs::read(top.path().join("secret")).expect("there"),
        b"content"
    );
    assert!(!top.path().join("not-there-before").exists());
}

#[test]
fn a_grant_of_the_root_shows_no_processes() {
    let output = run(&["--dir=/::/h"], "files", &["root"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    let done = lines.lines().filter(|line| line.ends_with(": done"));
    let done: Vec<&str> = done.collect();
    let files = [
        "open(\"/h/etc/passwd\", O_RDONLY): done",
        "stat(\"/h/etc\", &s): done",
    ];
    assert_eq!(done, files, "{lines}");
    assert_eq!(lines.lines().count(), 19);
    for directory in ["/proc", "/proc/self", "/proc/self/fd"] {
        let output = run(&[&format!("--dir={directory}::/p:ro")], "files", &["none"]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("cannot be granted: it shows processes"));
    }
}

#[test]
fn removing_while_listing_misses_nothing() {
    let top = tree();
    let many = top.path().join("w/many");
    fs::create_dir(&many).expect("a directory");
    for number in 0..500 {
        fs::write(many.join(format!("file-{number}")), "").expect("a file");
    }
    let output = run(&[&grant(top.path(), "w", "/w")], "files", &["remove-all"]);
    expect(&output, 0, "500 removed, rmdir 0, -1 Invalid argument");
}

#[test]
fn reading_only_within_writing_is_refused() {
    let top = tree();
    let grants = [
        grant(top.path(), "d", "/d"),
        grant(top.path(), "d/sub", "/d/sub:ro"),
    ];
    let output = run(&[&grants[0], &grants[1]], "files", &["none"]);
    expect(&output, 126, "");
    assert!(text(&output.stderr).contains("granted for reading only, but lies in"));
}
