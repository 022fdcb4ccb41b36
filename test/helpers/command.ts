import { RunningCommand as Running, runCommand as run, type CommandEnd } from '../chaos/harness/commands.js';
import type { StackEnv } from './stack-env.js';

export type { CommandEnd };

/** Runs `seckill <args>` as a separate process, with the environment of the tests. */
export class RunningCommand extends Running {
  constructor(args: readonly string[], env: StackEnv) {
    super(args, { ...process.env, ...env });
  }
}

export const runCommand = (args: readonly string[], env: StackEnv): Promise<CommandEnd> =>
  run(args, { ...process.env, ...env });
