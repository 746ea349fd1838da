//! One value that may be missing, with the reason why.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error as _},
    ser::SerializeMap,
};
use serde_json::Value;

/// A value of the host, or why there is none. Absent is not zero.
///
/// **Shape**: serialised as the plain value when known, else as
/// `{"absent": "reason"}` or `{"denied": "reason"}`. The reason names the path or call, and
/// for `denied` what would grant it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reading<T> {
    /// The value that the host reported.
    Known(T),
    /// The host does not have the value, or reported it in an unknown format.
    Absent(String),
    /// The host has the value, but it could not be read: this process lacks permission, or the read
    /// failed (`EIO`, no descriptors, no memory).
    Denied(String),
}

pub use Reading::{Absent, Denied, Known};

impl<T> Default for Reading<T> {
    /// The value was not read.
    fn default() -> Self {
        Self::Absent("not read".into())
    }
}

impl<T> Reading<T> {
    /// An absent value with its reason.
    pub fn absent(reason: impl Into<String>) -> Self {
        Absent(reason.into())
    }

    /// A denied value with its reason.
    pub fn denied(reason: impl Into<String>) -> Self {
        Denied(reason.into())
    }

    /// The value, if known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Known(v) => Some(v),
            Absent(_) | Denied(_) => None,
        }
    }

    /// The value by copy or clone, if known.
    pub fn get(&self) -> Option<T>
    where
        T: Clone,
    {
        self.known().cloned()
    }

    /// The value, if known, consuming the reading.
    pub fn into_known(self) -> Option<T> {
        match self {
            Known(v) => Some(v),
            Absent(_) | Denied(_) => None,
        }
    }

    /// Whether the value is known.
    pub fn is_known(&self) -> bool {
        matches!(self, Known(_))
    }

    /// Reason for the missing value; `None` when there is one.
    pub fn why_not(&self) -> Option<&str> {
        match self {
            Known(_) => None,
            Absent(why) | Denied(why) => Some(why),
        }
    }

    /// Transforms a known value, keeps the reason otherwise.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Known(v) => Known(f(v)),
            Absent(why) => Absent(why),
            Denied(why) => Denied(why),
        }
    }

    /// Transforms a known value into another reading, keeps the reason otherwise.
    pub fn and_then<U>(self, f: impl FnOnce(T) -> Reading<U>) -> Reading<U> {
        match self {
            Known(v) => f(v),
            Absent(why) => Absent(why),
            Denied(why) => Denied(why),
        }
    }

    /// A reading of a reference to the value.
    pub fn as_ref(&self) -> Reading<&T> {
        match self {
            Known(v) => Known(v),
            Absent(why) => Absent(why.clone()),
            Denied(why) => Denied(why.clone()),
        }
    }

    /// This reading if known, else `other`.
    pub fn or_else(self, other: impl FnOnce() -> Reading<T>) -> Reading<T> {
        match self {
            Known(v) => Known(v),
            Absent(_) | Denied(_) => other(),
        }
    }
}

impl<T> From<T> for Reading<T> {
    fn from(v: T) -> Self {
        Known(v)
    }
}

impl<T: Serialize> Serialize for Reading<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let (key, why) = match self {
            Known(v) => return v.serialize(s),
            Absent(why) => ("absent", why),
            Denied(why) => ("denied", why),
        };
        let mut map = s.serialize_map(Some(1))?;
        map.serialize_entry(key, why)?;
        map.end()
    }
}

/// The host does not have the value, or reported it in an unknown format.
#[derive(JsonSchema)]
#[schemars(rename = "Absent", deny_unknown_fields)]
#[expect(dead_code, reason = "its schema alone is used")]
struct AbsentForm {
    /// The reason, with the path or call.
    absent: String,
}

/// The host has the value, but the reader was not permitted to read it.
#[derive(JsonSchema)]
#[schemars(rename = "Denied", deny_unknown_fields)]
#[expect(dead_code, reason = "its schema alone is used")]
struct DeniedForm {
    /// The reason, with the path or call and what would grant access.
    denied: String,
}

/// The reason of a value that is missing: nothing else has one key, of this name, with a text.
fn missing<T>(value: &Value) -> Option<Reading<T>> {
    let object = value.as_object().filter(|o| o.len() == 1)?;
    let (key, why) = object.iter().next()?;
    match (key.as_str(), why.as_str()?) {
        ("absent", why) => Some(Reading::absent(why)),
        ("denied", why) => Some(Reading::denied(why)),
        _ => None,
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Reading<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        match missing(&value) {
            Some(reason) => Ok(reason),
            None => T::deserialize(&value).map(Known).map_err(D::Error::custom),
        }
    }
}

impl<T: JsonSchema> JsonSchema for Reading<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Reading_{}", T::schema_name()).into()
    }

    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        let known = g.subschema_for::<T>();
        let absent = g.subschema_for::<AbsentForm>();
        let denied = g.subschema_for::<DeniedForm>();
        json_schema!({ "anyOf": [known, absent, denied] })
    }
}

/// Delta of a counter over the window: absent when the counter went backwards or when its device
/// came or went, never a huge number.
pub type Delta = Reading<u64>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_value_is_plain_and_a_missing_one_says_why() {
        let rows: Vec<Reading<u64>> =
            vec![Known(0), Absent("no such file".into()), Denied("needs CAP_NET_ADMIN".into())];
        let json = serde_json::to_string(&rows).unwrap();
        assert_eq!(json, r#"[0,{"absent":"no such file"},{"denied":"needs CAP_NET_ADMIN"}]"#);
        assert_eq!(serde_json::from_str::<Vec<Reading<u64>>>(&json).unwrap(), rows);
    }

    #[test]
    fn a_known_list_of_one_text_stays_known() {
        for rows in [vec![], vec!["192.0.2.1/24".to_owned()], vec!["a".into(), "b".into()]] {
            let known = Known(rows);
            let json = serde_json::to_string(&known).unwrap();
            assert_eq!(serde_json::from_str::<Reading<Vec<String>>>(&json).unwrap(), known);
        }
    }
}
