import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import type { MessageOptions } from 'rocketmq-client-nodejs';
import definition from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb.js';
import { readKeyring } from '../../src/core/hmac.js';
import { MessageSignatures, SIGNATURE_PROPERTY } from '../../src/core/message-signatures.js';
import { encodeOrderEvents } from '../../src/core/order-event.js';
import { encodePaymentDeadline } from '../../src/core/payment-deadline.js';
import type { Sale } from '../../src/core/sale.js';
import { DEAD_LETTERS, GROUP_TOPICS, GROUPS, type Topic, TOPICS } from '../../src/core/topics.js';
import { readTopicLists, type TopicEntry } from '../../src/rocketmq/admin/topic-lists.js';
import { baseClientOptions, type ConnectionOptions } from '../../src/rocketmq/client-options.js';
import { PatchedProducer } from '../../src/rocketmq/clients-with-workarounds.js';
import { startPlainProducer } from '../../src/rocketmq/plain-channels.js';
import { batchOf, deductBatch, publishBatches } from '../chaos/harness/batches.js';
import { Buyers } from '../chaos/harness/buyers.js';
import { sumMetric, type Program } from '../chaos/harness/programs.js';
import { ACTOR, draftSale, openSale } from '../chaos/harness/sales.js';
import { until } from '../chaos/harness/wait.js';
import { brokerOf } from '../helpers/broker.js';
import { runCommand } from '../helpers/command.js';
import { expectInvariants } from '../helpers/invariants.js';
import { signaturesOf } from '../helpers/signatures.js';
import { silentLog } from '../helpers/silent-log.js';
import { useSystem } from '../helpers/system.js';

const HOUR_MS = 3_600_000;

/** Returns the signature of a body, or undefined for none. */
type Forging = (topic: string, body: string) => string | undefined;

interface Forged {
  readonly body: string;
  readonly signature: string | undefined;
}

/** Sends messages like an attacker with a broker key who knows this code. */
class Intruder {
  readonly #options: ConnectionOptions;

  constructor(broker: Pick<ConnectionOptions, 'endpoint' | 'credentials'>) {
    this.#options = { ...broker, requestTimeoutMs: 10_000, log: silentLog };
  }

  async send(topic: string, messages: readonly Forged[]): Promise<void> {
    const producer = await startPlainProducer(topic, this.#options);
    // a DELAY topic requires a delivery time
    const due = topic === TOPICS.paymentDeadline ? { deliveryTimestamp: new Date(Date.now() - 1_000) } : {};
    try {
      for (const message of messages) await producer.send({ ...optionsOf(message), ...due }, 'a forgery');
    } finally {
      await producer.close();
    }
  }

  /** @param commit false: leaves the messages to check-backs, which this producer does not answer */
  async sendHalves(messages: readonly Forged[], commit: boolean): Promise<void> {
    const topic = TOPICS.purchase;
    const unanswered = definition.TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED;
    const producer = new PatchedProducer({
      ...baseClientOptions({ endpoint: this.#options.endpoint, topic }, this.#options),
      topics: [topic],
      checker: { check: async () => unanswered },
    });
    await producer.startup();
    for (const message of messages) {
      const transaction = producer.beginTransaction();
      await producer.send({ topic, ...optionsOf(message) }, transaction);
      if (commit) await transaction.commit();
    }
    await producer.shutdown();
  }
}

const optionsOf = ({ body, signature }: Forged): Omit<MessageOptions, 'topic'> => ({
  body: Buffer.from(body, 'utf8'),
  properties: new Map(signature === undefined ? [] : [[SIGNATURE_PROPERTY, signature]]),
});

describe('messages of an attacker with a broker key', () => {
  let programs: readonly Program[];
  let api: Program;
  let intruder: Intruder;
  let ours: MessageSignatures;
  const system = useSystem(async ({ programs: starter, stack }) => {
    const [started, ...others] = await Promise.all([
      starter.start('api', { env: { PAYMENT_PROVIDER: 'simulator' } }),
      starter.start('worker'),
      starter.start('keeper', { env: { REDRIVE_AFTER_MS: '600000', KEEPER_EVERY_MS: '500' } }),
    ]);
    api = started;
    programs = [started, ...others];
    intruder = new Intruder(brokerOf(stack.env));
    ours = signaturesOf(stack.env);
  });

  const count = async (sql: string, ...values: string[]): Promise<number> => {
    const [row] = await system.stack.mysql.query<{ n: string | number }>(`SELECT COUNT(*) AS n FROM ${sql}`, values);
    return Number(row?.n);
  };
  const buyersOf = (saleId: string): Buyers => new Buyers(saleId, system.stack.env.JWT_SECRET, () => [api.url]);
  const forgedMetric = (): Promise<number> => sumMetric(programs, 'seckill_forged_messages_total');
  const parkedOf = (mark: string): Promise<number> =>
    count("dead_letters WHERE reason = 'forged' AND state = 'parked' AND INSTR(body, ?) > 0", mark);
  /** Warms a sale that opens in an hour. */
  const laterSale = async (): Promise<Sale> => {
    const sale = await draftSale(system.stack, {
      opensAtMs: Date.now() + HOUR_MS,
      closesAtMs: Date.now() + 2 * HOUR_MS,
    });
    await system.stack.admin.warm(sale.saleId, ACTOR);
    return sale;
  };

  it('parks unsigned, tampered and wrongly signed messages of every topic, and changes nothing [S10]', async () => {
    const { stack } = system;
    const [later, open] = [await laterSale(), await openSale(stack, { stock: 10 })];
    const buyers = buyersOf(open.saleId);
    expect((await buyers.buy('ann'))?.status).to.equal(202);
    const orderId = String((await buyers.status('ann', 'k1', 20)).json.orderId);
    // The batch stays unrecorded, because its message is lost and the re-drive is not due yet.
    const pending = await deductBatch(stack, open.saleId, ['bob']);

    const foreign = new MessageSignatures(readKeyring('theirs:a-key-of-somebody-else-of-forty-bytes'));
    const ofOurName = new MessageSignatures(readKeyring('local:a-key-of-somebody-else-of-forty-bytes'));
    const forgings: readonly Forging[] = [
      () => undefined,
      (topic, body) => foreign.sign(topic, body),
      (topic, body) => ofOurName.sign(topic, body),
      (topic, body) => ours.sign(topic, `${body} `),
      (topic, body) => ours.sign(topic === TOPICS.redrive ? TOPICS.purchase : TOPICS.redrive, body),
    ];
    const mark = randomBytes(8).toString('hex');
    const mallory = `mallory-${mark}`;
    const nonce = (): string => `${mark}-${randomBytes(4).toString('hex')}`;
    /** Returns a purchase before the opening, a purchase in the open sale, and the pending batch plus a purchase. */
    const batches = (): string[] => {
      const swollen = JSON.parse(pending.body) as { purchases: unknown[] };
      swollen.purchases.push([mallory, nonce(), 1]);
      return [batchOf(later.saleId, [mallory]).body, batchOf(open.saleId, [mallory]).body, JSON.stringify(swollen)];
    };
    const deadline = (): string =>
      encodePaymentDeadline({ batchId: nonce(), saleId: open.saleId, deadlineAtMs: 1, orders: [orderId] });
    const event = (): string =>
      encodeOrderEvents([{ eventId: nonce(), type: 'order.paid', saleId: open.saleId, orders: [orderId], atMs: 1 }]);
    /** Forges each batch in every way for this topic. */
    const forgedFor = (topic: Topic): Forged[] =>
      forgings.flatMap((forging) => {
        const bodies =
          topic === TOPICS.paymentDeadline ? [deadline()] : topic === TOPICS.orderEvent ? [event()] : batches();
        return bodies.map((body) => ({ body, signature: forging(topic, body) }));
      });

    const before = await forgedMetric();
    let expected = 0;
    const groups = Object.values(GROUPS);
    const { topics: configured } = readTopicLists();
    const unsent = new Set(configured.map(({ topicName }) => topicName));
    const send = async (topic: string, messages: readonly Forged[]): Promise<void> => {
      await intruder.send(topic, messages);
      unsent.delete(topic);
    };
    // No consumer reads the retry topics that are created beforehand. Redeliveries go to a topic per group and topic,
    // where the broker lets an existing group publish. These come first, so that their messages are parked first.
    for (const topic of [...unsent].filter((name) => name.startsWith('%RETRY%'))) {
      const messages = forgedFor(TOPICS.redrive);
      await send(topic, messages.slice(0, 1));
    }
    const deliveredAgain = groups.map((group) => `${group}_${GROUP_TOPICS[group]}`);
    const like = configured.find(({ topicName }) => topicName.startsWith('%RETRY%'));
    await stack.servers.applyTopics({
      topics: deliveredAgain.map((name) => ({ ...(like as TopicEntry), topicName: `%RETRY%${name}` })),
      groups: deliveredAgain.map((groupName) => ({ groupName, retryMaxTimes: 1 })),
    });
    for (const group of groups) {
      const messages = forgedFor(GROUP_TOPICS[group]);
      await send(`%RETRY%${group}_${GROUP_TOPICS[group]}`, messages);
      expected += messages.length;
    }
    for (const topic of [TOPICS.redrive, TOPICS.paymentDeadline, TOPICS.orderEvent]) {
      const messages = forgedFor(topic);
      await send(topic, messages);
      expected += messages.length * groups.filter((group) => GROUP_TOPICS[group] === topic).length;
    }
    for (const group of groups) {
      const messages = forgedFor(GROUP_TOPICS[group]);
      await send(DEAD_LETTERS[group].topic, messages);
      expected += messages.length;
    }
    for (const commit of [true, false]) {
      const messages = forgedFor(TOPICS.purchase);
      await intruder.sendHalves(messages, commit);
      unsent.delete(TOPICS.purchase);
      expected += messages.length;
    }
    expect([...unsent], 'topics that were left out').to.deep.equal([]);

    await until(`${expected} are parked`, async () => (await parkedOf(mark)) >= expected);
    expect(await parkedOf(mark)).to.equal(expected);
    expect((await forgedMetric()) - before, 'the metric of the alert').to.be.at.least(expected);
    expect(await count('orders WHERE user_id = ?', mallory)).to.equal(0);
    expect(await count('coupons WHERE order_id = ?', orderId)).to.equal(0);
    expect((await buyers.order('ann', orderId)).json.state).to.equal('pending_payment');
    expect(await expectInvariants(stack, later.saleId)).to.include({ rows: 0, sold: 0, unitsLeft: 10 });

    // Operators can only close these dead letters.
    const named = await stack.mysql.query<{ id: string }>(
      "SELECT id FROM dead_letters WHERE reason = 'forged' AND INSTR(body, ?) > 0 AND INSTR(body, ?) > 0",
      [mark, pending.batchId],
    );
    const id = String(named[0]?.id);
    const replay = await runCommand(['dlq', 'replay', id, '--json'], stack.env);
    expect([replay.code, replay.lines[0]?.outcome], replay.stderr).to.deep.equal([1, 'forged']);
    const discard = await runCommand(['dlq', 'discard', id, '--json'], stack.env);
    expect([discard.code, discard.lines[0]?.outcome], discard.stderr).to.deep.equal([0, 'discarded']);

    await publishBatches(stack, [pending]); // the genuine batch, as from the re-drive
    expect(await expectInvariants(stack, open.saleId)).to.include({ rows: 2, sold: 2, unitsLeft: 8 });
  });
});
