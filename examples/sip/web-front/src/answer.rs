//! What an answer says before the file.

/// The head of an answer with a file of that many bytes.
pub(crate) fn head(number: u16, path: &str, size: u64, keep: bool) -> String {
    let kind = kind(path);
    let reason = reason(number);
    let connection = connection(keep);
    format!(
        "HTTP/1.1 {number} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {size}\r\n\
         X-Content-Type-Options: nosniff\r\n{connection}\r\n"
    )
}

/// A whole answer without a file.
pub(crate) fn status(number: u16, keep: bool, head_only: bool) -> String {
    let (reason, connection) = (reason(number), connection(keep));
    let allow = if number == 405 {
        "Allow: GET, HEAD\r\n"
    } else {
        ""
    };
    let text = format!("{number} {reason}\n");
    let body = if head_only { "" } else { &text };
    format!(
        "HTTP/1.1 {number} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {}\r\n{allow}{connection}\r\n{body}",
        text.len()
    )
}

fn connection(keep: bool) -> &'static str {
    if keep { "" } else { "Connection: close\r\n" }
}

fn reason(number: u16) -> &'static str {
    match number {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        414 => "URI Too Long",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Unknown",
    }
}

fn kind(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        // A directory's index.
        "" if name.is_empty() => "text/html; charset=utf-8",
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "txt" | "md" => "text/plain; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "json" => "application/json",
        _ => "application/octet-stream",
    }
}
