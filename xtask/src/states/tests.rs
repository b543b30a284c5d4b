//! Tests of the state generator: it leaves out no combination, and the same seed gives the same states.

use std::collections::BTreeMap;

use super::{Deck, PathState};

#[test]
fn combinations_are_possible_or_have_a_reason() {
    let every = PathState::every_combination();
    let all = PathState::possible();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in every.iter().filter_map(|combo| combo.impossible_reason()) {
        *reasons.entry(reason).or_default() += 1;
    }
    assert_eq!(every.len(), 4 * 6 * 11 * 2 * 4);
    assert_eq!(all.len() + reasons.values().sum::<usize>(), every.len());
    assert!(all.len() > 1000, "{}", all.len());
}

#[test]
fn deals_every_combination_before_repeating() {
    let deck = Deck::new(7);
    let mut dealt: BTreeMap<PathState, usize> = BTreeMap::new();
    for number in 0..deck.complete_after() {
        for spot in deck.state(number).paths {
            *dealt.entry(spot.state).or_default() += 1;
        }
    }
    assert_eq!(dealt.len(), deck.len());
    assert!(dealt.values().all(|count| *count <= 2));
}

#[test]
fn same_seed_gives_same_state() {
    assert_eq!(Deck::new(7).state(5), Deck::new(7).state(5));
    assert_ne!(Deck::new(7).state(5), Deck::new(8).state(5));
    assert_eq!(Deck::new(7).state(5).dirty(), Deck::new(7).state(5).dirty());
}
