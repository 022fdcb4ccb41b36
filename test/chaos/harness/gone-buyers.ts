import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { purchaseKey } from '../../../src/core/purchase.js';
import type { Buyers } from './buyers.js';
import type { Program } from './programs.js';

export interface GoneBuyers {
  readonly size: number;
  /** They reset their connections without having heard anything. */
  reset(): Promise<void>;
}

/** Buyers who have sent a purchase and wait for its answer, until they reset their connection. */
export function goneBuyers(buyers: Buyers, api: Program, userIds: readonly string[]): GoneBuyers {
  const { port, hostname } = new URL(api.url);
  const body = '{"quantity":1}';
  const sockets = userIds.map((userId): Socket => {
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on('error', () => undefined);
    buyers.opLog.invoke('purchase', keyOf(userId));
    socket.write(
      `POST /v1/sales/${buyers.saleId}/purchases HTTP/1.1\r\nHost: a-test\r\nIdempotency-Key: k1\r\n` +
        `Authorization: Bearer ${buyers.token(userId)}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${body.length}\r\n\r\n${body}`,
    );
    return socket;
  });
  return {
    size: userIds.length,
    async reset(): Promise<void> {
      const closed = sockets.map((socket) => once(socket, 'close'));
      for (const socket of sockets) socket.resetAndDestroy();
      await Promise.all(closed);
      for (const userId of userIds) buyers.opLog.hear(keyOf(userId), null);
    },
  };
}

const keyOf = (userId: string): string => purchaseKey({ userId, requestId: 'k1' });
