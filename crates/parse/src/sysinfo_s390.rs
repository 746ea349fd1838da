//! `/proc/sysinfo` of IBM Z: the machine, and the hypervisors above this kernel. **Source**:
//! `drivers/s390/char` and `arch/s390/kernel/sysinfo.c` of the kernel.

/// The value of `key` (`Manufacturer`, `Type`), without blanks around it.
pub fn field(bytes: &[u8], key: &str) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines()
        .filter_map(|l| l.split_once(':'))
        .find(|(k, _)| k.trim() == key)
        .map(|(_, v)| v.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|v| !v.is_empty())
}

/// The control program of the innermost virtual machine, such as `z/VM 6.1.0` or `KVM/Linux`.
pub fn control_program(bytes: &[u8]) -> Option<String> {
    field(bytes, "VM00 Control Program")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_of_z_vm() {
        let s =
            b"Manufacturer:         IBM\nType:                 2817\n\nLPAR Number:          7\n\n\
                  VM00 Name:            FEDORA1\nVM00 Control Program: z/VM    6.1.0\n";
        assert_eq!(control_program(s).as_deref(), Some("z/VM 6.1.0"));
        assert_eq!(field(s, "Type").as_deref(), Some("2817"));
        assert_eq!(control_program(b"Manufacturer: IBM\n"), None);
    }
}
