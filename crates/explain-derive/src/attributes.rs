//! Attributes `hint`, `exit` and `decision` of an error or of one of its variants.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote;
use syn::parse::ParseStream;
use syn::{Attribute, Error, LitStr, Meta, Result, Token};

/// Parsed attributes `hint`, `exit` and `decision` of an error or of one of its variants.
#[derive(Clone, Default)]
pub(crate) struct Attributes {
    /// Statements that add the hints to [`hints_variable`]; empty without an attribute.
    pub(crate) hints: TokenStream,
    /// Expression of the exit code.
    pub(crate) exit: Option<TokenStream>,
    /// Expression of whether the error is a decision.
    pub(crate) decision: Option<TokenStream>,
    /// Whether the message is that of the wrapped error.
    pub(crate) is_transparent: bool,
}

impl Attributes {
    /// Parses the attributes of an item. Those of other derives are left out, except `#[error(transparent)]`.
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Attributes> {
        let mut out = Attributes::default();
        let mut may_have_else = false;
        for attribute in attributes {
            let path = attribute.path();
            if path.is_ident("hint") {
                let parse = |input: ParseStream| parse_hint(input, may_have_else);
                let (condition, addition) = attribute.parse_args_with(parse)?;
                may_have_else = condition.clone().into_iter().count() > 1;
                // Braces around the statement change nothing where there is no condition.
                out.hints.extend(quote!(#condition { #addition }));
            } else if path.is_ident("exit") {
                set_once(&mut out.exit, attribute, attribute.parse_args_with(parse_exit)?)?;
            } else if path.is_ident("decision") {
                let condition = match &attribute.meta {
                    Meta::Path(_) => quote!(true),
                    _ => attribute.meta.require_list()?.tokens.clone(),
                };
                set_once(&mut out.decision, attribute, condition)?;
            } else if path.is_ident("error") {
                let arguments = attribute.meta.require_list()?.tokens.to_string();
                out.is_transparent |= arguments == "transparent";
            }
        }
        Ok(out)
    }

    /// Returns these attributes, with those of `defaults` where there are none of their kind.
    pub(crate) fn or_defaults(mut self, defaults: &Attributes) -> Attributes {
        if self.hints.is_empty() && !self.is_transparent {
            self.hints = defaults.hints.clone();
        }
        if !self.is_transparent {
            self.exit = self.exit.or_else(|| defaults.exit.clone());
        }
        self.decision = self.decision.or_else(|| defaults.decision.clone());
        self
    }
}

/// Returns the variable that hints are added to. No name in an attribute can mean it.
pub(crate) fn hints_variable() -> Ident {
    Ident::new("hints", Span::mixed_site())
}

/// Sets the value of an attribute; fails if it was set before.
fn set_once(value: &mut Option<TokenStream>, attribute: &Attribute, new: TokenStream) -> Result<()> {
    match value.replace(new) {
        None => Ok(()),
        Some(_) => Err(Error::new_spanned(attribute, "this attribute is there twice")),
    }
}

/// Parses the arguments of `#[hint(…)]`: the condition, empty for none, and the statement that adds the hint.
fn parse_hint(input: ParseStream, may_have_else: bool) -> Result<(TokenStream, TokenStream)> {
    if input.peek(Token![else]) && !may_have_else {
        return Err(input.error("an `else` hint has to follow an `if` hint"));
    }
    let condition = parse_condition(input)?;
    let hints = hints_variable();
    if !input.peek(LitStr) {
        let ready = parse_with_expression(input, "expected a text in quotes, or `with = …`")?;
        return Ok((condition, quote!(#hints.extend(#ready);)));
    }
    let text: TokenStream = input.parse()?;
    Ok((condition, quote!(#hints.push(::proq_base::hint!(#text));)))
}

/// Parses `if …,`, `else,` or `else if …,` and returns it without the comma; empty without a condition.
fn parse_condition(input: ParseStream) -> Result<TokenStream> {
    let mut condition = TokenStream::new();
    if !input.peek(Token![if]) && !input.peek(Token![else]) {
        return Ok(condition);
    }
    while !input.peek(Token![,]) {
        if input.is_empty() {
            return Err(input.error("expected a comma and a hint after the condition"));
        }
        condition.extend([input.parse::<TokenTree>()?]);
    }
    input.parse::<Token![,]>()?;
    Ok(condition)
}

/// Parses the arguments of `#[exit(…)]` into an expression.
fn parse_exit(input: ParseStream) -> Result<TokenStream> {
    if input.peek2(Token![=]) {
        return parse_with_expression(input, "expected a variant of `Exit`, or `with = …`");
    }
    let variant: Ident = input.parse()?;
    Ok(quote!(::proq_base::explain::Exit::#variant))
}

/// Parses `with = EXPRESSION` and returns the expression; any other input is an error with this message.
fn parse_with_expression(input: ParseStream, message: &str) -> Result<TokenStream> {
    let start = input.fork();
    let is_with = input.parse::<Ident>().is_ok_and(|word| word == "with");
    if !is_with || input.parse::<Token![=]>().is_err() || input.is_empty() {
        return Err(start.error(message));
    }
    input.parse()
}
