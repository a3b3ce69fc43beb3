//! A small map that forgets what was not used for longest, by weight.

use std::collections::HashMap;
use std::hash::Hash;

#[derive(Debug)]
pub(crate) struct Lru<K, V> {
    entries: HashMap<K, (V, usize, u64)>,
    weight: usize,
    weight_max: usize,
    clock: u64,
}

impl<K: Hash + Eq + Clone, V: Clone> Lru<K, V> {
    pub(crate) fn new(weight_max: usize) -> Self {
        Self {
            entries: HashMap::new(),
            weight: 0,
            weight_max,
            clock: 0,
        }
    }

    pub(crate) fn get(&mut self, key: &K) -> Option<V> {
        self.clock += 1;
        let clock = self.clock;
        self.entries.get_mut(key).map(|(value, _, used)| {
            *used = clock;
            value.clone()
        })
    }

    /// Keeps a value; what is oldest goes while the whole weighs too much.
    pub(crate) fn put(&mut self, key: K, value: V, weight: usize) {
        self.clock += 1;
        if let Some((_, old, _)) = self.entries.insert(key, (value, weight, self.clock)) {
            self.weight -= old;
        }
        self.weight += weight;
        while self.weight > self.weight_max && self.entries.len() > 1 {
            // A scan, because there are at most a few hundred entries and a miss costs a read.
            let oldest = self.entries.iter().min_by_key(|(_, (_, _, used))| *used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            if let Some((_, old, _)) = self.entries.remove(&key) {
                self.weight -= old;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut lru = Lru::new(2);
        lru.put('a', 1, 1);
        lru.put('b', 2, 1);
        assert_eq!(lru.get(&'a'), Some(1));
        lru.put('c', 3, 1);
        assert_eq!(lru.get(&'b'), None);
        assert_eq!((lru.get(&'a'), lru.get(&'c')), (Some(1), Some(3)));
        lru.put('d', 4, 9);
        assert_eq!((lru.get(&'a'), lru.get(&'d')), (None, Some(4)));
    }
}
