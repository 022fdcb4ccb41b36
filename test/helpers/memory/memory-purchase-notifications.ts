import type { OrderNotification } from '../../../src/core/order-notifications.js';
import { purchaseKey } from '../../../src/core/purchase.js';
import { OperationalError } from '../../../src/core/errors.js';
import type {
  OnNotification,
  PurchaseNotifications,
  PurchaseNotificationsSender,
  PurchaseRef,
} from '../../../src/core/ports/purchase-notifications.js';

/** News in memory: the listening and the telling side. The way is open at once. */
export class MemoryPurchaseNotifications implements PurchaseNotifications, PurchaseNotificationsSender {
  /** What was told, by sale. */
  readonly sent: [string, readonly OrderNotification[]][] = [];
  /** While true, whoever tells gets an error. */
  broken = false;
  readonly #listeners = new Map<string, Set<OnNotification>>();

  listen(purchase: PurchaseRef, hear: OnNotification): () => void {
    const key = `${purchase.saleId}/${purchaseKey(purchase)}`;
    const own = (told: OrderNotification | null): void => hear(told);
    const isFirst = !this.#isHeard(purchase.saleId);
    const listeners = this.#listeners.get(key) ?? new Set();
    this.#listeners.set(key, listeners.add(own));
    queueMicrotask(() => {
      if (isFirst && listeners.has(own)) own(null);
    });
    return () => {
      listeners.delete(own);
      if (listeners.size === 0) this.#listeners.delete(key);
    };
  }

  async hasListeners(saleId: string): Promise<boolean> {
    this.#failIfBroken();
    return this.#isHeard(saleId);
  }

  async send(saleId: string, news: readonly OrderNotification[]): Promise<void> {
    this.#failIfBroken();
    this.sent.push([saleId, news]);
    for (const told of news) {
      for (const hear of this.#listeners.get(`${saleId}/${purchaseKey(told)}`) ?? []) hear(told);
    }
  }

  /** The way was broken and is open again. */
  reconnect(): void {
    for (const listeners of this.#listeners.values()) for (const hear of listeners) hear(null);
  }

  get listening(): number {
    return [...this.#listeners.values()].reduce((sum, { size }) => sum + size, 0);
  }

  #isHeard(saleId: string): boolean {
    return [...this.#listeners.keys()].some((key) => key.startsWith(`${saleId}/`));
  }

  #failIfBroken(): void {
    if (this.broken) throw new OperationalError('redis', 'ordered by the test', { retryable: true });
  }
}
