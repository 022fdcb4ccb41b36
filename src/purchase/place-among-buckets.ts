import { assertNever, OperationalError } from '../core/errors.js';
import type { Purchase } from '../core/purchase.js';
import type { HomeBucket } from '../core/ports/stock-store.js';
import type { Gathered, UnitFetcher } from '../sales/stock/gather-units.js';
import { placeBatch, type PlaceBatchPorts, type PlacedBatch, type Reply } from './place-batch.js';

export interface AmongBucketsPorts extends PlaceBatchPorts {
  readonly units: Pick<UnitFetcher, 'fetch'>;
}

/**
 * Places a batch of a sale that has several buckets (P2 R3 BUCKET_EMPTY, R4 BUCKET_ALL_EMPTY). That a bucket has too few
 * units is no word for a buyer: units are fetched from the others and the purchase goes again. `sold_out` is said when all
 * buckets together have too few; and where that cannot be counted, that he may ask again.
 * @throws OperationalError as placeBatch
 */
export async function placeAmongBuckets(
  home: HomeBucket,
  purchases: readonly Purchase[],
  trace: string,
  reply: Reply,
  ports: AmongBucketsPorts,
): Promise<PlacedBatch> {
  const emptied: number[] = [];
  const placed = await placeBatch(
    home,
    purchases,
    trace,
    (index, outcome) => (outcome.outcome === 'sold_out' ? void emptied.push(index) : reply(index, outcome)),
    ports,
  );
  // Zero units in one bucket say nothing of the sale.
  const unitsHere = placed.unitsLeft === 0 ? null : placed.unitsLeft;
  if (emptied.length === 0) return { ...placed, unitsLeft: unitsHere };

  const quantityOf = (index: number): number => (purchases[index] as Purchase).quantity;
  const quantities = emptied.map(quantityOf);
  const wanted = { least: Math.min(...quantities), all: quantities.reduce((sum, quantity) => sum + quantity, 0) };
  const replyToAll = (outcome: 'unavailable' | 'loading' | 'overloaded'): PlacedBatch => {
    for (const index of emptied) reply(index, { outcome });
    return { ...placed, unitsLeft: unitsHere };
  };
  const goAgain = (indexes: readonly number[], unitsLeft: number | null): PlacedBatch => {
    const again = [...placed.again, ...indexes].sort((a, b) => a - b);
    const verdict = placed.verdict === 'all_answered_by_precheck' && again.length > 0 ? 'bucket_empty' : placed.verdict;
    return { verdict, again, unitsLeft };
  };
  const gathered = await fetched(ports.units, home, wanted);
  switch (gathered.outcome) {
    case 'gathered':
      return goAgain(emptied, unitsHere);
    case 'counted':
      for (const index of emptied) if (quantityOf(index) > gathered.unitsLeft) reply(index, { outcome: 'sold_out' });
      return goAgain(
        emptied.filter((index) => quantityOf(index) <= gathered.unitsLeft),
        gathered.unitsLeft,
      );
    case 'unsure':
      return replyToAll('loading');
    case 'moving':
      return replyToAll('overloaded');
    case 'unavailable':
      return replyToAll('unavailable');
    default:
      return assertNever(gathered);
  }
}

/** Those who were answered keep their answers when Redis goes away now. */
async function fetched(
  units: AmongBucketsPorts['units'],
  home: HomeBucket,
  wanted: Parameters<UnitFetcher['fetch']>[1],
): Promise<Gathered | { readonly outcome: 'unavailable' }> {
  try {
    return await units.fetch(home, wanted);
  } catch (error) {
    if (error instanceof OperationalError) return { outcome: 'unavailable' };
    throw error;
  }
}
