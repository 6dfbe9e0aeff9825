//! An interface declared once, in `spell.h`: both sides' stubs are made from it.
//!
//!     mullion bind --rust examples/bind/spell.h -o examples/bind/spell.rs
//!     mullion bind --extension examples/bind/spell.h -o records.c
//!     mullion cc --mullion-kind=extension -I examples/bind examples/bind/extension.c records.c -o spell.mx
//!     cargo run -p mullion-examples --bin bind spell.mx

#[rustfmt::skip]
mod spell;

use mullion::{Caller, Error, Image};
use spell::{Extension, Host, Mistake, imports};

/// The host's side of the interface: the compiler asks for each function.
struct Dictionary(&'static [&'static str]);

impl Host for Dictionary {
    fn is_word(&self, _: &Caller<'_>, letters: &[i8]) -> Result<bool, Error> {
        let word: String = letters.iter().map(|letter| *letter as u8 as char).collect();
        Ok(self.0.contains(&word.to_lowercase().as_str()))
    }

    fn note(&self, caller: &Caller<'_>, text: &str) -> Result<(), Error> {
        println!("{}: {text}", caller.name());
        Ok(())
    }
}

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or("spell.mx".to_owned());
    let dictionary = Dictionary(&["a", "wall", "keeps", "neighbours", "friends"]);
    let domain = Image::open(path)?
        .domain()
        .name("spell")
        .imports(imports(dictionary))
        .load()?;
    let extension = Extension::new(&domain)?;

    let text = "A wall keeps neigbours frends";
    let none = Mistake {
        start: 0,
        length: 0,
        severity: 0,
        reserved: 0,
    };
    let mut mistakes = [none; 10];
    let count = extension.check(text, &mut mistakes)?;
    for mistake in mistakes.iter().take(count as usize) {
        // Numbers of the domain's: they are indices only after they were looked at.
        let end = mistake.start.saturating_add(mistake.length) as usize;
        let word = text.get(mistake.start as usize..end).unwrap_or("nonsense");
        println!(
            "{word}: {}",
            if mistake.severity > 1 {
                "really?"
            } else {
                "hm"
            }
        );
    }

    let mut counts = [0; 26];
    extension.count_letters(text.as_bytes(), &mut counts)?;
    extension.count_letters(b"e", &mut counts)?;
    println!("{} times e", counts[4]);
    Ok(())
}
