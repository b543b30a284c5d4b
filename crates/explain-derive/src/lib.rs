//! Derive of `Explain`: hints and exit codes of an error, written beside its messages.

mod attributes;
mod expand;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Derives `proq_base::explain::Explain` for a struct or an enum that derives `thiserror::Error`.
///
/// Attributes stand on a variant; on the type itself they count for each variant that has none of its own of
/// that kind.
///
/// | attribute | meaning |
/// |---|---|
/// | `#[hint("look at it: git proq show {name}")]` | a hint, formatted like `#[error]`; more than one, in order |
/// | `#[hint("rm {}", shell_quote_path(path))]` | a hint with arguments |
/// | `#[hint(with = retry_hints(lanes))]` | ready hints: an iterator, array, `Vec` or `Option` |
/// | `#[hint(if *is_busy, "…")]` | a hint where the condition holds; `if let` too |
/// | `#[hint(else, "…")]`, `#[hint(else if …, "…")]` | a hint where that of the attribute above does not count |
/// | `#[exit(Usage)]` | the exit code, a variant of `Exit`; `Refused` without the attribute |
/// | `#[exit(with = source.exit())]` | the exit code by an expression |
/// | `#[decision]` | git-proq decided to refuse |
/// | `#[decision(source.is_refusal())]` | git-proq decided to refuse where the condition holds |
///
/// Conditions, arguments and expressions see references to the fields by name, the fields of a tuple as `_0`,
/// `_1` and so on, and `self`. `#[error(transparent)]` makes a variant have the hints and the exit code of the
/// error that it wraps, unless it has attributes of its own for them. The decision of that error is not its own.
///
/// An attribute in another form is a compile error at its place. An unknown field is the compiler's own.
#[proc_macro_derive(Explain, attributes(hint, exit, decision))]
pub fn derive_explain(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
