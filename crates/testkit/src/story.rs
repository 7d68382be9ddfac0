//! Stories that chance tells: the seed that they come from, and what is left of one that went wrong when everything is
//! left out that it does not need.

/// Chance from a seed: SplitMix64, the same everywhere.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// All that this seed brings.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; none is below zero, so zero comes of that.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias of the remainder is far below anything a story could notice.
        self.roll().checked_rem(bound).unwrap_or(0)
    }

    /// Whether something happens that happens once in so many times.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of these, each as often as its weight says. None if nothing has any.
    pub fn weighed<T: Copy>(&mut self, among: &[(T, u64)]) -> Option<T> {
        let mut left = self.below(among.iter().map(|(_, weight)| weight).sum());
        among.iter().find_map(|(one, weight)| match left.checked_sub(*weight) {
            Some(rest) => {
                left = rest;
                None
            }
            None => Some(*one),
        })
    }
}

/// What is left of a story that goes wrong when parts are left out for as long as the rest still goes wrong, and how that goes
/// wrong. `goes_wrong` tells a story anew and says how, if it does; it is asked no more than `times`.
pub fn shrunk<D: Clone, F>(
    story: &[D],
    how: F,
    times: usize,
    mut goes_wrong: impl FnMut(&[D]) -> Option<F>,
) -> (Vec<D>, F) {
    let (mut story, mut how) = (story.to_vec(), how);
    let mut part = story.len().div_ceil(2).max(1);
    let (mut from, mut asked, mut changed) = (0, 0, false);
    while asked < times {
        if from >= story.len() {
            // All parts of this length were tried. The shortest are tried again for as long as that helps.
            if part == 1 && !changed {
                break;
            }
            changed &= part > 1;
            (part, from) = ((part / 2).max(1), 0);
            if story.is_empty() {
                break;
            }
            continue;
        }
        let shorter: Vec<D> = story.iter().take(from).chain(story.iter().skip(from + part)).cloned().collect();
        asked += 1;
        match goes_wrong(&shorter) {
            Some(so) => (story, how, changed) = (shorter, so, true),
            None => from += part,
        }
    }
    (story, how)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_brings_the_same_and_another_something_else() {
        let some = |seed| {
            let mut chance = Chance::new(seed);
            (0..20).map(|_| chance.below(1_000)).collect::<Vec<_>>()
        };
        assert_eq!(some(7), some(7));
        assert_ne!(some(7), some(8));
        assert!(some(7).iter().all(|number| *number < 1_000));
    }

    #[test]
    fn what_weighs_more_comes_more_often_and_what_weighs_nothing_never() {
        let mut chance = Chance::new(1);
        let mut came = [0; 3];
        for _ in 0..1_000 {
            came[chance.weighed(&[(0, 1), (1, 0), (2, 9)]).unwrap()] += 1;
        }
        assert!(came[0] > 50 && came[1] == 0 && came[2] > 800, "{came:?}");
        assert_eq!(chance.weighed::<i32>(&[]), None);
    }

    /// Goes wrong if 3 comes before 7, however much else happens.
    fn wrong(story: &[i32]) -> Option<String> {
        let at = |wanted: i32| story.iter().position(|one| *one == wanted);
        (at(3)? < at(7)?).then(|| format!("{story:?}"))
    }

    #[test]
    fn only_what_a_failure_needs_is_left() {
        let story: Vec<i32> = (0..20).collect();
        let (left, how) = shrunk(&story, wrong(&story).unwrap(), 1_000, wrong);
        assert_eq!((left, how.as_str()), (vec![3, 7], "[3, 7]"));
    }

    #[test]
    fn whoever_may_not_ask_often_has_a_longer_story_that_goes_wrong_all_the_same() {
        let story: Vec<i32> = (0..20).collect();
        for times in 0..30 {
            let mut asked = 0;
            let (left, _) = shrunk(&story, String::new(), times, |story| {
                asked += 1;
                wrong(story)
            });
            assert!(wrong(&left).is_some() && asked <= times, "{left:?} after {asked}");
        }
        let always = |_: &[i32]| Some(());
        assert!(shrunk(&story, (), 1_000, always).0.is_empty(), "what always goes wrong needs no story");
    }
}
