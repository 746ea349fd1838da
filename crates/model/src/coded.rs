//! The common form of remarks in documents: `{code, data, message}`. `code` is the kind in snake
//! case, `data` has its fields, and `message` is the line for people.

use std::collections::BTreeMap;

use schemars::Schema;
use serde::{Serialize, Serializer, ser::Error as _};
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
struct Written {
    code: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    message: String,
}

/// Writes `kind`, which is its code alone or an object of its code and its data, with its line.
pub(crate) fn write<S: Serializer>(
    kind: Result<Value, serde_json::Error>,
    message: String,
    to: S,
) -> Result<S::Ok, S::Error> {
    let (code, data) = match kind.map_err(S::Error::custom)? {
        Value::Object(of) => {
            of.into_iter().next().map(|(code, data)| (code, Some(data))).unwrap_or_default()
        }
        code => (code.as_str().unwrap_or_default().to_owned(), None),
    };
    Written { code, data, message }.serialize(to)
}

/// Reads back what [`write`] wrote, as the kind that it took.
pub(crate) fn kind(whole: &Value) -> Value {
    match (&whole["code"], whole.get("data")) {
        (Value::String(code), Some(data)) => json!({ code: data }),
        (code, _) => code.clone(),
    }
}

pub(crate) fn write_other<S: Serializer>(
    code: &str,
    message: &str,
    to: S,
) -> Result<S::Ok, S::Error> {
    BTreeMap::from([("code", code), ("message", message)]).serialize(to)
}

/// The code and the line of a kind that this version does not know; before there were kinds, the line
/// for people alone.
pub(crate) fn unknown<E: serde::de::Error>(whole: &Value) -> Result<(String, String), E> {
    match (whole.as_str(), whole["code"].as_str(), whole["message"].as_str()) {
        (Some(line), ..) => Ok(("other".into(), line.to_owned())),
        (None, Some(code), Some(message)) => Ok((code.to_owned(), message.to_owned())),
        _ => Err(E::custom("neither a line nor a remark with its code and message")),
    }
}

/// Gives an enum the form above. It derives `Serialize` and `Deserialize` for itself as a remote
/// type, has a line for people, and a variant `Other { code, message }` for what another version wrote.
macro_rules! coded {
    ($kind:ident) => {
        impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                match self {
                    Self::Other { code, message } => crate::coded::write_other(code, message, to),
                    known => {
                        let kind = $kind::serialize(known, serde_json::value::Serializer);
                        crate::coded::write(kind, known.to_string(), to)
                    }
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $kind {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let whole = serde_json::Value::deserialize(from)?;
                $kind::deserialize(&crate::coded::kind(&whole)).or_else(|_| {
                    let (code, message) = crate::coded::unknown(&whole)?;
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
