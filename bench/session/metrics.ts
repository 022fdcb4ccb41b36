import { BenchError } from '../bench-error.js';

/** Values of one scrape by series, as Prometheus writes it: `name{label="x"}`. */
export type Samples = ReadonlyMap<string, number>;

/** Reads the text format of Prometheus as prom-client writes it: no timestamps. */
function parseMetrics(text: string): Samples {
  const samples = new Map<string, number>();
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const end = line.lastIndexOf(' ');
    samples.set(line.slice(0, end), Number(line.slice(end + 1)));
  }
  return samples;
}

/** Returns the sum of all series of a metric whose labels contain every given part, such as `code="accepted"`. */
export function sumOf(samples: Samples, name: string, ...labels: readonly string[]): number {
  let sum = 0;
  for (const [series, value] of samples) {
    const isName = series === name || series.startsWith(`${name}{`);
    if (isName && labels.every((label) => series.includes(label))) sum += value;
  }
  return sum;
}

/** Returns by how much a counter grew. */
export const growth = (before: Samples, after: Samples, name: string, ...labels: readonly string[]): number =>
  sumOf(after, name, ...labels) - sumOf(before, name, ...labels);

/** @throws BenchError if the program does not answer */
export async function scrape(port: number): Promise<Samples> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/metrics`, { signal: AbortSignal.timeout(5000) });
    return parseMetrics(await response.text());
  } catch (cause) {
    throw new BenchError(`port ${port} does not answer /metrics; check whether the program still runs`, { cause });
  }
}
