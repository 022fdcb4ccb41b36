import { randomBytes } from 'node:crypto';
import { newBatchId } from '../../src/core/batch.js';
import { expect } from 'chai';
import { createCompensationRepository } from '../../src/mysql/compensation-repository.js';
import { createReconcileRuns } from '../../src/operate/reconcile/reconcile-runs.js';
import type {
  CompensationRepository,
  CompensationJob,
  NewCompensationJob,
} from '../../src/core/ports/compensation-repository.js';
import type { ReconcileRuns } from '../../src/core/ports/reconcile-runs.js';
import { MemoryCompensationRepository } from '../helpers/memory/memory-compensation-repository.js';
import type { Audited } from '../helpers/memory/memory-dead-letters.js';
import { MemoryReconcileRuns } from '../helpers/memory/memory-reconcile-runs.js';
import { freshSaleId } from '../helpers/sales.js';
import { until } from '../chaos/harness/wait.js';
import { mysqlWorld, systemClock } from './repository-worlds.js';
import { onEachWorld } from './on-each-world.js';

interface World {
  readonly jobs: CompensationRepository;
  readonly runs: ReconcileRuns;
  auditOf(subject: string): Promise<Audited[]>;
  /** Stored leases of a sale, held or free. */
  leasesOf(saleId: string): Promise<number>;
  close(): Promise<void>;
}

const WORLDS: [string, () => Promise<World>][] = [
  [
    'memory',
    async () => {
      const jobs = new MemoryCompensationRepository(systemClock);
      const runs = new MemoryReconcileRuns(systemClock);
      return {
        jobs,
        runs,
        leasesOf: async (saleId) => runs.leasesOf(saleId),
        auditOf: async (subject) => jobs.audited.filter((entry) => entry.subject === subject),
        close: async () => undefined,
      };
    },
  ],
  [
    'mysql',
    async () => {
      const { pool, auditOf, close } = await mysqlWorld();
      const leasesOf = async (saleId: string): Promise<number> =>
        (await pool.query('SELECT owner FROM reconcile_leases WHERE sale_id = ?', [saleId])).length;
      return {
        jobs: createCompensationRepository(pool),
        runs: createReconcileRuns(pool, systemClock),
        auditOf,
        leasesOf,
        close,
      };
    },
  ],
];

/** Longer than any test, so that no lease expires on its own. */
const LONG_MS = 60_000;

onEachWorld<World>('contract CompensationRepository', WORLDS, (world) => {
  let saleId: string;
  beforeEach(() => {
    saleId = freshSaleId();
  });

  const jobOf = (userId: string, parts: Partial<NewCompensationJob> = {}): NewCompensationJob => ({
    kind: 'leak',
    saleId,
    subject: `${saleId}/${userId}/k1`,
    batchId: newBatchId(),
    userId,
    requestId: 'k1',
    detail: `1 held for ${userId}`,
    ...parts,
  });
  const added = async (userId: string, parts: Partial<NewCompensationJob> = {}): Promise<CompensationJob> => {
    const job = jobOf(userId, parts);
    expect(await world.jobs.add([job], 'ann')).to.deep.equal(['added']);
    return (await world.jobs.list({ saleId, kind: job.kind }, { max: 100 })).at(-1) as CompensationJob;
  };
  const claim = (leaseMs = LONG_MS, max = 100): Promise<CompensationJob[]> =>
    world.jobs.claim({ max, leaseMs, saleId });
  const idsOf = (jobs: readonly CompensationJob[]): string[] => jobs.map(({ jobId }) => jobId);

  it('creates one job per kind and subject when several keepers report the finding at once [C1]', async () => {
    const job = jobOf('u1');
    const words = await Promise.all(Array.from({ length: 6 }, () => world.jobs.add([job], 'ann')));
    expect(words.flat().sort()).to.deep.equal([...Array<string>(5).fill('already_pending'), 'added'].sort());
    expect(await world.jobs.add([jobOf('u1', { kind: 'unreleased' })], 'ann')).to.deep.equal(['added']);
    const found = await world.jobs.byRequest(saleId, 'u1', 'k1');
    expect(found.map(({ kind }) => kind)).to.deep.equal(['leak', 'unreleased']);
    const [first] = found;
    expect(first).to.deep.include({ ...job, state: 'pending', attempts: 0, lastError: null });
    expect(await world.auditOf(`compensation_job:${first?.jobId}`)).to.deep.equal([
      {
        actor: 'ann',
        action: 'compensation.added',
        subject: `compensation_job:${first?.jobId}`,
        before: null,
        after: { state: 'pending', detail: job.detail },
      },
    ]);
  });

  it('removes a limited number of compensated jobs, and keeps failed jobs', async () => {
    const [first, second, failed] = [await added('u1'), await added('u2'), await added('u3')];
    await world.jobs.done(first.jobId, 'ann', '');
    await world.jobs.done(second.jobId, 'ann', '');
    await world.jobs.failed(failed.jobId, 'ann', '');
    const left = async () => idsOf(await world.jobs.list({ saleId }, { max: 10 }));
    await world.jobs.removeOld(LONG_MS, 100);
    expect(await left()).to.have.length(3);
    await until('one is old', async () => (await world.jobs.removeOld(0, 1)) === 1);
    await until('both are gone', async () => {
      await world.jobs.removeOld(0, 100);
      return (await left()).length === 1;
    });
    expect(await left()).to.deep.equal([failed.jobId]);
  });

  it('finds jobs by id, request, batch, state, kind and sale, page by page', async () => {
    const one = await added('u1');
    await world.jobs.add([jobOf('u2', { batchId: one.batchId }), jobOf('u3')], 'ann');
    const all = await world.jobs.list({ saleId }, { max: 100 });
    expect(await world.jobs.find(one.jobId)).to.deep.equal(one);
    expect(await world.jobs.find('999999999999')).to.equal(null);
    expect(idsOf(await world.jobs.byBatch(one.batchId as string))).to.deep.equal(idsOf(all.slice(0, 2)));
    expect(await world.jobs.byRequest(saleId, 'u1', 'k2')).to.deep.equal([]);
    expect(idsOf(await world.jobs.list({ saleId }, { max: 1, afterId: one.jobId }))).to.deep.equal([all[1]?.jobId]);
    expect(await world.jobs.list({ saleId, state: 'compensated' }, { max: 9 })).to.deep.equal([]);
    expect(await world.jobs.list({ saleId, kind: 'drift' }, { max: 9 })).to.deep.equal([]);
    expect(await world.jobs.list({ saleId, kind: 'leak', state: 'pending' }, { max: 9 })).to.have.length(3);
  });

  it('gives a job to one claim per lease, and counts no attempt for a claim [C1]', async () => {
    for (const user of ['u1', 'u2', 'u3', 'u4']) await world.jobs.add([jobOf(user)], 'ann');
    const claims = await Promise.all([claim(LONG_MS, 2), claim(LONG_MS, 2)]);
    const claimed = claims.flat();
    expect(new Set(idsOf(claimed)).size).to.equal(claimed.length);
    claimed.push(...(await claim())); // Claims skip jobs that another claim has locked.
    expect(new Set(idsOf(claimed)).size, 'each once').to.equal(4);
    expect(claimed.map(({ attempts }) => attempts)).to.deep.equal([0, 0, 0, 0]);
    expect(await claim()).to.deep.equal([]);
    const other = await added('u5');
    await world.jobs.claim({ max: 1, leaseMs: 50, saleId });
    await until('the lease is over', async () => {
      const [again] = await claim();
      return again?.jobId === other.jobId && again.attempts === 0;
    });
  });

  it('stores reason and due time of a postponed job, and leaves an ended job unchanged', async () => {
    const { jobId } = await added('u1');
    await claim();
    await world.jobs.postpone(jobId, LONG_MS, 'no row yet', 'counts');
    expect(await world.jobs.find(jobId)).to.include({ lastError: 'no row yet', state: 'pending', attempts: 1 });
    expect(await claim()).to.deep.equal([]);
    await world.jobs.postpone(jobId, 0, 'no row yet', 'counts');
    expect((await claim())[0]).to.include({ jobId, attempts: 2 });
    await world.jobs.postpone(jobId, 0, 'the broker is away', 'given_back');
    const early = await added('u2');
    await world.jobs.postpone(early.jobId, -LONG_MS, 'x', 'given_back');
    const [first, second] = await claim();
    expect(first?.jobId, 'due for longest').to.equal(early.jobId);
    expect(second, 'no attempt').to.include({ jobId, attempts: 2 });
    expect(await world.jobs.done(jobId, 'ann', 'it has its row')).to.equal('done');
    await world.jobs.postpone(jobId, 0, 'late', 'counts');
    expect(await world.jobs.find(jobId)).to.include({ lastError: 'it has its row', state: 'compensated' });
  });

  it('ends a job once with an audit row, and reopens a done job if its finding returns', async () => {
    const { jobId, ...job } = await added('u1');
    expect(await world.jobs.done(jobId, 'ann', 'marked recorded')).to.equal('done');
    expect(await world.jobs.failed(jobId, 'bob', 'late')).to.equal('not_pending');
    expect(await world.jobs.done('999999999999', 'ann', 'x')).to.equal('not_found');
    const batchId = newBatchId();
    expect(await world.jobs.add([{ ...jobOf('u1'), batchId }], 'bob')).to.deep.equal(['reopened']);
    const again = { jobId, batchId, state: 'pending', attempts: 0, lastError: null, createdAtMs: job.createdAtMs };
    expect(await world.jobs.find(jobId)).to.include(again);
    expect(await world.jobs.failed(jobId, 'bob', 'gave up')).to.equal('done');
    expect(await world.jobs.add([jobOf('u1')], 'bob')).to.deep.equal(['failed_final']);
    const audit = await world.auditOf(`compensation_job:${jobId}`);
    expect(audit.map(({ actor, action }) => `${actor} ${action}`)).to.deep.equal([
      'ann compensation.added',
      'ann compensation.compensated',
      'bob compensation.reopened',
      'bob compensation.failed_final',
    ]);
    expect(audit[1]).to.deep.include({
      before: { state: 'pending', attempts: 0 },
      after: { state: 'compensated', attempts: 0, note: 'marked recorded' },
    });
  });

  it('resets the attempts on a retry', async () => {
    const { jobId } = await added('u1', { kind: 'not_marked' });
    await world.jobs.postpone(jobId, 0, 'no row yet', 'counts');
    await world.jobs.failed(jobId, 'keeper', 'gave up');
    expect(await world.jobs.retry(jobId, 'ann')).to.equal('retried');
    expect(await world.jobs.find(jobId)).to.include({ state: 'pending', attempts: 0 });
    const [claimed] = await claim();
    expect(claimed).to.include({ jobId, attempts: 0 });
    expect(await world.jobs.retry(jobId, 'ann'), 'a pending job is due now').to.equal('retried');
    expect(idsOf(await claim())).to.deep.equal([jobId]);
    await world.jobs.done(jobId, 'keeper', 'marked recorded');
    expect(await world.jobs.retry(jobId, 'ann')).to.equal('compensated');
    expect(await world.jobs.retry('999999999999', 'ann')).to.equal('not_found');
    const audit = await world.auditOf(`compensation_job:${jobId}`);
    expect(audit.filter(({ action }) => action === 'compensation.retried')).to.have.length(2);
  });

  it('counts the jobs of every state, and writes audit entries for changes outside MySQL', async () => {
    const before = await world.jobs.counts();
    const { jobId } = await added('u1', { kind: 'drift' });
    const after = await world.jobs.counts();
    expect(after.pending).to.be.greaterThan(before.pending);
    expect(after).to.have.all.keys('pending', 'compensated', 'failed_final');
    await world.jobs.announce(jobId, 'ann', 'ledger.adjust', { unitsLeft: 8 }, { unitsLeft: 10 });
    expect((await world.auditOf(`compensation_job:${jobId}`)).at(-1)).to.deep.include({
      actor: 'ann',
      action: 'ledger.adjust',
      before: { unitsLeft: 8 },
      after: { unitsLeft: 10 },
    });
  });
});

onEachWorld<World>('contract ReconcileRuns', WORLDS, (world) => {
  const owner = (): string => `run-${randomBytes(6).toString('hex')}`;

  it('lets one owner hold and renew the lease of a sale until its return or expiry [C1]', async () => {
    const saleId = freshSaleId();
    const owners = [owner(), owner(), owner()];
    const answers = await Promise.all(owners.map((one) => world.runs.lease(saleId, one, LONG_MS)));
    const winner = owners[answers.findIndex(({ outcome }) => outcome === 'held')] as string;
    const taken = answers.filter((answer) => answer.outcome === 'taken');
    expect(taken).to.have.length(2);
    for (const answer of taken) expect(answer).to.include({ owner: winner });
    expect(await world.runs.lease(saleId, winner, 100)).to.deep.equal({ outcome: 'held' });
    const [second, third] = [owner(), owner()];
    await until('the lease is over', async () => (await world.runs.lease(saleId, second, LONG_MS)).outcome === 'held');
    await world.runs.free(saleId, winner);
    expect((await world.runs.lease(saleId, third, LONG_MS)).outcome, 'only its owner frees it').to.equal('taken');
    await world.runs.free(saleId, second);
    expect((await world.runs.lease(saleId, third, LONG_MS)).outcome).to.equal('held');
    expect((await world.runs.lease(freshSaleId(), third, LONG_MS)).outcome, 'another sale').to.equal('held');
  });

  it('keeps no row once a lease is returned', async () => {
    const saleId = freshSaleId();
    const [first, second] = [owner(), owner()];
    await world.runs.lease(saleId, first, LONG_MS);
    await world.runs.free(saleId, second);
    expect(await world.leasesOf(saleId)).to.equal(1);
    await world.runs.free(saleId, first);
    expect(await world.leasesOf(saleId)).to.equal(0);
  });

  it('has one owner at a time while other owners return the lease [C1]', async () => {
    const saleId = freshSaleId();
    let holding = 0;
    let held = 0;
    const takeTurns = async (): Promise<void> => {
      const self = owner();
      for (let turn = 0; turn < 20; turn++) {
        if ((await world.runs.lease(saleId, self, LONG_MS)).outcome !== 'held') continue;
        expect(++holding, 'owners at once').to.equal(1);
        held++;
        await new Promise((resolve) => setImmediate(resolve));
        holding--;
        await world.runs.free(saleId, self);
      }
    };
    await Promise.all([takeTurns(), takeTurns(), takeTurns(), takeTurns()]);
    expect(held).to.be.at.least(20);
    expect(await world.leasesOf(saleId)).to.equal(0);
  });

  it('keeps the findings of runs, newest first', async () => {
    const saleId = freshSaleId();
    const first = await world.runs.begin({ saleId, applied: false, actor: 'ann' });
    const second = await world.runs.begin({ saleId, applied: true, actor: 'keeper' });
    const request = { saleId, userId: 'u1', requestId: 'k1', batchId: null, quantity: 1 };
    const findings = [{ kind: 'drift', saleId, units: 2 } as const, { kind: 'not_marked', ...request } as const];
    await world.runs.end(first, { outcome: 'findings', figures: { requests: 3 }, findings });
    const [newest, oldest] = await world.runs.list({ saleId }, 10);
    expect(newest).to.deep.include({
      runId: second,
      saleId,
      applied: true,
      actor: 'keeper',
      finishedAtMs: null,
      outcome: null,
      figures: {},
      findings: [],
    });
    expect(oldest).to.deep.include({ runId: first, outcome: 'findings', figures: { requests: 3 }, findings });
    expect(oldest?.finishedAtMs).to.be.at.least(oldest?.startedAtMs as number);
    expect(await world.runs.list({ saleId }, 1)).to.have.length(1);
    expect(await world.runs.list({ saleId, beforeId: second }, 10), 'the next page').to.deep.equal([oldest]);
    expect(await world.runs.list({ saleId, beforeId: first }, 10)).to.deep.equal([]);
  });

  it('removes a limited number of old runs', async () => {
    const saleId = freshSaleId();
    for (let runs = 0; runs < 3; runs++) await world.runs.begin({ saleId, applied: false, actor: 'ann' });
    await world.runs.removeOld(LONG_MS, 100);
    expect(await world.runs.list({ saleId }, 10)).to.have.length(3);
    await until('one is old', async () => (await world.runs.removeOld(0, 1)) === 1);
    await until('all are gone', async () => {
      await world.runs.removeOld(0, 100);
      return (await world.runs.list({ saleId }, 10)).length === 0;
    });
  });
});

describe('contract: the stored kinds of findings on MySQL', () => {
  it('stores kinds that the previous release knows', async () => {
    const { pool, close } = await mysqlWorld();
    try {
      const saleId = freshSaleId();
      const request = { saleId, userId: 'u1', requestId: 'k1', batchId: null };
      const kind = 'not_marked';
      const subject = `${saleId}/u1/k1`;
      await createCompensationRepository(pool).add([{ ...request, kind, subject, detail: 'still held' }], 'ann');
      const runs = createReconcileRuns(pool, systemClock);
      const runId = await runs.begin({ saleId, applied: false, actor: 'ann' });
      const findings = [{ ...request, kind, quantity: 1 } as const];
      await runs.end(runId, { outcome: 'findings', figures: {}, findings });
      const [job] = await pool.query<{ kind: string }>('SELECT kind FROM compensation_jobs WHERE sale_id = ?', [
        saleId,
      ]);
      const [run] = await pool.query<{ findings_json: string }>(
        'SELECT findings_json FROM reconcile_runs WHERE id = ?',
        [runId],
      );
      expect([job?.kind, JSON.parse(run?.findings_json ?? '[]')[0]?.kind]).to.deep.equal(['unsettled', 'unsettled']);
    } finally {
      await close();
    }
  });
});
