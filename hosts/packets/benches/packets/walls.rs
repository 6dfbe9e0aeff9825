//! The walls: each takes frames through the same module.

use crate::native::{InPlace, symbol};
use crate::{Work, build, hip, socket};
use mullion::Host;
use mullion_packets::batch::Batch;
use mullion_packets::config::{self, Description, Kind};
use mullion_packets::forward::{Chain, Forwarder};
use std::ffi::{CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) trait Wall {
    /// Takes frames through the module: the bytes that go on.
    fn pass(&mut self, frames: &[Vec<u8>]) -> u64;

    /// Nanoseconds for a frame, the best of what fits into the time.
    fn time(&mut self, frames: &[Vec<u8>], at_least: Duration) -> f64 {
        crate::time(frames.len(), at_least, &mut || {
            self.pass(frames);
        })
    }
}

impl Wall for InPlace {
    fn pass(&mut self, frames: &[Vec<u8>]) -> u64 {
        InPlace::pass(self, frames)
    }
}

/// A module in a domain of the forwarder's.
struct Domain {
    forwarder: Forwarder,
    memory: Batch<'static>,
    chain: Chain,
}

impl Domain {
    fn new(work: &Work, image: PathBuf, wall: config::Wall) -> Domain {
        let description = Description {
            name: work.name.to_owned(),
            image,
            kind: Kind::Transcoder,
            wall,
            filter: Some(work.filter.to_owned()),
            from: None,
            sees: None,
            locked: Vec::new(),
            time: Some("1s".to_owned()),
            memory: None,
        };
        let forwarder = Forwarder::new(Host::new(), &[description]).expect("it was verified");
        Domain {
            forwarder,
            memory: Batch::default(),
            chain: Chain::default(),
        }
    }
}

impl Wall for Domain {
    fn pass(&mut self, frames: &[Vec<u8>]) -> u64 {
        let mut batch = std::mem::take(&mut self.memory).again();
        for frame in frames {
            batch.push(Duration::from_secs(1), frame);
        }
        let chain = self.forwarder.refresh(&mut self.chain);
        self.forwarder.handle(chain, 0, &mut batch);
        let bytes = batch.out().map(|frame| frame.len() as u64).sum();
        self.memory = batch.again();
        bytes
    }
}

type Named = (String, Box<dyn Wall>);

/// Those that there are here, native C first.
pub(crate) fn all(work: &Work, missing: &mut Vec<String>) -> Vec<Named> {
    let mut walls: Vec<Named> = Vec::new();
    let native = build::native(work).expect("gcc builds the native module");
    let in_place = || InPlace::library(&native, work.filter).expect("it was built for this");
    walls.push(("native C".to_owned(), Box::new(in_place())));
    let mut add = |name: &str, wall: Result<Box<dyn Wall>, String>| match wall {
        Ok(wall) => walls.push((name.to_owned(), wall)),
        Err(why) => missing.push(format!("{name}: {why}")),
    };
    let alone = build::rust_alone(work).and_then(|library| {
        let wall = InPlace::alone(&library, work.filter).ok_or("it does not load")?;
        Ok(Box::new(wall) as Box<dyn Wall>)
    });
    add("elastic Rust, the language alone", alone);
    let behind = |wall| move |image| Box::new(Domain::new(work, image, wall)) as Box<dyn Wall>;
    let window = behind(config::Wall::Window);
    let process = behind(config::Wall::Process);
    add("C in a window", build::window(work).map(window));
    let (c, rust) = (build::elastic(work), build::elastic_rust(work));
    add("elastic C in a window", c.clone().map(window));
    add("elastic Rust in a window", rust.clone().map(window));
    add("elastic C in a process and a window", c.map(process));
    add("elastic Rust in a process and a window", rust.map(process));
    add("a HIP, by a channel", hip::Hip::start(&native, work.filter));
    add("wasmtime", wasmtime(work));
    add(
        "a process by a socket",
        socket::Process::start(&native, work.filter),
    );
    walls
}

fn wasmtime(work: &Work) -> Result<Box<dyn Wall>, String> {
    let library = build::wasmtime()?;
    let (module, peer) = build::wasm(work)?;
    let module = std::fs::read(module).map_err(|error| error.to_string())?;
    let open = symbol(&peer, "peer_open").ok_or("the peer has no peer_open")?;
    let steps = symbol(&peer, "peer_steps").ok_or("the peer has no peer_steps")?;
    let library =
        CString::new(library.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    type Open = unsafe extern "C" fn(*const c_char, *const u8, usize) -> *mut c_void;
    // SAFETY: native/wasmtime.c defines both so, and reads what it is given during the call.
    let (room, steps) = unsafe {
        let open = std::mem::transmute::<*mut c_void, Open>(open);
        (
            open(library.as_ptr(), module.as_ptr(), module.len()),
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(u32)>(steps),
        )
    };
    let wall = InPlace::at(room.cast(), steps, work.filter);
    Ok(Box::new(wall.ok_or("it does not run the module")?))
}
