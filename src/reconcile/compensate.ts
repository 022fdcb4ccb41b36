import { assertNever, OperationalError } from '../domain/errors.js';
import { homeBucket, type Sale } from '../domain/sale.js';
import type { CompensationBook, CompensationJob } from '../ports/compensation-book.js';
import type { Log } from '../ports/log.js';
import type { Outbox } from '../ports/outbox.js';
import type { ReconcileBook } from '../ports/reconcile-book.js';
import type { ReconcileLedger } from '../ports/reconcile-ledger.js';
import { staleMarkers } from './compare-sale.js';
import { measureDrift } from './measure-drift.js';
import {
  FOLLOW_MAX_MS,
  repairRequest,
  type Repair,
  type RepairPass,
  type RepairRequestPorts,
} from './repair-request.js';

export interface CompensatePorts extends RepairRequestPorts {
  readonly jobs: CompensationBook;
  readonly ledger: RepairRequestPorts['ledger'] & ReconcileLedger;
  readonly book: ReconcileBook;
  readonly outbox: Pick<Outbox, 'postpone'>;
  readonly log: Log;
}

export interface CompensateOptions {
  readonly safeAgeMs: number;
  readonly markerAgeMs: number;
  /** The pause after the first attempt, ms; it doubles with every further one. */
  readonly retryFirstMs: number;
  /** After this long a job that somebody took with him into his death is due again. */
  readonly leaseMs: number;
}

/** Attempts before a job is given up. */
export const ATTEMPTS_MAX = 5;
/** Jobs claimed together. */
const JOBS_MAX = 100;

const later = (note: string, counts = true): Repair => ({ outcome: 'later', note, counts });

/**
 * Works off compensation jobs that are due, one after the other. One that cannot be done is tried again, at growing
 * intervals; after the last attempt a purchase without a row becomes `failed` and its units go back.
 * @param saleId only jobs of this sale
 * @returns how many jobs were claimed
 * @throws OperationalError mysql
 */
export async function compensate(
  ports: CompensatePorts,
  options: CompensateOptions,
  actor: string,
  saleId?: string,
): Promise<number> {
  const { jobs } = ports;
  const claimed = await jobs.claim({
    max: JOBS_MAX,
    leaseMs: options.leaseMs,
    ...(saleId === undefined ? {} : { saleId }),
  });
  const pass: RepairPass = { published: new Set(), followMs: Math.min(FOLLOW_MAX_MS, options.retryFirstMs) };
  let away: string | null = null; // an outage that one has met would only cost the others their time-outs
  for (const job of claimed) {
    if (away === null) away = await compensateOne(job, ports, options, { actor, pass });
    else await jobs.postpone(job.jobId, options.retryFirstMs, away, 'given_back');
  }
  return claimed.length;
}

interface Work {
  readonly actor: string;
  readonly pass: RepairPass;
}

/** @returns what a dependency said that failed; null when none did */
async function compensateOne(
  job: CompensationJob,
  ports: CompensatePorts,
  options: CompensateOptions,
  work: Work,
): Promise<string | null> {
  const { jobs, log } = ports;
  const { jobId, kind, saleId, attempts } = job;
  const last = attempts > ATTEMPTS_MAX;
  const pauseMs = options.retryFirstMs * 2 ** (Math.min(attempts, ATTEMPTS_MAX) - 1);
  let repair: Repair;
  try {
    repair = await repairOf(job, last, ports, options, work);
  } catch (error) {
    if (!(error instanceof OperationalError)) throw error;
    const { message } = error;
    await jobs.postpone(jobId, pauseMs, message, 'given_back');
    log.warn({ jobId, kind, saleId, error: message }, 'not compensated, a part of the system failed');
    return message;
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
  const sale = await ports.book.findSale(job.saleId);
  if (sale === null) return later(`there is no sale ${job.saleId}`);
  switch (job.kind) {
    case 'leak':
    case 'unsettled':
    case 'unreleased': {
      const request = { userId: job.userId ?? '', requestId: job.requestId ?? '' };
      return repairRequest(sale, request, ports, { kind: job.kind, last }, pass);
    }
    case 'drift':
      return adjustUnits(sale, job, ports, options, actor);
    case 'stale_marker':
      return removeMarkers(sale, ports, options);
    case 'stuck_outbox':
      return hurryOutbox(job, ports);
    default:
      return assertNever(job.kind);
  }
}

/** All of the difference goes into, or out of, the bucket that has most. */
async function adjustUnits(
  sale: Sale,
  { jobId }: CompensationJob,
  ports: CompensatePorts,
  options: CompensateOptions,
  actor: string,
): Promise<Repair> {
  if (sale.state === 'open') return later('the sale is open: its stock is not to be set', false);
  const units = await measureDrift(sale, ports, options);
  if (units === null) return later('the sale is not loaded');
  if (units.difference === 0) return { outcome: 'done', note: 'nothing is missing any more' };
  if (units.moving) return later('units are on their way', false);
  const read = Math.max(...units.buckets);
  const bucket = units.buckets.indexOf(read);
  const wanted = Math.max(0, read + units.difference);
  if (wanted === read) return later('too many units were given away; none is left to be taken back');
  // Redis is no part of the transaction: what is about to be done is written down before it is done.
  await ports.jobs.announce(jobId, actor, 'ledger.adjust', { bucket, unitsLeft: read }, { bucket, unitsLeft: wanted });
  const word = await ports.ledger.adjust({ saleId: sale.saleId, bucket }, { read, wanted });
  if (word !== 'adjusted') return later(`not adjusted: ${word}`, word === 'not_warmed');
  return { outcome: 'done', note: `units left of bucket ${bucket}: ${read} → ${wanted}` };
}

async function removeMarkers(sale: Sale, ports: CompensatePorts, options: CompensateOptions): Promise<Repair> {
  let removed = 0;
  for await (const rows of ports.book.agedOrders(sale)) {
    for (let bucket = 0; bucket < sale.buckets; bucket++) {
      const ref = { saleId: sale.saleId, bucket };
      const mine = rows.filter(({ userId }) => homeBucket(userId, sale.buckets) === bucket);
      removed += await ports.ledger.removeMarkers(ref, await staleMarkers(sale, ref, mine, ports, options));
    }
  }
  return { outcome: 'done', note: `${removed} markers removed` };
}

async function hurryOutbox(job: CompensationJob, { book, outbox }: CompensatePorts): Promise<Repair> {
  const outboxId = job.subject.slice(job.subject.lastIndexOf('/') + 1);
  if (await book.isKept(outboxId)) return { outcome: 'done', note: 'the promise is kept' };
  await outbox.postpone([outboxId], 0);
  return later('made due at once');
}
