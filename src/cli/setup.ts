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
import { namesrvOf } from './addresses.js';
import { clusterOption, parseUserId, parseWhole } from '../process/options.js';
import { print } from '../process/print.js';

// One-time setup before the programs start: schema, topics, and a token to try them with.

const MIGRATE_EXAMPLES = `
Programs of the release before go on while this runs, and afterwards: a migration only adds. Large tables are changed while they
are written to; where this server cannot do that, the command stops and says so.

Examples:
  MYSQL_URL=mysql://seckill:secret@db:3306/seckill seckill migrate
  seckill migrate --dry-run                  what is missing: its SQL, and whom it makes wait
  seckill migrate --json

The database must exist. Exit codes: 0 up to date, 1 MySQL refused or is away, 2 used wrongly.`;

interface MigrateFlags {
  readonly dryRun?: boolean;
  readonly allowLocks?: boolean;
  readonly json?: boolean;
}

export function migrateCommand(): Command {
  return new Command('migrate')
    .description('create or update the tables in the database of MYSQL_URL; safe to repeat, and to run twice at once')
    .option('--dry-run', 'show what is missing, and change nothing')
    .option('--allow-locks', 'change large tables too that this server locks meanwhile; for a time when nothing sells')
    .option('--json', 'print one JSON line: {"applied": [names of migrations], "newer": [those of a later release]}')
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
  `A later release has migrated this database: ${newer.join(', ')}. This one runs on it; nothing is taken back.`;

/** Shows the missing migrations as SQL. Each statement names the queries that it blocks. */
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

/** Says which queries the statement blocks. */
function locksSentence({ statement, table, locks, rows, bytes }: PlannedStatement): string {
  const size = `${rows} rows, ${megabytes(bytes ?? 0)}`;
  switch (locks) {
    case 'none':
      return statement.startsWith('CREATE') ? 'a new table: nobody waits' : `${table} is new by then: nobody waits`;
    case 'short':
      return `${table} has ${size}: its writers go on where the server can do that, else they wait while it is copied`;
    case 'online':
      return `${table} has ${size}: its writers go on, or migrate stops here and says that this server cannot do that`;
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
  seckill topics --group shop-orders          for a service of yours that consumes order events

Safe to repeat: what exists and is right stays as it is. Run it again after an update of seckill.
Exit codes: 0 everything is in place, 1 RocketMQ refused or is away, 2 used wrongly.`;

export function topicsCommand(): Command {
  return new Command('topics')
    .description('create the topics and consumer groups in RocketMQ, and read them back')
    .option('--namesrv <host:port>', 'address of the name server (default: NAMESRV_ADDR)')
    .addOption(clusterOption())
    .option(
      '--group <name>',
      'also a consumer group of your own, with its topics for retries and dead letters',
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
  else print(`Topics and groups are created at ${namesrvAddr} and were read back.`);
}

/** Group names with our prefix are ours. Two programs in one group would take each other's messages. */
function parseGroup(text: string): string {
  const isName = /^[A-Za-z][A-Za-z0-9_-]{0,99}$/.test(text) && !text.startsWith('seckill-');
  if (!isName)
    throw new InvalidArgumentError('must be a name of letters, digits, _ and -, which does not begin with seckill-.');
  return text;
}

const TOKEN_EXAMPLES = `
Examples:
  seckill token --user alice                       a buyer
  seckill token --user root --role operator        who may run sales, and not change what they offer
  seckill token --user alice --roles queue-p0      a buyer whom waiting rooms let in first
  curl -H "Authorization: Bearer $(seckill token --user alice)" http://127.0.0.1:8080/v1/orders/42

For trials and scripts: whoever has JWT_SECRET (HS256), or JWT_KEYS, of which the first one signs, can make a token for any
user. Each has an id (\`jti\`), by which it can be revoked. Identity providers sign theirs themselves.
Exit codes: 0 printed, 2 used wrongly.`;

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
    .addOption(new Option('--role <role>', 'what an operator may do; each includes those before it').choices(ROLES))
    .option('--roles <list>', 'names of roles, separated by commas', parseRoles)
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
        throw new UsageError(`the api refuses a token of ${ttlHours} hours: JWT_LIFE_MAX_MS allows ${hours}.`);
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
