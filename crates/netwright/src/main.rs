//! `netwright`: finds what holds a Linux host's network back.

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let mut root = probe::Root::live();
    while let Some(a) = args.next() {
        if a == "--root" {
            root = probe::Root::open(args.next().unwrap_or_default().as_ref())?;
        }
    }
    let facts = probe::facts::collect(&root, &probe::facts::Request::default());
    println!("{}", serde_json::to_string_pretty(&facts)?);
    Ok(())
}
