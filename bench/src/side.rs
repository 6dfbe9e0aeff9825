//! What is measured beside the table: requests to another process, the time to load
//! an image, the verifier's speed.

use crate::builder::Builder;
use crate::column::Column;
use crate::elf;
use crate::measure::Case;
use crate::results::{Load, Request, Verifier};
use crate::stats;
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

/// How work is reached: the argument to `peers/process.c`, and the words for it.
const WAYS: [(&str, &str); 3] = [
    ("call", "a plain call, no wall"),
    ("shared", "a process, shared memory"),
    ("pipe", "a process, pipes"),
];

/// Requests in one run.
const COUNT: u64 = 10_000;

/// Bytes of one request.
const REQUESTS: [u64; 2] = [64, 4096];

/// Runs `peers/process.c` in each of its ways.
pub(crate) fn requests(builder: &Builder, quick: bool) -> Result<Vec<Request>> {
    let program = builder.build.join("process");
    let built = Command::new("gcc")
        .args(["-O2", "-I"])
        .arg(builder.bench.join("workloads"))
        .arg(builder.bench.join("peers/process.c"))
        .arg("-o")
        .arg(&program)
        .status()
        .context("building peers/process.c")?;
    if !built.success() {
        bail!("peers/process.c cannot be built");
    }
    let mut requests = Vec::new();
    for request_bytes in REQUESTS {
        let mut checksum = None;
        for (argument, way) in WAYS {
            let mut times = Vec::new();
            for _ in 0..rounds(quick) {
                let (sum, nanoseconds) = request(&program, argument, request_bytes)?;
                times.push(nanoseconds / COUNT as f64);
                if *checksum.get_or_insert(sum.clone()) != sum {
                    bail!("the work behind `{argument}` had another result");
                }
            }
            let nanoseconds = stats::median(&times).unwrap_or_default();
            requests.push(Request {
                way: way.to_owned(),
                request_bytes,
                nanoseconds,
            });
        }
    }
    Ok(requests)
}

fn request(program: &Path, way: &str, bytes: u64) -> Result<(String, f64)> {
    let out = Command::new(program)
        .args([way, &bytes.to_string(), &COUNT.to_string()])
        .output()?;
    let line = String::from_utf8_lossy(&out.stdout).into_owned();
    let (sum, time) = line
        .trim()
        .split_once(' ')
        .with_context(|| format!("process {way}: {}", out.status))?;
    Ok((sum.to_owned(), time.parse()?))
}

/// From start to end with no iteration at all, for a small program and the biggest.
pub(crate) fn loads(cases: &[Case], quick: bool) -> Result<Vec<Load>> {
    let mut loads = Vec::new();
    for name in ["fib", "sqlite"] {
        for case in cases.iter().filter(|case| case.workload.name == name) {
            for (column, program) in &case.programs {
                if case
                    .cells
                    .get(column)
                    .is_some_and(|cell| cell.error.is_some())
                {
                    continue;
                }
                let (first, rest) = program.command.split_first().context("an empty command")?;
                let arguments: Vec<&OsStr> = rest
                    .iter()
                    .map(AsRef::as_ref)
                    .chain([OsStr::new("0")])
                    .collect();
                let seconds = wall_clock(first, &arguments, rounds(quick) * 3)?;
                let image_bytes = fs::metadata(&program.image).map_or(0, |data| data.len());
                loads.push(Load {
                    workload: name.to_owned(),
                    column: *column,
                    image_bytes,
                    milliseconds: seconds * 1e3,
                });
            }
        }
    }
    Ok(loads)
}

/// The verifier on the biggest image, in this process and from memory.
pub(crate) fn verifier(cases: &[Case], quick: bool) -> Result<Option<Verifier>> {
    let images = cases.iter().filter_map(|case| {
        let image = &case.programs.get(&Column::ReadWriteCall)?.image;
        Some((
            elf::code_bytes(image).ok()?,
            case.workload.name.clone(),
            image,
        ))
    });
    let Some((code_bytes, workload, image)) = images.max_by_key(|(bytes, ..)| *bytes) else {
        return Ok(None);
    };
    let bytes = fs::read(image)?;
    let median = verification(bytes.into(), rounds(quick) * 5)
        .with_context(|| image.display().to_string())?;
    Ok(Some(Verifier {
        workload,
        code_bytes,
        megabytes_per_second: code_bytes as f64 / 1e6 / median,
    }))
}

/// The median time in seconds of verifying an image, which must pass.
fn verification(image: Arc<[u8]>, rounds: usize) -> Result<f64> {
    let mut seconds = Vec::new();
    for _ in 0..rounds {
        let start = Instant::now();
        let verified = mullion_verifier::verify(Arc::clone(&image));
        seconds.push(start.elapsed().as_secs_f64());
        if let Err(rejected) = verified {
            bail!("the verifier rejects it: {rejected}");
        }
    }
    stats::median(&seconds).context("no time was taken")
}

fn rounds(quick: bool) -> usize {
    if quick { 3 } else { 5 }
}

/// The median time in seconds from starting a program to its end.
fn wall_clock(program: &OsStr, arguments: &[&OsStr], times: usize) -> Result<f64> {
    let mut seconds = Vec::new();
    for _ in 0..times {
        let start = Instant::now();
        let status = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        if !status.success() {
            bail!("{} {arguments:?}: {status}", Path::new(program).display());
        }
        seconds.push(start.elapsed().as_secs_f64());
    }
    stats::median(&seconds).context("no time was taken")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejected_image_is_an_error_and_no_speed() {
        let no_image: Arc<[u8]> = vec![0xf4; 4096].into();
        let error = verification(no_image, 1).expect_err("no image");
        assert!(error.to_string().contains("rejects"), "{error}");
    }
}
