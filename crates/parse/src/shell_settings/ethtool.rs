//! What a command of ethtool sets. **Source**: ethtool(8).

use model::knob::HASH_FIELDS;

/// Pairs of knob and value; `None` for a command that sets nothing.
pub fn sets(words: &[&str]) -> Option<Vec<(String, String)>> {
    let [flag, nic, rest @ ..] = words else { return None };
    let pairs = || rest.chunks_exact(2).filter_map(|p| Some((*p.first()?, *p.get(1)?)));
    let each = |group: &str| -> Vec<(String, String)> {
        let knob = |(name, value): (&str, &str)| {
            (format!("nic.{nic}.{group}.{}", name.replace('-', "_")), value.to_owned())
        };
        pairs().map(knob).collect()
    };
    Some(match *flag {
        "-G" | "--set-ring" => each("rings"),
        "-A" | "--pause" => each("pause"),
        "-L" | "--set-channels" => vec![(format!("nic.{nic}.channels"), rest.join(" "))],
        "-C" | "--coalesce" => {
            let all = each("coalesce").into_iter();
            all.map(|(knob, value)| (knob.replace("x_frames", "x_max_frames"), value)).collect()
        }
        "-K" | "--features" | "--offload" => pairs()
            .map(|(name, value)| {
                (format!("nic.{nic}.features.{}", feature(name)), value.to_owned())
            })
            .collect(),
        "-X" | "--rxfh" | "--set-rxfh-indir" | "--rxfh-indir" => match rest {
            ["hkey", key] => vec![(format!("nic.{nic}.rss.key"), (*key).to_owned())],
            other => vec![(format!("nic.{nic}.rss.table"), other.join(" "))],
        },
        "-N" | "-U" | "--config-nfc" | "--config-ntuple" => match rest {
            ["rx-flow-hash", flow, letters] => {
                vec![(format!("nic.{nic}.rss.hash_fields.{flow}"), fields(letters))]
            }
            other => vec![(format!("ethtool -N {nic}"), other.join(" "))],
        },
        "-s" | "--change" => vec![(format!("ethtool -s {nic}"), rest.join(" "))],
        "--set-priv-flags" | "--set-eee" | "--set-fec" | "--set-tunable" => {
            vec![(format!("ethtool {flag} {nic}"), rest.join(" "))]
        }
        _ => return None,
    })
}

/// The kernel's name of a feature that ethtool names shortly.
fn feature(name: &str) -> &str {
    match name {
        "gro" | "generic-receive-offload" => "rx-gro",
        "lro" | "large-receive-offload" => "rx-lro",
        "gso" | "generic-segmentation-offload" => "tx-generic-segmentation",
        "tso" | "tcp-segmentation-offload" => "tx-tcp-segmentation",
        "sg" | "scatter-gather" => "tx-scatter-gather",
        "rx" | "rx-checksumming" => "rx-checksum",
        "ntuple" | "ntuple-filters" => "rx-ntuple-filter",
        "rxhash" | "receive-hashing" => "rx-hashing",
        "rxvlan" | "rx-vlan-offload" => "rx-vlan-hw-parse",
        "txvlan" | "tx-vlan-offload" => "tx-vlan-hw-insert",
        "tx" | "tx-checksumming" => "tx-checksum",
        other => other,
    }
}

/// The fields of ethtool's letters, as the knob has them; a letter that is none stays.
fn fields(letters: &str) -> String {
    let field = |c: char| {
        let known = HASH_FIELDS.iter().find(|f| f.2.starts_with(c));
        known.map_or_else(|| c.to_string(), |f| f.1.to_owned())
    };
    letters.chars().map(field).collect::<Vec<_>>().join(" ")
}
