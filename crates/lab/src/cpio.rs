//! Writes an initramfs in the kernel's format. **Source**: the kernel's
//! `Documentation/driver-api/early-userspace/buffer-format.rst` (format `newc`).

/// A `newc` archive being written.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    inode: u32,
}

impl Archive {
    pub fn folder(&mut self, name: &str) {
        self.entry(name, 0o040_755, &[], 0);
    }

    /// Adds an executable file.
    pub fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, 0o100_755, content, 0);
    }

    pub fn link(&mut self, name: &str, target: &str) {
        self.entry(name, 0o120_777, target.as_bytes(), 0);
    }

    /// Adds the console device; without it `init` has no output before `/dev` is mounted.
    pub fn console(&mut self) {
        self.entry("dev/console", 0o020_600, &[], (5 << 8) | 1);
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[], 0);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8], device: u32) {
        self.inode += 1;
        let fields = [
            self.inode,
            mode,
            0,
            0,
            1,
            0,
            content.len() as u32,
            0,
            0,
            device >> 8,
            device & 0xff,
            name.len() as u32 + 1,
            0,
        ];
        self.bytes.extend(b"070701");
        for f in fields {
            self.bytes.extend(format!("{f:08x}").bytes());
        }
        self.bytes.extend(name.bytes().chain([0]));
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        while !self.bytes.len().is_multiple_of(4) {
            self.bytes.push(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_110_bytes_and_everything_is_aligned() {
        let mut a = Archive::default();
        a.file("init", b"abc");
        let bytes = a.finish();
        // 110 + "init\0" = 115, padded to 116, content 3 padded to 4.
        assert_eq!(&bytes[110..115], b"init\0");
        assert_eq!(&bytes[116..119], b"abc");
        assert_eq!(&bytes[120..126], b"070701");
        assert_eq!(bytes.len() % 4, 0);
    }
}
