import { randomUUID } from 'node:crypto';
import { Command, InvalidArgumentError, Option } from 'commander';
import { loadConfig } from '../core/config/load.js';
import type { Section } from '../core/config/schema.js';
import { assertNever } from '../core/errors.js';
import { readKeyList } from '../core/hmac.js';
import { isId } from '../core/ids.js';
import { ROLES, type Role } from '../core/roles.js';
import { createTokenSigner } from '../http/token.js';
import { migrate, planMigrations, type MigrationPlan } from '../mysql/migrate.js';
import { megabytes, type PlannedStatement } from '../mysql/schema-changes.js';
import { brokerAccessOf } from '../rocketmq/credentials.js';
import { applyTopics } from '../rocketmq/admin/apply-topics.js';
import { readTopicLists, withGroup } from '../rocketmq/admin/topic-lists.js';
import { UsageError } from '../process/cli-error.js';
import { clusterOption, namesrvOf, parseUserId, parseWhole } from '../process/options.js';
import { print } from '../process/print.js';

// One-time setup before the programs start: schema, topics, and a token with which to try them out.

const MIGRATE_EXAMPLES = `
Programs of the previous release may run during and after a migration, because migrations only add. Large tables stay writable;
if this server cannot do that, the command stops and says so.

Examples:
  MYSQL_URL=mysql://seckill:secret@db:3306/seckill seckill migrate
  seckill migrate --dry-run                  shows the missing SQL, and what it blocks
  seckill migrate --json

The database must exist. Exit codes: 0 up to date, 1 MySQL refused or is down, 2 wrong usage.`;

interface MigrateFlags {
  readonly dryRun?: boolean;
  readonly allowLocks?: boolean;
  readonly json?: boolean;
}

export function migrateCommand(): Command {
  return new Command('migrate')
    .description('create or update the tables in the database of MYSQL_URL; safe to repeat and to run twice at once')
    .option('--dry-run', 'show what is missing; change nothing')
    .option('--allow-locks', 'also change large tables, even if they must be locked for it; only while no sale runs')
    .option('--json', 'print one JSON line: {"applied": [names of migrations], "newer": [names of a later release]}')
    .addHelpText('after', MIGRATE_EXAMPLES)
    .action(runMigrate);
}

async function runMigrate({ dryRun = false, allowLocks = false, json = false }: MigrateFlags): Promise<void> {
  const { mysql } = loadConfig(['mysql'], process.env);
  const options = { ...mysql, allowLocks };
  if (dryRun) {
    const plan = await planMigrations(options);
    return print(json ? JSON.stringify(plan) : planText(plan));
  }
  const applied = await migrate(options);
  const { newer } = await planMigrations(options);
  if (json) return print(JSON.stringify({ applied, newer }));
  print(applied.length === 0 ? 'The schema is up to date.' : `Applied: ${applied.join(', ')}`);
  if (newer.length > 0) print(newerSentence(newer));
}

const newerSentence = (newer: readonly string[]): string =>
  `A later release migrated this database: ${newer.join(', ')}. This release can use it; nothing was reverted.`;

/** Each statement names the queries that it blocks. */
export function planText({ missing, newer }: MigrationPlan): string {
  const migrations = missing.flatMap(({ name, statements }) => [
    name,
    ...statements.map((one) => `${indented(`${one.statement};`)}\n  -- ${locksSentence(one)}\n`),
  ]);
  const count = missing.reduce((sum, { statements }) => sum + statements.length, 0);
  const end = missing.length === 0 ? 'The schema is up to date.' : `Nothing was changed. Missing: ${count} statements.`;
  return [...migrations, ...(newer.length > 0 ? [newerSentence(newer)] : []), end].join('\n');
}

const indented = (text: string): string => text.replaceAll(/^(?=.)/gm, '  ');

function locksSentence({ statement, table, locks, rows, bytes }: PlannedStatement): string {
  const size = `${rows} rows, ${megabytes(bytes ?? 0)}`;
  switch (locks) {
    case 'none':
      return statement.startsWith('CREATE') ? 'new table: blocks nothing' : `${table} is new: blocks nothing`;
    case 'short':
      return `${table} has ${size}: writes continue if the server can alter it online; otherwise they wait while the table is copied`;
    case 'online':
      return `${table} has ${size}: writes continue; if the server cannot alter it online, migrate stops here`;
    case 'rows':
      return `writes rows, in short transactions over ${table} (${size})`;
    default:
      return assertNever(locks);
  }
}

interface TopicsFlags {
  readonly namesrv?: string;
  readonly cluster: string | null;
  readonly group?: string;
  readonly json?: boolean;
}

const TOPICS_EXAMPLES = `
Examples:
  seckill topics --namesrv 10.0.0.5:9876
  NAMESRV_ADDR=10.0.0.5:9876 seckill topics --cluster production --json
  seckill topics --group shop-orders          for your own service that consumes order events

Safe to repeat: it changes nothing that is already right. Run it again after each upgrade.
Exit codes: 0 everything is in place, 1 RocketMQ refused or is down, 2 wrong usage.`;

export function topicsCommand(): Command {
  return new Command('topics')
    .description('create the topics and consumer groups in RocketMQ, and read them back')
    .option('--namesrv <host:port>', 'address of the name server (default: NAMESRV_ADDR)')
    .addOption(clusterOption())
    .option(
      '--group <name>',
      'also create this consumer group, with its topics for retries and dead letters',
      parseGroup,
    )
    .option('--json', 'print one JSON line')
    .addHelpText('after', TOPICS_EXAMPLES)
    .action(createTopics);
}

async function createTopics({ namesrv, cluster, group, json }: TopicsFlags): Promise<void> {
  const namesrvAddr = namesrvOf(namesrv);
  const { brokerAccess } = loadConfig(['brokerAccess'], process.env);
  const target = { namesrvAddr, cluster };
  const lists = readTopicLists();
  const outcome = await applyTopics(
    { ...target, ...brokerAccessOf(brokerAccess) },
    group === undefined ? lists : withGroup(lists, group),
  );
  if (json) print(JSON.stringify({ result: outcome, ...target }));
  else if (outcome === 'unchanged') print(`All topics and groups are in place at ${namesrvAddr}.`);
  else print(`Topics and groups were created at ${namesrvAddr} and read back.`);
}

/** Our programs use this prefix. Two programs in one group would take each other's messages. */
function parseGroup(text: string): string {
  const isName = /^[A-Za-z][A-Za-z0-9_-]{0,99}$/.test(text) && !text.startsWith('seckill-');
  if (!isName)
    throw new InvalidArgumentError('must consist of letters, digits, _ and -, and must not begin with seckill-.');
  return text;
}

const TOKEN_EXAMPLES = `
Examples:
  seckill token --user alice                       a buyer
  seckill token --user root --role operator        an operator, who may run sales but not change them
  seckill token --user alice --roles queue-p0      a buyer whom waiting rooms admit first
  curl -H "Authorization: Bearer $(seckill token --user alice)" http://127.0.0.1:8080/v1/orders/42

For trials and scripts. The command signs with the first key of JWT_KEYS, or with JWT_SECRET (HS256); anyone with such a key can
make a token for any user. Each token has an id (\`jti\`), by which it can be revoked. Identity providers sign their own tokens.
Exit codes: 0 printed, 2 wrong usage.`;

interface TokenFlags {
  readonly user: string;
  readonly role?: Role;
  readonly roles?: readonly string[];
  readonly ttlHours: number;
}

const HOUR_MS = 3_600_000;

export function tokenCommand(): Command {
  return new Command('token')
    .description('print a bearer token for a buyer or an operator, signed with JWT_SECRET or JWT_KEYS (HS256)')
    .requiredOption('--user <id>', 'user id: 1 to 128 visible ASCII characters', parseUserId)
    .addOption(new Option('--role <role>', 'role of an operator; each includes the roles before it').choices(ROLES))
    .option('--roles <list>', 'roles, separated by commas', parseRoles)
    .option(
      '--ttl-hours <hours>',
      'hours until it expires, 1 to 8760; at most JWT_LIFE_MAX_MS',
      parseWhole(1, 8760),
      24,
    )
    .addHelpText('after', TOKEN_EXAMPLES)
    .action(({ user, role, roles = [], ttlHours }: TokenFlags) => {
      const { auth } = loadConfig(['auth'], process.env);
      const ttlMs = ttlHours * HOUR_MS;
      if (ttlMs > auth.lifeMaxMs) {
        const hours = Math.floor(auth.lifeMaxMs / HOUR_MS);
        throw new UsageError(`the api refuses a token of ${ttlHours} hours, because JWT_LIFE_MAX_MS allows ${hours}.`);
      }
      const all = role === undefined ? roles : [role, ...roles];
      print(signerOf(auth)({ userId: user, roles: all, ttlMs, tokenId: randomUUID() }));
    });
}

/** Returns a signer with the key that the api uses for tokens of this kind. */
export function signerOf({
  algorithm,
  key,
  keys,
  issuer,
  audience,
}: Section<'auth'>): ReturnType<typeof createTokenSigner> {
  const names = { ...(issuer === '' ? {} : { issuer }), ...(audience === '' ? {} : { audience }) };
  const [first] = readKeyList(keys);
  if (first !== undefined) return createTokenSigner(first[1], { keyId: first[0], ...names });
  if (algorithm === 'HS256' && key !== '') return createTokenSigner(key, names);
  throw new UsageError(
    `${key === '' ? 'JWT_SECRET is not set' : `JWT_ALGORITHM is ${algorithm}`}: only the holder of the private key can sign a token.`,
  );
}

function parseRoles(text: string): string[] {
  const roles = text.split(',').filter(Boolean);
  if (!roles.every(isId)) throw new InvalidArgumentError('must be names, separated by commas.');
  return roles;
}
