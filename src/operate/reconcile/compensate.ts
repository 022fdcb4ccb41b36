import { assertNever, OperationalError } from '../../core/errors.js';
import { type Sale } from '../../core/sale.js';
import type { CompensationJob } from '../../core/ports/compensation-repository.js';
import { repairNeedIn } from '../../recovery/repair/sale-status.js';
import { removeStaleMarkers } from '../../recovery/stale-markers.js';
import { buyersTooMany, measureDrift } from './count-units.js';
import {
  type CompensatePorts,
  done,
  FOLLOW_MAX_MS,
  later,
  repairRequest,
  type Repair,
  type RepairPass,
} from './repair-request.js';
import { withoutUndefined } from '../../core/without-undefined.js';

export interface CompensateOptions {
  readonly safeAgeMs: number;
  readonly markerAgeMs: number;
  /** Pause after the first attempt, ms. Doubles with each further attempt. */
  readonly retryFirstMs: number;
  /** If the process that claimed a job has died, the job is due again after this time, ms. */
  readonly leaseMs: number;
}

export const ATTEMPTS_MAX = 5;
/** If this many sales in one pass get no answer, the pass assumes that Redis as a whole is down. */
const AWAY_MAX = 3;
/** Maximum number of jobs per pass. */
const JOBS_MAX = 100;

/**
 * Works through the due jobs one by one, with growing pauses between attempts. After the last, a purchase without a row
 * becomes `failed` and its units go back. Claims a job only when its turn comes, and counts only attempts that were
 * made, so a dying keeper delays at most one job.
 * @returns number of claimed jobs. @throws OperationalError mysql; after all jobs, any other error of a job
 */
export async function compensate(
  ports: CompensatePorts,
  options: CompensateOptions,
  actor: string,
  saleId?: string,
): Promise<number> {
  const pauseMaxMs = pauseMsOf(ATTEMPTS_MAX, options);
  const claim = { max: 1, leaseMs: options.leaseMs, pauseMaxMs, ...withoutUndefined({ saleId }) };
  const pass: RepairPass = { published: new Set(), followMs: Math.min(FOLLOW_MAX_MS, options.retryFirstMs) };
  const bugs: unknown[] = [];
  const claimed = new Set<string>();
  /** Skips other jobs of unanswered sales, because each time-out would delay the jobs of other sales. */
  const away = new Set<string>();
  while (claimed.size < JOBS_MAX) {
    const [job] = await ports.jobs.claim(claim);
    if (job === undefined) break;
    if (claimed.has(job.jobId)) {
      // The job is due again, and the next pass publishes the batch again.
      await ports.jobs.postpone(job.jobId, 0, job.lastError ?? '', 'given_back');
      break;
    }
    claimed.add(job.jobId);
    if (away.has(job.saleId)) {
      await ports.jobs.postpone(
        job.jobId,
        pauseMsOf(job.attempts, options),
        'Redis did not answer for its sale',
        'given_back',
      );
      continue;
    }
    try {
      const missing = await outageMet(job, ports, options, { actor, pass });
      if (missing === 'redis') away.add(job.saleId);
      // If a shared dependency fails, the other jobs stay due, because each would only wait for its time-out.
      if ((missing !== null && missing !== 'redis') || away.size >= AWAY_MAX) break;
    } catch (error) {
      if (error instanceof OperationalError) throw error;
      bugs.push(error);
      await ports.jobs.postpone(job.jobId, pauseMsOf(job.attempts, options), String(error), 'given_back');
    }
  }
  if (bugs.length > 0) throw bugs[0];
  return claimed.size;
}

interface Work {
  readonly actor: string;
  readonly pass: RepairPass;
}

const pauseMsOf = (attempts: number, { retryFirstMs }: CompensateOptions): number =>
  retryFirstMs * 2 ** Math.min(attempts, ATTEMPTS_MAX - 1);

/** @returns the failed dependency, if the result is unknown; otherwise null */
async function outageMet(
  job: CompensationJob,
  ports: CompensatePorts,
  options: CompensateOptions,
  work: Work,
): Promise<OperationalError['dependency'] | null> {
  const { jobs, log } = ports;
  const { jobId, kind, saleId, attempts } = job;
  const last = attempts >= ATTEMPTS_MAX;
  const pauseMs = pauseMsOf(attempts, options);
  let repair: Repair;
  try {
    repair = await repairOf(job, last, ports, options, work);
  } catch (error) {
    if (!(error instanceof OperationalError)) throw error;
    const { message } = error;
    await jobs.postpone(jobId, pauseMs, message, 'given_back');
    log.warn({ jobId, kind, saleId, error: message }, 'not compensated, because a server failed');
    return error.dependency;
  }
  const { note } = repair;
  const fields = { jobId, kind, saleId, attempts, note };
  if (repair.outcome === 'done') {
    await jobs.done(jobId, work.actor, note);
    log.info(fields, 'compensated');
  } else if (repair.outcome === 'later' && !(last && repair.counts)) {
    await jobs.postpone(jobId, pauseMs, note, repair.counts ? 'counts' : 'given_back');
    log.info(fields, 'not compensated yet');
  } else {
    await jobs.failed(jobId, work.actor, note);
    log.warn(fields, 'compensation given up');
  }
  return null;
}

async function repairOf(
  job: CompensationJob,
  last: boolean,
  ports: CompensatePorts,
  options: CompensateOptions,
  { actor, pass }: Work,
): Promise<Repair> {
  const sale = await ports.repository.findSale(job.saleId);
  if (sale === null) return later(`there is no sale ${job.saleId}`);
  // A repair is about to replace this data. The sale was read first, so once a repair has begun, a batch sealed with
  // that epoch is older, and has to reacquire its units.
  if (job.kind !== 'stuck_outbox' && (await repairNeedIn(sale, ports.repairs)) !== null) {
    await ports.repairs.askForRepair(sale.saleId); // the keeper does not rebuild a closed sale unless asked
    return later('the sale waits for a repair', false);
  }
  switch (job.kind) {
    case 'leak':
    case 'not_marked':
    case 'unreleased': {
      const request = { userId: job.userId ?? '', requestId: job.requestId ?? '' };
      return repairRequest(sale, request, ports, { kind: job.kind, last }, pass);
    }
    case 'drift':
      return adjustUnits(sale, job, ports, options, actor);
    case 'stale_marker':
      return done(`${await removeStaleMarkers(sale, ports, options.markerAgeMs)} markers removed`);
    case 'stuck_outbox':
      return hurryOutbox(job, ports);
    default:
      return assertNever(job.kind);
  }
}

/** Adds the whole difference to the bucket that has the most units, or takes it from that bucket. */
async function adjustUnits(
  sale: Sale,
  { jobId }: CompensationJob,
  ports: CompensatePorts,
  options: CompensateOptions,
  actor: string,
): Promise<Repair> {
  if (sale.state === 'open') return later('the sale is open, so its stock cannot be corrected', false);
  const units = await measureDrift(sale, ports, options);
  if (units === null) return later('the sale is not loaded');
  if (units.difference === 0) return done('no units are missing any more');
  if (units.moving) return later('units are in transit', false);
  const tooMany = await buyersTooMany(sale, ports, options);
  if (tooMany === null) return later('units moved while they were counted', false);
  if (tooMany !== 0)
    return later('the units of the buyers differ from the units of their requests; a person must decide');
  const read = Math.max(...units.buckets);
  const bucket = units.buckets.indexOf(read);
  const wanted = read + units.difference;
  if (wanted < 0) return later(`${-units.difference} units must be removed, but no bucket has enough left`);
  // Redis is not part of the transaction, so the audit log is written before the change.
  await ports.jobs.announce(jobId, actor, 'ledger.adjust', { bucket, unitsLeft: read }, { bucket, unitsLeft: wanted });
  const word = await ports.store.adjust({ saleId: sale.saleId, bucket }, { read, wanted, epoch: sale.epoch });
  if (word !== 'adjusted') return later(`not adjusted: ${word}`, word === 'not_warmed');
  return done(`units left of bucket ${bucket}: ${read} → ${wanted}`);
}

async function hurryOutbox(job: CompensationJob, { repository, outbox }: CompensatePorts): Promise<Repair> {
  const outboxId = job.subject.slice(job.subject.lastIndexOf('/') + 1);
  if (await repository.isDone(outboxId)) return done('the outbox row is done');
  await outbox.postpone([outboxId], 0);
  return later('made due at once');
}
