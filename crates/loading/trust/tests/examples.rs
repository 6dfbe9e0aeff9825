//! The example files are good, the schemas name every field, and errors say
//! where.

use mullion_trust::{ModuleType, Policy};
use std::path::{Path, PathBuf};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/trust")
}

fn properties(schema: &str) -> Vec<String> {
    let text = std::fs::read_to_string(examples().join(schema)).expect("a schema");
    let schema: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let properties = schema["properties"].as_object().expect("properties");
    properties.keys().cloned().collect()
}

fn fields(file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(examples().join(file)).expect("an example");
    let table: toml::Table = text.parse().expect("TOML");
    table.keys().cloned().collect()
}

#[test]
fn the_examples_are_good_and_complete() {
    let policy = Policy::read(&examples().join("policy.toml")).expect("the example policy");
    assert_eq!(policy.store().len(), 2);
    assert!(policy.module_type("packet-monitor").is_some());
    let types: &[&str] = &["types/packet-monitor.toml", "../elastic/types/monitor.toml"];
    for (schema, files) in [
        ("policy.schema.json", &["policy.toml"] as &[&str]),
        ("module-type.schema.json", types),
    ] {
        let mut properties = properties(schema);
        let mut fields: Vec<String> = files.iter().flat_map(|file| fields(file)).collect();
        properties.sort();
        fields.sort();
        fields.dedup();
        assert_eq!(properties, fields, "{schema} and {files:?}");
    }
}

#[test]
fn errors_say_where_and_what_to_do() {
    let text = "version = 1\nid = \"a b\"\nlanguage = \"c\"\nprotection = \"trap\"\nmechanism = [\"window\"]\n";
    let error = ModuleType::parse(text, Path::new("t.toml")).expect_err("a blank");
    assert!(
        error
            .to_string()
            .starts_with("t.toml:2:6: `a b` is no identifier\n  hint: "),
        "{error}"
    );

    let text = text.replace("a b", "ab") + "[limits]\nheap = \"4 apples\"\n";
    let error = ModuleType::parse(&text, Path::new("t.toml")).expect_err("apples");
    assert!(
        error
            .to_string()
            .starts_with("t.toml:7:8: `4 apples` is no amount"),
        "{error}"
    );

    let error = ModuleType::parse("version = 1\ncolour = 2\n", Path::new("t.toml"));
    let error = error.expect_err("colour").to_string();
    assert!(
        error.starts_with("t.toml:2:1: unknown field `colour`"),
        "{error}"
    );
}
