//! Prices of tokens, for agents that do not report cost. All prices come from the configuration; none are
//! built in.

use std::str::FromStr;

use proq_base::money::NanoDollars;
use proq_base::usage::{Cost, Tokens};
use serde::Deserialize;

/// Prices of one model per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "PriceInDollars")]
pub struct Price {
    /// Price of a million input tokens that were neither read from a cache nor written to one.
    input: NanoDollars,
    /// Price of a million input tokens that were read from a cache.
    cached_input: NanoDollars,
    /// Price of a million input tokens that were written to a cache.
    cache_write: NanoDollars,
    /// Price of a million output tokens.
    output: NanoDollars,
}

/// Prices of one model as configured: US dollars per million tokens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceInDollars {
    /// Dollars per million input tokens.
    input: f64,
    /// Dollars per million input tokens read from a cache; none for the price of `input`.
    cached: Option<f64>,
    /// Dollars per million input tokens written to a cache; none for the price of `input`.
    cache_write: Option<f64>,
    /// Dollars per million output tokens.
    output: f64,
}

impl TryFrom<PriceInDollars> for Price {
    type Error = String;

    fn try_from(entry: PriceInDollars) -> Result<Price, String> {
        let to_price = |name: &str, dollars: f64| {
            if dollars.is_finite() && (0.0..=1e6).contains(&dollars) {
                Ok(NanoDollars::from_dollars(dollars))
            } else {
                Err(format!("{name} is not a price: expected US dollars per million tokens, such as 1.25"))
            }
        };
        Ok(Price {
            input: to_price("input", entry.input)?,
            cached_input: to_price("cached", entry.cached.unwrap_or(entry.input))?,
            cache_write: to_price("cache_write", entry.cache_write.unwrap_or(entry.input))?,
            output: to_price("output", entry.output)?,
        })
    }
}

/// A TOML document with one price, used to parse a price on one line by the rules of a TOML table.
#[derive(Deserialize)]
struct PriceDocument {
    price: Price,
}

impl FromStr for Price {
    type Err = String;

    /// Parses `input=1.25, cached=0.125, output=10`: the fields of a table on one line. `cached` and
    /// `cache_write` default to `input`.
    fn from_str(text: &str) -> Result<Price, String> {
        let text = text.trim();
        let body = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        if body.contains('\n') {
            return Err("a price is one line, as in input=1.25, cached=0.125, output=10".to_owned());
        }
        toml::from_str::<PriceDocument>(&format!("price = {{ {body} }}"))
            .map(|h| h.price)
            .map_err(|e| format!("{}: write it as in input=1.25, cached=0.125, output=10", e.message()))
    }
}

impl Price {
    /// Returns the cost of these tokens, rounded to the nearest billionth of a dollar.
    pub fn cost(&self, tokens: &Tokens) -> NanoDollars {
        let sum: u128 = [
            (tokens.input, self.input),
            (tokens.cached_input, self.cached_input),
            (tokens.cache_write, self.cache_write),
            (tokens.output, self.output),
        ]
        .into_iter()
        .map(|(count, price)| u128::from(count) * u128::from(price.nanos()))
        .sum();
        NanoDollars::new(u64::try_from((sum + 500_000) / 1_000_000).unwrap_or(u64::MAX))
    }
}

/// Table of prices by model.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Prices {
    /// Globs of model names, each with the price of the models that it matches.
    prices_by_glob: Vec<(String, Price)>,
}

impl FromIterator<(String, Price)> for Prices {
    /// Creates a table from entries: a model name, in which `*` matches any characters, and its price.
    fn from_iter<I: IntoIterator<Item = (String, Price)>>(entries: I) -> Prices {
        Prices { prices_by_glob: entries.into_iter().collect() }
    }
}

impl Prices {
    /// Returns whether no price is configured.
    pub fn is_empty(&self) -> bool {
        self.prices_by_glob.is_empty()
    }

    /// Finds the price of a model by the matching entry with the most literal characters. A name like
    /// `openai/gpt-5` is matched in full first, then by the part after its last slash.
    pub fn find_price(&self, model: &str) -> Option<&Price> {
        let base_name = model.rsplit('/').next().filter(|short| *short != model);
        [Some(model), base_name].into_iter().flatten().find_map(|name| {
            let matching = self.prices_by_glob.iter().filter(|(glob, _)| glob_matches(glob, name));
            matching
                .max_by_key(|(glob, _)| glob.chars().filter(|c| *c != '*').count())
                .map(|(_, price)| price)
        })
    }

    /// Estimates the cost of a model's tokens; none if the table has no price for the model.
    pub(crate) fn estimate_cost(&self, model: &str, tokens: &Tokens) -> Option<Cost> {
        self.find_price(model).map(|price| Cost { amount: price.cost(tokens), estimated: true })
    }
}

/// Returns whether a name matches a pattern, in which `*` stands for any characters. In a wildmatch pattern,
/// `?`, `[` and `\` would be special too.
fn glob_matches(glob: &str, name: &str) -> bool {
    let Some((prefix, tail)) = glob.split_once('*') else { return glob == name };
    let Some(mut remaining) = name.strip_prefix(prefix) else { return false };
    let mut middle: Vec<&str> = tail.split('*').collect();
    let suffix = middle.pop().unwrap_or_default();
    for piece in middle {
        match remaining.find(piece) {
            Some(at) => remaining = &remaining[at + piece.len()..],
            None => return false,
        }
    }
    remaining.ends_with(suffix)
}
