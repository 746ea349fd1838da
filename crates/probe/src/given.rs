//! Files named by the user: secrets, plans, experiments, bodies. Reading has limits on size and
//! time, whatever the name refers to.

use std::{
    fs::File,
    io::{self, ErrorKind, Read},
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::Path,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The time limit for the writer of a pipe (`--secret-file <(pass show it)` of `serve` and
/// `measure`).
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads a whole file or pipe of at most `most` bytes.
///
/// # Errors
/// One line without the file's name: the kernel's error, or the file is larger, is a device or a
/// folder, or a pipe that was not completed in time.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    within(path, most, PATIENCE)
}

/// A whole text of at most `most` bytes.
///
/// # Errors
/// As [`read`]; [`ErrorKind::InvalidData`] where it is no UTF-8.
pub fn text(path: &Path, most: u64) -> io::Result<String> {
    utf8(read(path, most)?)
}

/// All of standard input, which may come from a person who types: no bound on the time.
///
/// # Errors
/// As [`text`].
pub fn stdin(most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(most + 1).read_to_end(&mut bytes)?;
    small(&bytes, most)?;
    utf8(bytes)
}

fn utf8(bytes: Vec<u8>) -> io::Result<String> {
    let no_text = |_| io::Error::new(ErrorKind::InvalidData, "it holds no text (UTF-8)");
    String::from_utf8(bytes).map_err(no_text)
}

fn small(bytes: &[u8], most: u64) -> io::Result<()> {
    match bytes.len() as u64 > most {
        true => Err(too_large(most)),
        false => Ok(()),
    }
}

fn too_large(most: u64) -> io::Error {
    let line = format!("it is larger than {}, the most that is read", model::Bytes(most));
    io::Error::new(ErrorKind::FileTooLarge, line)
}

fn within(path: &Path, most: u64, patience: Duration) -> io::Result<Vec<u8>> {
    // Opening a pipe does not wait for who writes into it.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let about = file.metadata()?;
    let kind = about.file_type();
    match () {
        () if kind.is_file() && about.len() > most => Err(too_large(most)),
        () if kind.is_file() => {
            // A file that grows, or one of /proc that has no length, is bounded too.
            let mut bytes = Vec::with_capacity(usize::try_from(about.len()).unwrap_or(0));
            (&file).take(most + 1).read_to_end(&mut bytes)?;
            small(&bytes, most)?;
            Ok(bytes)
        }
        () if kind.is_fifo() => pipe(&file, most, Instant::now() + patience),
        () if kind.is_dir() => Err(io::Error::new(ErrorKind::IsADirectory, "it is a folder")),
        () => {
            Err(io::Error::new(ErrorKind::InvalidInput, "it is a device; a file or pipe is read"))
        }
    }
}

/// What is written into a pipe until its writers close it.
fn pipe(mut file: &File, most: u64, until: Instant) -> io::Result<Vec<u8>> {
    let (mut bytes, mut piece) = (Vec::new(), [0u8; 4096]);
    loop {
        wait(file, until)?;
        match file.read(&mut piece) {
            Ok(0) => return Ok(bytes),
            Ok(n) => bytes.extend_from_slice(piece.get(..n).unwrap_or_default()),
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
        small(&bytes, most)?;
    }
}

/// Waits for bytes, or for the writers' end. A signal ends it, as for Ctrl-C.
fn wait(file: &File, until: Instant) -> io::Result<()> {
    let left = until.saturating_duration_since(Instant::now());
    let time = Timespec::try_from(left).ok();
    match poll(&mut [PollFd::new(file, PollFlags::IN)], time.as_ref())? {
        0 => Err(io::Error::new(ErrorKind::TimedOut, "it is a pipe without a writer")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const SOON: Duration = Duration::from_millis(100);

    fn why(path: &Path, most: u64) -> String {
        within(path, most, SOON).unwrap_err().to_string()
    }

    fn fifo(path: &Path) {
        rustix::fs::mkfifoat(rustix::fs::CWD, path, 0o600.into()).unwrap();
    }

    #[test]
    fn a_file_is_read_up_to_its_bound() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"12345").unwrap();
        assert_eq!(read(file.path(), 5).unwrap(), b"12345");
        assert_eq!(text(file.path(), 9).unwrap(), "12345");
        assert!(why(file.path(), 4).contains("larger than 4 B"), "{}", why(file.path(), 4));
        file.as_file().set_len(1 << 40).unwrap();
        assert!(why(file.path(), 1 << 20).contains("larger"), "nothing of it is allocated");
        // Its length is unknown before it is read.
        assert!(read(Path::new("/proc/self/status"), 1 << 16).unwrap().starts_with(b"Name:"));
        assert!(why(Path::new("/proc/self/status"), 10).contains("larger"));
    }

    #[test]
    fn what_is_no_file_is_named_at_once_and_a_pipe_has_its_time() {
        assert!(why(Path::new("/dev/zero"), 100).contains("device"));
        assert!(why(Path::new("/"), 100).contains("folder"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        fifo(&path);
        let begun = Instant::now();
        assert!(why(&path, 100).contains("without a writer"), "{}", why(&path, 100));
        assert!(begun.elapsed() < Duration::from_secs(5));
        // As a shell's <(…) does it, in two pieces.
        let name = path.clone();
        let writer = std::thread::spawn(move || {
            let mut to = File::options().write(true).open(name).unwrap();
            to.write_all(b"sec").unwrap();
            std::thread::sleep(Duration::from_millis(20));
            to.write_all(b"ret").unwrap();
        });
        assert_eq!(within(&path, 6, Duration::from_secs(20)).unwrap(), b"secret");
        writer.join().unwrap();
        let name = path.clone();
        let writer = std::thread::spawn(move || {
            let mut to = File::options().write(true).open(name).unwrap();
            while to.write_all(&[7; 4096]).is_ok() {}
        });
        let e = within(&path, 10_000, Duration::from_secs(20)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::FileTooLarge);
        writer.join().unwrap();
    }
}
