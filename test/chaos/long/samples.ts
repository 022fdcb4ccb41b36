import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ScenarioContext } from '../context.js';
import { COLLECT_GARBAGE, type Program, type ProgramName, readMetric } from '../harness/programs.js';
import type { StackControls } from '../harness/stack-controls.js';
import type { ProgramSample, ServerSample } from './flatness.js';

const EVERY_MS = 5_000;
/** Below the folder of the servers; shows a person why something was not flat. */
const FILE = join('log', 'soak-samples.jsonl');

/** Samples programs and servers every 5 s, without those that are broken at that moment. */
export class Sampler {
  readonly programs: ProgramSample[] = [];
  readonly servers: ServerSample[] = [];
  readonly #timer: NodeJS.Timeout;
  readonly #file: string;
  #sampling: Promise<unknown> = Promise.resolve();

  constructor(programs: SoakPrograms, stack: StackControls) {
    this.#file = join(stack.servers.dir, FILE);
    const startedMs = Date.now();
    const nextPrograms = oneAtATime(async () => void this.programs.push(...(await samplePrograms(programs))));
    const nextServers = oneAtATime(async () => void this.servers.push(await sampleServers(stack, startedMs)));
    this.#timer = setInterval(() => (this.#sampling = Promise.all([nextPrograms(), nextServers()])), EVERY_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sampling;
    const lines = [...this.programs, ...this.servers].map((sample) => `${JSON.stringify(sample)}\n`);
    writeFileSync(this.#file, lines.join(''));
  }
}

/** Skips a call while the one before hangs on a broken server. Never rejects. */
function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  return () => {
    running ??= work()
      .catch(() => undefined)
      .finally(() => (running = null));
    return running;
  };
}

/** Memory, handles and sockets of every program that runs, as the kernel counts them; the heap from its metrics. */
export async function samplePrograms(programs: Pick<SoakPrograms, 'running'>): Promise<ProgramSample[]> {
  const samples = programs.running().map(async ({ program, ageMs }): Promise<ProgramSample[]> => {
    const heap = await readMetric(program, 'nodejs_heap_size_used_bytes').catch(() => 0);
    const open = openOf(program);
    if (open === null) return []; // it has just been killed
    return [{ program: `${program.name} ${program.pid}`, ageMs, heapBytes: heap === 0 ? null : heap, ...open }];
  });
  return (await Promise.all(samples)).flat();
}

type Open = Pick<ProgramSample, 'rssBytes' | 'handles' | 'sockets' | 'inbound'>;

/** @returns null for a program that is gone */
export function openOf({ pid }: Pick<Program, 'pid'>): Open | null {
  try {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    if (kilobytes === undefined) return null;
    const targets = readdirSync(`/proc/${pid}/fd`).map((name) => targetOf(`/proc/${pid}/fd/${name}`));
    const sockets = targets.flatMap((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? []);
    const inbound = inboundAmong(new Set(sockets), pid);
    const handles = targets.length - inbound;
    return { rssBytes: Number(kilobytes) * 1024, handles, sockets: sockets.length - inbound, inbound };
  } catch {
    return null;
  }
}

const LISTENS = '0A';

/** How many of these sockets others opened: those at a port at which one of them listens. */
function inboundAmong(inodes: ReadonlySet<string>, pid: number): number {
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

async function sampleServers({ redis: { redis }, mysql }: StackControls, startedMs: number): Promise<ServerSample> {
  const ageMs = Date.now() - startedMs;
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

/** One program; another takes its place when a fault kills it. */
interface Place {
  readonly name: ProgramName;
  program: Program;
  startedMs: number;
  /** True from a kill until its replacement is ready. */
  vacant: boolean;
}

/** Two apis and two workers, so that one can die; a keeper needs no second. */
const PLACES: readonly ProgramName[] = ['api', 'api', 'worker', 'worker', 'keeper'];

/** The programs of a soak. The first api and the first worker are never killed or stalled, so that they can be judged. */
export class SoakPrograms {
  readonly #context: Pick<ScenarioContext, 'start'>;
  readonly #env: Readonly<Record<string, string>>;
  readonly #places: Place[] = [];

  private constructor(context: Pick<ScenarioContext, 'start'>, env: Readonly<Record<string, string>>) {
    this.#context = context;
    this.#env = env;
  }

  static async start(
    context: Pick<ScenarioContext, 'start'>,
    env: Readonly<Record<string, string>>,
  ): Promise<SoakPrograms> {
    const soak = new SoakPrograms(context, env);
    const programs = await Promise.all(PLACES.map((name) => context.start(name, { env, preload: [COLLECT_GARBAGE] })));
    for (const program of programs) {
      soak.#places.push({ name: program.name, program, startedMs: Date.now(), vacant: false });
    }
    return soak;
  }

  /** Apis that buyers use, as a load balancer would see them: a stalled one is still there. */
  apis(): Program[] {
    return this.#places.filter(({ name, vacant }) => name === 'api' && !vacant).map(({ program }) => program);
  }

  /** Those that run, and how long. */
  running(): { readonly program: Program; readonly ageMs: number }[] {
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

  /** kill -9 of the victim; it is gone until `replace`. */
  async kill(name: ProgramName): Promise<Program> {
    const place = this.#placeOf(name);
    place.vacant = true;
    await place.program.crash();
    return place.program;
  }

  async replace(name: ProgramName): Promise<void> {
    const place = this.#placeOf(name);
    place.program = await this.#context.start(name, { env: this.#env, preload: [COLLECT_GARBAGE] });
    place.startedMs = Date.now();
    place.vacant = false;
  }

  /** The last of its name: the only keeper, the second api, the second worker. */
  #placeOf(name: ProgramName): Place {
    const place = this.#places.findLast((one) => one.name === name);
    if (place === undefined) throw new Error(`there is no ${name}`);
    return place;
  }
}
