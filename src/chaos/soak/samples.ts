import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import type { StackHands } from '../harness/stack-hands.js';
import type { Program } from '../harness/programs.js';
import { readMeter } from '../harness/meters.js';
import type { Fleet } from './fleet.js';
import type { ProgramSample, ServerSample } from './flatness.js';

const EVERY_MS = 5_000;

/** Looks at programs and servers every 5 s. What is broken at that moment is left out. */
export class Sampler {
  readonly programs: ProgramSample[] = [];
  readonly servers: ServerSample[] = [];
  readonly #timer: NodeJS.Timeout;
  #looks: Promise<unknown> = Promise.resolve();

  constructor(fleet: Fleet, stack: StackHands) {
    const beganMs = Date.now();
    const programs = alone(async () => void this.programs.push(...(await samplePrograms(fleet))));
    const servers = alone(async () => void this.servers.push(await sampleServers(stack, beganMs)));
    this.#timer = setInterval(() => (this.#looks = Promise.all([programs(), servers()])), EVERY_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looks;
  }
}

/** Lets `work` run once at a time: a turn that comes while it hangs on a broken server is left out. Never rejects. */
function alone(work: () => Promise<void>): () => Promise<void> {
  let under: Promise<void> | null = null;
  return () => {
    under ??= work()
      .catch(() => undefined)
      .finally(() => (under = null));
    return under;
  };
}

/** Memory, handles and sockets of every program that runs, as the kernel counts them; the heap as it says itself. */
export async function samplePrograms(fleet: Pick<Fleet, 'running'>): Promise<ProgramSample[]> {
  const looks = fleet.running().map(async ({ program, ageMs }): Promise<ProgramSample[]> => {
    const heap = await readMeter(program, 'nodejs_heap_size_used_bytes').catch(() => 0);
    const open = openOf(program);
    if (open === null) return []; // it has just been killed
    return [{ program: `${program.name} ${program.pid}`, ageMs, heapBytes: heap === 0 ? null : heap, ...open }];
  });
  return (await Promise.all(looks)).flat();
}

function openOf({ pid }: Program): Pick<ProgramSample, 'rssBytes' | 'handles' | 'sockets'> | null {
  try {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    if (kilobytes === undefined) return null;
    const targets = readdirSync(`/proc/${pid}/fd`).map((name) => targetOf(`/proc/${pid}/fd/${name}`));
    const sockets = targets.filter((target) => target.startsWith('socket:')).length;
    return { rssBytes: Number(kilobytes) * 1024, handles: targets.length, sockets };
  } catch {
    return null;
  }
}

/** Empty for one that was closed since the folder was read. */
function targetOf(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return '';
  }
}

async function sampleServers({ redis: { redis }, mysql }: StackHands, beganMs: number): Promise<ServerSample> {
  const ageMs = Date.now() - beganMs;
  const [clients, memory, redisKeys] = await Promise.all([redis.info('clients'), redis.info('memory'), redis.dbsize()]);
  const [threads] = await mysql.query<{ Value: string }>("SHOW GLOBAL STATUS LIKE 'Threads_connected'");
  const [rows] = await mysql.query<{ orders: string }>('SELECT COUNT(*) AS orders FROM orders');
  return {
    ageMs,
    redisConnections: Number(/^connected_clients:(\d+)/m.exec(clients)?.[1]),
    redisBytes: Number(/^used_memory:(\d+)/m.exec(memory)?.[1]),
    redisKeys,
    mysqlConnections: Number(threads?.Value),
    orders: Number(rows?.orders),
  };
}
