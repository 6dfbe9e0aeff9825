//! Two extensions: a player calls a decoder without the host in between, and the pages that
//! the one writes the other may only read. The decoder crashes, and the player goes on.
//!
//!     mullion cc --mullion-kind=extension -g examples/player/decoder.c -o decoder.mx
//!     mullion cc --mullion-kind=extension -g examples/player/player.c -o player.mx
//!     cargo run -p mullion-examples --bin player decoder.mx player.mx host.json
//!     mullion map host.json -o host.svg      (who may do what, painted)

use mullion::{
    BoxedError, Caller, Candidate, Domain, Error, Host, Imports, Permission, Policy, Ptr, Question,
    Shared, Wish,
};

/// Who may call what, and have which pages.
struct Rules;

impl Policy for Rules {
    fn admit(&self, _: &Candidate<'_>) -> Result<(), BoxedError> {
        Ok(())
    }

    fn allow(&self, question: &Question<'_>) -> Result<(), BoxedError> {
        let domain = question.domain.name();
        match &question.wish {
            Wish::Call { callee, export } => match (domain, callee.name(), *export) {
                ("player", "decoder", "decode") => Ok(()),
                _ => Err("players ask decoders to decode, and that is all".into()),
            },
            Wish::Pages { permission, .. } => match permission {
                Permission::ReadWrite if domain != "decoder" => {
                    Err("only decoders write frames".into())
                }
                _ => Ok(()),
            },
        }
    }
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let mut path = |otherwise: &str| arguments.next().unwrap_or(otherwise.to_owned());
    let host = Host::builder().policy(Rules).build();

    let asked = |caller: &Caller<'_>| {
        let by = caller.called_by();
        let by = by.as_ref().map_or("the host", |domain| domain.name());
        print!("{by} asks, ");
    };
    let imports = Imports::new().function("host_asked", asked);
    let decoder = host.open(path("decoder.mx"))?.domain().name("decoder");
    let decoder = decoder.imports(imports).load()?;
    let decode = decoder.function::<fn(Ptr<u8>, i32) -> i32>("decode")?;
    // If the decoder does not return, the player finds -1.
    let imports = Imports::new().link("decode", decode.or(-1));
    let player = host.open(path("player.mx"))?.domain().name("player");
    let player = player.imports(imports).load()?;

    let frame = host.share("frame", Shared::PAGE)?;
    grant(&frame, &decoder, Permission::ReadWrite)?;
    grant(&frame, &player, Permission::Read)?;
    if let Err(error) = grant(&frame, &player, Permission::ReadWrite) {
        println!("{error}");
    }

    let play = player.function::<fn(Ptr<u8>, i32) -> i32>("play")?;
    let page = frame.ptr(&player, 0)?;
    for number in 0..6 {
        let vowels = play.call(page, number)?;
        if vowels < 0 {
            println!("frame {number}: skipped, the decoder starts again");
            decoder.restart()?;
            // As new: it has nothing that it was given.
            grant(&frame, &decoder, Permission::ReadWrite)?;
            continue;
        }
        let mut text = [0; 16];
        frame.read(0, &mut text)?;
        let text = String::from_utf8_lossy(&text);
        println!("frame {number}: {text}, {vowels} vowels");
    }
    if let Some(file) = arguments.next() {
        let books = mullion::snapshot().title("A player and its decoder");
        if let Err(error) = std::fs::write(&file, books.to_json()) {
            println!("{file}: {error}");
        }
    }
    for link in player.links()? {
        println!("player's {} was called {} times", link.import, link.calls);
    }
    let scribble = player.function::<fn(Ptr<u8>)>("scribble")?;
    if let Err(error) = scribble.call(page) {
        println!("{error}");
    }
    Ok(())
}

fn grant(frame: &Shared, domain: &Domain, permission: Permission) -> Result<(), Error> {
    frame.grant(None, domain, 0..frame.len(), permission)
}
