//! `mullion sip check`: a library's manifest, and whether this host takes it.

use crate::output::{outln, sayln};
use std::path::PathBuf;
use std::process::ExitCode;

use mullion_sip_host::SipImage;

/// Print a library's manifest, and say whether this host takes it. None of its code runs.
#[derive(clap::Args)]
#[command(after_help = "Exit status:
  0 when this host takes every library; 1 when it refuses one, with the reason on standard error;
  2 for bad usage.

Example:\n  mullion sip check target/release/libdisk.so")]
pub(crate) struct Args {
    /// The libraries.
    #[arg(required = true, value_name = "LIBRARY")]
    libraries: Vec<PathBuf>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut code = ExitCode::SUCCESS;
        for path in &self.libraries {
            match SipImage::read(path, None) {
                Ok(image) => print(path, &image)?,
                Err(error) => {
                    sayln!("mullion: {error}");
                    code = ExitCode::from(1);
                }
            }
        }
        Ok(code)
    }
}

fn print(path: &std::path::Path, image: &SipImage) -> anyhow::Result<()> {
    let limits = image.limits();
    outln!("{}: a SIP that this host takes", path.display())?;
    outln!("name       {}", image.name())?;
    outln!("sha256     {}", image.digest())?;
    outln!(
        "limits     memory {} KiB, exchange {} KiB, threads {}, children {}, slice {:?}",
        limits.memory >> 10,
        limits.exchange >> 10,
        limits.threads,
        limits.children,
        limits.slice
    )?;
    for contract in image.contracts() {
        outln!("contract   {} {}", contract.digest, contract.name)?;
    }
    Ok(())
}
