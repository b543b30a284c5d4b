//! The implementation of `Explain` that the derive writes.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Fields, Member, Result};

use super::attributes::{Attributes, hints_variable};

/// A variant, or a whole struct: its pattern and its attributes.
struct Arm {
    /// Pattern that matches the variant and binds its fields.
    pattern: TokenStream,
    /// The error that the variant wraps, if its message is that error's.
    wrapped: Option<TokenStream>,
    /// Attributes of the variant, with those of the type where it has none of their kind.
    attributes: Attributes,
}

impl Arm {
    /// Creates the arm of the variant, or struct, at `path`.
    fn new(path: &TokenStream, fields: &Fields, attributes: Attributes) -> Arm {
        let names: Vec<TokenStream> = fields
            .members()
            .map(|member| match member {
                Member::Named(name) => quote!(#name),
                Member::Unnamed(index) => {
                    let name = format_ident!("_{}", index.index);
                    quote!(#name)
                }
            })
            .collect();
        let pattern = match fields {
            Fields::Unnamed(_) => quote!(#path(#(#names),*)),
            Fields::Named(_) | Fields::Unit => quote!(#path { #(#names),* }),
        };
        let wrapped = names.into_iter().next().filter(|_| attributes.is_transparent);
        Arm { pattern, wrapped, attributes }
    }

    /// Returns the match arm of `hints`, with statements that add the hints.
    fn hints_arm(&self) -> TokenStream {
        let Arm { pattern, wrapped, attributes } = self;
        let (statements, hints) = (&attributes.hints, hints_variable());
        match wrapped {
            Some(error) if statements.is_empty() => {
                quote!(#pattern => #hints.extend(::proq_base::explain::Explain::hints(#error)),)
            }
            _ => quote!(#pattern => { #statements }),
        }
    }

    /// Returns the match arm of `exit`.
    fn exit_arm(&self) -> TokenStream {
        let pattern = &self.pattern;
        let exit = match (&self.attributes.exit, &self.wrapped) {
            (Some(exit), _) => quote!(#exit),
            (None, Some(error)) => quote!(::proq_base::explain::Explain::exit(#error)),
            (None, None) => quote!(::proq_base::explain::Exit::Refused),
        };
        quote!(#pattern => #exit,)
    }

    /// Returns the match arm of `is_decision`.
    fn decision_arm(&self) -> TokenStream {
        let pattern = &self.pattern;
        let decision = self.attributes.decision.clone().unwrap_or_else(|| quote!(false));
        quote!(#pattern => #decision,)
    }
}

/// Returns the implementation of `Explain` for an error.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let of_type = Attributes::parse(&input.attrs)?;
    let arms: Vec<Arm> = match &input.data {
        Data::Struct(data) => vec![Arm::new(&quote!(Self), &data.fields, of_type)],
        Data::Enum(data) => data
            .variants
            .iter()
            .map(|variant| {
                let name = &variant.ident;
                let attributes = Attributes::parse(&variant.attrs)?.or_defaults(&of_type);
                Ok(Arm::new(&quote!(Self::#name), &variant.fields, attributes))
            })
            .collect::<Result<_>>()?,
        Data::Union(data) => return Err(Error::new_spanned(data.union_token, "a union is no error")),
    };
    let (exits, decisions) = (arms.iter().map(Arm::exit_arm), arms.iter().map(Arm::decision_arm));
    let (name, hints) = (&input.ident, expand_hints(&arms));
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::proq_base::explain::Explain for #name #type_generics #where_clause {
            #hints

            fn exit(&self) -> ::proq_base::explain::Exit {
                match self { #(#exits)* }
            }

            fn is_decision(&self) -> bool {
                match self { #(#decisions)* }
            }
        }
    })
}

/// Returns the method `hints`; nothing for an error without any, which has the trait's own.
fn expand_hints(arms: &[Arm]) -> Option<TokenStream> {
    let has_hints = |arm: &Arm| arm.wrapped.is_some() || !arm.attributes.hints.is_empty();
    let (variable, hints) = (hints_variable(), arms.iter().map(Arm::hints_arm));
    arms.iter().any(has_hints).then(|| {
        quote! {
            fn hints(&self) -> ::std::vec::Vec<::proq_base::hint::Hint> {
                let mut #variable = ::std::vec::Vec::new();
                match self { #(#hints)* }
                #variable
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the error message of the derive, or nothing where it succeeds.
    fn message(input: &str) -> Option<String> {
        expand(&syn::parse_str(input).unwrap()).err().map(|error| error.to_string())
    }

    fn expansion(input: &str) -> String {
        expand(&syn::parse_str(input).unwrap()).unwrap().to_string().replace(' ', "")
    }

    #[test]
    fn chains_conditions() {
        let out = expansion(
            r#"enum E { #[hint(if *a, "see {b}")] #[hint(else, "plain")] V { a: bool, b: String } }"#,
        );
        assert!(
            out.contains(
                r#"Self::V{a,b}=>{if*a{hints.push(::proq_base::hint!("see{b}"));}else{hints.push(::proq_base::hint!("plain"));}}"#
            ),
            "{out}"
        );
    }

    #[test]
    fn delegates_only_without_own_attributes() {
        let out = expansion(
            "#[exit(Bug)] enum E { #[error(transparent)] A(X), #[error(transparent)] #[exit(Usage)] B(X), C }",
        );
        assert!(out.contains("Self::A(_0)=>hints.extend(::proq_base::explain::Explain::hints(_0))"), "{out}");
        assert!(out.contains("Self::A(_0)=>::proq_base::explain::Explain::exit(_0),"), "{out}");
        assert!(out.contains("Self::B(_0)=>::proq_base::explain::Exit::Usage,"), "{out}");
        assert!(out.contains("Self::C{}=>::proq_base::explain::Exit::Bug,"), "{out}");
    }

    #[test]
    fn refuses_attributes_in_another_form() {
        for (attributes, expected) in [
            ("#[hint(else, \"x\")]", "an `else` hint has to follow an `if` hint"),
            (
                "#[hint(if a, \"x\")] #[hint(else, \"x\")] #[hint(else, \"x\")]",
                "an `else` hint has to follow an `if` hint",
            ),
            ("#[hint(\"y\")] #[hint(else, \"x\")]", "an `else` hint has to follow an `if` hint"),
            ("#[hint(if *busy)]", "expected a comma and a hint after the condition"),
            ("#[hint(name)]", "expected a text in quotes, or `with = …`"),
            ("#[hint(with = )]", "expected a text in quotes, or `with = …`"),
            ("#[exit(code = 3)]", "expected a variant of `Exit`, or `with = …`"),
            ("#[exit(Bug)] #[exit(Usage)]", "this attribute is there twice"),
        ] {
            let found = message(&format!("enum E {{ {attributes} V }}")).unwrap();
            assert!(found.contains(expected), "{attributes}: {found}");
        }
        assert_eq!(message("union U { a: u8 }").as_deref(), Some("a union is no error"));
        assert_eq!(message("struct S;"), None);
    }
}
