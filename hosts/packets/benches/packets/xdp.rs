//! The monitor, and what does nothing, as programs of eBPF at XDP, measured by the kernel's own test run (BPF_PROG_TEST_RUN): without the
//! driver, so it is what the program itself takes, and the kernel's loop around it.
//!
//! Forward error correction and resampling are not here: XDP cannot send a second frame, and may not grow one beyond
//! what its driver has left.

use std::io;

const BPF: libc::c_long = 321;
const MAP_CREATE: libc::c_int = 0;
const PROG_LOAD: libc::c_int = 5;
const TEST_RUN: libc::c_int = 10;
const REPEAT: u32 = 200_000;

fn bpf(command: libc::c_int, attributes: &mut [u8; 128]) -> io::Result<i32> {
    // SAFETY: the attributes and what they name are there for the call.
    let result = unsafe { libc::syscall(BPF, command, attributes.as_mut_ptr(), attributes.len()) };
    match result {
        0.. => Ok(result as i32),
        _ => Err(io::Error::last_os_error()),
    }
}

fn put(attributes: &mut [u8; 128], at: usize, bytes: &[u8]) {
    attributes[at..at + bytes.len()].copy_from_slice(bytes);
}

fn instruction(code: u8, to: u8, from: u8, offset: i16, number: i32) -> [u8; 8] {
    let mut bytes = [code, from << 4 | to, 0, 0, 0, 0, 0, 0];
    bytes[2..4].copy_from_slice(&offset.to_le_bytes());
    bytes[4..].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// Makes a program's instructions, which have the map in their hands.
pub(crate) type Program = fn(map: i32) -> Vec<u8>;

/// The program that does a work, if XDP can.
pub(crate) fn program(work: &str) -> Option<Program> {
    match work {
        "nothing" => Some(nothing),
        "monitor" => Some(monitor),
        _ => None,
    }
}

/// Passes every frame of IPv4 on.
fn nothing(_: i32) -> Vec<u8> {
    let i = instruction;
    [
        i(0x61, 2, 1, 0, 0),      // r2 = the frame's beginning
        i(0x61, 3, 1, 4, 0),      // r3 = its end
        i(0xbf, 4, 2, 0, 0),      // r4 = r2
        i(0x07, 4, 0, 0, 34),     // r4 += 34
        i(0xb7, 0, 0, 0, 1),      // drop
        i(0x2d, 4, 3, 3, 0),      // if r4 > r3 return
        i(0x69, 5, 2, 12, 0),     // r5 = kind
        i(0x55, 5, 0, 1, 0x0008), // if it is not IPv4 return
        i(0xb7, 0, 0, 0, 2),      // pass
        i(0x95, 0, 0, 0, 0),
    ]
    .concat()
}

/// Counts packets, bytes and those of UDP for 10.0.0.2 in a map's three numbers, and passes every frame on.
fn monitor(map: i32) -> Vec<u8> {
    let i = instruction;
    [
        i(0x61, 2, 1, 0, 0),            // r2 = the frame's beginning
        i(0x61, 3, 1, 4, 0),            // r3 = its end
        i(0xbf, 4, 2, 0, 0),            // r4 = r2
        i(0x07, 4, 0, 0, 42),           // r4 += 42
        i(0x2d, 4, 3, 17, 0),           // if r4 > r3 goto pass
        i(0x69, 5, 2, 12, 0),           // r5 = kind
        i(0x55, 5, 0, 15, 0x0008),      // if it is not IPv4 goto pass
        i(0x61, 5, 2, 30, 0),           // r5 = destination
        i(0x55, 5, 0, 13, 0x0200_000a), // if it is another goto pass
        i(0x18, 1, 2, 0, map),          // r1 = the map's value
        i(0, 0, 0, 0, 0),
        i(0x79, 0, 1, 0, 0), // packets
        i(0x07, 0, 0, 0, 1),
        i(0x7b, 1, 0, 0, 0),
        i(0x69, 5, 2, 16, 0), // bytes
        i(0xdc, 5, 0, 0, 16),
        i(0x79, 0, 1, 8, 0),
        i(0x0f, 0, 5, 0, 0),
        i(0x7b, 1, 0, 8, 0),
        i(0x71, 5, 2, 23, 0), // of UDP
        i(0x55, 5, 0, 1, 17),
        i(0x7a, 1, 0, 16, 1),
        i(0xb7, 0, 0, 0, 2), // pass
        i(0x95, 0, 0, 0, 0),
    ]
    .concat()
}

/// Nanoseconds for a packet, by size.
pub(crate) fn measure(program: Program, sizes: &[Vec<Vec<u8>>]) -> io::Result<Vec<f64>> {
    let mut map = [0; 128];
    for (at, number) in [2u32, 4, 24, 1].into_iter().enumerate() {
        put(&mut map, at * 4, &number.to_le_bytes());
    }
    let map = bpf(MAP_CREATE, &mut map)?;
    let code = program(map);
    let licence = c"GPL";
    let mut load = [0; 128];
    put(&mut load, 0, &6u32.to_le_bytes());
    put(&mut load, 4, &((code.len() / 8) as u32).to_le_bytes());
    put(&mut load, 8, &(code.as_ptr().addr() as u64).to_le_bytes());
    put(
        &mut load,
        16,
        &(licence.as_ptr().addr() as u64).to_le_bytes(),
    );
    let program = bpf(PROG_LOAD, &mut load)?;
    let mut times = Vec::new();
    for frames in sizes {
        let frame = &frames[0];
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let mut run = [0; 128];
            put(&mut run, 0, &program.to_le_bytes());
            put(&mut run, 8, &(frame.len() as u32).to_le_bytes());
            put(&mut run, 16, &(frame.as_ptr().addr() as u64).to_le_bytes());
            put(&mut run, 32, &REPEAT.to_le_bytes());
            bpf(TEST_RUN, &mut run)?;
            let each = u32::from_le_bytes([run[36], run[37], run[38], run[39]]);
            best = best.min(f64::from(each));
        }
        times.push(best);
    }
    Ok(times)
}
