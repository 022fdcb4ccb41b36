import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';

/** Where programs wait, lease and measure. */
const FOLDERS = ['admission', 'core', 'orders', 'purchase', 'recovery', 'redis', 'rocketmq', 'sales'];

/**
 * Files that read the wall clock all the same, each with the instant that it reads: one that is stored, shown, or compared
 * with another machine. How long something takes or waits is `monotonicMs()`: the wall clock jumps when somebody sets it.
 */
const READS_WALL_CLOCK: Readonly<Record<string, string>> = {
  'admission/breaker/shared-breakers.ts': 'since when a breaker is open, for a person',
  'admission/queue/room.ts': 'when a sale opens, and times in passes and tickets, which other processes read',
  'admission/queue/waiting-rooms.ts': 'times in passes and tickets, which other processes read',
  'admission/revocations.ts':
    'when no token can be good any more that a revocation, made on the clock of MySQL, is for',
  'admission/sign/purchase-tokens.ts': 'the end of a token, which another process may have given',
  'admission/sign/request-signatures.ts': 'the time that a client has signed',
  'core/config/key.ts': 'whether a certificate has expired',
  'core/ports/clock.ts': 'the clock itself',
  'orders/handle-deliveries.ts': 'how old a batch is, which another machine has dated',
  'orders/order-id-minter.ts': 'the time in an order id',
  'purchase/place-batch.ts': 'the time of creation of a batch',
  'purchase/read-purchase.ts': 'how long ago a sale closed',
  'recovery/dead-letters/replay-dead-letter.ts': 'the deadline of an order',
  'recovery/reconcile/reconcile-admin.ts': 'how long ago a sale closed',
  'recovery/repair/await-quiet.ts': 'how long ago a sale closed',
  'redis/read-facts.ts': 'compared with the clock of Redis',
  'rocketmq/admin/half-messages.ts': 'the age of messages, which brokers have dated',
  'rocketmq/admin/inspection.ts': 'the age of messages, which brokers have dated',
  'rocketmq/admin/read-facts.ts': 'compared with the clock of a broker',
  'rocketmq/credentials.ts': 'the time that a call to the proxy has signed',
  'sales/edit-sale.ts': 'whether a new end of a window is over',
  'sales/live-sales.ts': 'the second of the figures, which other processes have dated',
  'sales/get-sale.ts': 'shown to clients, for a sale that Redis does not have',
  'sales/schedule/plan-sales.ts': 'how a planned sale stands, for a person',
};

const src = new URL('../../src/', import.meta.url);
const readsIt = (path: string): boolean => {
  const text = readFileSync(new URL(path, src), 'utf8').replaceAll('deadline: Date.now()', ''); // as gRPC wants it
  return /\bnowMs\(\)|\bDate\.now\b|new Date\(\)/.test(text);
};

describe('guard: the wall clock', () => {
  it('measures no duration: it is read for an instant, by files that say for which', () => {
    const files = FOLDERS.flatMap((folder) =>
      readdirSync(new URL(folder, src), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
    );
    const found = files.filter((name) => name.endsWith('.ts') && readsIt(name));
    expect(found.filter((name) => !Object.hasOwn(READS_WALL_CLOCK, name))).to.deep.equal([]);
    const stale = Object.keys(READS_WALL_CLOCK).filter((name) => !found.includes(name));
    expect(stale, 'read it no more').to.deep.equal([]);
  });
});
