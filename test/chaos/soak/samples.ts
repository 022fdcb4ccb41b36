import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Arena } from '../context.js';
import { COLLECT_GARBAGE, type Program, type ProgramName, readMetric } from '../harness/programs.js';
import type { StackHands } from '../harness/stack-controls.js';
import type { ProgramSample, ServerSample } from './flatness.js';

const EVERY_MS = 5_000;
/** Below the folder of the servers; what a person needs to see why something was not flat. */
const FILE = join('log', 'soak-samples.jsonl');

/** Looks at programs and servers every 5 s. What is broken at that moment is left out. */
export class Sampler {
  readonly programs: ProgramSample[] = [];
  readonly servers: ServerSample[] = [];
  readonly #timer: NodeJS.Timeout;
  readonly #file: string;
  #looks: Promise<unknown> = Promise.resolve();

  constructor(fleet: Fleet, stack: StackHands) {
    this.#file = join(stack.servers.dir, FILE);
    const beganMs = Date.now();
    const programs = alone(async () => void this.programs.push(...(await samplePrograms(fleet))));
    const servers = alone(async () => void this.servers.push(await sampleServers(stack, beganMs)));
    this.#timer = setInterval(() => (this.#looks = Promise.all([programs(), servers()])), EVERY_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looks;
    const lines = [...this.programs, ...this.servers].map((sample) => `${JSON.stringify(sample)}\n`);
    writeFileSync(this.#file, lines.join(''));
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
    const heap = await readMetric(program, 'nodejs_heap_size_used_bytes').catch(() => 0);
    const open = openOf(program);
    if (open === null) return []; // it has just been killed
    return [{ program: `${program.name} ${program.pid}`, ageMs, heapBytes: heap === 0 ? null : heap, ...open }];
  });
  return (await Promise.all(looks)).flat();
}

type Open = Pick<ProgramSample, 'rssBytes' | 'handles' | 'sockets' | 'guests'>;

/** @returns null for a program that is gone */
export function openOf({ pid }: Pick<Program, 'pid'>): Open | null {
  try {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    if (kilobytes === undefined) return null;
    const targets = readdirSync(`/proc/${pid}/fd`).map((name) => targetOf(`/proc/${pid}/fd/${name}`));
    const sockets = targets.flatMap((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? []);
    const guests = guestsAmong(new Set(sockets), pid);
    const handles = targets.length - guests;
    return { rssBytes: Number(kilobytes) * 1024, handles, sockets: sockets.length - guests, guests };
  } catch {
    return null;
  }
}

const LISTENS = '0A';

/** How many of these sockets came from others: those at a port at which one of them listens. */
function guestsAmong(inodes: ReadonlySet<string>, pid: number): number {
  const tables = ['tcp', 'tcp6'].map((name) => readFileSync(`/proc/${pid}/net/${name}`, 'utf8'));
  const own = tables
    .flatMap((table) => table.trim().split('\n').slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => inodes.has(fields[9] ?? ''))
    .map(([, local = '', , state]) => ({ port: local.split(':')[1], listens: state === LISTENS }));
  const ports = new Set(own.filter(({ listens }) => listens).map(({ port }) => port));
  return own.filter(({ port, listens }) => !listens && ports.has(port)).length;
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

/** One place in the fleet. The program in it changes when a fault kills it. */
interface Place {
  readonly name: ProgramName;
  program: Program;
  startedMs: number;
  /** True between a kill and the moment when its successor is ready. */
  vacant: boolean;
}

export interface Living {
  readonly program: Program;
  readonly ageMs: number;
}

/** Two of what serves buyers and writes orders, so that one can die; a keeper needs no second. */
const PLACES: readonly ProgramName[] = ['api', 'api', 'worker', 'worker', 'keeper'];

/** The programs of a soak. The first api and the first worker are spared: only stalls come over them. */
export class Fleet {
  readonly #arena: Arena;
  readonly #env: Readonly<Record<string, string>>;
  readonly #places: Place[] = [];

  private constructor(arena: Arena, env: Readonly<Record<string, string>>) {
    this.#arena = arena;
    this.#env = env;
  }

  static async start(arena: Arena, env: Readonly<Record<string, string>>): Promise<Fleet> {
    const fleet = new Fleet(arena, env);
    const programs = await Promise.all(PLACES.map((name) => arena.start(name, { env, preload: [COLLECT_GARBAGE] })));
    for (const program of programs) {
      fleet.#places.push({ name: program.name, program, startedMs: Date.now(), vacant: false });
    }
    return fleet;
  }

  /** Apis that buyers may ask, as a balancer would see them: one that is stalled is still there. */
  apis(): Program[] {
    return this.#places.filter(({ name, vacant }) => name === 'api' && !vacant).map(({ program }) => program);
  }

  /** Those that run, and how long. */
  running(): Living[] {
    const nowMs = Date.now();
    return this.#places
      .filter(({ vacant, program }) => !vacant && program.running)
      .map(({ program, startedMs }) => ({ program, ageMs: nowMs - startedMs }));
  }

  /** Programs that ended and that no fault killed. */
  endedAlone(): Program[] {
    return this.#places.filter(({ vacant, program }) => !vacant && !program.running).map(({ program }) => program);
  }

  /** The program of this name that a fault may kill. */
  victim(name: ProgramName): Program {
    return this.#placeOf(name).program;
  }

  /** kill -9 of the victim; its place stays empty until `replace`. */
  async kill(name: ProgramName): Promise<Program> {
    const place = this.#placeOf(name);
    place.vacant = true;
    await place.program.crash();
    return place.program;
  }

  async replace(name: ProgramName): Promise<void> {
    const place = this.#placeOf(name);
    place.program = await this.#arena.start(name, { env: this.#env, preload: [COLLECT_GARBAGE] });
    place.startedMs = Date.now();
    place.vacant = false;
  }

  /** The last of its name: the one keeper, the second api, the second worker. */
  #placeOf(name: ProgramName): Place {
    const place = this.#places.findLast((one) => one.name === name);
    if (place === undefined) throw new Error(`there is no ${name}`);
    return place;
  }
}
