//! The floor: a process that reads the files which `inspect` reads, one after the other, and does
//! nothing with them.

use std::{
    fs::{self, File, FileTimes},
    io::{self, Read},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

/// Reads the files that a list names: `--read LIST`.
pub const READ: &str = "--read";

/// Writes the list of the files that a command reads below a folder.
///
/// The access time shows them: it is set to the epoch before. The kernel raises it at the first
/// read after that, unless the file system is mounted with `noatime`. The command runs without
/// capabilities: with them `inspect` reads through a mount of its own, which raises no access time.
///
/// # Errors
/// No file's access time was raised.
pub fn list(folder: &Path, command: &Command, list: &Path) -> io::Result<usize> {
    let mut files = Vec::new();
    regular(folder, &mut files)?;
    let long_ago = FileTimes::new().set_accessed(SystemTime::UNIX_EPOCH);
    for file in &files {
        File::options().write(true).open(file)?.set_times(long_ago)?;
    }
    let mut without = Command::new("setpriv");
    if rustix::process::geteuid().is_root() {
        without.args(["--bounding-set=-all", "--inh-caps=-all"]);
    }
    super::once(without.arg("--").arg(command.get_program()).args(command.get_args()))?;
    let since = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    let mut names = String::new();
    let mut count = 0;
    for file in files {
        if fs::metadata(&file)?.accessed()? > since {
            let name = file.to_str().ok_or_else(|| io::Error::other("a name is no UTF-8"))?;
            names += name;
            names.push('\n');
            count += 1;
        }
    }
    if count == 0 {
        return Err(io::Error::other("no file was read: is this file system mounted noatime?"));
    }
    fs::write(list, names)?;
    Ok(count)
}

/// Opens, reads and closes each file of a list, through one buffer.
pub fn read(list: &Path) -> io::Result<()> {
    let mut block = vec![0; 1 << 16];
    for name in fs::read_to_string(list)?.lines() {
        let mut file = File::open(name)?;
        while file.read(&mut block)? > 0 {}
    }
    Ok(())
}

fn regular(folder: &Path, into: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            regular(&entry.path(), into)?;
        } else if kind.is_file() {
            into.push(entry.path());
        }
    }
    Ok(())
}
