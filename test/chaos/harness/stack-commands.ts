import { join } from 'node:path';
import { REPO_DIR, stackPaths, type StackPaths } from '../../../deploy/local/stack/paths.js';
import { SERVER_NAMES } from '../../../deploy/local/stack/servers/server-spec.js';
import type { Arena } from '../arena.js';
import { RunningCommand, type CommandEnd } from './command.js';

const LOCAL_MAIN = join(REPO_DIR, 'deploy/local/main.mjs');

/** `npm run stack -- <verb>` on one folder; its last line is its result. */
export class StackCommands {
  readonly paths: StackPaths;
  readonly #env: Arena['env'];

  constructor(arena: Arena, dir: string) {
    this.paths = stackPaths(dir);
    this.#env = arena.env;
  }

  begin(verb: 'up' | 'down' | 'status'): RunningCommand {
    return new RunningCommand(['stack', verb, '--dir', this.paths.dir, '--json'], this.#env, LOCAL_MAIN);
  }

  async run(verb: 'up' | 'down'): Promise<Readonly<Record<string, unknown>>> {
    return resultOf(await this.begin(verb).end);
  }

  /** Of every server, in the order of SERVER_NAMES; null for one that does not run. */
  async pids(): Promise<unknown[]> {
    return (await this.begin('status').end).lines.map(({ pid }) => pid);
  }
}

export const resultOf = ({ lines, code }: CommandEnd): Readonly<Record<string, unknown>> => ({ ...lines.at(-1), code });

/** The pids of a stack of which nothing runs. */
export const NOBODY: readonly null[] = SERVER_NAMES.map(() => null);
