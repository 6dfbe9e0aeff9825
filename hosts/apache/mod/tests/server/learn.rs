//! Modules that learn, and the map of a running server.

use crate::Place;
use crate::running::{self, Server};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// The name of the part of the test that runs in a process with the variable.
pub(crate) const LEARNER: &str = "learner";

fn lines(place: &Place) -> String {
    let module = place.walled("alias");
    let without = module.replace("policies/alias.toml", "policies/default.toml");
    format!(
        "{}{}{without}<IfModule alias_module>\nAlias /elsewhere {}/htdocs/sub\n</IfModule>\nLogLevel warn alias:info\n<Location /map>\nSetHandler mullion-map\n</Location>\n",
        place.stock("mime"),
        place.wall(),
        place.scratch.path().display()
    )
}

/// What `mod_alias` lacks by the default policy is allowed while it learns, and is in the policy that it leaves.
pub(crate) fn a_module_that_learns_leaves_its_policy(place: &Place) {
    let folder = place.scratch.path().join("learnt");
    fs::create_dir(&folder).expect("made");
    // The server's child is another user.
    let all = fs::Permissions::from_mode(0o777);
    fs::set_permissions(&folder, all).expect("ours");
    let program = std::env::current_exe().expect("a path");
    let mut learner = Command::new(program);
    learner.arg(LEARNER).env("MULLION_WORD_LEARN", &folder);
    assert!(learner.status().expect("it starts").success());
    let learnt = fs::read_to_string(folder.join("alias.toml")).expect("written");
    assert!(
        learnt.contains("    \"request_rec.filename\",\n"),
        "{learnt}"
    );
    assert!(learnt.contains("mod_alias.c:"), "{learnt}");
}

pub(crate) fn learner(place: &Place) {
    let mut server = Server::start(place, &lines(place), true);
    let answer = running::get(server.port, "/elsewhere/index.html", &[]);
    assert_eq!(answer.status, 200, "{}", server.log());
    server.stop();
}

pub(crate) fn a_server_shows_who_may_touch_what(place: &Place) {
    let server = Server::start(place, &lines(place), true);
    let answer = running::get(server.port, "/map", &[]);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let named = "\"name\":\"alias\"";
    assert!(answer.body.contains(named), "{}", answer.body);
    assert!(answer.body.contains("\"regions\""), "{}", answer.body);
}
