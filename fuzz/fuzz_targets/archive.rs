//! A snapshot archive and what is asked of it. Headers get right checksums, or the fuzzer
//! would spend its life on guessing them; the first byte says whether to compress.
#![no_main]

use libfuzzer_sys::fuzz_target;
use probe::{Root, root::Limits};

const BLOCK: usize = 512;

fn with_checksums(tar: &mut [u8]) {
    for block in tar.chunks_exact_mut(BLOCK) {
        if block.get(257..262) != Some(b"ustar") {
            continue;
        }
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|&b| u32::from(b)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&how, bytes)) = bytes.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if how & 1 == 0 {
        with_checksums(&mut bytes);
    }
    let limits =
        Limits { total_bytes: 1 << 20, file_bytes: 1 << 18, entries: 200, path_bytes: 1 << 14 };
    let Ok(root) = Root::read_archive(&bytes[..], &limits) else { return };
    let mut todo = vec![String::new()];
    let mut asked = 0;
    while let Some(path) = todo.pop() {
        asked += 1;
        if asked > 400 {
            break; // links make a finite archive an endless tree
        }
        let _ = (root.read(&path), root.link(&path), root.resolve(&path));
        let _ = root.ask::<u64>(&path, || unreachable!("an archive is not the host"));
        for name in root.entries(&path).unwrap_or_default() {
            todo.push(format!("{path}/{name}"));
        }
    }
});
