import { pause, until } from '../harness/wait.js';
import type { Shop } from './shop.js';

/** A fault of the on-call hour. */
export interface OnCallFault {
  readonly name: string;
  /** Alerts of which one must fire and then end. Empty: no alert may fire. */
  readonly alerts: readonly string[];
  begin(shop: Shop): Promise<void>;
  /** Absent: the fault is over when `begin` returns. */
  end?(shop: Shop): Promise<void>;
  /** Buyers who may get no answer or a 5xx. Absent: not judged, because nobody can sell. */
  readonly refusedMax?: number;
  /** The longest wait of a buyer, in ms. */
  readonly waitMaxMs?: number;
}

/** Longer than any time-out of the proxy. */
const HANGS_FOR_MS = 60_000;
/** The longest wait for a hung api behind the proxy, as the docs promise it. */
const HUNG_WAIT_MAX_MS = 5_000;
/** A sale without buyers in progress sells again this soon after a clean restart. */
const SELLS_AGAIN_MS = 2_000;

export const FAULTS: readonly OnCallFault[] = [
  {
    name: 'one api of two dies',
    alerts: ['SeckillProgramDown'],
    begin: (shop) => shop.kill('api-1'),
    end: (shop) => shop.start('api-1'),
    refusedMax: 20, // the purchases under way in it
  },
  {
    name: 'all apis die',
    alerts: ['SeckillApiAbsent'],
    begin: (shop) => shop.kill('api-1', 'api-2'),
    end: (shop) => shop.start('api-1', 'api-2'),
  },
  {
    name: 'an api hangs',
    alerts: [],
    async begin(shop) {
      shop.program('api-1').signal('SIGSTOP');
      await pause(HANGS_FOR_MS);
      shop.program('api-1').signal('SIGCONT');
    },
    waitMaxMs: HUNG_WAIT_MAX_MS,
  },
  {
    name: 'a rolling restart by the book',
    alerts: [],
    async begin(shop) {
      for (const place of ['api-1', 'api-2', 'worker-1', 'worker-2', 'keeper-1', 'keeper-2'] as const) {
        await shop.stop(place);
        await shop.start(place);
      }
    },
    refusedMax: 0,
  },
  {
    name: 'both workers die',
    alerts: ['SeckillWorkerAbsent'],
    begin: (shop) => shop.kill('worker-1', 'worker-2'),
    end: (shop) => shop.start('worker-1', 'worker-2'),
    refusedMax: 0,
  },
  {
    name: 'both keepers die',
    alerts: ['SeckillKeeperAbsent'],
    begin: (shop) => shop.kill('keeper-1', 'keeper-2'),
    end: (shop) => shop.start('keeper-1', 'keeper-2'),
    refusedMax: 0,
  },
  {
    name: 'MySQL dies',
    alerts: ['SeckillMysqlOutage'],
    begin: (shop) => shop.stack.servers.server('mysql').stop({ signal: 'SIGKILL' }),
    end: (shop) => shop.stack.servers.server('mysql').start(),
    refusedMax: 0,
  },
  {
    name: 'the only broker dies',
    alerts: ['SeckillBrokerDown'],
    // it embeds the broker
    begin: (shop) => shop.stack.servers.server('proxy').stop({ signal: 'SIGKILL' }),
    end: (shop) => shop.stack.servers.server('proxy').start(),
  },
  {
    name: 'Redis is full',
    alerts: ['SeckillBuyersNotServed'],
    async begin({ stack }) {
      await stack.redis.redis.config('SET', 'maxmemory', '1');
    },
    async end({ stack }) {
      await stack.redis.redis.config('SET', 'maxmemory', '0');
    },
  },
  {
    name: 'a clean stop and start of everything',
    alerts: [],
    async begin(shop) {
      const all = ['api-1', 'api-2', 'worker-1', 'worker-2', 'keeper-1', 'keeper-2'] as const;
      await shop.stop(...all);
      const redis = shop.stack.servers.server('redis');
      await redis.stop();
      await redis.start();
      await shop.start(...all);
      const readyMs = performance.now();
      await until('the sale sells again', () => shop.buyOne(), { everyMs: 20 });
      const tookMs = Math.round(performance.now() - readyMs);
      if (tookMs > SELLS_AGAIN_MS) throw new Error(`the sale sold again ${tookMs} ms after all programs were ready`);
    },
  },
];
