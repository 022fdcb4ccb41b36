import { expect } from 'chai';
import { systemClock } from '../../src/programs/system-clock.js';
import { checkSale, waitUntilAtRest, type SaleFigures } from '../invariants/check-sale.js';
import type { OpLog } from '../chaos/harness/op-log.js';
import type { TestStack } from './stack.js';

/** A sale recovers within 30 s after the end of a fault; ten more for a busy machine. */
const REST_TIMEOUT_MS = 40_000;

/**
 * Waits until the sale is at rest and asserts I1 to I8 on Redis, MySQL and the answers that buyers got.
 * @returns its figures, for further assertions
 */
export async function expectInvariants(
  stack: TestStack,
  saleId: string,
  opLog?: OpLog,
  restTimeoutMs: number = REST_TIMEOUT_MS,
): Promise<SaleFigures> {
  const startedMs = Date.now();
  const atRest = await waitUntilAtRest(saleId, { ...stack.audit, clock: systemClock }, restTimeoutMs);
  const { figures, findings } = await checkSale(saleId, stack.audit, opLog?.entries, opLog ? { history: opLog } : {});
  print(figures, opLog, Date.now() - startedMs);
  expect(findings, `sale ${saleId}: ${JSON.stringify(figures)}`).to.deep.equal([]);
  expect(atRest, `sale ${saleId} was not at rest after ${restTimeoutMs} ms: ${JSON.stringify(figures)}`).to.equal(true);
  return figures;
}

/** Shows the figures on which the test ended. */
function print(figures: SaleFigures, opLog: OpLog | undefined, restMs: number): void {
  const { stock, unitsLeft, sold, rows, oversold, duplicates, lost, pendingBatches } = figures;
  const answers = opLog === undefined ? '' : `accepted ${opLog.count('ok')}, `;
  const figuresText = `deducted ${stock - unitsLeft}, sold ${sold}, rows ${rows}, pending ${pendingBatches}`;
  const broken = `oversold ${oversold}, duplicate ${duplicates}, lost ${lost}`;
  console.log(`      · ${answers}${figuresText}, ${broken}; at rest after ${(restMs / 1000).toFixed(1)} s`);
}
