import { Command } from 'commander';
import { loadConfig } from '../core/config/load.js';
import { migrate } from '../mysql/migrate.js';

export function migrateCommand(): Command {
  return new Command('migrate')
    .description('bring the schema of MYSQL_URL up to date; safe to repeat and to run twice at once')
    .option('--json', 'print one JSON line')
    .action(async ({ json }: { json?: boolean }) => {
      const { mysql } = loadConfig(['mysql'], process.env);
      const applied = await migrate(mysql);
      if (json) console.log(JSON.stringify({ applied }));
      else console.log(applied.length === 0 ? 'The schema is up to date.' : `Applied: ${applied.join(', ')}`);
    });
}
