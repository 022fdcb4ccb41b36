import { Command } from 'commander';
import { markRestored } from '../mysql/restored.js';
import { loadConfig } from '../core/config/load.js';
import { withConnections } from '../process/connections.js';
import { createLog } from '../process/telemetry.js';
import { operatorName } from '../process/options.js';
import { print } from '../process/print.js';

const DETAILS = `
Run it once when MySQL was restored to an earlier moment, before api, worker and keeper start. What was given after that
moment (ids of sales and events, epochs, versions of rules) is not known there any more, and must not be given again: so all of
them begin anew, far above. docs/durability.md has the whole procedure.

Examples:
  seckill restored
  seckill restored --json

To run it twice does no harm, as long as no program runs. It is in the audit log.
Exit codes: 0 done, 1 not done, 2 used wrongly.`;

export function restoredCommand(): Command {
  return new Command('restored')
    .description('say that MySQL was restored to an earlier moment, before the programs start')
    .option('--json', 'print one JSON line')
    .addHelpText('after', DETAILS)
    .action(async ({ json }: { readonly json?: boolean }) => {
      const config = loadConfig(['mysql'], process.env);
      const marks = await withConnections(config, createLog('restored', 'error'), (connections) =>
        markRestored(connections.mysql(), operatorName()),
      );
      if (json) return print(JSON.stringify(marks));
      print(`${marks.sales} sales: epochs raised by ${marks.epochsRaisedBy}; a keeper rebuilds those that are live.`);
      print(`The next sale has id ${marks.nextSaleId}, the next event ${marks.nextOutboxId}.`);
      print(`The rules of admission are published again, as version ${marks.rulesVersion}.`);
    });
}
