//! The head of an HTTP/1.1 request, read strictly (RFC 9110, RFC 9112): what two readers could understand in two ways
//! is refused.

/// Bytes of a head at most.
pub(crate) const LONGEST: usize = 8 << 10;
/// Bytes of a path at most.
const LONGEST_PATH: usize = 1 << 10;

/// What some bytes are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Parsed {
    /// The beginning of a request.
    More,
    /// A request, and perhaps the beginning of the next.
    Request(Request),
    /// None that is answered with more than this status.
    Bad(u16),
}

/// A request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    /// HEAD, and not GET.
    pub(crate) head_only: bool,
    /// Whether the connection may be used again.
    pub(crate) keep: bool,
    /// The path without its `/` in front, decoded: without empty parts but the last, `.` and `..`.
    pub(crate) path: String,
    /// Bytes of the head.
    pub(crate) used: usize,
}

/// Reads the bytes that a client has sent so far.
pub(crate) fn parse(bytes: &[u8]) -> Parsed {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    match end {
        Some(end) if end + 4 <= LONGEST => match head(&bytes[..end]) {
            Ok(request) => Parsed::Request(Request {
                used: end + 4,
                ..request
            }),
            Err(status) => Parsed::Bad(status),
        },
        None if bytes.len() < LONGEST => Parsed::More,
        _ => Parsed::Bad(431),
    }
}

fn head(bytes: &[u8]) -> Result<Request, u16> {
    let text = std::str::from_utf8(bytes).map_err(|_| 400u16)?;
    let mut lines = text.split("\r\n");
    let (head_only, target, minor) = request_line(lines.next().unwrap_or_default())?;
    let mut hosts = 0;
    let mut keep = minor == 1;
    for line in lines {
        let (name, value) = field(line)?;
        match &*name {
            "host" => hosts += 1,
            "content-length" if value != "0" => return Err(413),
            "transfer-encoding" => return Err(501),
            "connection" => {
                for option in value.split(',').map(str::trim) {
                    keep = match option {
                        _ if option.eq_ignore_ascii_case("close") => false,
                        _ if option.eq_ignore_ascii_case("keep-alive") => true,
                        _ => keep,
                    };
                }
            }
            _ => {}
        }
    }
    if hosts > 1 || (hosts == 0 && minor == 1) {
        return Err(400);
    }
    Ok(Request {
        head_only,
        keep,
        path: path(target)?,
        used: 0,
    })
}

/// Whether it is HEAD, the target, and the minor version.
fn request_line(line: &str) -> Result<(bool, &str, u8), u16> {
    let words: Vec<&str> = line.split(' ').collect();
    let [method, target, version] = words[..] else {
        return Err(400);
    };
    let minor = match version {
        "HTTP/1.1" => 1,
        "HTTP/1.0" => 0,
        _ if version.starts_with("HTTP/") => return Err(505),
        _ => return Err(400),
    };
    match method {
        "GET" => Ok((false, target, minor)),
        "HEAD" => Ok((true, target, minor)),
        _ if !method.is_empty() && method.bytes().all(is_token) => Err(405),
        _ => Err(400),
    }
}

/// A field's name in small letters, and its value.
fn field(line: &str) -> Result<(String, &str), u16> {
    let (name, value) = line.split_once(':').ok_or(400u16)?;
    // Neither an empty name, nor a space before the colon or in front of the line.
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(400);
    }
    let value = value.trim_matches([' ', '\t']);
    if value
        .bytes()
        .any(|byte| byte.is_ascii_control() && byte != b'\t')
    {
        return Err(400);
    }
    Ok((name.to_ascii_lowercase(), value))
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Of a target in one of the two forms that name a file.
fn path(target: &str) -> Result<String, u16> {
    let target = match target.strip_prefix("http://") {
        None => target,
        Some(rest) => rest.find('/').map_or("/", |slash| &rest[slash..]),
    };
    let path = target.split('?').next().unwrap_or_default();
    let path = path.strip_prefix('/').ok_or(400u16)?;
    if path.len() > LONGEST_PATH {
        return Err(414);
    }
    let path = decode(path).ok_or(400u16)?;
    let control = |letter: char| letter.is_control() || letter == '\\';
    let mut parts: Vec<&str> = path.split('/').collect();
    // A path may end with a `/`, or be nothing else.
    if parts.last() == Some(&"") {
        parts.pop();
    }
    let strange = |part: &&str| matches!(*part, "" | "." | "..");
    if path.contains(control) || parts.iter().any(strange) {
        return Err(400);
    }
    Ok(path)
}

/// `%20` and the like.
fn decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => digit(bytes.next()?)? << 4 | digit(bytes.next()?)?,
            other => other,
        });
    }
    String::from_utf8(decoded).ok()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}
