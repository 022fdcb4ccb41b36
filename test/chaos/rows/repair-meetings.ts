import type { Arena } from '../arena.js';
import { RunningCommand, runCommand } from '../harness/command.js';
import { expectEqual, expectFields, expectOneOf } from '../harness/expect.js';
import { standingOf } from '../harness/lost-writes.js';
import { atScriptCall } from '../harness/script-calls.js';
import { keyOf, PATIENT, REPAIR, soldSome } from '../harness/sold-sale.js';
import type { Row } from '../row.js';

// R10, where a purchase, its settling or a release is under way while the sale is repaired.

/** `seckill sale repair --force`: a repair that needs no restart of Redis. */
const repairCommand = (saleId: string): string[] => ['sale', 'repair', saleId, '--force', '--json'];

const LATE_DEDUCT: Row = {
  ...{ id: 'R10', variant: 'late_deduct' },
  title: 'a deduct is under way while its sale is repaired: it hears stale_epoch, the purchase goes again, one order',
  ...{ fast: false, alone: true },
  async run(arena) {
    const redis = await arena.proxy('redis');
    const [sold] = await Promise.all([soldSome(arena, { ...PATIENT, ...redis.env }), arena.start('keeper')]);
    const { saleId, buyers } = sold;
    const before = await arena.rest(saleId);
    let epoch: unknown;
    atScriptCall(redis.proxy, 'deduct', async () => {
      const { lines } = await runCommand(repairCommand(saleId), { ...arena.env, ...REPAIR });
      epoch = lines.at(-1)?.epoch;
    });
    const answer = await buyers.buy('ann');
    await arena.bite('the sale was repaired before deduct arrived', () => epoch === 2);
    arena.faultEnded();
    expectOneOf(answer?.status ?? 503, [202, 503], 'what she hears');
    await buyers.rush(['ann'], 1, { tries: 30 });
    const rows = before.rows + 1;
    expectFields(await arena.rest(saleId), { rows, liveRows: rows, failedRows: 0 }, 'one order for her');
  },
};

/** Holds a script of a worker or keeper back until the sale is shut, or until it is open again. */
async function holdUntil(
  arena: Arena,
  saleId: string,
  proxy: Parameters<typeof atScriptCall>[0],
  script: 'mark-recorded' | 'release',
) {
  const moment = arena.random.pick(['shut', 'repaired'] as const);
  const repair: { command?: RunningCommand } = {};
  let met = '';
  const meet = async (): Promise<void> => {
    repair.command = new RunningCommand(repairCommand(saleId), { ...arena.env, ...REPAIR, REPAIR_QUIET_MS: '1500' });
    if (moment === 'repaired') await repair.command.end;
    else await arena.until('it is shut', async () => (await standingOf(arena.stack, saleId)).state === 'repair');
    met = (await standingOf(arena.stack, saleId)).state ?? '';
  };
  atScriptCall(proxy, script, meet, 1, keyOf(saleId));
  return async () => {
    const wanted = moment === 'shut' ? 'repair' : 'open';
    await arena.bite(`${script} met a sale that was ${wanted}`, () => met === wanted);
    const { lines } = (await repair.command?.end) ?? {};
    expectEqual(lines?.at(-1)?.outcome, 'repaired', 'the repair');
    arena.faultEnded();
  };
}

const LATE_SETTLE: Row = {
  ...{ id: 'R10', variant: 'late_settle' },
  title: 'a settle comes while its sale is shut, or after its repair: the order stands, once',
  ...{ fast: false, alone: true },
  async run(arena) {
    const redis = await arena.proxy('redis');
    const [api] = await Promise.all([
      arena.start('api'),
      arena.start('worker', { env: { ...PATIENT, ...redis.env } }),
      arena.start('keeper', { env: { REDRIVE_AFTER_MS: '5000' } }),
    ]);
    const { saleId } = await arena.openSale();
    const held = await holdUntil(arena, saleId, redis.proxy, 'mark-recorded');
    const buyers = arena.buyers(saleId, [api]);
    await buyers.buy('ann', { tries: 20 });
    await held();
    expectFields(await arena.rest(saleId), { rows: 1, liveRows: 1, unitsLeft: 9 }, 'one order');
    expectEqual((await buyers.status('ann')).json.status, 'ordered', 'what she sees');
  },
};

const LATE_RELEASE: Row = {
  ...{ id: 'R10', variant: 'late_release' },
  title: 'a release comes while its sale is shut, or after its repair: the unit is back once',
  ...{ fast: false, alone: true },
  async run(arena) {
    const redis = await arena.proxy('redis');
    const [api] = await Promise.all([
      arena.start('api'),
      arena.start('worker'),
      arena.start('keeper', { env: { ...PATIENT, ...redis.env } }),
    ]);
    const { saleId } = await arena.openSale();
    const buyers = arena.buyers(saleId, [api]);
    await buyers.rush(['ann', 'bob'], 2, { tries: 20 });
    await arena.rest(saleId);
    const held = await holdUntil(arena, saleId, redis.proxy, 'release');
    const { json } = await buyers.status('ann');
    expectEqual((await buyers.move('cancel', 'ann', String(json.orderId)))?.status, 200, 'her cancellation');
    await held();
    expectFields(await arena.rest(saleId), { rows: 2, liveRows: 1, unitsLeft: 9 }, 'her unit is back');
  },
};

export const REPAIR_MEETING_ROWS: readonly Row[] = [LATE_DEDUCT, LATE_SETTLE, LATE_RELEASE];
