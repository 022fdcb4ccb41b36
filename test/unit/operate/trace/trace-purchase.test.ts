import { expect } from 'chai';
import type { Batch } from '../../../../src/core/batch.js';
import { homeBucket } from '../../../../src/core/bucket.js';
import { slotsOfCell } from '../../../../src/core/cell.js';
import { OperationalError } from '../../../../src/core/errors.js';
import { composeOrderId } from '../../../../src/core/order-id.js';
import { formatRequestEntry } from '../../../../src/core/outcome.js';
import { type Purchase, purchaseKey, type RequestRef } from '../../../../src/core/purchase.js';
import type { StoredDeadLetter } from '../../../../src/operate/dead-letters/dead-letter-store.js';
import { traceIdOfBatch } from '../../../../src/core/trace-context.js';
import type { TraceQuery } from '../../../../src/operate/trace/evidence.js';
import type { OrderTrace, TraceRepository } from '../../../../src/operate/trace/trace-repository.js';
import type { TracedBatch, TraceStore } from '../../../../src/operate/trace/trace-store.js';
import { TracePurchase, TRACES_MAX } from '../../../../src/operate/trace/trace-purchase.js';
import type { FromBrokers, TraceBroker, TracedMessage } from '../../../../src/rocketmq/admin/trace-broker.js';
import { MemoryCompensationRepository } from '../../../helpers/memory/memory-compensation-repository.js';
import { MemoryDeadLetters } from '../../../helpers/memory/memory-dead-letters.js';
import { batchOf, purchasesOf } from '../../../helpers/sales.js';
import { KeeperWorld } from '../../orders/keeper-world.js';
import { recordedEvidence } from './evidence-world.js';

const NONE: TracedBatch = { marker: null, body: null, pendingSinceMs: null };
/** Combines the messages of all brokers. */
const of = <T>(...found: T[]): FromBrokers<T> => ({ found, silent: [] });
const away = (message: string): OperationalError => new OperationalError('rocketmq', message, { retryable: true });

describe('trace: purchases with an id', () => {
  let world: KeeperWorld;
  let deadLetters: MemoryDeadLetters;
  /** Results of the MySQL indexes and of a scan. */
  let indexed: RequestRef[];
  let walked: RequestRef[] | null;
  let inRedis: Map<string, string[]>;
  let batches: Map<string, TracedBatch>;
  /** Purchases in MySQL by trace id and by the batch of a trace id. Bodies in Redis by sale and trace id. */
  let ofTrace: Map<string, RequestRef[]>;
  let ofBatch: Map<string, RequestRef[]>;
  let pending: Map<string, string[]>;
  let broker: TraceBroker | null;
  let cell: number;
  /** Each request to Redis as `what bucket`, and the peak number of concurrent searches. */
  let asked: string[];
  let open: number;
  let underWay: number;
  let signal: AbortSignal | undefined;
  /** Returns the row of the purchase at the time of the MySQL query. */
  let rowOf: () => OrderTrace['order'];
  beforeEach(() => {
    [asked, open, underWay, signal, cell] = [[], 0, 0, undefined, 0];
    rowOf = () => null;
    world = new KeeperWorld();
    deadLetters = new MemoryDeadLetters(world.clock);
    [indexed, walked, inRedis, batches, broker] = [[], null, new Map(), new Map(), null];
    [ofTrace, ofBatch, pending] = [new Map(), new Map(), new Map()];
  });

  const trace = async (query: TraceQuery) => {
    const empty = { order: null, payments: [], refunds: [], coupon: null, outboxRows: [], witnessed: [] };
    const repository: TraceRepository = {
      findRequests: async (id) => (id === query.id ? indexed : (ofBatch.get(id) ?? [])),
      findByTrace: async (traceId) => ofTrace.get(traceId) ?? [],
      walkForRequest: async () => walked ?? expect.fail('the whole table was read'),
      read: async (): Promise<OrderTrace> => ({ ...empty, order: rowOf(), nowMs: world.clock.nowMs() }),
    };
    const store: TraceStore = {
      buyersOf: async ({ saleId, bucket }, requestId) => {
        asked.push(`requests ${bucket}`);
        underWay = Math.max(underWay, ++open);
        await new Promise(setImmediate);
        open--;
        return inRedis.get(`${saleId}/${requestId}`) ?? [];
      },
      entryOf: async (ref, userId, requestId) =>
        world.store.bucket(ref).requests.get(purchaseKey({ userId, requestId })) ?? null,
      unitsOf: async () => 0,
      readBatch: async ({ saleId, bucket }, batchId) => {
        asked.push(`batch ${bucket}`);
        return batches.get(`${saleId}/${batchId}`) ?? NONE;
      },
      pendingWith: async ({ saleId, bucket }, traceId) => {
        asked.push(`pending ${bucket}`);
        return pending.get(`${saleId}/${traceId}`) ?? [];
      },
    };
    const ports = {
      cell,
      sales: world.mysql,
      stock: world.store,
      store,
      repository,
      deadLetters,
      jobs: new MemoryCompensationRepository(world.clock),
      audit: { list: async () => [], append: async () => undefined },
    };
    return new TracePurchase({ ...ports, broker }, { redriveAfterMs: 60_000 }).trace(query, signal);
  };
  const found = async (query: TraceQuery): Promise<string[]> => {
    const answer = await trace(query);
    if (answer.outcome === 'not_found') return [answer.why];
    return answer.traces.map(({ request: { saleId, userId, requestId } }) => `${saleId}/${userId}/${requestId}`);
  };

  const park = ({ saleId, batchId, body }: Batch, reason: StoredDeadLetter['reason'] = 'retries_exhausted') => {
    const delivery = { messageId: batchId, group: 'g', originTopic: 't', attempts: 1 };
    return deadLetters.park({ ...delivery, saleId, batchId, body, reason, detail: '' });
  };

  it('searches no other store for an order or a batch that MySQL has', async () => {
    const { saleId } = await world.openSale();
    indexed = [{ userId: 'u1', saleId, requestId: 'k1' }];
    inRedis.set(`${saleId}/42`, ['other']);
    expect(await found({ id: '42' })).to.deep.equal([`${saleId}/u1/k1`]);
  });

  it('finds purchases by request id, for all buyers and sales or for one', async () => {
    const [one, two] = [await world.openSale(), await world.openSale()];
    inRedis.set(`${one.saleId}/k1`, ['u1', 'u2']).set(`${two.saleId}/k1`, ['u1']);
    const all = [`${one.saleId}/u1/k1`, `${one.saleId}/u2/k1`, `${two.saleId}/u1/k1`];
    expect(await found({ id: 'k1' })).to.have.members(all);
    expect(await found({ id: 'k1', saleId: one.saleId })).to.have.members(all.slice(0, 2));
    await world.deducted(two, ['u9/k1']);
    indexed = [{ userId: 'u9', saleId: '7', requestId: 'k1' }]; // a sale that Redis has forgotten
    expect(await found({ id: 'k1', userId: 'u9' })).to.have.members(['7/u9/k1', `${two.saleId}/u9/k1`]);
  });

  it('finds an unrecorded batch through the body of its marker', async () => {
    const sale = await world.openSale();
    const { batchId, body } = batchOf(sale, purchasesOf('u1', 'u2'));
    batches.set(`${sale.saleId}/${batchId}`, { marker: 'deducted', body, pendingSinceMs: 0 });
    const { saleId } = sale;
    expect(await found({ id: batchId })).to.deep.equal([`${saleId}/u1/k1`, `${saleId}/u2/k1`]);
    expect(await found({ id: batchId, userId: 'u2' })).to.deep.equal([`${saleId}/u2/k1`]);
  });

  it('finds purchases that only a dead letter knows, by batch id or request id', async () => {
    const batch = batchOf({ saleId: '7' }, purchasesOf('u1/k1', 'u2/k2'));
    await park(batch);
    expect(await found({ id: batch.batchId })).to.deep.equal(['7/u1/k1', '7/u2/k2']);
    expect(await found({ id: 'k2' })).to.deep.equal(['7/u2/k2']);
    expect(await found({ id: '1' }), 'the number of the dead letter').to.deep.equal(['7/u1/k1', '7/u2/k2']);
    deadLetters.deadLetters[0] = { ...(deadLetters.deadLetters[0] as StoredDeadLetter), reason: 'forged' };
    walked = [];
    expect((await found({ id: '1' }))[0], 'a forgery proves nothing').to.match(/^Neither Redis nor MySQL knows 1/);
  });

  it('asks the broker once per batch, and a silent broker only once', async () => {
    const sale = await world.openSale();
    const batch = await world.deducted(sale, ['u1/k1', 'u2/k1']);
    inRedis.set(`${sale.saleId}/k1`, ['u1', 'u2']);
    batches.set(`${sale.saleId}/${batch.batchId}`, { marker: 'deducted', body: batch.body, pendingSinceMs: 0 });
    const asked: string[] = [];
    const half = { kind: 'half', storedAtMs: 7 } as const;
    broker = { messagesOf: async (batchId) => (asked.push(batchId), of(half)), halvesOf: async () => of() };
    const answer = await trace({ id: 'k1' });
    expect(asked).to.deep.equal([batch.batchId]);
    const halves = answer.outcome === 'found' ? answer.traces.map(({ timeline }) => timeline[0]?.atMs) : [];
    expect(halves).to.deep.equal([7, 7]);
    let failures = 0;
    broker = {
      messagesOf: async () => {
        failures++;
        throw away('the broker is away');
      },
      halvesOf: async () => of(),
    };
    const without = await trace({ id: 'k1' });
    expect(failures).to.equal(1);
    const details =
      without.outcome === 'found' ? without.traces.flatMap(({ steps }) => steps.map(({ detail }) => detail)) : [];
    expect(details.filter((detail) => detail === 'the broker is away')).to.have.length(2);
  });

  describe('trace: trace id', () => {
    const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
    const traced = (...texts: string[]): Purchase[] =>
      purchasesOf(...texts).map((one) => ({ ...one, traceId: TRACE_ID }));

    it('finds recorded, waiting and parked purchases, even from capitals or a traceparent', async () => {
      const { saleId } = await world.openSale();
      ofTrace.set(TRACE_ID, [{ userId: 'u1', saleId, requestId: 'k1' }]);
      const waiting = batchOf({ saleId }, [...traced('u2/k2'), ...purchasesOf('other')]);
      pending.set(`${saleId}/${TRACE_ID}`, [waiting.body]);
      await park(batchOf({ saleId }, [...purchasesOf('another'), ...traced('u3/k3')]));
      await park(batchOf({ saleId }, traced('forger')), 'forged');
      const all = [`${saleId}/u1/k1`, `${saleId}/u2/k2`, `${saleId}/u3/k3`];
      for (const id of [TRACE_ID, TRACE_ID.toUpperCase(), `00-${TRACE_ID}-00f067aa0ba902b7-01`]) {
        expect(await found({ id }), id).to.deep.equal(all);
      }
      expect(await found({ id: TRACE_ID, userId: 'u2' })).to.deep.equal([`${saleId}/u2/k2`]);
    });

    it('finds the batch of a purchase that has no trace id of its own', async () => {
      const { saleId } = await world.openSale();
      const [recorded, waiting, parked] = [
        batchOf({ saleId }, purchasesOf('u1')),
        batchOf({ saleId }, purchasesOf('u2')),
        batchOf({ saleId }, purchasesOf('u3', 'u4')),
      ];
      ofBatch.set(recorded.batchId, [{ userId: 'u1', saleId, requestId: 'k1' }]);
      batches.set(`${saleId}/${waiting.batchId}`, { marker: 'deducted', body: waiting.body, pendingSinceMs: 0 });
      await park(parked);
      const foundBy = ({ batchId }: Batch) => found({ id: traceIdOfBatch(batchId) ?? '' });
      expect(await foundBy(recorded)).to.deep.equal([`${saleId}/u1/k1`]);
      expect(await foundBy(waiting)).to.deep.equal([`${saleId}/u2/k1`]);
      expect(await foundBy(parked)).to.deep.equal([`${saleId}/u3/k1`, `${saleId}/u4/k1`]);
      const answer = await trace({ id: traceIdOfBatch(waiting.batchId) ?? '' });
      expect(answer.outcome === 'found' && answer.traces[0]?.traceId).to.equal(traceIdOfBatch(waiting.batchId));
    });

    it('finds a refused purchase through the broker, and reports a silent broker', async () => {
      const { saleId } = await world.openSale();
      const { body } = batchOf({ saleId }, [...purchasesOf('u1'), ...traced('u2')]);
      const messagesOf = async () => of<TracedMessage>();
      broker = { messagesOf, halvesOf: async (traceId) => (traceId === TRACE_ID ? of(body, 'no batch') : of()) };
      expect(await found({ id: TRACE_ID })).to.deep.equal([`${saleId}/u2/k1`]);
      const silent = [{ name: 'broker-b', why: '10.0.0.2:10911 does not answer' }];
      broker = { messagesOf, halvesOf: async () => ({ found: [body], silent }) };
      expect(await found({ id: TRACE_ID }), 'the messages of another broker').to.deep.equal([`${saleId}/u2/k1`]);
      walked = [];
      broker = { messagesOf, halvesOf: async () => ({ found: [], silent }) };
      expect((await found({ id: TRACE_ID }))[0]).to.match(
        /^Neither Redis nor MySQL knows \w+\. RocketMQ .* was not asked \(broker-b: 10\.0\.0\.2:10911 does not answer\), so it may have arrived\./,
      );
      broker = { messagesOf, halvesOf: () => Promise.reject(away('NAMESRV_ADDR 10.0.0.1:9876: ECONNREFUSED')) };
      expect((await found({ id: TRACE_ID }))[0]).to.contain('(NAMESRV_ADDR 10.0.0.1:9876: ECONNREFUSED)');
      broker = null;
      expect((await found({ id: TRACE_ID }))[0]).to.contain('(NAMESRV_ADDR is not set)');
      expect((await found({ id: 'k9' }))[0], 'no broker could know the id').to.contain(
        'It never arrived, or it was refused',
      );
      const { batchId } = batchOf({ saleId }, purchasesOf('u3'));
      batches.set(`${saleId}/${batchId}`, { marker: 'aborted', body: null, pendingSinceMs: null });
      expect(await found({ id: traceIdOfBatch(batchId) ?? '' })).to.deep.equal([
        `Batch ${batchId} of sale ${saleId} was rolled back: no unit was held for it.`,
      ]);
    });

    it('is also looked up as an idempotency key', async () => {
      const { saleId } = await world.openSale();
      inRedis.set(`${saleId}/${TRACE_ID}`, ['u1']);
      expect(await found({ id: TRACE_ID })).to.deep.equal([`${saleId}/u1/${TRACE_ID}`]);
    });

    it('is shown for each purchase, even if only its batch has a trace id', async () => {
      const sale = await world.openSale();
      const batch = batchOf(sale, [...traced('u1'), ...purchasesOf('u2')]);
      expect(await world.store.deduct(batch)).to.deep.equal({ outcome: 'deducted' });
      batches.set(`${sale.saleId}/${batch.batchId}`, { marker: 'deducted', body: batch.body, pendingSinceMs: 0 });
      const answer = await trace({ id: batch.batchId });
      const traceIds = answer.outcome === 'found' ? answer.traces.map(({ traceId }) => traceId) : [];
      expect(traceIds).to.deep.equal([TRACE_ID, traceIdOfBatch(batch.batchId)]);
    });
  });

  describe('trace: known buyer', () => {
    const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';

    it('reads only the bucket of the buyer, and never the whole table', async () => {
      const { saleId } = await world.openSale({ buckets: 4 });
      const home = homeBucket('u1', 4);
      for (const id of ['k1', TRACE_ID]) {
        asked = [];
        await trace({ id, saleId, userId: 'u1' });
        expect(asked, id).to.include(`batch ${home}`);
        expect(new Set(asked.map((line) => line.split(' ')[1])), id).to.deep.equal(new Set([String(home)]));
        expect(asked, id).not.to.include(`requests ${home}`);
      }
      expect(asked, 'it may be a trace id').to.include(`pending ${home}`);
      asked = [];
      walked = [];
      await trace({ id: TRACE_ID, saleId });
      for (const bucket of [0, 1, 2, 3]) expect(asked).to.include.members([`pending ${bucket}`, `requests ${bucket}`]);
    });

    it('stops the search once MySQL or the entry of the buyer names the purchase', async () => {
      const sale = await world.openSale();
      const { saleId } = sale;
      await park(batchOf(sale, [{ ...purchasesOf('u1/k9')[0]!, traceId: TRACE_ID }]));
      indexed = [{ userId: 'u1', saleId, requestId: TRACE_ID }];
      const query = { id: TRACE_ID, saleId, userId: 'u1' };
      expect(await found(query)).to.deep.equal([`${saleId}/u1/${TRACE_ID}`]);
      indexed = [];
      await world.deducted(sale, [`u1/${TRACE_ID}`]);
      expect(await found(query)).to.deep.equal([`${saleId}/u1/${TRACE_ID}`]);
      expect(asked.filter((line) => line.startsWith('pending'))).to.deep.equal([]);
    });

    it('finds both purchases if an id is a trace id and a request id', async () => {
      const { saleId } = await world.openSale();
      ofTrace.set(TRACE_ID, [{ userId: 'u1', saleId, requestId: 'k1' }]);
      indexed = [{ userId: 'u1', saleId, requestId: TRACE_ID }];
      expect(await found({ id: TRACE_ID, userId: 'u1' })).to.deep.equal([
        `${saleId}/u1/k1`,
        `${saleId}/u1/${TRACE_ID}`,
      ]);
    });
  });

  describe('trace: Redis and MySQL read at different moments', () => {
    const first = async (saleId: string): Promise<[state: string, sentence: string, steps: string]> => {
      asked = [];
      const answer = await trace({ id: 'k1', saleId });
      if (answer.outcome !== 'found') throw new Error(answer.why);
      const [one] = answer.traces;
      const steps = one?.steps.map(({ what, detail }) => `${what} ${detail}`).join('\n') ?? '';
      return [one?.standing.state ?? '', one?.standing.sentence ?? '', steps];
    };
    const bought = async () => {
      const { saleId } = await world.openSale();
      inRedis.set(`${saleId}/k1`, ['u1']);
      const { requests } = world.store.bucket({ saleId, bucket: 0 });
      const entryIs = (state: 'ordered' | 'released') =>
        void requests.set('u1/k1', { state, orderId: '42', quantity: 1 });
      const row = (state: 'pending_payment' | 'cancelled') =>
        recordedEvidence(state, { order: { saleId } }).repository.order;
      return { saleId, entryIs, row };
    };

    it('shows the units as returned if the order ended after Redis was read', async () => {
      const { saleId, entryIs, row } = await bought();
      entryIs('ordered');
      rowOf = () => {
        entryIs('released');
        return row('cancelled');
      };
      const [state, sentence] = await first(saleId);
      expect([state, sentence.includes('its units are back')], sentence).to.deep.equal(['cancelled', true]);
    });

    it('reports nothing missing in Redis if the row was written after Redis was read', async () => {
      const { saleId, entryIs, row } = await bought();
      rowOf = () => {
        entryIs('ordered');
        return row('pending_payment');
      };
      const [state, , steps] = await first(saleId);
      expect(state).to.equal('pending_payment');
      expect(steps, 'the present entry').to.contain(
        formatRequestEntry({ state: 'ordered', orderId: '42', quantity: 1 }),
      );
    });

    it('asks Redis only once about a live order that both stores know', async () => {
      const { saleId, entryIs, row } = await bought();
      entryIs('ordered');
      rowOf = () => row('pending_payment');
      await first(saleId);
      expect(asked).to.deep.equal(['requests 0', 'batch 0']);
    });
  });

  it('searches four buckets at once, and no more once it has found enough', async () => {
    const { saleId } = await world.openSale({ buckets: 8 });
    inRedis.set(`${saleId}/k1`, ['u1', 'u2', 'u3', 'u4', 'u5', 'u6', 'u7', 'u8']); // found in each bucket
    await trace({ id: 'k1', saleId });
    expect(underWay).to.equal(4);
    expect(asked.filter((line) => line.startsWith('requests'))).to.have.length(4);
  });

  it('stops a search when its caller is gone', async () => {
    const { saleId } = await world.openSale({ buckets: 4 });
    signal = AbortSignal.abort();
    const ended = await trace({ id: 'k1', saleId }).catch((error: unknown) => error);
    expect(ended).to.equal(signal.reason);
    expect(asked).to.deep.equal([]);
  });

  it('does not ask a silent broker again, and shows the messages of other brokers', async () => {
    const sale = await world.openSale();
    for (const user of ['u1', 'u2']) await world.deducted(sale, [`${user}/k1`]);
    inRedis.set(`${sale.saleId}/k1`, ['u1', 'u2']);
    const without: string[][] = [];
    broker = {
      messagesOf: async (_batchId, names) => {
        without.push([...(names ?? [])]);
        const silent = without.length === 1 ? [{ name: 'broker-b', why: 'hangs' }] : [];
        return { found: [{ kind: 'half', storedAtMs: 7 }], silent };
      },
      halvesOf: async () => of(),
    };
    const answer = await trace({ id: 'k1' });
    expect(without).to.deep.equal([[], ['broker-b']]);
    for (const { steps, timeline } of answer.outcome === 'found' ? answer.traces : []) {
      const ofBroker = steps.filter(({ source }) => source === 'broker').map(({ what, detail }) => [what, detail]);
      expect(ofBroker.map(([what]) => what)).to.deep.equal(['half_stored', 'not_asked']);
      expect(ofBroker[1]?.[1]).to.equal('broker-b: hangs');
      expect(timeline[2], 'another broker may have it').to.include({ stage: 'commit', state: 'unknown' });
    }
  });

  it('searches the whole table for an id that is found nowhere else', async () => {
    walked = [{ userId: 'u1', saleId: '7', requestId: 'k1' }];
    expect(await found({ id: 'k1' })).to.deep.equal(['7/u1/k1']);
  });

  it('searches Redis for the named sale, or for the newest fifty sales', async () => {
    const sales = [];
    for (let i = 0; i < 51; i++) sales.push(await world.openSale());
    const [oldest, second] = sales.map(({ saleId }) => saleId) as [string, string];
    for (const saleId of [oldest, second]) inRedis.set(`${saleId}/k1`, ['u1']);
    expect(await found({ id: 'k1' })).to.deep.equal([`${second}/u1/k1`]);
    expect(await found({ id: 'k1', saleId: oldest })).to.deep.equal([`${oldest}/u1/k1`]);
  });

  it('does not search Redis for a retired sale', async () => {
    const sale = await world.openSale();
    world.mysql.putSale({ ...sale, state: 'closed', retiredAtMs: 1 });
    inRedis.set(`${sale.saleId}/k1`, ['u1']);
    walked = [];
    const [why] = await found({ id: 'k1' });
    expect(why).to.match(/^Neither Redis nor MySQL knows k1/);
    const query = { id: 'k2', saleId: sale.saleId, userId: 'u1' };
    expect((await found(query))[0]).to.contain('The sale is retired, so a request now would be answered closed.');
  });

  it('shows a limited number of purchases and reports that there are more', async () => {
    const sale = await world.openSale();
    const users = Array.from({ length: TRACES_MAX + 1 }, (_, index) => `u${index}`);
    inRedis.set(`${sale.saleId}/k1`, users);
    const answer = await trace({ id: 'k1' });
    expect(answer).to.include({ outcome: 'found', more: true });
    expect(answer.outcome === 'found' && answer.traces).to.have.length(TRACES_MAX);
    inRedis.set(`${sale.saleId}/k1`, users.slice(1));
    expect(await trace({ id: 'k1' })).to.include({ more: false });
  });

  it('reports what the marker or the sale still shows about an unknown purchase', async () => {
    walked = [];
    const sale = await world.openSale({ stock: 1 });
    const { saleId } = sale;
    await world.deducted(sale, ['u1']);
    expect((await found({ id: 'k9' }))[0]).to.match(/^Neither Redis nor MySQL knows k9\. .*Add --sale and --user/);
    expect((await found({ id: 'k9', saleId, userId: 'u2' }))[0]).to.match(
      /knows k9 of buyer u2 in sale \d+\. .*would be answered sold_out\.$/,
    );
    expect(await found({ id: 'k9', saleId: '404' })).to.deep.equal(['There is no sale 404.']);
    batches.set(`${saleId}/b1`, { marker: 'aborted', body: null, pendingSinceMs: null });
    expect(await found({ id: 'b1' })).to.deep.equal([
      `Batch b1 of sale ${saleId} was rolled back: no unit was held for it.`,
    ]);
    const orderId = composeOrderId(Date.now(), slotsOfCell(4)[1], 'u1', 1);
    expect((await found({ id: orderId }))[0], 'without cells').not.to.contain('in cell');
    cell = 4;
    expect((await found({ id: orderId }))[0], 'the same cell').not.to.contain('in cell');
    cell = 3;
    expect((await found({ id: orderId }))[0]).to.contain(' An order with this id is in cell 4. ');
    expect((await found({ id: 'k9' }))[0]).not.to.contain('in cell');
    const free = await world.openSale();
    expect((await found({ id: 'k9', saleId: free.saleId, userId: 'u2' }))[0]).to.match(/would be accepted\.$/);
  });
});
