//! Texts for errno values.

/// Text of an errno with its name: `connection refused (ECONNREFUSED)`.
pub fn errno_text(errno: i32) -> String {
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    let text = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
    match name_of(errno) {
        Some(name) => format!("{text} ({name})"),
        None => format!("{text} (errno {errno})"),
    }
}

fn name_of(errno: i32) -> Option<&'static str> {
    Some(match errno {
        libc::EADDRNOTAVAIL => "EADDRNOTAVAIL",
        libc::EADDRINUSE => "EADDRINUSE",
        libc::ECONNREFUSED => "ECONNREFUSED",
        libc::ECONNRESET => "ECONNRESET",
        libc::ECONNABORTED => "ECONNABORTED",
        libc::ETIMEDOUT => "ETIMEDOUT",
        libc::EHOSTUNREACH => "EHOSTUNREACH",
        libc::ENETUNREACH => "ENETUNREACH",
        libc::EPIPE => "EPIPE",
        libc::EMFILE => "EMFILE",
        libc::ENFILE => "ENFILE",
        libc::ENOBUFS => "ENOBUFS",
        libc::ENOMEM => "ENOMEM",
        libc::EPERM => "EPERM",
        libc::EACCES => "EACCES",
        libc::EAGAIN => "EAGAIN",
        libc::ENOENT => "ENOENT",
        _ => return None,
    })
}
