//! Work shared between threads without changing its outcome.

use std::ops::Range;

/// Applies `work` to every item and returns the answers in the items' order, whatever the number of
/// threads: items are dealt out in turn, and each answer goes to its item's place.
pub(crate) fn map<T: Sync, R: Send>(threads: usize, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = threads.clamp(1, items.len().max(1));
    if threads == 1 {
        return items.iter().map(work).collect();
    }
    let deal = |hand: usize| items.iter().skip(hand).step_by(threads).map(&work).collect::<Vec<R>>();
    let deal = &deal;
    let mut hands: Vec<std::vec::IntoIter<R>> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|hand| scope.spawn(move || deal(hand))).collect();
        let mut hands = vec![deal(0).into_iter()];
        // A worker only ends early by a panic of ours, which is then ours to pass on.
        hands.extend(others.into_iter().map(|worker| match worker.join() {
            Ok(answers) => answers.into_iter(),
            Err(panic) => std::panic::resume_unwind(panic),
        }));
        hands
    });
    (0..items.len()).filter_map(|index| hands[index % threads].next()).collect()
}

/// The numbers below `count` in as many ranges as there are threads, all about as long; fewer if those would be shorter
/// than `least`.
pub(crate) fn split(threads: usize, count: u32, least: u32) -> Vec<Range<u32>> {
    let threads = u32::try_from(threads.max(1)).unwrap_or(u32::MAX);
    let length = count.div_ceil(threads).max(least);
    (0..count).step_by(length as usize).map(|first| first..(first + length).min(count)).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn ranges_are_as_many_as_threads_and_hold_every_number_once() {
        assert_eq!(super::split(2, 10, 3), [0..5, 5..10]);
        assert_eq!(super::split(3, 10, 3), [0..4, 4..8, 8..10]);
        assert_eq!(super::split(8, 10, 6), [0..6, 6..10]);
        assert_eq!(super::split(1, 10, 3).len(), 1);
        assert_eq!(super::split(2, 0, 3), []);
        // More than there are numbers for, however many: not none at all.
        assert_eq!(super::split(1 << 32, 10, 6), [0..6, 6..10]);
    }

    #[test]
    fn answers_come_in_the_order_of_the_items_at_any_number_of_threads() {
        let items: Vec<u32> = (0..101).collect();
        let expected: Vec<u32> = items.iter().map(|item| item * 3).collect();
        for threads in [1, 2, 3, 8, 200] {
            assert_eq!(super::map(threads, &items, |item| item * 3), expected);
        }
        assert_eq!(super::map(4, &[] as &[u32], |item| *item), Vec::<u32>::new());
    }
}
