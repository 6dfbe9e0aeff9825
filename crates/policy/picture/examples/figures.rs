//! Makes the states and pictures under `docs/pictures` from real supervisors:
//! `cargo run -p mullion-picture --example figures docs/pictures`.

#[path = "../tests/scenes/mod.rs"]
#[allow(dead_code, reason = "the crowd is for the other example")]
mod scenes;

use mullion_picture::{PaintOptions, paint};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args()
        .nth(1)
        .ok_or("name the folder to write to, such as docs/pictures")?;
    for (name, state) in scenes::figures() {
        std::fs::write(format!("{folder}/{name}.json"), state.to_json())?;
        let picture = paint(&state.validate()?, &PaintOptions::default());
        std::fs::write(format!("{folder}/{name}.svg"), picture)?;
        println!("{folder}/{name}.svg");
    }
    Ok(())
}
