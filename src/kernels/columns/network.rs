//! Selection networks: compare-exchange sequences that leave wanted ranks on known wires.
//!
//! A list is padded with constants to a power of two, sorted in groups of sixteen by Green's network, merged by Batcher's
//! odd-even merges, and then stripped of every half comparator that no wanted rank depends on. For a single rank the last
//! merge can be a tree instead: the k-th smallest of two sorted lists a and b is the least max(a[i], b[j]) with i + j = k,
//! which also pays off where the two lists differ in length.

/// One compare-exchange: the smaller value goes to wire `low`, the larger to wire `high`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Wire of the smaller value.
    pub low: usize,
    /// Wire of the larger value.
    pub high: usize,
    /// Whether the smaller value is used later on.
    pub keep_low: bool,
    /// Whether the larger value is used later on.
    pub keep_high: bool,
}

/// A selection network over the wires `0..n`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// Number of wires.
    pub n: usize,
    /// Comparators in order.
    pub steps: Vec<Step>,
    /// For each wanted rank, in the order asked for, the wire that holds it at the end.
    pub outputs: Vec<usize>,
}

impl Network {
    /// The cheapest network of this construction that leaves `ranks` of `n` values on its outputs.
    pub fn select(n: usize, ranks: &[usize]) -> Network {
        assert!(n > 0 && ranks.iter().all(|&rank| rank < n));
        let merged = cheapest_padding(n, &live(n, ranks.iter().copied()));
        let tree = match ranks {
            [rank] => (n.div_ceil(2)..n).map(|left| Tree::new(n, left, *rank)).min_by_key(|tree| tree.cost),
            _ => None,
        };
        match tree {
            Some(tree) if tree.cost < merged.cost => tree.network(n),
            _ => Network {
                n,
                steps: merged.steps(n, &live(n, ranks.iter().copied())),
                outputs: ranks.to_vec(),
            },
        }
    }

    /// How many min and max operations the network spends.
    #[cfg(test)]
    fn operations(&self) -> usize {
        self.steps.iter().map(|step| usize::from(step.keep_low) + usize::from(step.keep_high)).sum()
    }
}

/// Which wires carry a wanted rank.
fn live(n: usize, ranks: impl Iterator<Item = usize>) -> Vec<bool> {
    let mut live = vec![false; n];
    ranks.for_each(|rank| live[rank] = true);
    live
}

/// A pruned sorter of `n` wires with `below` pads of -Inf under them.
struct Padding {
    below: usize,
    cost: usize,
}

/// Pads below and above in any proportion give the same ranks; the proportion decides how much of the sorter dies.
fn cheapest_padding(n: usize, wanted: &[bool]) -> Padding {
    let sorter = sorter(n.next_power_of_two());
    (0..=n.next_power_of_two() - n)
        .map(|below| {
            let mut cost = 0;
            prune(&sorter, below, wanted, |step| {
                cost += usize::from(step.keep_low) + usize::from(step.keep_high)
            });
            Padding { below, cost }
        })
        .min_by_key(|padding| padding.cost)
        .expect("at least one padding")
}

impl Padding {
    fn steps(&self, n: usize, wanted: &[bool]) -> Vec<Step> {
        let mut steps = Vec::new();
        prune(&sorter(n.next_power_of_two()), self.below, wanted, |step| steps.push(step));
        steps.reverse();
        steps
    }
}

/// Two sorted lists, the first `left` wires and the rest, joined by a tree for one rank.
struct Tree {
    left: usize,
    /// Pairs (i, j) of list lengths: how many values of each list lie at or below the candidate.
    pairs: Vec<(usize, usize)>,
    cost: usize,
}

impl Tree {
    fn new(n: usize, left: usize, rank: usize) -> Tree {
        let right = n - left;
        let pairs: Vec<_> =
            (0..=rank + 1).map(|i| (i, rank + 1 - i)).filter(|&(i, j)| i <= left && j <= right).collect();
        let maxima = pairs.iter().filter(|&&(i, j)| i > 0 && j > 0).count();
        let mut tree = Tree { left, cost: maxima + pairs.len() - 1, pairs };
        let (a, b) = tree.wanted(n);
        tree.cost += cheapest_padding(left, &a).cost + cheapest_padding(right, &b).cost;
        tree
    }

    fn wanted(&self, n: usize) -> (Vec<bool>, Vec<bool>) {
        let ends = |length, pick: fn(&(usize, usize)) -> usize| {
            live(length, self.pairs.iter().map(pick).filter(|&end| end > 0).map(|end| end - 1))
        };
        (ends(self.left, |pair| pair.0), ends(n - self.left, |pair| pair.1))
    }

    fn network(&self, n: usize) -> Network {
        let (a, b) = self.wanted(n);
        let mut steps = cheapest_padding(self.left, &a).steps(self.left, &a);
        let right = cheapest_padding(n - self.left, &b).steps(n - self.left, &b);
        steps.extend(right.into_iter().map(|s| Step {
            low: s.low + self.left,
            high: s.high + self.left,
            ..s
        }));
        let mut candidates = Vec::with_capacity(self.pairs.len());
        for &(i, j) in &self.pairs {
            if i > 0 && j > 0 {
                let (low, high) = (i - 1, self.left + j - 1);
                steps.push(Step { low, high, keep_low: false, keep_high: true });
            }
            candidates.push(if j > 0 { self.left + j - 1 } else { i - 1 });
        }
        while candidates.len() > 1 {
            let half = candidates.len().div_ceil(2);
            for (&low, &high) in candidates.iter().zip(&candidates[half..]) {
                steps.push(Step { low, high, keep_low: true, keep_high: false });
            }
            candidates.truncate(half);
        }
        Network { n, steps, outputs: candidates }
    }
}

/// Green's sorting network of sixteen wires and sixty comparators.
#[rustfmt::skip]
const GREEN_16: [(usize, usize); 60] = [
    (0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (10, 11), (12, 13), (14, 15),
    (0, 2), (1, 3), (4, 6), (5, 7), (8, 10), (9, 11), (12, 14), (13, 15),
    (0, 4), (1, 5), (2, 6), (3, 7), (8, 12), (9, 13), (10, 14), (11, 15),
    (0, 8), (1, 9), (2, 10), (3, 11), (4, 12), (5, 13), (6, 14), (7, 15),
    (5, 10), (6, 9), (3, 12), (13, 14), (4, 8), (7, 11), (1, 2),
    (1, 4), (7, 13), (2, 8), (11, 14),
    (2, 4), (5, 6), (9, 10), (11, 13), (3, 8), (7, 12),
    (6, 8), (10, 12), (3, 5), (7, 9),
    (3, 4), (5, 6), (7, 8), (9, 10), (11, 12),
    (6, 7), (8, 9),
];

/// Comparators that sort `size` wires, a power of two.
fn sorter(size: usize) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    sort_range(0, size, &mut pairs);
    pairs
}

fn sort_range(first: usize, size: usize, pairs: &mut Vec<(usize, usize)>) {
    if size == 16 {
        pairs.extend(GREEN_16.iter().map(|&(low, high)| (first + low, first + high)));
    } else if size > 1 {
        sort_range(first, size / 2, pairs);
        sort_range(first + size / 2, size / 2, pairs);
        merge(first, size, 1, pairs);
    }
}

/// Batcher's odd-even merge of the two sorted halves of `size` wires, taken `stride` apart.
fn merge(first: usize, size: usize, stride: usize, pairs: &mut Vec<(usize, usize)>) {
    let step = stride * 2;
    if step >= size {
        pairs.push((first, first + stride));
        return;
    }
    merge(first, size, step, pairs);
    merge(first + stride, size, step, pairs);
    let mut wire = first + stride;
    while wire + stride < first + size {
        pairs.push((wire, wire + stride));
        wire += step;
    }
}

/// Walks the sorter backwards and passes on each step that a wanted wire depends on, without the pads.
fn prune(sorter: &[(usize, usize)], below: usize, wanted: &[bool], mut keep: impl FnMut(Step)) {
    let n = wanted.len();
    let real = |wire: usize| wire >= below && wire < below + n;
    let mut live = wanted.to_vec();
    for &(low, high) in sorter.iter().rev().filter(|&&(low, high)| real(low) && real(high)) {
        let (low, high) = (low - below, high - below);
        let (keep_low, keep_high) = (live[low], live[high]);
        if keep_low || keep_high {
            live[low] = true;
            live[high] = true;
            keep(Step { low, high, keep_low, keep_high });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(network: &Network, values: &mut [u64]) {
        for step in &network.steps {
            let (a, b) = (values[step.low], values[step.high]);
            values[step.low] = if step.keep_low { a.min(b) } else { u64::MAX };
            values[step.high] = if step.keep_high { a.max(b) } else { 0 };
        }
    }

    /// By the 0-1 principle a min/max network is right on all inputs when it is right on every input of zeros and ones.
    /// Sixty-four such inputs travel in one word: min is AND, max is OR.
    fn check_all_binary_inputs(n: usize, ranks: &[usize]) {
        let network = Network::select(n, ranks);
        let inputs = 1u64 << n;
        for base in (0..inputs).step_by(64) {
            let width = (inputs - base).min(64);
            let mut wires: Vec<u64> = (0..n)
                .map(|wire| (0..width).fold(0, |word, k| word | ((((base + k) >> wire) & 1) << k)))
                .collect();
            for step in &network.steps {
                let (a, b) = (wires[step.low], wires[step.high]);
                wires[step.low] = if step.keep_low { a & b } else { !0 };
                wires[step.high] = if step.keep_high { a | b } else { 0 };
            }
            for (&rank, &wire) in ranks.iter().zip(&network.outputs) {
                for k in 0..width {
                    let zeros = n - (base + k).count_ones() as usize;
                    assert_eq!((wires[wire] >> k) & 1 == 1, rank >= zeros, "n = {n}, rank {rank}");
                }
            }
        }
    }

    #[test]
    fn small_networks_are_right_on_every_binary_input() {
        for n in 1..=16 {
            check_all_binary_inputs(n, &[n / 2]);
            check_all_binary_inputs(n, &[(n - 1) / 2]);
            if n > 1 {
                check_all_binary_inputs(n, &[n / 2 - 1, n / 2]);
            }
        }
    }

    #[test]
    fn large_networks_select_the_asked_ranks() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for n in 17..=128 {
            let ranks: &[usize] = if n % 3 == 0 { &[n / 2 - 1, n / 2] } else { &[n / 2] };
            let network = Network::select(n, ranks);
            for round in 0..60 {
                let range = if round % 2 == 0 { u64::MAX } else { 3 };
                let mut values: Vec<u64> = (0..n)
                    .map(|_| {
                        state ^= state << 13;
                        state ^= state >> 7;
                        state ^= state << 17;
                        state % range
                    })
                    .collect();
                let mut sorted = values.clone();
                sorted.sort_unstable();
                run(&network, &mut values);
                for (&rank, &wire) in ranks.iter().zip(&network.outputs) {
                    assert_eq!(values[wire], sorted[rank], "n = {n}, rank {rank}");
                }
            }
        }
    }

    #[test]
    fn operation_counts_stay_low() {
        let most = [
            (3, 4),
            (5, 10),
            (9, 30),
            (16, 81),
            (31, 252),
            (32, 261),
            (48, 487),
            (64, 769),
            (100, 1563),
            (127, 2146),
        ];
        for (n, limit) in most {
            let spent = Network::select(n, &[(n - 1) / 2]).operations();
            assert!(spent <= limit, "n = {n}: {spent} operations, {limit} known");
        }
    }
}
