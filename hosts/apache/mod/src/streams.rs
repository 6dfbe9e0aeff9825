//! Files of the C library that modules have opened. Their structures are the library's.

use crate::call::mediate;
use crate::object::Kind;

fn known(frame: &crate::frame::Frame, file: u64) -> Result<(), String> {
    match frame.walled.knows(file, Kind::Stream) {
        true => Ok(()),
        false => Err(format!("{file:#x} is no file that the module has opened")),
    }
}

/// It is no file of the module's from then on.
pub(crate) extern "C" fn fclose(file: u64) -> u64 {
    mediate(|frame| {
        frame.walled.take_object(file, Kind::Stream)?;
        // SAFETY: `fopen` has made it, no call has closed it, and none works with it.
        Ok(unsafe { libc::fclose(file as *mut libc::FILE) } as u64)
    })
}

pub(crate) extern "C" fn fread(to: u64, bytes: u64, count: u64, file: u64) -> u64 {
    mediate(|frame| {
        known(frame, file)?;
        frame.walled.must_write(to, bytes.saturating_mul(count))?;
        let (bytes, count) = (bytes as usize, count as usize);
        // SAFETY: the module may write so much there, and has opened the file.
        Ok(unsafe { libc::fread(to as *mut _, bytes, count, file as *mut libc::FILE) } as u64)
    })
}

pub(crate) extern "C" fn fwrite(from: u64, bytes: u64, count: u64, file: u64) -> u64 {
    mediate(|frame| {
        known(frame, file)?;
        let is_there = frame.walled.must_find(from, bytes.saturating_mul(count));
        is_there.map_err(|what| format!("fwrite: {what}"))?;
        let (bytes, count) = (bytes as usize, count as usize);
        // SAFETY: so much is there, and the module has opened the file.
        Ok(unsafe { libc::fwrite(from as *const _, bytes, count, file as *mut libc::FILE) } as u64)
    })
}
