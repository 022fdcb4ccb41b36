import { EventEmitter } from 'node:events';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { connectAgainAfterEnd } from '../../../src/redis/client.js';
import { until } from '../../chaos/harness/wait.js';

/** Ends, as the driver does when sentinels name another master at the wrong moment. */
class EndingDriver extends EventEmitter {
  connects = 0;
  closed = 0;
  readonly #refusals: number;

  constructor(refusals: number) {
    super();
    this.#refusals = refusals;
  }

  connect(): Promise<void> {
    this.connects++;
    if (this.connects > this.#refusals) return Promise.resolve();
    queueMicrotask(() => this.emit('end'));
    return Promise.reject(new Error('Connection is closed.'));
  }

  disconnect(reconnect = false): void {
    if (!reconnect) this.closed++;
    this.emit('end');
  }
}

describe('redis: a driver that has given up', () => {
  const started = (refusals: number): EndingDriver => {
    const driver = new EndingDriver(refusals);
    connectAgainAfterEnd(driver as unknown as Redis);
    return driver;
  };

  it('is reconnected until it succeeds', async () => {
    const driver = started(2);
    driver.emit('end');
    await until('it is connected', () => driver.connects === 3);
  });

  it('stays closed after it was closed', async () => {
    const [closed, other] = [started(0), started(0)];
    closed.disconnect();
    other.emit('end'); // The closed driver would have reconnected before this one.
    await until('the other one is connected', () => other.connects === 1);
    expect([closed.closed, closed.connects]).to.deep.equal([1, 0]);
  });
});
