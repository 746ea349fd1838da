//! Documents of Netwright as one page for people: HTML with charts, or Markdown for a ticket. Pure:
//! texts in, a text out.
//!
//! Documents ([`read`]) → chapters (`chapter`) → a tree of blocks (`block`) → HTML or Markdown.

mod block;
mod chapter;
mod chart;
mod document;
mod html;
pub mod live;
mod markdown;
mod markup;
mod repeat;
mod story;
#[cfg(test)]
mod tests;
mod tone;
mod unit;

pub use document::{Document, NotADocument, read};

/// The form of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Html,
    Markdown,
}

/// The page of one or more documents. `title` stands for the one that the documents give.
pub fn page(documents: &[Document], title: Option<&str>, format: Format) -> String {
    let page = story::page(documents, title);
    match format {
        Format::Html => html::write(&page),
        Format::Markdown => markdown::write(&page),
    }
}
