/** Fewest insertions, deletions and replacements of characters that turn one text into the other. @param {string} a @param {string} b */
export function levenshtein(a, b) {
  const [from, to] = [[...a], [...b]];
  let row = Array.from({ length: to.length + 1 }, (_, j) => j);
  from.forEach((character, i) => {
    const next = [i + 1];
    for (let j = 0; j < to.length; j++) {
      next.push(Math.min(row[j] + (character === to[j] ? 0 : 1), row[j + 1] + 1, next[j] + 1));
    }
    row = next;
  });
  return row[to.length];
}

/** Lines without the empty ones, which a reader of lines cannot see. @param {string} text */
export const filledLines = (text) => text.split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== '');

/**
 * The share of the true characters that were read right, spaces and line ends included; 0 where errors outnumber them.
 * @param {string} truth @param {string} read
 */
export function characterAccuracy(truth, read) {
  const [wanted, got] = [truth, read].map((text) => filledLines(text).join('\n'));
  const length = [...wanted].length;
  const errors = levenshtein(wanted, got);
  return { errors, length, accuracy: length > 0 ? Math.max(0, 1 - errors / length) : Number(errors === 0) };
}
