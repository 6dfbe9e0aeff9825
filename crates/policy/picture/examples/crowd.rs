//! Pictures of large states: `cargo run -p mullion-picture --example crowd DOMAINS GRANTS > crowd.svg`,
//! or `... --example crowd slab > slab.svg`. As JSON for `mullion map`: `... --example crowd server DOMAINS REGIONS`,
//! with so many regions for each domain.

#[path = "../tests/scenes/mod.rs"]
#[allow(dead_code, reason = "the figures are for the other example")]
mod scenes;

use mullion_picture::{Excerpt, PaintOptions, paint};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let state = match &arguments[..] {
        [word] if word == "slab" => scenes::slab(),
        [word, domains, regions] if word == "server" => {
            print!(
                "{}",
                scenes::server(domains.parse()?, regions.parse()?).to_json()
            );
            return Ok(());
        }
        [domains, grants] => scenes::crowd(domains.parse::<u64>()?.max(2), grants.parse()?),
        _ => {
            return Err(
                "usage: crowd DOMAINS GRANTS, crowd slab, or crowd server DOMAINS REGIONS".into(),
            );
        }
    };
    let options = PaintOptions {
        view: Excerpt::whole(),
        ..PaintOptions::default()
    };
    print!("{}", paint(&state.validate()?, &options));
    Ok(())
}
