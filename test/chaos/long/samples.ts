import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { COLLECT_GARBAGE, type Program, type ProgramName, type Programs, readMetric } from '../harness/programs.js';
import type { ProgramSample } from './flatness.js';

/** Reads memory, handles and sockets of every running program from the kernel, and the heap from its metrics. */
export async function samplePrograms(programs: Pick<LongPrograms, 'running'>): Promise<ProgramSample[]> {
  const samples = programs.running().map(async ({ program, ageMs }): Promise<ProgramSample[]> => {
    const heap = await readMetric(program, 'nodejs_heap_size_used_bytes').catch(() => 0);
    const open = openOf(program);
    if (open === null) return []; // a fault has just killed it
    return [{ program: `${program.name} ${program.pid}`, ageMs, heapBytes: heap === 0 ? null : heap, ...open }];
  });
  return (await Promise.all(samples)).flat();
}

type Open = Pick<ProgramSample, 'rssBytes' | 'handles' | 'sockets' | 'inbound'>;

/** Counts the open descriptors of a process. @returns null if the process is gone */
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

/** Counts sockets that other processes opened to a listening port of this process. */
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

/** Returns an empty text if the file was closed since the folder was read. */
function targetOf(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return '';
  }
}

/** The place of a program and, after a kill, of its replacement. */
interface Place {
  readonly name: ProgramName;
  program: Program;
  startedMs: number;
  /** True from a kill until its replacement is ready. */
  vacant: boolean;
}

/** One of two apis and one of two workers may die. A single keeper is enough. */
const PLACES: readonly ProgramName[] = ['api', 'api', 'worker', 'worker', 'keeper'];

/** The programs of a long run. The first api and the first worker never break, so that their memory can be judged. */
export class LongPrograms {
  readonly #context: Pick<Programs, 'start'>;
  readonly #env: Readonly<Record<string, string>>;
  readonly #places: Place[] = [];

  private constructor(context: Pick<Programs, 'start'>, env: Readonly<Record<string, string>>) {
    this.#context = context;
    this.#env = env;
  }

  static async start(context: Pick<Programs, 'start'>, env: Readonly<Record<string, string>>): Promise<LongPrograms> {
    const started = new LongPrograms(context, env);
    const programs = await Promise.all(PLACES.map((name) => context.start(name, { env, preload: [COLLECT_GARBAGE] })));
    for (const program of programs) {
      started.#places.push({ name: program.name, program, startedMs: Date.now(), vacant: false });
    }
    return started;
  }

  /** Returns the apis that buyers use. Like a load balancer, it still includes a stalled api. */
  apis(): Program[] {
    return this.#places.filter(({ name, vacant }) => name === 'api' && !vacant).map(({ program }) => program);
  }

  /** Returns the running programs and their ages. */
  running(): { readonly program: Program; readonly ageMs: number }[] {
    const nowMs = Date.now();
    return this.#places
      .filter(({ vacant, program }) => !vacant && program.running)
      .map(({ program, startedMs }) => ({ program, ageMs: nowMs - startedMs }));
  }

  /** Returns programs that ended although no fault killed them. */
  endedAlone(): Program[] {
    return this.#places.filter(({ vacant, program }) => !vacant && !program.running).map(({ program }) => program);
  }

  /** Returns the program of this name that a fault may break. */
  victim(name: ProgramName): Program {
    return this.#placeOf(name).program;
  }

  /** Kills the victim with kill -9. Its place is empty until `replace`. */
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

  /** Returns the last place with this name: the only keeper, the second api or the second worker. */
  #placeOf(name: ProgramName): Place {
    const place = this.#places.findLast((one) => one.name === name);
    if (place === undefined) throw new Error(`there is no ${name}`);
    return place;
  }
}
