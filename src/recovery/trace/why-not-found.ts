import { homeBucket } from '../../core/sale.js';
import { bucketsOf, salesOf } from './find-purchases.js';
import type { TracePorts, TraceQuery } from './trace-ports.js';

/** A refusal leaves no trace by itself; what can still be said is what its marker, or the sale as it is now, says. */
export async function whyNotFound(query: TraceQuery, ports: TracePorts): Promise<string> {
  const { id, saleId, userId } = query;
  const who = `${userId === undefined ? '' : ` of buyer ${userId}`}${saleId === undefined ? '' : ` in sale ${saleId}`}`;
  const none = `Neither Redis nor MySQL knows ${id}${who}: it never came, or was refused, which leaves no trace.`;
  const sales = await salesOf(query, ports);
  if (saleId !== undefined && sales.length === 0) return `There is no sale ${saleId}.`;
  for (const sale of sales) {
    for (const bucket of bucketsOf(sale)) {
      const { marker } = await ports.store.readBatch({ saleId: sale.saleId, bucket }, id);
      if (marker === 'aborted') return `Batch ${id} of sale ${sale.saleId} was rolled back: no unit was held for it.`;
    }
  }
  const [sale] = sales;
  if (saleId === undefined || userId === undefined || sale === undefined) {
    return `${none} With --sale and --user it can be said what the buyer would hear now.`;
  }
  const ref = { saleId, bucket: homeBucket(userId, sale.buckets) };
  const { answers } = await ports.stock.precheck(ref, [{ userId, requestId: id, quantity: 1 }]);
  const word = answers[0]?.outcome;
  return `${none} Asked now for one unit, ${word === undefined ? 'it would be let in' : `it would hear ${word}`}.`;
}
