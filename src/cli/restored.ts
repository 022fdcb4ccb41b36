import { Command } from 'commander';
import { openMysqlPool } from '../mysql/pool.js';
import { markRestored } from '../mysql/restored.js';
import { loadConfig } from '../core/config/load.js';
import { operatorName } from '../process/options.js';
import { print } from '../process/print.js';

const DETAILS = `
Run it once after you restored MySQL to an earlier moment, before api, worker and keeper start. MySQL has forgotten which sale
ids, event ids, epochs and rule versions it gave out after that moment. They must not be given out again, so this command
advances all of them. docs/durability.md has the whole procedure.

Examples:
  seckill restored
  seckill restored --json

It may run twice, as long as no program runs. The audit log records it. Once the programs run, \`seckill reconcile resolve\` decides
what becomes of the orders that only Redis still knows.
Exit codes: 0 done, 1 not done, 2 wrong usage.`;

export function restoredCommand(): Command {
  return new Command('restored')
    .description('advance all numbers after a restore of MySQL, before the programs start')
    .option('--json', 'print one JSON line')
    .addHelpText('after', DETAILS)
    .action(async ({ json }: { readonly json?: boolean }) => {
      const config = loadConfig(['mysql'], process.env);
      const mysql = openMysqlPool(config.mysql); // unchecked: this command repairs what the check would find
      const marks = await markRestored(mysql, operatorName()).finally(() => mysql.close());
      if (json) return print(JSON.stringify(marks));
      print(`${marks.sales} sales: epochs raised by ${marks.epochsRaisedBy}; a keeper rebuilds the live sales.`);
      print(`The next sale has id ${marks.nextSaleId}, the next event ${marks.nextOutboxId}.`);
      if (marks.rulesVersion !== null)
        print(`The admission rules are published again as version ${marks.rulesVersion}.`);
    });
}
