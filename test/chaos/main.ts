import { Command } from 'commander';
import { runCommandLine } from '../../src/cli/run-command-line.js';
import { chaosCommands, EXAMPLES } from './commands.js';

const chaos = new Command('chaos')
  .description('Breaks servers and programs on purpose, and checks that no purchase is lost or sold twice.')
  .addHelpText('after', EXAMPLES);

await runCommandLine(chaos, chaosCommands());
