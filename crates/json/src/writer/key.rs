//! A map's keys: text, and numbers as text.

use serde::{Serialize, Serializer, ser::Impossible};

use super::{Error, Writer};

/// Writes the next key of an object, in quotes.
pub struct Key<'w, 't>(pub &'w mut Writer<'t>);

fn no_text<T>() -> Result<T, Error> {
    Err(Error::Document("key must be a string".to_owned()))
}

macro_rules! quoted {
    ($($name:ident $of:ty),*) => {
        $(fn $name(self, value: $of) -> Result<(), Error> {
            self.0.bytes.push(b'"');
            self.0.$name(value)?;
            self.0.bytes.push(b'"');
            Ok(())
        })*
    };
}

type Parts = Impossible<(), Error>;

impl Serializer for Key<'_, '_> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Parts;
    type SerializeTuple = Parts;
    type SerializeTupleStruct = Parts;
    type SerializeTupleVariant = Parts;
    type SerializeMap = Parts;
    type SerializeStruct = Parts;
    type SerializeStructVariant = Parts;

    quoted! {
        serialize_bool bool, serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_i128 i128, serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64,
        serialize_u128 u128
    }

    fn serialize_f32(self, _: f32) -> Result<(), Error> {
        no_text()
    }

    fn serialize_f64(self, _: f64) -> Result<(), Error> {
        no_text()
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.0.serialize_char(value)
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.0.text(value)
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<(), Error> {
        no_text()
    }

    fn serialize_none(self) -> Result<(), Error> {
        no_text()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        no_text()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        no_text()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
    ) -> Result<(), Error> {
        self.0.text(name)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Error> {
        no_text()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts, Error> {
        no_text()
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts, Error> {
        no_text()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts, Error> {
        no_text()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Parts, Error> {
        no_text()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts, Error> {
        no_text()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Parts, Error> {
        no_text()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Parts, Error> {
        no_text()
    }
}
