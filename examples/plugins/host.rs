//! Plug-ins by strangers, each in a domain of its own: the same interface, no
//! more powers than the host's import list has, and a policy of the host's own.
//!
//!     for p in shout reverse curious; do
//!         mullion cc --mullion-kind=extension examples/plugins/$p.c -o $p.mx; done
//!     cargo run -p mullion-examples --bin plugins shout.mx reverse.mx curious.mx

use mullion::{
    BoxedError, Candidate, Domain, DomainMemory, Error, Host, Policy, Ptr, Stream, Streams,
};
use std::sync::Arc;

/// Lets in what has the plug-in interface and is not too large.
struct TextPlugins;

impl Policy for TextPlugins {
    fn admit(&self, candidate: &Candidate<'_>) -> Result<(), BoxedError> {
        if candidate.file.export("transform").is_none() {
            return Err("it does not export `transform`".into());
        }
        match candidate.file.bytes().len() {
            0..1_000_000 => Ok(()),
            length => Err(format!("{length} bytes are too much for a plug-in").into()),
        }
    }
}

fn main() -> Result<(), Error> {
    let host = Host::builder().policy(TextPlugins).build();
    let mut text = "hello, world".to_owned();
    for path in std::env::args().skip(1) {
        match load(&host, &path).and_then(|domain| transform(&domain, &text)) {
            Ok(changed) => text = changed,
            Err(error) => println!("{error}"),
        }
    }
    println!("{text}");
    Ok(())
}

fn load(host: &Host, path: &str) -> Result<Domain, Error> {
    // What a plug-in prints goes to this function, piece by piece, instead of the log.
    let print = |_: Stream, bytes: &[u8]| {
        print!("{}", String::from_utf8_lossy(bytes));
        Ok(())
    };
    let streams = Streams::Taken(Arc::new(print));
    host.open(path)?.domain().streams(streams).load()
}

fn transform(domain: &Domain, text: &str) -> Result<String, Error> {
    let inside = domain.string_in(text)?;
    domain
        .function::<fn(Ptr<u8>)>("transform")?
        .call(inside.ptr())?;
    // No longer than it was: the plug-in could have overwritten the zero.
    inside.ptr().string(domain, text.len() + 1)
}
