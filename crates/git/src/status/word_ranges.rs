//! The words in which a removed line and the line that replaces it differ.

/// Maximum number of words of each side that are compared one by one. More differ as a whole.
const MAX_WORDS: usize = 120;

/// Returns the ranges in which two lines differ, in characters of each: whole words, runs of white space, and
/// single other characters. Empty for lines without a word in common, which are not versions of each other.
pub(crate) fn differing_words(old: &str, new: &str) -> [Vec<[usize; 2]>; 2] {
    let (old_words, new_words) = (split_words(old), split_words(new));
    let is_same = |(a, b): &(&&str, &&str)| a == b;
    let prefix = old_words.iter().zip(&new_words).take_while(is_same).count();
    let (old_rest, new_rest) = (&old_words[prefix..], &new_words[prefix..]);
    let suffix = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(is_same).count();
    let (old_middle, new_middle) =
        (&old_rest[..old_rest.len() - suffix], &new_rest[..new_rest.len() - suffix]);
    let kept = common_words(old_middle, new_middle);
    let has_common = |words: &[&str], common: &[bool]| {
        let edges = words[..prefix].iter().chain(&words[words.len() - suffix..]);
        let middle = words[prefix..].iter().zip(common).filter(|(_, common)| **common).map(|(word, _)| word);
        edges.chain(middle).any(|word| word.chars().any(char::is_alphanumeric))
    };
    match has_common(&old_words, &kept[0]) {
        true => [ranges(&old_words, prefix, &kept[0]), ranges(&new_words, prefix, &kept[1])],
        false => [Vec::new(), Vec::new()],
    }
}

/// Splits a text into words, runs of white space, and single other characters.
fn split_words(text: &str) -> Vec<&str> {
    let class = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' => Some(true),
        c if c.is_whitespace() => Some(false),
        _ => None,
    };
    let mut out = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((_, c)) = chars.next() {
        let end = chars.peek().map_or(text.len(), |(next, _)| *next);
        let goes_on = chars.peek().is_some_and(|(_, next)| class(c).is_some() && class(*next) == class(c));
        if !goes_on {
            out.push(&text[start..end]);
            start = end;
        }
    }
    out
}

/// Returns for each word of both sides whether it belongs to their longest common sequence.
fn common_words(old: &[&str], new: &[&str]) -> [Vec<bool>; 2] {
    let mut out = [vec![false; old.len()], vec![false; new.len()]];
    if old.len() > MAX_WORDS || new.len() > MAX_WORDS {
        return out;
    }
    // Length of the longest common sequence of the words from each pair of positions on.
    let mut lengths = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            lengths[i][j] = match old[i] == new[j] {
                true => lengths[i + 1][j + 1] + 1,
                false => lengths[i + 1][j].max(lengths[i][j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            (out[0][i], out[1][j]) = (true, true);
            (i, j) = (i + 1, j + 1);
        } else if lengths[i + 1][j] >= lengths[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    out
}

/// Returns the ranges of the words from `first` on that are not common, in characters, joined where they touch.
fn ranges(words: &[&str], first: usize, common: &[bool]) -> Vec<[usize; 2]> {
    let mut out: Vec<[usize; 2]> = Vec::new();
    let mut at: usize = words[..first].iter().map(|word| word.chars().count()).sum();
    for (word, common) in words[first..].iter().zip(common) {
        let end = at + word.chars().count();
        match out.last_mut() {
            _ if *common => {}
            Some(last) if last[1] == at => last[1] = end,
            _ => out.push([at, end]),
        }
        at = end;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_words_that_differ() {
        assert_eq!(
            differing_words("let total = price;", "let sum = price + tax;"),
            [vec![[4, 9]], vec![[4, 7], [15, 21]]]
        );
        assert_eq!(differing_words("größe = 1", "größe = 2"), [vec![[8, 9]], vec![[8, 9]]]);
        assert_eq!(differing_words("same", "same, and more"), [vec![], vec![[4, 14]]]);
    }

    #[test]
    fn marks_nothing_in_unrelated_lines() {
        assert_eq!(differing_words("alpha();", "beta();"), [vec![[0, 0]; 0], vec![]]);
    }
}
