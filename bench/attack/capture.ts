import { BenchError } from '../bench-error.js';
import { headersAt, readRecords, type BuyerSlice } from '../load/buyers.js';
import { PURCHASE_BODY } from '../load/load.js';

const ANSWER_TIMEOUT_MS = 10_000;

/** Buys as these buyers would, one after the other: what they sent is what an eavesdropper has. @returns how many */
export async function capturePurchases(url: string, buyers: BuyerSlice): Promise<number> {
  const records = readRecords(buyers);
  for (let place = 0; place < buyers.count; place++) {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headersAt(records, buyers.recordBytes, place) },
      body: PURCHASE_BODY,
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    });
    const text = await response.text();
    if (response.status !== 202) {
      throw new BenchError(`a purchase before the attack was answered ${response.status}: ${text.slice(0, 300)}`);
    }
  }
  return buyers.count;
}
