import type { Arena } from '../arena.js';
import { COLLECT_GARBAGE } from '../harness/preload.js';
import type { Program, ProgramName } from '../harness/programs.js';

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
