//! Owns the tests of the generator itself: nothing is left out, and the same seed gives the same states.

use std::collections::BTreeMap;

use super::{Combo, Deck};

#[test]
fn every_impossible_combination_has_a_reason() {
    let every = Combo::every();
    let all = Combo::all();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for why in every.iter().filter_map(|combo| combo.impossible()) {
        *reasons.entry(why).or_default() += 1;
    }
    assert_eq!(every.len(), 4 * 6 * 11 * 2 * 4);
    assert_eq!(all.len() + reasons.values().sum::<usize>(), every.len());
    assert!(all.len() > 1000, "{}", all.len());
}

#[test]
fn all_combinations_are_dealt_before_one_comes_again() {
    let deck = Deck::new(7);
    let mut dealt: BTreeMap<Combo, usize> = BTreeMap::new();
    for number in 0..deck.complete_after() {
        for spot in deck.state(number).spots {
            *dealt.entry(spot.combo).or_default() += 1;
        }
    }
    assert_eq!(dealt.len(), deck.len());
    assert!(dealt.values().all(|count| *count <= 2));
}

#[test]
fn the_same_seed_gives_the_same_state() {
    assert_eq!(Deck::new(7).state(5), Deck::new(7).state(5));
    assert_ne!(Deck::new(7).state(5), Deck::new(8).state(5));
    assert_eq!(Deck::new(7).state(5).dirty(), Deck::new(7).state(5).dirty());
}
