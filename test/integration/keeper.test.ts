import { expect } from 'chai';
import { deductBatch, recordBatch } from '../chaos/harness/batches.js';
import { userIds } from '../chaos/harness/buyers.js';
import { ask } from '../chaos/harness/http.js';
import { expectInvariants } from '../helpers/invariants.js';
import { OpLog } from '../chaos/harness/op-log.js';
import { openSale } from '../chaos/harness/sales.js';
import type { Program } from '../chaos/harness/programs.js';
import { useSystem } from '../helpers/system.js';
import { until } from '../chaos/harness/wait.js';

describe('keeper: recovery after a process dies', () => {
  let keeper: Program;
  const system = useSystem(async ({ programs }) => {
    const env = { KEEPER_EVERY_MS: '500', REDRIVE_AFTER_MS: '1000' };
    keeper = await programs.start('keeper', { env });
  });

  const metric = async (name: string): Promise<number> => {
    const { text } = await ask(`${keeper.operatorsUrl}/metrics`);
    return Number(new RegExp(`^${name}\\{[^}]*\\} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
  };

  it('marks batches recorded that a worker wrote before it died, while no worker runs [M9]', async () => {
    const { saleId } = await openSale(system.stack, { stock: 20 });
    const before = await metric('seckill_marked_late_batches_total');
    await recordBatch(system.stack, saleId, 3); // writes the rows, but does not mark the batch recorded

    const figures = await expectInvariants(system.stack, saleId);
    expect(figures).to.include({ sold: 3, rows: 3, unitsLeft: 17 });
    await until('it counts the batch', async () => (await metric('seckill_marked_late_batches_total')) > before);
  });

  it('re-drives a batch whose message was lost, and the worker records it [M2]', async () => {
    const { saleId } = await openSale(system.stack, { stock: 20 });
    const before = await metric('seckill_redriven_batches_total');
    await system.programs.start('worker');
    const { purchases } = await deductBatch(system.stack, saleId, userIds(7));

    const opLog = new OpLog();
    for (const { userId } of purchases) opLog.entries.set(`${userId}/k1`, 'ok');
    const figures = await expectInvariants(system.stack, saleId, opLog);
    expect(figures).to.include({ sold: 7, rows: 7, unitsLeft: 13 });
    await until('it counts the batch', async () => (await metric('seckill_redriven_batches_total')) > before);
  });
});
