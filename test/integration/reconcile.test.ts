import { expect } from 'chai';
import { systemClock } from '../../src/process/system-clock.js';
import { createCompensationRepository } from '../../src/mysql/compensation-repository.js';
import { createReconcileRuns } from '../../src/operate/reconcile/reconcile-runs.js';
import { bucketKeys } from '../../src/redis/keys.js';
import { Buyers } from '../chaos/harness/buyers.js';
import { runCommand, type CommandEnd } from '../helpers/command.js';
import { ask, type Answer } from '../chaos/harness/http.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale, type SaleParts } from '../chaos/harness/sales.js';
import type { Program } from '../chaos/harness/programs.js';
import { deductBatch, leakBatch, recordBatch } from '../chaos/harness/batches.js';
import { useSystem } from '../helpers/system.js';
import { until } from '../chaos/harness/wait.js';

/** Tests set ages by hand. The re-drive waits, so that it leaves leaks to reconcile. */
const TIMES = {
  TEST_OVERRIDES: 'on',
  RECONCILE_SAFE_AGE_MS: '60000',
  RECONCILE_MARKER_AGE_MS: '60000',
  RECONCILE_EVERY_MS: '0',
  COMPENSATE_RETRY_FIRST_MS: '50',
  COMPENSATE_LEASE_MS: '1000',
  REDRIVE_AFTER_MS: '3600000',
};
const KEEPER_TIMES = { ...TIMES, KEEPER_EVERY_MS: '100', OUTBOX_EVERY_MS: '100' };

interface Found {
  readonly kind: string;
  readonly userId?: string;
  readonly units?: number;
}

interface Ran extends Answer {
  readonly found: readonly string[];
  readonly jobs: readonly string[];
}

describe('reconcile and compensation', () => {
  let api: Program;
  let keeper: Program;
  let admin: string;
  const system = useSystem(async ({ programs }) => {
    [api, keeper] = await Promise.all([
      programs.start('api', { env: TIMES }),
      programs.start('keeper', { env: { ...KEEPER_TIMES, FAILPOINT: 'compensate_after_row' } }),
      programs.start('worker'),
    ]);
    admin = buyersOf('1').token('root', ['admin']);
  });

  const buyersOf = (saleId: string): Buyers => new Buyers(saleId, system.stack.env.JWT_SECRET, () => [api.url]);
  const newSale = async (parts: SaleParts = {}): Promise<string> =>
    (await openSale(system.stack, { stock: 100, ...parts })).saleId;
  const cli = (...args: string[]): Promise<CommandEnd> =>
    runCommand(['reconcile', ...args], { ...system.stack.env, ...TIMES } as never);
  const call = (method: 'GET' | 'POST', path: string): Promise<Answer> =>
    ask(`${api.operatorsUrl}/admin/v1/reconcile${path}`, { method, token: admin, timeoutMs: 30_000 });
  const reconcile = async (saleId: string, apply = false): Promise<Ran> => {
    const answer = await call('POST', `/sales/${saleId}${apply ? '?apply=true' : ''}`);
    const { findings = [], jobs = [] } = answer.json as { findings?: Found[]; jobs?: Record<string, string>[] };
    const found = findings.map(({ kind, userId, units }) => [kind, userId ?? units].join(' ').trimEnd()).sort();
    return { ...answer, found, jobs: jobs.map(({ kind, state }) => `${kind} ${state}`).sort() };
  };
  const sql = (text: string, ...values: string[]) => system.stack.mysql.execute(text, values);
  const redis = () => system.stack.redis.redis;
  const keysOf = (saleId: string) => bucketKeys({ saleId, bucket: 0 });
  /** Makes everything in the sale ten minutes old: above the safe age, but below the wait of a re-drive. */
  const age = async (saleId: string): Promise<void> => {
    const pending = await redis().zrange(keysOf(saleId).pending, '0', '-1');
    for (const batchId of pending) await redis().zadd(keysOf(saleId).pending, Date.now() - 600_000, batchId);
    await sql('UPDATE orders SET updated_at = updated_at - INTERVAL 10 MINUTE WHERE sale_id = ?', saleId);
  };

  /** Ends a row without promising its release. */
  async function endByHand(saleId: string, orderId: string): Promise<void> {
    await sql("UPDATE orders SET state = 'cancelled' WHERE id = ?", orderId);
    await sql('UPDATE sales SET sold = sold - 1 WHERE id = ?', saleId);
  }

  it('ends a job whose keeper died between the failed row and its mark, and returns the units once [C3]', async () => {
    const saleId = await newSale();
    const { batchId } = await leakBatch(system.stack, saleId, ['ida']);
    const repository = createCompensationRepository(system.stack.mysql);
    const subject = `${saleId}/ida/k1`;
    const job = { kind: 'leak', saleId, subject, batchId, userId: 'ida', requestId: 'k1', detail: 'planted' } as const;
    await sql(
      'INSERT INTO compensation_jobs (kind, subject, sale_id, batch_id, user_id, request_id, detail, attempts)' +
        " VALUES ('leak', ?, ?, ?, 'ida', 'k1', 'planted', 5)",
      subject,
      saleId,
      batchId,
    );
    expect((await keeper.ended()).signal, 'the fault happened').to.equal('SIGKILL');
    expect((await repository.byRequest(saleId, 'ida', 'k1'))[0]).to.include({ ...job, state: 'pending', attempts: 5 });
    keeper = await system.programs.start('keeper', { env: KEEPER_TIMES });
    await until('the job has its end', async () => {
      return (await repository.byRequest(saleId, 'ida', 'k1'))[0]?.state === 'failed_final';
    });
    const figures = await expectInvariants(system.stack, saleId);
    expect(figures).to.include({ rows: 1, failedRows: 1, sold: 0, unitsLeft: 100 });
    expect((await reconcile(saleId)).json.outcome).to.equal('match');
  });

  it('turns leaks, even without a marker, into orders until Redis and MySQL match', async () => {
    const saleId = await newSale();
    const served = await deductBatch(system.stack, saleId, ['ann', 'ben']);
    const bare = await deductBatch(system.stack, saleId, ['cho']);
    await redis().del(keysOf(saleId).tx + bare.batchId);
    expect((await reconcile(saleId)).found, 'recent differences are not judged').to.deep.equal([]);
    await age(saleId);
    expect((await reconcile(saleId)).found, 'the re-drive serves it').to.deep.equal(['leak cho']);
    await redis().zrem(keysOf(saleId).pending, served.batchId);
    const dry = await reconcile(saleId);
    expect([dry.found, dry.jobs]).to.deep.equal([['leak ann', 'leak ben', 'leak cho'], []]);

    const applied = await cli('--sale', saleId, '--apply', '--json');
    expect(applied.code, applied.stderr + applied.stdout).to.equal(0);
    expect((applied.lines[0]?.jobs as { state: string }[]).map(({ state }) => state)).to.deep.equal(
      Array(3).fill('compensated'),
    );
    const figures = await expectInvariants(system.stack, saleId);
    expect(figures).to.include({ rows: 3, liveRows: 3, sold: 3, unitsLeft: 97, pendingBatches: 0 });
    const after = await reconcile(saleId);
    expect([after.status, after.json.outcome, after.found]).to.deep.equal([200, 'match', []]);
    const runs = (await call('GET', `/runs?saleId=${saleId}`)).json.runs as Record<string, unknown>[];
    expect(runs.map(({ outcome, applied: was }) => `${outcome} ${was}`)).to.deep.equal([
      'match false',
      'match true',
      'findings false',
      'findings false',
      'match false',
    ]);
  });

  it('fails a leak after five refusals by MySQL and returns its units [C2]', async () => {
    const saleId = await newSale();
    const trigger = `refuse_${saleId}`;
    await sql(
      `CREATE TRIGGER ${trigger} BEFORE INSERT ON orders FOR EACH ROW` +
        ` IF NEW.sale_id = ${saleId} AND NEW.state <> 'failed' THEN SIGNAL SQLSTATE '45000'; END IF`,
    );
    await leakBatch(system.stack, saleId, ['dan']);
    const applied = await reconcile(saleId, true);
    await sql(`DROP TRIGGER ${trigger}`);
    expect([applied.found, applied.jobs]).to.deep.equal([['leak dan'], ['leak failed_final']]);
    const [job] = (await call('GET', `/jobs?saleId=${saleId}&state=failed_final`)).json.jobs as { jobId: string }[];
    expect(job).to.include({ attempts: 5, userId: 'dan' });
    expect((await call('POST', `/jobs/${job?.jobId}/retry`)).json.code).to.equal('wrong_state');
    const figures = await expectInvariants(system.stack, saleId);
    expect(figures).to.include({ rows: 1, failedRows: 1, sold: 0, unitsLeft: 100 });
    const { status, reason } = (await buyersOf(saleId).status('dan')).json;
    expect([status, reason]).to.deep.equal(['failed', 'compensation_failed']);
    expect((await reconcile(saleId)).found, 'the late worker found the row').to.deep.equal([]);
  });

  it('repairs only planted faults in an open sale under load, and corrects the stock after it closes [C5]', async () => {
    const saleId = await newSale({ stock: 5000 });
    await redis().decrby(keysOf(saleId).stock, 3); // causes drift
    await leakBatch(system.stack, saleId, ['eve']);
    const buyers = buyersOf(saleId);
    await age(saleId);
    const load = buyers.startLoad({ parallel: 4, pauseMs: 5 });
    for (let run = 0; run < 3; run++) {
      const { found } = await reconcile(saleId);
      expect(found.filter((one) => one !== 'drift 3')).to.deep.equal(['leak eve']);
    }
    const applied = await reconcile(saleId, true);
    expect(applied.jobs).to.deep.equal(['leak compensated']);
    await load.stop();
    await until('every batch is marked recorded', async () => (await redis().zcard(keysOf(saleId).pending)) === 0);
    const open = await reconcile(saleId, true);
    expect([open.found, open.jobs], 'no script sets the stock of an open sale').to.deep.equal([['drift 3'], []]);
    await system.stack.admin.close(saleId, 'test');
    const closed = await reconcile(saleId, true);
    expect([closed.found, closed.jobs]).to.deep.equal([['drift 3'], ['drift compensated']]);
    expect((await reconcile(saleId)).json.outcome).to.equal('match');
    const figures = await expectInvariants(system.stack, saleId, buyers.opLog);
    expect(figures.liveRows, 'there was load').to.be.greaterThan(10);
    const adjusted = await system.stack.mysql.query(
      "SELECT a.id FROM audit_log a JOIN compensation_jobs j ON a.subject = CONCAT('compensation_job:', j.id)" +
        " WHERE j.sale_id = ? AND a.action = 'ledger.adjust' AND a.actor IN ('root', 'keeper')",
      [saleId],
    );
    expect(adjusted).to.have.length(1);
  });

  it('repairs differing rows and entries where possible and reports the rest [D5, C7]', async () => {
    const saleId = await newSale();
    // writes rows without marking the batch recorded
    const { batchId } = await recordBatch(system.stack, saleId, 1);
    await redis().zrem(keysOf(saleId).pending, batchId); // hides the batch from the keeper
    const buyers = buyersOf(saleId);
    await buyers.rush(['fay', 'gus'], 2, { tries: 5 });
    const orderOf = async (user: string) => String((await buyers.settled(user)).json.orderId);
    const [fay, gus] = [await orderOf('fay'), await orderOf('gus')];
    await until('both are marked recorded', async () => (await redis().zcard(keysOf(saleId).pending)) === 0);
    await endByHand(saleId, fay);
    await endByHand(saleId, gus);
    await sql('DELETE FROM orders WHERE id = ?', gus);
    const release = JSON.stringify([{ saleId, bucket: 0, userId: 'x', requestId: 'k1', orderId: '1', batchId: '' }]);
    await sql(
      "INSERT INTO outbox (kind, `key`, payload, available_at, attempts) VALUES ('release', 'b', ?, UTC_TIMESTAMP(3) + INTERVAL 50 SECOND, 20)",
      release,
    );
    await age(saleId);
    const { found, jobs } = await reconcile(saleId, true);
    expect(found.map((one) => one.replace(/ [0-9a-f]{8}-0$/, ''))).to.deep.equal([
      'not_marked',
      'order_lost gus',
      'stuck_outbox',
      'unreleased fay',
    ]);
    expect(jobs).to.deep.equal(['not_marked compensated', 'stuck_outbox compensated', 'unreleased compensated']);
    await system.stack.admin.close(saleId, 'test');
    await age(saleId);
    const markers = await reconcile(saleId, true);
    expect(markers.found).to.deep.equal(['order_lost gus', 'stale_marker']);
    expect(markers.jobs).to.deep.equal(['stale_marker compensated']);
    const last = await reconcile(saleId);
    expect(last.found, 'and missing markers are no finding').to.deep.equal(['order_lost gus']);
    expect(last.json.figures).to.include({ unitsLeft: 98, sold: 1 });
  });

  it('allows one run at a time, names its holder, and repairs a leak once when two runs try [C1]', async () => {
    const saleId = await newSale();
    await leakBatch(system.stack, saleId, ['hal']);
    const runs = createReconcileRuns(system.stack.mysql, systemClock);
    await runs.lease(saleId, 'somebody', 60_000);
    const refused = await call('POST', `/sales/${saleId}`);
    expect([refused.status, refused.json.code]).to.deep.equal([409, 'reconcile_running']);
    const ends = await Promise.all([cli('--sale', saleId, '--apply'), cli('jobs', '--sale', saleId, '--json')]);
    expect(ends.map(({ code }) => code)).to.deep.equal([1, 0]);
    expect(ends[0]?.stdout).to.contain('somebody');
    await runs.free(saleId, 'somebody');
    const answers = await Promise.all([1, 2, 3].map(() => reconcile(saleId, true)));
    expect(answers.map(({ status }) => status)).to.include(200);
    expect(await expectInvariants(system.stack, saleId)).to.include({ rows: 1, liveRows: 1, unitsLeft: 99 });
    const found = await createCompensationRepository(system.stack.mysql).list({ saleId }, { max: 10 });
    expect(found.map(({ kind, state }) => `${kind} ${state}`)).to.deep.equal(['leak compensated']);
  });
});
