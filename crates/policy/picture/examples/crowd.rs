//! Pictures of large states: `cargo run -p mullion-picture --example crowd DOMAINS GRANTS > crowd.svg`,
//! or `... --example crowd slab > slab.svg`.

#[path = "../tests/scenes/mod.rs"]
#[allow(dead_code, reason = "the figures are for the other example")]
mod scenes;

use mullion_picture::{Options, paint};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let state = match &arguments[..] {
        [word] if word == "slab" => scenes::slab(),
        [domains, grants] => scenes::crowd(domains.parse::<u64>()?.max(2), grants.parse()?),
        _ => return Err("usage: crowd DOMAINS GRANTS, or crowd slab".into()),
    };
    print!("{}", paint(&state.validate()?, &Options::default()));
    Ok(())
}
