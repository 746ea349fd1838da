//! The common form of remarks in documents: `{code, data, message}`. `code` is the kind in snake
//! case, `data` has its fields, and `message` is the line for people.

use std::{collections::BTreeMap, fmt::Display};

use schemars::Schema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

/// The schema of all kinds in one, for many documents have it: other versions may know more of them.
pub(crate) fn short(schema: &mut Schema) {
    let kinds = schema.remove("oneOf").unwrap_or_default();
    let codes = kinds.as_array().into_iter().flatten().map(|k| &k["properties"]["code"]["const"]);
    let codes: Vec<&Value> = codes.filter(|code| *code != "other").collect();
    schema.insert("type".into(), "object".into());
    schema.insert(
        "properties".into(),
        json!({
            "code": { "type": "string", "description": "What it is about.", "enum": codes },
            "data": { "description": "What it rests on, by the code; absent where it is nothing." },
            "message": { "type": "string", "description": "The line for people." },
        }),
    );
    schema.insert("required".into(), json!(["code", "message"]));
}

#[derive(Serialize)]
struct Written<T> {
    #[serde(flatten)]
    coded: T,
    message: String,
}

pub(crate) fn write<S: Serializer>(
    coded: impl Serialize + Display,
    to: S,
) -> Result<S::Ok, S::Error> {
    let message = coded.to_string();
    Written { coded, message }.serialize(to)
}

pub(crate) fn write_other<S: Serializer>(
    code: &str,
    message: &str,
    to: S,
) -> Result<S::Ok, S::Error> {
    BTreeMap::from([("code", code), ("message", message)]).serialize(to)
}

/// A kind that this version does not know; before there were kinds, the line for people alone.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Unknown {
    Coded { code: String, message: String },
    Line(String),
}

impl Unknown {
    /// Its code and its line.
    pub(crate) fn parts(self) -> (String, String) {
        match self {
            Self::Coded { code, message } => (code, message),
            Self::Line(message) => ("other".into(), message),
        }
    }
}

/// Gives an enum the form above. It derives `Serialize` and `Deserialize` for itself as a remote
/// type, tagged by `code` and `data`, has a line for people, and a variant
/// `Other { code, message }` for what another version wrote.
macro_rules! coded {
    ($kind:ident) => {
        impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                struct Coded<'a>(&'a $kind);

                impl serde::Serialize for Coded<'_> {
                    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                        $kind::serialize(self.0, to)
                    }
                }

                impl std::fmt::Display for Coded<'_> {
                    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        std::fmt::Display::fmt(self.0, f)
                    }
                }

                match self {
                    Self::Other { code, message } => crate::coded::write_other(code, message, to),
                    known => crate::coded::write(Coded(known), to),
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $kind {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let whole = serde_json::Value::deserialize(from)?;
                $kind::deserialize(&whole).or_else(|_| {
                    let unknown =
                        <crate::coded::Unknown as serde::Deserialize>::deserialize(&whole);
                    let (code, message) = unknown.map_err(serde::de::Error::custom)?.parts();
                    Ok(Self::Other { code, message })
                })
            }
        }
    };
}

pub(crate) use coded;

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use crate::{
        CpuId,
        explain::Disturbance,
        measure::SplitAnswer,
        samples::{HostChange, Presence},
        tune::{AtStake, PlanNote},
    };

    #[test]
    fn a_remark_of_any_document_has_its_code_its_data_and_its_line() {
        let change = HostChange::CpuChanged { cpu: CpuId(3), change: Presence::Went };
        let json = json!({
            "code": "cpu_changed",
            "data": { "cpu": 3, "change": "went" },
            "message": "CPU 3 went offline",
        });
        assert_eq!(to_value(&change).unwrap(), json);
        assert_eq!(from_value::<HostChange>(json).unwrap(), change);
        let answer = SplitAnswer::OneCpuOnly;
        assert_eq!(to_value(&answer).unwrap()["code"], "one_cpu_only");
        assert_eq!(from_value::<SplitAnswer>(to_value(&answer).unwrap()).unwrap(), answer);
        let within = Disturbance::Warned(crate::Warning::OthersBusy { cpus: 1.5 });
        let json = to_value(&within).unwrap();
        assert_eq!(json["data"]["code"], "others_busy");
        assert_eq!(json["data"]["message"], json["message"]);
        assert_eq!(from_value::<Disturbance>(json).unwrap(), within);
    }

    /// Journals, plans and recordings of before hold the line alone.
    #[test]
    fn a_line_of_before_and_a_kind_of_later_keep_what_they_say() {
        let before: AtStake = from_value(json!("eth0 carries the default route")).unwrap();
        assert_eq!(before.to_string(), "eth0 carries the default route");
        let later = json!({ "code": "new_kind", "message": "something new" });
        let note: PlanNote = from_value(later.clone()).unwrap();
        assert_eq!(note.to_string(), "something new");
        assert_eq!(to_value(&note).unwrap(), later);
        assert!(from_value::<PlanNote>(json!({ "code": 7 })).is_err());
    }
}
