import { expect } from 'chai';
import type { Batch } from '../../../src/core/batch.js';
import type { StockStore } from '../../../src/core/ports/stock-store.js';
import { wrapped } from '../../../src/process/seams.js';
import { failPoints, POINTS } from '../../chaos/fail-points.js';
import { batchOf, purchasesOf, saleOf } from '../../helpers/sales.js';

/** The answers of ports on which fail points depend. */
const ANSWERS: Readonly<Record<string, unknown>> = {
  rollback: true,
  transferOut: { outcome: 'transferred' },
  transferIn: { outcome: 'received' },
  write: { outcome: 'written' },
  receive: [{}],
  expire: 1,
  expireDue: 1,
};

/** Returns a port with any method, which is not a promise. Each call records the name of the method. */
function portOf(done: string[], answers: Readonly<Record<string, unknown>> = ANSWERS): never {
  const method = (name: string) => async (): Promise<unknown> => (done.push(name), answers[name]);
  return new Proxy({}, { get: (_, name) => (name === 'then' ? undefined : method(String(name))) }) as never;
}

/** Calls each method that has a fail point, in every program. */
async function runThrough(text: string, done: string[]): Promise<void> {
  const at = failPoints(text);
  const port = portOf(done);
  const none = undefined as never;
  const store = at['stock store'](port);
  await store.precheck(none, none);
  const half = await at['purchase channel'](portOf(done, { sendHalf: port })).sendHalf(none);
  await store.deduct({ purchases: [] } as never);
  if (typeof half !== 'string') {
    await half.commit();
    await half.rollback();
  }
  await at.gate(port).enter(none);
  await at['stock store of check-backs'](port).resolve(none);
  const transfers = at['transfer store'](port);
  await transfers.transferOut(none, 1, 1, 1);
  await transfers.transferIn('7', none, 1);

  await at['delivery source'](port).receive(none);
  const transaction = async (work: (tx: never) => Promise<unknown>) => (await work(port), done.push('COMMIT'));
  const pool = at['mysql of the worker']({ transaction } as never);
  await pool.transaction((tx) => tx.execute('INSERT INTO orders …', []));
  await at['order repository'](port).write(none);
  await at['batch store'](port).markRecorded(none);

  await at['outbox to publish'](port).markDone(['1']);
  await at['outbox to release'](port).markDone(['1']);
  await at['order transitions'](port).expireDue(1);
  const repair = at['repair store'](port);
  await repair.lock(none, 'token', 1);
  await at['repair repository'](port).raiseEpoch('1', 1, 'boss');
  await repair.swap(none, 'token', none);
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
  before(() => (process.env.LOG_LEVEL = 'silent'));
  after(() => delete process.env.LOG_LEVEL);

  it('wrap the ports of a program only if a module that was loaded before it says so', async () => {
    const port = portOf([]) as StockStore;
    expect(wrapped('stock store', port)).to.equal(port);
    const places = globalThis as { [key: symbol]: unknown };
    process.env.FAILPOINT = 'after_deduct=throw';
    try {
      await import('../../chaos/preload/fail-points.mjs' as string);
      await stoppedAt(wrapped('stock store', port).deduct({ purchases: [] } as never), []);
      await wrapped('stock store', port).deduct({ purchases: [] } as never);
    } finally {
      delete process.env.FAILPOINT;
      delete places[Symbol.for('seckill.wrap')];
    }
  });

  it('stop the program at the named step', async () => {
    const last = {
      after_precheck: 'precheck',
      after_half: 'sendHalf',
      after_deduct: 'deduct',
      after_commit: 'commit',
      before_resubmit: 'rollback',
      before_answer: 'enter',
      check_before_resolve: 'enter',
      check_after_resolve: 'resolve',
      after_transfer_out: 'transferOut',
      after_transfer_in: 'transferIn',
      worker_after_receive: 'receive',
      worker_after_insert: 'execute',
      worker_before_commit: 'execute',
      worker_after_commit: 'write',
      compensate_after_row: 'write',
      worker_after_mark_recorded: 'markRecorded',
      outbox_after_publish: 'markRecorded', // before the mark
      release_before_done: 'markDone', // the mark of the other outbox
      expire_after_commit: 'expireDue',
      repair_after_lock: 'lock',
      repair_after_epoch: 'raiseEpoch',
      repair_after_stock: 'raiseEpoch', // before the swap
    };
    const stopping = POINTS.filter((point) => !/^(drop|poison)_/.test(point)) as (keyof typeof last)[];
    expect(Object.keys(last)).to.have.members(stopping);
    for (const point of stopping) {
      const done: string[] = [];
      expect(await stoppedAt(runThrough(`${point}=throw`, done), done), point).to.equal(last[point]);
    }
  });

  it('lose a call of the api, or its reply, without stopping the process [T4, T5, T6]', async () => {
    for (const [point, lost] of [
      ['drop_commit', 'commit'],
      ['drop_rollback', 'rollback'],
    ] as const) {
      const [whole, done]: [string[], string[]] = [[], []];
      await runThrough('after_commit:9=throw', whole);
      await runThrough(point, done);
      expect(done, point).to.deep.equal(whole.filter((step) => step !== lost));
    }
    const done: string[] = [];
    const lossy = (point: string) => failPoints(point)['purchase channel'](portOf(done, { sendHalf: portOf(done) }));
    expect(await lossy('drop_half_reply').sendHalf({} as never), 'the broker has it').to.equal('outcome_unknown');
    expect(done).to.deep.equal(['sendHalf']);
    const half = await lossy('drop_rollback').sendHalf({} as never);
    expect(typeof half === 'string' || (await half.rollback()), 'not confirmed').to.equal(false);
    expect(typeof half === 'string' || (await half.rollback()), 'only the first is lost').to.equal(true);
  });

  it('give the script an undecodable body for every batch that has a purchase with a marked key [G14]', async () => {
    const bodies: string[] = [];
    const deduct = async ({ body }: Batch) => (bodies.push(body), { outcome: 'deducted' as const });
    const store = failPoints('poison_deduct')['stock store']({ deduct, precheck: deduct } as never);
    for (const keys of [['u1/k1', 'u2/poison-1'], ['u3'], ['u2/poison-2']]) {
      await store.deduct(batchOf(saleOf(), purchasesOf(...keys)));
    }
    expect(bodies.map((body) => /\\ud800/.test(body))).to.deep.equal([true, false, true]);
    expect(() => bodies.map((body) => JSON.parse(body) as unknown)).not.to.throw();
  });

  it('act once, at the chosen pass', async () => {
    const done: string[] = [];
    const { deduct } = failPoints('after_deduct:3=throw')['stock store'](portOf(done));
    const batch = { purchases: [] } as never;
    await deduct(batch);
    await deduct(batch);
    expect(await stoppedAt(deduct(batch), done)).to.equal('deduct');
    await deduct(batch);
    expect(done).to.have.length(4);
  });

  it('refuse an unknown name and an invalid pass', () => {
    for (const point of ['after_lunch', 'after_half:0', 'after_half:x', ':1']) {
      expect(() => failPoints(point), point).to.throw('FAILPOINT must be');
    }
  });
});
