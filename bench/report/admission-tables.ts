import type { LayerCost } from '../layers/cost.js';
import type { Comparison, Slice } from '../paired/comparison.js';
import { formatNumber, renderTable } from './table.js';

/** Three digits: a layer that is off costs nanoseconds. */
const micros = (value: number | null): string => (value === null ? '' : value.toFixed(3));

/** What each layer costs per request. */
export function layersTable(costs: readonly LayerCost[]): string {
  const rows = costs.map(({ name, offUs, inUs, refusedUs, redisUs }) => {
    return [name, micros(offUs), micros(inUs), micros(refusedUs), micros(redisUs)];
  });
  return renderTable(['CPU µs per request', 'off', 'let in', 'refused', 'Redis, let in'], rows);
}

/** Pair by pair, and the ratios. */
export function pairedTable({ against, pairs, ratio }: Comparison): string {
  const cells = ({ apiMicros, accepted }: Slice): string[] => [apiMicros.toFixed(2), formatNumber(accepted)];
  const rows = pairs.map(({ here, there }, index) => [
    `pair ${index + 1}`,
    ...cells(here),
    ...cells(there),
    (here.apiMicros / there.apiMicros).toFixed(4),
  ]);
  const { min, median, max } = ratio;
  const summary = [
    ['ratio, least', '', '', '', '', min.toFixed(4)],
    ['ratio, median', '', '', '', '', median.toFixed(4)],
    ['ratio, most', '', '', '', '', max.toFixed(4)],
  ];
  const head = ['api CPU µs each', 'here', 'accepted', against, 'accepted', 'ratio'];
  return renderTable(head, [...rows, ...summary]);
}
