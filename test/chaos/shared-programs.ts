import type { Environment } from '../../src/core/config/load.js';
import { Programs, type Program } from './harness/programs.js';
import { RECONCILE_ENV } from './harness/reconcile-sale.js';

/** Programs that outlive what a row breaks. */
export interface Survivors {
  readonly api: Program;
  readonly workers: readonly Program[];
  readonly keeper: Program;
}

/** Quick retries and no re-drive: what a row proves must not be healed by another way. */
const WORKER_ENV = { WORKER_RETRY_FIRST_MS: '10' };
const KEEPER_ENV = { KEEPER_EVERY_MS: '200', REDRIVE_AFTER_MS: '600000' };

/** Starts the shared programs when the first row asks, and keeps them until nobody needs them. */
export class SharedPrograms {
  readonly #env: Environment;
  readonly #stackDir: string;
  readonly #main: string | undefined;
  #programs: Programs | null = null;
  #starting: Promise<Survivors> | null = null;

  /** @param main entry of another build than that of this checkout */
  constructor(env: Environment, stackDir: string, main?: string) {
    this.#env = env;
    this.#stackDir = stackDir;
    this.#main = main;
  }

  /** @throws when one of them has died: some row broke what it should not */
  async survivors(): Promise<Survivors> {
    this.#starting ??= this.#start();
    const survivors = await this.#starting;
    const dead = [survivors.api, ...survivors.workers, survivors.keeper].find(({ running }) => !running);
    if (dead) throw new Error(`the shared ${dead.name} has died; its log is ${dead.logFile}`);
    return survivors;
  }

  /** Ends them; the next `survivors` starts others. */
  async close(): Promise<void> {
    await this.#starting?.catch(() => undefined);
    await this.#programs?.close();
    this.#programs = null;
    this.#starting = null;
  }

  logTails(): string {
    return this.#programs?.logTails() ?? '';
  }

  async #start(): Promise<Survivors> {
    const programs = new Programs(this.#env, this.#stackDir, this.#main);
    this.#programs = programs;
    return startSurvivors(programs);
  }
}

export async function startSurvivors(programs: Programs): Promise<Survivors> {
  const [api, keeper, ...workers] = await Promise.all([
    programs.start('api', { env: RECONCILE_ENV }),
    programs.start('keeper', { env: KEEPER_ENV }),
    programs.start('worker', { env: WORKER_ENV }),
    programs.start('worker', { env: WORKER_ENV }),
  ]);
  return { api, workers, keeper };
}
