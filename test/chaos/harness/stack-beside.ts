import { rmSync } from 'node:fs';
import { systemClock } from '../../../src/programs/system-clock.js';
import { checkSale, waitUntilAtRest, type SaleFigures } from '../../invariants/check-sale.js';
import type { Arena } from '../arena.js';
import { bootOwnStack } from '../chaos-stack.js';
import { joinLogs } from '../join-logs.js';
import type { Buyers } from './buyers.js';
import { expectEqual, expectTrue } from './expect.js';
import { folderBeside } from './folder-beside.js';
import { openHands, type StackHands } from './stack-hands.js';

const REST_TIMEOUT_MS = 40_000;

/**
 * Boots an empty second stack on free ports, for a row that runs alone. It is gone with the row.
 * @returns its hands; programs find it with `env`
 */
export async function bootBeside(arena: Arena, name: string): Promise<StackHands> {
  const dir = folderBeside(arena, name);
  const over = new AbortController();
  const booting = bootOwnStack({ dir, onProgress: () => undefined, signal: over.signal });
  arena.atEnd(async () => {
    over.abort(new Error('the row is over'));
    await booting.then(
      ({ stop }) => stop(),
      () => undefined, // what failed to boot has tidied up after itself
    );
    rmSync(dir, { recursive: true, force: true });
  });
  const { stack } = await booting;
  const hands = await openHands(dir, stack.env());
  arena.atEnd(() => hands.close());
  return hands;
}

/** What the arena does for a sale of its own stack: waits for rest and asserts I1 to I8. */
export async function restBeside({ audit }: StackHands, buyers: Buyers): Promise<SaleFigures> {
  const { saleId, opLog } = buyers;
  const atRest = await waitUntilAtRest(saleId, { ...audit, clock: systemClock }, REST_TIMEOUT_MS);
  const { entries, history } = joinLogs([opLog]);
  const { figures, findings } = await checkSale(saleId, audit, entries, { history, mayFail: [] });
  expectEqual(findings, [], `what is wrong with sale ${saleId} of the second stack`);
  expectTrue(atRest, `sale ${saleId} of the second stack is at rest`);
  return figures;
}
