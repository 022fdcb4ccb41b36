import { z } from 'zod';
import { bulkPreview, type BulkEnd, type BulkProgress } from '../../contract/dead-letters.js';
import { filterObject, rowId } from '../../contract/fields.js';
import { includesRole } from '../../core/roles.js';
import { readResult, type DeadLetterResult } from './dead-letter-admin.js';
import { summaryBody, type DeadLetterFilter } from './dead-letter-store.js';
import type { DiscardAnswer } from './discard-dead-letter.js';
import type { ReplayAnswer } from './replay-dead-letter.js';
import { roleNeededAnswer } from '../../http/admission-answers.js';
import { json, nameTrace, problem, startPoll } from '../../http/answer.js';
import { EventStream, isStillAllowed } from '../../http/event-stream.js';
import { jsonBody, operatorRoute, type Call, type RouteServices } from '../../http/route.js';
import { deadLetterFilter, filterOf, REPLAY_WAIT_MS } from './routes.js';
import type { DeadLetterServices } from './services.js';

/** Maximum number of dead letters per request. Further requests may follow. */
const BULK_MAX = 1000;
/** Room for the maximum number of ids, which have up to 18 digits each. */
const BODY_BYTES_MAX = 32 * 1024;
const FIRST_SHOWN = 20;
const FAILURES_SHOWN = 100;
/** Handles one dead letter at a time, no faster than the workers can keep up. */
const PACE = { perSecond: 100, inFlightMax: 1 };
/** Long enough even if every replay uses its whole wait. A request ends earlier if its token expires. */
const BULK_MAX_MS = 4 * 3_600_000;
/** After this many unfinished replays in a row, the workers are down, and each further replay would cost its wait. */
const UNFINISHED_MAX = 5;

const TOO_MANY = 'This api already works on dead letters for another request. Wait, or use another api.';

const bulk = z
  .strictObject({
    action: z.enum(['replay', 'discard']),
    ids: z.array(rowId).min(1).max(BULK_MAX).optional(),
    filter: filterObject(deadLetterFilter).optional(),
    dryRun: z.boolean(),
  })
  .refine(({ ids, filter }) => (ids === undefined) !== (filter === undefined), 'must have either ids or filter')
  .meta({ id: 'DeadLetterBulk', description: 'selects parked dead letters' });

export const workOnDeadLetters = operatorRoute({
  method: 'post',
  path: '/admin/v1/dead-letters/bulk',
  operationId: 'workOnDeadLetters',
  summary:
    'Replays or discards many parked dead letters one by one, each with an entry in the audit log. Discarding needs the role' +
    ' admin. `dryRun` only shows the matches. Closing the connection stops the run after the current dead letter.',
  access: 'operator',
  body: jsonBody(bulk, BODY_BYTES_MAX),
  answers: {
    200: {
      description:
        'a dry run: JSON. Otherwise a stream of events: `progress` for each dead letter, with `deadLetterId`, `outcome`, `note`,' +
        ' `ok`, `handled` and `of`. The last event is `end` with `done`, `failed`, `left`, the first `failures`, and `stopped`:' +
        ' null, `fault`, `unfinished` (no worker handled the last five), `time_up` (the token expired, or four hours have' +
        ' passed) or `drained`.',
      schema: bulkPreview,
      type: 'text/event-stream',
    },
  },
  problems: ['overloaded'],
  async handle(call, services: RouteServices & DeadLetterServices) {
    const { body, roles } = call;
    if (body.action === 'discard' && !includesRole(roles, 'admin')) return roleNeededAnswer('admin', null);
    const filter: DeadLetterFilter = {
      ...(body.ids ? { ids: body.ids } : filterOf(body.filter ?? {})),
      state: 'parked',
    };
    const { deadLetters } = services;
    if (body.dryRun) {
      const matching = await deadLetters.count(filter);
      const first = await deadLetters.list(filter, { max: FIRST_SHOWN });
      return json(200, 'found', { matching, most: BULK_MAX, first: first.map(summaryBody) });
    }
    const leave = services.operatorPlaces.bulks.take();
    if (leave === null) return problem('overloaded', { detail: TOO_MANY });
    try {
      const ids: string[] = [];
      for await (const { deadLetterId } of deadLetters.parkedMatching(filter, BULK_MAX)) ids.push(deadLetterId);
      await workThrough(ids, call, services);
    } finally {
      leave();
    }
    return null;
  },
});

/** The first event sends the head, so every later fault is reported as an event. */
async function workThrough(
  ids: readonly string[],
  call: Call<unknown, unknown, z.output<typeof bulk>>,
  services: RouteServices & DeadLetterServices,
): Promise<void> {
  const { deadLetters, lifecycle, streamTimes, clock, log, onBug } = services;
  const { req, res, body, userId: actor, counter } = call;
  const { action } = body;
  nameTrace(call);
  counter.count('stream');
  const poll = startPoll(res, lifecycle);
  const { signal } = poll;
  let ended: 'time_up' | 'unfinished' | null = null;
  const streamMaxMs = Math.max(0, Math.min(BULK_MAX_MS, call.expiresAtMs - clock.nowMs()));
  const stream = new EventStream(req, res, { ...streamTimes, streamMaxMs }, isStillAllowed(call, services), () => {
    ended = 'time_up';
    poll.abort();
  });
  const progress = new Progress(ids.length, action === 'replay' ? 'replayed' : 'discarded');
  const work = (id: string): Promise<ReplayAnswer | DiscardAnswer> =>
    action === 'replay'
      ? deadLetters.replay(id, { actor, waitMs: REPLAY_WAIT_MS, signal })
      : deadLetters.discard(id, actor);
  try {
    const onResult = (result: DeadLetterResult): void => {
      stream.send(progress.next(result));
      if (!progress.isStuck) return;
      ended ??= 'unfinished';
      poll.abort();
    };
    await deadLetters.workThrough(ids, work, PACE, onResult, signal);
    stream.send(progress.end(ended ?? (signal.aborted ? 'drained' : progress.hasFault ? 'fault' : null)));
  } catch (error) {
    log.error({ err: error }, 'unexpected error while working on dead letters');
    onBug(error);
  } finally {
    stream.end();
  }
}

class Progress {
  readonly #of: number;
  readonly #end: 'replayed' | 'discarded';
  readonly #failures: { readonly id: string; readonly why: string }[] = [];
  #done = 0;
  #failed = 0;
  hasFault = false;
  /** Number of unfinished replays in a row. */
  #unfinished = 0;

  constructor(of: number, end: 'replayed' | 'discarded') {
    this.#of = of;
    this.#end = end;
  }

  get isStuck(): boolean {
    return this.#unfinished >= UNFINISHED_MAX && this.#left > 0;
  }

  get #left(): number {
    return this.#of - this.#done - this.#failed;
  }

  next(result: DeadLetterResult) {
    const { deadLetterId } = result;
    const { word, note, isEnd } = readResult(result, this.#end);
    if (isEnd) this.#done++;
    else this.#failed++;
    if (!isEnd && this.#failures.length < FAILURES_SHOWN) {
      this.#failures.push({ id: deadLetterId, why: note === null ? word : `${word}: ${note}` });
    }
    this.hasFault ||= 'fault' in result;
    this.#unfinished = word === 'unfinished' ? this.#unfinished + 1 : 0;
    const handled = this.#done + this.#failed;
    return {
      id: deadLetterId,
      event: 'progress',
      data: { deadLetterId, outcome: word, note, ok: isEnd, handled, of: this.#of } satisfies BulkProgress,
    };
  }

  end(stopped: BulkEnd['stopped']) {
    const data: BulkEnd = {
      done: this.#done,
      failed: this.#failed,
      left: this.#left,
      stopped,
      failures: this.#failures,
    };
    return { id: 'end', event: 'end', data };
  }
}
