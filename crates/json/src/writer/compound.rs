//! Arrays and objects: what stands between their elements, and how they end.

use serde::{Serialize, ser};

use super::{Error, Writer, key::Key};

/// An array or object that has begun.
pub struct Compound<'w, 't> {
    writer: &'w mut Writer<'t>,
    end: Close,
    is_empty: bool,
}

/// The brackets that end an array or object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    Array,
    Object,
    /// Within the object of an enum's variant.
    ArrayOfVariant,
    ObjectOfVariant,
}

impl<'w, 't> Compound<'w, 't> {
    pub fn new(writer: &'w mut Writer<'t>, end: Close) -> Self {
        Self { writer, end, is_empty: true }
    }

    fn next(&mut self) -> Result<(), Error> {
        self.writer.next(std::mem::take(&mut self.is_empty))
    }

    fn key(&mut self, key: &str) -> Result<(), Error> {
        self.next()?;
        self.writer.text(key)?;
        self.writer.colon();
        Ok(())
    }

    fn close(self) -> Result<(), Error> {
        let Self { writer, end, is_empty } = self;
        let bracket = match end {
            Close::Array | Close::ArrayOfVariant => b']',
            Close::Object | Close::ObjectOfVariant => b'}',
        };
        writer.close(bracket, is_empty);
        if matches!(end, Close::ArrayOfVariant | Close::ObjectOfVariant) {
            writer.close(b'}', false);
        }
        Ok(())
    }
}

macro_rules! arrays {
    ($($of:ident $element:ident),*) => {
        $(impl ser::$of for Compound<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn $element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.next()?;
                value.serialize(&mut *self.writer)
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        })*
    };
}

arrays! {
    SerializeSeq serialize_element, SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field, SerializeTupleVariant serialize_field
}

macro_rules! structs {
    ($($of:ident),*) => {
        $(impl ser::$of for Compound<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.key(key)?;
                value.serialize(&mut *self.writer)
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        })*
    };
}

structs! { SerializeStruct, SerializeStructVariant }

impl ser::SerializeMap for Compound<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.next()?;
        key.serialize(Key(self.writer))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.writer.colon();
        value.serialize(&mut *self.writer)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}
