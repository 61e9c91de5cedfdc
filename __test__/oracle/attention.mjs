// Attention and rotary positions in float64.
import { sizeOf, stridesOf } from './array.mjs';

/** An operand as [batch, heads, places, size]: a function of the four. */
function headsOf(x, heads) {
  const flat = x.dims.length === 3;
  const [batch, places] = [x.dims[0], flat ? x.dims[1] : x.dims[2]];
  const count = flat ? heads : x.dims[1];
  const size = flat ? x.dims[2] / heads : x.dims[3];
  const at = (b, h, p, i) => (flat ? x.data[((b * places) + p) * count * size + h * size + i] : x.data[((b * count + h) * places + p) * size + i]);
  return { batch, heads: count, places, size, at };
}

/** Places of the past before new ones. */
function joined(past, x) {
  if (!past) return x;
  const old = headsOf(past);
  const at = (b, h, p, i) => (p < old.places ? old.at(b, h, p, i) : x.at(b, h, p - old.places, i));
  return { ...x, places: old.places + x.places, at };
}

/** What a mask adds at a place: -Infinity hides. */
function maskOf(mask) {
  if (!mask) return () => 0;
  const dims = [1, 1, 1, ...mask.dims].slice(-4);
  const strides = stridesOf(dims);
  const truth = mask.dtype === 'bool' || mask.dtype === 'uint8';
  return (...place) => {
    if (place[3] >= dims[3]) return -Infinity;
    const value = mask.data[place.reduce((sum, p, axis) => sum + (dims[axis] === 1 ? 0 : p * strides[axis]), 0)];
    return truth ? (value ? 0 : -Infinity) : value;
  };
}

export function attention(inputs, options = {}) {
  const { mask, pastKey, pastValue, nonpadKvSeqlen, causal, softcap = 0, qNumHeads, kvNumHeads, present, scores = 'none', masking = 'hide' } = options;
  const q = headsOf(inputs[0], qNumHeads);
  const [newKeys, newValues] = [headsOf(inputs[1], kvNumHeads), headsOf(inputs[2], kvNumHeads)];
  const [k, v] = [joined(pastKey, newKeys), joined(pastValue, newValues)];
  const past = k.places - newKeys.places;
  const scale = options.scale ?? 1 / Math.sqrt(q.size);
  const bias = maskOf(mask);
  // Numbers may be summands throughout; truths hide.
  const adds = masking !== 'hide' && mask?.dtype !== 'bool' && mask?.dtype !== 'uint8';
  const flat = inputs[0].dims.length === 3;
  const make = (dims) => ({ data: new Float64Array(sizeOf(dims)), bound: new Float64Array(sizeOf(dims)), dims, length: q.size + k.places });
  const y = make(flat ? [q.batch, q.places, q.heads * v.size] : [q.batch, q.heads, q.places, v.size]);
  const kept = make([q.batch, q.heads, q.places, k.places]);
  for (let b = 0; b < q.batch; b++) {
    const length = nonpadKvSeqlen ? nonpadKvSeqlen.data[b] : k.places;
    const before = nonpadKvSeqlen && !pastKey ? length - q.places : past;
    for (let h = 0; h < q.heads; h++) {
      const shared = Math.floor(h / (q.heads / k.heads));
      for (let i = 0; i < q.places; i++) {
        const row = Array.from({ length: k.places }, (_, j) => {
          let [sum, size] = [0, 0];
          for (let e = 0; e < q.size; e++) {
            const term = scale * q.at(b, h, i, e) * k.at(b, shared, j, e);
            sum += term;
            size += Math.abs(term);
          }
          const capped = softcap > 0 ? softcap * Math.tanh(sum / softcap) : sum;
          const hidden = j >= length || (causal && j > i + before);
          const term = hidden ? -Infinity : bias(b, h, i, j);
          const masked = term === -Infinity && (hidden || !adds) ? term : capped + term;
          return { products: sum, capped, masked, size: size + Math.abs(capped) + (Number.isFinite(term) ? Math.abs(term) : 0) };
        });
        const most = row.reduce((m, { masked }) => Math.max(m, masked), -Infinity);
        const total = row.reduce((sum, { masked }) => sum + Math.exp(masked - most), 0);
        // Errors of all products move the sum of a row.
        const largest = row.reduce((m, { size, masked }) => (masked === -Infinity ? m : Math.max(m, size)), 0);
        row.forEach((cell, j) => {
          const weight = Math.exp(cell.masked - most) / total;
          const none = masking === 'hide' ? most === -Infinity : masking === 'guarded' && Number.isNaN(weight);
          cell.weights = none ? 0 : weight;
          cell.slack = none ? 0 : cell.weights * (1 + 2 * largest + (cell.masked === -Infinity ? 0 : Math.abs(cell.masked - most)));
          const at = ((b * q.heads + h) * q.places + i) * k.places + j;
          if (scores === 'none') return;
          kept.data[at] = cell[scores];
          kept.bound[at] = scores === 'weights' ? cell.slack : cell.size;
        });
        for (let e = 0; e < v.size; e++) {
          const at = (flat ? (b * q.places + i) * q.heads + h : (b * q.heads + h) * q.places + i) * v.size + e;
          for (let j = 0; j < k.places; j++) {
            y.data[at] += row[j].weights * v.at(b, shared, j, e);
            y.bound[at] += row[j].slack * Math.abs(v.at(b, shared, j, e));
          }
        }
      }
    }
  }
  const results = [y];
  if (present) {
    for (const x of [k, v]) {
      const all = make([x.batch, x.heads, x.places, x.size]);
      let at = 0;
      for (let b = 0; b < x.batch; b++) for (let h = 0; h < x.heads; h++) for (let p = 0; p < x.places; p++) for (let e = 0; e < x.size; e++) all.data[at++] = x.at(b, h, p, e);
      results.push(all);
    }
  }
  if (scores !== 'none') results.push(kept);
  return results;
}

export function rotaryEmbedding([x, cos, sin], { positionIds, interleaved, numHeads, rotaryEmbeddingDim = 0 } = {}) {
  const { batch, heads, places, size } = headsOf(x, numHeads);
  const rotated = rotaryEmbeddingDim || size;
  const data = new Float64Array(x.data.length);
  const bound = new Float64Array(data.length);
  const flat = x.dims.length === 3;
  for (let b = 0; b < batch; b++) {
    for (let h = 0; h < heads; h++) {
      for (let p = 0; p < places; p++) {
        const start = (flat ? (b * places + p) * heads + h : (b * heads + h) * places + p) * size;
        const row = positionIds ? positionIds.data[b * places + p] : b * places + p;
        for (let e = rotated; e < size; e++) data[start + e] = x.data[start + e];
        for (let k = 0; k < rotated / 2; k++) {
          const [i, j] = (interleaved ? [2 * k, 2 * k + 1] : [k, k + rotated / 2]).map((e) => start + e);
          const [c, s] = [cos.data[(row * rotated) / 2 + k], sin.data[(row * rotated) / 2 + k]];
          data[i] = c * x.data[i] - s * x.data[j];
          data[j] = s * x.data[i] + c * x.data[j];
          bound[i] = Math.abs(c * x.data[i]) + Math.abs(s * x.data[j]);
          bound[j] = Math.abs(s * x.data[i]) + Math.abs(c * x.data[j]);
        }
      }
    }
  }
  return { data, bound, dims: x.dims, length: 2 };
}
