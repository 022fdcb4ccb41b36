import { expect } from 'chai';
import { checkSale, waitUntilAtRest, type SaleFigures } from '../invariants/check-sale.js';
import type { OpLog } from '../chaos/harness/op-log.js';
import { GRANTED_MS, grantedClock } from '../chaos/harness/wait.js';
import type { TestStack } from './stack.js';

/**
 * Waits until the sale is at rest and asserts I1 to I8 on Redis, MySQL and the answers that buyers got.
 * @returns its figures, for further assertions
 */
export async function expectInvariants(stack: TestStack, saleId: string, opLog?: OpLog): Promise<SaleFigures> {
  const startedMs = Date.now();
  const atRest = await waitUntilAtRest(saleId, { ...stack.audit, clock: grantedClock() }, GRANTED_MS);
  const { figures, findings } = await checkSale(saleId, stack.audit, opLog?.entries, opLog ? { history: opLog } : {});
  print(figures, opLog, Date.now() - startedMs);
  expect(findings, `sale ${saleId}: ${JSON.stringify(figures)}`).to.deep.equal([]);
  expect(atRest, `sale ${saleId} was not at rest in time: ${JSON.stringify(figures)}`).to.equal(true);
  return figures;
}

/** Prints the figures at the end of the test. */
function print(figures: SaleFigures, opLog: OpLog | undefined, restMs: number): void {
  const { stock, unitsLeft, sold, rows, oversold, duplicates, lost, pendingBatches } = figures;
  const answers = opLog === undefined ? '' : `accepted ${opLog.count('ok')}, `;
  const figuresText = `deducted ${stock - unitsLeft}, sold ${sold}, rows ${rows}, pending ${pendingBatches}`;
  const broken = `oversold ${oversold}, duplicate ${duplicates}, lost ${lost}`;
  console.log(`      · ${answers}${figuresText}, ${broken}; at rest after ${(restMs / 1000).toFixed(1)} s`);
}
