//! Work shared between threads without changing its outcome.

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

#[cfg(test)]
mod tests {
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
