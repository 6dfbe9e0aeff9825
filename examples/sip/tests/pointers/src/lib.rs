//! The other half of the attack of `tests/numbers`: takes two numbers for a vector.
#![forbid(unsafe_code)]

use mullion_sip::{ExVec, Exchange, process};

mod part {
    use mullion_sip::{ExVec, Exchange};

    #[derive(Exchange)]
    pub struct Letter(pub ExVec<u64>);
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
    name: "pointers",
    main: main,
}

fn main(_: Vec<String>) -> Result<(), String> {
    let (client, server) = post::channel().map_err(|error| error.to_string())?;
    let mut server = server.into_any();
    loop {
        match process::open("/post", server) {
            Ok(()) => break,
            Err((process::names::NameError::Unbound, end)) => server = end,
            Err((error, _)) => return Err(error.to_string()),
        }
        mullion_sip::thread::sleep(std::time::Duration::from_millis(1));
    }
    let post::AskMessage::Here(letter, client) =
        client.recv().map_err(|error| error.to_string())?;
    let mut vector: ExVec<u64> = letter.inside.0;
    let read = vector[0];
    vector[0] = 4321;
    client.done().map_err(|error| error.to_string())?;
    Err(format!("read {read} from the memory of another process"))
}
