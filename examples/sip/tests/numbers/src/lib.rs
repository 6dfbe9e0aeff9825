//! Speaks a contract in which another library has a vector in the place of these two numbers, and sends it the
//! address of a word of its own: half of an attack on the contracts' digest. The other half is `tests/pointers`.
#![forbid(unsafe_code)]

use mullion_sip::channel::Contract;
use mullion_sip::{Exchange, process};

/// What a vector in the exchange heap looks like in memory: where its values are, and its block with their count.
mod part {
    use mullion_sip::Exchange;

    #[derive(Exchange)]
    pub struct Letter(pub [u64; 2]);
}

#[derive(Exchange)]
pub struct Letter {
    pub inside: part::Letter,
}

mullion_sip::contract! {
    pub mod post {
        Ask: server { Here(super::Letter) -> Read }
        Read: client { Done -> end }
    }
}

mullion_sip::sip_main! {
    name: "numbers",
    main: main,
}

/// Serves one client, whose end it finds changed, or not.
fn main(_: Vec<String>) -> Result<(), String> {
    let mut word = Box::new(1234u64);
    let at = std::ptr::from_mut::<u64>(&mut word).expose_provenance() as u64;
    let service =
        process::serve("/post", post::Contract::INFO).map_err(|error| error.to_string())?;
    let server = post::Server::<post::Ask>::from_any(service.accept());
    let server = server.map_err(|error| error.to_string())?;
    let inside = part::Letter([at, 1]);
    let server = server
        .here(Letter { inside })
        .map_err(|error| error.to_string())?;
    let _ = server.recv();
    match std::hint::black_box(&*word) {
        1234 => Ok(()),
        word => Err(format!(
            "somebody else has written {word} into a word of mine"
        )),
    }
}
