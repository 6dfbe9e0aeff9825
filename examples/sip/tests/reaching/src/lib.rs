//! Safe code that reaches for the system through the standard library. It is refused for each function of the system that
//! it would call; none of it runs.
#![forbid(unsafe_code)]

use std::io::Read;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;
use std::{env, fs, io, process, thread};

mullion_sip::sip_main! {
    name: "reaching",
    main: main,
}

fn main(arguments: Vec<String>) -> io::Result<()> {
    match arguments.first().map_or("", String::as_str) {
        "thread" => drop(thread::spawn(|| ()).join()),
        "scope" => thread::scope(|scope| drop(scope.spawn(|| ()).join())),
        "sleep" => thread::sleep(Duration::from_secs(1)),
        "parallelism" => drop(thread::available_parallelism()?),
        "exit" => process::exit(0),
        "command" => drop(Command::new("/bin/true").status()?),
        "listen" => drop(TcpListener::bind("127.0.0.1:0")?.accept()?),
        "connect" => drop(TcpStream::connect("127.0.0.1:1")?),
        "datagram" => drop(UdpSocket::bind("127.0.0.1:0")?.send_to(&[0], "127.0.0.1:1")?),
        "pair" => drop(UnixStream::pair()?.0.read(&mut [0])?),
        "pipe" => drop(io::pipe()?),
        "make" => fs::create_dir("/tmp/reaching")?,
        "list" => drop(fs::read_dir("/")?.count()),
        "remove" => fs::remove_file("/tmp/reaching")?,
        "rename" => fs::rename("/tmp/reaching", "/tmp/reached")?,
        "link" => fs::hard_link("/tmp/reaching", "/tmp/reached")?,
        "symlink" => std::os::unix::fs::symlink("/tmp/reaching", "/tmp/reached")?,
        "mode" => fs::set_permissions("/tmp/reaching", fs::metadata("/tmp")?.permissions())?,
        "directory" => env::set_current_dir("/")?,
        "environment" => drop(env::vars_os().count()),
        _ => {}
    }
    Ok(())
}
