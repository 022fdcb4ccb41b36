import { expect } from 'chai';
import {
  API_FAIL_POINTS,
  apiFailPoints,
  KEEPER_FAIL_POINTS,
  keeperFailPoints,
  WORKER_FAIL_POINTS,
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

const settings = (point: string): Section<'failPoint'> => ({ point, act: 'throw', environment: 'test' });

/** What happened, in order; every part of a program writes here what it did. */
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

/** Only steps that move units are passed. */
function movingUnits(done: string[], result: 'moved' | 'not' = 'moved'): TransferStore {
  return {
    read: async () => null,
    transferOut: async () => {
      done.push('transferOut');
      return result === 'moved' ? { outcome: 'transferred', seq: 1, units: 1 } : { outcome: 'empty' };
    },
    transferIn: async () => {
      done.push('transferIn');
      return { outcome: result === 'moved' ? 'received' : 'already_received', unitsLeft: 1 };
    },
    endTransfer: async () => 'ended',
  };
}

async function takeWorkerThrough(point: string, done: string[]): Promise<void> {
  const failPoints = workerFailPoints(settings(point), silentLog);
  const { pool, repository, settlement, source } = parts(done);
  await failPoints.source(source).receive(1);
  await failPoints.pool(pool).transaction(async (tx) => {
    await tx.execute('INSERT INTO orders …');
    await tx.execute('UPDATE sales …');
  });
  await failPoints.repository(repository).write({} as never);
  await failPoints.store(settlement).markRecorded([]);
  done.push('end');
}

async function stoppedAt(run: Promise<unknown>, done: readonly string[]): Promise<string | undefined> {
  const error = await run.then(
    () => null,
    (cause: Error) => cause.message,
  );
  expect(error).to.match(/^fail point/);
  return done.at(-1);
}

describe('fail points', () => {
  it('are no part of a program without the variable: each port stays the very object it was', () => {
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

  it('stop the keeper after a sweep that ended orders, too', async () => {
    const done: string[] = [];
    const { transitions } = parts(done);
    const failPoints = keeperFailPoints(settings('expire_after_commit'), silentLog);
    await failPoints.transitions(transitions).expireDue(0);
    await stoppedAt(
      failPoints
        .transitions(transitions)
        .expireDue(1)
        .then(() => undefined),
      done,
    );
    expect(done).to.deep.equal(['sweep', 'sweep']);
  });

  it('let an api go on whose transfer found nothing to move [R12]', async () => {
    const done: string[] = [];
    for (const point of ['after_transfer_out', 'after_transfer_in']) {
      const transfers = apiFailPoints(settings(point), silentLog).transfers(movingUnits(done, 'not'));
      await transfers.transferOut({} as never, 1, 1, 1);
      await transfers.transferIn('7', {} as never, 1);
    }
    expect(done).to.deep.equal(['transferOut', 'transferIn', 'transferOut', 'transferIn']);
  });

  it('stop the api after the step that names them', async () => {
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
      repair_after_stock: 'raise', // and not swapped
    };
    const stopping = API_FAIL_POINTS.filter((point) => !point.startsWith('drop_')) as (keyof typeof last)[];
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

  it('stop the worker after the step that names them, inside the transaction before its COMMIT', async () => {
    const last: Record<(typeof WORKER_FAIL_POINTS)[number], string> = {
      worker_after_receive: 'receive',
      worker_after_insert: 'execute',
      worker_before_commit: 'execute',
      worker_after_commit: 'write',
      worker_after_mark_recorded: 'markRecorded',
    };
    for (const point of WORKER_FAIL_POINTS) {
      const done: string[] = [];
      expect(await stoppedAt(takeWorkerThrough(point, done), done), point).to.equal(last[point]);
      const committed = point === 'worker_after_commit' || point === 'worker_after_mark_recorded';
      expect(done.includes('COMMIT'), point).to.equal(committed);
    }
  });

  it('let a worker go on whose rows were there already: nothing was committed', async () => {
    const failPoints = workerFailPoints(settings('worker_after_commit'), silentLog);
    const write = async () => ({ outcome: 'row_exists' }) as const;
    const repository = failPoints.repository({ write } as unknown as OrderRepository);
    expect(await repository.write({} as never)).to.deep.equal({ outcome: 'row_exists' });
  });

  it('stop the keeper before a row is marked done, after orders have ended or were given up, amid a repair [C3, R10]', async () => {
    const STEPS = ['lease', 'mark', 'mark', 'mark', 'expire', 'expire', 'write'];
    const before: Record<(typeof KEEPER_FAIL_POINTS)[number], string[]> = {
      outbox_after_publish: ['lease', 'mark'], // that of nothing, which is no step
      release_before_done: ['lease', 'mark', 'mark'],
      expire_after_commit: ['lease', 'mark', 'mark', 'mark', 'expire', 'expire'],
      compensate_after_row: STEPS,
      repair_after_lock: [...STEPS, 'lock'],
      repair_after_epoch: [...STEPS, 'lock', 'raise'],
      repair_after_stock: [...STEPS, 'lock', 'raise', 'stage'], // staged, and not swapped
    };
    for (const point of KEEPER_FAIL_POINTS) {
      const done: string[] = [];
      const failPoints = keeperFailPoints(settings(point), silentLog);
      const given = parts(done);
      const through = async (): Promise<void> => {
        const [published, released] = [failPoints.published(given.outbox), failPoints.released(given.outbox)];
        await published.lease('batch_recorded', 1, 1);
        await published.markDone([]);
        await published.markDone(['1']);
        await released.markDone(['2']);
        await failPoints.transitions(given.transitions).expire([]);
        await failPoints.transitions(given.transitions).expire(['1']);
        await failPoints.compensated(given.repository).write({} as never);
        const rebuilt = failPoints.rebuilt(given.repairStore);
        await rebuilt.lock({} as never, 'token', 1);
        await failPoints.raised(given.repairRepository).raiseEpoch('1', 1, 'keeper');
        await rebuilt.stage({} as never, 'token', []);
        await rebuilt.swap({} as never, 'token', {} as never);
      };
      await stoppedAt(through(), done);
      expect(done, point).to.deep.equal(before[point]);
    }
  });

  it('act at the chosen pass, once', async () => {
    const done: string[] = [];
    const failPoints = apiFailPoints(settings('after_deduct:3'), silentLog);
    const store = failPoints.store(parts(done).store);
    await store.deduct({} as never);
    await store.deduct({} as never);
    expect(await stoppedAt(store.deduct({} as never), done)).to.equal('deduct');
    await store.deduct({} as never);
    expect(done).to.have.length(4);
  });

  it('refuse a name that the program does not have, and a pass that is none', () => {
    for (const point of ['after_lunch', 'worker_after_commit', 'after_half:0', 'after_half:x', ':1']) {
      expect(() => apiFailPoints(settings(point), silentLog), point).to.throw(ConfigError, 'FAILPOINT must be');
    }
    expect(() => workerFailPoints(settings('after_half'), silentLog)).to.throw(ConfigError);
  });

  it('are refused in production', () => {
    const load = (env: Record<string, string>) => () => loadConfig(['failPoint'], env);
    expect(load({ FAILPOINT: 'after_half', NODE_ENV: 'production' })).to.throw(ConfigError, 'NODE_ENV is production');
    expect(load({ NODE_ENV: 'production' })).not.to.throw();
    expect(load({ FAILPOINT: 'after_half' })().failPoint).to.include({ point: 'after_half', act: 'kill' });
  });
});
