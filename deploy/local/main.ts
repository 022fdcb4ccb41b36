import { Command } from 'commander';
import { runCommandLine } from '../../src/cli/run-command-line.js';
import { stackCommand } from './stack-command.js';
import { upCommand } from './up.js';

/** The npm script of each command, as people type it. */
const NPM_SCRIPTS: Readonly<Record<string, string>> = { up: 'npm start --', stack: 'npm run stack --' };

const local: Command = new Command('local')
  .description('The whole system on this machine, for development and tests.')
  .configureHelp({ commandUsage: (command) => `${typed(command)} ${command.usage()}` });

function typed(command: Command): string {
  if (command.parent === null) return command.name();
  if (command.parent === local) return NPM_SCRIPTS[command.name()] ?? command.name();
  return `${typed(command.parent)} ${command.name()}`;
}

await runCommandLine(local, [upCommand(), stackCommand()]);
