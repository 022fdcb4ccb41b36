import { liveOrderOf } from '../../../helpers/sales.js';
import { randomBytes } from 'node:crypto';
import type { Batch } from '../../../../src/core/batch.js';
import { decodeBatch } from '../../../../src/core/batch.js';
import type { Order } from '../../../../src/core/order.js';
import type { Sale } from '../../../../src/core/sale.js';
import { GROUPS, TOPICS } from '../../../../src/core/topics.js';
import { createDeadLetterAdmin } from '../../../../src/operate/dead-letters/dead-letter-admin.js';
import { createOrderIdMinter } from '../../../../src/orders/order-id-minter.js';
import type { DeadLetter } from '../../../../src/core/ports/dead-letters.js';
import type { StoredDeadLetter } from '../../../../src/operate/dead-letters/dead-letter-store.js';
import { silentLog } from '../../../helpers/silent-log.js';
import type { RedriveChannel } from '../../../../src/core/ports/channels.js';
import { MemoryWorkerSlots } from '../../../helpers/memory/memory-worker-slots.js';
import { KeeperWorld } from '../../orders/keeper-world.js';

/** The dead-letter admin on stores in memory, with a worker that records published batches on request. */
export class DeadLetterWorld extends KeeperWorld {
  /** What the worker does with a published batch. */
  onPublish: (batch: Batch) => Promise<void> = async () => undefined;
  /** Orders with a coupon. */
  readonly coupons = new Set<string>();
  readonly minter = createOrderIdMinter(
    { slots: new MemoryWorkerSlots(this.clock), clock: this.clock, log: silentLog },
    { owner: 'admin', leaseMs: 60_000 },
  );
  readonly admin = createDeadLetterAdmin({
    deadLetters: this.deadLetters,
    store: this.store,
    repository: this.mysql,
    channel: this.#channel(),
    minter: this.minter,
    clock: this.clock,
    ...this.broker.orderChannels(),
    dueOf: async (orderIds) => this.dueOf(orderIds),
    withoutCoupon: async (orderIds) => this.withoutCoupon(orderIds),
  });

  withoutCoupon(orderIds: readonly string[]): string[] {
    return orderIds.filter((orderId) => !this.coupons.has(orderId));
  }

  /** Returns the unpaid orders past their deadline. */
  dueOf(orderIds: readonly string[]): string[] {
    const nowMs = this.clock.nowMs();
    const due = this.mysql.allOrders.filter((order) => {
      return order.state === 'pending_payment' && Number(order.expiresAtMs) <= nowMs;
    });
    return due.map(({ orderId }) => orderId).filter((orderId) => orderIds.includes(orderId));
  }

  /** Deducts a batch and parks it, as a collector does. */
  async parkedBatch(sale: Sale, texts: readonly string[]): Promise<{ batch: Batch; deadLetterId: string }> {
    const batch = await this.deducted(sale, texts);
    const deadLetterId = await this.parkDeadLetter(batch);
    await this.store.park(batch);
    return { batch, deadLetterId };
  }

  async parkDeadLetter({ saleId, batchId, body }: Batch, parts: Partial<DeadLetter> = {}): Promise<string> {
    await this.deadLetters.park({
      messageId: randomBytes(8).toString('hex'),
      group: GROUPS.writer,
      originTopic: TOPICS.purchase,
      saleId,
      batchId,
      body,
      isBatch: body !== '{' && parts.body === undefined,
      reason: 'retries_exhausted',
      detail: 'given up',
      attempts: 8,
      ...parts,
    });
    return this.deadLetters.deadLetters.at(-1)?.deadLetterId ?? '';
  }

  /** Writes the rows of a batch and marks it recorded, as a worker does. */
  async work(batch: Batch): Promise<void> {
    const orderIds = await this.recorded(batch);
    const orders = batch.purchases.map(({ userId, requestId }, index) => {
      return liveOrderOf(userId, orderIds[index] as string, requestId);
    });
    await this.store.markRecorded([{ batch, orders }]);
  }

  /** Releases units from the outbox, as the keeper does. */
  async releaseUnits(): Promise<void> {
    for (const { outboxId, payload } of await this.mysql.outbox.lease('release', 100, 1000)) {
      await this.store.release(payload ?? []);
      await this.mysql.outbox.markDone([outboxId]);
    }
  }

  deadLetter(deadLetterId: string): StoredDeadLetter {
    const found = this.deadLetters.deadLetters.find((deadLetter) => deadLetter.deadLetterId === deadLetterId);
    if (found === undefined) throw new Error(`no letter ${deadLetterId}`);
    return found;
  }

  rowsOf(batch: Batch): Order[] {
    return this.mysql.allOrders.filter((row) => row.batchId === batch.batchId);
  }

  /** Batch ids published on the re-drive topic. */
  get publishedIds(): string[] {
    return this.broker.published(TOPICS.redrive).map((body) => {
      const decoded = decodeBatch(body);
      return decoded.outcome === 'decoded' ? decoded.batch.batchId : '';
    });
  }

  #channel(): RedriveChannel {
    const inner = this.broker.redriveChannel();
    return {
      publish: async (batch) => {
        await inner.publish(batch);
        await this.onPublish(batch);
      },
    };
  }
}
