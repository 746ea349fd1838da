//! Numbers, text and enums of a document; what has parts begins here.

mod compound;
mod key;

use serde::{Serialize, Serializer, ser};

use compound::{Close, Compound};

/// How a document is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Without line ends or blanks between values.
    Line,
    /// A line for each value, two spaces for each level.
    Indented,
}

/// Why a document was not written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The destination refused it.
    #[error(transparent)]
    Destination(#[from] std::io::Error),
    /// It cannot be JSON.
    #[error("{0}")]
    Document(String),
}

impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Destination(e) => e,
            Error::Document(why) => Self::new(std::io::ErrorKind::InvalidData, why),
        }
    }
}

impl ser::Error for Error {
    fn custom<T: std::fmt::Display>(why: T) -> Self {
        Self::Document(why.to_string())
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Document(error.to_string())
    }
}

type Destination<'t> = Option<&'t mut dyn FnMut(&[u8]) -> std::io::Result<()>>;

/// What has been written and not handed over.
pub struct Writer<'t> {
    pub bytes: Vec<u8>,
    to: Destination<'t>,
    layout: Layout,
    depth: usize,
}

/// The pieces in which a document is handed over.
const PIECE: usize = 64 << 10;

impl<'t> Writer<'t> {
    pub fn new(layout: Layout, to: Destination<'t>) -> Self {
        Self { bytes: Vec::with_capacity(PIECE), to, layout, depth: 0 }
    }

    /// Hands the rest over; gives it where there is no destination.
    pub fn end(mut self) -> Result<Vec<u8>, Error> {
        match self.to.take() {
            Some(to) if !self.bytes.is_empty() => to(&self.bytes)?,
            _ => {}
        }
        Ok(self.bytes)
    }

    /// An array or object begins.
    pub fn open(&mut self, bracket: u8) {
        self.depth += 1;
        self.bytes.push(bracket);
    }

    /// What stands before its next element or key.
    pub fn next(&mut self, first: bool) -> Result<(), Error> {
        if let Some(to) = self.to.as_deref_mut().filter(|_| self.bytes.len() >= PIECE) {
            to(&self.bytes)?;
            self.bytes.clear();
        }
        if !first {
            self.bytes.push(b',');
        }
        self.line();
        Ok(())
    }

    /// What stands between a key and its value.
    pub fn colon(&mut self) {
        let colon: &[u8] = if self.layout == Layout::Line { b":" } else { b": " };
        self.bytes.extend_from_slice(colon);
    }

    /// The innermost open array or object ends with this bracket.
    pub fn close(&mut self, bracket: u8, is_empty: bool) {
        self.depth = self.depth.saturating_sub(1);
        if !is_empty {
            self.line();
        }
        self.bytes.push(bracket);
    }

    fn line(&mut self) {
        if self.layout == Layout::Indented {
            self.bytes.push(b'\n');
            for _ in 0..self.depth {
                self.bytes.extend_from_slice(b"  ");
            }
        }
    }

    fn array(&mut self) -> Compound<'_, 't> {
        self.open(b'[');
        Compound::new(self, Close::Array)
    }

    /// `{"variant":`, of which the value follows.
    fn variant(&mut self, name: &str) -> Result<(), Error> {
        self.open(b'{');
        self.next(true)?;
        self.text(name)?;
        self.colon();
        Ok(())
    }

    pub fn text(&mut self, text: &str) -> Result<(), Error> {
        Ok(self.by_serde_json().serialize_str(text)?)
    }

    /// Numbers and strings are `serde_json`'s own; their code for this destination is here alone.
    fn by_serde_json(&mut self) -> serde_json::Serializer<&mut Vec<u8>> {
        serde_json::Serializer::new(&mut self.bytes)
    }
}

macro_rules! scalars {
    ($($name:ident $of:ty),*) => {
        $(fn $name(self, value: $of) -> Result<(), Error> {
            Ok(self.by_serde_json().$name(value)?)
        })*
    };
}

impl<'w, 't> Serializer for &'w mut Writer<'t> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Compound<'w, 't>;
    type SerializeTuple = Compound<'w, 't>;
    type SerializeTupleStruct = Compound<'w, 't>;
    type SerializeTupleVariant = Compound<'w, 't>;
    type SerializeMap = Compound<'w, 't>;
    type SerializeStruct = Compound<'w, 't>;
    type SerializeStructVariant = Compound<'w, 't>;

    scalars! {
        serialize_bool bool, serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_i128 i128, serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64,
        serialize_u128 u128, serialize_f32 f32, serialize_f64 f64, serialize_char char,
        serialize_str &str, serialize_bytes &[u8]
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.bytes.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
    ) -> Result<(), Error> {
        self.text(name)
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
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.variant(name)?;
        value.serialize(&mut *self)?;
        self.close(b'}', false);
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'w, 't>, Error> {
        Ok(self.array())
    }

    fn serialize_tuple(self, _: usize) -> Result<Compound<'w, 't>, Error> {
        Ok(self.array())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Compound<'w, 't>, Error> {
        Ok(self.array())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Compound<'w, 't>, Error> {
        self.variant(name)?;
        self.open(b'[');
        Ok(Compound::new(self, Close::ArrayOfVariant))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'w, 't>, Error> {
        self.open(b'{');
        Ok(Compound::new(self, Close::Object))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Compound<'w, 't>, Error> {
        self.serialize_map(None)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Compound<'w, 't>, Error> {
        self.variant(name)?;
        self.open(b'{');
        Ok(Compound::new(self, Close::ObjectOfVariant))
    }
}
