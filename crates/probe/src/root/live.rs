//! The running host. Errors are errnos.

use std::{fs, io::Read};

use super::MAX_FILE_BYTES;

fn errno(e: &std::io::Error) -> i32 {
    e.raw_os_error().unwrap_or(libc::EIO)
}

/// Reads a whole file. The kernel generates its files while they are read, so each read asks for as
/// much as the kernel gives at a time, first into the stack: most are one line. The standard
/// library would begin with 32 bytes.
///
/// # Errors
/// An errno; `EFBIG` beyond the size limit.
pub fn read(path: &str) -> Result<Vec<u8>, i32> {
    let mut file = fs::File::open(path).map_err(|e| errno(&e))?;
    let mut buffer = [0u8; 4096];
    let n = once(&mut file, &mut buffer)?;
    let mut bytes = buffer.get(..n).unwrap_or_default().to_vec();
    if n == 0 {
        return Ok(bytes);
    }
    let n = once(&mut file, &mut buffer)?;
    bytes.extend_from_slice(buffer.get(..n).unwrap_or_default());
    if n == 0 {
        return Ok(bytes);
    }
    drain(file, &mut |piece| bytes.extend_from_slice(piece))?;
    Ok(bytes)
}

/// One read, taken up again when a signal interrupts it.
fn once(file: &mut fs::File, buffer: &mut [u8]) -> Result<usize, i32> {
    loop {
        match file.read(buffer) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            other => return other.map_err(|e| errno(&e)),
        }
    }
}

/// The first `most` bytes of a file, and no byte more is asked for.
///
/// # Errors
/// An errno.
pub fn read_head(path: &str, most: usize) -> Result<Vec<u8>, i32> {
    let file = fs::File::open(path).map_err(|e| errno(&e))?;
    let mut bytes = Vec::with_capacity(most);
    file.take(most as u64).read_to_end(&mut bytes).map_err(|e| errno(&e))?;
    Ok(bytes)
}

/// A whole file piece by piece.
///
/// # Errors
/// An errno; `EFBIG` beyond the size limit, after the pieces until there.
pub fn pieces(path: &str, piece: &mut dyn FnMut(&[u8])) -> Result<(), i32> {
    drain(fs::File::open(path).map_err(|e| errno(&e))?, piece)
}

/// What is left of a file, piece by piece, through one buffer that stays in the CPU's cache.
///
/// # Errors
/// An errno; `EFBIG` beyond the size limit, after the pieces until there.
pub fn drain(mut file: fs::File, piece: &mut dyn FnMut(&[u8])) -> Result<(), i32> {
    let mut buffer = vec![0u8; 256 << 10];
    let mut total = 0u64;
    loop {
        let n = once(&mut file, &mut buffer)?;
        if n == 0 {
            return Ok(());
        }
        total += n as u64;
        if total > MAX_FILE_BYTES {
            return Err(libc::EFBIG);
        }
        piece(buffer.get(..n).unwrap_or_default());
    }
}

/// Names in a folder; an entry that vanishes while listing is not there, and a listing that
/// breaks off is no list.
///
/// # Errors
/// An errno.
pub fn entries(path: &str) -> Result<Vec<String>, i32> {
    let mut names = vec![];
    for entry in fs::read_dir(path).map_err(|e| errno(&e))? {
        match entry {
            Ok(entry) => names.extend(entry.file_name().into_string().ok()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(errno(&e)),
        }
    }
    Ok(names)
}

/// The target of a link, as it stands there.
///
/// # Errors
/// An errno; `EINVAL` for what is no link, `EILSEQ` for a target that is no text.
pub fn link(path: &str) -> Result<String, i32> {
    fs::read_link(path)
        .map_err(|e| errno(&e))
        .and_then(|p| p.into_os_string().into_string().map_err(|_| libc::EILSEQ))
}

/// The path without links.
///
/// # Errors
/// An errno; `EILSEQ` for a path that is no text.
pub fn resolve(path: &str) -> Result<String, i32> {
    fs::canonicalize(path)
        .map_err(|e| errno(&e))
        .and_then(|p| p.into_os_string().into_string().map_err(|_| libc::EILSEQ))
}
