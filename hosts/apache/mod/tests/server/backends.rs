//! Backends of proxies on loopback, which answer each request the same.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Mutex;

/// Starts one, which ends with the process; its port.
pub(crate) fn start(kind: &str, root: &Path) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let serve: fn(TcpStream) -> Option<()> = match kind {
        "ajp" => ajp,
        "bad-ajp" => bad_ajp,
        "fcgi" => fcgi,
        "well" => well,
        "scgi" => scgi,
        "redis" => redis,
        "memcache" => memcache,
        "says" => says,
        "http" => http,
        "uwsgi" => uwsgi,
        "ldap" => crate::directory::serve,
        "ftp" => crate::files::serve,
        "ws" => ws,
        // Its port is a name alone.
        "passed" => {
            crate::files::passed(root, port);
            says
        }
        other => panic!("{other}"),
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    port
}

/// Whoever comes is told something at once.
fn says(mut stream: TcpStream) -> Option<()> {
    stream.write_all(b"from the other side\n").ok()
}

/// Becomes a tunnel, by which it says something.
fn ws(mut stream: TcpStream) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let [byte] = bytes::<1>(&mut stream)?;
        head.push(byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let line = head.lines().next()?;
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n\r\nin the tunnel: {line}"
    );
    stream.write_all(answer.as_bytes()).ok()
}

/// Requests of HTTP/1.1, one after the other. What was asked for is in the answer.
fn http(mut stream: TcpStream) -> Option<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let [byte] = bytes::<1>(&mut stream)?;
            head.push(byte);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut lines = head.lines();
        let line = lines.next()?.to_owned();
        let length = lines.find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            let is_it = name.eq_ignore_ascii_case("content-length");
            is_it.then(|| value.parse::<u16>().ok()).flatten()
        });
        let [high, low] = length.unwrap_or(0).to_be_bytes();
        let asked = body(&mut stream, high, low)?;
        let asked = String::from_utf8_lossy(&asked).into_owned();
        let answer = match line.split(' ').nth(1)? {
            "/none" => "HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\nnone".to_owned(),
            "/chunked" => {
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\n\r\n"
                    .to_owned()
            }
            _ => {
                let text = format!("{line} with {asked:?}");
                let (length, text) = match line.starts_with("HEAD") {
                    true => (text.len(), String::new()),
                    false => (text.len(), text),
                };
                format!(
                    "HTTP/1.1 201 Made\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{text}"
                )
            }
        };
        stream.write_all(answer.as_bytes()).ok()?;
    }
}

/// One request of uwsgi: a head of four bytes with the length of the variables.
fn uwsgi(mut stream: TcpStream) -> Option<()> {
    let [_, low, high, _] = bytes::<4>(&mut stream)?;
    let variables = body(&mut stream, high, low)?;
    let text = String::from_utf8_lossy(&variables).into_owned();
    let is_query = text.contains("query");
    let answer = format!(
        "HTTP/1.1 201 Made\r\nContent-Type: text/plain\r\nX-Query: {is_query}\r\n\r\nfrom uwsgi"
    );
    stream.write_all(answer.as_bytes()).ok()
}

fn bytes<const COUNT: usize>(stream: &mut TcpStream) -> Option<[u8; COUNT]> {
    let mut read = [0; COUNT];
    stream.read_exact(&mut read).ok()?;
    Some(read)
}

fn body(stream: &mut TcpStream, high: u8, low: u8) -> Option<Vec<u8>> {
    let mut read = vec![0; usize::from(high) << 8 | usize::from(low)];
    stream.read_exact(&mut read).ok()?;
    Some(read)
}

fn message(stream: &mut TcpStream, payload: &[u8]) -> Option<()> {
    let length = u16::try_from(payload.len()).ok()?.to_be_bytes();
    let whole = [b"AB", &length[..], payload].concat();
    stream.write_all(&whole).ok()
}

/// Requests of the Apache JServ Protocol, one after the other.
fn ajp(mut stream: TcpStream) -> Option<()> {
    loop {
        let [_, _, high, low] = bytes::<4>(&mut stream)?;
        let request = body(&mut stream, high, low)?;
        if request.first() != Some(&2) {
            continue;
        }
        // Status 201, one field: its code is Content-Type's.
        message(
            &mut stream,
            b"\x04\x00\xc9\x00\x04Made\x00\x00\x01\xa0\x01\x00\x0atext/plain\x00",
        )?;
        message(&mut stream, b"\x03\x00\x08from ajp\x00")?;
        message(&mut stream, b"\x05\x01")?;
    }
}

/// Behind the fields of an answer comes a message that is four bytes longer than the buffer for it (CVE-2026-28780).
fn bad_ajp(mut stream: TcpStream) -> Option<()> {
    const BUFFER: usize = 8192;
    let [_, _, high, low] = bytes::<4>(&mut stream)?;
    let _request = body(&mut stream, high, low)?;
    message(
        &mut stream,
        b"\x04\x00\xc9\x00\x04Made\x00\x00\x01\xa0\x01\x00\x0atext/plain\x00",
    )?;
    let mut whole = vec![b'Z'; BUFFER];
    whole[..3].copy_from_slice(b"\x03\x1f\xfc");
    message(&mut stream, &whole)?;
    let _until_it_ends = stream.read(&mut [0]);
    Some(())
}

/// One request of FastCGI.
fn fcgi(stream: TcpStream) -> Option<()> {
    answer(
        stream,
        b"Status: 201 Made\r\nContent-Type: text/plain\r\n\r\nfrom fcgi",
    )
}

/// One that is told that all is well.
fn well(stream: TcpStream) -> Option<()> {
    // An authorizer gets no body: its variables are the last that it is sent.
    answer_behind(4, stream, b"Status: 200 OK\r\nVariable-SEEN: yes\r\n\r\n")
}

fn answer(stream: TcpStream, text: &[u8]) -> Option<()> {
    const INPUT: u8 = 5;
    answer_behind(INPUT, stream, text)
}

/// Answers when the last record of a kind has come, which is empty.
fn answer_behind(last: u8, mut stream: TcpStream, text: &[u8]) -> Option<()> {
    loop {
        let [_, kind, _, _, high, low, padding, _] = bytes::<8>(&mut stream)?;
        let _content = body(&mut stream, high, low)?;
        let _padding = body(&mut stream, 0, padding)?;
        if kind == last && high == 0 && low == 0 {
            break;
        }
    }
    let mut answer = vec![1, 6, 0, 1, 0, text.len() as u8, 0, 0];
    answer.extend_from_slice(text);
    answer.extend_from_slice(&[1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    stream.write_all(&answer).ok()
}

/// One request of SCGI: the fields are a string with its length before it.
fn scgi(mut stream: TcpStream) -> Option<()> {
    let mut length = 0;
    loop {
        let [digit] = bytes::<1>(&mut stream)?;
        match digit {
            b':' => break,
            digit => length = 10 * length + usize::from(digit.wrapping_sub(b'0')),
        }
    }
    let mut fields = vec![0; length + 1];
    stream.read_exact(&mut fields).ok()?;
    let text = b"Status: 201 Made\r\nContent-Type: text/plain\r\n\r\nfrom scgi";
    stream.write_all(text).ok()
}

type Store = Mutex<Option<HashMap<Vec<u8>, Vec<u8>>>>;

fn line(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n") {
        text.push(bytes::<1>(stream)?[0]);
    }
    text.truncate(text.len() - 2);
    String::from_utf8(text).ok()
}

/// A word or a value, and the end of its line.
fn exactly(stream: &mut TcpStream, length: usize) -> Option<Vec<u8>> {
    let mut value = vec![0; length + 2];
    stream.read_exact(&mut value).ok()?;
    value.truncate(length);
    Some(value)
}

/// Commands of Redis that the cache uses.
fn redis(mut stream: TcpStream) -> Option<()> {
    static STORE: Store = Mutex::new(None);
    loop {
        let count: usize = line(&mut stream)?.strip_prefix('*')?.parse().ok()?;
        let mut words = Vec::new();
        for _ in 0..count {
            let length = line(&mut stream)?.strip_prefix('$')?.parse().ok()?;
            words.push(exactly(&mut stream, length)?);
        }
        let mut store = STORE.lock().ok()?;
        let store = store.get_or_insert_default();
        let answer = match (words.first()?.to_ascii_uppercase().as_slice(), words.get(1)) {
            (b"SETEX" | b"SET", Some(key)) => {
                store.insert(key.clone(), words.last()?.clone());
                b"+OK\r\n".to_vec()
            }
            (b"GET", Some(key)) => match store.get(key) {
                Some(value) => {
                    let head = format!("${}\r\n", value.len());
                    [head.as_bytes(), value, b"\r\n"].concat()
                }
                None => b"$-1\r\n".to_vec(),
            },
            (b"DEL", Some(key)) => {
                format!(":{}\r\n", usize::from(store.remove(key).is_some())).into()
            }
            (b"PING", _) => b"+PONG\r\n".to_vec(),
            _ => b"+OK\r\n".to_vec(),
        };
        stream.write_all(&answer).ok()?;
    }
}

/// Commands of memcached that the cache uses.
fn memcache(mut stream: TcpStream) -> Option<()> {
    static STORE: Store = Mutex::new(None);
    loop {
        let command = line(&mut stream)?;
        let words: Vec<&str> = command.split(' ').collect();
        let key = || words.get(1).map(|key| key.as_bytes().to_vec());
        let answer = match words[0] {
            "set" => {
                let value = exactly(&mut stream, words.get(4)?.parse().ok()?)?;
                STORE
                    .lock()
                    .ok()?
                    .get_or_insert_default()
                    .insert(key()?, value);
                b"STORED\r\n".to_vec()
            }
            "get" => match STORE.lock().ok()?.get_or_insert_default().get(&key()?) {
                Some(value) => {
                    let head = format!("VALUE {} 0 {}\r\n", words[1], value.len());
                    [head.as_bytes(), value, b"\r\nEND\r\n"].concat()
                }
                None => b"END\r\n".to_vec(),
            },
            "delete" => b"DELETED\r\n".to_vec(),
            _ => b"VERSION 1.6.0\r\n".to_vec(),
        };
        stream.write_all(&answer).ok()?;
    }
}
