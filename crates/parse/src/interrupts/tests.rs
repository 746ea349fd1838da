use proptest::prelude::*;

use super::*;

/// A 6.18 virtual machine.
const VM: &[u8] = b"           CPU0       CPU1       \n \
24:          1          0  IO-APIC   5-edge      ACPI:Ged\n \
38:          0       2250 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n\
NMI:          0          0   Non-maskable interrupts\n\
LOC:      24156      28683   Local timer interrupts\n\
ERR:          7\n\
MIS:          0\n";

fn one(row: &str) -> IrqRow {
    let text = format!("           CPU0       CPU2       CPU3       \n{row}\n");
    let mut all = parse(text.as_bytes()).unwrap();
    assert_eq!(all.skipped, [], "{row}");
    all.irqs.pop().unwrap_or_else(|| panic!("no row in {row:?}"))
}

fn reported(row: &str) -> (String, String, String) {
    let r = one(row);
    (r.chip, r.hwirq, r.name)
}

fn strings(a: &str, b: &str, c: &str) -> (String, String, String) {
    (a.into(), b.into(), c.into())
}

#[test]
fn reads_a_virtual_machine() {
    let all = parse(VM).unwrap();
    assert_eq!(all.cpus, [CpuId(0), CpuId(1)]);
    assert_eq!(all.skipped, []);
    assert!(!all.is_torn());
    assert_eq!(all.irqs.len(), 2);
    assert_eq!(
        all.irqs[1],
        IrqRow {
            irq: IrqId(38),
            counts: Some(vec![IrqCount { cpu: CpuId(1), count: 2250 }]),
            chip: "PCI-MSIX-0000:00:03.0".into(),
            hwirq: "1-edge".into(),
            name: "virtio2-input.0".into(),
        }
    );
    let named: Vec<_> = all.named.iter().map(|r| (r.name.as_str(), r.total)).collect();
    assert_eq!(named, [("NMI", 0), ("LOC", 52_839), ("ERR", 7), ("MIS", 0)]);
    assert_eq!(all.named[1].title, "Local timer interrupts");
    assert_eq!(all.named[2].counts, None, "one column is nobody's CPU");
}

#[test]
fn offline_cpus_have_no_column() {
    let row = one(" 24:          5          0         17   PCI-MSI 524288-edge      eth0");
    let of: Vec<_> = row.counts.unwrap().iter().map(|c| (c.cpu.0, c.count)).collect();
    assert_eq!(of, [(0, 5), (3, 17)]);
}

#[test]
fn reads_every_kernels_way_to_tell_the_chip() {
    let z = "          0          0          0";
    for (row, want) in [
        ("   PCI-MSI 524288-edge      eth0-rx-1", strings("PCI-MSI", "524288-edge", "eth0-rx-1")),
        (
            "  IR-PCI-MSI-0000:81:00.0    3-edge      mlx5_comp2@pci:0000:81:00.0",
            strings("IR-PCI-MSI-0000:81:00.0", "3-edge", "mlx5_comp2@pci:0000:81:00.0"),
        ),
        ("     GICv3  27 Level     arch_timer", strings("GICv3", "27 Level", "arch_timer")),
        (
            "     GICv3  27 Level     kvm guest vtimer",
            strings("GICv3", "27 Level", "kvm guest vtimer"),
        ),
        (
            "   ITS-MSI 134742016 Edge      hns3-0000:7d:00.0-TxRx-7",
            strings("ITS-MSI", "134742016 Edge", "hns3-0000:7d:00.0-TxRx-7"),
        ),
        ("  XIVE-IRQ 1048576 Level     IPI", strings("XIVE-IRQ", "1048576 Level", "IPI")),
        (
            " Hyper-V PCIe MSI 4194304-edge      mlx5_async0@pci:0001:00:02.0",
            strings("Hyper-V PCIe MSI", "4194304-edge", "mlx5_async0@pci:0001:00:02.0"),
        ),
        ("   xen-dyn    -event     eth0-q0-tx", strings("xen-dyn", "-event", "eth0-q0-tx")),
        ("   xen-dyn-event     xenbus", strings("xen-dyn-event", "", "xenbus")),
        (
            "   IO-APIC  16-fasteoi   uhci_hcd:usb5, ahci[0000:02:00.0]",
            strings("IO-APIC", "16-fasteoi", "uhci_hcd:usb5, ahci[0000:02:00.0]"),
        ),
        ("    XT-PIC      cascade", strings("XT-PIC", "", "cascade")),
        ("   PCI-MSI 65536-edge    ", strings("PCI-MSI", "65536-edge", "")),
        ("  None                 ", strings("None", "", "")),
        ("  None    ", strings("None", "", "")),
        ("     dummy  44  rmi4_smbus", strings("dummy", "44", "rmi4_smbus")),
        (
            "   GIC-0  25 Edge      -foo     q6v5 wdog",
            strings("GIC-0", "25 Edge -foo", "q6v5 wdog"),
        ),
        ("", strings("", "", "")),
    ] {
        assert_eq!(reported(&format!(" 24:{z}{row}")), want, "{row}");
    }
}

#[test]
fn a_row_with_other_columns_than_the_header_has_no_counts() {
    for row in [
        " 24:          5          0   PCI-MSI 524288-edge      eth0",
        " 24:          5          0          1          9   PCI-MSI 524288-edge      eth0",
        " 24:          5          0 99999999999999999999999   PCI-MSI 524288-edge      eth0",
    ] {
        let row = one(row);
        assert_eq!(row.counts, None);
        assert_eq!((row.chip.as_str(), row.name.as_str()), ("PCI-MSI", "eth0"));
    }
}

#[test]
fn columns_may_be_wider_or_ragged() {
    for row in [
        "  24: 5 0 17 chip 3-edge x",
        "24:\t5\t0\t17\tchip 3-edge x",
        "24:12345678901 0 17 chip 3-edge x",
        "24:          5 12345678901          0 chip 3-edge x",
        "1000024:          5          0         17 chip 3-edge x",
    ] {
        assert_eq!(one(row).counts.unwrap().len(), 2, "{row}");
    }
}

#[test]
fn what_is_no_row_is_named_and_the_rest_is_read() {
    let text = b"  CPU0\nrubbish\n\n 5:          1   chip 1-edge a\n 6:          2   chi";
    let all = parse(text).unwrap();
    assert_eq!(all.irqs.len(), 1, "the last line has no end: it was cut");
    let lines: Vec<_> = all.skipped.iter().map(|e| e.line).collect();
    assert_eq!(lines, [2, 5]);
}

#[test]
fn a_file_without_cpus_is_refused() {
    for bad in [&b""[..], b"\n", b"hello\n", b"CPU0 CPUx\n", b"CPU99999999\n", b"CPU0"] {
        assert!(parse(bad).is_err(), "{bad:?} was taken");
    }
}

/// The parser without its fast path.
fn slowly(bytes: &[u8]) -> Option<Vec<Result<IrqRow, NamedRow>>> {
    let mut lines = bytes.split_inclusive(|&b| b == b'\n').filter(|l| l.ends_with(b"\n"));
    let cpus = header(lines.next()?.trim_ascii_end())?;
    Some(
        lines
            .map(|l| l.strip_suffix(b"\n").unwrap_or(l))
            .filter_map(|l| {
                let columns = row::general(l, &cpus)?;
                Some(match row::number(columns.label(l)) {
                    Some(n) => Ok(row::irq(IrqId(n), columns, l)),
                    None => Err(row::named(columns, l)),
                })
            })
            .collect(),
    )
}

fn check_equal(text: &[u8], piece: usize) {
    let (irqs, named): (Vec<_>, Vec<_>) =
        slowly(text).unwrap_or_default().into_iter().partition(Result::is_ok);
    let irqs: Vec<_> = irqs.into_iter().flatten().collect();
    let named: Vec<_> = named.into_iter().filter_map(Result::err).collect();
    let mut parser = Parser::default();
    for chunk in text.chunks(piece.max(1)) {
        parser.feed(chunk);
    }
    let pieces = parser.finish();
    let whole = parse(text);
    assert_eq!(pieces, whole);
    let got = whole.unwrap_or_default();
    assert_eq!(got.irqs, irqs);
    assert_eq!(got.named, named);
}

/// A cell as the kernel prints it, and sometimes not.
fn cell() -> impl Strategy<Value = String> {
    prop_oneof![
        20 => Just("          0".to_owned()),
        6 => any::<u32>().prop_map(|n| format!(" {n:>10}")),
        1 => any::<u64>().prop_map(|n| format!(" {n:>10}")),
        1 => "[ ]{0,12}[0-9x]{0,12}",
    ]
}

fn row() -> impl Strategy<Value = String> {
    let label = prop_oneof![6 => "[ ]{0,2}[0-9]{1,5}:", 1 => "(NMI|LOC|IPI0|ERR):", 1 => "[ a-z0-9:]{0,30}"];
    let tail = prop_oneof![
        3 => Just("   PCI-MSI 524288-edge      eth0-rx-1".to_owned()),
        1 => "[ ]{0,3}[0-9a-zA-Z:-]{0,8}[ ]{0,3}[0-9a-z-]{0,6}[ ]{0,3}[0-9a-z, ]{0,9}",
    ];
    (label, proptest::collection::vec(cell(), 0..80), tail, any::<bool>()).prop_map(
        |(label, cells, tail, fit)| {
            let n = if fit { 70.min(cells.len()) } else { cells.len() };
            format!("{label}{}{tail}", cells[..n].concat())
        },
    )
}

proptest! {
    #[test]
    fn fast_and_general_agree(cpus in 1usize..80, rows in proptest::collection::vec(row(), 0..12), piece in 1usize..900) {
        let head: String = (0..cpus).map(|i| format!("CPU{:<8}", i * 2)).collect();
        let text = format!("           {head}\n{}\n", rows.join("\n"));
        check_equal(text.as_bytes(), piece);
    }

    #[test]
    fn fixed_columns_are_read_as_printed(
        counts in proptest::collection::vec(prop_oneof![3 => Just(0u32), 1 => any::<u32>()], 1..140),
        piece in 1usize..3000,
    ) {
        let head: String = (0..counts.len()).map(|i| format!("CPU{i:<8}")).collect();
        let cells: String = counts.iter().map(|n| format!(" {n:>10}")).collect();
        let text = format!("           {head}\n 77:{cells} ITS-MSI   1 Edge      a, b c\n");
        check_equal(text.as_bytes(), piece);
        let got = parse(text.as_bytes()).unwrap();
        let want: Vec<_> = counts.iter().enumerate().filter(|(_, n)| **n > 0)
            .map(|(i, &n)| IrqCount { cpu: CpuId(i as u32), count: n.into() }).collect();
        prop_assert_eq!(got.irqs[0].counts.as_ref(), Some(&want));
        prop_assert_eq!(&got.irqs[0].name, "a, b c");
    }
}
