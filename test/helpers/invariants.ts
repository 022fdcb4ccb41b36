import { expect } from 'chai';
import { systemClock } from '../../src/app/system-clock.js';
import { checkSale, waitUntilAtRest, type SaleFigures } from '../../src/reconcile/check-sale.js';
import type { OpLog } from './op-log.js';
import type { TestStack } from './stack.js';

/** FAULTS: heal time is 30 s after the end of a fault; ten more for a machine that is shared. */
const REST_TIMEOUT_MS = 40_000;

/**
 * Waits until the sale is at rest and asserts I1 to I5 on Redis, MySQL and what the buyers heard.
 * @returns its figures, for what a test wants to know beyond that
 */
export async function expectInvariants(
  stack: TestStack,
  saleId: string,
  opLog?: OpLog,
  restTimeoutMs: number = REST_TIMEOUT_MS,
): Promise<SaleFigures> {
  const atRest = await waitUntilAtRest(saleId, { ...stack.audit, clock: systemClock }, restTimeoutMs);
  const { figures, findings } = await checkSale(saleId, stack.audit, opLog?.entries);
  expect(findings, `sale ${saleId}: ${JSON.stringify(figures)}`).to.deep.equal([]);
  expect(atRest, `sale ${saleId} was not at rest after ${restTimeoutMs} ms: ${JSON.stringify(figures)}`).to.equal(true);
  return figures;
}
