//! Values that are amounts of memory, against the memory of the host.

use model::{Bytes, lint::LineVerdict};

use crate::judge::{Context, Judged};

/// More than there is was meant in bytes; more than a quarter of it is only too much.
pub fn more_than_all(context: &Context<'_>, key: &str, value: &str, source: &str) -> Judged {
    let (unit, name) = match key {
        "vm.min_free_kbytes" => (1024, "KiB".to_owned()),
        _ => {
            let page = context.facts.host.page_size_bytes.known().map_or(4096, |b| b.0);
            (page, format!("pages of {page} bytes"))
        }
    };
    let most: u64 = value.split(' ').next_back().and_then(|n| n.parse().ok()).unwrap_or(0);
    let (bytes, memory) = (Bytes(most.saturating_mul(unit)), context.facts.memory_bytes.get());
    let of = memory.map(|m| format!(", and the host has {m}")).unwrap_or_default();
    let why = format!("the unit is {name}: {bytes}{of}");
    match memory.is_some_and(|m| bytes.0 > m.0) {
        true => Judged::new(LineVerdict::WrongUnit, why, source),
        false => Judged::new(LineVerdict::Harmful, why, source),
    }
}

/// A number of huge pages of the default size against the host's memory; `None` where it takes little of
/// it, or where the size is not known. **Source**: Documentation/admin-guide/mm/hugetlbpage.rst;
/// Documentation/arch/arm64/hugetlbpage.rst.
pub fn huge_pages(context: &Context<'_>, value: &str) -> Option<Judged> {
    let size: u64 = match context.facts.host.page_size_bytes.known().map(|b| b.0)? {
        4096 => 2 << 20,
        16384 => 32 << 20,
        65536 => 512 << 20,
        _ => return None,
    };
    let memory = context.facts.memory_bytes.get()?;
    let bytes = Bytes(value.parse::<u64>().ok()?.saturating_mul(size));
    let source = "Documentation/admin-guide/mm/hugetlbpage.rst nr_hugepages";
    let what = format!("pages of {} make {bytes}, and the host has {memory}", Bytes(size));
    if bytes.0 > memory.0 {
        let why =
            format!("{what}: the kernel takes what it gets, and programs are left without memory");
        return Some(Judged::new(LineVerdict::WrongUnit, why, source));
    }
    (bytes.0 > memory.0 / 2).then(|| Judged {
        find_out: "`grep Huge /proc/meminfo`: free ones are memory that nothing else gets".into(),
        ..Judged::new(
            LineVerdict::Depends,
            format!("depends on whether programs use them: {what}"),
            source,
        )
    })
}
