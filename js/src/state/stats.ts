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

const HALF = 1 << 16;

/**
 * The size below which the given share of the values lies. All of them are looked at: a sample at
 * even steps may meet a matrix on its diagonal only, or never. Without sorting: floats that are not
 * negative are in the order of their bits, so two rounds of counting find the value, first by the
 * upper half of the bits, then by the lower.
 */
export function quantileOfSize(values: ArrayLike<number>, share: number): number {
  const count = values.length;
  if (count === 0) return 0;
  const sizes = new Float32Array(count);
  for (let i = 0; i < count; i++) sizes[i] = Math.abs((values[i] as number) || 0);
  const bits = new Uint32Array(sizes.buffer);
  const wanted = Math.min(count - 1, Math.floor(share * count));
  const uppers = new Uint32Array(HALF);
  for (let i = 0; i < count; i++) tally(uppers, (bits[i] as number) >>> 16);
  const upper = holding(uppers, wanted);
  const lowers = new Uint32Array(HALF);
  for (let i = 0; i < count; i++) {
    const own = bits[i] as number;
    if (own >>> 16 === upper.at) tally(lowers, own & (HALF - 1));
  }
  const lower = holding(lowers, wanted - upper.before);
  return new Float32Array(Uint32Array.of(upper.at * HALF + lower.at).buffer)[0] as number;
}

function tally(counts: Uint32Array, at: number): void {
  counts[at] = (counts[at] as number) + 1;
}

/** Which bin holds the value of a place (from 0), and how many values lie in those before it. */
function holding(counts: Uint32Array, place: number): { at: number; before: number } {
  let before = 0;
  let at = 0;
  while (at < counts.length - 1 && before + (counts[at] as number) <= place) {
    before += counts[at] as number;
    at++;
  }
  return { at, before };
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
