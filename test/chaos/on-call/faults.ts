import type { ServerName } from '../../../deploy/local/stack/servers/server-spec.js';
import { pause, until } from '../harness/wait.js';
import type { Look } from './looks.js';
import type { Shop } from './shop.js';

/** A fault of the on-call hour. */
export interface OnCallFault {
  readonly name: string;
  /** At least one of these alerts must fire and end. Empty: no alert may fire. */
  readonly alerts: readonly string[];
  /** The first look that the runbook names. Absent if no alert fires. */
  readonly looks?: readonly Look[];
  begin(shop: Shop): Promise<void>;
  /** Absent if the fault is over when `begin` returns. */
  end?(shop: Shop): Promise<void>;
  /** Maximum number of buyers without an answer or with a 5xx. Absent if no api can sell. */
  readonly refusedMax?: number;
  /** The longest wait of a buyer, in ms. */
  readonly waitMaxMs?: number;
}

/** Exceeds every time-out of the proxy. */
const HANGS_FOR_MS = 60_000;
/** The longest wait for a hung api behind the proxy that the documentation promises. */
const HUNG_WAIT_MAX_MS = 5_000;
/** Limit until a sale without load sells again after a clean restart. */
const SELLS_AGAIN_MS = 2_000;

const ALL_PROGRAMS = 'for port in 9103 9101 9102; do curl -sS -m 3 localhost:$port/readyz; echo; done';
const UNITS = "systemctl list-units 'seckill-*'";

/** A server of the stack, as a fault. The broker runs in the proxy. */
const dies = (name: ServerName): Pick<OnCallFault, 'begin' | 'end'> => ({
  begin: ({ stack }) => stack.servers.server(name).stop({ signal: 'SIGKILL' }),
  end: ({ stack }) => stack.servers.server(name).start(),
});
const hangs = (name: ServerName): Pick<OnCallFault, 'begin' | 'end'> => ({
  async begin({ stack }) {
    if (!stack.servers.server(name).kill('SIGSTOP')) throw new Error(`${name} does not run`);
  },
  async end({ stack }) {
    stack.servers.server(name).kill('SIGCONT');
  },
});

export const FAULTS: readonly OnCallFault[] = [
  {
    name: 'one api of two dies',
    alerts: ['SeckillProgramDown'],
    looks: [
      { run: ALL_PROGRAMS, says: /^curl: .+\n+\{"ready":true.+\n\{"ready":true/m },
      { run: UNITS, says: /seckill-api-1 failed\nseckill-api-2 active/ },
    ],
    begin: (shop) => shop.kill('api-1'),
    end: (shop) => shop.start('api-1'),
    refusedMax: 20, // the purchases under way
  },
  {
    name: 'all apis die',
    alerts: ['SeckillApiAbsent'],
    looks: [
      { run: ALL_PROGRAMS, says: /^curl: .+\n+\{"ready":true.+\n\{"ready":true/m },
      { run: UNITS, says: /seckill-api-1 failed\nseckill-api-2 failed/ },
      { run: 'journalctl -u seckill-api -n 20 -o cat', says: /"level":/ },
    ],
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
    looks: [
      { run: ALL_PROGRAMS, says: /ready":true.+\ncurl: .+\n+\{"ready":true/ },
      { run: UNITS, says: /seckill-worker-1 failed\nseckill-worker-2 failed/ },
      { run: "journalctl -u 'seckill-worker@*' -n 20 -o cat", says: /"level":/ },
    ],
    begin: (shop) => shop.kill('worker-1', 'worker-2'),
    end: (shop) => shop.start('worker-1', 'worker-2'),
    refusedMax: 0,
  },
  {
    name: 'one keeper of two dies',
    alerts: ['SeckillProgramDown'],
    looks: [
      { run: ALL_PROGRAMS, says: /ready":true.+\n\{"ready":true.+\ncurl: / },
      { run: UNITS, says: /seckill-keeper-1 failed\nseckill-keeper-2 active/ },
    ],
    begin: (shop) => shop.kill('keeper-1'),
    end: (shop) => shop.start('keeper-1'),
    refusedMax: 0,
  },
  {
    name: 'both keepers die',
    alerts: ['SeckillKeeperAbsent'],
    looks: [
      { run: ALL_PROGRAMS, says: /ready":true.+\n\{"ready":true.+\ncurl: / },
      { run: UNITS, says: /seckill-keeper-1 failed\nseckill-keeper-2 failed/ },
      { run: 'journalctl -u seckill-keeper -n 20 -o cat', says: /"level":/ },
    ],
    begin: (shop) => shop.kill('keeper-1', 'keeper-2'),
    end: (shop) => shop.start('keeper-1', 'keeper-2'),
    refusedMax: 0,
  },
  {
    name: 'MySQL dies',
    alerts: ['SeckillMysqlOutage'],
    looks: [
      { run: ALL_PROGRAMS, says: /"name":"mysql","ok":false/ },
      { run: 'systemctl status mysql', says: /failed/ },
      { run: 'logs keeper', says: /mysql/i },
    ],
    ...dies('mysql'),
    refusedMax: 0,
  },
  {
    name: 'MySQL hangs',
    alerts: ['SeckillMysqlOutage'],
    looks: [
      { run: ALL_PROGRAMS, says: /"name":"mysql","ok":false/ },
      { run: 'systemctl status mysql', says: /active/ },
      { run: 'logs keeper', says: /mysql/i },
    ],
    ...hangs('mysql'),
    refusedMax: 0,
  },
  {
    name: 'the only broker dies',
    alerts: ['SeckillBrokerDown'],
    looks: [
      { run: 'seckill mq status', says: /broker/i },
      { run: ALL_PROGRAMS, says: /"name":"rocketmq","ok":false/ },
      { run: 'logs keeper', says: /rocketmq|broker/i },
    ],
    ...dies('proxy'),
  },
  {
    name: 'the only broker hangs',
    alerts: ['SeckillBrokerDown'],
    looks: [
      { run: 'seckill mq status', says: /broker/i },
      { run: ALL_PROGRAMS, says: /"name":"rocketmq","ok":false/ },
      { run: 'logs keeper', says: /rocketmq|broker/i },
    ],
    ...hangs('proxy'),
  },
  {
    name: 'Redis dies',
    alerts: ['SeckillBuyersNotServed'],
    looks: [
      { run: 'curl -s localhost:8080/readyz', says: /"ready":false/ },
      { run: ALL_PROGRAMS, says: /"name":"redis","ok":false/ },
      { run: 'redis-cli INFO memory', says: /Could not connect/ },
    ],
    ...dies('redis'),
  },
  {
    name: 'Redis is full',
    alerts: ['SeckillBuyersNotServed'],
    looks: [
      { run: 'curl -s localhost:8080/readyz', says: /"ready":false/ },
      { run: ALL_PROGRAMS, says: /"name":"redis","ok":false.+(memory|full|OOM)/i },
      { run: 'redis-cli INFO memory', says: /maxmemory:1\b/ },
    ],
    async begin({ stack }) {
      await stack.redis.redis.config('SET', 'maxmemory', '1');
    },
    async end({ stack }) {
      await stack.redis.redis.config('SET', 'maxmemory', '0');
    },
  },
  {
    name: 'the proxy dies',
    alerts: ['SeckillBuyersNotServed'],
    looks: [
      { run: 'curl -s localhost:8080/readyz', says: /"ready":true/ },
      { run: 'curl -sv https://shop.example/readyz', says: /Connection refused|Failed to connect/ },
    ],
    begin: ({ nginx }) => nginx.kill(),
    end: ({ nginx }) => nginx.startAgain(),
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
      const sellsAgainMs = async (sale: 'busy' | 'idle'): Promise<number> => {
        await until(`the ${sale} sale sells again`, () => shop.buyOne(sale), { everyMs: 20 });
        return Math.round(performance.now() - readyMs);
      };
      const [idleMs, busyMs] = await Promise.all([sellsAgainMs('idle'), sellsAgainMs('busy')]);
      console.error(
        `after all programs were ready, the idle sale sold again in ${idleMs} ms, the busy one in ${busyMs} ms`,
      );
      // the busy sale waits until the workers have written earlier purchases
      if (idleMs > SELLS_AGAIN_MS)
        throw new Error(`the idle sale sold again ${idleMs} ms after all programs were ready`);
    },
  },
];
