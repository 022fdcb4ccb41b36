import type { OrderNotification } from '../../../src/core/order-notifications.js';
import { purchaseKey, type RequestRef } from '../../../src/core/purchase.js';
import { OperationalError } from '../../../src/core/errors.js';
import type {
  OnNotification,
  PurchaseNotifications,
  PurchaseNotificationsSender,
} from '../../../src/core/ports/purchase-notifications.js';

/** Notifications in memory, sender and listeners. Subscriptions are ready at once. */
export class MemoryPurchaseNotifications implements PurchaseNotifications, PurchaseNotificationsSender {
  /** Everything that was sent, with its sale. */
  readonly sent: [string, readonly OrderNotification[]][] = [];
  /** While true, every send fails. */
  broken = false;
  readonly #listeners = new Map<string, Set<OnNotification>>();
  /** Listeners by sale. */
  readonly #ofAll = new Map<string, Set<(notification: OrderNotification) => void>>();

  listen(purchase: RequestRef, onNotification: OnNotification): () => void {
    const key = `${purchase.saleId}/${purchaseKey(purchase)}`;
    const own: OnNotification = (notification) => onNotification(notification);
    const isFirst = !this.#hasListener(purchase.saleId);
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

  listenToSale(saleId: string, onNotification: (notification: OrderNotification) => void): () => void {
    const own = (notification: OrderNotification): void => onNotification(notification);
    const listeners = this.#ofAll.get(saleId) ?? new Set();
    this.#ofAll.set(saleId, listeners.add(own));
    return () => {
      listeners.delete(own);
      if (listeners.size === 0) this.#ofAll.delete(saleId);
    };
  }

  async hasListeners(saleId: string): Promise<boolean> {
    this.#failIfBroken();
    return this.#hasListener(saleId);
  }

  async send(saleId: string, notifications: readonly OrderNotification[]): Promise<void> {
    this.#failIfBroken();
    this.sent.push([saleId, notifications]);
    for (const one of notifications) {
      for (const notify of this.#ofAll.get(saleId) ?? []) notify(one);
      for (const notify of this.#listeners.get(`${saleId}/${purchaseKey(one)}`) ?? []) notify(one);
    }
  }

  /** Makes every listener read the state again, as after a lost connection. */
  reconnect(): void {
    for (const listeners of this.#listeners.values()) for (const notify of listeners) notify(null);
  }

  get listening(): number {
    const listeners = [...this.#listeners.values(), ...this.#ofAll.values()];
    return listeners.reduce((sum, { size }) => sum + size, 0);
  }

  #hasListener(saleId: string): boolean {
    return this.#ofAll.has(saleId) || [...this.#listeners.keys()].some((key) => key.startsWith(`${saleId}/`));
  }

  #failIfBroken(): void {
    if (this.broken) throw new OperationalError('redis', 'fault of the test', { retryable: true });
  }
}
