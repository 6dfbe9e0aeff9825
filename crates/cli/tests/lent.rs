//! What a host lends to a module, and takes back: pointers end with the call, and handles when the host says so. Types
//! whose calls have a bound of instructions.

#[allow(dead_code, reason = "others use more of it")]
mod office;

use mullion_host::{Caller, Error, Host, Imports};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use office::{Office, examples};

/// A key, a policy, and a place.
fn office(types: &[&str]) -> Office {
    let types: Vec<String> = types.iter().map(|&name| name.to_owned()).collect();
    Office::with(&["root"], &types)
}

impl Office {
    /// What the compiler says; whether there is an image.
    fn compile(&self, module_type: &str, file: &str) -> (bool, String) {
        let (good, said) = self.compile_as_root(module_type, file);
        if said.contains("rustup") {
            assert!(
                std::env::var_os("MULLION_REQUIRE_RUSTC_DEV").is_none(),
                "{said}"
            );
        }
        (good, said)
    }
}

/// Loads the keeper, and does as its host: shows flows, revokes them between calls and in the middle of one.
fn keeps_and_loses(image: &Path) {
    let host = Host::new();
    let image = host.open(image).expect("an image");
    // What the host revokes when it is asked.
    let wanted: Arc<Mutex<Option<u32>>> = Arc::default();
    let then = Arc::clone(&wanted);
    let imports = Imports::new().function("host_asked", move |caller: &Caller<'_>| {
        if let Some(slot) = then.lock().expect("whole").take() {
            caller.export::<fn(u32)>("revoke")?.call(caller, slot)?;
        }
        Ok::<(), Error>(())
    });
    let domain = image.domain().imports(imports).load().expect("a domain");
    let lend = domain
        .function::<fn(u32, u32) -> i32>("lend")
        .expect("lend");
    let revoke = domain.function::<fn(u32)>("revoke").expect("revoke");
    let tick = domain.function::<fn() -> u32>("tick").expect("tick");

    let tick = || tick.call().expect("it ends");
    let lend = |id, bytes| lend.call(id, bytes).expect("it ends");
    assert_eq!(tick(), 0, "nothing was shown yet");
    assert_eq!(lend(11, 100), 0);
    assert_eq!(lend(12, 900), 1);
    assert_eq!(lend(13, 500), 2);
    assert_eq!(tick(), 12, "the largest, by a handle of an earlier call");
    revoke.call(1).expect("revoked");
    assert_eq!(tick(), 0, "the handle gives nothing");
    // The place has another flow, which the old handle does not give.
    assert_eq!(lend(14, 1), 1);
    assert_eq!(tick(), 14, "a handle that was void gave way");
    // In the middle of a call, in front of the look at the handle.
    *wanted.lock().expect("whole") = Some(1);
    assert_eq!(tick(), 0);
    assert_eq!(tick(), 0);
}

#[test]
fn a_module_in_c_keeps_handles_until_the_host_revokes_them() {
    let module_type = examples().join("types/keeper.toml").display().to_string();
    let office = office(&[&module_type]);
    let source = examples().join("keeper.c").display().to_string();
    let (good, said) = office.compile(&module_type, &source);
    assert!(good, "{said}");
    keeps_and_loses(&office.at("x.mx"));
}

#[test]
fn a_module_in_rust_keeps_handles_until_the_host_revokes_them() {
    let module_type = examples()
        .join("types/keeper-rust.toml")
        .display()
        .to_string();
    let office = office(&[&module_type]);
    let source = examples().join("keeper.rs").display().to_string();
    let (good, said) = office.compile(&module_type, &source);
    if said.contains("rustup") {
        eprintln!("not tested: {said}");
        return;
    }
    assert!(good, "{said}");
    keeps_and_loses(&office.at("x.mx"));
}

/// The role decides: without the handle's name there is no way to keep anything.
#[test]
fn who_may_not_keep_cannot() {
    let text = fs::read_to_string(examples().join("types/keeper.toml")).expect("a type");
    let office = office(&["passer.toml"]);
    let environment = examples().join("flows.c").display().to_string();
    let passer = text
        .replace("../flows.c", &environment)
        .replace("\"flow_ref\", \"flow_kept\", \"flow_of\", ", "");
    assert_ne!(passer, text);
    fs::write(office.at("passer.toml"), passer).expect("room");
    let whole =
        |body: &str| format!("{body}\nunsigned on_tick(void) {{ host_asked(); return 0; }}\n");
    for (rule, body) in [
        (
            "kept-pointers",
            "static struct flow *last; void on_flow(struct flow *flow) { last = flow; }",
        ),
        (
            "kept-pointers",
            "struct own { struct flow *last; }; static struct own own; void on_flow(struct flow *flow) { own.last = flow; }",
        ),
        (
            "kept-pointers",
            "static unsigned *last; void on_flow(struct flow *flow) { last = &flow->bytes; }",
        ),
        (
            "pointer-to-integer",
            "static unsigned long last; void on_flow(struct flow *flow) { last = (unsigned long)flow; }",
        ),
        (
            "hidden-name",
            "static flow_ref last; void on_flow(struct flow *flow) { }",
        ),
        (
            "hidden-name",
            "void on_flow(struct flow *flow) { flow_kept(flow); }",
        ),
    ] {
        fs::write(office.at("a.c"), whole(body)).expect("room");
        let (good, said) = office.compile("passer.toml", "a.c");
        assert!(
            !good && said.contains(&format!("error[{rule}]")),
            "{body}: {said}"
        );
    }
    fs::write(
        office.at("a.c"),
        whole("static unsigned sum; void on_flow(struct flow *flow) { sum += flow->bytes; }"),
    )
    .expect("room");
    let (good, said) = office.compile("passer.toml", "a.c");
    assert!(good, "{said}");
}

/// A handle is not made of numbers, not looked into, and holds no pointer.
#[test]
fn a_handle_is_not_forged() {
    let module_type = examples().join("types/keeper.toml").display().to_string();
    let office = office(&[&module_type]);
    for body in [
        "static flow_ref last; void on_flow(struct flow *flow) { last.slot = 3; }",
        "void on_flow(struct flow *flow) { flow_ref made = {1, 1}; flow_of(made); }",
        "void on_flow(struct flow *flow) { flow->id = flow_kept(flow).life; }",
        "void on_flow(struct flow *flow) { flow_ref ref = flow_kept(flow); flow->id = *(unsigned *)&ref; }",
    ] {
        let text = format!("{body}\nunsigned on_tick(void) {{ return 0; }}\n");
        fs::write(office.at("a.c"), text).expect("room");
        let (good, said) = office.compile(&module_type, "a.c");
        assert!(!good && said.contains("error[locked]"), "{body}: {said}");
    }
    let text = fs::read_to_string(&module_type).expect("a type");
    let environment = fs::read_to_string(examples().join("flows.c")).expect("C");
    let leaky = environment.replace("} flow_ref;", "\tstruct flow *at;\n} flow_ref;");
    assert_ne!(leaky, environment);
    fs::write(office.at("flows.c"), &leaky).expect("room");
    let digest = mullion_trust::Sha256Digest::of(environment.as_bytes()).to_string();
    let own = mullion_trust::Sha256Digest::of(leaky.as_bytes()).to_string();
    fs::write(
        office.at("own.toml"),
        text.replace("../flows.c", "flows.c").replace(&digest, &own),
    )
    .expect("room");
    let source = examples().join("keeper.c").display().to_string();
    let output = office.run(&["compile", "--check", "--type", "own.toml", &source], None);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("has a pointer in it"), "{said}");
}
