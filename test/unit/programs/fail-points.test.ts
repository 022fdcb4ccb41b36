import { expect } from 'chai';
import {
  API_FAIL_POINTS,
  apiFailPoints,
  keeperFailPoints,
  workerFailPoints,
} from '../../../src/programs/fail-points.js';
import { ConfigError, loadConfig } from '../../../src/core/config/load.js';
import type { Section } from '../../../src/core/config/schema.js';
import type { MysqlPool } from '../../../src/mysql/pool.js';
import { silentLog } from '../../helpers/silent-log.js';
import type { OrderRepository } from '../../../src/core/ports/order-repository.js';
import type { Outbox } from '../../../src/core/ports/outbox.js';
import type { PurchaseChannel } from '../../../src/core/ports/channels.js';
import type { RepairRepository, RepairStore } from '../../../src/core/ports/repair-stores.js';
import type { BatchStore } from '../../../src/core/ports/batch-store.js';
import type { StockStore } from '../../../src/core/ports/stock-store.js';
import type { TransferStore } from '../../../src/core/ports/transfer-store.js';
import type { Batch } from '../../../src/core/batch.js';
import { batchOf, purchasesOf, saleOf } from '../../helpers/sales.js';

const settings = (point: string): Section<'failPoint'> => ({
  point: point === '' ? '' : `${point}=throw`,
  overrides: 'off',
  environment: 'test',
});

/** Events in order. Every part of a program notes its calls here. */
function parts(done: string[]) {
  const did = (word: string) => async (): Promise<never> => (done.push(word), undefined as never);
  const tx = { query: did('query'), execute: did('execute'), rollback: did('rollback') };
  return {
    store: { precheck: did('precheck'), deduct: did('deduct'), resolve: did('resolve') } as unknown as StockStore,
    channel: {
      sendHalf: async () => (
        done.push('half'),
        { commit: did('commit'), rollback: async () => (done.push('rollback'), true) }
      ),
    } as unknown as PurchaseChannel,
    gate: { countAttempt: () => undefined, refuseEarly: () => null, enter: did('answer') },
    pool: {
      transaction: async (work: (given: typeof tx) => Promise<unknown>) => (await work(tx), done.push('COMMIT')),
    } as unknown as MysqlPool,
    repository: {
      write: async () => (done.push('write'), { outcome: 'written', surplus: new Set() }),
    } as unknown as OrderRepository,
    settlement: { markRecorded: did('markRecorded') } as unknown as BatchStore,
    source: { receive: async () => (done.push('receive'), [{}] as never) },
    outbox: { lease: did('lease'), markDone: did('mark') } as unknown as Outbox,
    repairStore: { lock: did('lock'), stage: did('stage'), swap: did('swap') } as unknown as RepairStore,
    repairRepository: { raiseEpoch: did('raise') } as unknown as RepairRepository,
    transitions: {
      expire: async (orderIds: readonly string[]) => (done.push('expire'), orderIds.length),
      expireDue: async (max: number) => (done.push('sweep'), max),
    },
  };
}

async function takeApiThrough(point: string, done: string[]): Promise<void> {
  const failPoints = apiFailPoints(settings(point), silentLog);
  const { store, channel, gate, repairStore, repairRepository } = parts(done);
  await failPoints.store(store).precheck({ saleId: '1', bucket: 0 }, []);
  const half = await failPoints.channel(channel).sendHalf({} as never);
  await failPoints.store(store).deduct({} as never);
  if (typeof half !== 'string') {
    await half.commit();
    await half.rollback();
  }
  await failPoints.gate(gate).enter({} as never);
  await failPoints.checked(store).resolve({} as never);
  const transfers = failPoints.transfers(movingUnits(done));
  await transfers.transferOut({} as never, 1, 1, 1);
  await transfers.transferIn('7', {} as never, 1);
  await failPoints.rebuilt(repairStore).lock({} as never, 'token', 1);
  await failPoints.raised(repairRepository).raiseEpoch('1', 1, 'boss');
  await failPoints.rebuilt(repairStore).swap({} as never, 'token', {} as never);
  done.push('end');
}

const movingUnits = (done: string[]): TransferStore => ({
  read: async () => null,
  transferOut: async () => (done.push('transferOut'), { outcome: 'transferred', seq: 1, units: 1 }),
  transferIn: async () => (done.push('transferIn'), { outcome: 'received', unitsLeft: 1 }),
  endTransfer: async () => 'ended',
});

async function stoppedAt(run: Promise<unknown>, done: readonly string[]): Promise<string | undefined> {
  const error = await run.then(
    () => null,
    (cause: Error) => cause.message,
  );
  expect(error).to.match(/^fail point/);
  return done.at(-1);
}

describe('fail points', () => {
  it('leave each port the same object when the variable is not set', () => {
    const given = parts([]);
    const api = apiFailPoints(settings(''), silentLog);
    expect(api.store(given.store)).to.equal(given.store);
    expect(api.channel(given.channel)).to.equal(given.channel);
    expect(api.checked(given.store)).to.equal(given.store);
    expect(api.gate(given.gate)).to.equal(given.gate);
    const transfers = movingUnits([]);
    expect(api.transfers(transfers)).to.equal(transfers);
    const worker = workerFailPoints(settings(''), silentLog);
    expect(worker.pool(given.pool)).to.equal(given.pool);
    expect(worker.repository(given.repository)).to.equal(given.repository);
    expect(worker.store(given.settlement)).to.equal(given.settlement);
    expect(worker.source(given.source)).to.equal(given.source);
    const keeper = keeperFailPoints(settings(''), silentLog);
    expect(keeper.published(given.outbox)).to.equal(given.outbox);
    expect(keeper.released(given.outbox)).to.equal(given.outbox);
    expect(keeper.transitions(given.transitions)).to.equal(given.transitions);
  });

  it('stop the api after the named step', async () => {
    const last = {
      after_precheck: 'precheck',
      after_half: 'half',
      after_deduct: 'deduct',
      after_commit: 'commit',
      before_resubmit: 'rollback',
      before_answer: 'answer',
      check_before_resolve: 'answer',
      check_after_resolve: 'resolve',
      after_transfer_out: 'transferOut',
      after_transfer_in: 'transferIn',
      repair_after_lock: 'lock',
      repair_after_epoch: 'raise',
      repair_after_stock: 'raise', // before the swap
    };
    const stopping = API_FAIL_POINTS.filter((point) => !/^(drop|poison)_/.test(point)) as (keyof typeof last)[];
    expect(Object.keys(last)).to.have.members(stopping);
    for (const point of stopping) {
      const done: string[] = [];
      expect(await stoppedAt(takeApiThrough(point, done), done), point).to.equal(last[point]);
    }
  });

  it('lose a call of the api, or its reply, and do not stop the process [T4, T5, T6]', async () => {
    for (const [point, lost] of [
      ['drop_commit', ['commit']],
      ['drop_rollback', ['rollback']],
    ] as const) {
      const [whole, done]: [string[], string[]] = [[], []];
      await takeApiThrough('after_commit:9', whole);
      await takeApiThrough(point, done);
      expect(done, point).to.deep.equal(whole.filter((step) => !(lost as readonly string[]).includes(step)));
    }
    const done: string[] = [];
    const { channel } = parts(done);
    const lossy = (point: string) => apiFailPoints(settings(point), silentLog).channel(channel);
    expect(await lossy('drop_half_reply').sendHalf({} as never), 'the broker has it').to.equal('outcome_unknown');
    expect(done).to.deep.equal(['half']);
    const half = await lossy('drop_rollback').sendHalf({} as never);
    expect(typeof half === 'string' || (await half.rollback()), 'not confirmed').to.equal(false);
    expect(typeof half === 'string' || (await half.rollback()), 'only the first is lost').to.equal(true);
  });

  it('give the script an undecodable body for every batch with a purchase of such a key [G14]', async () => {
    const bodies: string[] = [];
    const deduct = async ({ body }: Batch) => (bodies.push(body), { outcome: 'deducted' as const });
    const wrapped = apiFailPoints(settings('poison_deduct'), silentLog).store({ ...parts([]).store, deduct });
    for (const keys of [['u1/k1', 'u2/poison-1'], ['u3'], ['u2/poison-2']]) {
      await wrapped.deduct(batchOf(saleOf(), purchasesOf(...keys)));
    }
    expect(bodies.map((body) => /\\ud800/.test(body))).to.deep.equal([true, false, true]);
    expect(() => bodies.map((body) => JSON.parse(body) as unknown)).not.to.throw();
  });

  it('act once, at the chosen pass', async () => {
    const done: string[] = [];
    const failPoints = apiFailPoints(settings('after_deduct:3'), silentLog);
    const store = failPoints.store(parts(done).store);
    await store.deduct({} as never);
    await store.deduct({} as never);
    expect(await stoppedAt(store.deduct({} as never), done)).to.equal('deduct');
    await store.deduct({} as never);
    expect(done).to.have.length(4);
  });

  it('refuse a name that the program does not have, and an invalid pass', () => {
    for (const point of ['after_lunch', 'worker_after_commit', 'after_half:0', 'after_half:x', ':1']) {
      expect(() => apiFailPoints(settings(point), silentLog), point).to.throw(ConfigError, 'FAILPOINT must be');
    }
    expect(() => workerFailPoints(settings('after_half'), silentLog)).to.throw(ConfigError);
  });

  it('are refused in production', () => {
    const load = (env: Record<string, string>) => () => loadConfig(['failPoint'], env);
    expect(load({ FAILPOINT: 'after_half', NODE_ENV: 'production' })).to.throw(ConfigError, 'NODE_ENV is production');
    expect(load({ NODE_ENV: 'production' })).not.to.throw();
    expect(load({ FAILPOINT: 'after_half' })().failPoint).to.include({ point: 'after_half' });
  });
});
