//! The two programs as plain processes of Linux, which talk over socket pairs: a request is 16 bytes, an answer its
//! length and its bytes. The client (or the sink) is this program.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::mix::{Mix, sizes};
use crate::work::{Device, Kind, MOST, Table, Watch, Work, numbers, sort, sum, weigh};
use crate::{Processors, Took};

/// By which a program knows that it is one of them.
const ARGUMENT: &str = "--plain";

/// A channel's end.
struct End(File);

impl End {
    fn ask(&mut self, what: u64, amount: u64) -> io::Result<()> {
        let mut request = [0; 16];
        request[..8].copy_from_slice(&what.to_le_bytes());
        request[8..].copy_from_slice(&amount.to_le_bytes());
        self.0.write_all(&request)
    }

    /// The next request; none at the end.
    fn asked(&mut self) -> io::Result<Option<(u64, u64)>> {
        let mut request = [0; 16];
        match self.0.read_exact(&mut request) {
            Ok(()) => {
                let (what, amount) = request.split_at(8);
                let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight"));
                Ok(Some((number(what), number(amount))))
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Its length goes in front.
    fn answer(&mut self, buffer: &mut Vec<u8>, bytes: &[u8]) -> io::Result<()> {
        buffer.clear();
        buffer.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        buffer.extend_from_slice(bytes);
        self.0.write_all(buffer)
    }

    fn answered<'a>(&mut self, buffer: &'a mut [u8]) -> io::Result<&'a mut [u8]> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length)?;
        let bytes = &mut buffer[..u32::from_le_bytes(length) as usize];
        self.0.read_exact(bytes)?;
        Ok(bytes)
    }
}

/// Whether this program was started to be one of the processes.
pub(crate) fn is_one(arguments: &[String]) -> bool {
    arguments.first().is_some_and(|first| first == ARGUMENT)
}

/// Is it: requests come by the standard input, and the process behind it is asked by the standard output.
pub(crate) fn be(arguments: &[String]) -> io::Result<()> {
    let client = End(File::from(io::stdin().as_fd().try_clone_to_owned()?));
    let behind = End(File::from(io::stdout().as_fd().try_clone_to_owned()?));
    match [&*arguments[1], &*arguments[2]] {
        ["first", "files-true"] => device::<true>(client),
        ["first", "files-false"] => device::<false>(client),
        ["second", "files-true"] => files::<true>(client, behind),
        ["second", "files-false"] => files::<false>(client, behind),
        ["first", _] => source(client),
        ["second", "sort-true"] => sorter::<true>(client, behind),
        _ => sorter::<false>(client, behind),
    }
}

pub(crate) fn run(work: Work, processors: Processors) -> Took {
    let all = sched_getaffinity(None).expect("of this thread");
    if processors == Processors::One {
        let mut one = CpuSet::new();
        let first = (0..CpuSet::MAX_CPU).find(|number| all.is_set(*number));
        one.set(first.expect("a processor"));
        sched_setaffinity(None, &one).expect("less than before");
    }
    let took = measure(work).expect("sockets work");
    sched_setaffinity(None, &all).expect("as before");
    took
}

fn measure(work: Work) -> io::Result<Took> {
    let (first, second) = (pair()?, pair()?);
    let kind = match work.kind {
        Kind::Files => "files",
        Kind::Compute => "sort",
    };
    let what = format!("{kind}-{}", work.checked);
    let children = [
        start("first", &what, first.1, Stdio::null())?,
        start("second", &what, second.1, first.0.into())?,
    ];
    let end = End(File::from(second.0));
    let took = match (work.kind, work.checked) {
        (Kind::Files, true) => client::<true>(end, work.count),
        (Kind::Files, false) => client::<false>(end, work.count),
        (Kind::Compute, true) => sink::<true>(end, work.count),
        (Kind::Compute, false) => sink::<false>(end, work.count),
    };
    // They end as their clients do.
    for mut child in children {
        assert!(child.wait()?.success());
    }
    took
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    Ok(socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        flags,
        None,
    )?)
}

fn start(place: &str, what: &str, client: OwnedFd, behind: Stdio) -> io::Result<Child> {
    Command::new("/proc/self/exe")
        .args([ARGUMENT, place, what])
        .stdin(client)
        .stdout(behind)
        .spawn()
}

fn device<const CHECKED: bool>(mut client: End) -> io::Result<()> {
    let (device, mut buffer) = (Device::new(), Vec::new());
    while let Some((first, count)) = client.asked()? {
        client.answer(&mut buffer, device.read::<CHECKED>(first, count))?;
    }
    Ok(())
}

fn files<const CHECKED: bool>(mut client: End, mut device: End) -> io::Result<()> {
    let (table, mut room, mut buffer) = (Table::new(), vec![0; MOST], Vec::new());
    while let Some((file, offset)) = client.asked()? {
        let (first, count, bytes) = table.plan::<CHECKED>(file, offset);
        device.ask(first, count)?;
        let data = device.answered(&mut room)?;
        client.answer(&mut buffer, &data[..bytes])?;
    }
    Ok(())
}

fn client<const CHECKED: bool>(mut files: End, count: u64) -> io::Result<Took> {
    let (sizes, mut mix, mut total) = (sizes(), Mix::new(), 0);
    let mut room = vec![0; MOST];
    files.ask(0, 0)?;
    files.answered(&mut room)?;
    let mut watch = Watch::start(count);
    for _ in 0..count {
        let file = mix.next();
        for offset in (0..sizes[file]).step_by(MOST) {
            files.ask(file as u64, offset)?;
            total = sum::<CHECKED>(total, files.answered(&mut room)?);
        }
        watch.tick();
    }
    Ok(took(watch, total))
}

fn took(watch: Watch, sum: u64) -> Took {
    Took {
        batches: watch.batches,
        sum,
    }
}

/// Blocks by number.
fn source(mut client: End) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some((block, _)) = client.asked()? {
        let values: Vec<u64> = numbers(block).collect();
        client.answer(&mut buffer, &to_bytes(&values))?;
    }
    Ok(())
}

fn sorter<const CHECKED: bool>(mut client: End, mut source: End) -> io::Result<()> {
    let (mut room, mut buffer) = (vec![0; MOST], Vec::new());
    while let Some((block, _)) = client.asked()? {
        source.ask(block, 0)?;
        let mut values = from_bytes(source.answered(&mut room)?);
        sort::<CHECKED>(&mut values);
        client.answer(&mut buffer, &to_bytes(&values))?;
    }
    Ok(())
}

fn sink<const CHECKED: bool>(mut blocks: End, count: u64) -> io::Result<Took> {
    let (mut room, mut total) = (vec![0; MOST], 0);
    let mut watch = Watch::start(count);
    for block in 0..count {
        blocks.ask(block, 0)?;
        total = weigh::<CHECKED>(total, &from_bytes(blocks.answered(&mut room)?));
        watch.tick();
    }
    Ok(took(watch, total))
}

fn to_bytes(values: &[u64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn from_bytes(bytes: &[u8]) -> Vec<u64> {
    let eight = bytes.chunks_exact(8);
    eight
        .map(|eight| u64::from_le_bytes(eight.try_into().expect("eight")))
        .collect()
}
