//! The page of the policies by risk.

use std::fs;

#[test]
fn the_page_is_what_the_policies_say() {
    let folder = mullion_apache::policies();
    let page = mullion_apache::page(&folder).expect("each right has a risk, each line a reason");
    let committed = fs::read_to_string(folder.join("README.md")).expect("committed");
    assert!(page == committed, "run apache-risks");
}

/// A copy of the folder with a file changed.
fn changed(file: &str, from: &str, to: &str) -> String {
    let copy = tempfile::tempdir().expect("a folder");
    for entry in fs::read_dir(mullion_apache::policies()).expect("a folder") {
        let entry = entry.expect("a file");
        fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("copied");
    }
    let place = copy.path().join(file);
    let text = fs::read_to_string(&place).expect("there");
    assert!(text.contains(from));
    fs::write(&place, text.replace(from, to)).expect("written");
    mullion_apache::page(copy.path())
        .expect_err("it is wrong")
        .to_string()
}

#[test]
fn a_right_without_a_risk_or_a_reason_is_told() {
    let said = changed("macro.toml", "cmd_parms.config_file", "xrequest_rec.pool");
    assert!(
        said.contains("macro: xrequest_rec.pool has no row in risks.txt"),
        "{said}"
    );
    let said = changed("ldap.toml", "\"@ldap\" = ", "\"@log\" = ");
    assert!(said.contains("ldap"), "{said}");
    let said = changed("risks.txt", "timegm\tlow", "timegm\ttiny");
    assert!(said.contains("an unknown level"), "{said}");
    let said = changed(
        "risks.txt",
        "timegm\tlow\tnumbers",
        "timegm\tlow\tnumbers\nunused\tlow\tit",
    );
    assert!(said.contains("no policy has unused"), "{said}");
}
