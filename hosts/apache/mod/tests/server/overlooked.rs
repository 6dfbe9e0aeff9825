//! Calls of the host whose rows must look at more than it seems (`tests/hostile/overlooked.c`).

use crate::Place;
use crate::attacks::{Attacked, attacked, patient};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Attacks that end with 500, and what the error log says.
const REFUSED: [(&str, &str); 20] = [
    ("over-word", "is no string"),
    ("over-room", "is a place without room"),
    ("over-digest", "is a place without room"),
    ("over-blocks", "have no room for blocks"),
    ("over-scanned", "which the module may not write"),
    (
        "over-scanned-long",
        "a conversion of a format is not for modules",
    ),
    (
        "over-scanned-quad",
        "a conversion of a format is not for modules",
    ),
    ("over-printed", "which is no conversion that is known"),
    ("over-list", "more arguments than the wall passes on"),
    ("over-list-odd", "is no list of arguments"),
    ("over-segment", "memory that processes share, which may go"),
    ("over-segments", "bytes of shared memory"),
    ("over-slots", "is no thing of a provider"),
    ("over-cache", "is no thing of a provider"),
    ("over-made", "is no thing of this provider"),
    ("over-group", "is no object of another module"),
    ("over-stored", "is of a module without a wall"),
    ("over-tree", "is no thing of a provider"),
    ("over-dog", "the server serves already"),
    ("over-dog-name", "the server serves already"),
];

/// Attacks that are answered: what goes is no longer needed, or the module has no right to more. EACCES is 13.
const ANSWERED: [(&str, &str); 6] = [
    ("over-table", "own own own"),
    ("over-mapped", "   of the core"),
    ("over-key", "1 second"),
    ("over-stars", "0 0"),
    ("over-user", "0 x nobody"),
    ("over-lines", "13"),
];

pub(crate) fn what_rows_overlook_does_no_harm(place: &Place) {
    let lines = [
        place.stock("mime"),
        place.stock("authn_core"),
        place.stock("slotmem_shm"),
        place.stock("socache_shmcb"),
        place.stock("proxy"),
        place.stock("proxy_balancer"),
        place.stock("lbmethod_byrequests"),
        place.stock("cache"),
        place.stock("cache_disk"),
        place.wall(),
        place.walled("expires"),
        patient(place),
    ];
    let lines = format!(
        "{}<Location /hostile/over-user>\nAuthType Basic\nAuthName own\nRequire all granted\n</Location>\n",
        attacked(&lines.concat())
    );
    // The server's user may remove it, and the policy does not name it.
    let folder = place.scratch.path().join("not-named");
    fs::create_dir_all(&folder).expect("made");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("ours");
    let kept = folder.join("kept");
    fs::write(&kept, "kept").expect("written");
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o666)).expect("ours");
    let mut attacked = Attacked::new(place, lines);
    for (attack, words) in REFUSED {
        attacked.refused(attack, words);
    }
    for (attack, much) in ANSWERED {
        attacked.answered(attack, much);
    }
    attacked.answered(&format!("over-removed?{}", kept.display()), "13");
    assert_eq!(fs::read_to_string(&kept).ok().as_deref(), Some("kept"));
    attacked.end();
}
