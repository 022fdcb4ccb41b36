import { expect } from 'chai';
import { sealBatch } from '../../../src/core/batch.js';
import { Bug, OperationalError } from '../../../src/core/errors.js';
import { SIGNATURE_PROPERTY } from '../../../src/core/message-signatures.js';
import type { PurchaseOutcome } from '../../../src/core/outcome.js';
import type { Span } from '../../../src/core/ports/tracing.js';
import { readTraceparent } from '../../../src/core/trace-context.js';
import { TOPICS } from '../../../src/core/topics.js';
import { createCheckBack } from '../../../src/purchase/check-back.js';
import type { PlaceBatchPorts } from '../../../src/purchase/place-batch.js';
import { placeInSpan } from '../../../src/purchase/batch-steps.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryBroker } from '../../helpers/memory/memory-broker.js';
import { MemoryRedis } from '../../helpers/memory/memory-redis.js';
import { type MemorySpan, MemoryTracing } from '../../helpers/memory/memory-tracing.js';
import { batchOf, purchasesOf, saleOf } from '../../helpers/sales.js';
import { signedMessages, TEST_SIGNATURES } from '../../helpers/signatures.js';
import { silentLog } from '../../helpers/silent-log.js';
import { partial } from '../../helpers/partial.js';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const PURCHASE = { name: 'buy', kind: 'server' } as const;

describe('spans of a batch', () => {
  let clock: ManualClock;
  let store: MemoryRedis;
  let broker: MemoryBroker;
  let tracing: MemoryTracing;
  let ports: PlaceBatchPorts;
  let saleId: string;

  beforeEach(async () => {
    clock = new ManualClock();
    store = new MemoryRedis({ clock });
    broker = new MemoryBroker({ clock });
    tracing = new MemoryTracing();
    const sale = saleOf({ stock: 2, limitPerBuyer: 1 }, clock.nowMs());
    ({ saleId } = sale);
    await store.warm(sale);
    await store.setState(sale, 'open');
    ports = {
      store,
      channel: broker.purchaseChannel(
        createCheckBack((ref) => store.resolve(ref), signedMessages(), silentLog, tracing),
      ),
      units: partial({ fetch: () => Promise.reject(new Error('one bucket')) }),
      flags: partial({ observe: () => undefined }),
      snapshots: partial({ forget: async () => undefined }),
      log: silentLog,
      clock,
    };
  });

  const purchaseSpan = (traceId?: string): Span => {
    const parent = traceId === undefined ? null : { traceId, spanId: 'b'.repeat(16), isSampled: true };
    return tracing.startRequest(parent, PURCHASE) as Span;
  };
  const place = async (texts: readonly string[], spans: readonly Span[]): Promise<PurchaseOutcome['outcome'][]> => {
    const outcomes: PurchaseOutcome['outcome'][] = [];
    const home = { saleId, bucket: 0, buckets: 1 };
    const deliver = (index: number, result: { readonly outcome: string }): void => {
      outcomes[index] = result.outcome as PurchaseOutcome['outcome'];
    };
    await placeInSpan(home, purchasesOf(...texts), spans, deliver, ports, tracing);
    return outcomes;
  };
  const only = (name: string): MemorySpan => {
    const [span, ...others] = tracing.named(name);
    expect(others, name).to.deep.equal([]);
    return span ?? expect.fail(`no span ${name}`);
  };
  const idOf = ({ traceparent }: Span): string => readTraceparent(traceparent)?.spanId ?? '';

  it('record one span per batch, linked to all its recorded purchases', async () => {
    const [first, second] = [purchaseSpan(TRACE_ID), purchaseSpan()];
    expect(await place(['u1', 'u2'], [first, second])).to.deep.equal(['accepted', 'accepted']);
    const batch = only('place batch');
    expect(batch).to.deep.include({ traceId: TRACE_ID, parentId: idOf(first), links: [idOf(first), idOf(second)] });
    expect(batch.fields).to.deep.include({
      'seckill.sale': saleId,
      'seckill.bucket': 0,
      'seckill.purchases': 2,
      'seckill.verdict': 'accepted',
    });
    expect(tracing.spans.find(({ spanId }) => spanId === idOf(second))?.links).to.deep.equal([batch.spanId]);
    expect(tracing.tree().slice(2)).to.deep.equal([
      'buy > place batch',
      'place batch > precheck',
      'place batch > half',
      'place batch > deduct',
      'place batch > commit',
    ]);
    expect(tracing.spans.filter(({ ended, name }) => !ended && name !== 'buy')).to.deep.equal([]);
  });

  it('record only a precheck for a refusal before the message, and a step for a rollback', async () => {
    await place(['u1', 'u2'], [purchaseSpan()]);
    tracing = new MemoryTracing();
    expect(await place(['u3'], [purchaseSpan()])).to.deep.equal(['sold_out']);
    expect(tracing.tree()).to.deep.equal(['buy', 'buy > place batch', 'place batch > precheck']);

    await store.bucket({ saleId, bucket: 0 }); // refuses in the gap between precheck and deduct
    tracing = new MemoryTracing();
    ports = {
      ...ports,
      store: {
        precheck: async () => ({ epoch: 1, unitsLeft: 1, buckets: 1, answers: [null] }),
        deduct: (batch) => store.deduct(batch),
        resolve: (batch) => store.resolve(batch),
      },
    };
    expect(await place(['u4'], [purchaseSpan()])).to.deep.equal(['sold_out']);
    expect(only('place batch').fields['seckill.verdict']).to.equal('refused');
    expect(only('deduct').fields['seckill.outcome']).to.equal('refused');
    expect(only('rollback').fields['seckill.confirmed']).to.equal(true);
    expect(tracing.named('commit')).to.deep.equal([]);
  });

  it('end the span of a failed step and of its batch with the reason', async () => {
    const away = new OperationalError('redis', 'ECONNREFUSED', { retryable: true });
    ports = { ...ports, store: { ...ports.store, precheck: () => Promise.reject(away) } };
    const failed = await place(['u1'], [purchaseSpan()]).catch((error: unknown) => error);
    expect(failed).to.equal(away);
    for (const name of ['precheck', 'place batch']) {
      expect(only(name), name).to.include({ ended: true });
      expect(only(name).error, name).to.contain('ECONNREFUSED');
    }
  });

  it('record nothing once the trace is no longer recorded', async () => {
    const gone: Span = { ...purchaseSpan(), traceparent: '' };
    expect(await place(['u1'], [gone])).to.deep.equal(['accepted']);
    expect(tracing.named('place batch')).to.deep.equal([]);
  });

  it('record a check-back as a step of its batch', async () => {
    broker.breakNext('commit_lost');
    await place(['u1'], [purchaseSpan(TRACE_ID)]);
    clock.advance(60_000);
    await broker.runChecks();
    expect(only('check back')).to.deep.include({ parentId: only('place batch').spanId, ended: true });
    expect(only('check back').fields['seckill.verdict']).to.equal('deducted');
  });

  it('end the span of a failed check-back with the reason', async () => {
    const resolve = (): Promise<never> => Promise.reject(new Bug('no such word'));
    const checkBack = createCheckBack(resolve, signedMessages(), silentLog, tracing);
    const batch = batchOf({ saleId }, purchasesOf('u1'));
    const { body } = sealBatch({ ...batch, traceparent: `00-${TRACE_ID}-${'b'.repeat(16)}-01` });
    const properties = new Map([[SIGNATURE_PROPERTY, TEST_SIGNATURES.sign(TOPICS.purchase, body)]]);
    const failed = await checkBack({ messageId: 'm1', body, properties }).catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(Bug);
    expect(only('check back')).to.include({ ended: true, error: 'Bug: no such word' });
  });
});
