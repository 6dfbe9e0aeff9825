//! HTTP for one page on the loopback interface.
//!
//! Whoever knows the address may ask, so it has 128 random bits. A page from elsewhere cannot learn it. It cannot use a
//! name of its own for 127.0.0.1 either (DNS rebinding): the `Host` must be the address that is served.

use anyhow::Context as _;
use serde_json::{Value, json};
use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use tiny_http::{Header, Method, Request, Response};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// The most bytes of a question.
const BODY: u64 = 4 << 20;
/// How many questions are answered at once.
const WORKERS: usize = 2;

pub(super) struct Server {
    inner: tiny_http::Server,
    address: SocketAddr,
    secret: String,
}

/// What answers a question: `None` if there is no such question.
pub(super) type Answer<'a> = dyn Fn(&str, &[u8]) -> Option<anyhow::Result<Value>> + Sync + 'a;

impl Server {
    pub(super) fn new(port: u16) -> anyhow::Result<Self> {
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let failed = |error| anyhow::anyhow!("{wanted}: {error}");
        let inner = tiny_http::Server::http(wanted).map_err(failed)?;
        let address = inner.server_addr().to_ip();
        let mut random = [0u8; 16];
        getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("randomness: {error}"))?;
        Ok(Server {
            inner,
            address: address.context("no address")?,
            secret: random.iter().map(|byte| format!("{byte:02x}")).collect(),
        })
    }

    /// Where the page is.
    pub(super) fn address(&self) -> String {
        format!("http://{}/{}/", self.address, self.secret)
    }

    /// Answers until the process ends.
    pub(super) fn serve(&self, answer: &Answer<'_>) -> anyhow::Result<ExitCode> {
        std::thread::scope(|scope| {
            let work = || loop {
                let mut request = self.inner.recv()?;
                let response = self.respond(&mut request, answer);
                // Whoever has gone needs no answer.
                let _ = request.respond(response);
            };
            let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
            for worker in workers {
                let ended: std::thread::Result<std::io::Result<ExitCode>> = worker.join();
                if let Ok(Err(error)) = ended {
                    return Err(error).context("the page is served no longer");
                }
            }
            anyhow::bail!("the page is served no longer")
        })
    }

    fn respond(
        &self,
        request: &mut Request,
        answer: &Answer<'_>,
    ) -> Response<std::io::Cursor<Vec<u8>>> {
        if !self.is_meant(request) {
            return page(404, "text/plain", b"There is nothing here.\n".to_vec());
        }
        let url = request.url().to_owned();
        let path = url
            .strip_prefix(&format!("/{}/", self.secret))
            .unwrap_or_default();
        let found = match (request.method(), path) {
            (Method::Get, "") => Some(("text/html; charset=utf-8", PAGE)),
            (Method::Get, "page.css") => Some(("text/css; charset=utf-8", STYLE)),
            (Method::Get, "page.js") => Some(("text/javascript; charset=utf-8", SCRIPT)),
            (Method::Post, _) => None,
            _ => return page(404, "text/plain", b"There is nothing here.\n".to_vec()),
        };
        if let Some((kind, text)) = found {
            return page(200, kind, text.into());
        }
        let mut body = Vec::new();
        let (status, said) = match request.as_reader().take(BODY).read_to_end(&mut body) {
            Err(error) => (400, json!({ "error": error.to_string() })),
            Ok(_) => match answer(path, &body) {
                None => (404, json!({ "error": "there is no such question" })),
                Some(Ok(said)) => (200, said),
                Some(Err(error)) => (400, json!({ "error": format!("{error:#}") })),
            },
        };
        page(status, "application/json", said.to_string().into_bytes())
    }

    /// Whether a request is for this server, by its own address, and by somebody who was told it.
    fn is_meant(&self, request: &Request) -> bool {
        let mut hosts = request
            .headers()
            .iter()
            .filter(|header| header.field.equiv("Host"));
        let host = hosts.next().map(|header| header.value.as_str().to_owned());
        host == Some(self.address.to_string())
            && hosts.next().is_none()
            && request.url().starts_with(&format!("/{}/", self.secret))
    }
}

fn page(status: u16, kind: &str, bytes: Vec<u8>) -> Response<std::io::Cursor<Vec<u8>>> {
    let headers = [
        ("Content-Type", kind),
        (
            "Content-Security-Policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'",
        ),
        ("Referrer-Policy", "no-referrer"),
        ("X-Content-Type-Options", "nosniff"),
        ("Cache-Control", "no-store"),
    ];
    let response = Response::from_data(bytes).with_status_code(status);
    headers
        .into_iter()
        .filter_map(|(name, value)| Header::from_bytes(name, value).ok())
        .fold(response, Response::with_header)
}
