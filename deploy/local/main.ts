import { Command } from 'commander';
import { runCommandLine } from '../../src/cli/run-command-line.js';
import { stackCommand } from './stack-command.js';
import { upCommand } from './up.js';

const local = new Command('local').description('The whole system on this machine, for development and tests.');

await runCommandLine(local, [upCommand(), stackCommand()]);
