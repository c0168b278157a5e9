/** Small numerical helpers, free of any view. */

export function sumOf(values: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i] as number;
  return total;
}

export function largestSize(values: ArrayLike<number>): number {
  let peak = 0;
  for (let i = 0; i < values.length; i++) {
    const size = Math.abs(values[i] as number);
    if (size > peak && size < Number.POSITIVE_INFINITY) peak = size;
  }
  return peak;
}

/** The size below which the given share of the values lies; exact for small arrays. */
export function quantileOfSize(values: ArrayLike<number>, share: number): number {
  const step = Math.max(1, Math.floor(values.length / 20_000));
  const sample = new Float32Array(Math.ceil(values.length / step));
  for (let i = 0, at = 0; at < values.length; at += step)
    sample[i++] = Math.abs((values[at] as number) || 0);
  sample.sort();
  return sample[Math.min(sample.length - 1, Math.floor(share * sample.length))] ?? 0;
}

/** Place of each value, 1 for the largest; ties share the better place. */
export function ranks(values: ArrayLike<number>): number[] {
  const order = Array.from(values, (_, i) => i).sort(
    (a, b) => (values[b] as number) - (values[a] as number),
  );
  const places = new Array<number>(values.length);
  order.forEach((index, place) => {
    const before = order[place - 1];
    const tied = before !== undefined && values[before] === values[index];
    places[index] = tied ? (places[before] as number) : place + 1;
  });
  return places;
}

/** Ranks for correlations: ties get the mean of their places. */
function meanRanks(values: ArrayLike<number>): Float64Array {
  const order = Array.from(values, (_, i) => i).sort(
    (a, b) => (values[a] as number) - (values[b] as number),
  );
  const places = new Float64Array(values.length);
  for (let start = 0; start < order.length; ) {
    let end = start + 1;
    while (end < order.length && values[order[end] as number] === values[order[start] as number])
      end++;
    for (let i = start; i < end; i++) places[order[i] as number] = (start + end + 1) / 2;
    start = end;
  }
  return places;
}

/** Spearman's rank correlation; null where it is not defined. */
export function spearman(a: ArrayLike<number>, b: ArrayLike<number>): number | null {
  if (a.length !== b.length || a.length < 2) return null;
  return pearson(meanRanks(a), meanRanks(b));
}

function pearson(a: Float64Array, b: Float64Array): number | null {
  const meanA = sumOf(a) / a.length;
  const meanB = sumOf(b) / b.length;
  let ab = 0;
  let aa = 0;
  let bb = 0;
  for (let i = 0; i < a.length; i++) {
    const da = (a[i] as number) - meanA;
    const db = (b[i] as number) - meanB;
    ab += da * db;
    aa += da * da;
    bb += db * db;
  }
  return aa > 0 && bb > 0 ? ab / Math.sqrt(aa * bb) : null;
}

/** Scores made comparable: sizes sum to 1. */
export function unitMass(values: ArrayLike<number>): Float32Array {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += Math.abs(values[i] as number);
  return Float32Array.from(values, (value) => (total > 0 ? value / total : 0));
}
