import { Command } from 'commander';
import type { AuditFilter, StoredAuditEntry } from '../../core/ports/audit-log.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { createAuditLog } from '../../mysql/audit-log.js';
import { withConfigured } from '../../process/connections.js';
import { limitOption, parseTime, parseWhole, subcommand } from '../../process/options.js';
import { isoTime, printPage, tableLine } from '../../process/print.js';
import { auditBody } from './index.js';

interface ListFlags {
  readonly subject?: string;
  readonly actor?: string;
  readonly action?: string;
  readonly since?: number;
  readonly before?: number;
  readonly limit: number;
  readonly json?: boolean;
}

const EXAMPLES = `
Examples:
  seckill audit list --subject sale:7
  seckill audit list --actor root --since -1d --json
  seckill audit list --action dead_letter.discarded

Reads MySQL only. Exit codes: 0 done, 1 MySQL is down, 2 wrong usage.`;

export function auditCommand(): Command {
  const audit = new Command('audit')
    .description('show who did what to sales, dead letters, refunds and compensation jobs')
    .addHelpText('after', EXAMPLES);
  subcommand(audit, 'list', 'print one line per action, newest first')
    .option('--subject <kind:id>', 'only actions on this subject, such as sale:7')
    .option('--actor <name>', 'only actions of this actor: a user id, an account, or `name (account)`')
    .option('--action <action>', 'only this action, such as sale.opened')
    .option('--since <time>', 'only actions at this time or later: ISO 8601, or -2h for two hours ago', parseTime)
    .option(
      '--before <entry>',
      'only entries before this one (number in the first column)',
      parseWhole(1, Number.MAX_SAFE_INTEGER),
    )
    .addOption(limitOption('entries'))
    .option('--json', 'one JSON line per entry')
    .action(list);
  return audit;
}

const line = tableLine(7, 24, 12, 26, 24);

async function list({ since, before, subject, actor, action, ...flags }: ListFlags): Promise<void> {
  const filter: AuditFilter = withoutUndefined({ subject, actor, action, sinceMs: since });
  const page = { max: flags.limit, ...withoutUndefined({ beforeId: before?.toString() }) };
  const entries = await withConfigured('audit', ['mysql', 'redis'], (connections) =>
    createAuditLog(connections.mysql()).list(filter, page),
  );
  printPage(entries, flags, {
    header: line('entry', 'at', 'actor', 'action', 'subject', 'before → after'),
    line: lineOf,
    body: auditBody,
    next: ({ auditId }) => `--before ${auditId}`,
  });
}

const lineOf = ({ auditId, atMs, actor, action, subject, before, after }: StoredAuditEntry): string =>
  line(auditId, isoTime(atMs), actor, action, subject, `${JSON.stringify(before)} → ${JSON.stringify(after)}`);
