//! The program at an interface that gives each frame to our socket, and its map of that socket, by bpf(2).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const PROGRAM_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;

/// Kinds of maps, programs and places, and the generic mode (`XDP_FLAGS_SKB_MODE`).
const MAP_OF_SOCKETS: u32 = 17;
const PROGRAM_OF_XDP: u32 = 6;
const AT_XDP: u32 = 37;
const GENERIC: u32 = 2;

/// The attributes of a call of bpf(2).
#[repr(C, align(8))]
struct Attributes([u8; 128]);

impl Attributes {
    fn new(numbers: &[(usize, u32)], addresses: &[(usize, u64)]) -> Attributes {
        let mut all = Attributes([0; 128]);
        for &(at, number) in numbers {
            all.0[at..at + 4].copy_from_slice(&number.to_ne_bytes());
        }
        for &(at, address) in addresses {
            all.0[at..at + 8].copy_from_slice(&address.to_ne_bytes());
        }
        all
    }
}

/// What the attributes name must be there.
unsafe fn bpf(command: libc::c_int, attributes: &mut Attributes) -> io::Result<libc::c_int> {
    let size = size_of::<Attributes>();
    // SAFETY: by the contract above; their size is told.
    match unsafe { libc::syscall(libc::SYS_bpf, command, attributes.0.as_mut_ptr(), size) } {
        result @ 0.. => Ok(result as libc::c_int),
        _ => Err(io::Error::last_os_error()),
    }
}

/// As [`bpf`], for what is a descriptor.
unsafe fn made(command: libc::c_int, attributes: &mut Attributes) -> io::Result<OwnedFd> {
    // SAFETY: by the same contract. The descriptor was just made, and nobody else has it.
    unsafe { Ok(OwnedFd::from_raw_fd(bpf(command, attributes)?)) }
}

fn instruction(code: u8, to: u8, from: u8, offset: i16, number: i32) -> [u8; 8] {
    let mut bytes = [code, from << 4 | to, 0, 0, 0, 0, 0, 0];
    bytes[2..4].copy_from_slice(&offset.to_ne_bytes());
    bytes[4..].copy_from_slice(&number.to_ne_bytes());
    bytes
}

/// `return redirect(map, the queue it came in by, or else pass)`.
fn program(map: &OwnedFd) -> Vec<u8> {
    let i = instruction;
    [
        i(0x61, 2, 1, 16, 0),              // r2 = the queue
        i(0x18, 1, 1, 0, map.as_raw_fd()), // r1 = the map
        i(0, 0, 0, 0, 0),
        i(0xb7, 3, 0, 0, 2),  // r3 = pass, if the map has none
        i(0x85, 0, 0, 0, 51), // bpf_redirect_map
        i(0x95, 0, 0, 0, 0),  // its answer
    ]
    .concat()
}

/// Has every frame of the interface's first queue go to the socket, as long as what this gives is there.
///
/// # Errors
/// The system's: no right to it, or another program is there.
pub(super) fn to_interface(socket: &OwnedFd, interface: u32) -> io::Result<OwnedFd> {
    let mut map = Attributes::new(&[(0, MAP_OF_SOCKETS), (4, 4), (8, 4), (12, 1)], &[]);
    // SAFETY: the attributes are numbers.
    let map = unsafe { made(MAP_CREATE, &mut map) }?;
    let (key, value) = (0u32, socket.as_raw_fd() as u32);
    let address = |number: &u32| std::ptr::from_ref(number).addr() as u64;
    let mut update = Attributes::new(
        &[(0, map.as_raw_fd() as u32)],
        &[(8, address(&key)), (16, address(&value))],
    );
    // SAFETY: the key and the value are there, of the sizes that the map has.
    unsafe { bpf(MAP_UPDATE, &mut update) }?;
    let code = program(&map);
    let licence = c"Dual MIT/GPL";
    let mut load = Attributes::new(
        &[(0, PROGRAM_OF_XDP), (4, (code.len() / 8) as u32)],
        &[
            (8, code.as_ptr().addr() as u64),
            (16, licence.as_ptr().addr() as u64),
        ],
    );
    // SAFETY: the code and the licence are there, and how long the code is is told.
    let program = unsafe { made(PROGRAM_LOAD, &mut load) }?;
    let numbers = [
        (0, program.as_raw_fd() as u32),
        (4, interface),
        (8, AT_XDP),
        (12, GENERIC),
    ];
    // SAFETY: the attributes are numbers.
    unsafe { made(LINK_CREATE, &mut Attributes::new(&numbers, &[])) }
}
