//! Owns prices: what tokens cost, for agents that do not say it. There are none but those in the configuration.

use std::str::FromStr;

use serde::Deserialize;

use super::event::nanos;
use super::{Cost, Tokens};

/// What one model's tokens cost, in billionths of a US dollar a million.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Dollars")]
pub(crate) struct Price {
    input: u64,
    cached: u64,
    cache_write: u64,
    output: u64,
}

/// An entry as it is written: US dollars a million tokens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dollars {
    input: f64,
    cached: Option<f64>,
    cache_write: Option<f64>,
    output: f64,
}

impl TryFrom<Dollars> for Price {
    type Error = String;

    fn try_from(entry: Dollars) -> Result<Price, String> {
        let whole = |name: &str, dollars: f64| {
            if dollars.is_finite() && (0.0..=1e6).contains(&dollars) {
                Ok(nanos(dollars))
            } else {
                Err(format!("{name} is no price: US dollars a million tokens are wanted, as in 1.25"))
            }
        };
        Ok(Price {
            input: whole("input", entry.input)?,
            cached: whole("cached", entry.cached.unwrap_or(entry.input))?,
            cache_write: whole("cache_write", entry.cache_write.unwrap_or(entry.input))?,
            output: whole("output", entry.output)?,
        })
    }
}

/// A line of a table's own form, so that it is read by the same rules.
#[derive(Deserialize)]
struct Holder {
    price: Price,
}

impl FromStr for Price {
    type Err = String;

    /// Reads `input=1.25, cached=0.125, output=10`: a table's inside on one line. `cached` and `cache_write` are as `input`
    /// where they are not named.
    fn from_str(text: &str) -> Result<Price, String> {
        let text = text.trim();
        let inside = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        if inside.contains('\n') {
            return Err("a price is one line, as in input=1.25, cached=0.125, output=10".to_owned());
        }
        toml::from_str::<Holder>(&format!("price = {{ {inside} }}"))
            .map(|h| h.price)
            .map_err(|e| format!("{}: write it as in input=1.25, cached=0.125, output=10", e.message()))
    }
}

impl Price {
    /// What these tokens cost, rounded to the nearest billionth of a dollar.
    pub(crate) fn of(&self, tokens: &Tokens) -> u64 {
        let sum: u128 = [
            (tokens.input, self.input),
            (tokens.cached_input, self.cached),
            (tokens.cache_write, self.cache_write),
            (tokens.output, self.output),
        ]
        .into_iter()
        .map(|(count, price)| u128::from(count) * u128::from(price))
        .sum();
        u64::try_from((sum + 500_000) / 1_000_000).unwrap_or(u64::MAX)
    }
}

/// A table of prices by model.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Prices {
    entries: Vec<(String, Price)>,
}

impl FromIterator<(String, Price)> for Prices {
    /// Makes a table of entries: a model's name, in which `*` stands for any letters, and its price.
    fn from_iter<I: IntoIterator<Item = (String, Price)>>(entries: I) -> Prices {
        Prices { entries: entries.into_iter().collect() }
    }
}

impl Prices {
    /// Whether nobody has named any.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The price of a model, by the entry with most letters. A name like `openai/gpt-5` is looked up whole, then behind
    /// its last slash.
    pub(crate) fn of(&self, model: &str) -> Option<&Price> {
        let short = model.rsplit('/').next().filter(|short| *short != model);
        [Some(model), short].into_iter().flatten().find_map(|name| {
            let fits = self.entries.iter().filter(|(glob, _)| matches(glob, name));
            fits.max_by_key(|(glob, _)| glob.chars().filter(|c| *c != '*').count()).map(|(_, price)| price)
        })
    }

    /// What these tokens of a model cost; none if the table does not know it.
    pub(crate) fn estimate(&self, model: &str, tokens: &Tokens) -> Option<Cost> {
        self.of(model).map(|price| Cost { nanos: price.of(tokens), estimated: true })
    }
}

/// Whether a name has a pattern's form. Takes the pattern's pieces one after the other, each at its first place.
fn matches(glob: &str, name: &str) -> bool {
    let Some((head, tail)) = glob.split_once('*') else { return glob == name };
    let Some(mut rest) = name.strip_prefix(head) else { return false };
    let mut pieces: Vec<&str> = tail.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}
